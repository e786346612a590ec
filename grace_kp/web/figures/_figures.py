"""The page of figures for the period and agent of an address.

It shows runs by day, agent, score, confidence and level; decisions of people; what judge models cost; and evidence about the confidence (`_trust`).
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from pydantic import Field

from grace_kp.approvals import ENTITLING, ApprovalState, RowQuery, approval_figures
from grace_kp.pages import Rule, histogram, named_bars, span_text, table, timeline
from grace_kp.store import CatalogQuery
from grace_kp.web._parameter import UNSTATED, Day, Parameters, Text
from grace_kp.web._site import recording_lines, root_of, site_of, trust_html
from grace_kp.web.figures._trust import LEVELS, threshold_values, trust_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import ApprovalFigures
    from grace_kp.confidence import Thresholds
    from grace_kp.store import Group, RunFigures
    from grace_kp.web._site import CachedValue, Site


ALL = "all"
ALARM_WORDS = {"beside": "beside instructions", "nowhere": "from no known source", "repeat": "repeated"}
PRESETS = ("7", "30", "90", "365", ALL)
USUAL = "30"
LONGEST = 20 * 366
"""Days of a period at most."""
MOST_NAMES = 200


class FigureParameters(Parameters):
    """The period and agent of figures."""

    agent: Text = Field(UNSTATED, examples=["refunds"])
    """Name of the agent or run."""
    since: Day = Field(UNSTATED, examples=["2026-10-01"])
    """First day (UTC)."""
    until: Day = Field(UNSTATED, examples=["2026-10-31"])
    """Last day (UTC)."""


class _PageParameters(FigureParameters):
    days: Literal["7", "30", "90", "365", "all"] = UNSTATED


_FIELDS = {"agent": "Agent", "days": "Days", "since": "First day", "until": "Last day"}
"""The parameters by the names of their fields on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The period and agent of an address, without unusable values. Days are in UTC, and both are included."""

    since: date
    until: date
    preset: str = ""
    """The preset that was asked for; empty where the days were stated."""
    agent: str | None
    problems: Mapping[str, str]
    """Problems by parameter."""

    @property
    def seconds(self) -> tuple[float, float]:
        """The beginning of the first day and the end of the last, in seconds since the epoch."""
        begin = datetime(self.since.year, self.since.month, self.since.day, tzinfo=UTC)
        return begin.timestamp(), (begin + timedelta(days=self.days)).timestamp()

    @property
    def days(self) -> int:
        return (self.until - self.since).days + 1

    @property
    def conditions(self) -> dict[str, Any]:
        """The period and the agent as parameters of the list of runs."""
        agent = {} if self.agent is None else {"agent": self.agent}
        return {**agent, "since": self.since.isoformat(), "until": f"{self.until}T23:59:59.999Z"}


def read_period(params: QueryParams, today: date, oldest: Callable[[], date]) -> Period:
    """Return the period and the agent that an address asks for.

    Args:
        params: `request.query_params`. A parameter that cannot be used is left out, with a problem. Stated days come before a preset.
        today: the current day in UTC.
        oldest: returns the day of the oldest run; called for the preset `all` only.
    """
    values, problems = _PageParameters.read(
        [(name, value) for name, value in params.multi_items() if value and name in _FIELDS]
    )
    until: date = values.get("until", today)
    preset = "" if values.keys() & {"since", "until"} else values.get("days", USUAL)
    if until > today:
        problems["until"] = f"must be {today} (today in UTC) or earlier, not {until}"
        until = today
    if "since" in values:
        since = values["since"]
    elif preset == ALL:
        since = min(oldest(), today)
    else:
        since = until - timedelta(days=min(int(preset or USUAL), until.toordinal()) - 1)
    if since > until:
        problems["since"] = f"must not be after until: {since} is after {until}"
        since, until, preset = today - timedelta(days=int(USUAL) - 1), today, USUAL
    first = until - timedelta(days=min(LONGEST, until.toordinal()) - 1)
    if since < first:
        problems["since"] = f"must be {first} or later: a period has at most {LONGEST:,} days"
        since = first
    return Period(since=since, until=until, preset=preset, agent=values.get("agent"), problems=problems)


def figures_page(request: Request) -> Response:
    """Show the figures of the period and agent of an address."""
    site, root = site_of(request), root_of(request)
    now = site.clock()
    asked = read_period(request.query_params, datetime.fromtimestamp(now, UTC).date(), lambda: _oldest_day(site))
    conditions = asked.conditions
    labelled = CatalogQuery(**conditions, feedback=True)
    figures = site.catalog.figures(conditions["since"], asked.until.isoformat(), agent=asked.agent)
    trusted = site.figures.get(labelled, now, lambda: trust_values(site, labelled))
    known = {} if trusted is None else trusted.value or {}
    agents = [name for name in site.catalog.names("agent", limit=MOST_NAMES) if name]
    shown = f"The figures are of {asked.since} to {asked.until}."
    return site.page(
        request,
        "figures/figures.html",
        asked=asked,
        notes=[f"{_FIELDS[name]} {problem}. {shown}" for name, problem in asked.problems.items()],
        presets=PRESETS,
        agents=agents if asked.agent in [None, *agents] else [asked.agent, *agents],
        progress=site.catalog.progress(),
        record=recording_lines(site.grace.settings.store),
        runs_address=f"{root}/runs?{urlencode(conditions, errors='replace')}",
        trusted=trusted,
        **run_values(site, figures, conditions, root),
        **approval_values(site, asked.seconds),
        **spending_values(figures.models, site.grace.settings.prices),
        **threshold_values(site.grace, known.get("labelled", {})),
        **known,
    )


def _oldest_day(site: Site) -> date:
    rows = site.catalog.find(CatalogQuery(), after=0, limit=1).rows
    if not rows:
        return datetime.fromtimestamp(site.clock(), UTC).date()
    return date.fromisoformat(rows[0].created_at[:10])


SHARE_EDGES = tuple(place / 20 for place in range(21))
ALIKE = 0.5
"""Smallest share of the runs in one bin that suggests a constant confidence."""
LEAST_ALIKE = 20
"""With fewer runs, equal confidences may be a coincidence."""
LOOKED_AT = 500
"""Newest runs that are checked for a constant confidence."""
REST = "…"
"""The name under which the catalog sums up agents beyond the first."""
MOST_BARS = 62


def run_values(site: Site, figures: RunFigures, conditions: Mapping[str, Any], root: str) -> dict[str, Any]:
    thresholds = site.grace.thresholds
    period = {name: conditions[name] for name in ("since", "until")}
    return {
        "total": figures.total,
        "means": means_of(figures.total),
        "statuses": figures.statuses,
        "run_bars": trust_html(run_bars(figures.days)),
        "agent_rows": [
            {
                "group": group,
                "means": means_of(group),
                "address": f"{root}/runs?{urlencode({'agent': group.name, **period}, errors='replace')}",
                "is_rest": group.name in {"", REST},
            }
            for group in figures.agents
        ],
        "confidence_plot": trust_html(confidence_plot(figures, thresholds)),
        "score_plot": trust_html(
            histogram(
                "Value score",
                figures.scores,
                edges=SHARE_EDGES,
                axis="value score",
                caption="How much others can learn from a run.",
            )
        ),
        "alike": alike(site, CatalogQuery(**conditions), figures),
        "never": [level for level in LEVELS[:3] if getattr(thresholds, level) == math.inf],
        "gates": sum(figures.levels.values()),
        "alarms": ", ".join(f"{count:,} {ALARM_WORDS.get(name, name)}" for name, count in figures.alarms.items()),
        "level_plot": trust_html(
            named_bars(
                "Gates by level",
                {level: figures.levels.get(level, 0) for level in LEVELS},
                kind="level",
                unit="gates",
                caption="Levels that the gates of these runs chose, before a reviewer was asked.",
            )
        ),
    }


def means_of(group: Group) -> dict[str, float | None]:
    """Return the share of failed runs (waiting ones do not count), the mean score, and the mean recorded confidence."""
    return {
        "failed": group.failed / (group.runs - group.waiting) if group.failed else 0.0,
        "score": group.score / group.runs if group.runs else 0.0,
        "confidence": group.confidence / group.with_confidence if group.with_confidence else None,
    }


def bars_of(days: Sequence[Group]) -> tuple[str, list[tuple[date, list[Group]]]]:
    """Return the unit of the bars for ordered days, `day`, `week`, `month` or `year`, and each with its first day and its days."""
    units = []
    for unit, begin in _UNITS:
        grouped: dict[date, list[Group]] = defaultdict(list)
        for day in days:
            grouped[begin(date.fromisoformat(day.name))].append(day)
        units.append((unit, list(grouped.values())))
    unit, bars = next((each for each in units if len(each[1]) <= MOST_BARS), units[-1])
    return unit, [(date.fromisoformat(bar[0].name), bar) for bar in bars]


_UNITS: tuple[tuple[str, Callable[[date], date]], ...] = (
    ("day", lambda day: day),
    ("week", lambda day: day - timedelta(days=min(day.weekday(), day.toordinal() - 1))),
    ("month", lambda day: day.replace(day=1)),
    ("year", lambda day: day.replace(month=1, day=1)),
)


def run_bars(days: Sequence[Group]) -> str:
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


def confidence_plot(figures: RunFigures, thresholds: Thresholds) -> str:
    stated = ((level, getattr(thresholds, level)) for level in LEVELS[:3])
    return histogram(
        "Confidence",
        figures.confidence,
        edges=SHARE_EDGES,
        rules=[Rule(value, f"{level} {value:g}") for level, value in stated if value != math.inf],
        axis="confidence",
        caption="The dotted lines are the thresholds in force here: at or above one, a gated action is at this level or a milder one.",
    )


def alike(site: Site, query: CatalogQuery, figures: RunFigures) -> dict[str, float] | None:
    """Return the confidence that at least half of the newest runs share; None for a varying confidence or few runs."""
    total = sum(figures.confidence)
    if total < LEAST_ALIKE or max(figures.confidence) < ALIKE * total:
        return None
    page = site.catalog.find(query, limit=LOOKED_AT)
    found = Counter(round(row.confidence, 3) for row in page.rows if row.confidence is not None)
    of = found.total()
    (value, count), *_ = found.most_common(1) or [(0.0, 0)]
    return {"value": value, "share": count / of, "of": of} if of >= LEAST_ALIKE and count >= ALIKE * of else None


WAIT_EDGES = (0.0, 10.0, 60.0, 600.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0)
_WORDS = {"responded": "answered", "retried": "sent back for a retry", "standing": "by a standing approval"}
_BY_PEOPLE = ("approved", "edited", "rejected", "responded", "skipped", "retried")


def decisions_of(site: Site, span: tuple[float, float]) -> CachedValue | None:
    """Return the figures of approvals in a period in seconds since the epoch; None during a long first computation."""
    return site.figures.get(span, site.clock(), lambda: approval_figures(site.tables, *span))


def approval_values(site: Site, span: tuple[float, float]) -> dict[str, Any]:
    decisions = decisions_of(site, span)
    found: ApprovalFigures | None = None if decisions is None else decisions.value
    values: dict[str, Any] = {
        "pending": site.tables.count(RowQuery(states=(ApprovalState.PENDING.value,))),
        "decisions": decisions,
        "approvals": found,
    }
    if found is None:
        return values
    total = sum(found.outcomes.get(name, 0) for name in _BY_PEOPLE)
    entitled = sum(found.outcomes.get(state.value, 0) for state in ENTITLING)
    outcomes = {_WORDS.get(name, name): count for name, count in found.outcomes.items()}
    waits = found.waits
    return {
        **values,
        "decided": sum(found.outcomes.values()),
        "waits": {"median": quantile(waits, 0.5), "most": quantile(waits, 0.9), "longest": waits[-1]} if waits else {},
        "approved_share": entitled / total if total else None,
        "outcome_plot": trust_html(named_bars("How requests were decided", outcomes, kind="decision", unit="requests")),
        "wait_plot": trust_html(wait_plot(waits)),
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest number that is at least as large as this share of the numbers."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def wait_plot(waits: Sequence[float]) -> str:
    """Return the distribution of the time to a decision, in ascending seconds, with bins such as a minute, an hour and a day."""
    edges = list(WAIT_EDGES)
    if waits and waits[-1] > edges[-1]:
        edges.append(max(waits[-1], 2 * edges[-1]))
    places = [bisect_left(waits, edge) for edge in edges[:-1]] + [len(waits)]
    return histogram(
        "Time until people decided",
        [end - begin for begin, end in itertools.pairwise(places)],
        edges=edges,
        labels=["0", *(span_text(edge).replace(" ", "") for edge in edges[1:])],
        unit="decisions",
    )


NO_PRICE = "no price set"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpending:
    model: str
    calls: int
    tokens: int
    fallbacks: int
    """Runs and gates whose judgement is a fallback, because the model could not be asked or its reply could not be used."""
    price: tuple[float, str] | None
    """The price of a million tokens in the settings, with its currency; None where none is set."""
    money: float | None
    """Cost of the tokens, in the currency of the price."""


def spending(
    models: Mapping[str, tuple[int, int, int]], prices: Mapping[str, tuple[float, str]]
) -> tuple[ModelSpending, ...]:
    """Return what each model cost, the one with the most tokens first.

    Args:
        models: calls, tokens and fallbacks by model.
        prices: prices by name of a model, else by the first glob that matches.
    """
    found = []
    for model, (calls, tokens, fallbacks) in models.items():
        price = prices.get(model) or next((prices[glob] for glob in prices if fnmatchcase(model, glob)), None)
        money = None if price is None else tokens / 1_000_000 * price[0]
        found.append(
            ModelSpending(model=model, calls=calls, tokens=tokens, fallbacks=fallbacks, price=price, money=money)
        )
    return tuple(sorted(found, key=lambda spent: (-spent.tokens, -spent.calls, spent.model)))


def money_text(amount: float, currency: str) -> str:
    """Format an amount with two decimals, or more if it would read 0."""
    return f"{amount:,.2f} {currency}" if amount >= 0.01 or not amount else f"{amount:.2g} {currency}"


def spending_values(
    models: Mapping[str, tuple[int, int, int]], prices: Mapping[str, tuple[float, str]]
) -> dict[str, Any]:
    spent = spending(models, prices)
    sums: dict[str, float] = defaultdict(float)
    rows = []
    for each in spent:
        price = money = NO_PRICE
        if each.price is not None and each.money is not None:
            sums[each.price[1]] += each.money
            price, money = f"{each.price[0]:,.4g} {each.price[1]}", money_text(each.money, each.price[1])
        rows.append((each.model, f"{each.calls:,}", f"{each.tokens:,}", f"{each.fallbacks:,}", price, money))
    heads = ("model", "calls", "tokens", "fallbacks", "price per million tokens", "money")
    return {
        "spent": spent,
        "spending_table": trust_html(table(heads, rows)),
        "money": [money_text(amount, currency) for currency, amount in sums.items()],
        "unpriced": [each.model for each in spent if each.price is None],
    }
