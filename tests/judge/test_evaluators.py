"""What a judge is asked for: an answer, its coverage, both at once, and a step as a whole."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.protocols import JudgeReply
from tests.judge.scripted import BOTH, GOOD, Judge


def test_one_call_gives_score_and_reason():
    """The question, the answer and the sources stand in the prompt."""
    judge = Judge(JudgeReply(GOOD, model="m-1", tokens_in=100, tokens_out=20, attempts=2))
    made = gk.LLMSelfEvaluator(judge).evaluate_detailed("What is it?", "It is 42.", ["The guide says 42."])
    assert (0.8, "borne out by the first source", False) == (made.score, made.reason, made.fallback)
    assert ("m-1", 100, 20, 2) == (made.model, made.tokens_in, made.tokens_out, made.attempts)
    assert made.latency_ms >= 0
    (prompt,) = judge.prompts
    for text in ("What is it?", "It is 42.", "The guide says 42."):
        assert text in prompt


def test_both_judgements_in_one_call_or_in_two():
    """Each costs money."""
    judge = Judge(BOTH)
    own, coverage = gk.LLMSelfEvaluator(judge, combined=True).evaluate_both("q", "a", ["s"])
    assert (0.8, 0.6, "right", "one of two") == (own.score, coverage.score, own.reason, coverage.reason)
    assert 1 == len(judge.prompts)
    judge = Judge(GOOD, '{"score": 0.6, "reason": "half"}')
    own, coverage = gk.LLMSelfEvaluator(judge).evaluate_both("q", "a")
    assert (0.8, 0.6) == (own.score, coverage.score)
    assert 2 == len(judge.prompts)


@pytest.mark.parametrize("reply", ["0.8", '{"score": 0.8}', "coverage: 0.8", "0.8 and 0.6", GOOD])
def test_a_combined_reply_that_lacks_one_judgement_is_not_taken_for_both(reply):
    """What it lacks is the fallback."""
    own, coverage = gk.LLMSelfEvaluator(lambda prompt: reply, combined=True).evaluate_both("q", "a")
    assert own.fallback or coverage.fallback
    assert not (own.fallback and '"score"' in reply)


def test_a_combined_reply_in_plain_lines():
    """Labelled lines are understood too."""
    evaluator = gk.LLMSelfEvaluator(lambda prompt: "Score: 0.8\nCoverage: 60%", combined=True)
    own, coverage = evaluator.evaluate_both("q", "a")
    assert (0.8, 0.6) == (own.score, coverage.score)


def test_a_search_step_keeps_its_best_result():
    """Above 0.9 it wins over a lower judgement; on other steps, and below, the judgement stands."""
    sure = gk.ConfidenceFactors(search_max_score=0.95, search_result_count=1, is_search_step=True)
    assert 0.95 == gk.StepJudge(Judge(GOOD)).llm_calculate(sure, "find it", "found").score
    assert 0.97 == gk.StepJudge(Judge("0.97")).llm_calculate(sure, "find it", "found").score
    other = gk.ConfidenceFactors(search_max_score=0.95, search_result_count=1)
    assert 0.8 == gk.StepJudge(Judge(GOOD)).llm_calculate(other, "find it", "found").score
    less = gk.ConfidenceFactors(search_max_score=0.9, search_result_count=1, is_search_step=True)
    assert 0.8 == gk.StepJudge(Judge(GOOD)).llm_calculate(less, "find it", "found").score
    failed = gk.StepJudge(None).llm_calculate(sure, "find it", "found")
    assert (0.95, True) == (failed.score, failed.fallback)


async def test_a_step_judge_sees_factors_purpose_and_output():
    """Whatever type the output has."""
    judge = Judge(GOOD)
    made = await gk.StepJudge(judge).allm_calculate(
        gk.ConfidenceFactors(tool_execution_count=7), "book the flight", {"booking": "XK9"}
    )
    assert 0.8 == made.score
    for text in ('"tool_execution_count": 7', "book the flight", "XK9"):
        assert text in judge.prompts[0]
