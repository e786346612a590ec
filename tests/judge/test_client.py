"""Every failure of a judge is 0.5 with the reason; identical requests are sent once; several samples give mean and spread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from tests.judge.scripted import GOOD, Judge


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (None, "no judge"),
        (lambda prompt: "", "empty"),
        (lambda prompt: None, "empty"),
        (lambda prompt: "no idea", "no score"),
        (lambda prompt: "0.2, no, I mean 0.9", "disagree"),
        (lambda prompt: float("nan"), "not finite"),
        (lambda prompt: object(), "not a text"),
        (Judge(OSError("no route")), "no route"),
        (Judge(RecursionError()), "RecursionError"),
        (lambda: "0.8", "TypeError"),
    ],
)
async def test_whatever_fails_is_a_half_with_a_reason(judge, said):
    """In all evaluators, sync and async; an exception only where one is asked for."""
    for evaluator, ask in (
        (gk.LLMSelfEvaluator, lambda one: (one.evaluate_detailed("q", "a"), one.evaluate("q", "a"))),
        (gk.QueryCoverageCalculator, lambda one: (one.calculate_detailed("q", "a"), one.calculate("q", "a"))),
        (gk.StepJudge, lambda one: (one.llm_calculate(gk.ConfidenceFactors(), "p", "o"), 0.5)),
    ):
        made, score = await asyncio.to_thread(ask, evaluator(judge))
        assert (0.5, True, 0.5) == (made.score, made.fallback, score)
        assert said in made.error
    made = await gk.LLMSelfEvaluator(judge).aevaluate_detailed("q", "a")
    assert made.fallback
    assert said in made.error
    with pytest.raises(gk.EvaluationFailed) as caught:
        await gk.QueryCoverageCalculator(judge, on_failure="raise").acalculate("q", "a")
    assert caught.value.evaluation.fallback


def test_several_samples_give_mean_and_spread():
    """The spread lowers the score where it is used with caution; a sample that fails is left out, and said."""
    made = gk.LLMSelfEvaluator(Judge("0.6", "0.8", "1.0"), samples=3).evaluate_detailed("q", "a")
    assert 0.8 == pytest.approx(made.score)
    assert 0.16329931 == pytest.approx(made.spread)
    assert 0.6367007 == pytest.approx(made.cautious)
    assert (3, 3) == (made.samples, made.attempts)
    made = gk.LLMSelfEvaluator(Judge("0.6", OSError("x"), "0.8"), samples=3).evaluate_detailed("q", "a")
    assert (0.7, 2) == (pytest.approx(made.score), made.samples)
    assert "1 of 3 judgements failed" in made.reason
    made = gk.LLMSelfEvaluator(Judge("?"), samples=3).evaluate_detailed("q", "a")
    assert (0.5, True) == (made.score, made.fallback)


def test_the_spread_lowers_the_confidence_in_the_strict_profile():
    """And not in the profile of the published design."""
    scores = {}
    for profile in ("grace", "strict"):
        for replies in (("0.9", "0.9"), ("0.8", "1.0")):
            grace = gk.Grace(
                store="memory:", evaluator=Judge(*[f'{{"score": {r}, "coverage": 0.9}}' for r in replies]), embedder=None,
                reviewer=None, profile=profile, judge_samples=2,
            )  # fmt: skip
            with grace.run("objective") as run:
                run.outcome(result="done")
            scores[profile, replies[0]] = run.trace.grace["confidence"]["score"]
            grace.close()
    assert scores["grace", "0.9"] == scores["grace", "0.8"]
    assert scores["strict", "0.9"] > scores["strict", "0.8"]


class Gated:
    """A judge, plain or asynchronous, that replies once it is let go."""

    def __init__(self):
        self.calls = 0
        self.asked, self.released = threading.Event(), threading.Event()

    def __call__(self, prompt):
        self.calls += 1
        self.asked.set()
        assert self.released.wait(30)
        return GOOD

    async def wait(self, prompt):
        self.calls += 1
        self.asked.set()
        assert await asyncio.to_thread(self.released.wait, 30)
        return GOOD


def under_way(evaluator):
    """The futures of the requests that are being answered, whatever waits for them."""
    return list(evaluator._pending.values())


def test_identical_requests_in_flight_are_sent_once():
    """From many threads: one pays, and the others share its judgement."""
    judge = Gated()
    evaluator = gk.LLMSelfEvaluator(judge)
    with ThreadPoolExecutor(17) as pool:
        futures = [pool.submit(evaluator.evaluate_detailed, "q", "a") for _ in range(17)]
        assert judge.asked.wait(30)
        judge.released.set()
        made = [future.result() for future in futures]
    assert 1 == judge.calls
    assert {0.8} == {evaluation.score for evaluation in made}
    assert 1 == sum(evaluation.attempts for evaluation in made)
    assert [] == under_way(evaluator)


async def test_identical_requests_in_flight_are_sent_once_from_a_loop():
    """And a caller that gives up does not take the others along."""
    judge = Gated()
    evaluator = gk.LLMSelfEvaluator(judge.wait)
    tasks = [asyncio.create_task(evaluator.aevaluate_detailed("q", "a")) for _ in range(20)]
    await asyncio.to_thread(judge.asked.wait, 30)
    tasks[7].cancel()
    judge.released.set()
    made = await asyncio.gather(*tasks, return_exceptions=True)
    assert 1 == judge.calls
    assert 1 == sum(isinstance(outcome, asyncio.CancelledError) for outcome in made)
    assert 19 == sum(getattr(outcome, "score", None) == 0.8 for outcome in made)


async def test_a_caller_that_is_cancelled_while_it_asks_leaves_nobody_waiting():
    """The others get a fallback, and the next request asks again."""
    judge = Gated()
    evaluator = gk.LLMSelfEvaluator(judge.wait)
    first = asyncio.create_task(evaluator.aevaluate_detailed("q", "a"))
    await asyncio.to_thread(judge.asked.wait, 30)
    second = asyncio.create_task(evaluator.aevaluate_detailed("q", "a"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await asyncio.wait_for(second, 30)).fallback
    judge.released.set()
    assert 0.8 == await evaluator.aevaluate("q", "a")
    assert 2 == judge.calls


class SlowCache(gk.JudgementCache):
    """A cache on a disk that another process has locked for a while."""

    def __init__(self):
        super().__init__()
        self.asked, self.released = threading.Event(), threading.Event()

    def get(self, cache_key):
        self.asked.set()
        assert self.released.wait(30)
        return super().get(cache_key)


async def test_a_caller_that_is_cancelled_while_the_cache_is_read_leaves_nobody_waiting():
    """A request that never reached the judge is over too."""
    cache = SlowCache()
    evaluator = gk.LLMSelfEvaluator(lambda prompt: GOOD, cache=cache)
    first = asyncio.create_task(evaluator.aevaluate_detailed("q", "a"))
    await asyncio.to_thread(cache.asked.wait, 30)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert [] == under_way(evaluator)
    cache.released.set()
    assert 0.8 == await asyncio.wait_for(evaluator.aevaluate("q", "a"), 30)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_and_leaves_nobody_waiting(interrupt):
    """Ctrl-C is not a failed judgement; the next request asks again."""
    evaluator = gk.LLMSelfEvaluator(Judge(interrupt(), GOOD))
    with pytest.raises(interrupt):
        evaluator.evaluate("q", "a")
    assert [] == under_way(evaluator)
    assert 0.8 == evaluator.evaluate("q", "a")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"samples": 0}, "samples"), ({"samples": 1.5}, "samples"), ({"language": "de"}, "language"),
        ({"on_failure": "ignore"}, "on_failure"), ({"timeout": 0}, "timeout"),
    ],
)  # fmt: skip
def test_options_without_a_sense_are_refused(options, said):
    """When the evaluator is made."""
    with pytest.raises(ValueError, match=said):
        gk.LLMSelfEvaluator(None, **options)
    with pytest.raises(TypeError, match="a judge is a callable"):
        gk.LLMSelfEvaluator("gemini")
