"""What reaches the log, the status and the trace when something goes wrong: messages without secrets, and what was not scanned."""

from __future__ import annotations

import logging

import pytest

import grace_kp as gk
from grace_kp.errors import StoreError
from grace_kp.store._memory import MemoryStore

MESSAGE = "cannot reach https://ana:hunter2secret@example.com with password=hunter2secret"


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as grace:
        yield grace


def agent_of(grace):
    @grace.tool
    def look(query):
        return query

    @grace.agent
    def agent(question):
        return look(question)

    return agent


def test_the_message_of_a_failing_hook_is_redacted(grace, caplog):
    """In the log and in the status of the runtime."""

    @grace.on_complete
    def report(trace):
        raise RuntimeError(MESSAGE)

    with caplog.at_level(logging.WARNING):
        agent_of(grace)("x")
        grace.flush()
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "hook" in text
    assert "password=[REDACTED:password]" in text
    assert "hunter2secret" not in text + str(grace.status())


def test_the_message_of_a_failing_store_is_redacted(caplog):
    """A database's message may quote its address."""

    class Failing(MemoryStore):
        failing = True

        def put(self, records, *, ended=()):
            if self.failing:
                raise StoreError(MESSAGE)
            super().put(records, ended=ended)

    store = Failing()
    with (
        caplog.at_level(logging.WARNING),
        gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None) as grace,
    ):
        agent_of(grace)("x")
        grace.flush(timeout=0.5)
        store.failing = False
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "the store cannot write" in text
    assert "hunter2secret" not in text


def test_a_trace_counts_texts_that_were_not_scanned_to_their_end(grace, monkeypatch):
    """Their ends are removed unread."""
    monkeypatch.setattr("grace_kp.trace.redaction._text.MAX_CHARACTERS", 100)
    with grace.collect() as traces:
        agent_of(grace)("word " * 50)
    (trace,) = traces
    assert 3 == trace.grace["unscanned_texts"]
    assert trace.steps[-1].content.endswith("word [REDACTED:unscanned]")


def test_other_traces_say_nothing_of_it(grace):
    """Ordinary texts are scanned to their end."""
    with grace.collect() as traces:
        agent_of(grace)("word " * 50)
    assert "unscanned_texts" not in traces[0].grace
