"""Test sets: which are refused, and how one departs from the balance that the specification asks for."""

from __future__ import annotations

import pytest

from grace_kp import rubric as rb


def balanced(**changes):
    kinds = ["main"] * 6 + ["adjacent"] * 2 + ["subtle"] * 2
    severities = ["critical"] * 3 + ["medium"] * 4 + ["minor"] * 3
    problems = tuple(rb.Problem(f"p{n}", *one) for n, one in enumerate(zip(kinds, severities, strict=True)))
    documents = [rb.Document("a", "law", problems, 3), rb.Document("b", "code", problems, 5)]
    return rb.TestSet(**{"documents": tuple(documents), **changes})


class TestTestSet:
    def test_a_balanced_one_has_no_warnings(self):
        assert [] == balanced().check()

    def test_it_may_be_told_in_the_words_of_the_source(self):
        problem = rb.Problem("p", "責任", "重大", "主要観点")
        assert rb.Problem("p", "責任", "critical", "main") == problem
        assert "subtle" == rb.Problem("p", "微妙な問題", "軽微").kind
        assert 3 == rb.Document("d", "law", (problem,), ["a", "b", "c"]).bonus_candidates
        assert [1.0, 0.5, 0.0] == [rb.run_score([word]) for word in ("検出", "部分検出", "未検出")]

    def test_every_departure_is_told(self):
        problems = (rb.Problem("x", "style", "minor"), *(rb.Problem(f"m{n}", "main", "minor") for n in range(3)))
        odd = rb.TestSet(
            (rb.Document("a", "law", problems, 9), *(rb.Document(one, "law", problems, 0) for one in "bc")), 3
        )
        told = "\n".join(odd.check())
        for what in (
            "2 documents, not 3", "different domains", "2 runs for each", "10 problems, not 4", "3 problems should be critical, not 0",
            "4 problems should be medium, not 0", "3 problems should be minor, not 4", "1 problems have no kind", "6 to 7 problems should be main, not 3",
            "2 problems should be adjacent, not 0", "1 to 2 problems should be subtle, not 0", "3 to 5 bonus candidates, not 9",
        ):  # fmt: skip
            assert what in told

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda: rb.Problem("p", "c", "grave"), "severity of p"),
            (lambda: rb.Problem("p", "c", "minor", "odd"), "kind of p"),
            (lambda: rb.Document("d", "x", (rb.Problem("p", "c", "minor"),) * 2), "problem p twice"),
            (lambda: rb.TestSet((rb.Document("d", "x", ()),) * 2), "document d is there twice"),
        ],
    )
    def test_what_cannot_be(self, make, problem):
        with pytest.raises(ValueError, match=problem):
            make()
