"""A finished document as a store keeps it: the columns that a trace is found by, and the document itself as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.errors import is_unit
from grace_kp.record import facts_of, to_json
from grace_kp.trace import attributes_in, storable

if TYPE_CHECKING:
    from grace_kp.store import Record

MAX_SEARCH_TEXT = 20_000
MAX_SCORES = 200


def record_of(document: dict[str, Any]) -> Record:
    """A finished document as a store keeps it."""
    from grace_kp.store import Record

    metadata = document["metadata"]
    texts = [document["task"]["objective"], document["outcome"]["result_summary"]]
    texts += [step["content"] for step in document["steps"] if "content" in step]
    grace = document.get("grace") or {}
    status, thread = grace.get("status", "completed"), facts_of(document).get("thread_id")
    if thread:
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
        attributes=tuple(attributes_in(document)),
    )


def _sortable(created_at: str) -> str:
    """When a run began, in the one form that texts of instants are compared in."""
    from grace_kp.store import moment

    try:
        return moment(created_at, "created_at") or created_at
    except ValueError:  # the year 0
        return created_at


def _scores_of(document: dict[str, Any]) -> tuple[tuple[str, float | None, bool | None], ...]:
    """What scorers said, to be found by; a document from elsewhere may hold anything under the name."""
    from grace_kp.store import scorer_name

    said = (document.get("grace") or {}).get("scores")
    found = []
    for one in said[:MAX_SCORES] if isinstance(said, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            score, passed = one.get("score"), one.get("passed")
            number = None
            if is_unit(score):
                number = float(score)
            found.append((scorer_name(one["name"]), number, passed if isinstance(passed, bool) else None))
    return tuple(found)
