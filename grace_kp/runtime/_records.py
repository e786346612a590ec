"""A finished document in the form of a store: the columns that a trace is found by, and the document as JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GraceError, is_unit
from grace_kp.levels import UNSETTLED
from grace_kp.record import facts_of, node_of, to_json
from grace_kp.store import Record, moment, scorer_name
from grace_kp.trace import attributes_in, storable

if TYPE_CHECKING:
    from collections.abc import Collection

    from grace_kp.approvals import RequestStore, Tables
    from grace_kp.trace import ReasoningTrace

MAX_SEARCH_TEXT = 20_000
MAX_SCORES = 200
_ATTRIBUTES = frozenset({"tags", "user", "session", "metadata", "parent"})
"""Fields of `grace` that hold attributes."""


def record_of(document: dict[str, Any], *, awaits: Collection[str] = (), completes: bool = False) -> Record:
    """Return a finished document in the form of a store.

    Args:
        document: the trace.
        awaits: the parts that are added to it later.
        completes: whether it is a later version of a record that awaited something.
    """
    metadata = document["metadata"]
    texts = [document["task"]["objective"], document["outcome"]["result_summary"]]
    texts += [step["content"] for step in document["steps"] if "content" in step]
    grace = document.get("grace") or {}
    status = grace.get("status", "completed")
    if thread := facts_of(document).get("thread_id") or node_of(document).get("thread_id"):
        texts.insert(0, str(thread))  # first, because what is too long is cut
    return Record(
        id=storable(document["id"]),
        created_at=_sortable(metadata["created_at"]),
        domain=storable(metadata["task_domain"]),
        score=metadata["quality_score"],
        success=metadata["success"],
        status=storable(status) if isinstance(status, str) else "unknown",
        text=storable("\n".join(texts)[:MAX_SEARCH_TEXT]),
        data=to_json(document),
        scores=_scores_of(document),
        attributes=() if _ATTRIBUTES.isdisjoint(grace) else tuple(attributes_in(document)),
        awaits=tuple(sorted(awaits)),
        completes=completes,
    )


_SORTABLE = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII)
"""What `moment` leaves as it is."""


def _sortable(created_at: str) -> str:
    """Return when a run began, in the form in which stores compare times."""
    if _SORTABLE.fullmatch(created_at):
        return created_at
    try:
        return moment(created_at, "created_at") or created_at
    except ValueError:  # the year 0
        return created_at


def _scores_of(document: dict[str, Any]) -> tuple[tuple[str, float | None, bool | None], ...]:
    """Return the rows of scores. A document from elsewhere may hold anything under the name."""
    entries = (document.get("grace") or {}).get("scores")
    rows = []
    for entry in entries[:MAX_SCORES] if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            score, passed = entry.get("score"), entry.get("passed")
            number = float(score) if is_unit(score) else None
            rows.append((scorer_name(entry["name"]), number, passed if isinstance(passed, bool) else None))
    return tuple(rows)


def with_outcomes(trace: ReasoningTrace, tables: Tables | None) -> ReasoningTrace:
    """Return a run that states under `now` of each `approval` what has become of the request since the run ended.

    These are the approvals of its decisions, and of `pending`: the gate that ended the run, perhaps one of a nested run.

    Args:
        trace: the run.
        tables: the approvals of its store; None for a store without.
    """
    grace = trace.grace or {}
    asked = {name: grace[name] for name in ("decisions", "pending") if name in grace}
    if tables is None or not asked:
        return trace
    from grace_kp.approvals import RequestStore  # only where there are gates

    requests = RequestStore(tables)
    found = {name: _with_outcome(value, requests) for name, value in asked.items()}
    return trace if found == asked else type(trace).model_validate({**trace.to_dict(), "grace": {**grace, **found}})


def _with_outcome(entry: Any, requests: RequestStore) -> Any:
    if isinstance(entry, list):
        return [_with_outcome(each, requests) for each in entry]
    asked = entry.get("approval") if isinstance(entry, dict) and str(entry.get("outcome")) in UNSETTLED else None
    if not isinstance(asked, dict):
        return entry
    try:
        approval = requests.get(asked.get("id", ""))
    except (GraceError, OSError):  # it belongs to another store, or this store cannot be read now
        return entry
    if approval.state == asked.get("state"):
        return entry
    now: dict[str, Any] = {"state": approval.state.value}
    if (decision := approval.decision) is not None:
        at = datetime.fromtimestamp((approval.outcome or approval.claim or decision).at, UTC)
        now |= {"decision": decision.state.value, "by": decision.actor.name, "at": moment(at, "at")}
    return {**entry, "approval": {**asked, "now": now}}
