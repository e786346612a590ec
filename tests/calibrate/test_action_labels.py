"""Labels of actions: which statement counts, what it weighs, and which may enter a promise."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.calibrate._actions import recorded_features
from grace_kp.store import FeedbackEntry, open_store
from tests.store.samples import document, put


def action(name="a", **fields):
    return {"id": name, "action": "pay", "outcome": "executed", "arguments": {"euros": 5}, "digest": "d", **fields}


def answer(verb, **fields):
    return {"action": verb, "reviewer": "ana", "timeout_reached": False, **fields}


def label(correct=True, source="user", **fields):
    return {"correct": correct, "source": source, "action": "a", **fields}


def labelled(*decisions, sources=None, volunteered=False, **grace):
    found = cal.action_labels([document("x", decisions=[*decisions], **grace)], sources, volunteered=volunteered)
    return [(each.correct, each.source, each.weight, each.is_audited) for each in found.actions] or dict(found.left_out)


def edited(**fields):
    response = answer("modify", modified={"euros": 4})
    return action(
        **{"outcome": "executed_modified", "executed_digest": "e", "level": "confirm", "response": response, **fields}
    )


def test_an_edit_and_a_rejection_with_a_reason_say_that_the_call_was_wrong():
    """A person saw exactly this call, so they may enter a promise."""
    assert [(False, "edit", 1.0, True)] == labelled(edited())
    cancelled = action(outcome="cancelled", level="confirm", response=answer("cancel", user_input="wrong order"))
    assert [(False, "rejection", 1.0, True)] == labelled(cancelled)
    assert [(False, "edit", 1.0, True)] == labelled(edited(outcome="cancelled", executed_digest=None))


@pytest.mark.parametrize(
    "decision",
    [
        action(response=answer("proceed", user_input="looks good")),
        action(outcome="cancelled", response=answer("cancel")),
        action(outcome="cancelled", response=answer("cancel", user_input="  ")),
        action(outcome="cancelled", response=answer("cancel", user_input="[not captured]")),
        action(outcome="timed_out", response=answer("cancel", user_input="x", timeout_reached=True)),
        action(outcome="redirected", response=answer("input", user_input="ask first")),
        edited(approval={"id": "ap", "standing": "st-1"}),
        edited(outcome="executed", executed_digest=None),
        edited(response=answer("modify", modified={"euros": 5}), outcome="cancelled", executed_digest=None),
        action(response="modify"),
        action(),
    ],
)
def test_nothing_else_in_a_trace_is_a_label(decision):
    """No approval, timeout, standing approval, skipped question, or edit that changed nothing."""
    assert {"no label": 1} == labelled(decision)


def test_the_user_of_the_run_labels_nothing():
    """Neither by feedback nor as a reviewer."""
    assert {"label by the user of the run": 1} == labelled(edited(), user="Ana ")
    assert {"label by the user of the run": 1} == labelled(action(), user="ana", action_feedback=[label(by="ANA")])
    assert [(False, "user", 1.0, True)] == labelled(
        action(), user="ana", action_feedback=[label(False, by="ben"), label(by="ana")]
    )


def test_an_imported_trace_states_no_answers():
    """Whoever wrote the file may have written them into it."""
    assert {"no label": 1} == labelled(edited(), imported=True)


def test_labels_that_an_older_version_took_from_a_file_do_not_count():
    """It kept their sources, so they look like those of people here."""
    imported = {"imported": True, "action_feedback": [label(by="ana"), label(source="import:f.jsonl")]}
    assert {"label of another source": 1} == labelled(action(), **imported)
    assert {"no label": 1} == labelled(action(), **imported | {"action_feedback": [label(by="ana")]})
    assert (
        0 == cal.replay([document("x", decisions=[action(level="silent", score=0.9)], **imported)], None).actions.right
    )


@pytest.mark.parametrize("level", ["silent", "notify"])
def test_a_volunteered_label_of_an_action_that_ran_unasked_enters_no_promise(level):
    """With no audit configured, nobody knows how many others it stands for. With a probability it does."""
    ran = action(level=level, score=0.9)
    assert [(True, "user", 1.0, False)] == labelled(ran, action_feedback=[label()])
    assert [(True, "test", 4.0, True)] == labelled(ran, action_feedback=[label(source="test", probability=0.25)])
    assert [(True, "user", 1.0, True)] == labelled(ran | {"level": "confirm"}, action_feedback=[label()])


@pytest.mark.parametrize("junk", ["junk", {"outcome": "executed"}, {"action": 5}, None])
def test_an_entry_that_cannot_be_read_shifts_no_label(junk):
    """Decisions without an id are numbered with it, everywhere."""
    pay, send = ({"action": name, "level": "silent", "score": 0.9, "outcome": "executed", "step": 0, "arguments": {name: 1}} for name in ("pay", "send"))  # fmt: skip
    run = document("x", decisions=[junk, pay, send], action_feedback=[label(False, action="2")])
    found = cal.action_labels([run])
    assert [("pay", "2", 1)] == [(each.tool, each.id, each.position) for each in found.actions]
    assert ("pay",) == cal.fit_actions(found).tools
    assert [("pay", 0)] == [(each.action, each.label) for each in cal.replay([run], "recorded", cal.ReplayPolicy(thresholds=gk.Thresholds(1, 0.99, 0.98))).actions.first]  # fmt: skip
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as grace:
        put(grace.store, document("x", decisions=[junk, pay, send]))
        grace.feedback("kp:trace:x", True, action=3)
        assert ["send"] == [each.tool for each in cal.action_labels(grace).actions]
        with pytest.raises(ValueError, match="2 pay"):
            grace.feedback("kp:trace:x", True, action=1)


def replayed(run):
    counted = cal.replay([run], "recorded").actions
    return counted.right, counted.wrong


def test_replays_count_the_label_that_counts():
    """A rejection with a reason is one; a check does not displace a person's label of the run; a repeated decision has one label."""
    person, check = {"correct": False, "source": "user", "by": "ana"}, label(source="check", program=True)
    ran = action(level="confirm", score=0.5)
    rejected = ran | {"outcome": "cancelled", "response": answer("cancel", user_input="wrong order")}
    assert (0, 1) == replayed(document("x", decisions=[rejected], feedback=[person | {"correct": True}]))
    assert (0, 1) == replayed(document("x", decisions=[ran], feedback=[person], action_feedback=[check]))
    assert (1, 0) == replayed(document("x", decisions=[ran], action_feedback=[check]))
    assert (1, 0) == replayed(document("x", decisions=[ran], feedback=[person], action_feedback=[label()]))
    assert (0, 1) == replayed(document("x", decisions=[ran, ran], action_feedback=[label(False)]))


