"""The watched promise: which labels count, once each, and what gates do about an alarm, also one of another process."""

from __future__ import annotations

import json
import logging
import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import calibrate as cal
from grace_kp.confidence import Thresholds
from grace_kp.errors import SettingsError
from grace_kp.levels import InterventionLevel
from grace_kp.runtime import add_feedback, feedback_entry
from grace_kp.runtime._feedback import mark_program
from grace_kp.runtime._promise import (
    COUNTED,
    REFRESH_SECONDS,
    PromiseWatch,
    count_labels,
    levels_of,
    monitor_of,
    watched_by,
)
from grace_kp.store import mark_of, open_store
from grace_kp.store._record import to_bytes
from grace_kp.testing import ScriptedReviewer, make_grace
from tests.runtime.learned import Learned
from tests.store.samples import Clock, document, put

FITTED = {"fitted_at": "2026-11-01T00:00:00Z"}
PROMISE = {"kind": "selective", "risks": {"silent": 0.05, "notify": 0.15}, "delta": 0.1, "moment": "action"}
WATCHED = {"profile": "learned", "fitted_at": FITTED["fitted_at"], "moment": "action", "fingerprint": ""}


def profile(confidence=0.95, promise=PROMISE):
    learned = Learned(confidence, fitted_on=FITTED)
    learned.promise = promise
    return learned


def watching(folder, **settings):
    settings = {"profile": profile(), "reviewer": ScriptedReviewer("proceed"), "monitor": True} | settings
    return make_grace(store=f"sqlite:///{folder}/t.db", **settings)


def act(grace, name="pay"):
    action = grace.gate(name=name)(lambda: 1)
    with grace.run("work") as run:
        grace.thought("now")
        action()
    grace.flush()
    return grace.store.get(run.id)


def counted(grace, level="silent", action="*"):
    rows = grace.status()["promise"]["figures"]
    return next(((row["n"], row["errors"]) for row in rows if (row["level"], row["action"]) == (level, action)), None)


def break_promise(grace, name="pay"):
    for _ in range(30):
        grace.feedback(act(grace, name).id, False, "audit", probability=1.0)
        if grace.status()["promise"]["alarms"]:
            return
    raise AssertionError("no alarm")


def decision(level="silent", action="pay", **fields):
    return {"action": action, "level": level, "profile": "learned", **FITTED, **fields}


def test_a_label_counts_once_per_run(tmp_path):
    """A correction and repetitions change the trace and not the counts, also in another runtime on the file."""
    with watching(tmp_path) as grace:
        trace = act(grace)
        grace.feedback(trace.id, False, "test")
        grace.feedback(trace.id, True, "test")
        assert ((1, 1), (1, 1), (1, 1)) == (counted(grace), counted(grace, "notify"), counted(grace, action="pay"))
    with watching(tmp_path) as again:
        again.feedback(trace.id, False, "user")
        assert ((1, 1), 3) == (counted(again), len(again.store.get(trace.id).grace["feedback"]))


def test_labels_that_are_no_evidence_do_not_count(tmp_path):
    with watching(tmp_path) as grace:
        trace = act(grace)
        grace.feedback(trace.id, False, "approval")
        grace.feedback(trace.id, 0.5)
        with grace.run("no action") as run:
            pass
        grace.flush()
        grace.feedback(run.id, False)
        assert (0, 0) == counted(grace)


def test_labels_from_elsewhere_count(tmp_path):
    """A runtime without a monitor on the same file counts for all monitors there, and deleting runs deletes no counts."""
    with watching(tmp_path) as grace:
        trace = act(grace)
        grace.status()
        with make_grace(store=f"sqlite:///{tmp_path}/t.db") as other:
            other.feedback(trace.id, True)
            other.store.clear()
        assert (1, 0) == counted(grace)


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([decision()], {"pay": "silent"}),
        ([decision("confirm"), decision("notify"), decision("silent", "mail")], {"pay": "notify", "mail": "silent"}),
        ([decision(fitted_at="2025-01-01T00:00:00Z")], {}),
        ([decision(fallback=True)], {}),
        ([decision(profile="other")], {}),
        ([{"action": "pay", "outcome": "undecided"}, "x", {"action": 3, "level": ["silent"]}], {}),
        ("none", {}),
    ],
)
def test_the_mildest_level_of_each_action_counts(decisions, expected):
    """Of those decisions that this profile made; anything else in a document is skipped."""
    assert (expected, 1.0) == levels_of({"decisions": decisions}, {"correct": True}, WATCHED)


