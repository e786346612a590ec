"""The threads that wait for decisions in the inbox: kept without secrets, carried on by one process at a time, and forgotten."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

import grace_kp as gk
from grace_kp.integrations.langchain import _threads as threads

NODE = {"checkpoint_ns": "node:1|inner:2"}


@pytest.fixture
def tables():
    with gk.Grace(store="memory:", evaluator=None, embedder=None) as grace:
        yield grace.store.approvals


def test_plain_values_are_kept_and_the_names_of_the_others(tables):
    """Neither what LangGraph adds, nor what looks like a secret."""
    configurable = {
        **NODE,
        "thread_id": 7,
        "__pregel_call": len,
        "tenant": "acme",
        "limit": 3,
        "client": len,
        "password": "hunter2hunter2",
        "long": "x" * 5_000,
    }
    threads.keep_thread(tables, configurable)
    (kept,) = threads.waiting_threads(tables)
    assert ("7", 7, ("node",)) == (kept.id, kept.number, kept.nodes)
    assert {"tenant": "acme", "limit": 3} == kept.configurable
    assert ("client", "long", "password") == kept.left_out
    assert not any(b"hunter2" in data for data in tables.documents(threads.WAITING).values())


def test_nodes_of_a_thread_belong_together(tables):
    """One thread may wait in several nodes."""
    for node in ("a:1", "b:2"):
        threads.keep_thread(tables, {"thread_id": "1", "checkpoint_ns": node})
    (kept,) = threads.waiting_threads(tables, "1")
    assert ("a", "b") == kept.nodes
    assert ["2"] == [thread.id for thread in threads.waiting_threads(tables, "2")]


def test_a_thread_is_carried_on_by_one_at_a_time(tables):
    """Whoever comes second leaves it, until it is ended."""
    threads.keep_thread(tables, {"thread_id": "1", **NODE})
    (thread,) = threads.waiting_threads(tables)
    token = threads.begin_carrying(tables, thread)
    assert None is threads.begin_carrying(tables, thread)
    threads.end_carrying(tables, thread, "another token")
    assert None is threads.begin_carrying(tables, thread)
    threads.end_carrying(tables, thread, token)
    assert None is not threads.begin_carrying(tables, thread)


def test_a_thread_that_waits_no_more_is_forgotten_after_a_while(tables, monkeypatch):
    """Not at once: a request that was filed just now may not be in the checkpoint yet."""
    threads.keep_thread(tables, {"thread_id": "1", **NODE})
    (thread,) = threads.waiting_threads(tables)
    threads.end_carrying(tables, thread, "", over=["node"])
    assert [thread] == threads.waiting_threads(tables)
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", -1.0)
    threads.end_carrying(tables, thread, "", over=["other"])
    assert [thread] == threads.waiting_threads(tables)
    threads.end_carrying(tables, thread, "", over=["node"])
    assert [] == threads.waiting_threads(tables)


def test_refusals_that_were_raised_are_kept(tables):
    """Also when the thread asks again; only the newest."""
    threads.keep_thread(tables, {"thread_id": "1", **NODE})
    (thread,) = threads.waiting_threads(tables)
    threads.end_carrying(tables, thread, "", refused=[f"ap-{number}" for number in range(150)])
    threads.keep_thread(tables, {"thread_id": "1", **NODE})
    (thread,) = threads.waiting_threads(tables)
    assert {f"ap-{number}" for number in range(50, 150)} == thread.refused
