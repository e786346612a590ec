"""Figures as plots and tables: runs by day, agent, score, confidence and level; decisions of people; and what judge models cost."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from grace_kp.approvals import ENTITLING, approval_figures
from grace_kp.pages import Rule, histogram, named_bars, span_text, table, timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals import ApprovalFigures
    from grace_kp.confidence import Thresholds
    from grace_kp.store import Catalog, CatalogQuery, Group, RunFigures
    from grace_kp.web._kept import KeptValue
    from grace_kp.web._site import Site


LEVELS = ("silent", "notify", "confirm", "escalate")
SHARE_EDGES = tuple(place / 20 for place in range(21))
ALIKE = 0.5
"""Share of the runs in one bin from which on it is worth a look whether they have one and the same confidence."""
LEAST_ALIKE = 20
"""Runs below which equal confidences say nothing yet."""
LOOKED_AT = 500
"""Runs that are looked at for that: the newest."""
REST = "…"
"""The name under which the catalog sums up agents beyond the first."""


def failure_rate(group: Group) -> float:
    """Return the share of failed runs among those that do not wait for a person, 0 to 1."""
    return group.failed / (group.runs - group.waiting) if group.failed else 0.0


def mean_score(group: Group) -> float:
    """Return the mean value score; 0 without runs."""
    return group.score / group.runs if group.runs else 0.0


def mean_confidence(group: Group) -> float | None:
    """Return the mean confidence of the runs that have one; None if none has."""
    return group.confidence / group.with_confidence if group.with_confidence else None


MOST_BARS = 62


def bars_of(days: Sequence[Group]) -> tuple[str, list[tuple[date, list[Group]]]]:
    """Return the unit of the bars of a period, `day`, `week`, `month` or `year`, and each with its first day and its days.

    Args:
        days: the days of the period, in order.
    """
    dated = [(date.fromisoformat(day.name), day) for day in days]
    bars: list[tuple[date, list[Group]]] = []
    for unit, begin in _UNITS:
        bars = []
        for day, group in dated:
            first = begin(day)
            if not bars or begin(bars[-1][0]) != first:
                # The first bar begins where the period does, so that no day is named that it does not hold.
                bars.append((max(first, dated[0][0]), []))
            bars[-1][1].append(group)
        if len(bars) <= MOST_BARS:
            return unit, bars
    return _UNITS[-1][0], bars


def _week(day: date) -> date:
    return day - timedelta(days=min(day.weekday(), day.toordinal() - 1))


_UNITS: tuple[tuple[str, Callable[[date], date]], ...] = (
    ("day", lambda day: day),
    ("week", _week),
    ("month", lambda day: day.replace(day=1)),
    ("year", lambda day: day.replace(month=1, day=1)),
)


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


def agent_rows(agents: Sequence[Group], period: Mapping[str, str], root: str) -> list[dict[str, Any]]:
    """Return the agents as rows of a table, each with the address of its runs; the rest has none."""
    return [
        {
            "name": group.name,
            "runs": group.runs,
            "failed": group.failed,
            "waiting": group.waiting,
            "failure_rate": failure_rate(group),
            "score": mean_score(group),
            "confidence": mean_confidence(group),
            "address": ""
            if group.name in {"", REST}
            else f"{root}/runs?{urlencode({'agent': group.name, **period}, errors='replace')}",
        }
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
        edges=SHARE_EDGES,
        rules=rules,
        axis="confidence",
        caption="The dotted lines are the thresholds in force here: at or above one, a gated action is at this level or a milder one.",
    )


def score_plot(figures: RunFigures) -> str:
    """Return the distribution of the value score."""
    return histogram(
        "Value score",
        figures.scores,
        edges=SHARE_EDGES,
        axis="value score",
        caption="How much others can learn from a run.",
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


def alike(catalog: Catalog, query: CatalogQuery, figures: RunFigures) -> dict[str, float] | None:
    """Return the confidence that most of the newest runs have; None if fewer than half of them have the same, or for few runs."""
    total = sum(figures.confidence)
    if total < LEAST_ALIKE or max(figures.confidence) < ALIKE * total:
        return None
    page = catalog.find(query, limit=LOOKED_AT)
    found = Counter(round(row.confidence, 3) for row in page.rows if row.confidence is not None)
    if not found:
        return None
    (value, count), of = found.most_common(1)[0], found.total()
    return {"value": value, "share": count / of, "of": of} if of >= LEAST_ALIKE and count >= ALIKE * of else None


WAIT_EDGES = (0.0, 10.0, 60.0, 600.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0)
_WORDS = {
    "responded": "answered",
    "retried": "sent back for a retry",
    "standing": "by a standing approval",
}


def decisions_of(
    site: Site, span: tuple[float, float], *, patience: float | None = None
) -> KeptValue[ApprovalFigures] | None:
    """Return the figures of a period, computed once a minute at most, for all readers; None while they are computed for the first time.

    Args:
        span: begin and end of the period, in seconds since the epoch.
        patience: seconds to wait for the first computation.
    """
    return site.decisions.get(span, site.clock(), lambda: approval_figures(site.tables, *span), patience=patience)


def waits_of(figures: ApprovalFigures) -> dict[str, float] | None:
    """Return `count`, `median`, `most` (nine of ten took no longer) and `longest` of the waits for people, in seconds; None without a decision."""
    if not figures.waits:
        return None
    return {
        "count": len(figures.waits),
        "median": quantile(figures.waits, 0.5),
        "most": quantile(figures.waits, 0.9),
        "longest": figures.waits[-1],
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of some numbers that at least this share of them does not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def outcome_plot(figures: ApprovalFigures) -> str:
    """Return how requests were decided or closed."""
    values = {_WORDS.get(name, name): count for name, count in figures.outcomes.items()}
    return named_bars("How requests were decided", values, kind="decision", unit="requests")


def wait_plot(figures: ApprovalFigures) -> str:
    """Return how long people took as a distribution; the bins are times that people name."""
    edges = (
        [*WAIT_EDGES, max(figures.waits[-1], 2 * WAIT_EDGES[-1])]
        if figures.waits and figures.waits[-1] > WAIT_EDGES[-1]
        else list(WAIT_EDGES)
    )
    places = [bisect_left(figures.waits, edge) for edge in edges[:-1]] + [len(figures.waits)]
    return histogram(
        "Time until people decided",
        [end - begin for begin, end in itertools.pairwise(places)],
        edges=edges,
        labels=["0", *(span_text(edge).replace(" ", "") for edge in edges[1:])],
        unit="decisions",
    )


def approved_share(figures: ApprovalFigures) -> float | None:
    """Return the share of the decisions of people that let the action run; None without decisions."""
    decided = {
        name: figures.outcomes.get(name, 0)
        for name in ("approved", "edited", "rejected", "responded", "skipped", "retried")
    }
    total = sum(decided.values())
    return sum(decided[state.value] for state in ENTITLING) / total if total else None


NO_PRICE = "no price set"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpending:
    """The use of one model."""

    model: str
    calls: int
    tokens: int
    fallbacks: int
    """Runs and gates whose judgement is a fallback, because the model could not be asked or its reply could not be used."""
    price: tuple[float, str] | None
    """Price of a million tokens, with its currency; None where none is set."""

    @property
    def money(self) -> float | None:
        """Cost of the tokens in the currency of the price; None without a price."""
        return None if self.price is None else self.tokens / 1_000_000 * self.price[0]


def spending(
    models: Mapping[str, tuple[int, int, int]], prices: Mapping[str, tuple[float, str]]
) -> tuple[ModelSpending, ...]:
    """Return what each model cost, the one with the most tokens first.

    Args:
        models: calls, tokens and fallbacks by model.
    """
    found = [
        ModelSpending(model=model, calls=calls, tokens=tokens, fallbacks=fallbacks, price=price_of(model, prices))
        for model, (calls, tokens, fallbacks) in models.items()
    ]
    return tuple(sorted(found, key=lambda spent: (-spent.tokens, -spent.calls, spent.model)))


def price_of(model: str, prices: Mapping[str, tuple[float, str]]) -> tuple[float, str] | None:
    """Return the price of a model: by its name, else by the first glob that matches; None if none is set."""
    if model in prices:
        return prices[model]
    return next((price for pattern, price in prices.items() if fnmatchcase(model, pattern)), None)


def sums_by_currency(spent: Sequence[ModelSpending]) -> dict[str, float]:
    """Return the money that was spent in each currency, for the models with a price."""
    sums: dict[str, float] = defaultdict(float)
    for each in spent:
        if each.price is not None and each.money is not None:
            sums[each.price[1]] += each.money
    return dict(sums)


def money_text(amount: float, currency: str) -> str:
    """Return an amount of money: two decimals, and more where it would read 0."""
    return f"{amount:,.2f} {currency}" if amount >= 0.01 or not amount else f"{amount:.2g} {currency}"


def spending_table(spent: Sequence[ModelSpending]) -> str:
    """Return what each model cost as a table."""
    rows = [
        (
            each.model, f"{each.calls:,}", f"{each.tokens:,}", f"{each.fallbacks:,}",
            NO_PRICE if each.price is None else f"{each.price[0]:,.4g} {each.price[1]}",
            NO_PRICE if each.price is None or each.money is None else money_text(each.money, each.price[1]),
        )
        for each in spent
    ]  # fmt: skip
    return table(("model", "calls", "tokens", "fallbacks", "price per million tokens", "money"), rows)
