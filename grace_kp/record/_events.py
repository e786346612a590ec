"""What is said in a run rather than called: thoughts, and calls of a model, whose text is a thought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grace_kp.record._current import BEYOND


class Note:
    """A thought of the agent's own words."""

    __slots__ = ("at", "place", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.place = None if BEYOND.place is None else BEYOND.place()


class ModelCall:
    """One call of a model that has ended: its text, if any, what it used, or how it failed."""

    __slots__ = ("end", "error", "model", "place", "start", "status", "text", "usage")

    def __init__(
        self,
        model: str,
        *,
        start: int,
        end: int,
        text: str = "",
        status: str = "ok",
        error: tuple[str, str] | None = None,
        usage: dict[str, int] | None = None,
        place: str | None = None,
    ) -> None:
        self.model = model
        self.start = start
        self.end = end
        self.text = text
        self.status = status
        self.error = error
        self.usage = usage
        self.place = place


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a run was suspended, and by what it is found again when it goes on."""

    thread: str
    """The conversation that it belongs to."""
    checkpoint: str | None
    """The state that it stopped at; None where only the place is known."""
    place: str | None
    """The part of the program that it was itself called from, for a nested run."""
    again: frozenset[str] = frozenset()
    """Places that are run again from their beginning when the run goes on."""
    previous: Any = None
    """The suspended run itself, while this process still has it."""
