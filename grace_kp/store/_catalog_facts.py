"""What the index keeps of a run: the values it is found by, what a list shows, and what it adds to the figures.

Documents from elsewhere may hold anything: a value of the wrong type counts as absent, and a document that is no JSON as empty.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from grace_kp.errors import is_unit
from grace_kp.store._record import scorer_name
from grace_kp.trace import PARENT, SESSION, TAG, USER, attributes_in, label, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from grace_kp.store._catalog_source import StoredRun

LEVELS = ("silent", "notify", "confirm", "escalate")
NO_LEVEL = "none"
MAX_SCORES = 200
MAX_OBJECTIVE = 300
_LARGEST = 1 << 53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND - 1
"""Stands for a time that is none, before all others."""
UNNAMED_MODEL = "unknown"

# Kinds of names. The first four are columns of a run as well.
AGENT, DOMAIN, STATUS, LEVEL, TAGGED, OF_USER, OF_SESSION, SCORER, PASSED, FAILED, ANY_SCORER, LABELLED = range(12)
_KIND_OF = {TAG: TAGGED, USER: OF_USER, SESSION: OF_SESSION}


@dataclass(slots=True)
class Facts:
    """What the index keeps of one run."""

    at: int
    """When it began, in milliseconds since 1970."""
    agent: str
    domain: str
    status: str
    level: str
    score: float
    confidence: float | None
    success: bool
    is_root: bool
    marks: set[tuple[int, str]]
    """The names that it is found by, as (kind, name)."""
    shown: list[Any]
    """The fields of `SHOWN`, then judge calls, judge tokens, decisions by level, and judge models."""
    is_readable: bool = True


@dataclass(slots=True)
class _Spent:
    """What judges cost a run."""

    calls: int = 0
    tokens: int = 0
    models: dict[str, list[int]] = field(default_factory=dict)

    def add(self, evaluation: Any) -> None:
        """Add a judgement of the run, or one before a gate: `calls` and `tokens` stand beside it, the model in its parts."""
        if not isinstance(evaluation, dict):
            return
        parts = [evaluation.get(name) for name in ("self_evaluation", "coverage")]
        judged = [part for part in parts if isinstance(part, dict)]
        calls, tokens = whole(evaluation.get("calls")), whole(evaluation.get("tokens"))
        fallback = any(part.get("fallback") is True for part in judged)
        if not (calls or tokens or fallback):
            return
        named = (label(part["model"]) for part in judged if isinstance(part.get("model"), str))
        sums = self.models.setdefault(next(named, UNNAMED_MODEL), [0, 0, 0])
        for place, value in enumerate((calls, tokens, int(fallback))):
            sums[place] += value
        self.calls += calls
        self.tokens += tokens


def facts_of(run: StoredRun, parse: Callable[[bytes], Any]) -> Facts:
    """Return what the index keeps of a stored run."""
    document = _parsed(run.data, parse)
    is_readable = isinstance(document, dict)
    if not is_readable:
        document = {}
    metadata, task, outcome, grace = (_object(document.get(name)) for name in ("metadata", "task", "outcome", "grace"))
    steps, decisions = (_list(part) for part in (document.get("steps"), grace.get("decisions")))
    agent = next((label(name) for name in (grace.get("name"), metadata.get("agent_id")) if isinstance(name, str)), "")
    levels = Counter(
        entry["level"]
        for entry in decisions
        if isinstance(entry, dict) and isinstance(entry.get("level"), str) and entry["level"] in LEVELS
    )
    level = max(levels, key=LEVELS.index) if levels else None
    found: dict[str, list[str]] = {TAG: [], USER: [], SESSION: [], PARENT: []}
    for kind, _, value in attributes_in(document):
        if kind in found:
            found[kind].append(storable(value).replace("\0", " "))
    marks = {
        (AGENT, agent),
        (DOMAIN, run.domain),
        (STATUS, run.status),
        (LEVEL, level or NO_LEVEL),
        *((_KIND_OF[kind], value) for kind in _KIND_OF for value in found[kind]),
        *_scorers(grace.get("scores")),
    }
    spent = _Spent()
    spent.add(grace.get("evaluation"))
    for entry in decisions:
        spent.add(_object(entry).get("evaluation"))
    confidence, score = _confidence(outcome, grace), number_of(run.score) or 0.0
    parent = next(iter(found[PARENT]), None)
    shown = [
        run.created_at, agent, run.domain, run.status, run.success, score, confidence, level,
        _text(task.get("objective"))[:MAX_OBJECTIVE], number_of(grace.get("duration_ms")), len(steps), len(decisions),
        _tokens(_object(grace.get("usage"))), next(iter(found[USER]), None), next(iter(found[SESSION]), None), found[TAG], parent,
        bool(_list(grace.get("awaits"))), spent.calls, spent.tokens, levels, spent.models,
    ]  # fmt: skip
    return Facts(
        at=milliseconds(run.created_at),
        agent=agent,
        domain=run.domain,
        status=run.status,
        level=level or NO_LEVEL,
        score=score,
        confidence=confidence,
        success=run.success,
        is_root=parent is None,
        marks=marks,
        shown=shown,
        is_readable=is_readable,
    )


def milliseconds(created_at: str) -> int:
    """Return a time of a trace in milliseconds since 1970; `EARLIEST` for a text that is no time."""
    try:
        moment = datetime.fromisoformat(created_at)
    except ValueError:
        return EARLIEST
    try:
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    except OverflowError:
        return EARLIEST


def instant(at: int) -> str:
    """Return milliseconds since 1970 in the form of traces."""
    moment = _EPOCH + max(at, EARLIEST + 1) * _MILLISECOND
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def whole(value: object) -> int:
    """Return a whole number from 0 that sums can hold; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else 0


def number_of(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
        return None
    return float(value) if math.isfinite(value) else None


def _parsed(data: bytes, parse: Callable[[bytes], Any]) -> Any:
    try:
        return parse(data)
    except (ValueError, RecursionError):  # orjson is stricter: it refuses half a surrogate pair and NaN
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _confidence(outcome: Mapping[str, Any], grace: Mapping[str, Any]) -> float | None:
    value = outcome.get("confidence")
    if not is_unit(value):
        return None
    # A recorded run without a computed confidence holds this figure until it has one.
    is_placeholder = value == 0.5 and "status" in grace and not isinstance(grace.get("confidence"), dict)
    return None if is_placeholder else float(value)


def _tokens(usage: Mapping[str, Any]) -> int:
    return whole(usage.get("total_tokens")) or whole(usage.get("input_tokens")) + whole(usage.get("output_tokens"))


def _scorers(entries: Any) -> Iterator[tuple[int, str]]:
    for entry in _list(entries)[:MAX_SCORES]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        name, passed = scorer_name(entry["name"]), entry.get("passed")
        yield SCORER, name
        if isinstance(passed, bool):
            yield (PASSED if passed else FAILED), name
            yield ANY_SCORER, str(passed)


def _text(value: object) -> str:
    return storable(value).replace("\0", " ") if isinstance(value, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
