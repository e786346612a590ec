"""Operations: records of edits, and how far they agree with the expected ones."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from grace_kp.scorers._operations import match_pairs
from tests.scorers.records import done, op, wanted


class TestOperationAccuracy:
    @pytest.mark.parametrize(
        ("actual", "expected", "score", "reasons"),
        [
            ([], [], 1.0, []),
            ([op("update", "a")], [], 0.0, []),
            ([], [op("update", "a")], 0.0, ["type mismatch"]),
            ([op("update", "a")], [op("update", "b")], 0.0, ["target mismatch"]),
            ([op("insert", "a", position="before")], [op("insert", "a", position="after")], 0.0, ["position mismatch"]),
            ([op("insert", "a", position="after")], [op("insert", "a", position="after")], 1.0, []),
            ([op("update", "a", position=1)], [op("update", "a", position=2)], 1.0, []),
            ([op("update", "a"), op("update", "b")], [op("update", "b"), op("update", "a")], 1.0, []),
            ([op("update", "a")], [op("update", "a"), op("update", "a")], 0.5, ["type mismatch"]),
            ([op("update", "a"), op("delete", "x")], [op("update", "a"), op("update", "b")], 0.5, ["type mismatch"]),
            ([op("insert", "a", position=1), op("insert", "b", position=2)], [op("insert", "b", position=9)], 0.0, ["position mismatch"]),
            ([op("update", "a"), op("update", "z")], [op("update", "a"), op("update", "b"), op("delete", "c")], 1 / 3, ["target mismatch", "type mismatch"]),
        ],
    )  # fmt: skip
    def test_by_hand(self, actual, expected, score, reasons):
        scorer, given_, should = sc.OperationAccuracy(), done(*actual), wanted(*expected)
        assert score == scorer.score(given_, should)
        details = scorer.details(given_, should)
        assert reasons == [one.reason for one in details.unmatched_operations]
        assert len(expected) == details.total_expected_operations
        assert len(expected) - len(reasons) == details.matched_operations

    operations = st.lists(
        st.builds(op, st.sampled_from(["insert", "update"]), st.sampled_from(["a", "b", None]), st.none(), st.sampled_from([1, 2])), max_size=6
    )  # fmt: skip

    @given(operations, operations, st.randoms())
    def test_order_does_not_matter_and_the_details_agree(self, actual, expected, random):
        scorer = sc.OperationAccuracy()
        score = scorer.score(done(*actual), wanted(*expected))
        mixed, should = list(actual), list(expected)
        random.shuffle(mixed)
        random.shuffle(should)
        assert score == scorer.score(done(*mixed), wanted(*should))
        assert 0 <= score <= 1
        details = scorer.details(done(*actual), wanted(*expected))
        if expected:
            assert score == details.matched_operations / len(expected)


class TestTargetBlockPrecision:
    @pytest.mark.parametrize(
        ("actual", "expected", "score"),
        [
            ([], [], 1.0),
            ([op(target="a")], [], 0.0),
            ([op(target="a")], [op(target="a")], 1.0),
            ([op(target="a", index=3)], [op(target="b", index=3)], 1.0),
            ([op(target="a", index=1)], [op(target="b", index=3)], 0.0),
            ([op("delete", "a")], [op("update", "a")], 1.0),
            (
                [op(target="a", index=1), op(target="b", index=2)],
                [op(target="b", index=1), op(target="x", index=2)],
                1.0,
            ),
            (
                [op(target="a", index=1), op(target="q", index=1)],
                [op(target="z", index=1), op(target="a", index=7)],
                1.0,
            ),
            ([op(target="a")], [op(target="a"), op(target="a")], 0.5),
        ],
    )
    def test_by_hand(self, actual, expected, score):
        scorer = sc.TargetBlockPrecision()
        assert score == scorer.score(done(*actual), wanted(*expected))
        details = scorer.details(done(*actual), wanted(*expected))
        assert round(score * len(expected)) == details.correct_targets or not expected
        assert len(expected) - details.correct_targets == len(details.incorrect_targets)


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=5),
    st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=5),
)
def test_there_are_as_many_pairs_as_there_can_be(left, right):
    made = match_pairs(left, right)
    assert all(set(left[one]) & set(right[other]) for one, other in made)
    assert len(made) == len({one for one, _ in made}) == len({other for _, other in made})
    best = 0
    for order in itertools.permutations(range(len(right))):
        best = max(best, sum(bool(set(keys) & set(right[other])) for keys, other in zip(left, order, strict=False)))
    if len(left) > len(right):
        best = len(match_pairs(right, left))
    assert best == len(made)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (1, "1", False),
        ({"a": 1, "b": [2]}, {"b": (2.0,), "a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ([1, 2], [2, 1], False),
        ({1, 2}, {2, 1}, True),
        (float("nan"), float("nan"), True),
        (None, "None", False),
        ({"a": {"b": [{}]}}, {"a": {"b": [{}]}}, True),
    ],
)
def test_positions_are_compared_by_value(one, other, same):
    actual, expected = done(op("insert", "a", position=one)), wanted(op("insert", "a", position=other))
    assert float(same) == sc.OperationAccuracy().score(actual, expected)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: op(3), "type must be a string, not 3"),
        (lambda: op("x", 3), "target_block_id must be a string or None, not 3"),
        (lambda: op("x", None, "3"), "target_index must be a whole number or None, not '3'"),
        (lambda: op("x", None, False), "target_index must be a whole number or None, not False"),
        (lambda: done(op(), applied=[1]), r"applied\[0\] must be True or False, not 1"),
        (lambda: done({"type": "x"}), r"operations\[0\] must be of type Operation, not an object of 1"),
        (lambda: done(pages={"A": None}), "page 'A' must be a string, not None"),
        (lambda: done(pages=["x"]), "pages must be strings by title"),
        (lambda: done(duration_ms=float("nan")), "duration_ms must be a number or None"),
        (lambda: sc.Block(1, "x"), "a block's id must be a string"),
        (lambda: wanted(ignore_case="yes"), "ignore_case must be True or False"),
        (lambda: sc.ContentQuality(ignore_case=1), "ignore_case must be True or False"),
        (lambda: sc.ContentQuality(timeout=0), "timeout must be a number above 0, not 0"),
        (lambda: sc.ContentQuality(timeout=float("inf")), "not inf"),
        (lambda: sc.ResponseTime(True), "max_acceptable_ms must be a number above 0, not True"),
        (lambda: sc.ResponseTime(10**400), "a very large number"),
    ],
)
def test_types_are_checked_when_a_record_is_made(make, problem):
    with pytest.raises(ValueError, match=problem):
        make()


class TestFromDict:
    def test_a_result_from_json(self):
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
        with pytest.raises(ValueError, match=problem):
            call()


class TestAsResult:
    def test_a_trace_in_its_dict_form_becomes_a_result(self):
        calls = [{"tool_call": 0, "status": "ok"}, {"tool_call": 1, "status": "error"}, "no call"]
        steps = [
            {"step_id": number, "type": "tool_call", "tool": {"name": "edit"}, "input": arguments}
            for number, arguments in enumerate(
                [{"path": "a", "index": 3, "position": "end", "content": "text"}, {"path": "b", "index": True}]
            )
        ]
        document = {
            "steps": [*steps, {"step_id": 2, "type": "thought"}],
            "grace": {"calls": calls, "duration_ms": 12},
            "outcome": {"result_summary": "done"},
        }
        result = sc.as_result(document)
        assert result.operations == (op("edit", "a", 3, "end", "text"), op("edit", "b"))
        assert (result.applied, result.duration_ms, result.pages) == ((True, False), 12, {"result": "done"})
        assert (result.blocks_before, result.blocks_after) == (None, None)

    def test_success_is_unknown_unless_every_call_is_known(self):
        """A missing record is not a success."""
        steps = [{"step_id": 0, "type": "tool_call", "tool": {"name": "edit"}}]
        assert sc.as_result({"steps": steps, "grace": {"calls": "none"}}).applied is None
