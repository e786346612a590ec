"""What a live run knows of evidence that it has lost: dropped steps, trouble in recording, an earlier part that is gone.

`_gaps` puts it into words for gates.
"""

from __future__ import annotations

from typing import Any

EARLIER = "what this run recorded before it was suspended cannot be found"


class Losses:
    """The part of a run that counts what was lost."""

    __slots__ = ("dropped", "missing", "number", "troubles_before")

    # `Run` sets them itself: another call to set them would show in the time that opening a run takes.
    dropped: int
    """Steps beyond the bound."""
    missing: tuple[str, ...]
    """Why evidence from before this run was resumed is missing."""
    number: int
    """Its place in the order in which runs began; 0 until it is known to have begun."""
    troubles_before: int
    """Failures of recording in this process before this run began."""

    def inherit(self, earlier: dict[str, Any] | None) -> None:
        """Take over what was lost by the time the run was suspended; None where its trace by then is not to be had."""
        if earlier is None:
            self.missing = (EARLIER,)
            return
        grace = earlier.get("grace") or {}
        self.missing = tuple(map(str, grace.get("evidence_gaps") or ()))
        self.dropped += grace.get("dropped_steps") or 0
