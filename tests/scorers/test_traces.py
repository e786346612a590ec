"""Traces as results: tool calls as operations."""

from __future__ import annotations

import grace_kp as gk
from grace_kp import scorers as sc
from tests.scorers.records import done, op, wanted


def test_the_tool_calls_of_a_trace_are_operations():
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    @grace.tool
    def write(path, content, position=None):
        return "ok"

    with grace.run("edit") as run:
        write("a.md", "text", position="end")
        write("b.md", "more")
    for trace in (run.trace, run.trace.to_dict()):
        found = sc.operations_from_trace(trace)
        assert [op("write", "a.md", None, "end", "text"), op("write", "b.md", None, None, "more")] == found
    report = sc.Suite.preset("standard").evaluate(done(*found), wanted(op("write", "a.md"), op("write", "b.md")))
    assert report.passed


class TestAsResult:
    def test_a_trace_in_its_dict_form_becomes_a_result(self):
        """Calls, their success, the duration and the answer."""
        calls = [{"tool_call": 0, "status": "ok"}, {"tool_call": 1, "status": "error"}, "no call"]
        steps = [
            {"step_id": number, "type": "tool_call", "tool": {"name": "edit"}, "input": {"path": name, "index": index}}
            for number, (name, index) in enumerate([("a", 3), ("b", True)])
        ]
        document = {
            "steps": [*steps, {"step_id": 2, "type": "thought"}],
            "grace": {"calls": calls, "duration_ms": 12},
            "outcome": {"result_summary": "done"},
        }
        result = sc.as_result(document)
        assert result.operations == (sc.Operation("edit", "a", 3), sc.Operation("edit", "b"))
        assert (result.applied, result.duration_ms, result.pages) == ((True, False), 12, {"result": "done"})
        assert (result.blocks_before, result.blocks_after) == (None, None)

    def test_success_is_unknown_unless_every_call_is_known(self):
        """A missing record is not a success."""
        steps = [{"step_id": 0, "type": "tool_call", "tool": {"name": "edit"}}]
        assert sc.as_result({"steps": steps, "grace": {"calls": "none"}}).applied is None

    def test_other_values_stay_as_they_are(self):
        """Scorers of users may take any value."""
        for value in (sc.EditResult([]), "text", {"answer": 3}, None):
            assert sc.as_result(value) is value
