"""Labels of single actions: which action is meant, where the label is stored, and what never takes it for a label of the run."""

from __future__ import annotations

import io

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.errors import InvalidRecord, UnknownTrace
from grace_kp.runtime import store_feedback
from grace_kp.store import CatalogQuery, open_catalog, open_store
from tests.store.samples import document, put


@pytest.fixture
def grace(tmp_path):
    runtime = gk.Grace(store=f"sqlite:///{tmp_path / 't.db'}", evaluator=None, embedder=None, reviewer=None)
    yield runtime
    runtime.close()


def finished(grace, times=2, **attributes):
    """The id of a run with some gated actions that ran."""

    @grace.gate(floor="silent", unmeasured="silent")
    def refund(euros):
        return f"refund of {euros}"

    with grace.run("an objective", **attributes) as run:
        for euros in range(times):
            refund(euros)
    return run.id


def ids_of(grace, name):
    return [decision.id for decision in grace.store.get(name).decisions]


def test_every_decision_has_its_own_id(grace):
    """Also calls of one action with the same arguments."""
    first, second = ids_of(grace, finished(grace))
    assert first != second
    assert all(isinstance(name, str) and name for name in (first, second))


def test_a_label_names_its_action(grace):
    """It is stored under `grace.action_feedback`, with the id of the decision."""
    name = finished(grace)
    first, second = ids_of(grace, name)
    grace.feedback(name, False, action=second, by="ana", note="twice")
    grace.feedback(name, True, action=1)
    stored = grace.store.get(name).grace
    assert [(second, False, "ana"), (first, True, None)] == [
        (each["action"], each["correct"], each.get("by")) for each in stored["action_feedback"]
    ]
    assert "feedback" not in stored


@pytest.mark.parametrize("action", ["3", 3, "no such id", "9" * 400, "0000000011", "#0", "²"])
def test_an_unknown_action_is_refused_with_the_actions_of_the_run(grace, action):
    """One sentence names each with number, name and id."""
    name = finished(grace)
    first, second = ids_of(grace, name)
    with pytest.raises(ValueError, match="no action has the id") as caught:
        grace.feedback(name, False, action=action)
    assert f"1 refund ({first}), 2 refund ({second})" in str(caught.value)


@pytest.mark.parametrize("action", ["", " ", 0, -1, True, 1.0, b"x", "x" * 501])
def test_what_cannot_name_an_action_is_refused(grace, action):
    """Before anything is looked up."""
    with pytest.raises(ValueError, match="action must be the id"):
        grace.feedback("kp:trace:none", False, action=action)


def test_an_id_that_several_actions_have_is_refused(tmp_path):
    """For example the id of one tool call that was decided on twice."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    decisions = [
        {"id": name, "action": "pay", "outcome": "executed", "tool_call_id": "call_1", "approval": {"id": f"ap-{name}"}}
        for name in ("a", "b")
    ]
    put(store, document("x", decisions=decisions))
    with gk.Grace(store=store, evaluator=None, embedder=None) as grace:
        with pytest.raises(ValueError, match="several actions have the id 'call_1'"):
            grace.feedback("kp:trace:x", False, action="call_1")
        grace.feedback("kp:trace:x", False, action="ap-b")
        assert ["b"] == [each["action"] for each in store.get("kp:trace:x").grace["action_feedback"]]


def test_an_int_is_always_the_number(tmp_path):
    """Also where another action has that id. A string that may be both is refused, and `#` before it makes it the number."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    decisions = [
        {"id": name, "action": "pay", "outcome": "executed", "tool_call_id": str(number)}
        for number, name in enumerate("abc")
    ]
    put(store, document("x", decisions=decisions))
    with gk.Grace(store=store, evaluator=None, embedder=None) as grace:
        with pytest.raises(ValueError, match="several actions have the id '1'"):
            grace.feedback("kp:trace:x", False, action="1")
        for action in (1, "#2", "3"):
            grace.feedback("kp:trace:x", False, action=action)
        assert ["a", "b", "c"] == [each["action"] for each in store.get("kp:trace:x").grace["action_feedback"]]


