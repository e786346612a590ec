"""What a run has from the runs around it: its user and its session, unless it states its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.record._run import Run


def nearest(run: Run, name: str) -> str | None:
    """Return the user or session of the run itself, else of the nearest run around it."""
    around: Run | None = run
    while around is not None:
        stated: str | None = getattr(around.attributes, name, None)
        if stated is not None:
            return stated
        around = None if around.via is None else around.via.run
    return None