def test_people_come_before_programs_and_both_before_checks():
    """An answer of a reviewer is a label of a person."""
    check, test = label(True, "check", program=True), label(True, "test", program=True)
    assert [(True, "test", 1.0, False)] == labelled(action(), action_feedback=[test, check])
    assert [(True, "check", 1.0, False)] == labelled(action(), action_feedback=[check])
    assert [(False, "edit", 1.0, True)] == labelled(edited(), action_feedback=[check, test, label(True)])
    assert [(True, "user", 1.0, True)] == labelled(edited(), action_feedback=[label(True, by="ben")])
    assert [(False, "reversal", 1.0, False)] == labelled(
        action(), action_feedback=[check, label(False, "reversal", program=True)]
    )


def test_the_label_of_another_action_or_of_the_run_is_none():
    """By the id of the decision, or by number where it has none."""
    assert {"no label": 1} == labelled(action(), feedback=[{"correct": False, "source": "user"}])
    assert {"no label": 1} == labelled(
        action(), action_feedback=[label(action="b"), {"correct": True, "source": "user"}]
    )
    old = {name: value for name, value in action().items() if name != "id"}
    found = cal.action_labels([document("x", decisions=[old, old], action_feedback=[label(False, action="2")])])
    assert [(1, "2", "pay", False)] == [(each.position, each.id, each.tool, each.correct) for each in found.actions]


