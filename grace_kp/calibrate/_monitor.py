"""A monitor of promised error rates: it takes labels as they come, and raises an alarm when a promise is refuted.

It may be looked at after every label. It knows neither traces nor stores; `runtime` feeds it and keeps its state. It sees errors only,
and is silent as long as the promise holds; `drift` finds changed inputs.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from grace_kp.calibrate._betting import interval, log_wealth, log_wealth_bound, start_capital
from grace_kp.calibrate._risk import OVERALL, SELECTIVE, check_rates
from grace_kp.calibrate._samples import check_inside
from grace_kp.errors import brief
from grace_kp.levels import InterventionLevel

LEVELS = tuple(str(level) for level in InterventionLevel)
ALL = "*"
"""All actions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A promise that labels refute. While all promises hold, an alarm is ever raised with probability at most delta."""

    level: str
    """The promised level. Labels of actions at this level or a milder one count for it."""
    action: str
    """The action class; `*` means all actions together."""
    risk: float
    """The promised error rate."""
    n: int
    """Labels that counted since `since`."""
    errors: int
    """How many of them were wrong."""
    rate: float
    """Their error rate, each label counted with its weight."""
    low: float
    """The error rates from `low` to `high` are compatible with these labels, at every look, with probability 1 − delta."""
    high: float
    wealth: float
    """Capital of a bettor against the promise who began with 1. The alarm was raised at 1 / (the level's part of delta)."""
    since: str
    """The ISO week from which on the labels speak most clearly against the promise."""
    at: str
    """When the alarm was raised, in ISO 8601."""

    def concerns(self, level: str, action: str) -> bool:
        """Return whether the refuted promise is about an action at this level: of this class or all, at this level or a milder one."""
        return self.action in (action, ALL) and LEVELS.index(level) <= LEVELS.index(self.level)

    def __str__(self) -> str:
        scope = "all actions" if self.action == ALL else f"action {self.action!r}"
        return (
            f"{scope}, {self.level}: {self.errors:,} of {self.n:,} labels since {self.since} are wrong "
            f"({self.rate:.1%}, plausible are {self.low:.1%} to {self.high:.1%}); promised was at most {self.risk:.1%}"
        )


def number_of(week: str) -> int:
    """Return a running number for an ISO week such as 2026-W47."""
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), 1).toordinal() // 7


def name_of(number: int) -> str:
    return week_of(date.fromordinal(number * 7 + 1))


def week_of(day: date) -> str:
    """Return the week of a day, or of a moment in UTC."""
    year, week, _ = (day.astimezone(UTC) if isinstance(day, datetime) else day).isocalendar()
    return f"{year:04d}-W{week:02d}"


if TYPE_CHECKING:
    from collections.abc import Mapping

    _Weeks = dict[str, dict[str, dict[float, list[int]]]]
    """Right and wrong labels by week, level and weight."""

MAX_ACTIONS = 100
"""Action classes with a test of their own. Further ones count among all actions only."""
MAX_IDS = 100_000
"""Trace ids in memory, to count each trace once."""
SCHEMA, VERSION = "grace_kp.monitor", 1
MAX_LOG = 700.0
"""Wealth is shown up to exp(700), about 1e304."""


