"""The part of a run from before it was suspended: its steps, calls and decisions, less what is run again from its beginning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a run waits, and where it is found again when it continues."""

    thread: str
    """The conversation that it belongs to."""
    checkpoint: str | None
    """The state that it stopped at; None if only the place is known."""
    place: str | None
    """The part of the program that called it, for a nested run."""
    again: frozenset[str] = frozenset()
    """Places that are run again from their beginning when the run continues."""
    previous: Any = None
    """The suspended run itself, while this process still has it."""


class Earlier:
    """What a suspended trace brings into the run that goes on from it.

    A framework that resumes in the middle of a program runs the part that was interrupted again from its beginning. What that part had
    recorded is left out here, because it is recorded anew; what of it had been carried out already is named in `repeated`.
    """

    __slots__ = ("calls", "decisions", "duration_ms", "model_calls", "pending", "repeated", "steps")

    def __init__(self, document: dict[str, Any]) -> None:
        grace = document.get("grace") or {}
        again = set(grace.get("repeats") or ())
        kept = [step for step in document.get("steps") or () if step["step_id"] not in again]
        number = {step["step_id"]: place for place, step in enumerate(kept)}
        self.steps: list[dict[str, Any]] = [{**step, "step_id": number[step["step_id"]]} for step in kept]
        self.duration_ms: float = grace.get("duration_ms", 0.0)
        self.decisions: list[dict[str, Any]] = list(grace.get("decisions") or ())
        self.repeated: list[str] = list(grace.get("repeated") or ())
        calls = grace.get("calls") or []
        stays = [call for call in calls if call["tool_call"] in number]
        self.repeated += [call["name"] for call in calls if call not in stays and call["status"] in {"ok", "error"}]
        names = {call["call_id"]: f"c{place}" for place, call in enumerate(stays)}
        self.calls = [_renumbered(call, number, names) for call in stays]
        self.model_calls = [
            {**call, **({"step": number[call["step"]]} if "step" in call else {})}
            for call in grace.get("model_calls") or ()
            if "step" not in call or call["step"] in number
        ]
        failed = {call["call_id"]: call for call in self.calls if call["status"] in {"error", "cancelled"}}
        inner = {call.get("parent") for call in failed.values() if call.get("error")}
        self.pending = [
            call
            for name, call in failed.items()
            if "recovery" not in call and "error" in call and (name not in inner or call.get("parent") not in failed)
        ]
        """Calls whose error nothing has followed yet."""


def _renumbered(call: dict[str, Any], number: dict[int, int], names: dict[str, str]) -> dict[str, Any]:
    made = {**call, "call_id": names[call["call_id"]]}
    for field in ("tool_call", "observation", "recovery"):
        if field in made:
            if made[field] in number:
                made[field] = number[made[field]]
            else:
                del made[field]
    if "parent" in made:
        made["parent"] = names.get(made["parent"], made["parent"])
    return made
