"""Every failure of a judge is 0.5 with the reason; identical requests are sent once; several samples give mean and spread."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from grace_kp.judge import acall_judge, call_judge
from grace_kp.protocols import JudgeReply
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
        (lambda prompt: object(), "not a string"),
        (Judge(OSError("no route")), "no route"),
        (Judge(RecursionError()), "RecursionError"),
        (lambda: "0.8", "TypeError"),
    ],
)
async def test_whatever_fails_is_a_half_with_a_reason(judge, said):
    made = await asyncio.to_thread(gk.LLMSelfEvaluator(judge).evaluate_detailed, "q", "a")
    assert (0.5, True) == (made.score, made.fallback)
    assert said in made.error
    with pytest.raises(gk.EvaluationFailed) as caught:
        await gk.QueryCoverageCalculator(judge, on_failure="raise").acalculate("q", "a")
    assert caught.value.evaluation.fallback


def test_several_samples_give_mean_and_spread():
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


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_and_leaves_nobody_waiting(interrupt):
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
    with pytest.raises(ValueError, match=said):
        gk.LLMSelfEvaluator(None, **options)
    with pytest.raises(TypeError, match="a judge is a callable"):
        gk.LLMSelfEvaluator("gemini")


async def test_an_event_loop_is_not_blocked():
    ready = threading.Event()

    def patient(prompt):
        assert ready.wait(30)
        return GOOD

    task = asyncio.create_task(gk.LLMSelfEvaluator(patient).aevaluate("q", "a"))
    await asyncio.sleep(0)
    ready.set()
    assert 0.8 == await task


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_judge_that_hangs_is_left(kind):
    over = threading.Event()

    async def hangs(prompt):
        await asyncio.Event().wait()

    judge = hangs if kind == "async" else lambda prompt: over.wait(60)
    made = await gk.LLMSelfEvaluator(judge, timeout=0.05).aevaluate_detailed("q", "a")
    assert "did not answer within 0.05 s" in made.error
    made = await asyncio.to_thread(gk.LLMSelfEvaluator(judge, timeout=0.05).evaluate_detailed, "q", "a")
    assert "did not answer within 0.05 s" in made.error
    over.set()


async def test_a_judge_raises_what_it_raises():
    def broken(prompt):
        raise LookupError("no such model")

    with pytest.raises(LookupError, match="no such model"):
        call_judge(broken, "p", vary=False, fields=(), timeout=5)
    with pytest.raises(LookupError, match="no such model"):
        await acall_judge(broken, "p", vary=False, fields=(), timeout=5)


def test_the_limit_per_minute():
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
    with pytest.raises(ValueError, match="calls_per_run"):
        gk.SpendingLimit(calls_per_run=wrong)
    if wrong != -1:
        with pytest.raises(ValueError, match="max_entries"):
            gk.JudgementCache(max_entries=wrong)


def test_what_a_call_has_cost_replaces_the_estimate():
    limit = gk.SpendingLimit(tokens_per_minute=100)
    assert limit.reserve(None, 400) is None
    assert 100 == limit.spent.tokens
    assert "100 tokens per minute" in limit.reserve(None, 4)
    limit.settle(None, 400, 1, 30)
    assert (1, 30, 1) == (limit.spent.calls, limit.spent.tokens, limit.spent.refused)
    assert limit.reserve(None, 280) is None
    limit.settle(None, 280, 3, None)  # retries count as calls, and an unknown cost leaves the estimate
    assert (4, 100) == (limit.spent.calls, limit.spent.tokens)


def test_what_was_judged_is_remembered():
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_of_busy_threads_has_a_cache_of_its_own():
    """SQLite lets other threads go on while one of them holds the lock of the cache."""
    cache, ended = gk.JudgementCache(), threading.Event()

    def keep_busy():
        while not ended.is_set():
            cache.put("parent", {"score": 0.5})

    busy = [threading.Thread(target=keep_busy) for _ in range(3)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                began_empty = cache.get("parent") is None
                cache.put("child", {"score": 0.25})
                os._exit(0 if began_empty and cache.get("child") == {"score": 0.25} else 1)
            assert 0 == os.waitpid(child, 0)[1]
    finally:
        ended.set()
        for thread in busy:
            thread.join()
    assert {"score": 0.5} == cache.get("parent")
    assert cache.get("child") is None


@pytest.mark.parametrize("damage", ["garbage", "folder", "table", "value"])
def test_a_cache_that_cannot_be_used_is_an_empty_one(tmp_path, damage):
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


def entry(score):
    return {"score": score, "reason": "r", "model": None}


def test_a_cache_that_is_dropped_closes_its_file(tmp_path):
    """Python from 3.13 on warns about a connection that is left to be collected."""
    gc.collect()  # what earlier tests left
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        gk.JudgementCache(tmp_path / "judgements.db").get("none")
        gc.collect()
    assert [] == heard


CACHED_AT_EXIT = """
import atexit, sys
import grace_kp as gk
cache = gk.JudgementCache(sys.argv[1])
atexit.register(lambda: cache.put("late", {"score": 0.5, "reason": "r", "model": None}))
cache.put("early", {"score": 0.5, "reason": "r", "model": None})
"""


def test_a_judgement_at_exit_is_kept(tmp_path):
    """Runs that end last are judged while the interpreter exits."""
    path = tmp_path / "judgements.db"
    command = [sys.executable, "-c", CACHED_AT_EXIT, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (0, "") == (ran.returncode, ran.stderr)
    cache = gk.JudgementCache(path)
    assert [True, True] == [cache.get(cache_key) is not None for cache_key in ("early", "late")]
    cache.close()


def test_the_oldest_judgements_are_dropped(tmp_path):
    for path in (None, tmp_path / "c.db"):
        cache = gk.JudgementCache(path, max_entries=2)
        for cache_key in ("a", "b", "c"):
            cache.put(cache_key, entry(0.1))
        if path is not None:
            cache.close()
            cache = gk.JudgementCache(path, max_entries=2)
        assert [False, True, True] == [cache.get(cache_key) is not None for cache_key in ("a", "b", "c")]
        cache.close()


@pytest.mark.parametrize("on_disk", [True, False])
def test_clearing_forgets_everything(tmp_path, on_disk):
    """Also in the file, whose pages no longer hold what was deleted; the cache can be used again."""
    path = tmp_path / "c.db" if on_disk else None
    cache = gk.JudgementCache(path)
    cache.put("a", {"score": 0.5, "reason": "a reason of 7f3a", "model": None})
    cache.clear()
    assert cache.get("a") is None
    if on_disk:
        assert b"7f3a" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    cache.put("b", entry(0.7))
    assert 0.7 == cache.get("b")["score"]
    cache.close()
    cache.close()
