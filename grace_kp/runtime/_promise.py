"""The promise of a runtime's profile, watched: labels are counted in the store, alarms are found there, reported, and checked at gates.

The store holds the counts under a name that follows from the profile. So all processes count together, a restart changes nothing, and a
profile that is fitted again starts from zero. The test itself is `calibrate.Monitor`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, watch
from grace_kp.confidence import Thresholds, decide
from grace_kp.errors import GraceError, SettingsError, StoreError, is_unit
from grace_kp.gating import audit_probability
from grace_kp.levels import InterventionLevel
from grace_kp.record import attempt, note
from grace_kp.runtime._profiles import digest_of
from grace_kp.store import CHECK, PROGRAM, REVERSAL, action_name, mark_of, precedence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.calibrate import Alarm, Monitor
    from grace_kp.store import FeedbackEntry

    ReadStates = Callable[[str], Mapping[str, str]]
    Fields = Mapping[str, Any]

PREFIX = "monitor:"
COUNTED = "counted:"
"""Prefix of the rows that hold what a monitor has counted, one for each run, behind the name of the monitor."""
REFRESH_SECONDS = 5.0
"""How long a gate relies on the alarms that it read last."""
APPROVAL = "approval"
"""The source of labels that do not count as labels of correctness: people approve wrong actions."""
LEVELS = tuple(str(level) for level in InterventionLevel)
_log = logging.getLogger("grace_kp")


class PromiseWatch(Resident):
    """The promise of one profile, as one runtime watches it."""

    def __init__(
        self,
        monitor: Monitor,
        profile: object,
        store: Callable[[], object],
        *,
        asks: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monitor, self._store, self._clock = monitor, store, clock
        self.asks = asks
        self.watched = watched_by(profile)
        self.hooks: list[Callable[[Alarm], object]] = []
        state = {**self.watched, "monitor": monitor.to_dict()}
        configuration = {name: state["monitor"][name] for name in ("risks", "delta", "promise", "max_weight")}
        self._latest = json.dumps(state)
        self._prefix = f"{PREFIX}{_digest(self.watched)}:"
        self._name = self._prefix + _digest(configuration)
        self._memory: Any = None
        self._is_registered = False
        self._alarms: tuple[Alarm, ...] = ()
        self._known: set[tuple[str, str, str]] = set()
        self._read_at: float | None = None
        self._is_readable = False
        self.after_fork()
        watch(self)

    def fork_locks(self) -> Sequence[Lock]:
        return self._reading, self._lock

    def after_fork(self) -> None:
        self._reading, self._lock = threading.RLock(), threading.Lock()  # a callback may run a gated action

    def states(self) -> Any:
        """Return the store, or, where it is a store of the user's that keeps no state, one in memory."""
        store: Any = self._store()
        if not callable(getattr(store, "change_states", None)):
            if self._memory is None:
                from grace_kp.store import open_store

                self._memory = open_store("memory:")
            store = self._memory
        if not self._is_registered:
            store.change_states(lambda read: {} if self._name in read(self._name) else {self._name: self._latest})
            self._is_registered = True
        return store

    @property
    def is_due(self) -> bool:
        """Whether the next check reads the store."""
        return self._read_at is None or self._clock() - self._read_at >= REFRESH_SECONDS

    def count_label(self, entry: FeedbackEntry) -> None:
        """Report new alarms at once after a label was stored, and count it first where the store keeps no counts."""
        states = self.states()
        if states is self._memory:
            count_labels(self._store(), [entry], states)
        self.refresh()

    def reasons_against(self, action: str, level: InterventionLevel) -> Sequence[str]:
        """Return why the promise cannot be relied on for an action that was decided at a level; nothing where alarms are only reported."""
        with self._reading:
            if self.is_due and attempt("reading the alarms of a promise", self.refresh) is None:
                # It is not tried again before every action, because each attempt may wait for a locked store.
                self._read_at, self._is_readable = self._clock(), False
        if not self.asks:
            return ()
        if not self._is_readable:
            raise StoreError("the alarms of the promise could not be read")
        return [f"a promise was refuted: {alarm}" for alarm in self._alarms if alarm.concerns(level, action)]

    def refresh(self) -> tuple[Alarm, ...]:
        """Read the present alarms, report new ones, and return all."""
        states = self.states().states(self._prefix)
        if self._name not in states:
            # The file was replaced. Counts and alarms that are known here go into the new one.
            self._is_registered = False
            states = self.states().states(self._prefix)
        self._latest = states[self._name]
        # By name, because the figures of an alarm change when a person's label replaces a program's.
        found = {
            (name, alarm.action, alarm.level): alarm
            for name, value in states.items()
            for alarm in monitor_in(name, value).alarms
        }
        with self._lock:
            new = [alarm for key, alarm in found.items() if key not in self._known]
            self._known = set(found)
            self._alarms, self._read_at, self._is_readable = tuple(dict.fromkeys(found.values())), self._clock(), True
        for alarm in dict.fromkeys(new):
            _log.warning("a promise of the profile %s is refuted: %s", self.watched["profile"], alarm)
            for hook in tuple(self.hooks):
                attempt("a callback of on_alarm", partial(hook, alarm))
        return self._alarms

    def reset(self) -> None:
        """Forget the labels and alarms of this profile, in all processes. Runs that were counted are not counted again."""
        store = self.states()
        for name in store.states(self._prefix):
            store.change_states(partial(_reset, name))
        self.refresh()

    def describe(self) -> dict[str, Any]:
        """Return the figures of each promise and what is known against them, for `Grace.status()`. It never raises."""
        described: dict[str, Any] = {**self.watched, "on_alarm": "confirm" if self.asks else "report"}
        try:
            described["alarms"] = [str(alarm) for alarm in self.refresh()]
            described["figures"] = monitor_in(self._name, self._latest).report()
        except GraceError as error:
            described["error"] = str(error)
        return {**described, "state": "memory" if self._memory is not None else "store"}


