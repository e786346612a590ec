"""Records of operations, results and expectations: types are checked when a record is built."""

from __future__ import annotations

import pytest

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

    def test_an_expectation_from_json(self):
        """Operations may be left out."""
        assert sc.EditExpectation.from_dict({"ignore_case": False}) == sc.EditExpectation((), ignore_case=False)
        data = {"operations": [{"type": "delete", "target_index": 2}]}
        assert sc.EditExpectation.from_dict(data) == sc.EditExpectation([sc.Operation("delete", target_index=2)])

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
