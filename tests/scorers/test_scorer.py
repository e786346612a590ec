"""The base of the scorers: score and details come from one evaluation."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import BAD, GOOD

pytest.importorskip("regex", reason="needs the extra eval")

SCORERS = [sc.OperationAccuracy(), sc.TargetBlockPrecision(), sc.ContentQuality(), sc.OperationResult(), sc.AntiHallucination()]  # fmt: skip


@pytest.mark.parametrize("case", [GOOD, BAD])
@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: scorer.type)
def test_score_and_details_are_those_of_one_evaluation(scorer, case):
    """So they cannot contradict each other."""
    assert (scorer.score(*case), scorer.details(*case)) == scorer.score_with_details(*case)


def test_what_the_result_lacks_is_an_error_from_each_method():
    """A trace has no blocks."""
    result = sc.EditResult([], blocks_before=None, blocks_after=None)
    scorer = sc.AntiHallucination()
    for method in (scorer.score, scorer.details, scorer.score_with_details):
        with pytest.raises(ValueError, match="the blocks of the document are unknown"):
            method(result, sc.EditExpectation())
