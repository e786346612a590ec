"""Figures of the runs of a period: sums by day and agent that the index keeps, so that nothing is counted when somebody looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from grace_kp.levels import waits
from grace_kp.store._catalog_facts import AGENT, LEVELS, milliseconds
from grace_kp.store._catalog_rows import SHOWN
from grace_kp.store._catalog_schema import BINS, HISTOGRAMS, SUMS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

DAY_MS = 86_400_000
MOST_AGENTS = 50
MOST_DAYS = 3_660
REST = "…"
BILLION = 1_000_000_000
EVERYBODY = 0
"""The agent whose rows hold the sums over all."""
BY_STATUS, BY_LEVEL, BY_MODEL = range(3)
_COLUMNS = (*SUMS, *HISTOGRAMS)
_EPOCH = date(1970, 1, 1)


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
    models: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """By judge model: calls, tokens, fallbacks."""


class Contributions:
    """Changes of the figures by added and removed runs, collected for one transaction."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], list[int]] = {}
        self._tallies: dict[tuple[int, int, int, str], list[int]] = {}
        self._lessened: set[tuple[int, int]] = set()

    def add(self, shown: Sequence[Any], agent: int, times: int = 1) -> None:
        """Add a run, or with `times` -1 take it away.

        Args:
            shown: what the index keeps of it, as `Facts.shown`.
            agent: the number of its agent.
            times: 1 or -1.
        """
        run = dict(zip(SHOWN, shown, strict=False))
        calls, tokens, levels, models = shown[len(SHOWN) :]
        day = milliseconds(run["created_at"]) // DAY_MS
        score, confidence, is_waiting = _clamped(run["score"]), run["confidence"], waits(run["status"])
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

    def write(self, connection: sqlite3.Connection) -> None:
        """Bring the collected sums into the tables, in the caller's transaction."""
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


def read_figures(connection: sqlite3.Connection, since: str, until: str, agent: str | None) -> RunFigures:
    """Return the figures of the runs that began on these days.

    Args:
        connection: the index.
        since: the first day, such as `2026-11-01`.
        until: the last day.
        agent: only runs of this agent.

    Raises:
        ValueError: a day is no date.
    """
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
    counted: dict[int, dict[str, tuple[int, int, int]]] = {BY_STATUS: {}, BY_LEVEL: {}, BY_MODEL: {}}
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
        models=counted[BY_MODEL],
    )


def _shown_days(first: int, last: int, found: Collection[int]) -> range:
    """Return the days of a period; of a very long one those from the first with runs to the last, and no more than fit."""
    if last - first >= MOST_DAYS:
        last = min(last, max(found, default=first))
        first = max(first, min(found, default=last), last - MOST_DAYS + 1)
    return range(first, last + 1)


def _agents(connection: sqlite3.Connection, first: int, last: int, only: int | None) -> tuple[Group, ...]:
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
        return (date.fromisoformat(text) - _EPOCH).days
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be a day like 2026-11-25, not {text!r:.60}") from None


def _name(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def _clamped(score: float) -> float:
    return min(1.0, max(0.0, score))


def _bin(value: float) -> int:
    return min(BINS - 1, int(value * BINS))
