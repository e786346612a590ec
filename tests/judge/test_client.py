"""Evaluators ask a judge once, read it strictly, remember, keep to the limit, and fall back to 0.5 with the reason."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from grace_kp.protocols import JudgeReply

GOOD = '{"score": 0.8, "reason": "borne out by the first source"}'
BOTH = '{"score": 0.8, "reason": "right", "coverage": 0.6, "coverage_reason": "one of two"}'


class Judge:
    """Replies in turn, and keeps what it was asked."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.prompts = []
        self.lock = threading.Lock()

    def __call__(self, prompt):
        with self.lock:
            self.prompts.append(prompt)
            reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply


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


async def test_judges_of_every_kind():
    """Functions, coroutine functions, objects, and functions that give something to await."""

    async def coroutine(prompt):
        await asyncio.sleep(0)
        return GOOD

    class Object:
        async def __call__(self, prompt):
            return GOOD

    for judge in (lambda prompt: GOOD, coroutine, Object(), lambda prompt: coroutine(prompt)):
        assert 0.8 == await gk.LLMSelfEvaluator(judge).aevaluate("q", "a")
        assert 0.8 == gk.LLMSelfEvaluator(judge).evaluate("q", "a")  # inside a running loop too
        assert 0.8 == await asyncio.to_thread(gk.LLMSelfEvaluator(judge).evaluate, "q", "a")


async def test_an_event_loop_is_not_blocked():
    """A judge that is a plain function runs in a thread."""
    beats = []

    async def heart():
        while True:
            beats.append(1)
            await asyncio.sleep(0.01)

    def slow(prompt):
        time.sleep(0.3)
        return GOOD

    task = asyncio.create_task(heart())
    assert 0.8 == await gk.LLMSelfEvaluator(slow).aevaluate("q", "a")
    task.cancel()
    assert len(beats) > 5


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_judge_that_hangs_is_left(kind):
    """After the timeout, sync and async."""

    async def hangs(prompt):
        await asyncio.sleep(30)

    def sleeps(prompt):
        time.sleep(3)

    judge = hangs if kind == "async" else sleeps
    made = await gk.LLMSelfEvaluator(judge, timeout=0.1).aevaluate_detailed("q", "a")
    assert "did not answer within 0.1 s" in made.error
    made = await asyncio.to_thread(gk.LLMSelfEvaluator(judge, timeout=0.1).evaluate_detailed, "q", "a")
    assert "did not answer within 0.1 s" in made.error


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


def test_what_was_judged_is_remembered():
    """By model, prompt and texts; failures are not."""
    judge = Judge(OSError("once"), GOOD)
    evaluator = gk.LLMSelfEvaluator(judge)
    assert evaluator.evaluate_detailed("q", "a").fallback
    assert not evaluator.evaluate_detailed("q", "a").cached
    again = evaluator.evaluate_detailed("q", "a")
    assert (0.8, True, 0, None) == (again.score, again.cached, again.attempts, again.tokens_in)
    assert "borne out by the first source" == again.reason
    assert 2 == len(judge.prompts)
    evaluator.evaluate("q", "another")
    evaluator.evaluate("q", "a", ["a source"])
    assert 4 == len(judge.prompts)


def test_a_cache_on_disk_outlives_the_process(tmp_path):
    """It holds scores and reasons, no texts and no secrets."""
    path = tmp_path / "cache" / "judgements.db"
    reply = json.dumps({"score": 0.8, "reason": "ask ann@example.com, password=hunter2x"})
    first = gk.LLMSelfEvaluator(lambda prompt: reply, cache=gk.JudgementCache(path))
    made = first.evaluate_detailed("a question of 7f3a", "an answer of 7f3a")
    first.cache.close()
    judge = Judge(GOOD)
    judge.__name__ = "<lambda>"
    again = gk.LLMSelfEvaluator(judge, cache=gk.JudgementCache(path)).evaluate_detailed(
        "a question of 7f3a", "an answer of 7f3a"
    )
    assert (0.8, True, made.reason) == (again.score, again.cached, again.reason)
    assert [] == judge.prompts
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for text in (b"7f3a", b"hunter2x", b"ann@example.com"):
        assert text not in stored
    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.parametrize("damage", ["garbage", "folder", "table", "value"])
def test_a_cache_that_cannot_be_used_is_an_empty_one(tmp_path, damage):
    """Judging goes on, and it says why."""
    path = tmp_path / "c.db"
    if damage == "garbage":
        path.write_bytes(b"no database at all" * 100)
    elif damage == "folder":
        path.mkdir()
    elif damage == "table":
        sqlite3.connect(path).execute("CREATE TABLE judgements (other INTEGER)").connection.commit()
    cache = gk.JudgementCache(path)
    evaluator = gk.LLMSelfEvaluator(Judge(GOOD), cache=cache)
    assert 0.8 == evaluator.evaluate("q", "a")
    if damage == "value":
        cache.close()
        file = sqlite3.connect(path)
        file.execute("UPDATE judgements SET value = ?", ('{"score": 7}',))
        file.commit()
        judge = Judge(GOOD)
        gk.LLMSelfEvaluator(judge, cache=gk.JudgementCache(path)).evaluate("q", "a")
        assert 1 == len(judge.prompts)
    else:
        assert cache.error


def test_identical_requests_in_flight_are_sent_once():
    """From many threads."""
    started = threading.Barrier(17)

    def slow(prompt):
        calls.append(prompt)
        time.sleep(0.3)
        return GOOD

    calls = []
    evaluator = gk.LLMSelfEvaluator(slow)

    def ask(number):
        started.wait()
        return evaluator.evaluate_detailed("q", "a")

    with ThreadPoolExecutor(17) as pool:
        made = list(pool.map(ask, range(17)))
    assert 1 == len(calls)
    assert {0.8} == {one.score for one in made}
    assert 1 == sum(one.attempts for one in made)


async def test_identical_requests_in_flight_are_sent_once_from_a_loop():
    """And who gives up does not take the others along."""
    calls = []

    async def slow(prompt):
        calls.append(prompt)
        await asyncio.sleep(0.2)
        return GOOD

    evaluator = gk.LLMSelfEvaluator(slow)
    tasks = [asyncio.create_task(evaluator.aevaluate_detailed("q", "a")) for _ in range(20)]
    await asyncio.sleep(0.1)
    tasks[7].cancel()
    made = await asyncio.gather(*tasks, return_exceptions=True)
    assert 1 == len(calls)
    assert 1 == sum(isinstance(one, asyncio.CancelledError) for one in made)
    assert 19 == sum(getattr(one, "score", None) == 0.8 for one in made)


async def test_who_is_cancelled_while_it_asks_leaves_nobody_waiting():
    """The others get a fallback, and the next one asks again."""
    calls = []

    async def slow(prompt):
        calls.append(prompt)
        await asyncio.sleep(0.3)
        return GOOD

    evaluator = gk.LLMSelfEvaluator(slow)
    first = asyncio.create_task(evaluator.aevaluate_detailed("q", "a"))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(evaluator.aevaluate_detailed("q", "a"))
    await asyncio.sleep(0.05)
    first.cancel()
    made = await asyncio.wait_for(second, 10)
    assert made.fallback
    assert 0.8 == await evaluator.aevaluate("q", "a")
    assert 2 == len(calls)


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
