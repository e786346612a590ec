"""What carrying on a thread of a graph has led to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A thread whose decided requests were carried on, or could not be."""

    thread: str
    approvals: tuple[str, ...] = ()
    """Ids of the requests whose decisions its graph was resumed with."""
    state: str = "finished"
    """`finished`; `paused`, where it asks something else; `raised`; or `left`, where it was not resumed."""
    problem: str = ""
    """The error that the graph raised, or why it was left."""
    error: Exception | None = None
    """The error itself."""
    output: Any = field(default=None, repr=False)
    """What the graph returned."""
