"""The records of a store: finished traces, rows of the journal of open runs, and feedback on stored runs.

Feedback has a separate table, so no later version of a trace replaces it. A trace that is read carries its entries under `grace.feedback`,
oldest first. A trace that is stored with such a list, for example from an export, hands its entries over, each once. Labels of single actions
are entries under `grace.action_feedback`, so that no reader of labels of runs, also of an earlier version, takes one for a label of the run.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.approvals import person
from grace_kp.trace import read_decisions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grace_kp.trace import DecisionRecord, ReasoningTrace

FIELD, ACTION_FIELD = "feedback", "action_feedback"
"""The fields of `grace` that hold labels of the run, and of its actions."""
ACTIONS = "actions:"
"""Before the id of a trace, the owner of its labels of actions in the table. No trace has such an id."""
CHECK, REVERSAL = "check", "reversal"
"""Sources of labels of actions: a check of the result, and another action that undid this one."""
PROGRAM = "program"
"""The field of an entry that is true where a program states the label."""
RESERVED = frozenset({"approval", "audit", "person", "reviewer", "seeded"})
"""Sources that only people and this library may state."""
IMPORT = "import:"
"""Beginning of the source of each label that a file stated; the name of the file follows."""
UNNAMED = ""
"""Source of an entry from elsewhere that names none."""
_MARK = b'feedback"'
T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """One label of a stored run."""

    trace: str
    """The id of the trace."""
    at: float
    """When it was stated, in seconds since the epoch. The entries of a trace are kept in this order."""
    source: str
    """Where it comes from, for example `user`; also part of `data`."""
    data: bytes
    """The entry as a JSON object, as `grace.feedback` holds it."""
    action: str = ""
    """The id of the decision that it is about, also part of `data`; such an entry is one of `grace.action_feedback`. Empty for the run."""


def scorer_name(name: str) -> str:
    """Return the name of a scorer, or of a source of feedback, in the form that every store can hold."""
    return name.encode("utf-8", errors="replace").decode("utf-8").replace("\0", " ")


def read_feedback(record: Record) -> list[FeedbackEntry]:
    """Return the entries that a record's own document holds. Values that are not objects are skipped."""
    if _MARK not in record.data:
        return []
    grace = json.loads(record.data).get("grace") or {}
    found: list[FeedbackEntry] = []
    for name in (FIELD, ACTION_FIELD):
        at = 0.0
        for entry in grace[name] if isinstance(grace.get(name), list) else ():
            if isinstance(entry, dict):
                at = _seconds(entry.get("at"), at)
                source = entry.get("source")
                source = scorer_name(source) if isinstance(source, str) else UNNAMED
                about = entry.get("action")  # an export of another program may keep all labels in one list
                action = "" if name == FIELD and about is None else str(about)
                found.append(FeedbackEntry(record.id, at, source, to_bytes(entry), action))
    return found


def find_missing(entries: Iterable[FeedbackEntry], known: Iterable[bytes]) -> list[FeedbackEntry]:
    """Return the entries that are not among those known for their trace; equal ones count as often as they occur."""
    left = Counter(_comparable(json.loads(data)) for data in known)
    return [entry for entry in entries if _take(left, json.loads(entry.data))]


def with_feedback(trace: ReasoningTrace, entries: Mapping[str, Sequence[bytes]]) -> ReasoningTrace:
    """Return the trace with these entries under the fields of `grace` that are named, behind what only its own document holds."""
    for name, stored in entries.items():
        grace = dict(trace.grace or {})
        found = [json.loads(entry) for entry in stored]
        left, own = Counter(map(_comparable, found)), grace.get(name) or []
        grace[name] = [entry for entry in (own if isinstance(own, list) else [own]) if _take(left, entry)] + found
        trace.grace = grace
    return trace


def is_imported(trace: ReasoningTrace | None) -> bool:
    """Return whether a trace was imported from a file; False for none."""
    return bool(trace is not None and (trace.grace or {}).get("imported"))


def precedence(entry: Mapping[str, Any], user: object) -> int:
    """Return the precedence of a label among those on its run: 3 with the name of a person, 2 without a name, 1 from a program or a file.

    0 is a label that never counts, because the user of the run states it.

    Args:
        entry: the label.
        user: the user for whom the run acted, if it has one.
    """
    by = _name(entry.get("by"))
    if by and by == _name(user):
        return 0
    return 1 if entry.get(PROGRAM) or str(entry.get("source")).startswith(IMPORT) else 3 if by else 2


def by_precedence(
    entries: Iterable[Mapping[str, Any]], user: object, action: str | None = None
) -> list[Mapping[str, Any]]:
    """Return the labels of a run, or of one of its actions, that may count. Among those that a caller accepts, the last one counts.

    The label of an action never counts for its run, nor the other way round. A check and a reversal displace no other label of the action.
    """
    ranked = [(precedence(entry, user), entry) for entry in entries if entry.get("action") == action]
    ranked.sort(key=lambda pair: (pair[0], action is None or pair[1].get("source") not in {CHECK, REVERSAL}))
    return [entry for rank, entry in ranked if rank]


def action_name(entry: Mapping[str, Any], position: int) -> str:
    """Return the name of a decision in labels: its id, or its number in `grace.decisions`, from 1 on."""
    name = entry.get("id")
    return name if isinstance(name, str) and name else str(position + 1)


def named_decisions(trace: ReasoningTrace) -> list[tuple[int, str, DecisionRecord]]:
    """Return the decisions of a trace that can be read, each with its position in `grace.decisions` and its name in labels."""
    entries = (trace.grace or {}).get("decisions")
    places = enumerate(entries if isinstance(entries, list) else ())
    return [(at, action_name(found.data, at), found) for at, entry in places for found in read_decisions([entry])]


def _name(value: object) -> str:
    return person(value) if isinstance(value, str) and not value.startswith("[REDACTED") else ""


def to_bytes(entry: object) -> bytes:
    """Return an entry as JSON, in which half a surrogate pair is an escape."""
    return json.dumps(entry, separators=(",", ":")).encode()


def _take(left: Counter[str], entry: object) -> bool:
    """Return whether an entry is not left among those that are counted; one that is left is taken away."""
    form = _comparable(entry)
    left[form] -= 1
    return left[form] < 0


def _comparable(entry: object) -> str:
    return json.dumps(entry, sort_keys=True)


def _seconds(at: object, otherwise: float) -> float:
    """Return a time in ISO 8601 as seconds since the epoch."""
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return otherwise
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
