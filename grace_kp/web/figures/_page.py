"""The page of figures for the period and agent of an address, from catalog, approvals, labels and settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from pydantic import Field

from grace_kp.store import CatalogQuery
from grace_kp.web._parameter import UNSTATED, Day, Parameters, Text
from grace_kp.web._site import recording_lines, root_of, site_of
from grace_kp.web.figures._sums import approval_values, run_values, spending_values
from grace_kp.web.figures._trust import threshold_values, trust_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web._site import Site


ALL = "all"
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
