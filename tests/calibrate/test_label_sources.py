"""The label of one trace: which statement counts, and how many runs it stands for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import ReasoningTrace
from grace_kp import calibrate as cal
from tests.calibrate.examples import run

STEPS = [("thought", "hm")]


def entry(correct, source="user", **fields):
    return {"correct": correct, "source": source, "at": "2026-01-01T00:00:00Z", **fields}


def decision(level="silent", rate=None, selected=False, **fields):
    audit = {} if rate is None else {"audit": {"rate": rate, "selected": selected}}
    return {"action": "pay", "outcome": "executed", "level": level, **audit, **fields}


def label(*, sources=None, volunteered=False, **grace):
    """Label, source and weight of a trace, or why it has none."""
    found = cal.labels([run(STEPS, **grace)], sources, volunteered=volunteered)
    if not found.labels:
        (reason,) = found.left_out
        return reason
    return found.labels[0], found.sources[0], found.weights[0]


def test_the_newest_feedback_counts():
    """Of the accepted sources; an approval is accepted only if it is named."""
    feedback = [entry(True), entry(False, "test"), entry(True, "approval")]
    assert (False, "test", 1.0) == label(feedback=feedback)
    assert (True, "user", 1.0) == label(feedback=feedback, sources="user")
    assert (True, "approval", 1.0) == label(feedback=feedback, sources=["user", "approval"])
    assert "label of another source" == label(feedback=feedback, sources=["audit"])
    assert "label of another source" == label(feedback=feedback[2:])
    assert "no label" == label()


def test_people_count_before_programs():
    """A name before no name, and that before a program, whichever is newer; among equals, the newest."""
    person, unnamed, program = entry(True, by="ana"), entry(0.5), entry(False, by="bot", program=True)
    for feedback in itertools.permutations([person, unnamed, program]):
        assert (True, "user", 1.0) == label(feedback=list(feedback))
    assert (0.5, "user", 1.0) == label(feedback=[unnamed, program])
    assert (False, "user", 1.0) == label(feedback=[person, entry(False, by="ben"), program])
    assert (False, "test", 1.0) == label(feedback=[{**program, "source": "test"}, person], sources="test")
    assert (True, "user", 1.0) == label(feedback=[person, entry(False, by=" \u200b")])


@pytest.mark.parametrize("name", ["ana", "ANA ", "\uff21na", "a\u200bna"])
def test_the_user_of_a_run_never_teaches(name):
    """However the name is written, and although the source is named; without another label the reason says so."""
    own = entry(True, by=name)
    assert "label by the user of the run" == label(feedback=[own], user="ana", sources="user")
    assert (False, "user", 1.0) == label(feedback=[entry(False, by="ben"), own], user="ana")
    assert (False, "user", 1.0) == label(feedback=[entry(False), own], user="ana")
    assert (True, "user", 1.0) == label(feedback=[own], user="ben")
    answer = {"action": "proceed", "reviewer": name}
    assert "no label" == label(sources="approval", decisions=[decision(response=answer)], user="ana")


def test_labels_of_imported_files_count_when_their_file_is_named():
    """And after those of people, whatever names and times they state."""
    imported, later = entry(True, "import:f.jsonl", by="ana"), entry(True, "import:f.jsonl", at="2099-01-01T00:00:00Z")
    assert "label of another source" == label(feedback=[imported])
    assert (True, "import:f.jsonl", 1.0) == label(feedback=[imported], sources="import:f.jsonl")
    assert (False, "user", 1.0) == label(feedback=[entry(False), imported, later], sources=["user", "import:f.jsonl"])


@pytest.mark.parametrize("source", ["approval", "outcome", "own", "scorer:s", "imported"])
def test_an_imported_trace_states_no_other_source(source):
    """Its decisions and scores are claims of the file; only `imported` says so."""
    grace = {"own_success": True, "scores": [{"name": "s", "score": 1.0, "passed": True}], "success_from": "label"}
    decisions = [decision("confirm", response={"action": "proceed", "reviewer": "bob"})]
    assert (True, source, 1.0) == label(sources=source, decisions=decisions, **grace)
    found = label(sources=source, decisions=decisions, imported=True, **grace)
    assert ((True, "imported", 1.0) if source == "imported" else "no label") == found


def test_removed_names_are_nobody():
    """At other privacy levels than `private`, an e-mail address as a name is not stored, so it shows no equality."""
    name = "[REDACTED:email]"
    assert (True, "user", 1.0) == label(feedback=[entry(True, by=name)], user=name)
    answered = decision(response={"action": "proceed", "reviewer": name})
    assert (True, "approval", 1.0) == label(sources="approval", decisions=[answered], user=name)


def test_a_standing_approval_never_teaches():
    """Its author has not seen the action; a refusal by a person beside it counts."""
    standing = decision(response={"action": "proceed", "reviewer": "ana"}, approval={"id": "ap-1", "standing": "st-1"})
    assert "no label" == label(sources="approval", decisions=[standing])
    refused = decision(response={"action": "cancel", "reviewer": "ben"}, approval={"id": "ap-2"})
    assert (False, "approval", 1.0) == label(sources="approval", decisions=[standing, refused])


def test_an_action_that_ran_by_a_standing_approval_is_no_label():
    """As a gate records it; nor is its author counted as a reviewer of this action."""
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=gk.InboxReviewer()) as grace:
        pay = grace.gate(floor="confirm", name="pay")(lambda euros: euros)
        grace.approvals.grant("pay", {"euros": {"any": True}}, until="1h", uses=5, by="ana")
        with grace.run("work"):
            pay(3)
        assert {"no label": 1} == cal.labels(grace, "approval").left_out
        assert () == cal.reviewers(grace.store.iterate()).reviewers


@pytest.mark.parametrize("correct", [None, "yes", 2, -1, [], 10**400])
def test_what_is_no_label_is_passed_over(correct):
    """A file of another program may hold anything."""
    assert "unusable label" == label(feedback=[entry(correct)])
    assert (True, "user", 1.0) == label(feedback=[entry(True), entry(correct), "good", None])
    assert "no label" == label(feedback="good")


def test_numbers_between_stay_numbers():
    """0 and 1 are False and True."""
    assert [(False, "user", 1.0), (True, "user", 1.0), (0.25, "user", 1.0)] == [
        label(feedback=[entry(number)]) for number in (0, 1.0, 0.25)
    ]


def test_a_suspended_run_has_no_label_yet():
    """It has no answer that could be right."""
    assert "not finished" == label(feedback=[entry(True)], status="suspended")


@pytest.mark.parametrize(
    ("feedback", "decisions", "expected"),
    [
        ([entry(True, "audit", probability=0.25)], [], (True, "audit", 4.0)),
        ([entry(True, "audit")], [decision(rate=0.25, selected=True)], (True, "audit", 4.0)),
        ([entry(True, "audit")], [decision(rate=0.5)] * 2, (True, "audit", 1 / 0.75)),
        ([entry(True, "audit")], [decision(rate=0.5), decision("confirm")], (True, "audit", 1.0)),
        ([entry(True, "audit")], [decision()], "audit without a rate"),
        ([entry(True, "audit", probability=0)], [], "audit without a rate"),
        ([entry(True, "audit", probability="x")], [], "audit without a rate"),
        ([entry(True)], [decision("escalate")], (True, "user", 1.0)),
        ([entry(True)], [decision()], (True, "user", 1.0)),
        ([entry(True)], [decision(rate=0.5, selected=True)], (True, "user", 2.0)),
        ([entry(True, "audit"), entry(False)], [decision(rate=0.5, selected=True)], (False, "user", 2.0)),
        ([entry(False)], [decision(rate=0.5)], "not drawn for the audit"),
        ([entry(False, probability=1)], [decision(rate=0.5)], (False, "user", 1.0)),
        ([entry(False)], [decision(rate=1)], (False, "user", 1.0)),
        ([entry(False)], [decision(rate=0.5), decision("confirm")], (False, "user", 1.0)),
    ],
)
def test_weights(feedback, decisions, expected):
    """One over the probability that the run would be labelled; a label without a known one stands for nothing."""
    assert expected == label(feedback=feedback, decisions=decisions)


def test_a_volunteered_label_counts_on_request():
    """With the weight 1, whatever that is worth."""
    found = label(feedback=[entry(False)], decisions=[decision(rate=0.5)], volunteered=True)
    assert (False, "user", 1.0) == found


@pytest.mark.parametrize(
    ("source", "grace", "expected"),
    [
        ("own", {"own_success": False}, False),
        ("own", {}, None),
        ("imported", {"success_from": "reward"}, True),
        ("imported", {"success_from": "assumed"}, None),
        ("outcome", {"decisions": [decision(), decision(outcome="failed")]}, False),
        ("outcome", {"decisions": [decision(), decision(outcome="cancelled")]}, True),
        ("outcome", {"decisions": [decision(outcome="denied")]}, None),
        ("approval", {"decisions": [decision(response={"action": "proceed"})]}, True),
        ("approval", {"decisions": [decision(response={"action": a}) for a in ("proceed", "cancel")]}, False),
        ("approval", {"decisions": [decision(response={"action": "cancel", "timeout_reached": True})]}, None),
        ("approval", {"decisions": [decision()]}, None),
        ("scorer:exact", {"scores": [{"name": "exact", "score": 0.7, "passed": False}]}, False),
        ("scorer:exact", {"scores": [{"name": "exact", "score": 0.7}]}, 0.7),
        ("scorer:exact", {"scores": [{"name": "exact", "error": "no"}, {"name": "other", "score": 1.0}]}, None),
        ("test", {"own_success": True}, None),
    ],
)
def test_sources_in_the_trace_itself(source, grace, expected):
    """Only where they are named; feedback goes before them."""
    assert "no label" == label(**grace)
    assert ("no label" if expected is None else (expected, source, 1.0)) == label(sources=[source], **grace)
    assert (False, "user", 1.0) == label(sources=[source, "user"], feedback=[entry(False, probability=1)], **grace)


@pytest.mark.parametrize("sources", [[], "", ["a b"], [3], ["scorer:"], "x" * 41])
def test_sources_that_cannot_be_are_refused(sources):
    """The message names it."""
    with pytest.raises(ValueError, match="sources"):
        cal.labels([], sources)


def test_groups_are_tasks():
    """With source and domain, because task 0 of one is not task 0 of another; else the objective."""
    trace = run(STEPS, source={"task_id": 0, "source": "tau2"})
    trace["metadata"]["task_domain"] = "airline"
    groups = cal.labels(
        [
            {**each, "grace": {**each["grace"], "feedback": [entry(True)]}}
            for each in (trace, run(STEPS, metadata={"task_id": "7"}), run(STEPS, source=[]))
        ]
    ).groups
    assert ["tau2/airline/task_id=0", "task_id=7", "Send the order"] == groups


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.lists(
    JSON
    | st.fixed_dictionaries({}, optional={"correct": JSON, "source": JSON | st.sampled_from(["user", "audit"]), "probability": JSON}),
    max_size=4,
)  # fmt: skip


@given(ENTRIES | JSON, st.lists(JSON | st.fixed_dictionaries({}, optional={"level": JSON, "audit": JSON, "response": JSON}), max_size=3) | JSON)  # fmt: skip
def test_any_contents_have_a_usable_label_or_a_reason(feedback, decisions):
    """A label is True, False or strictly between 0 and 1, and its weight a number from 1."""
    trace = ReasoningTrace.model_construct(**ReasoningTrace.model_validate(run(STEPS)).__dict__)
    trace.grace = {"feedback": feedback, "decisions": decisions}
    found = cal.labels([trace], None)
    assert 1 == len(found.labels) + sum(found.left_out.values())
    for value, weight in zip(found.labels, found.weights, strict=True):
        assert isinstance(value, bool) or 0 < value < 1
        assert weight >= 1