def test_decisions_of_earlier_versions_are_named_by_number(tmp_path):
    """They have no id."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    put(store, document("x", decisions=[{"action": "pay", "outcome": "executed"}] * 2))
    with gk.Grace(store=store, evaluator=None, embedder=None) as grace:
        grace.feedback("kp:trace:x", False, action=2)
        assert ["2"] == [each["action"] for each in store.get("kp:trace:x").grace["action_feedback"]]


def test_an_open_run_has_no_actions_to_label_yet(grace):
    """As with labels of the run."""
    with grace.run("an objective") as run, pytest.raises(UnknownTrace, match="still open"):
        grace.feedback(run.id, True, action=1)


def test_a_label_of_an_action_is_none_of_the_run(grace):
    """Not for queries, labels, figures or the monitor's counts."""
    name = finished(grace)
    grace.feedback(name, False, action=1)
    assert [] == cal.labels(grace).labels
    assert 0 == grace.store.count(feedback=True) == grace.store.count(feedback_source="user")
    assert 1 == grace.store.count(feedback=False)
    catalog = open_catalog(grace.store)
    catalog.refresh()
    assert () == catalog.find(CatalogQuery(feedback=True)).rows
    assert [name] == [row.id for row in catalog.find(CatalogQuery(feedback=False)).rows]
    catalog.close()
    assert [] == cal.labels(grace, "user").labels
    grace.feedback(name, True)
    assert [True] == cal.labels(grace).labels
    assert [False] == [each["correct"] for each in grace.store.get(name).grace["action_feedback"]]


def test_it_does_not_count_for_the_run_where_a_store_mixes_them(tmp_path):
    """A store of the user's may keep all entries in one list."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    entries = [{"correct": False, "source": "user", "action": "a"}]
    decisions = [{"id": "a", "action": "pay", "outcome": "executed"}]
    put(store, document("x", decisions=decisions, feedback=entries))
    assert {"no label": 1} == dict(cal.labels(store).left_out)
    assert [("a", False)] == [(each.id, each.correct) for each in cal.action_labels(store).actions]


def test_earlier_versions_read_no_label_of_the_run(grace, tmp_path):
    """They look for rows of the trace's own id, and delete no others; those of actions go with the run all the same."""
    import sqlite3

    name = finished(grace)
    grace.feedback(name, False, action=1)
    with sqlite3.connect(tmp_path / "t.db") as connection:
        assert [] == connection.execute("SELECT 1 FROM feedback WHERE trace = ?", (name,)).fetchall()
        assert [(1,)] == connection.execute("SELECT COUNT(*) FROM feedback").fetchall()
        connection.execute("DELETE FROM traces WHERE id = ?", (name,))
        assert [(0,)] == connection.execute("SELECT COUNT(*) FROM feedback").fetchall()


def test_labels_of_actions_go_with_their_run_and_outlive_its_versions(grace):
    """As labels of the run do; an export carries them over, each once."""
    name = finished(grace)
    grace.feedback(name, False, action=1, note="wrong order")
    trace = grace.store.get(name)
    other = open_store("memory:")
    for _ in range(2):
        put(other, trace.to_dict())
    assert trace.grace["action_feedback"] == other.get(name).grace["action_feedback"]
    assert 1 == other.delete(id=name)
    put(other, {**trace.to_dict(), "grace": {**trace.grace, "action_feedback": []}})
    assert [] == other.get(name).grace["action_feedback"]


def test_an_audit_of_an_action_needs_its_own_rate(grace):
    """The draw of another action of the run says nothing about this one."""
    store = grace.store
    drawn = {"level": "silent", "score": 0.9, "audit": {"rate": 0.1, "selected": True}}
    decisions = [{"id": name, "action": "pay", "outcome": "executed"} for name in ("a", "b")]
    decisions[1] |= drawn
    put(store, document("x", decisions=decisions))
    with pytest.raises(ValueError, match="share of actions that were chosen"):
        grace.feedback("kp:trace:x", False, "audit", action="a")
    grace.feedback("kp:trace:x", False, "audit", action="b")


def test_rows_of_a_file_name_actions(grace):
    """In a column `action`, by id or number; the other rows label runs."""
    name = finished(grace)
    first, _ = ids_of(grace, name)
    rows = f"trace_id,correct,action\n{name},wrong,2\n{name},right,{first}\n{name},right,\n{name},wrong,7\n"
    *problems, stored = store_feedback(grace.store, io.StringIO(rows), "labels.csv")
    assert 3 == stored
    assert [5] == [problem.line for problem in problems if isinstance(problem, InvalidRecord)]
    grace_part = grace.store.get(name).grace
    assert [False, True] == [each["correct"] for each in grace_part["action_feedback"]]
    assert [True] == [each["correct"] for each in grace_part["feedback"]]
