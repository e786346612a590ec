"""Records of operations, results and expectations: types are checked when a record is built."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp import scorers as sc
from tests.scorers.records import done, op, wanted


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: op(3), "type must be a text, not 3"),
        (lambda: op(None), "type must be a text, not None"),
        (lambda: op("x", 3), "target_block_id must be a text or None, not 3"),
        (lambda: op("x", None, "3"), "target_index must be a whole number or None, not '3'"),
        (lambda: op("x", None, 3.0), "target_index must be a whole number or None, not 3.0"),
        (lambda: op("x", None, False), "target_index must be a whole number or None, not False"),
        (lambda: done(op(), applied=[1]), r"applied\[0\] must be True or False, not 1"),
        (lambda: done(op(), applied=["no"]), r"applied\[0\] must be True or False, not 'no'"),
        (lambda: done({"type": "x"}), r"operations\[0\] must be of type Operation, not an object of 1"),
        (lambda: done(pages={"A": None}), "page 'A' must be a text, not None"),
        (lambda: done(pages={1: "x"}), "a page title must be a text, not 1"),
        (lambda: done(pages=["x"]), "pages must be texts by title"),
        (lambda: done(duration_ms=float("nan")), "duration_ms must be a number or None"),
        (lambda: sc.Block(1, "x"), "a block's id must be a text"),
        (lambda: wanted(ignore_case="yes"), "ignore_case must be True or False"),
        (lambda: sc.ContentQuality(ignore_case=1), "ignore_case must be True or False"),
        (lambda: sc.ContentQuality(timeout=0), "timeout must be a number above 0, not 0"),
        (lambda: sc.ContentQuality(timeout=float("inf")), "not inf"),
        (lambda: sc.OperationResult(timeout=float("nan")), "not nan"),
        (lambda: sc.OperationResult(timeout=True), "not True"),
        (lambda: sc.ResponseTime(True), "max_acceptable_ms must be a number above 0, not True"),
        (lambda: sc.ResponseTime(10**400), "a very large number"),
    ],
)
def test_types_are_checked_when_a_record_is_made(make, problem):
    with pytest.raises(ValueError, match=problem):
        make()


class TestFromDict:
    def test_a_result_from_json(self):
        """The fields are those of the record."""
        data = {
            "operations": [{"type": "insert", "position": "after", "content": "x"}],
            "applied": [True],
            "blocks_before": [{"id": "a", "content": "y"}],
            "blocks_after": None,
            "pages": {"A": "z"},
            "duration_ms": 3,
        }
        result = sc.EditResult.from_dict(data)
        operation = sc.Operation("insert", position="after", content="x")
        assert result == sc.EditResult([operation], [True], [sc.Block("a", "y")], None, {"A": "z"}, 3)

    @pytest.mark.parametrize(
        ("call", "problem"),
        [
            (lambda: sc.EditResult.from_dict(None), "actual must be an object, not None"),
            (lambda: sc.EditResult.from_dict({"goal": 1}), "actual has an unknown field 'goal'; known are applied, "),
            (lambda: sc.EditResult.from_dict({"blocks_after": [{"id": 1}]}), r"actual\.blocks_after\[0\]: "),
            (lambda: sc.EditExpectation.from_dict([]), "expected must be an object, not a list of 0"),
            (lambda: sc.EditExpectation.from_dict({"operations": [3]}), r"expected\.operations\[0\]: it must be an object, not 3"),
        ],
    )  # fmt: skip
    def test_a_wrong_field_is_named(self, call, problem):
        """With its place below `actual` or `expected`."""
        with pytest.raises(ValueError, match=problem):
            call()


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
