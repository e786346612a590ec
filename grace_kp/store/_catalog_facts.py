"""Facts that the index keeps of a run: the values to find it by, the fields of lists, and its share of the figures.

Documents from elsewhere may hold anything: a value of the wrong type counts as absent, and a document that is not JSON as empty.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from grace_kp.errors import is_unit
from grace_kp.levels import waits
from grace_kp.store._record import scorer_name
from grace_kp.trace import PARENT, SESSION, TAG, USER, attributes_in, label, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from grace_kp.store._database import Connection


LEVELS = ("silent", "notify", "confirm", "escalate")
ALARMS = ("beside", "nowhere", "repeat")
NO_LEVEL = "none"
MAX_SCORES = 200
MAX_OBJECTIVE = 300
_LARGEST = 1 << 53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND - 1
"""The value for a time that cannot be read. It sorts before all others."""
UNNAMED_MODEL = "unknown"
SHOWN = (
    "created_at", "agent", "domain", "status", "success", "score", "confidence", "level", "objective", "duration_ms", "steps", "gates",
    "tokens", "user", "session", "tags", "parent", "awaits",
)  # fmt: skip
"""The fields that the index keeps in one JSON list, in this order, before what only figures need."""
BINS = 20
SUMS = ("runs", "failed", "score", "confidence", "with_confidence", "tokens", "judge_calls", "judge_tokens", "waiting")
"""Columns of `rollups`. Scores and confidences are summed in whole billionths, so that subtracting a run leaves nothing of it."""
HISTOGRAMS = (*(f"c{number}" for number in range(BINS)), *(f"s{number}" for number in range(BINS)))
"""Columns of `rollups`: runs by confidence and by score."""

# Kinds of names. The first four are columns of a run as well.
AGENT, DOMAIN, STATUS, LEVEL, TAGGED, OF_USER, OF_SESSION, SCORER, PASSED, FAILED, ANY_SCORER, LABELLED = range(12)
_KIND_OF = {TAG: TAGGED, USER: OF_USER, SESSION: OF_SESSION}

# Figures.
DAY_MS = 86_400_000
MOST_AGENTS = 50
MOST_DAYS = 3_660
REST = "…"
BILLION = 1_000_000_000
EVERYBODY = 0
"""The agent whose rows hold the sums over all."""
BY_STATUS, BY_LEVEL, BY_MODEL, BY_ALARM = range(4)
_COLUMNS = (*SUMS, *HISTOGRAMS)


class StoredRun(NamedTuple):
    """A run as a store holds it. The text is case-folded."""

    number: int
    id: str
    created_at: str
    domain: str
    score: float
    success: bool
    status: str
    text: str
    data: bytes


class RunFacts(NamedTuple):
    marks: set[tuple[int, str]]
    """The names that it is found by, as (kind, name)."""
    shown: list[Any]
    """The fields of `SHOWN`, then judge calls, judge tokens, decisions by level, judge models, and decisions by alarm."""
    is_readable: bool


def _sum_judgements(evaluations: Iterable[Any]) -> dict[str, list[int]]:
    """Return calls, tokens and fallbacks by model. An evaluation holds `calls` and `tokens`; its parts name the model."""
    models: dict[str, list[int]] = {}
    for evaluation in map(_object, evaluations):
        judged = [part for name in ("self_evaluation", "coverage") if (part := _object(evaluation.get(name)))]
        fallback = any(part.get("fallback") is True for part in judged)
        spent = (whole(evaluation.get("calls")), whole(evaluation.get("tokens")), int(fallback))
        if any(spent):
            named = (label(part["model"]) for part in judged if isinstance(part.get("model"), str))
            sums = models.setdefault(next(named, UNNAMED_MODEL), [0, 0, 0])
            sums[:] = [known + value for known, value in zip(sums, spent, strict=True)]
    return models


def facts_of(run: StoredRun, parse: Callable[[bytes], Any]) -> RunFacts:
    document = _read_document(run.data, parse)
    is_readable = isinstance(document, dict)
    if not is_readable:
        document = {}
    metadata, task, outcome, grace = (_object(document.get(name)) for name in ("metadata", "task", "outcome", "grace"))
    steps, decisions = (_list(part) for part in (document.get("steps"), grace.get("decisions")))
    agent = next((label(name) for name in (grace.get("name"), metadata.get("agent_id")) if isinstance(name, str)), "")
    levels = Counter(level for entry in decisions if (level := _object(entry).get("level")) in LEVELS)
    stated = [[_object(each).get("name") for each in _list(_object(entry).get("alarms"))] for entry in decisions]
    alarms = Counter(name for names in stated for name in ALARMS if name in names)
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
    models = _sum_judgements([grace.get("evaluation"), *(_object(entry).get("evaluation") for entry in decisions)])
    calls, tokens = (sum(sums[place] for sums in models.values()) for place in (0, 1))
    confidence, score = _confidence(outcome, grace), number_of(run.score) or 0.0
    parent = next(iter(found[PARENT]), None)
    shown = [
        run.created_at, agent, run.domain, run.status, bool(run.success), score, confidence, level,
        _text(task.get("objective"))[:MAX_OBJECTIVE], number_of(grace.get("duration_ms")), len(steps), len(decisions),
        _tokens(_object(grace.get("usage"))), next(iter(found[USER]), None), next(iter(found[SESSION]), None), found[TAG], parent,
        bool(_list(grace.get("awaits"))), calls, tokens, levels, models, alarms,
    ]  # fmt: skip
    return RunFacts(marks, shown, is_readable)


def milliseconds(created_at: str) -> int:
    """Return a time of a trace in milliseconds since 1970; `EARLIEST` if it cannot be read."""
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


def _read_document(data: bytes, parse: Callable[[bytes], Any]) -> Any:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Sums over runs of one agent or one day."""

    name: str
    """The agent, or the day as `2026-11-25`."""
    runs: int = 0
    failed: int = 0
    """Runs without success. Those that wait for a person are not among them."""
    score: float = 0.0
    """Sum of the value scores."""
    confidence: float = 0.0
    """Sum over the runs that have a confidence."""
    with_confidence: int = 0
    tokens: int = 0
    judge_calls: int = 0
    judge_tokens: int = 0
    waiting: int = 0
    """Runs that wait for a person, or ended at a gate whose request was pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """Figures of the runs of a period."""

    total: Group
    agents: tuple[Group, ...] = ()
    """By number of runs, largest first; at most 50, the rest under the name `…`."""
    days: tuple[Group, ...] = ()
    """In order; days without runs are included. At most 3,660, the newest."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    confidence: tuple[int, ...] = ()
    """Numbers of runs in 20 equal bins of the confidence, from 0 to 1."""
    scores: tuple[int, ...] = ()
    """The same for the value score."""
    levels: Mapping[str, int] = field(default_factory=dict)
    """Number of gate decisions at each level."""
    alarms: Mapping[str, int] = field(default_factory=dict)
    """Number of gate decisions with each alarm about arguments."""
    models: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """By judge model: calls, tokens, fallbacks."""