def test_labels_of_runs_count_for_a_promise_about_ended_runs(tmp_path):
    """The level of a run that has ended follows from the thresholds of the profile."""
    learned = profile(0.7, {**PROMISE, "moment": "end"})
    learned.thresholds = Thresholds(0.9, 0.6, 0.3)
    with watching(tmp_path, profile=learned) as grace:
        grace.feedback(act(grace).id, False)
        assert ((0, 0), (1, 1)) == (counted(grace), counted(grace, "notify"))


@pytest.mark.parametrize(
    ("audits", "label", "expected"),
    [
        ([], {}, 1.0),
        ([{"rate": 0.05, "selected": True}], {}, 20.0),
        ([{"rate": 0.05, "selected": False}], {}, None),
        ([{"rate": 0.05, "selected": False}], {"probability": 0.25}, 4.0),
        ([{"rate": 0.5, "selected": False}, {"rate": 0.5, "selected": True}], {}, 4 / 3),
        ([{"rate": 1.0, "selected": True}], {}, 1.0),
    ],
)
def test_the_weight_is_the_inverse_of_the_probability_of_a_label(audits, label, expected):
    """A run that an audit passed over does not count: who labels it anyway did not choose it at random."""
    levels, weight = levels_of(
        {"decisions": [decision(audit=audit) for audit in audits] or [decision()]}, label, WATCHED
    )
    assert (bool(levels), weight if levels else None) == (expected is not None, expected and pytest.approx(expected))


def test_an_alarm_is_reported_once(tmp_path, caplog):
    """In the log, to callbacks, whose exceptions do no harm, and in the status; gates go on as before."""
    seen = []
    with watching(tmp_path) as grace:

        @grace.on_alarm
        def page(alarm):
            seen.append(alarm)
            raise RuntimeError("pager")

        with caplog.at_level(logging.WARNING, "grace_kp"):
            break_promise(grace)
            for _ in range(3):
                grace.status()
        assert "silent" == act(grace).decisions[-1].level
        alarms = {(alarm.action, alarm.level) for alarm in seen}
        assert len(alarms) == len(seen) == sum("is refuted" in record.getMessage() for record in caplog.records)
        assert "report" == grace.status()["promise"]["on_alarm"]


def test_gates_ask_after_an_alarm_where_that_is_set(tmp_path):
    """At the refuted levels, with the reason in the trace, in another runtime too, until `reset_alarms`."""
    with watching(tmp_path, on_alarm="confirm") as grace:
        assert "silent" == act(grace).decisions[-1].level
        break_promise(grace)
    with watching(tmp_path, on_alarm="confirm") as again:
        found = act(again, "mail").decisions[-1]
        assert "confirm" == found.level
        assert "a promise was refuted: all actions, silent: " in found.evidence_gaps[0]
        again.reset_alarms()
        assert ("silent", []) == (act(again).decisions[-1].level, again.status()["promise"]["alarms"])


def test_an_alarm_spares_stricter_levels(tmp_path):
    """If the promise about silent actions is refuted, and the one about notified ones is not, these still run with a notice."""
    risky = profile(promise={**PROMISE, "risks": {"silent": 0.01, "notify": 0.9}})
    with watching(tmp_path, profile=risky, on_alarm="confirm") as grace:
        break_promise(grace)
        assert "confirm" == act(grace).decisions[-1].level
        risky.answer = 0.75
        assert "notify" == act(grace).decisions[-1].level


def test_a_profile_that_was_fitted_again_begins_anew(tmp_path):
    with watching(tmp_path, on_alarm="confirm") as grace:
        break_promise(grace)
    refitted = profile()
    refitted.fitted_on = {"fitted_at": "2026-12-01T00:00:00Z"}
    with watching(tmp_path, profile=refitted, on_alarm="confirm") as grace:
        assert ("silent", (0, 0)) == (act(grace).decisions[-1].level, counted(grace))


def test_an_alarm_outlives_a_change_of_the_monitor(tmp_path):
    """Other risks begin a new test, and what the old one has refuted of this profile stays refuted."""
    with watching(tmp_path) as grace:
        break_promise(grace)
    with watching(tmp_path, monitor=cal.Monitor({"silent": 0.3}), on_alarm="confirm") as grace:
        assert "confirm" == act(grace).decisions[-1].level
        assert (0, 0) == counted(grace)


