"""Ratings: how two judgements are settled, and how far two raters agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import rubric as rb
from tests.rubric.contract import PROBLEMS, TESTS, O, P, X


def rating(*verdicts, bonuses=0, penalties=0, **more):
    given_ = {problem.id: verdict for problem, verdict in zip(PROBLEMS, verdicts, strict=False) if verdict is not None}
    return rb.Rating(given_, bonuses, penalties, **more)


def rated(*ratings, **more):
    return rb.rate("v", [rb.Output("contract", ratings=ratings)], TESTS, **more)


class TestAgreement:
    @pytest.mark.parametrize(
        ("counts", "kappa", "observed"),
        [
            ({(O, O): 20, (O, X): 5, (X, O): 10, (X, X): 15}, 0.4, 0.7),  # 0.7 observed, 0.5 expected
            ({(O, O): 1, (P, P): 1, (X, X): 1}, 1.0, 1.0),
            ({(O, P): 1, (P, X): 1, (X, O): 1}, -0.5, 0.0),  # 0 observed, 1/3 expected
            ({(O, X): 1, (X, O): 1}, -1.0, 0.0),
            ({(O, O): 7}, None, 1.0),
            ({}, None, None),
        ],
    )
    def test_kappa_by_hand(self, counts, kappa, observed):
        found = rb.agreement_of([pair for pair, count in counts.items() for _ in range(count)])
        assert (None if kappa is None else pytest.approx(kappa), observed, sum(counts.values())) == (
            found.kappa,
            found.observed,
            found.problems,
        )

    judgements = st.sampled_from([O, P, X])

    @given(st.lists(st.tuples(judgements, judgements), min_size=1))
    def test_it_has_no_side_and_no_order(self, pairs):
        found = rb.agreement_of(pairs)
        turned = rb.agreement_of([(other, one) for one, other in reversed(pairs)])
        assert (found.kappa, found.observed) == (
            pytest.approx(turned.kappa) if turned.kappa is not None else None,
            turned.observed,
        )
        assert found.kappa is None or -1 - 1e-9 <= found.kappa <= found.observed + 1e-9


class TestSettling:
    @pytest.mark.parametrize(
        ("first", "second", "settled"),
        [
            (O, O, O),
            (O, P, P),
            (O, X, X),
            (P, X, X),
            (O, None, O),
            (None, P, P),
        ],
    )
    def test_the_lower_counts_where_two_differ(self, first, second, settled):
        found = rated(rating(first, X, X), rating(second, X, X))
        assert settled is found.variant.runs[0].judgements["limit"]
        assert len(found.disputes) == int(None not in {first, second} and first is not second)
        assert found.agreement.problems == (2 if None in {first, second} else 3)

    def test_in_doubt_no_penalty_and_no_bonus(self):
        run = rated(rating(X, X, X, bonuses=3, penalties=2), rating(X, X, X, bonuses=1, penalties=0)).variant.runs[0]
        assert (1, 0) == (run.bonuses, run.penalties)
        assert 2 == rated(rating(X, X, X, penalties=2)).variant.runs[0].penalties

    def test_a_referee_decides_what_is_disputed_and_nothing_else(self):
        class Referee:
            name = "referee"
            asked = 0

            def rate(self, document, output, *, scope=""):
                self.asked += 1
                return rating(O, O, O)

        referee = Referee()
        both = (rating(O, X, X), rating(X, X, X))
        found = rb.rate(
            "v", [rb.Output("contract", "said", both), rb.Output("contract", "said", both[1:])], TESTS, referee=referee
        )
        assert [O, X, X] == list(found.variant.runs[0].judgements.values())
        assert 1 == referee.asked
        (dispute,) = found.disputes
        assert (1, "contract", "limit", O, X, O) == (
            dispute.run,
            dispute.document,
            dispute.problem,
            dispute.first,
            dispute.second,
            dispute.settled,
        )

    def test_a_rater_that_judged_nothing_has_no_say_in_bonuses_and_penalties(self):
        """And that it judged nothing is told."""
        silent = rating(reasons={"limit": "no route"}, rater="model")
        found = rated(rating(O, O, O, bonuses=3, penalties=4), silent)
        assert (3, 4) == (found.variant.runs[0].bonuses, found.variant.runs[0].penalties)
        (gap,) = found.gaps
        assert (1, "contract", "model", ("limit", "term", "typo"), "no route") == (
            gap.run,
            gap.document,
            gap.rater,
            gap.problems,
            gap.reason,
        )
        some = rated(rating(O, O, O, bonuses=3), rating(O, None, None, bonuses=1, rater="b"))
        assert (1, ("term", "typo")) == (some.variant.runs[0].bonuses, some.gaps[0].problems)

    def test_a_referee_that_does_not_decide_is_told(self):
        class Silent:
            name = "silent"

            def rate(self, document, output, *, scope=""):
                return rating(None, O, O, reasons={"limit": "no route"}, rater="silent")

        found = rb.rate(
            "v", [rb.Output("contract", "said", (rating(O, X, X), rating(X, X, X)))], TESTS, referee=Silent()
        )
        assert X is found.variant.runs[0].judgements["limit"]
        assert [("silent", ("limit",))] == [(one.rater, one.problems) for one in found.gaps]

    def test_what_nobody_judged_is_an_error_and_no_judgement(self):
        with pytest.raises(
            rb.NotRated, match="run 1: the problem 'term' could not be judged: it said nothing; no reason given"
        ):
            rated(rating(O, None, X, reasons={"term": "it said nothing"}), rating(O, None, X))
        with pytest.raises(rb.NotRated, match="has no judgements, and no rater was passed"):
            rb.rate("v", [rb.Output("contract", "said")], TESTS)
        with pytest.raises(rb.NotRated, match="neither judgements nor an output"):
            rb.rate("v", [rb.Output("contract")], TESTS, [rb.PersonRater()])
        with pytest.raises(ValueError, match="at most two raters"):
            rb.rate("v", [rb.Output("contract", "said")], TESTS, [rb.PersonRater()] * 3)

    def test_ratings_that_are_none(self):
        with pytest.raises(ValueError, match="a judgement must be one of"):
            rb.Rating({"p": "maybe"})
        with pytest.raises(ValueError, match="penalties must be a whole number"):
            rb.Rating({}, 0, -1)
