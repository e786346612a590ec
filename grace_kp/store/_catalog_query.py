"""Conditions on runs, and the SQL that finds them in an index: which table is walked, and what each of its rows must meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.store._catalog_facts import (
    AGENT,
    ANY_SCORER,
    DOMAIN,
    FAILED,
    LABELLED,
    LEVEL,
    OF_SESSION,
    OF_USER,
    PASSED,
    SCORER,
    STATUS,
    TAGGED,
    milliseconds,
)
from grace_kp.store._catalog_schema import SHIFT
from grace_kp.store._query import moment, searchable
from grace_kp.store._record import scorer_name
from grace_kp.trace import label

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

_COLUMNS = {AGENT: "agent", DOMAIN: "domain", STATUS: "status", LEVEL: "level"}
COLUMN_ADVANTAGE = 8
"""How many rows of `runs` are compared in the time in which a row of `marks` is looked up there. It counts where other conditions have to be
met as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogQuery:
    """Conditions on runs; None or empty means any."""

    agent: str | None = None
    """Name of the agent or run (`trace.name`); without one, its `metadata.agent_id`; else empty."""
    domain: str | None = None
    status: str | None = None
    level: str | None = None
    """Strictest level of the gates of the run: `silent`, `notify`, `confirm`, `escalate`; `none` for runs without a gate."""
    min_score: float | None = None
    max_score: float | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None
    scorer: str | None = None
    scorer_passed: bool | None = None
    tags: Sequence[str] = ()
    user: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None
    """Times as `Query` takes them."""
    text: str | None = None
    """A text that the run contains, whatever its case; any number of characters from 1."""
    feedback: bool | None = None
    roots: bool = False
    """Only runs that are nested in no other."""


@dataclass(slots=True)
class Plan:
    """A plan for answering a query."""

    driver: int | None
    """The name whose marks are walked; None to walk all runs."""
    driver_runs: int
    """Number of rows that are walked."""
    conditions: list[str] = field(default_factory=list)
    """On `runs`, under the name `r`."""
    values: list[Any] = field(default_factory=list)
    lowest: int | None = None
    """The first position that can match."""
    beyond: int | None = None
    """The first position after those that can match."""
    text: str | None = None
    """Case-folded."""


def plan_of(query: CatalogQuery, connection: sqlite3.Connection) -> Plan | None:
    """Return how to answer a query from an index; None if no run can match.

    Raises:
        ValueError: a time cannot be read.
    """
    facts = dict(connection.execute("SELECT name, value FROM facts WHERE name IN ('runs', 'latest')"))
    plan = Plan(driver=None, driver_runs=facts["runs"], text=searchable(query.text) if query.text else None)
    names: list[tuple[int, int, int]] = []
    for kind, name in _names(query):
        row = connection.execute("SELECT value, runs FROM names WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        if row is None or row[1] <= 0:
            return None
        names.append((kind, *row))
    _compare(plan, query)
    is_only = len(names) == 1 and not plan.conditions and plan.text is None
    advantage = 1 if is_only else COLUMN_ADVANTAGE
    drivers = [
        (runs, value) for kind, value, runs in names if kind not in _COLUMNS or runs * advantage < plan.driver_runs
    ]
    if drivers:
        plan.driver_runs, plan.driver = min(drivers)
    for kind, value, _ in names:
        if kind in _COLUMNS:
            plan.conditions.append(f"r.{_COLUMNS[kind]} = ?")
            plan.values.append(value)
        elif value != plan.driver:
            plan.conditions.append("EXISTS (SELECT 1 FROM marks WHERE value = ? AND marks.position = r.position)")
            plan.values.append(value)
    _limit(plan, query, facts["latest"])
    return plan


def _names(query: CatalogQuery) -> Iterator[tuple[int, str]]:
    """Yield the names that a run must have."""
    for kind, name in (
        (AGENT, query.agent), (DOMAIN, query.domain), (STATUS, query.status), (LEVEL, query.level),
        (OF_USER, query.user), (OF_SESSION, query.session),
    ):  # fmt: skip
        if name is not None:
            yield kind, label(name) if kind in {AGENT, OF_USER, OF_SESSION} else scorer_name(name)
    for tag in dict.fromkeys(query.tags):
        yield TAGGED, label(tag)
    if query.scorer is not None:
        kind = SCORER if query.scorer_passed is None else PASSED if query.scorer_passed else FAILED
        yield kind, scorer_name(query.scorer)
    elif query.scorer_passed is not None:
        yield ANY_SCORER, str(query.scorer_passed)
    if query.feedback:
        yield LABELLED, ""


def _compare(plan: Plan, query: CatalogQuery) -> None:
    for condition, value in (
        ("r.score >= ?", query.min_score), ("r.score <= ?", query.max_score),
        ("r.confidence >= ?", query.min_confidence), ("r.confidence <= ?", query.max_confidence),
    ):  # fmt: skip
        if value is not None:
            plan.conditions.append(condition)
            plan.values.append(float(value))
    if query.feedback is False:
        plan.conditions.append("r.feedback = 0")
    if query.roots:
        plan.conditions.append("r.root = 1")


def _limit(plan: Plan, query: CatalogQuery, latest: int) -> None:
    """Turn times into positions; where runs stand later than they began, compare the times as well."""
    since, until = moment(query.since, "since"), moment(query.until, "until")
    if since is not None:
        plan.lowest = milliseconds(since) << SHIFT
    if until is not None:
        plan.beyond = (milliseconds(until) + latest + 1) << SHIFT
    for text, compare in ((since, ">="), (until, "<=")):
        if text is not None and latest:
            plan.conditions.append(f"(r.position >> {SHIFT}) - r.late {compare} ?")
            plan.values.append(milliseconds(text))