RUNS = 8
LABEL = st.fixed_dictionaries(
    {"run": st.integers(0, RUNS - 1), "correct": st.sampled_from([True, False, False, 0.5])},
    optional={"by": st.sampled_from(["ana", "ben"]), "program": st.just(True), "probability": st.sampled_from([1, 0.5, 0.01])},
)  # fmt: skip


def stated(run, correct, *, program=False, **fields):
    if program:
        fields["probability"] = None
    entry = feedback_entry(f"kp:trace:{run}", correct, "check", **fields)
    return mark_program(entry) if program else entry


def watched_store(store, count=RUNS):
    for run in range(count):
        put(store, document(run, decisions=[decision(action="pay" if run % 3 else "mail")], user="una"))
    promise = PromiseWatch(cal.Monitor({"silent": 0.05, "notify": 0.2}, max_weight=4.0), profile(), lambda: store)
    promise.refresh()
    return promise


def figures(promise):
    (value,) = promise.states().states("monitor:").values()
    state = json.loads(value)["monitor"]
    return {**state, "alarms": [{**alarm, "at": None} for alarm in state["alarms"]]}


@given(st.lists(LABEL, max_size=40))
def test_displaced_labels_leave_no_trace_in_a_monitor(labels):
    """Whatever the order, the monitor is as if only the labels that count had been stated, in their order."""
    store, pure = open_store("memory:"), open_store("memory:")
    promise, expected = watched_store(store), watched_store(pure)
    for label in labels:
        add_feedback(store, [stated(**label)])

    def rank(label):
        return 1 if label.get("program") else 3 if "by" in label else 2

    def is_usable(label):
        if label.get("program"):
            return label["correct"] is False  # praise by a program delays no alarm
        return label["correct"] != 0.5 and label.get("probability", 1) > 0.1

    for number, label in enumerate(labels):
        others = [(place, each) for place, each in enumerate(labels) if each["run"] == label["run"]]
        best = max(rank(each) for _, each in others)
        first = next((place for place, each in others if rank(each) == best and is_usable(each)), None)
        if number == first:
            add_feedback(pure, [stated(**label)])
    assert figures(expected) == figures(promise)


@given(st.data(), st.lists(st.booleans(), min_size=1, max_size=RUNS))
def test_programs_keep_no_alarm_from_being_raised(data, people):
    """Right labels of programs, anywhere between those of people and on any run, change no figure and no alarm."""
    events = [stated(run, correct, by="ana") for run, correct in enumerate(people)]
    store, pure = open_store("memory:"), open_store("memory:")
    promise, expected = watched_store(store), watched_store(pure)
    add_feedback(pure, events)
    for _ in range(data.draw(st.integers(0, 12))):
        by_program = stated(data.draw(st.integers(0, RUNS - 1)), True, program=True, by="bot")
        events.insert(data.draw(st.integers(0, len(events))), by_program)
    for event in events:
        add_feedback(store, [event])
    assert figures(expected) == figures(promise)
    assert [alarm.level for alarm in expected.refresh()] == [alarm.level for alarm in promise.refresh()]


def about_action(run, action, correct, **fields):
    """A label of one action of a run."""
    entry = feedback_entry(f"kp:trace:{run}", correct, fields.pop("source", "user"), **fields)
    return replace(entry, action=action, data=to_bytes({**json.loads(entry.data), "action": action}))


def acting_runs(store, unit="action", **grace):
    """Three runs, each of them with a silent payment and a notified mail, and what watches a promise about their actions or about runs."""
    for run in range(3):
        decisions = [decision(id=f"pay {run}"), decision("notify", "mail", id=f"mail {run}")]
        put(store, document(run, decisions=decisions, user="una", **grace))
    promise = PromiseWatch(
        cal.Monitor({"silent": 0.05, "notify": 0.2}), profile(promise={**PROMISE, "unit": unit}), lambda: store
    )
    promise.refresh()
    return promise


def all_counts(promise):
    return {(row[0], row[2]): tuple(row[-2:]) for row in figures(promise)["counts"]}