def test_weights_follow_the_draw_of_the_action():
    """One that was not drawn is left out, or kept for fitting; a check of every call needs no draw."""
    drawn, passed = (
        {"level": "silent", "score": 0.9, "audit": {"rate": 1 / 32, "selected": each}} for each in (True, False)
    )
    assert [(True, "audit", 32.0, True)] == labelled(action(**drawn), action_feedback=[label(source="audit")])
    assert [(True, "user", 32.0, True)] == labelled(action(**drawn), action_feedback=[label()])
    assert {"not drawn for the audit": 1} == labelled(action(**passed), action_feedback=[label()])
    assert [(True, "user", 1.0, False)] == labelled(action(**passed), action_feedback=[label()], volunteered=True)
    check = label(source="check", program=True, probability=1.0)
    assert [(True, "check", 1.0, False)] == labelled(action(**drawn), action_feedback=[check])
    assert [(True, "user", 4.0, True)] == labelled(action(**passed), action_feedback=[label(probability=0.25)])
    other = [action("b", **drawn), action(**passed)]
    assert {"no label": 1, "not drawn for the audit": 1} == labelled(*other, action_feedback=[label()])
    check["by"] = None
    assert [(True, "user", 1.0, False)] == labelled(action(level="silent", score=0.9), action_feedback=[check, label()])
    (found,) = cal.action_labels([document("x", decisions=[action(**drawn)], action_feedback=[label()])]).actions
    assert (32.0, 20.0) == (found.weight, found.fit_weight)


def test_sources_are_chosen_by_name():
    """All count by default but approvals and those of files."""
    entries = [label(source="approval"), label(source="import:x.jsonl")]
    assert {"label of another source": 1} == labelled(action(), action_feedback=entries)
    assert [(True, "import:x.jsonl", 1.0, False)] == labelled(
        action(), action_feedback=entries, sources="import:x.jsonl"
    )
    assert {"label of another source": 1} == labelled(edited(), sources="user")
    with pytest.raises(ValueError, match="is not a source"):
        cal.action_labels([], "a b")


def test_it_unpacks_to_runs_and_labels_by_position():
    """As `fit_actions` takes them."""
    entries = [label(False, action="b"), label(action="a")]
    first = document("1", decisions=[action("a"), action("b"), action("c")], action_feedback=entries)
    traces, labels = cal.action_labels([first, document("2"), document("3", decisions=[edited()])])
    assert ["kp:trace:1", "kp:trace:3"] == [trace.id for trace in traces]
    assert [{0: True, 1: False}, {0: False}] == labels


def test_runs_of_a_store_and_of_its_path(tmp_path):
    """With conditions; a run that waits is left out until it ends."""
    path = tmp_path / "t.db"
    store = open_store(f"sqlite:///{path}")
    put(store, document("1", decisions=[edited()]), document("2", decisions=[edited()], status="waiting"))
    for source in (store, path, f"sqlite:///{path}"):
        found = cal.action_labels(source)
        assert (1, {"not finished": 1}) == (len(found.actions), dict(found.left_out))
    assert [] == cal.action_labels(store, domain="nowhere").actions
    with pytest.raises(ValueError, match="conditions such as domain"):
        cal.action_labels([], domain="x")


