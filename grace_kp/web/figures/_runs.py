"""Figures of runs as plots and tables: how many, how they ended, how sure they were, what they scored, and at which level their gates were."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from grace_kp.pages import Rule, histogram, named_bars, timeline
from grace_kp.web.figures._period import bars_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.confidence import Thresholds
    from grace_kp.store import Catalog, CatalogQuery, Group, RunFigures

LEVELS = ("silent", "notify", "confirm", "escalate")
EDGES = tuple(place / 20 for place in range(21))
ALIKE = 0.5
"""Share of the runs in one bin from which on it is worth a look whether they have one and the same confidence."""
LEAST_ALIKE = 20
"""Runs below which equal confidences say nothing yet."""
LOOKED_AT = 500
"""Runs that are looked at for that: the newest."""
REST = "…"
"""The name under which the catalog sums up agents beyond the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One agent of the table, with the address of its runs; without one for the rest."""

    name: str
    runs: int
    failed: int
    waiting: int
    failure_rate: float
    score: float
    confidence: float | None
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """One confidence that many runs have."""

    value: float
    share: float
    of: int


def failure_rate(group: Group) -> float:
    """Return the share of failed runs among those that do not wait for a person, 0 to 1."""
    return group.failed / (group.runs - group.waiting) if group.failed else 0.0


def mean_score(group: Group) -> float:
    """Return the mean value score; 0 without runs."""
    return group.score / group.runs if group.runs else 0.0


def mean_confidence(group: Group) -> float | None:
    """Return the mean confidence of the runs that have one; None if none has."""
    return group.confidence / group.with_confidence if group.with_confidence else None


def run_bars(days: Sequence[Group]) -> str:
    """Return runs over time by how they ended."""
    unit, bars = bars_of(days)
    return timeline(
        f"Runs per {unit}",
        [first for first, _ in bars],
        {
            "succeeded": [sum(day.runs - day.failed - day.waiting for day in group) for _, group in bars],
            "failed": [sum(day.failed for day in group) for _, group in bars],
        },
        unit=unit,
        caption=f"Days are in UTC.{' Waiting runs are left out.' if any(day.waiting for day in days) else ''}",
    )


def agent_rows(agents: Sequence[Group], period: Mapping[str, str], root: str) -> list[AgentRow]:
    """Return the agents as rows of a table.

    Args:
        agents: their sums.
        period: `since` and `until` as parameters of the list of runs.
        root: path of the application.
    """
    return [
        AgentRow(
            name=group.name,
            runs=group.runs,
            failed=group.failed,
            waiting=group.waiting,
            failure_rate=failure_rate(group),
            score=mean_score(group),
            confidence=mean_confidence(group),
            address=""
            if group.name in {"", REST}
            else f"{root}/runs?{urlencode({'agent': group.name, **period}, errors='replace')}",
        )
        for group in agents
    ]


def confidence_plot(figures: RunFigures, thresholds: Thresholds) -> str:
    """Return the distribution of the confidence, with the thresholds in force."""
    rules = [
        Rule(value, f"{level} {value:g}") for level in LEVELS[:3] if (value := getattr(thresholds, level)) != math.inf
    ]
    return histogram(
        "Confidence",
        figures.confidence,
        edges=EDGES,
        rules=rules,
        axis="confidence",
        caption="The dotted lines are the thresholds in force here: at or above one, a gated action is at this level or a milder one.",
    )


def score_plot(figures: RunFigures) -> str:
    """Return the distribution of the value score."""
    return histogram(
        "Value score", figures.scores, edges=EDGES, axis="value score", caption="How much others can learn from a run."
    )


def level_plot(figures: RunFigures) -> str:
    """Return how many gates decided at each level."""
    values = {level: figures.levels.get(level, 0) for level in LEVELS}
    return named_bars(
        "Gates by level",
        values,
        kind="level",
        unit="gates",
        caption="Levels that the gates of these runs chose, before anybody was asked.",
    )


def alike(catalog: Catalog, query: CatalogQuery, figures: RunFigures) -> Alike | None:
    """Return the confidence that most of the newest runs have; None if fewer than half of them have the same, or for few runs."""
    total = sum(figures.confidence)
    if total < LEAST_ALIKE or max(figures.confidence) < ALIKE * total:
        return None
    page = catalog.find(query, limit=LOOKED_AT)
    found = Counter(round(row.confidence, 3) for row in page.rows if row.confidence is not None)
    if not found:
        return None
    (value, count), of = found.most_common(1)[0], found.total()
    return Alike(value=value, share=count / of, of=of) if of >= LEAST_ALIKE and count >= ALIKE * of else None