class Contributions:
    """Changes of the figures by added and removed runs, collected for one transaction."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], list[int]] = {}
        self._tallies: dict[tuple[int, int, int, str], list[int]] = {}
        self._lessened: set[tuple[int, int]] = set()

    def add(self, shown: Sequence[Any], agent: int, times: int = 1) -> None:
        """Add a run, or with `times` -1 take it away."""
        run = dict(zip(SHOWN, shown, strict=False))
        calls, tokens, levels, models, alarms = shown[len(SHOWN) :]
        day = milliseconds(run["created_at"]) // DAY_MS
        score, confidence, is_waiting = min(1.0, max(0.0, run["score"])), run["confidence"], waits(run["status"])
        sums = [0] * len(_COLUMNS)
        sums[: len(SUMS)] = (
            times, 0 if run["success"] or is_waiting else times, times * round(score * BILLION), times * round((confidence or 0.0) * BILLION),
            0 if confidence is None else times, times * run["tokens"], times * calls, times * tokens,
            times if is_waiting else 0,
        )  # fmt: skip
        sums[len(SUMS) + BINS + _bin(score)] += times
        if confidence is not None:
            sums[len(SUMS) + _bin(confidence)] += times
        tallies = [(BY_STATUS, run["status"], (times, 0, 0))]
        tallies += [(BY_LEVEL, name, (times * count, 0, 0)) for name, count in levels.items()]
        tallies += [(BY_ALARM, name, (times * count, 0, 0)) for name, count in alarms.items()]
        tallies += [(BY_MODEL, name, tuple(times * count for count in counts)) for name, counts in models.items()]
        for owner in (EVERYBODY, agent):
            if times < 0:
                self._lessened.add((owner, day))
            known = self._sums.get((owner, day))
            self._sums[owner, day] = sums if known is None else [a + b for a, b in zip(known, sums, strict=True)]
            for kind, name, counts in tallies:
                total = self._tallies.setdefault((owner, day, kind, name), [0, 0, 0])
                for place in range(3):
                    total[place] += counts[place]

    def write(self, connection: Connection) -> None:
        connection.executemany(
            _upsert("rollups", ("agent", "day"), _COLUMNS), [(*k, *v) for k, v in self._sums.items()]
        )
        connection.executemany(
            _upsert("tallies", ("agent", "day", "kind", "name"), ("runs", "tokens", "fallbacks")),
            [(*k, *v) for k, v in self._tallies.items()],
        )
        connection.executemany("DELETE FROM rollups WHERE agent = ? AND day = ? AND runs = 0", self._lessened)
        empty = "DELETE FROM tallies WHERE agent = ? AND day = ? AND runs = 0 AND tokens = 0 AND fallbacks = 0"
        connection.executemany(empty, self._lessened)


def _upsert(table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in columns)
    places = ", ".join("?" * (len(keys) + len(columns)))
    return f"INSERT INTO {table} VALUES ({places}) ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {added}"  # noqa: S608


def read_figures(connection: Connection, since: str, until: str, agent: str | None) -> RunFigures:
    """Return the figures of the runs that began on these days, from `since` to `until`, such as `2026-11-01`."""
    first, last = _day(since, "since"), _day(until, "until")
    if agent is None:
        owner = EVERYBODY
    else:
        row = connection.execute("SELECT value FROM names WHERE kind = ? AND name = ?", (AGENT, agent)).fetchone()
        owner = -1 if row is None else int(row[0])
    period = (owner, first, last)
    of_days = {
        day: sums
        for day, *sums in connection.execute(
            f"SELECT day, {', '.join(_COLUMNS)} FROM rollups WHERE agent = ? AND day BETWEEN ? AND ?",  # noqa: S608
            period,
        )
    }
    sums = [sum(column) for column in zip(*of_days.values(), strict=True)] or [0] * len(_COLUMNS)
    counted: dict[int, dict[str, tuple[int, int, int]]] = {BY_STATUS: {}, BY_LEVEL: {}, BY_MODEL: {}, BY_ALARM: {}}
    for kind, name, *counts in connection.execute(
        "SELECT kind, name, SUM(runs), SUM(tokens), SUM(fallbacks) FROM tallies WHERE agent = ? AND day BETWEEN ? AND ?"
        " GROUP BY kind, name ORDER BY SUM(runs) DESC, name",
        period,
    ):
        counted[kind][name] = tuple(counts)
    histograms = sums[len(SUMS) :]
    return RunFigures(
        total=_group(agent or "", sums),
        agents=_agents(connection, first, last, None if agent is None else owner),
        days=tuple(_group(_name(day), of_days.get(day, [0] * len(SUMS))) for day in _shown_days(first, last, of_days)),
        statuses={name: counts[0] for name, counts in counted[BY_STATUS].items()},
        confidence=tuple(histograms[:BINS]),
        scores=tuple(histograms[BINS:]),
        levels={name: counted[BY_LEVEL].get(name, (0,))[0] for name in LEVELS},
        alarms={name: counts[0] for name, counts in counted[BY_ALARM].items()},
        models=counted[BY_MODEL],
    )


def _shown_days(first: int, last: int, found: Collection[int]) -> range:
    """Return the days of a period. A very long one is cut to its first and last day with runs, and to the newest `MOST_DAYS`."""
    if last - first >= MOST_DAYS:
        last = min(last, max(found, default=first))
        first = max(first, min(found, default=last), last - MOST_DAYS + 1)
    return range(first, last + 1)


def _agents(connection: Connection, first: int, last: int, only: int | None) -> tuple[Group, ...]:
    chosen = f"agent > {EVERYBODY}" if only is None else f"agent = {only}"
    rows = connection.execute(
        f"SELECT name, {', '.join(f'total_{name}' for name in SUMS)} FROM (SELECT agent,"  # noqa: S608
        f" {', '.join(f'SUM({name}) AS total_{name}' for name in SUMS)} FROM rollups WHERE {chosen} AND day BETWEEN ? AND ?"
        " GROUP BY agent) JOIN names ON value = agent ORDER BY total_runs DESC, name",
        (first, last),
    ).fetchall()
    groups = [_group(name, sums) for name, *sums in rows[:MOST_AGENTS]]
    if len(rows) > MOST_AGENTS:
        rest = [sum(column) for column in zip(*(sums for _, *sums in rows[MOST_AGENTS:]), strict=True)]
        groups.append(_group(REST, rest))
    return tuple(groups)


def _group(name: str, sums: Sequence[int]) -> Group:
    values: dict[str, Any] = dict(zip(SUMS, sums, strict=False))
    values["score"] /= BILLION
    values["confidence"] /= BILLION
    return Group(name=name, **values)


def _day(text: str, name: str) -> int:
    try:
        return (date.fromisoformat(text) - _EPOCH.date()).days
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be a day like 2026-11-25, not {text!r:.60}") from None


def _name(day: int) -> str:
    return (_EPOCH.date() + timedelta(days=day)).isoformat()


def _bin(value: float) -> int:
    return min(BINS - 1, int(value * BINS))
