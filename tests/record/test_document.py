"""The document of a run holds what is captured, and counts what was not scanned."""

from __future__ import annotations

import grace_kp as gk


def test_structure_without_content(monkeypatch):
    """CAPTURE_INPUT and CAPTURE_OUTPUT off keep names and timings and nothing that was said."""
    monkeypatch.setenv("GRACE_KP_CAPTURE_INPUT", "0")
    monkeypatch.setenv("GRACE_KP_CAPTURE_OUTPUT", "0")
    grace = gk.Grace(store="memory:")

    @grace.tool
    def fetch(what):
        return f"confidential {what}"

    @grace.agent
    def root(question):
        return fetch(question)

    with grace.collect() as traces:
        root("confidential question")
    text = traces[0].to_json()
    assert "confidential" not in text
    assert traces[0].steps[0].tool.name == "fetch"
    assert traces[0].steps[0].latency_ms >= 0


def agent_of(grace):
    @grace.tool
    def look(query):
        return query

    @grace.agent
    def agent(question):
        return look(question)

    return agent


def test_a_trace_counts_texts_that_were_not_scanned_to_their_end(grace, monkeypatch):
    """Their ends are removed unread."""
    monkeypatch.setattr("grace_kp.trace.redaction._text.MAX_CHARACTERS", 8_000)
    with grace.collect() as traces:
        agent_of(grace)("word " * 2_500)
    (trace,) = traces
    assert 3 == trace.grace["unscanned_texts"]
    assert trace.steps[-1].content.endswith("word [REDACTED:unscanned]")


def test_other_traces_say_nothing_of_it(grace):
    """Ordinary texts are scanned to their end."""
    with grace.collect() as traces:
        agent_of(grace)("word " * 2_500)
    assert "unscanned_texts" not in traces[0].grace
