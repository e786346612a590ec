"""The page of figures: the period and agent that an address asks for, and the parts of the page from catalog, approvals, labels and settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from markupsafe import Markup
from pydantic import Field

from grace_kp.approvals import ApprovalState, RowQuery
from grace_kp.store import CatalogQuery
from grace_kp.web._kept import Kept
from grace_kp.web._parameter import UNSTATED, Day, Parameters, Text
from grace_kp.web._site import recording_lines, root_of, site_of
from grace_kp.web.figures import _sums as sums
from grace_kp.web.figures import _trust as trust
from grace_kp.web.figures._sums import money_text, spending, spending_table, sums_by_currency
from grace_kp.web.figures._trust import verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import ApprovalFigures
    from grace_kp.store import RunFigures
    from grace_kp.web._kept import KeptValue
    from grace_kp.web._site import Site


ALL = "all"
PRESETS = ("7", "30", "90", "365", ALL)
USUAL = "30"
LONGEST = 20 * 366
"""Days of a period at most."""


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
_SHOWN = f"The last {USUAL} days are shown."


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Some days, both ends included, in UTC."""

    since: date
    until: date
    preset: str = ""
    """The preset that was asked for; empty where the days were stated."""

    @property
    def seconds(self) -> tuple[float, float]:
        """The beginning of the first day and the end of the last, in seconds since the epoch."""
        begin = datetime(self.since.year, self.since.month, self.since.day, tzinfo=UTC)
        return begin.timestamp(), (begin + timedelta(days=self.days)).timestamp()

    @property
    def days(self) -> int:
        """Number of days."""
        return (self.until - self.since).days + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The period and agent of an address, without unusable values."""

    period: Period
    agent: str | None
    notes: tuple[str, ...]
    """Notes on the values that were not used, for people: with the names of the fields, and what is shown instead."""
    problems: Mapping[str, str]
    """What is wrong with a value, by parameter."""


def asked_for(params: QueryParams, today: date, oldest: Callable[[], date]) -> Asked:
    """Return the period and the agent that an address asks for.

    Args:
        params: `request.query_params`. A parameter that cannot be used is left out, with a note. Stated days come before a preset.
        today: the current day in UTC.
        oldest: returns the day of the oldest run; called for the preset `all` only.
    """
    values, problems = _PageParameters.read(
        [(name, value) for name, value in params.multi_items() if value and name in _FIELDS]
    )
    notes = [f"{_FIELDS[name]} {problem}." for name, problem in problems.items()]
    if "since" in values or "until" in values:
        until = date.fromisoformat(values["until"]) if "until" in values else today
        if until > today:
            problems["until"] = f"must not be in the future, as {until} is"
            notes.append(f"Last day ({until}) is in the future. The figures end today.")
            until = today
        period = _stated(values.get("since"), until)
        if period.since > period.until:
            problems["since"] = f"must not be after until: {period.since} is after {period.until}"
            notes.append(f"First day ({period.since}) must not be after Last day ({period.until}). {_SHOWN}")
            period = _preset(USUAL, today, oldest)
    else:
        period = _preset(values.get("days", USUAL), today, oldest)
        if problems.keys() & {"since", "until", "days"} and period.preset == USUAL:
            notes.append(_SHOWN)
    if period.days > LONGEST:
        since = period.until - timedelta(days=LONGEST - 1)
        problems["since"] = f"must not be before {since}: a period has at most {LONGEST:,} days"
        notes.append(f"The period has at most {LONGEST:,} days, so it begins on {since} and not on {period.since}.")
        period = Period(since=since, until=period.until, preset=period.preset)
    return Asked(period=period, agent=values.get("agent"), notes=tuple(notes), problems=problems)


def _stated(since: str | None, last: date) -> Period:
    first = last - timedelta(days=min(int(USUAL), last.toordinal()) - 1) if since is None else date.fromisoformat(since)
    return Period(since=first, until=last)


def _preset(preset: str, today: date, oldest: Callable[[], date]) -> Period:
    first = min(oldest(), today) if preset == ALL else today - timedelta(days=int(preset) - 1)
    return Period(since=first, until=today, preset=preset)


MOST_NAMES = 200


class FiguresPage:
    """The page, with what it keeps between views, because it takes too long for each: what labels and promises say."""

    def __init__(self) -> None:
        self._trust: Kept[CatalogQuery, dict[str, Any]] = Kept()

    def show(self, request: Request) -> Response:
        """Return the page for the period and the agent of an address."""
        site, root = site_of(request), root_of(request)
        now = site.clock()
        asked = asked_for(request.query_params, datetime.fromtimestamp(now, UTC).date(), lambda: _oldest_day(site))
        since, until = asked.period.since.isoformat(), asked.period.until.isoformat()
        query = CatalogQuery(agent=asked.agent, since=since, until=f"{until}T23:59:59.999Z")
        figures = site.catalog.figures(since, until, agent=asked.agent)
        labelled = replace(query, feedback=True)
        trusted = self._trust.get(labelled, now, lambda: _trust(site, labelled))
        decisions = sums.decisions_of(site, asked.period.seconds)
        known = {} if trusted is None else trusted.value or {}
        return site.page(
            request,
            "figures/figures.html",
            asked=asked,
            presets=_presets(asked, root),
            agents=_names(site, asked),
            progress=site.catalog.progress(),
            record=recording_lines(site.grace.settings.store),
            runs_address=f"{root}/runs?{urlencode(_conditions(asked), errors='replace')}",
            **_runs(site, figures, query, asked, root),
            **_approvals(site, decisions),
            **_spending(site, figures),
            trusted=trusted,
            **_thresholds(site, known),
            **known,
        )


def _html(part: str) -> Markup:
    return Markup(part)  # noqa: S704 — plots and tables escape every text


def _oldest_day(site: Site) -> date:
    rows = site.catalog.find(CatalogQuery(), after=0, limit=1).rows
    if not rows:
        return datetime.fromtimestamp(site.clock(), UTC).date()
    return date.fromisoformat(rows[0].created_at[:10])


def _presets(asked: Asked, root: str) -> list[dict[str, Any]]:
    agent = {} if asked.agent is None else {"agent": asked.agent}
    return [
        {
            "words": "All" if name == "all" else f"{name} days",
            "address": f"{root}/figures?{urlencode({'days': name, **agent}, errors='replace')}",
            "is_chosen": name == asked.period.preset,
        }
        for name in PRESETS
    ]


def _names(site: Site, asked: Asked) -> list[str]:
    """Return the agents to choose from; the chosen one is always among them."""
    names = [name for name in site.catalog.names("agent", limit=MOST_NAMES) if name]
    return names if asked.agent is None or asked.agent in names else [asked.agent, *names]


def _conditions(asked: Asked) -> dict[str, str]:
    """Return the period and the agent as parameters of the list of runs."""
    agent = {} if asked.agent is None else {"agent": asked.agent}
    return {**agent, "since": asked.period.since.isoformat(), "until": f"{asked.period.until}T23:59:59.999Z"}


def _runs(site: Site, figures: RunFigures, query: CatalogQuery, asked: Asked, root: str) -> dict[str, Any]:
    thresholds = site.grace.thresholds
    conditions = _conditions(asked)
    conditions.pop("agent", None)
    return {
        "total": figures.total,
        "failure_rate": sums.failure_rate(figures.total),
        "mean_score": sums.mean_score(figures.total),
        "mean_confidence": sums.mean_confidence(figures.total),
        "statuses": figures.statuses,
        "run_bars": _html(sums.run_bars(figures.days)),
        "agent_rows": sums.agent_rows(figures.agents, conditions, root),
        "confidence_plot": _html(sums.confidence_plot(figures, thresholds)),
        "score_plot": _html(sums.score_plot(figures)),
        "alike": sums.alike(site.catalog, query, figures),
        "never": [level for level in sums.LEVELS[:3] if getattr(thresholds, level) == math.inf],
        "gates": sum(figures.levels.values()),
        "level_plot": _html(sums.level_plot(figures)),
    }


def _approvals(site: Site, decisions: KeptValue[ApprovalFigures] | None) -> dict[str, Any]:
    found = None if decisions is None else decisions.value
    values: dict[str, Any] = {
        "pending": site.tables.count(RowQuery(states=(ApprovalState.PENDING.value,))),
        "decisions": decisions,
        "approvals": found,
    }
    if found is None:
        return values
    return {
        **values,
        "decided": sum(found.outcomes.values()),
        "waits": sums.waits_of(found),
        "approved_share": sums.approved_share(found),
        "outcome_plot": _html(sums.outcome_plot(found)),
        "wait_plot": _html(sums.wait_plot(found)),
    }


def _spending(site: Site, figures: RunFigures) -> dict[str, Any]:
    spent = spending(figures.models, site.grace.settings.prices)
    return {
        "spent": spent,
        "spending_table": _html(spending_table(spent)),
        "money": [money_text(amount, currency) for currency, amount in sums_by_currency(spent).items()],
        "unpriced": [each.model for each in spent if each.price is None],
    }


def _thresholds(site: Site, known: dict[str, Any]) -> dict[str, Any]:
    return {
        "thresholds": trust.threshold_rows(site.grace, known.get("labelled", {})),
        "profile": (site.grace.status()["profile"] or {}).get("name", ""),
        "promise": trust.promise_words(site.grace),
    }


def _trust(site: Site, labelled: CatalogQuery) -> dict[str, Any]:
    """Return what labels and watched promises say; it may take seconds."""
    verdict = verdict_of(site, labelled)
    found = verdict.assessment
    watched, problem = trust.watched_promises(site.grace.store)
    return {
        "assessment": found,
        "is_cut": verdict.is_cut,
        "intervals": trust.intervals_words(found) if found else {},
        "sources": trust.sources_words(verdict.sources),
        "left_out": trust.sources_words(verdict.left_out),
        "lacking": trust.needed_labels(verdict.tasks),
        "reliability_plot": _html(trust.reliability_plot(verdict)) if found else "",
        "risk_plot": _html(trust.risk_plot(verdict)) if verdict.curve else "",
        "labelled": trust.wrong_at_thresholds(site.grace, verdict),
        "watched": watched,
        "watched_problem": problem,
    }
