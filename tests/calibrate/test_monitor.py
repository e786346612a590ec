"""The monitor of promised error rates, and drift of the runs that a profile sees."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grace_kp import calibrate as cal
from grace_kp.levels import InterventionLevel
from tests.calibrate.examples import drawn_runs

RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}
LEVELS = [str(level) for level in InterventionLevel]
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
LABELS = st.lists(
    st.tuples(
        st.sampled_from(LEVELS),
        st.booleans(),
        st.sampled_from([1.0, 2.0, 20.0]),
        st.sampled_from(["*", "refund", "mail"]),
        st.integers(0, 5).map(lambda weeks: MONDAY + timedelta(weeks=weeks)),
    ),
    max_size=60,
)
PROMISES = st.sampled_from(["selective", "overall"])


def fed(labels, promise="selective"):
    """A monitor that has seen these labels."""
    monitor = cal.Monitor(RISKS, promise=promise, max_weight=20)
    for level, correct, weight, action, at in labels:
        monitor.update(level, correct, weight=weight, action=action, at=at)
    return monitor


def figures(monitor):
    """The counts and the wealth of each promise, whatever the order of the classes."""
    names = ("level", "action", "n", "errors", "since")
    rows = [([row[name] for name in names], round(math.log(row["wealth"]), 6)) for row in monitor.report()]
    return sorted(rows, key=str)


def until_alarm(monitor, level, rate, seed=1, **fields):
    """Feed labels with this error rate until an alarm, and return it with their number."""
    source = random.Random(seed)
    for n in range(1, 5_000):
        alarm = monitor.update(level, source.random() >= rate, **fields)
        if alarm is not None:
            return n, alarm
    return None, None


def test_a_broken_promise_raises_an_alarm():
    monitor = cal.Monitor(RISKS)
    n, alarm = until_alarm(monitor, "silent", 0.15)
    assert n < 200
    assert ("silent", "*", 0.05, n) == (alarm.level, alarm.action, alarm.risk, alarm.n)
    assert alarm.errors == round(alarm.rate * n)
    assert alarm.risk < alarm.low < alarm.rate < alarm.high
    assert 60 <= alarm.wealth
    assert (alarm,) == monitor.alarms


def test_an_alarm_stands_until_reset():
    monitor = cal.Monitor(RISKS)
    _, alarm = until_alarm(monitor, "silent", 0.5)
    assert [alarm] * 500 == [monitor.update("silent", True) for _ in range(500)]
    monitor.reset()
    assert () == monitor.alarms
    assert None is monitor.update("silent", True)
    assert [1, 1, 1] == [row["n"] for row in monitor.report()]


def good_streams(streams, seed):
    """Streams in which all three promises hold exactly: levels, and which actions are wrong."""
    source = np.random.default_rng(seed)
    levels = source.integers(0, 3, (streams, 200))
    return levels, source.random(levels.shape) < np.array([0.05, 0.25, 0.75])[levels]


@pytest.mark.parametrize("promise", ["selective", "overall"])
def test_false_alarms_are_rare(promise):
    """In 40 streams that keep every promise exactly, no more alarms than delta and chance explain."""
    levels, wrong = good_streams(40, 3)
    risks = RISKS if promise == "selective" else {"silent": 0.05 / 3, "notify": 0.3 / 3, "confirm": 0.35}
    alarmed = 0
    for stream in range(len(levels)):
        monitor = cal.Monitor(risks, 0.2, promise=promise)
        actions = ["refund", "mail", "search"]
        for number, (level, error) in enumerate(zip(levels[stream], wrong[stream], strict=True)):
            monitor.update(
                LEVELS[level], not error, action=actions[number % 3], at=MONDAY + timedelta(days=number // 2)
            )
        alarmed += bool(monitor.alarms)
    assert stats.binomtest(alarmed, len(levels), 0.2, alternative="greater").pvalue > 1e-6


def test_labels_by_an_audit_need_their_weights():
    """Of 2,000 runs 8 % are wrong. All that were confirmed have labels, and every 18th of the others."""
    weighted, unweighted = cal.Monitor({"confirm": 0.1}, max_weight=18), cal.Monitor({"confirm": 0.1})
    for number in range(2_000):
        if number % 20 == 1:
            weighted.update("silent", True, weight=18)
            unweighted.update("silent", True)
        elif number % 10 == 0:
            weighted.update("confirm", number % 50 == 0)
            unweighted.update("confirm", number % 50 == 0)
    assert (0, 1) == (len(weighted.alarms), len(unweighted.alarms))
    (row,) = weighted.report()
    assert row["low"] < 0.08 < row["high"]
    assert row["rate"] == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("promise", "counts"), [("selective", [(1, 1), (2, 2), (3, 3)]), ("overall", [(4, 1), (4, 2), (4, 3)])]
)
def test_milder_levels_count_for_stricter_promises(promise, counts):
    monitor = cal.Monitor(RISKS, promise=promise)
    for level in LEVELS:
        monitor.update(level, False)
    assert counts == [(row["n"], row["errors"]) for row in monitor.report()]


def test_a_class_has_a_test_of_its_own():
    monitor = cal.Monitor({"silent": 0.1, "notify": 0.3})
    for _ in range(60):
        monitor.update("silent", False, action="refund")
        for _ in range(12):
            monitor.update("silent", True, action="mail")
    assert {"refund"} == {alarm.action for alarm in monitor.alarms}
    assert "refund" == monitor.refuted("silent", "refund").action
    assert None is monitor.refuted("silent", "mail")
    assert None is monitor.refuted("silent")


def test_an_alarm_concerns_its_level_and_milder_ones():
    monitor = cal.Monitor({"notify": 0.05})
    until_alarm(monitor, "notify", 0.5)
    concerned = {level: monitor.refuted(level, "mail") is not None for level in LEVELS}
    assert {"silent": True, "notify": True, "confirm": False, "escalate": False} == concerned


def test_later_classes_have_smaller_parts_of_delta():
    """The k-th class needs a wealth of k (k + 1) / delta, so that any number of classes shares delta."""
    monitor = cal.Monitor({"silent": 0.05}, 0.1)
    wealth = []
    for name in ("a", "b", "c"):
        while not any(alarm.action == name for alarm in monitor.alarms):
            monitor.update("silent", False, action=name)
        wealth.append(next(alarm.wealth for alarm in monitor.alarms if alarm.action == name))
    assert [True] * 3 == [amount >= k * (k + 1) / 0.1 for k, amount in enumerate(wealth, 2)]
    assert wealth[0] < wealth[2]


def test_the_number_of_classes_is_bounded():
    monitor = cal.Monitor(RISKS)
    for number in range(150):
        monitor.update("silent", True, action=f"tool {number}")
    assert (101, 150) == (len(monitor.to_dict()["actions"]), monitor.report()[0]["n"])


def test_a_run_counts_once():
    """Its actions share one label: it counts once per class and once among all, at the mildest level; its id is counted once."""
    monitor = cal.Monitor(RISKS)
    for _ in range(3):
        monitor.observe({"refund": "confirm", "mail": "silent"}, False, trace_id="kp:trace:1")
        monitor.update("notify", True, action="refund", trace_id="kp:trace:1")
    counted = {(row["action"], row["level"]): (row["n"], row["errors"]) for row in monitor.report()}
    assert {(1, 1)} == {counted["*", level] for level in RISKS}
    assert {(1, 1)} == {counted["mail", level] for level in RISKS}
    assert [(0, 0), (0, 0), (1, 1)] == [counted["refund", level] for level in RISKS]


def test_a_rate_that_rises_late_is_found():
    """After 26 good weeks, an error rate of three times the risk is found within 400 labels, although the mean is below the risk."""
    monitor = cal.Monitor(RISKS)
    source = random.Random(8)
    for number in range(26 * 50):
        monitor.update("silent", source.random() >= 0.03, at=MONDAY + timedelta(weeks=number // 50))
    assert () == monitor.alarms
    for number in range(400):
        at = MONDAY + timedelta(weeks=26 + number // 50)
        alarm = monitor.update("silent", source.random() >= 0.15, at=at)
        if alarm is not None:
            break
    assert alarm.since >= "2026-W20"
    assert alarm.low > 0.05


@given(LABELS, LABELS, PROMISES)
def test_merging_is_concatenation(first, second, promise):
    merged, together = fed(first, promise), fed(first + second, promise)
    merged.merge(fed(second, promise))
    assert sorted(together.to_dict()["counts"]) == sorted(merged.to_dict()["counts"])
    assert figures(together) == figures(merged)


def test_merging_finds_what_no_part_shows():
    first, second = halves = [cal.Monitor({"silent": 0.05}) for _ in range(2)]
    for half in halves:
        for correct in (False, False, True, True):
            half.update("silent", correct, at=MONDAY)
    assert ((), ()) == (first.alarms, second.alarms)
    first.merge(second)
    assert 1 == len(first.alarms)
    with pytest.raises(ValueError, match="same promises"):
        first.merge(cal.Monitor({"silent": 0.06}))


@given(LABELS, PROMISES)
def test_the_state_is_plain_json(labels, promise):
    monitor = fed(labels, promise)
    again = cal.Monitor.from_dict(json.loads(json.dumps(monitor.to_dict(), allow_nan=False)))
    assert monitor.to_dict() == again.to_dict()
    assert monitor.alarms == again.alarms
    assert monitor.update("silent", False, at=MONDAY) == again.update("silent", False, at=MONDAY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version"),
        ({"schema": "other"}, "schema"),
        ({"risks": None}, "risks"),
        ({"counts": [["*", "2026-W02", "silent", 1.0, -1, 0]]}, "counts"),
        ({"counts": [["*", "2026-W60", "silent", 1.0, 1, 0]]}, "week"),
        ({"counts": [["*", "2026-W02", "silent", 2.0, 1, 0]]}, "weight"),
        ({"counts": [["x", "2026-W02", "silent", 1.0, 1, 0]]}, "x"),
        ({"alarms": [{"level": "silent"}]}, "action"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused(change, message):
    state = {**cal.Monitor(RISKS).to_dict(), **change}
    with pytest.raises(ValueError, match=message):
        cal.Monitor.from_dict(state)


@pytest.mark.parametrize("correct", [True, 1, 1.0, np.True_, np.int64(1), np.float32(1)])
def test_labels_are_truth_values(correct):
    monitor = cal.Monitor({"silent": 0.5})
    monitor.update("silent", correct)
    monitor.update("silent", 1 - int(correct))
    assert (2, 1) == (monitor.report()[0]["n"], monitor.report()[0]["errors"])


@pytest.mark.parametrize("correct", [0.5, math.nan, math.inf, -1, 2, "1", "wrong", None, [1], b"1"])
def test_other_labels_are_refused(correct):
    """A guarantee has no use for a label between right and wrong, and nothing is counted."""
    monitor = cal.Monitor(RISKS)
    with pytest.raises(ValueError, match="correct must be True or False"):
        monitor.update("silent", correct)
    assert {0} == {row["n"] for row in monitor.report()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "risks"),
        (({"escalate": 0.5},), "escalate"),
        (({"silent": 0.0},), "risks\\['silent'\\]"),
        (({"silent": 1.0},), "risks"),
        (({"silent": math.nan},), "risks"),
        (({"silent": True},), "risks"),
        (({"silent": 0.1}, 0.0), "delta"),
        (({"silent": 0.1}, 1), "delta"),
    ],
)
def test_unusable_promises_are_refused(arguments, message):
    """A risk of 0 would be refuted by one error, and one of 1 by none."""
    with pytest.raises(ValueError, match=message):
        cal.Monitor(*arguments)


def test_unusable_arguments_are_refused():
    with pytest.raises(ValueError, match="promise must be selective or overall"):
        cal.Monitor(RISKS, promise="both")
    with pytest.raises(ValueError, match="max_weight"):
        cal.Monitor(RISKS, max_weight=math.inf)
    monitor = cal.Monitor(RISKS)
    for weight in (2.0, 0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="weight must be a number above 0 and at most max_weight, 1"):
            monitor.update("silent", True, weight=weight)
    with pytest.raises(ValueError, match="level must be one of"):
        monitor.update("quiet", True)
    with pytest.raises(ValueError, match="levels"):
        monitor.observe({}, True)


@given(st.floats(1.0, 1e4), st.booleans())
def test_odd_weights_do_not_fill_the_state(weight, correct):
    monitor = cal.Monitor(RISKS, max_weight=1e4)
    monitor.update("silent", correct, weight=weight)
    ((_, _, _, kept, _, _),) = monitor.to_dict()["counts"]
    assert kept == pytest.approx(weight, rel=0.011)
    assert (kept >= weight * (1 - 1e-9)) if correct else (kept <= weight * (1 + 1e-9))
    assert weight == 1e4 or float(f"{kept:.3g}") == kept


def test_an_alarm_reads_as_a_sentence():
    alarm = cal.Alarm(
        level="silent", action="*", risk=0.05, n=1_260, errors=160, rate=0.127, low=0.06, high=0.225, wealth=108.0, since="2026-W47", at="",
    )  # fmt: skip
    assert (
        "all actions, silent: 160 of 1,260 labels since 2026-W47 are wrong (12.7%, plausible are 6.0% to 22.5%); "
        "promised was at most 5.0%" == str(alarm)
    )
    assert str(dataclasses.replace(alarm, action="refund")).startswith("action 'refund', silent: ")


@pytest.fixture(scope="module")
def profile():
    return cal.fit(*drawn_runs(300, seed=1, tasks=150))


def test_the_same_runs_show_no_drift(profile):
    report = cal.drift(profile, drawn_runs(100, seed=2, tasks=150)[0])
    assert (False, (), 100, 300) == (report.drifted, report.shifted, report.n, report.fitted_runs)
    assert str(report).endswith(f"No new name, and none of {len(report.features)} features shifted.")


def test_false_reports_are_rare(profile):
    """Among 40 sets of runs of the same kind, no more show a shift than the level of the test and chance explain."""
    shifted = sum(bool(cal.drift(profile, drawn_runs(60, seed=seed, tasks=150)[0]).shifted) for seed in range(100, 140))
    assert stats.binomtest(shifted, 40, 0.05, alternative="greater").pvalue > 1e-3


def test_a_shift_is_reported_with_its_direction(profile):
    report = cal.drift(profile, drawn_runs(100, seed=3, share=0.0, tasks=150)[0])
    names = {feature.name: feature for feature in report.shifted}
    assert names["error_rate"].shift > 0.2
    assert names["error_rate"].mean > names["error_rate"].fitted_mean
    shifts = [abs(feature.shift) for feature in report.shifted]
    assert sorted(shifts, reverse=True) == shifts
    assert "error_rate is higher by " in str(report)
    assert "only labels of a random sample" in str(report)


def test_repeated_tasks_are_fewer_runs(profile):
    shifted = 0
    for seed in range(200, 220):
        repeated = drawn_runs(10, seed=seed, tasks=150)[0] * 10
        shifted += bool(cal.drift(profile, repeated).shifted)
    assert shifted <= 4


def test_new_names_are_counted(profile):
    runs, _ = drawn_runs(40, seed=4, tasks=150)
    for number, document in enumerate(runs):
        document["metadata"]["agent_id"] = "kp:agent:clerk" if number % 4 else "kp:agent:novice"
    runs[0]["steps"].append({"step_id": 99, "type": "tool_call", "tool": {"name": "refund"}, "input": {}})
    report = cal.drift(profile, runs)
    assert {"agents": {"kp:agent:novice": 10}, "models": {}, "tools": {"refund": 1}} == report.new
    assert report.drifted
    assert "New agent 'kp:agent:novice' in 10 runs (25%)." in str(report)


def test_few_runs_are_refused(profile):
    with pytest.raises(ValueError, match=r"at least 30 runs.*\(got 29\)"):
        cal.drift(profile, drawn_runs(29)[0])
    with pytest.raises(ValueError, match="moment"):
        cal.drift(profile, drawn_runs(30)[0], moment="middle")
    for moment in ("end", "action"):
        with pytest.raises(ValueError, match="the profile judges actions only"):
            cal.drift(dataclasses.replace(profile, heads={}), drawn_runs(30)[0], moment=moment)
