"""Labelled runs from stores, files and lists; what weights and thinning are for."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import ReasoningTrace
from grace_kp import calibrate as cal
from grace_kp.errors import InvalidRecord, StoreError
from grace_kp.runtime import record_of
from grace_kp.store import open_store
from tests.calibrate.examples import run

STEPS = [("thought", "hm")]


def labelled(number, correct, source="user", *, domain="default", decisions=(), **fields):
    """A trace in its dict form with one label; none if `correct` is None."""
    feedback = [] if correct is None else [{"correct": correct, "source": source, **fields}]
    trace = run(STEPS, feedback=feedback, objective=f"task {number}", decisions=list(decisions))
    trace["metadata"].update(task_domain=domain, quality_score=0.5)
    return {**trace, "id": f"kp:trace:{number}"}


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path / 't.db'}")
    traces = [labelled(0, True), labelled(1, None), labelled(2, 0.5), labelled(3, False, "approval"), labelled(4, False, domain="code")]  # fmt: skip
    opened.put([record_of(trace) for trace in traces])
    yield opened
    opened.close()


def names(found):
    return [int(trace.id.rpartition(":")[2]) for trace in found.traces]


def test_it_unpacks_to_traces_and_labels(store):
    found = cal.labels(store)
    traces, labels = found
    assert ([0, 2, 4], [True, 0.5, False]) == (names(found), labels)
    assert found.traces is traces
    assert (["user"] * 3, [1.0] * 3) == (found.sources, found.weights)
    assert {"no label": 1, "label of another source": 1} == found.left_out
    assert [0, 2, 3, 4] == names(cal.labels(store, ["user", "approval"]))
    assert ([4], {}) == ((code := cal.labels(store, domain="code")).traces and names(code), code.left_out)


def test_guarantees_use_plain_labels_only(store):
    found = cal.labels(store).binary()
    assert ([0, 4], [True, False]) == (names(found), found.labels)
    assert {"no label": 1, "label of another source": 1, "fractional label": 1} == found.left_out
    assert found == found.binary()


def test_every_place_gives_the_same_labels(store, tmp_path):
    exported = tmp_path / "runs.jsonl.gz"
    gk.write_traces(exported, store.iterate())
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None) as grace:
        places = [store, tmp_path / "t.db", str(tmp_path / "t.db"), f"sqlite:///{tmp_path / 't.db'}", exported, list(store.iterate()), grace]  # fmt: skip
        places += [cal.read_labelled(exported), (trace.to_dict() for trace in store.iterate())]
        for place in places:
            found = cal.labels(place)
            assert ([0, 2, 4], [True, 0.5, False]) == (names(found), found.labels)
            assert {"no label": 1, "label of another source": 1} == found.left_out


def test_a_store_without_feedback_is_read_trace_by_trace(store):
    class Own:
        def iterate(self, **conditions):
            return store.iterate(**conditions)

    assert {"no label": 1, "label of another source": 1} == cal.labels(Own()).left_out


def test_sources_in_the_trace_are_found_without_feedback(store):
    store.put([record_of({**labelled(5, None), "grace": {"own_success": True}})])
    assert ([0, 2, 4, 5], ["user", "user", "user", "own"]) == (
        names(found := cal.labels(store, ["user", "own"])),
        found.sources,
    )


def test_places_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidRecord, match="there is no such file"):
        cal.labels(tmp_path / "nothing.jsonl")
    with pytest.raises(StoreError, match="cannot be opened"):
        cal.labels(f"sqlite:///{tmp_path / 'nothing.db'}")
    with pytest.raises(StoreError, match="unknown store"):
        cal.labels("ftp://nowhere")
    for wrong in (3, None, {"a": 1}):
        with pytest.raises(TypeError, match="labels takes a store, a Grace, a URL, a path or traces"):
            cal.labels(wrong)
    (tmp_path / "runs.jsonl").write_text("")
    for place in ([], tmp_path / "runs.jsonl"):
        with pytest.raises(ValueError, match="conditions such as domain select runs of a store"):
            cal.labels(place, domain="code")
    assert ["runs.jsonl"] == [path.name for path in tmp_path.iterdir()]


def test_what_cannot_be_read_is_counted(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{json.dumps(labelled(1, True))}\n{{\n{json.dumps(labelled(2, False))}\n")
    found = cal.labels(path)
    assert ([True, False], {"unreadable": 1}) == (found.labels, found.left_out)


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
    imported, later = entry(True, "import:f.jsonl", by="ana"), entry(True, "import:f.jsonl", at="2099-01-01T00:00:00Z")
    assert "label of another source" == label(feedback=[imported])
    assert (True, "import:f.jsonl", 1.0) == label(feedback=[imported], sources="import:f.jsonl")
    assert (False, "user", 1.0) == label(feedback=[entry(False), imported, later], sources=["user", "import:f.jsonl"])


@pytest.mark.parametrize("source", ["approval", "outcome", "own", "scorer:s", "imported"])
def test_an_imported_trace_states_no_other_source(source):
    grace = {"own_success": True, "scores": [{"name": "s", "score": 1.0, "passed": True}], "success_from": "label"}
    decisions = [decision("confirm", response={"action": "proceed", "reviewer": "bob"})]
    assert (True, source, 1.0) == label(sources=source, decisions=decisions, **grace)
    found = label(sources=source, decisions=decisions, imported=True, **grace)
    assert ((True, "imported", 1.0) if source == "imported" else "no label") == found


def test_an_action_that_ran_by_a_standing_approval_is_no_label():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=gk.InboxReviewer()) as grace:
        pay = grace.gate(floor="confirm", name="pay")(lambda euros: euros)
        grace.approvals.grant("pay", {"euros": {"any": True}}, until="1h", uses=5, by="ana")
        with grace.run("work"):
            pay(3)
        assert {"no label": 1} == cal.labels(grace, "approval").left_out
        assert () == cal.reviewers(grace.store.iterate()).reviewers


@pytest.mark.parametrize("correct", [None, "yes", 2, -1, [], 10**400])
def test_what_is_no_label_is_passed_over(correct):
    assert "unusable label" == label(feedback=[entry(correct)])
    assert (True, "user", 1.0) == label(feedback=[entry(True), entry(correct), "good", None])
    assert "no label" == label(feedback="good")


def test_a_suspended_run_has_no_label_yet():
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
    assert "no label" == label(**grace)
    assert ("no label" if expected is None else (expected, source, 1.0)) == label(sources=[source], **grace)
    assert (False, "user", 1.0) == label(sources=[source, "user"], feedback=[entry(False, probability=1)], **grace)


@pytest.mark.parametrize("sources", [[], "", ["a b"], [3], ["scorer:"], "x" * 41])
def test_sources_that_cannot_be_are_refused(sources):
    with pytest.raises(ValueError, match="sources"):
        cal.labels([], sources)


def test_groups_are_tasks():
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