class Monitor:
    """Tests promised error rates while labels arrive. Safe to share between threads.

    **Selective promise**: at most `risk` of the actions at a level or a milder one are wrong. A label of a silent action counts for
    silent, notify and confirm; a label of a notified one for notify and confirm. **Overall promise**: at most `risk` of all runs both
    proceed at the level or a milder one and are wrong. Every label counts for every level; it is an error only if the level is mild enough.

    **False alarms.** If every promise holds, an alarm is ever raised with probability at most `delta`. Each test is a bet with fair or
    unfavourable odds under its promise, so it reaches 1 / d with probability at most d at any time (Ville). Delta is shared: all actions
    together are class 1, and the k-th action class that appears is class k + 1, before its first label is seen. Class k gets
    delta / (k (k + 1)), in equal parts for its levels; all shares together are at most delta.

    **What it assumes.** Labels are a random sample of the actions, or `weight` is the inverse of the probability with which this action
    is labelled (1 / `audit_rate` for an audited one). If people only report errors, no weight can repair that. The label of a run with
    several actions is one observation: see `observe`.

    Args:
        risks: the promised error rate by level, for example `{"silent": 0.05, "notify": 0.15}`; each above 0 and below 1.
        delta: the probability of any false alarm; above 0 and below 1.
        promise: `selective` or `overall`.
        max_weight: the largest weight that a label can have, known in advance, such as 1 / `audit_rate`. It bounds the bets.

    Raises:
        ValueError: an argument is not usable.
    """

    def __init__(
        self, risks: Mapping[str, float], delta: float = 0.1, *, promise: str = "selective", max_weight: float = 1.0
    ) -> None:
        self.risks = check_rates(risks)
        check_inside("delta", delta)
        self.delta = delta
        if promise not in (SELECTIVE, OVERALL):
            raise ValueError(f"promise must be {SELECTIVE} or {OVERALL} (got {brief(promise)})")
        self.promise = promise
        self.max_weight = _check_weight("max_weight", max_weight)
        self._counts: dict[str, _Weeks] = {ALL: {}}
        self._alarms: dict[tuple[str, str], Alarm] = {}
        self._ids: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def update(
        self,
        level: str,
        correct: float,
        *,
        weight: float = 1.0,
        action: str = ALL,
        trace_id: str | None = None,
        at: datetime | None = None,
    ) -> Alarm | None:
        """Count one label.

        Args:
            level: the level at which the action was decided: silent, notify, confirm or escalate.
            correct: True or False, 1 or 0. Guarantees use no numbers between.
            weight: the inverse of the probability that this action is labelled, up to `max_weight`.
            action: the action class. Every label counts among all actions (`*`) too.
            trace_id: a second label of the class with the same id is ignored, even if it differs. Old labels cannot be revised: a test that
                is valid at each look must not choose which labels count after it has seen them.
            at: when the label arrived; now when None. It selects the week.

        Returns:
            The alarm of a promise for which this label counts, in the order in which they were raised; None without one. Alarms last until
            `reset`.

        Raises:
            ValueError: an argument is not usable. Nothing is counted then.
        """
        return self.observe({action: level}, correct, weight=weight, trace_id=trace_id, at=at)

    def observe(
        self,
        levels: Mapping[str, str],
        correct: float,
        *,
        weight: float = 1.0,
        trace_id: str | None = None,
        at: datetime | None = None,
    ) -> Alarm | None:
        """Count the label of one run with several actions, as `update` does.

        The run counts once in each class, at the level that `levels` has for the class, and once among all actions, at the mildest level.
        Its actions share one label, and a bet on each of them would count the same evidence again.

        Args:
            levels: the mildest level of the run's actions, by action class. The other arguments are those of `update`.
        """
        # Numbers of numpy count; strings, NaN and numbers between 0 and 1 do not.
        if not hasattr(correct, "__float__") or float(correct) not in (0.0, 1.0):
            raise ValueError(
                f"correct must be True or False, 1 or 0 (got {brief(correct)}); a guarantee uses no labels between, so leave them out"
            )
        wrong = not correct
        if not levels:
            raise ValueError("levels must name at least one action class and its level (got none)")
        classes = {action: _check_level(level) for action, level in levels.items()}
        classes[ALL] = min(classes.values(), key=LEVELS.index)
        stored = self._round_weight(_check_weight("weight", weight, self.max_weight), wrong)
        now = at or datetime.now(UTC)
        week = week_of(now)
        with self._lock:
            for action, level in classes.items():
                if self._is_new(action, trace_id):
                    self._cell(action, week, level, stored)[wrong] += 1
                    if wrong:  # a right label never raises the wealth
                        self._test(action, level, now)
            for (action, promised), alarm in self._alarms.items():
                if action in classes and (self.promise == OVERALL or _is_milder(classes[action], promised)):
                    return alarm
        return None

    def _round_weight(self, weight: float, wrong: bool) -> float:
        """Return a weight with three digits, to bound the state: lower for errors and higher for right labels, which favours the promise."""
        if weight == self.max_weight:
            return weight
        unit = 10.0 ** (math.floor(math.log10(weight)) - 2)
        digits = round(weight / unit, 6)
        return min(self.max_weight, float(f"{(math.floor(digits) if wrong else math.ceil(digits)) * unit:.3g}"))

    def _is_new(self, action: str, trace_id: str | None) -> bool:
        """Return whether to count a label in this class; open the class at its first label."""
        if action not in self._counts:
            if len(self._counts) > MAX_ACTIONS:
                return False
            self._counts[action] = {}
        if trace_id is None:
            return True
        if (action, trace_id) in self._ids:
            return False
        self._ids[action, trace_id] = None
        if len(self._ids) > MAX_IDS:
            self._ids.popitem(last=False)
        return True

    def _cell(self, action: str, week: str, level: str, weight: float) -> list[int]:
        return self._counts[action].setdefault(week, {}).setdefault(level, {}).setdefault(weight, [0, 0])

    def _test(self, action: str, level: str, now: datetime) -> None:
        number = list(self._counts).index(action) + 1
        limit = math.log(number * (number + 1) * len(self.risks) / self.delta)
        for promised, risk in self.risks.items():
            if (action, promised) in self._alarms or not _is_milder(level, promised):
                continue
            weeks = self._weeks(action, promised)
            if log_wealth_bound(weeks, risk) < limit:
                continue
            wealth, start = log_wealth(weeks, risk)
            if wealth >= limit:
                figures = self._figures(action, promised, start)
                self._alarms[action, promised] = Alarm(**figures, at=now.astimezone(UTC).isoformat(timespec="seconds"))

    def _weeks(self, action: str, promised: str) -> list[tuple[int, dict[float, list[int]]]]:
        """Return the labels that count for a promise: for each week, numbered from the first, right and wrong ones by share of `max_weight`."""
        found = self._counts[action]
        first = min(map(number_of, found), default=0)
        weeks = []
        for week in sorted(found):
            total: dict[float, list[int]] = {}
            for level, weights in found[week].items():
                milder = _is_milder(level, promised)
                if not milder and self.promise == SELECTIVE:
                    continue
                for weight, (right, wrong) in weights.items():
                    counts = total.setdefault(weight / self.max_weight, [0, 0])
                    counts[0] += right if milder else right + wrong
                    counts[1] += wrong if milder else 0
            weeks.append((number_of(week) - first, total))
        return weeks

    def _figures(self, action: str, promised: str, start: int) -> dict[str, Any]:
        """Return the figures of a promise, from a week on."""
        weeks = self._weeks(action, promised)
        counts: dict[float, list[int]] = {}
        for _, of_week in weeks[bisect_left(weeks, start, key=itemgetter(0)) :]:
            for share, (right, wrong) in of_week.items():
                so_far = counts.setdefault(share, [0, 0])
                so_far[0] += right
                so_far[1] += wrong
        n, errors = sum(map(sum, counts.values())), sum(wrong for _, wrong in counts.values())
        everything = sum(share * (right + wrong) for share, (right, wrong) in counts.items())
        low, high = interval(counts, self.delta * start_capital(start))
        return {
            "level": promised,
            "action": action,
            "risk": self.risks[promised],
            "n": n,
            "errors": errors,
            "rate": sum(share * wrong for share, (_, wrong) in counts.items()) / everything if n else None,
            "low": low,
            "high": high,
            "wealth": math.exp(min(log_wealth(weeks, self.risks[promised])[0], MAX_LOG)),
            "since": name_of(min(map(number_of, self._counts[action])) + start) if n else None,
        }

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms since the last `reset`, in the order in which they were raised."""
        with self._lock:
            return tuple(self._alarms.values())

    def refuted(self, level: str, action: str = ALL) -> Alarm | None:
        """Return an alarm that concerns an action at this level: its class or all actions, at this level or a stricter promised one.

        Raises:
            ValueError: the level is unknown.
        """
        _check_level(level)
        return next((alarm for alarm in self.alarms if alarm.concerns(level, action)), None)

    def report(self) -> list[dict[str, Any]]:
        """Return the figures of each promise in each class: the fields of an `Alarm`, over all labels, with `alarm` (True or False).

        `rate` and `since` are None without labels.
        """
        with self._lock:
            return [
                {**self._figures(action, level, 0), "alarm": (action, level) in self._alarms}
                for action in self._counts
                for level in self.risks
            ]

    def reset(self) -> None:
        """Forget all labels and alarms, for example after fitting again. Each reset spends a further `delta`."""
        with self._lock:
            self._counts = {ALL: {}}
            self._alarms.clear()
            self._ids.clear()

    def merge(self, other: Monitor) -> None:
        """Add the labels of another monitor with the same configuration, as if they had arrived here, and its alarms.

        If actions were taken on alarms of both parts, false alarms of the parts add up.

        Raises:
            ValueError: the other monitor has other promises.
        """
        mine, others = self._configuration(), other._configuration()
        if mine != others:
            raise ValueError(f"only monitors of the same promises can be merged (got {others}, and this has {mine})")
        state = other.to_dict()
        with self._lock:
            self._add(state)
            for action in state["actions"]:
                self._test(action, LEVELS[0], datetime.now(UTC))

    def _configuration(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("risks", "delta", "promise", "max_weight")}

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON: counts by action class, week, level and weight. It holds no contents and no trace ids."""
        with self._lock:
            return {
                "schema": SCHEMA,
                "version": VERSION,
                **self._configuration(),
                "actions": list(self._counts),
                "counts": [
                    [action, week, level, weight, *counts]
                    for action, weeks in self._counts.items()
                    for week, levels in weeks.items()
                    for level, weights in levels.items()
                    for weight, counts in weights.items()
                ],
                "alarms": [asdict(alarm) for alarm in self._alarms.values()],
            }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the monitor whose `to_dict` this is.

        Raises:
            ValueError: it is not the state of a monitor, or of a newer version; the message names the field.
        """
        found = (state.get("schema"), state.get("version"))
        if found != (SCHEMA, VERSION):
            raise ValueError(f"schema, version: must be {SCHEMA}, {VERSION} (got {found[0]}, {found[1]})")
        try:
            monitor = cls(state["risks"], state["delta"], promise=state["promise"], max_weight=state["max_weight"])
            monitor._add(state)
        except KeyError as error:
            raise ValueError(f"state of a monitor: {error} is missing") from None
        except TypeError as error:
            raise ValueError(f"state of a monitor: {error}") from None
        return monitor

    def _add(self, state: Mapping[str, Any]) -> None:
        for action in state["actions"]:
            self._counts.setdefault(str(action), {})
        for action, week, level, weight, right, wrong in state["counts"]:
            number_of(week)
            if not (isinstance(right, int) and isinstance(wrong, int) and right >= 0 and wrong >= 0):
                raise ValueError(f"counts: must be whole numbers from 0 (got {brief([right, wrong])})")
            weight = _check_weight("counts: weight", weight, self.max_weight)
            counts = self._cell(action, week, _check_level(level), weight)
            counts[0] += right
            counts[1] += wrong
        for entry in state["alarms"]:
            alarm = Alarm(**entry)
            self._alarms.setdefault((alarm.action, alarm.level), alarm)


def _is_milder(level: str, promised: str) -> bool:
    return LEVELS.index(level) <= LEVELS.index(promised)


def _check_level(level: str) -> str:
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)} (got {brief(level)})")
    return str(level)


def _check_weight(name: str, value: float, largest: float = math.inf) -> float:
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    if not is_number or not 0 < value <= largest or value == math.inf:
        limit = "" if largest == math.inf else f" and at most max_weight, {largest:g}"
        raise ValueError(f"{name} must be a number above 0{limit} (got {brief(value)})")
    return float(value)
