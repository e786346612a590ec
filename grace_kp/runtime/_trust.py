"""Reasons not to rely on the profile of a runtime: runs that differ from those it was fitted on, and promises that were refuted.

Whoever watches a promise adds a `Doubt` here; gates consult all of them. What a reason leads to is decided in `gating`: at least CONFIRM.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.levels import InterventionLevel
from grace_kp.record import note
from grace_kp.trace import describe_error, redact_text, storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_KNOWN = 50
MAX_REASON = 500
_log = logging.getLogger("grace_kp")

Doubt: TypeAlias = Callable[[str, InterventionLevel], Iterable[str]]
"""Takes the name of a gated action and its level without doubts, and returns why the promise of the profile no longer holds for it, in a few words each."""


class Trust:
    """What is known against a profile. It is shared by the threads of a runtime.

    Args:
        tightens: whether a run that differs from those that the profile was fitted on is a gap in the evidence.
    """

    def __init__(self, *, tightens: bool = True) -> None:
        self.tightens = tightens
        self.doubts: list[Doubt] = []
        """Consulted before every gated action. They must return quickly, and what they return makes the gate stricter."""
        self.mismatches: dict[str, None] = {}
        """How runs of this process differed from those that the profile was fitted on, without repetitions."""

    def found(self, mismatches: Sequence[str]) -> None:
        """Take note of differences; each is logged once."""
        for mismatch in mismatches:
            if mismatch not in self.mismatches and len(self.mismatches) < MAX_KNOWN:
                self.mismatches[mismatch] = None
                _log.warning(
                    "the promise of the confidence profile does not hold: %s", redact_text(mismatch, identifiers=False)
                )

    def gaps(
        self, action: str, mismatches: Sequence[str], level: InterventionLevel = InterventionLevel.SILENT
    ) -> tuple[str, ...]:
        """Return why the profile cannot be relied on before an action.

        Args:
            action: the name of the action.
            mismatches: how the run differs from those that the profile was fitted on.
            level: the level of the action, if nothing is known against the profile.
        """
        if not (mismatches or self.doubts):
            return ()
        gaps = [f"the profile was not fitted on runs like this: {item}" for item in mismatches if self.tightens]
        for doubt in tuple(self.doubts):
            try:
                gaps += [storable(str(reason))[:MAX_REASON] for reason in tuple(doubt(action, level))]
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 — a promise that cannot be checked is not relied on
                note("checking a promise", error, theirs=True)
                gaps.append(f"whether its promise still holds could not be checked ({describe_error(error)[0]})")
        return tuple(gaps)

    def describe(self) -> dict[str, Any]:
        """Return what is known, for `Grace.status()`."""
        return {"on_mismatch": "tighten" if self.tightens else "report", "mismatches": list(self.mismatches)}


def recorded(mismatches: Sequence[str]) -> Mapping[str, Any]:
    """Return the differences as a field of a record; an empty mapping if there are none."""
    return {"mismatches": list(mismatches)} if mismatches else {}
