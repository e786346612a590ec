"""What a run records beside its calls: thoughts, and calls of a model, whose text is a thought.

Also what a run needs of the call that opened it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.record._current import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_CAPTURED = "[not captured]"
"""Stands for contents where inputs or outputs are not captured."""
SEALED = "[SEALED]"
"""Stands for an argument that its gate keeps encrypted."""


class Event:
    """Something that a run records, in order."""

    __slots__ = ("place",)

    place: str | None
    """The part of a framework's program in which it happened."""


class Note(Event):
    """A thought that the agent stated itself."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.place = None if HOST.place is None else HOST.place()


class UserMessage(Note):
    """Something that a person wrote, as the program states."""

    __slots__ = ()


class ModelCall(Event):
    """A finished call of a model: its text, if any, its usage, and its error if it failed."""

    __slots__ = ("end", "error", "model", "start", "status", "text", "usage")

    def __init__(
        self,
        model: str,
        *,
        start: int,
        end: int,
        text: str = "",
        status: str = "ok",
        error: tuple[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
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


class Opener(Protocol):
    """The call that opened a run: it ends like its run."""

    run: Any
    child: Any
    result: Any
    place: str | None
    start: int

    def close(self, result: object, /) -> object: ...
    def fail(self, error: BaseException, /) -> object: ...
    def pause(self) -> object: ...
    def refuse(self, kind: str, message: str) -> object: ...
