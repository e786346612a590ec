"""Operation-accuracy and target-block-precision with numbers worked by hand, and the closest operation of an unmatched one."""

from __future__ import annotations

import itertools
from fractions import Fraction

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
            ([op("update", "a")], [op("update", "a")], 1.0, []),
            ([op("update", "a")], [op("update", "b")], 0.0, ["target mismatch"]),
            ([op("delete", "a")], [op("update", "a")], 0.0, ["type mismatch"]),
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
        (1, Fraction(1), True),
        (1, True, False),
        (0, False, False),
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