def watched_by(profile: object) -> dict[str, Any]:
    """Return what identifies a profile in the store and in the decisions that it made, and the moment that its promise is about."""
    promise = getattr(profile, "promise", None) or {}
    fitted_on = getattr(profile, "fitted_on", None) or {}
    to_dict = getattr(profile, "to_dict", None)
    watched = {
        "profile": profile if isinstance(profile, str) else str(getattr(profile, "name", "")),
        "fitted_at": fitted_on.get("fitted_at"),
        "moment": promise.get("moment", "action"),
        "fingerprint": _digest(to_dict()) if callable(to_dict) else "",
        # Only the digest tells a profile from the same one with another confidence in actions.
        **({"unit": "action", "digest": digest_of(profile)} if promise.get("unit") == "action" else {}),
    }
    thresholds = getattr(profile, "thresholds", None)
    if watched["moment"] == "end" and isinstance(thresholds, Thresholds):
        # No gate decides on a run that has ended, so its level follows from these.
        watched["thresholds"] = thresholds.to_dict()
    return watched


def monitor_of(monitor: Monitor | bool, profile: object, audit_rate: float = 0.0) -> Monitor:
    """Return the monitor of a runtime: the one passed in, or for True that of the profile's promise."""
    from grace_kp.calibrate import Monitor

    if isinstance(monitor, Monitor):
        return monitor
    if monitor is not True:
        raise TypeError(f"monitor must be a calibrate.Monitor, True or None, not {type(monitor).__name__}")
    promise = getattr(profile, "promise", None)
    if not promise:
        raise SettingsError(
            "monitor=True watches the promise of a learned profile, and this profile promises nothing: "
            "pass monitor=calibrate.Monitor(risks={...}), or a profile with thresholds that keep a promise"
        )
    max_weight = 1 / audit_rate if audit_rate else 1.0
    try:
        return Monitor(promise["risks"], promise["delta"], promise=promise["kind"], max_weight=max_weight)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(f"monitor=True cannot watch what the profile promises: {error}") from None


