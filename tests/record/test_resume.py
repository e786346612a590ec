"""A run that waits is stored, found again by where it stopped, and continued at most once."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.record import Conversations, Pause
from grace_kp.record._resume import EarlierPart, left_without_answer
from grace_kp.runtime import record_of


def suspended(number=1, *, thread="t", checkpoint="c1", place=None, steps=(1, 2), **grace):
    """The document of a suspended run of a framework."""
    facts = {"thread_id": thread, "checkpoint_id": checkpoint, "place": place, "steps": list(steps)}
    facts = {name: value for name, value in facts.items() if value is not None}
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:00000000-0000-4000-8000-{number:012d}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:app", "framework": "frame",
            "task_domain": "default", "success": True, "quality_score": 0.0, "visibility": "private",
            "privacy_level": "private",
        },
        "task": {"objective": "q"},
        "steps": [{"step_id": 0, "type": "thought", "content": "hm"}],
        "outcome": {"result_summary": "", "confidence": 0.5},
        "grace": {"status": "suspended", "name": "app", "frame": facts, **grace},
    }  # fmt: skip


@pytest.fixture
def writer():
    with gk.Grace(store="memory:", evaluator=None, embedder=None) as grace:
        yield grace._writer


def conversations_of(writer):
    return Conversations(writer.store, writer.write_now, writer.write_pending)


@pytest.fixture
def conversations(writer):
    return conversations_of(writer)


def put(writer, *documents):
    writer.store().put([record_of(document) for document in documents])


@pytest.mark.parametrize(
    ("pause", "found"),
    [
        (Pause("t", "c1", None), True),
        (Pause("t", "c2", None), False),
        (Pause("u", "c1", None), False),
        (Pause("t", None, "node:1"), False),
    ],
)
def test_a_run_is_found_by_thread_checkpoint_and_place(writer, conversations, pause, found):
    put(writer, suspended())
    assert found == (conversations.find(pause, pause.thread) is not None)


def test_an_imported_run_is_not_continued(writer, conversations):
    """Nothing that a file states becomes part of a recorded run."""
    put(writer, suspended(imported=True))
    assert conversations.find(Pause("t", "c1", None), "t") is None
    nested = suspended(imported=True)["id"]
    calls = [{"call_id": "c0", "tool_call": 0, "status": "ok", "child": nested}]
    assert {nested: [None]} == conversations.nested_in(suspended(2, calls=calls))


def test_a_nested_run_is_found_by_its_place(writer, conversations):
    put(writer, suspended(checkpoint=None, place="node:1"))
    assert conversations.find(Pause("t", None, "node:1"), "t") is not None


def test_a_store_that_fails_leaves_a_new_run(conversations, writer, monkeypatch, caplog):
    """The trouble is noted, and nothing reaches the agent."""

    def broken(**conditions):
        raise gk.StoreError("gone")

    monkeypatch.setattr(writer.store(), "query", broken)
    assert conversations.find(Pause("t", "c1", None), "t") is None


def test_a_suspended_run_is_continued_once_for_each_time_it_waited(conversations):
    """A second answer to the same question gets a trace of its own."""
    assert [True, False] == [conversations.claim(suspended()) for _ in range(2)]
    assert [True, False] == [conversations.claim(suspended(resumed=1)) for _ in range(2)]


@pytest.mark.parametrize(("stored", "rival"), [(0, False), (1, True), (2, True)])
def test_a_rival_of_another_process_is_seen_in_the_store(writer, conversations, stored, rival):
    put(writer, suspended(resumed=stored))
    assert rival == conversations.has_rival(suspended(resumed=1))


def test_of_two_processes_that_end_at_the_same_moment_one_keeps_the_trace(writer):
    """Neither has stored its trace when the other one looks; without this, one trace would replace the other."""
    first, second = conversations_of(writer), conversations_of(writer)
    put(writer, suspended())
    assert [False, True, False] == [process.has_rival(suspended(resumed=1)) for process in (first, second, first)]
    assert not second.has_rival(suspended(resumed=2))


def test_a_thread_that_moves_on_closes_what_it_leaves_behind(writer, conversations):
    """Also the runs nested in it; a run that is being continued stays."""
    nested = suspended(2, place="node:1", checkpoint=None, parent={"trace_id": suspended()["id"], "call_id": "c0"})
    taken = suspended(3)
    put(writer, suspended(), nested, taken)
    conversations.claim(taken)
    closed = conversations.close_superseded(suspended(9, steps=(3, 4), status="completed"), record_of)
    assert {suspended()["id"], nested["id"]} == {document["id"] for document in closed}
    stored = writer.store().get(suspended()["id"])
    assert ("closed", False) == (stored.grace["status"], stored.metadata.success)
    assert "suspended" == writer.store().get(taken["id"]).grace["status"]


def test_the_first_run_of_a_thread_leaves_nothing_behind(writer, conversations):
    put(writer, suspended())
    assert [] == conversations.close_superseded(suspended(9, steps=(1, 2)), record_of)


@pytest.mark.parametrize("other", [{"thread": "u"}, {"steps": (5, 6)}, {"place": "node:1"}])
def test_other_threads_and_later_steps_are_not_superseded(other):
    assert [] == left_without_answer(suspended(9, steps=(3, 4)), [suspended(**other)])


def test_steps_that_are_run_again_are_left_out():
    """What remains is numbered anew, and calls that had been carried out in the repeated part are named."""
    document = suspended(
        repeats=[1, 2],
        repeated=["before"],
        calls=[
            {"call_id": "c0", "name": "again", "tool_call": 1, "observation": 2, "status": "ok"},
            {
                "call_id": "c1",
                "name": "fail",
                "tool_call": 3,
                "status": "error",
                "error": {"type": "E", "message": "m"},
            },
            {"call_id": "c2", "name": "inner", "tool_call": 4, "observation": 2, "status": "ok", "parent": "c1"},
        ],
    )
    document["steps"] = [{"step_id": number, "type": "thought", "content": str(number)} for number in range(5)]
    part = EarlierPart(document)
    assert [(0, "0"), (1, "3"), (2, "4")] == [(step["step_id"], step["content"]) for step in part.steps]
    assert ["before", "again"] == part.repeated
    assert [("c0", 1), ("c1", 2)] == [(call["call_id"], call["tool_call"]) for call in part.calls]
    assert "c0" == part.calls[1]["parent"]
    assert "observation" not in part.calls[1]
    assert ["fail"] == [call["name"] for call in part.pending]
