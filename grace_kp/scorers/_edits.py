"""What scorers compare: operations on blocks, what came of them, and what was expected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INSERT, DELETE = "insert", "delete"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an editing agent."""

    type: str
    """Such as `insert`, `update`, `delete`, `move`."""
    target_block_id: str | None = None
    target_index: int | None = None
    position: Any = None
    """Where an `insert` goes, such as `before` or `after`, or a number."""
    content: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields that are given."""
        names = ("type", "target_block_id", "target_index", "position", "content")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document."""

    id: str
    content: str


@dataclass(frozen=True, slots=True)
class EditResult:
    """What an agent did."""

    operations: Sequence[Operation]
    applied: Sequence[bool] | None = None
    """For each operation whether it could be applied; None where that is not known."""
    blocks_before: Sequence[Block] | None = ()
    """The document as it was; None where that is not known."""
    blocks_after: Sequence[Block] | None = ()
    pages: Mapping[str, str] | None = None
    """What stands on each page afterwards, by its title."""
    duration_ms: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        for name in ("blocks_before", "blocks_after"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "pages", dict(self.pages or {}))
        if self.applied is not None:
            object.__setattr__(self, "applied", tuple(self.applied))
            if len(self.applied) != len(self.operations):
                raise ValueError(
                    f"applied says {len(self.applied)} times whether, for {len(self.operations)} operations"
                )


@dataclass(frozen=True, slots=True)
class EditExpectation:
    """What an agent should have done.

    Raises:
        PatternError: a pattern is malformed; the message names its page.
    """

    operations: Sequence[Operation] = ()
    patterns: Mapping[str, Sequence[str]] | None = None
    """Regular expressions that must be found on a page, by its title."""
    ignore_case: bool = True
    compiled: tuple[tuple[str, str, Any], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        from grace_kp.scorers._patterns import compiled

        object.__setattr__(self, "operations", tuple(self.operations))
        patterns = {title: tuple(found) for title, found in (self.patterns or {}).items()}
        object.__setattr__(self, "patterns", patterns)
        made = [
            (title, text, compiled(text, ignore_case=self.ignore_case, place=f"page {title!r}"))
            for title, texts in patterns.items()
            for text in texts
        ]
        object.__setattr__(self, "compiled", tuple(made))