def count_labels(store: Any, entries: Sequence[FeedbackEntry], states: Any = None) -> None:
    """Count labels in every monitor that watches the profile by which the labelled run was decided.

    A promise about runs counts labels of runs; one about actions counts labels of actions. Actions of a task or session are alike, so each counts
    once, with the first of its actions that is labelled; without either, a run and all runs nested in it do (see `calibrate.unit_of`).

    A run or action counts once for each monitor, with the first usable label of the highest precedence (see `store.precedence`). A later correction by
    an equal changes the trace and not the counts, because a test that is valid at each look must not choose its labels afterwards. A label of
    higher precedence replaces the one that was counted, whatever both state, and the monitor is computed again from the labels in order.
    The label of a program counts only where it states an error: it can raise an alarm and never delay one.
    """
    states = store if states is None else states
    usable = [entry for entry in entries if entry.source != APPROVAL]
    if not usable or not callable(getattr(states, "change_states", None)):
        return
    monitors = states.states(PREFIX)
    if not monitors:
        return
    from grace_kp.calibrate import unit_of

    for entry in usable:
        label, trace = json.loads(entry.data), store.get(entry.trace)
        grace = (None if trace is None else trace.grace) or {}
        rank, action = precedence(label, grace.get("user")), label.get("action")
        if action is not None:
            decisions = grace.get("decisions")
            places = enumerate(decisions if isinstance(decisions, list) else ())
            named = [each for place, each in places if isinstance(each, dict) and action_name(each, place) == action]
            grace = {**grace, "decisions": named[-1:]}  # a program that runs again decides again
        for name, value in monitors.items() if rank else ():
            watched = json.loads(value)
            if (watched.get("unit") == "action") != (action is not None):
                continue
            if not levels_of(grace, {"probability": 1.0}, watched)[0]:
                continue  # another profile decided the run
            levels, weight = levels_of(grace, label, watched) if isinstance(label["correct"], bool) else ({}, 1.0)
            if label["correct"] and (label.get(PROGRAM) or (action is not None and entry.source in (CHECK, REVERSAL))):
                levels = {}  # an agent that praises its own runs must not keep an alarm from being raised
            max_weight = monitor_in(name, value).max_weight
            if weight > max_weight * (1 + 1e-9):
                note(f"a label weighs {weight:g}, more than the monitor's max_weight of {max_weight:g}", "not counted")
                levels = {}
            counted = {
                "rank": rank,
                "levels": levels,
                "correct": label["correct"],
                "weight": min(weight, max_weight),
                "at": datetime.now(UTC).isoformat(),
                **({} if action is None else {"action": mark_of(entry.trace, action)}),
            }
            unit = entry.trace if action is None or trace is None else unit_of(trace, store.get, by_objective=False)
            states.change_states(partial(_count, name, mark_of(name, unit), counted))


def levels_of(grace: Fields, label: Fields, watched: Fields) -> tuple[dict[str, str], float]:
    """Return what a label says about the promise of a profile: the mildest level of each action class, and the label's weight.

    Nothing is returned for a run that this profile did not decide, and for one that an audit passed over: who labels it anyway did not
    choose it at random.
    """
    recorded = grace.get("decisions")
    decisions = [entry for entry in recorded if isinstance(entry, dict)] if isinstance(recorded, list) else []
    levels: dict[str, str] = {}
    if watched["moment"] == "end":
        confidence = grace.get("confidence")
        thresholds = watched.get("thresholds")
        if (
            thresholds
            and isinstance(confidence, dict)
            and _is_of(confidence, watched)
            and is_unit(confidence.get("score"))
        ):
            levels["*"] = str(decide(confidence["score"], Thresholds.from_dict(thresholds)).level)
    else:
        for entry in decisions:
            action, level = entry.get("action"), entry.get("level")
            if isinstance(action, str) and level in LEVELS and _is_of(entry, watched):
                levels[action] = min(level, levels.get(action, level), key=LEVELS.index)
    probability = label.get("probability")
    if probability is None:
        audits = [entry["audit"] for entry in decisions if isinstance(entry.get("audit"), dict)]
        probability = audit_probability(decisions) if audits else 1.0
        if probability is not None and probability < 1 and not any(audit.get("selected") for audit in audits):
            return {}, 1.0
    return levels, 1 / probability if probability else 1.0