def test_a_tree_of_runs_and_a_session_are_one_group():
    """Also where the runs between are not labelled, or do not meet the conditions; a task id comes before a session."""

    def nested(number, **fields):
        around = {"parent": {"trace_id": f"kp:trace:{number - 1}", "call_id": "c"}} if number else {}
        return document(str(number), decisions=[edited()] if number in (0, 3) else [], **(around | fields))

    def groups(*runs):
        return cal.action_labels([*runs]).groups

    tree = [nested(number) for number in range(4)]
    assert 1 == len(set(groups(*tree))) == len(set(groups(*tree[::-1])))
    first, second, other = (document(name, decisions=[edited()], session=name[0]) for name in ("s1", "s2", "t1"))
    assert ["session=s", "session=s", "session=t"] == groups(first, second, other)
    assert ["session=s"] * 2 == groups(nested(0, session="s"), nested(1), nested(2), nested(3))
    tasks = [document(name, decisions=[edited()], session=name, metadata={"task_id": 7}) for name in "ab"]
    assert ["task_id=7"] * 2 == groups(*tasks)
    loop = [nested(3), nested(0, parent={"trace_id": "kp:trace:3"})]
    assert 2 == len(groups(*loop))

    store = open_store("memory:")
    put(store, *(nested(number, tags=[] if number in (1, 2) else ["kept"]) for number in range(4)))
    found = cal.action_labels(store, tags=["kept"])
    assert (2, 1) == (len(found.actions), len(set(found.groups)))


def chat(*actions, **fields):
    def call(name, text):
        return {"id": "c", "type": "function", "function": {"name": name, "arguments": text}}

    messages = [
        {"role": "user", "content": "cancel my two orders"},
        {"role": "assistant", "content": None, "tool_calls": [call("look", "{}")]},
        {"role": "tool", "tool_call_id": "c", "content": "orders 1 and 2"},
        {"role": "assistant", "content": "Both.", "tool_calls": [call("cancel", '{"order": 1}'), call("cancel", "not json")]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]  # fmt: skip
    return {"source": "tau", "task_id": "t1", "messages": messages, "actions": [*actions], **fields}


def listed(call, right, **fields):
    return {"message": 3, "call": call, "name": "cancel", "right": right, "why": "", **fields}


@pytest.mark.parametrize("fields", [{}, {"objective": "Task 7"}])
def test_the_words_of_the_user_in_a_chat_are_the_users(tmp_path, fields):
    """The first message, also where the objective is stated elsewhere, and every later one."""
    accounts = ("DE89370400440532013000", "DE75512108001245126199")
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "pay", "arguments": json.dumps({"iban": account})}}
        for n, account in enumerate(accounts)
    ]
    messages = [
        {"role": "user", "content": f"I may pay {accounts[0]}, please wait."},
        {"role": "assistant", "content": "Where to?"},
        {"role": "user", "content": f"Please send 120 euros to {accounts[1]}. Yes, confirmed."},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]
    path = tmp_path / "chat.jsonl"
    actions = [{"message": 3, "call": call, "name": "pay", "right": 1} for call in (0, 1)]
    path.write_text(json.dumps({"id": "u", "messages": messages, "actions": actions} | fields))
    labels = cal.action_labels(path)
    (trace,) = {id(each.trace): each.trace for each in labels.actions}.values()
    assert ["user", "user"] == [cal.provenance(trace, each.position)[0].kind for each in labels.actions]
    for each in labels.actions:
        known = recorded_features(trace.to_dict(), each.position)
        assert () == known.alarms
        found = known.as_dict()
        assert (0, 1) == tuple(found[name] for name in ("beside", "confirmed"))


def test_a_label_of_an_action_among_those_of_runs_is_no_label_of_the_run():
    """Also in a store that took the trace over; a newer label of the action displaces it."""
    store = open_store("memory:")
    decision = {"id": "d0", "action": "pay", "outcome": "executed", "step": 0, "arguments": {}}
    row = {"correct": True, "source": "user", "by": "ana", "action": "d0", "at": "2026-01-02T03:04:05.000Z"}
    put(store, document(1, decisions=[decision], feedback=[row]))
    assert 0 == store.count(feedback=True)
    newer = {**row, "correct": False, "at": "2026-02-02T03:04:05.000Z"}
    store.put_feedback([FeedbackEntry("kp:trace:1", 9e9, "user", json.dumps(newer).encode(), "d0")])
    (label,) = cal.action_labels(store).actions
    assert not label.correct
    assert [] == cal.labels(store).labels


