"""The rows that stores hold: finished traces, and the journal of open runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace


@dataclass(frozen=True, slots=True)
class Record:
    """A finished trace for a store: the columns that it is found by, and the trace as JSON."""

    id: str
    created_at: str
    domain: str
    score: float
    success: bool
    status: str
    text: str
    data: bytes
    scores: tuple[tuple[str, float | None, bool | None], ...] = ()
    """Name, score from 0 to 1 or None, and whether it passed."""
    attributes: tuple[tuple[str, str, str], ...] = ()
    """Tags, user, session, metadata and parent, as (kind, name, value)."""
    awaits: tuple[str, ...] = ()
    """Parts that are added later, such as "judgement" or "scores". A store with a table of them gives them to another process if this one
    dies. A part is an identifier."""
    completes: bool = False
    """Whether this is a later version of a record that awaited something. It is stored only in place of that record: a run that was
    deleted meanwhile does not come back, and a run that is complete is not completed again."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One row of the journal of an open run; row 0 is its header."""

    run_id: str
    seq: int
    data: bytes


def scorer_name(name: str) -> str:
    """Return the name of a scorer in the form that every store can hold."""
    return name.encode("utf-8", errors="replace").decode("utf-8").replace("\0", " ")


def load_trace(data: bytes) -> ReasoningTrace:
    """Return a trace from the JSON that a store holds."""
    from grace_kp.trace import ReasoningTrace

    return ReasoningTrace.model_validate_json(data)
