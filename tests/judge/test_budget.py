"""The spending limit: calls and tokens, per minute and per run."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.protocols import JudgeReply
from tests.judge.scripted import Judge


def test_the_limit_per_minute():
    """Beyond it the judge is not asked; after a minute it is again."""
    now = [0.0]
    limit = gk.SpendingLimit(calls_per_minute=2, clock=lambda: now[0])
    judge = Judge("0.8")
    evaluator = gk.LLMSelfEvaluator(judge, limit=limit)
    assert [False, False, True] == [evaluator.evaluate_detailed("q", str(n)).fallback for n in range(3)]
    made = evaluator.evaluate_detailed("q", "3")
    assert "the spending limit of 2 calls per minute is reached" == made.error
    assert 0 == made.attempts
    assert (2, 2) == (limit.spent.calls, limit.spent.refused)
    now[0] = 61.0
    assert not evaluator.evaluate_detailed("q", "4").fallback
    assert evaluator.evaluate_detailed("q", "0").cached  # what is known costs nothing


def test_the_limit_per_run_and_in_tokens():
    """By what the judge reports; retries count as calls."""
    limit = gk.SpendingLimit(calls_per_run=3, tokens_per_run=10_000)
    evaluator = gk.LLMSelfEvaluator(Judge(JudgeReply("0.8", tokens_in=900, tokens_out=100, attempts=3)), limit=limit)
    assert not evaluator.evaluate_detailed("q", "1", run="one").fallback
    assert "3 calls per run" in evaluator.evaluate_detailed("q", "2", run="one").error
    assert not evaluator.evaluate_detailed("q", "3", run="two").fallback
    assert (6, 2_000) == (limit.spent.calls, limit.spent.tokens)
    limit = gk.SpendingLimit(tokens_per_minute=1_500)
    evaluator = gk.LLMSelfEvaluator(Judge(JudgeReply("0.8", tokens_in=1_300, tokens_out=100)), limit=limit)
    assert not evaluator.evaluate_detailed("q", "1").fallback
    assert "tokens per minute" in evaluator.evaluate_detailed("q", "2").error


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "many"])
def test_a_limit_without_a_sense_is_refused(wrong):
    """By name."""
    with pytest.raises(ValueError, match="calls_per_run"):
        gk.SpendingLimit(calls_per_run=wrong)
    if wrong != -1:
        with pytest.raises(ValueError, match="max_entries"):
            gk.JudgementCache(max_entries=wrong)


def test_runs_are_forgotten_in_their_order():
    """The limit per run keeps the last 10,000 runs, so that it does not grow for ever."""
    now = iter(range(0, 10**9, 61))
    limit = gk.SpendingLimit(calls_per_run=1, clock=lambda: float(next(now)))
    for number in range(10_001):
        assert limit.reserve(f"run {number}", 40) is None
    assert "1 calls per run" in limit.reserve("run 10000", 40)
    assert limit.reserve("run 0", 40) is None


def test_what_a_call_has_cost_replaces_the_estimate():
    """A quarter of the characters is reserved; the tokens that the judge reports count in the end."""
    limit = gk.SpendingLimit(tokens_per_minute=100)
    assert limit.reserve(None, 400) is None
    assert 100 == limit.spent.tokens
    assert "100 tokens per minute" in limit.reserve(None, 4)
    limit.settle(None, 400, 1, 30)
    assert (1, 30, 1) == (limit.spent.calls, limit.spent.tokens, limit.spent.refused)
    assert limit.reserve(None, 280) is None
    limit.settle(None, 280, 3, None)  # retries count as calls, and an unknown cost leaves the estimate
    assert (4, 100) == (limit.spent.calls, limit.spent.tokens)