def test_a_file_of_chats_lists_its_actions(tmp_path):
    """Each becomes a decision with the number of steps before it; null is no label."""
    path = tmp_path / "actions.jsonl.gz"
    path.write_bytes(
        gzip.compress("\n".join(map(json.dumps, [chat(listed(0, 1), listed(1, 0)), chat(listed(0, None))])).encode())
    )
    found = cal.action_labels(path)
    assert {"no label": 1} == dict(found.left_out)
    assert [("cancel", True, True), ("cancel", False, True)] == [
        (each.tool, each.correct, each.is_audited) for each in found.actions
    ]
    decisions = found.actions[0].trace.decisions
    assert [({"order": 1}, 3), ({}, 4)] == [(each.arguments, each.step) for each in decisions]
    assert ["tool_call"] * 2 == [str(found.actions[0].trace.steps[each.step].type) for each in decisions]
    assert ["tau/task_id=t1"] == list({each.group for each in found.actions})
    assert {"label of another source": 2, "no label": 1} == dict(cal.action_labels(path, "user").left_out)


def test_a_file_may_state_no_label_that_cannot_be_used_and_no_call_twice(tmp_path):
    """Words count as in other labels; anything else is counted as unusable, and a run that lists a call twice is left out."""
    path = tmp_path / "actions.jsonl"
    for right, expected in ((2, "unusable label"), ("yes please", "unusable label"), ({}, "unusable label"), (None, "no label")):  # fmt: skip
        path.write_text(json.dumps(chat(listed(0, right))))
        assert {expected: 1} == dict(cal.action_labels(path).left_out)
    path.write_text(json.dumps(chat(listed(0, "passed"))))
    assert [True] == cal.action_labels(path).labels
    path.write_text(json.dumps(chat(listed(0, 1), listed(0, 0))))
    assert {"unreadable": 1} == dict(cal.action_labels(path).left_out)
    (problem,) = cal.read_actions(path)
    assert "listed twice" in str(problem)


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["message", "call", "name", "right"]), inner, max_size=4), max_leaves=8))  # fmt: skip
def test_anything_else_under_actions_leaves_the_run_out_or_without_labels(tmp_path_factory, listing):
    """A file of another program may hold anything there."""
    path = tmp_path_factory.mktemp("files") / "x.jsonl"
    path.write_text(json.dumps(chat() | {"actions": listing}))
    found = cal.action_labels(path)
    assert [] == found.actions
    assert set(found.left_out) <= {"unreadable"}


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "correct": st.sampled_from([True, False, 0.5, "yes", None]),
            "source": st.sampled_from(["user", "test", "check", "reversal", "audit", "approval", "import:x", 3]),
        },
        optional={
            "action": st.sampled_from(["a", "b", "", 1]),
            "by": st.sampled_from(["ana", "ben", "cleo"]),
            "program": st.booleans(),
            "probability": st.sampled_from([1.0, 0.5, 0, "x"]),
        },
    ),
    max_size=6,
)


@given(ENTRIES, ENTRIES)
def test_labels_of_the_run_and_of_each_action_never_mix(feedback, of_actions):
    """Whatever list of the trace holds them."""
    decisions = [action("a"), action("b")]

    def runs(**grace):
        found = cal.labels([document("x", decisions=decisions, user="ana", **grace)], volunteered=True)
        return found.labels, found.sources, found.weights, dict(found.left_out)

    def of(name, **grace):
        found = cal.action_labels([document("x", decisions=decisions, user="ana", **grace)], volunteered=True)
        return [(each.correct, each.source, each.is_audited) for each in found.actions if each.id == name]

    assert runs(feedback=feedback, action_feedback=of_actions) == runs(
        feedback=[entry for entry in feedback if "action" not in entry]
    )
    for name in ("a", "b"):
        about = [entry for entry in [*of_actions, *feedback] if entry.get("action") == name]
        assert of(name, feedback=feedback, action_feedback=of_actions) == of(name, action_feedback=about)
        for correct, source, is_audited in of(name, action_feedback=about):
            assert correct in {True, False, 0.5}
            assert not (is_audited and source in {"check", "reversal"})
