"""The score of one run and the judgements it comes from, with numbers worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import rubric as rb
from tests.rubric.variants import O, P, X


class TestRunScore:
    @pytest.mark.parametrize(
        ("judgements", "bonuses", "penalties", "score"),
        [
            ([O], 0, 0, 1.0),
            ([P], 0, 0, 0.5),
            ([X], 0, 0, 0.0),
            ([O, P, X], 0, 0, 1.5),
            ([O] * 10, 0, 0, 10.0),
            ([], 0, 0, 0.0),
            ([O, O], 1, 0, 2.5),
            ([O, O], 5, 0, 4.5),
            ([O, O], 6, 0, 4.5),
            ([O, O], 50, 0, 4.5),
            ([O, O], 0, 1, 1.5),
            ([X], 0, 9, -4.5),
            ([O, P], 2, 3, 1.0),
        ],
    )
    def test_by_hand(self, judgements, bonuses, penalties, score):
        assert score == rb.run_score(judgements, bonuses, penalties)

    @pytest.mark.parametrize(
        ("value", "member"),
        [
            ("○", "DETECTED"), ("detected", "DETECTED"), ("Detected ", "DETECTED"), ("△", "PARTIAL"), ("partial", "PARTIAL"),
            ("×", "MISSED"), ("missed", "MISSED"), ("x", "MISSED"), ("◯", "DETECTED"), (rb.Detection.PARTIAL, "PARTIAL"),
        ],
    )  # fmt: skip
    def test_symbols_words_and_members(self, value, member):
        assert rb.Detection[member] is rb.Detection.of(value)

    @pytest.mark.parametrize("value", ["", "maybe", 1, 0.5, None, "○○", ["○"]])
    def test_what_is_no_judgement(self, value):
        with pytest.raises(ValueError, match="a judgement must be one of ○ △ ×"):
            rb.run_score([value])

    @pytest.mark.parametrize("counts", [{"bonuses": -1}, {"penalties": 1.5}, {"bonuses": True}, {"penalties": "2"}])
    def test_counts_are_whole(self, counts):
        with pytest.raises(ValueError, match=f"{next(iter(counts))} must be a whole number from 0"):
            rb.run_score([O], **counts)

    @given(st.lists(st.sampled_from([O, P, X])), st.integers(0, 20), st.integers(0, 20))
    def test_more_never_lowers_it(self, judgements, bonuses, penalties):
        score = rb.run_score(judgements, bonuses, penalties)
        assert rb.run_score([*judgements, O], bonuses, penalties) == score + 1
        assert rb.run_score([*judgements, P], bonuses, penalties) == score + 0.5
        assert rb.run_score(judgements, bonuses + 1, penalties) >= score
        assert rb.run_score(judgements, bonuses, penalties + 1) == score - 0.5
        assert rb.run_score(judgements[::-1], bonuses, penalties) == score