def test_labels_of_actions_count_where_the_promise_is_about_actions():
    """At the level of that action, and labels of runs only where it is about runs; an id that the run does not have counts nowhere."""
    labels = [about_action(0, "mail 0", False), about_action(1, "other", False), stated(2, False)]
    store = open_store("memory:")
    of_actions, of_runs = acting_runs(store), acting_runs(store, "run")
    count_labels(store, labels)
    found = {
        json.loads(value)["unit"] if "unit" in value else "run": value for value in store.states("monitor:").values()
    }
    counts = {unit: json.loads(value)["monitor"]["counts"] for unit, value in found.items()}
    assert [["*", "notify", [0, 1]], ["mail", "notify", [0, 1]]] == [
        [row[0], row[2], row[-2:]] for row in counts["action"]
    ]
    assert [["mail", "notify"], ["pay", "silent"], ["*", "silent"]] == sorted(
        ([row[0], row[2]] for row in counts["run"]), key=lambda row: (row[0] == "*", row)
    )
    assert of_actions.watched["fingerprint"] == of_runs.watched["fingerprint"]


@pytest.mark.parametrize(
    ("grace", "expected"),
    [
        ({}, 3),
        ({"session": "chat"}, 1),
        ({"parent": {"trace_id": "kp:trace:9", "call_id": "c1"}}, 1),
        ({"session": 3}, 3),
    ],
    ids=["runs", "session", "nested", "unreadable"],
)
def test_a_session_counts_once(grace, expected):
    """With its first labelled action, because the others are alike; without a session, a run counts once with the runs around and inside it."""
    store = open_store("memory:")
    promise = acting_runs(store, **grace)
    for run in range(3):
        count_labels(store, [about_action(run, f"pay {run}", False), about_action(run, f"mail {run}", True)])
    assert {("*", "silent"): (0, expected), ("pay", "silent"): (0, expected)} == all_counts(promise)


def test_a_deep_tree_of_runs_counts_once():
    """However deep a run is nested, the outermost one counts; the same task in another session counts once, too."""
    store = open_store("memory:")
    promise = acting_runs(store, metadata={"task_id": "7"})
    for run in range(3, 6):
        around = {"trace_id": f"kp:trace:{run - 1}", "call_id": "c"}
        put(store, document(run, decisions=[decision(id=f"pay {run}")], parent=around))
    for run in range(6):
        count_labels(store, [about_action(run, f"pay {run}", False)])
    assert (0, 1) == all_counts(promise)["*", "silent"]


def test_a_monitor_of_actions_counts_those_of_this_very_profile():
    """Another confidence in actions in it changes the digest, and neither its name nor when it was fitted."""
    store, about_actions = open_store("memory:"), profile(promise={**PROMISE, "unit": "action"})
    about_actions.digest = "sha256:1"
    for run, digest in enumerate(("sha256:1", "sha256:2", None)):
        put(store, document(run, decisions=[decision(id=f"pay {run}", profile_digest=digest)]))
    promise = PromiseWatch(cal.Monitor({"silent": 0.05}), about_actions, lambda: store)
    promise.refresh()
    count_labels(store, [about_action(run, f"pay {run}", False) for run in range(3)])
    assert (0, 1) == all_counts(promise)["*", "silent"]


def test_the_label_of_an_action_is_displaced_by_a_better_one_of_this_action():
    """Not by one of another action of the session, whoever states it. A program counts only where it states an error."""
    store = open_store("memory:")
    promise = acting_runs(store)
    count_labels(store, [mark_program(about_action(0, "pay 0", True, source="test"))])
    assert {} == all_counts(promise)
    count_labels(
        store, [mark_program(about_action(0, "pay 0", False, source="test")), about_action(0, "mail 0", True, by="ana")]
    )
    assert {("*", "silent"): (0, 1), ("pay", "silent"): (0, 1)} == all_counts(promise)
    count_labels(store, [about_action(0, "pay 0", True, by="una"), about_action(0, "pay 0", True, by="ana")])
    assert {("*", "silent"): (1, 0), ("pay", "silent"): (1, 0)} == all_counts(promise)


