"""The period of the figures: which days an address asks for, and how days are put together into weeks, months or years."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from grace_kp.web._parameter import Kind, Parameter, read_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.datastructures import QueryParams

    from grace_kp.store import Group

ALL = "all"
PRESETS = ("7", "30", "90", "365", ALL)
USUAL = "30"
LONGEST = 20 * 366
"""Days of a period at most."""
MOST_BARS = 62
PARAMETERS = (
    Parameter(name="agent", meaning="Name of the agent or run.", example="refunds"),
    Parameter(name="days", meaning="Days up to today, or `all`.", choices=PRESETS),
    Parameter(name="since", meaning="First day (UTC).", kind=Kind.DAY, example="2026-10-01"),
    Parameter(name="until", meaning="Last day (UTC).", kind=Kind.DAY, example="2026-10-31"),
)


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
    values, problems = read_all(PARAMETERS, [(name, value) for name, value in params.multi_items() if value])
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


def _stated(since: str | None, last: date) -> Period:
    first = last - timedelta(days=min(int(USUAL), last.toordinal()) - 1) if since is None else date.fromisoformat(since)
    return Period(since=first, until=last)


def _preset(preset: str, today: date, oldest: Callable[[], date]) -> Period:
    first = min(oldest(), today) if preset == ALL else today - timedelta(days=int(preset) - 1)
    return Period(since=first, until=today, preset=preset)


def _week(day: date) -> date:
    return day - timedelta(days=min(day.weekday(), day.toordinal() - 1))


_UNITS: tuple[tuple[str, Callable[[date], date]], ...] = (
    ("day", lambda day: day),
    ("week", _week),
    ("month", lambda day: day.replace(day=1)),
    ("year", lambda day: day.replace(month=1, day=1)),
)