def promises_in(store: Any) -> list[dict[str, Any]]:
    """Return the state of each promise that is watched in a store: its profile, the number of labels, the alarms, and the figures
    of each level and action class, as `Monitor.report` returns them.
    """
    found = []
    for name, value in store.states(PREFIX).items() if callable(getattr(store, "states", None)) else ():
        monitor = monitor_in(name, value)
        state, figures = json.loads(value), monitor.report()
        found.append(
            {
                "profile": state.get("profile"),
                "fitted_at": state.get("fitted_at"),
                "unit": state.get("unit", "run"),
                "labels": max(row["n"] for row in figures),
                "alarms": [str(alarm) for alarm in monitor.alarms],
                "figures": figures,
            }
        )
    return found


def monitor_in(name: str, value: str | None) -> Monitor:
    """Return the monitor that a state holds."""
    from grace_kp.calibrate import Monitor

    try:
        return Monitor.from_dict(json.loads(value or "{}")["monitor"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"state {name!r} of the store cannot be read as a monitor: {error}") from None


def _count(name: str, mark: str, label: Mapping[str, Any], read: ReadStates) -> dict[str, str | None]:
    """Count the label of a run in a monitor, unless the one that counts has at least its precedence. Return the states to replace.

    The rows of a monitor hold its state before the first of them under the number 0, then the labels in order. The mark of the run holds the
    number of its label. It is empty where an earlier version counted the run, and the row is gone after a reset.
    """
    rows = f"{COUNTED}{name}:"
    start, place, value = f"{rows}{0:012d}", read(mark).get(mark), read(name).get(name)
    row = f"{rows}{place}"
    before = json.loads(read(row).get(row, "null"))
    # A label without levels is not counted, so one of the same precedence may still count.
    if place is not None and (before is None or label["rank"] < before["rank"] + bool(before["levels"])):
        return {}
    if before is not None and before["levels"] and before.get("action") != label.get("action"):
        return {}  # another action of the same session
    state, monitor = json.loads(value or "{}"), monitor_in(name, value)
    number, others = state.get("counted", 0) + 1, []
    changes: dict[str, str | None] = {mark: f"{number:012d}", f"{rows}{number:012d}": json.dumps(label)}
    if start not in read(start):
        changes[start] = json.dumps(state["monitor"])
    if before is not None:
        changes[row] = None
    if before is not None and before["levels"]:
        first, *others = [json.loads(data) for known, data in read(rows).items() if known != row]
        monitor = monitor_in(name, json.dumps({"monitor": first}))
    for each in (*others, label):
        if each["levels"]:
            at = datetime.fromisoformat(each["at"])
            monitor.observe(each["levels"], each["correct"], weight=each["weight"], at=at)
    return {**changes, name: json.dumps({**state, "monitor": monitor.to_dict(), "counted": number})}


def _reset(name: str, read: ReadStates) -> dict[str, str | None]:
    monitor, state = monitor_in(name, read(name)[name]), json.loads(read(name)[name])
    monitor.reset()
    emptied = json.dumps({**state, "monitor": monitor.to_dict()})
    return {**dict.fromkeys(read(f"{COUNTED}{name}:")), name: emptied}


def _is_of(record: Mapping[str, Any], watched: Mapping[str, Any]) -> bool:
    """Return whether a decision or a confidence is that of the watched profile, and no fallback."""
    is_same = record.get("profile", watched["profile"]) == watched["profile"]
    is_same &= record.get("profile_digest") == watched.get("digest", record.get("profile_digest"))
    return is_same and record.get("fitted_at") == watched["fitted_at"] and not record.get("fallback")


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