@pytest.mark.parametrize("source", ["check", "reversal"])
def test_a_check_raises_an_alarm_and_clears_none(source):
    """Its input is the tool's word, so it counts only where it states an error, and any person displaces it."""
    store = open_store("memory:")
    promise = acting_runs(store)
    count_labels(store, [about_action(0, "pay 0", True, source=source)])
    assert {} == all_counts(promise)
    count_labels(store, [about_action(0, "pay 0", False, source=source)])
    assert {("*", "silent"): (0, 1), ("pay", "silent"): (0, 1)} == all_counts(promise)
    count_labels(store, [about_action(0, "pay 0", True, source=source), about_action(0, "pay 0", True, by="ana")])
    assert {("*", "silent"): (1, 0), ("pay", "silent"): (1, 0)} == all_counts(promise)


def test_the_audit_of_the_action_itself_weighs_its_label():
    """Another action of the run may have been drawn with another probability."""
    store = open_store("memory:")
    audits = [{"rate": 0.25, "selected": True}, {"rate": 0.05, "selected": False}]
    decisions = [decision(id=str(number), audit=audit) for number, audit in enumerate(audits)]
    put(store, document(0, decisions=decisions), document(1, decisions=decisions))
    promise = PromiseWatch(
        cal.Monitor({"silent": 0.05}, max_weight=20.0), profile(promise={**PROMISE, "unit": "action"}), lambda: store
    )
    promise.refresh()
    count_labels(store, [about_action(0, "0", False), about_action(1, "1", False)])
    assert [4.0, 4.0] == [row[3] for row in figures(promise)["counts"]]


def test_a_refuted_promise_about_actions_tightens(tmp_path):
    """As for runs: gates ask at the refuted level until the profile is fitted again."""
    about_actions = profile(promise={**PROMISE, "unit": "action"})
    with watching(tmp_path, profile=about_actions, on_alarm="confirm") as grace:
        for _ in range(30):
            trace = act(grace)
            entry = trace.grace["decisions"][0]
            count_labels(grace.store, [about_action(trace.id.removeprefix("kp:trace:"), entry.get("id"), False)])
        assert grace.status()["promise"]["alarms"]
        assert "confirm" == act(grace).decisions[-1].level


def test_a_label_by_the_user_of_the_run_does_not_count():
    store = open_store("memory:")
    promise = watched_store(store)
    for name in ("una", " UNA", "\uff35na", "u\u200bna"):
        add_feedback(store, [stated(1, True, by=name)])
    assert [] == figures(promise)["counts"]
    add_feedback(store, [stated(1, False, by="ana")])
    assert [[0, 1], [0, 1]] == [row[-2:] for row in figures(promise)["counts"]]


def test_a_person_displaces_a_program_after_a_restart(tmp_path):
    """And in another process: each runtime here stands for one; a reset ends what can be displaced."""
    with watching(tmp_path) as grace:
        trace, other, third = (act(grace) for _ in range(3))
        for each in (trace, other):
            grace.feedback(each.id, False, "test", by="bot", program=True)
        assert (2, 2) == counted(grace)
    with watching(tmp_path) as again:
        again.feedback(trace.id, True, by="ana")
        assert (2, 1) == counted(again)
        again.reset_alarms()
        again.feedback(other.id, False, by="ana")
        again.feedback(trace.id, True, by="ben")
        assert (0, 0) == counted(again)
        again.feedback(third.id, False, "test", program=True)
        again.feedback(third.id, True, by="ana")
        assert (1, 0) == counted(again)


def test_a_run_that_an_earlier_version_counted_stays_counted():
    """That version noted only that the run was counted, so its label cannot be replaced."""
    store = open_store("memory:")
    promise = watched_store(store)
    (name,) = store.states("monitor:")
    known = json.loads(store.states(name)[name])
    monitor = cal.Monitor.from_dict(known["monitor"])
    monitor.update("silent", True, action="pay")
    state = json.dumps({**known, "monitor": monitor.to_dict()})
    store.change_states(lambda read: {name: state, mark_of(name, "kp:trace:1"): ""})
    add_feedback(store, [stated(1, False, by="ana"), stated(2, True, program=True), stated(2, False, by="ana")])
    assert ([1, 1], 2) == (figures(promise)["counts"][0][-2:], len(store.states(COUNTED)))


def test_an_alarm_that_a_person_takes_back_ends(tmp_path):
    """A program called good runs wrong; the callback is called once, whatever the figures become on the way."""
    seen = []
    with watching(tmp_path) as grace:
        grace.on_alarm(seen.append)
        traces = [act(grace) for _ in range(12)]
        for trace in traces:
            grace.feedback(trace.id, False, "test", by="bot", program=True)
        assert len(seen) == len({(alarm.action, alarm.level) for alarm in seen}) > 0
        before = len(seen)
        for trace in traces[:-1]:
            grace.feedback(trace.id, True, by="ana")
        assert ([], before) == (grace.status()["promise"]["alarms"], len(seen))


