"""Every store passes this suite: keeping, finding, counting and deleting traces, and the ledger of actions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from grace_kp.gating import LedgerEntry
from grace_kp.store import FeedbackEntry, mark_of, open_store, to_bytes
from tests.store.samples import MARK, document, ids, left, put, record

# A store that is added here passes the same suite.
STORES = {"memory": lambda folder: "memory:", "sqlite": lambda folder: f"sqlite:///{folder / 'sub' / 't.db'}"}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    opened = open_store(STORES[request.param](tmp_path))
    yield opened
    opened.close()


def test_put_get_query_count_iterate_clear(store):
    store.put([record(n) for n in range(5)])
    store.put([record(2, score=0.9)])
    assert store.get("kp:trace:2").metadata.quality_score == 0.9
    assert store.get("kp:trace:99") is None
    assert ids(store.query()) == [4, 3, 2, 1, 0]
    assert ids(store.query(limit=2, offset=1)) == [3, 2]
    assert ids(store.query(min_score=0.6)) == [2]
    assert ids(store.iterate()) == [0, 1, 2, 3, 4]
    assert (store.count(), store.clear(), store.count()) == (5, 5, 0)


def test_every_condition(store):
    store.put([
        record(1, domain="finance", score=0.2, text="Refund Ana"),
        record(2, success=False, status="failed", text="任天堂を分析する"),
        record(3, score=0.8, text="NUL \x00 and half \ud800 ÄÖ"),
    ])  # fmt: skip
    assert ids(store.query(domain="finance")) == [1]
    assert ids(store.query(max_score=0.5, min_score=0.3)) == [2]
    assert ids(store.query(success=False)) == [2]
    assert ids(store.query(status="failed")) == [2]
    assert ids(store.query(text="refund")) == [1]
    assert ids(store.query(text="天堂")) == [2]
    assert ids(store.query(text="äö")) == [3]
    assert ids(store.query(since="2026-01-01T00:00:02Z")) == [3, 2]
    assert ids(store.query(until=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))) == [1]
    assert ids(store.query(since="1h")) == []


def completed(number, **fields):
    return replace(record(number, **fields), completes=True)


def test_a_completion_replaces_what_awaits_it(store):
    store.put([record(1, awaits=("judgement", "scores"))])
    store.put([completed(1, score=0.6, awaits=("scores",))])
    assert 0.6 == store.get("kp:trace:1").metadata.quality_score
    store.put([completed(1, score=0.7)])
    store.put([completed(1, score=0.8)])
    assert 0.7 == store.get("kp:trace:1").metadata.quality_score
    store.put([record(2, awaits=("judgement",)), completed(2, score=0.9), completed(2, score=0.1)])
    assert 0.9 == store.get("kp:trace:2").metadata.quality_score
    store.put([record(2)])
    assert 0.5 == store.get("kp:trace:2").metadata.quality_score


def test_a_deleted_run_does_not_come_back_when_it_is_completed(store):
    """Whichever way it was deleted; a run that was never stored is not completed either."""
    store.put([record(n, awaits=("judgement",)) for n in range(4)])
    assert 1 == store.delete(id="kp:trace:0")
    store.put([completed(0), completed(9)])
    assert [3, 2, 1] == ids(store.query())
    store.clear()
    store.put([completed(n) for n in range(4)])
    assert 0 == store.count()


def test_iterating_survives_changes(store):
    """Traces that are deleted while others are read are left out or read, and nothing breaks."""
    store.put([record(n) for n in range(4)])
    seen = []
    for trace in store.iterate():
        seen.append(trace.id)
        store.clear()
    assert "kp:trace:0" == seen[0]


def test_scores_are_found_by_name_and_outcome(store):
    """A condition on a scorer holds for one entry as a whole, not for parts of several."""
    store.put([
        record(1, scores=(("exact", 1.0, True), ("short", 0.2, False))),
        record(2, scores=(("exact", 0.4, False), ("short", None, None))),
        record(3),
    ])  # fmt: skip
    assert [2, 1] == ids(store.query(scorer="exact"))
    assert [1] == ids(store.query(scorer="exact", scorer_passed=True))
    assert [] == ids(store.query(scorer="short", scorer_passed=True))
    assert [2, 1] == ids(store.query(min_scorer=0.4, scorer="exact"))
    assert [2, 1] == ids(store.query(max_scorer=0.5))


def test_attributes_are_all_needed(store):
    attributes = (("tag", "", "a"), ("tag", "", "b"), ("user", "", "ana"), ("metadata", "n", "3"))
    store.put([record(1, attributes=attributes), record(2, attributes=attributes[:1])])
    assert [2, 1] == ids(store.query(tags="a"))
    assert [1] == ids(store.query(tags=["a", "b"]))
    assert [1] == ids(store.query(user="ana", metadata={"n": 3}))
    assert [] == ids(store.query(session="s"))


def test_by_id_session_user_and_age(store):
    old = "2020-01-01T00:00:00.000Z"
    put(
        store,
        document("a", user="ana", session="s1"), document("b", user="ana", session="s2"), document("c", user="ben", session="s1"),
        document("d", created_at=old), document("e", created_at=old, user="ben"), document("f"),
    )  # fmt: skip
    assert (1, 0) == (store.delete(id="kp:trace:f"), store.delete(id="kp:trace:f"))
    assert 1 == store.delete(user="ana", session="s1")
    assert 1 == store.delete(older_than=datetime(2021, 1, 1, tzinfo=UTC), user="ben")
    assert ["b", "c", "d"] == left(store)
    assert 0 == store.delete(older_than=timedelta(days=365 * 5_000))
    assert 1 == store.delete(session="s1")
    assert 2 == store.delete(older_than="0s")
    assert [] == left(store)


def test_nested_runs_go_with_their_run(store):
    """Whichever of the two names the other; the run around a deleted one stays."""
    put(
        store,
        document("root", children=["kp:trace:child"], session="s"),
        document("child", parent={"trace_id": "kp:trace:root", "call_id": "c0"}, children=["kp:trace:grandchild"]),
        document("grandchild"), document("late", parent={"trace_id": "kp:trace:child", "late": True}), document("other"),
    )  # fmt: skip
    assert 1 == store.delete(id="kp:trace:late")
    put(store, document("late", parent={"trace_id": "kp:trace:child", "late": True}))
    report = store.delete(session="s")
    assert (4, True, ()) == (report, report.clean, report.open)
    assert ["other"] == left(store)
    assert {"deleted": 4, "actions": 0, "open": [], "clean": True, "remains": ""} == report.to_dict()


def test_an_entry_of_the_ledger_changes_only_from_what_it_was(store):
    """Of two writers that saw the same entry, one changes it: an action cannot be claimed twice."""
    assert store.action("key") is None
    assert store.put_action("key", b"1", only_if=None)
    assert not store.put_action("key", b"2", only_if=None)
    assert not store.put_action("key", b"2", only_if=b"0")
    assert b"1" == store.action("key")
    assert store.put_action("key", b"2", only_if=b"1")
    assert b"2" == store.action("key")


def test_an_action_that_ran_stays_known_but_not_what_it_returned(store, tmp_path):
    """The ledger never forgets that an action ran, whichever way its decision is named."""
    keys = [f"langgraph|{MARK}|node|0|pay", "langchain|thread|message|decision-1|call", "langgraph|other|node|0|pay"]
    entries = [LedgerEntry(lambda: store, key) for key in keys]
    for entry in entries:
        entry.decide({"level": "confirm", "score": 0.5, "reason": MARK, "digest": "d"})
        assert entry.claim() is None
        entry.record("done", {"paid": MARK}, keep=True)
    decisions = [{"id": entries[0].id}, {"id": "decision-1"}]
    put(store, document("a", decisions=decisions), document("b"))
    report = store.delete(id="kp:trace:a")
    assert (1, 2) == (report, report.actions)
    for number, (key, kept) in enumerate(zip(keys, (False, False, True), strict=True)):
        ran = LedgerEntry(lambda: store, key).claim()
        assert (number, "done", kept) == (number, ran.state, ran.has_result)
        assert "d" == LedgerEntry(lambda: store, key).decision()["digest"]
        assert not store.put_action(key, b"{}", only_if=None)
    assert b"other" in (tmp_path / "t.db").read_bytes() if (tmp_path / "t.db").exists() else True
    if (tmp_path / "t.db").exists():
        assert 0 == (tmp_path / "t.db").read_bytes().count(f"langgraph|{MARK}".encode())


def label(name, correct=True, at=1.0, source="user", **fields):
    return FeedbackEntry(
        f"kp:trace:{name}", at, source, to_bytes({"correct": correct, "source": source, "at": f"{at}", **fields})
    )


def labels(store, name):
    return [entry["correct"] for entry in (store.get(f"kp:trace:{name}").grace or {}).get("feedback", [])]


def test_feedback_is_read_with_its_trace(store):
    store.put([record(1), record(2)])
    assert [] == store.put_feedback([label(1, at=2.0), label(1, False, at=1.0)])
    assert [False, True] == labels(store, 1)
    for traces in (store.query(), list(store.iterate())):
        found = {trace.id: (trace.grace or {}).get("feedback") for trace in traces}
        assert (2, None) == (len(found["kp:trace:1"]), found["kp:trace:2"])
    assert [label(9).trace] == store.put_feedback([label(9), label(2), label(9)])
    assert [True] == labels(store, 2)


def test_feedback_outlives_later_versions_of_its_trace(store):
    """A judgement that comes later, and a run that goes on, replace the document and no label."""
    store.put([record(1, awaits=("judgement",), status="suspended")])
    store.put_feedback([label(1)])
    store.put([completed(1, score=0.9)])
    store.put([record(1, score=0.7)])
    assert ([True], 0.7) == (labels(store, 1), store.get("kp:trace:1").metadata.quality_score)


def test_feedback_goes_with_its_run(store):
    """However it is deleted; a run that is stored again begins without labels."""
    put(store, document("1", user="ana"), document("2", session="s"), document("3"))
    for condition in ({"id": "kp:trace:1"}, {"session": "s"}, {"older_than": "0s"}):
        assert [] == store.put_feedback([label(name) for name in ("1", "2", "3") if store.get(f"kp:trace:{name}")])
        assert 1 == store.delete(**condition)
    put(store, document("1"), document("2"), document("3"))
    assert [[], [], []] == [labels(store, name) for name in "123"]
    store.put_feedback([label(1)])
    store.clear()
    put(store, document("1"))
    assert [] == labels(store, 1)
    store.put_feedback([label(1)])
    assert 1 == store.retain(1)
    put(store, document("1"))
    assert [] == labels(store, 1)


def test_feedback_in_a_document_is_taken_over_once(store):
    """From an export that is imported, and imported again; labels that came meanwhile stay."""
    put(store, document("1"))
    store.put_feedback([label(1, at=5.0), label(1, at=5.0), label(1, False, at=6.0)])
    exported = store.get("kp:trace:1").to_dict()
    store.delete(id="kp:trace:1")
    put(store, exported)
    assert [True, True, False] == labels(store, 1)
    assert [label(9).trace] == store.put_feedback([label(1, 0.5, at=7.0), label(9)])
    put(store, exported)
    put(store, store.get("kp:trace:1").to_dict())
    assert [True, True, False, 0.5] == labels(store, 1)
    assert 1 == store.count(feedback=True)


@pytest.mark.parametrize("feedback", ["good", 3, {"correct": True}, [None, "good", [1]]])
def test_anything_else_under_that_name_is_kept(store, feedback):
    """A document from elsewhere reads as it was written, and may be labelled all the same."""
    put(store, document("1", feedback=feedback))
    assert (feedback, 0) == (store.get("kp:trace:1").grace["feedback"], store.count(feedback=True))
    store.put_feedback([label(1)])
    *others, entry = store.get("kp:trace:1").grace["feedback"]
    assert (feedback if isinstance(feedback, list) else [feedback], True) == (others, entry["correct"])


def test_runs_are_found_by_their_feedback(store):
    store.put([record(n) for n in range(4)])
    store.put_feedback([label(1), label(1, source="audit"), label(2, source="audit"), label(3)])
    assert ([3, 2, 1], [0]) == (ids(store.query(feedback=True)), ids(store.query(feedback=False)))
    assert (
        [2, 1] == ids(store.query(feedback_source="audit")) == ids(store.query(feedback=True, feedback_source="audit"))
    )
    assert [3, 0] == ids(store.query(feedback=False, feedback_source="audit"))
    assert (2, [1, 2]) == (store.count(feedback_source="audit"), ids(store.iterate(feedback_source="audit")))
    with pytest.raises(ValueError, match="feedback must be true or false, not 'audit'"):
        store.query(feedback="audit")


def test_state_changes_from_what_it_is(store):
    """It is read and replaced at once, by name; an exception leaves it; deleting runs leaves it."""
    assert {} == store.states("monitor")
    for word in "ab":
        store.change_states(lambda read, word=word: {"monitor": read("monitor").get("monitor", "") + word})
    with pytest.raises(ZeroDivisionError):
        store.change_states(lambda read: {"monitor": str(1 // 0)})
    store.put([record(1)])
    store.clear()
    store.delete(older_than="1h")
    assert ({"monitor": "ab"}, {}) == (store.states("monitor"), store.states("other"))
    store.change_states(lambda read: {"monitor:2": "c"})
    assert {"monitor": "ab", "monitor:2": "c"} == store.states("monitor")


def test_state_changes_once_for_one_purpose(store):
    """A second change for the same purpose is left out, unless the first failed; other states have purposes of their own."""

    def add(name, once, more=lambda: "x"):
        def change(read):
            mark = mark_of(name, once)
            return {} if mark in read(mark) else {mark: "", name: read(name).get(name, "") + more()}

        store.change_states(change)
        return store.states(name)[name]

    with pytest.raises(ZeroDivisionError):
        add("a", "kp:trace:1", lambda: str(1 // 0))
    assert ["x", "x", "xx", "x"] == [
        add("a", "kp:trace:1"),
        add("a", "kp:trace:1"),
        add("a", "kp:trace:2"),
        add("b", "kp:trace:1"),
    ]


def test_several_states_change_together(store):
    store.change_states(lambda read: {"b": "2", "a": "1", "c": "3", "ax": "4"})
    seen = []

    def change(read):
        seen.extend([read(""), list(read("a")), read("none")])
        return {"b": None, "a": read("a")["a"] + "!", "none": None}

    store.change_states(change)
    assert [{"a": "1", "ax": "4", "b": "2", "c": "3"}, ["a", "ax"], {}] == seen
    with pytest.raises(ZeroDivisionError):
        store.change_states(lambda read: {"a": str(1 // 0)})
    assert {"a": "1!", "ax": "4", "c": "3"} == store.states("")


def test_a_run_that_waits_has_neither_succeeded_nor_failed(store):
    store.put([record(number, status=status) for number, status in enumerate(("waiting", "suspended", "completed"), 1)])
    assert ([3], [], 0) == (ids(store.query(success=True)), ids(store.query(success=False)), store.count(success=False))
    assert ([1], 3) == (ids(store.query(status="waiting")), store.count())