def test_gates_see_alarms_of_other_processes_in_time(tmp_path):
    store, clock = open_store("memory:"), Clock(0.0)
    here, elsewhere = (
        PromiseWatch(cal.Monitor({"silent": 0.05}), profile(), lambda: store, asks=True, clock=clock) for _ in range(2)
    )
    silent = InterventionLevel.SILENT
    assert [] == list(here.reasons_against("pay", silent))
    (name,) = store.states("monitor:")
    state = json.loads(store.states(name)[name])
    monitor = cal.Monitor.from_dict(state["monitor"])
    for _ in range(20):
        monitor.update("silent", False, action="pay")
    store.change_states(lambda read: {name: json.dumps({**state, "monitor": monitor.to_dict()})})
    assert [1, 2] == [len(elsewhere.reasons_against("mail", silent)), len(elsewhere.reasons_against("pay", silent))]
    assert [] == list(here.reasons_against("pay", silent))
    clock.now += REFRESH_SECONDS
    assert 2 == len(here.reasons_against("pay", silent))
    assert [] == list(here.reasons_against("pay", InterventionLevel.NOTIFY))


@pytest.mark.parametrize(("on_alarm", "level"), [("report", "silent"), ("confirm", "confirm")])
def test_alarms_that_cannot_be_read_make_gates_ask_where_that_is_set(tmp_path, on_alarm, level):
    with watching(tmp_path, on_alarm=on_alarm) as grace:
        grace.status()
        with sqlite3.connect(tmp_path / "t.db") as connection:
            connection.execute("UPDATE state SET value = '{\"monitor\": 3}' WHERE name LIKE 'monitor:%'")
        connection.close()
        grace._promise._read_at = None
        found = act(grace).decisions[-1]
        assert level == found.level
        assert "cannot be read as a monitor" in grace.status()["promise"]["error"]
        if on_alarm == "confirm":
            assert "could not be checked" in found.evidence_gaps[0]


def test_a_file_that_is_replaced_loses_no_alarm():
    stores = [open_store("memory:"), open_store("memory:")]
    monitor = cal.Monitor({"silent": 0.05})
    for _ in range(20):
        monitor.update("silent", False)
    promise = PromiseWatch(monitor, profile(), lambda: stores[0], asks=True)
    (alarm,) = promise.refresh()
    stores.pop(0)
    assert (alarm,) == promise.refresh()
    assert 1 == len(stores[0].states("monitor:"))


def test_a_weight_beyond_the_largest_is_not_counted(tmp_path):
    """The bets were bounded by the largest weight in advance; the trouble is counted."""
    with watching(tmp_path) as grace:
        grace.feedback(act(grace).id, True, "audit", probability=0.01)
        assert (0, 0) == counted(grace)
        assert any("max_weight" in trouble for trouble in grace.status()["troubles"])


def test_true_takes_the_promise_of_the_profile():
    """With the largest weight of the audits; what promises nothing cannot be watched."""
    monitor = monitor_of(True, profile(), 0.05)
    assert (PROMISE["risks"], 0.1, "selective", 20.0) == (
        monitor.risks,
        monitor.delta,
        monitor.promise,
        monitor.max_weight,
    )
    own = cal.Monitor({"silent": 0.1})
    assert own is monitor_of(own, "grace")
    with pytest.raises(SettingsError, match="this profile promises nothing"):
        monitor_of(True, "grace")
    with pytest.raises(TypeError, match="not str"):
        monitor_of("yes", "grace")
    assert {"profile": "grace", "fitted_at": None, "moment": "action", "fingerprint": ""} == watched_by("grace")


@pytest.mark.parametrize(
    "promise", ["x", {"risks": {}}, {**PROMISE, "risks": "x"}, {**PROMISE, "delta": []}, {**PROMISE, "kind": 1}]
)
def test_a_promise_that_cannot_be_watched_is_refused(promise):
    with pytest.raises(SettingsError, match="monitor=True cannot watch what the profile promises"):
        monitor_of(True, profile(promise=promise))
