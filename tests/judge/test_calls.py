"""A judge is called from a thread or an event loop, which it does not block, and left when it takes too long."""

from __future__ import annotations

import asyncio
import threading

import pytest

import grace_kp as gk
from grace_kp.judge import acall_judge, call_judge
from tests.judge.scripted import GOOD


class Asking:
    """A judge with both optional methods; it keeps how it was asked."""

    def __init__(self):
        self.calls = []

    def ask(self, prompt, *, vary, fields):
        self.calls.append(("ask", prompt, vary, fields))
        return GOOD

    async def aask(self, prompt, *, vary, fields):
        self.calls.append(("aask", prompt, vary, fields))
        return GOOD


async def test_the_optional_methods_are_preferred():
    """`ask` in plain calls and `aask` in coroutines, with what the caller wants of the reply."""
    judge = Asking()
    assert GOOD == call_judge(judge, "p", vary=True, fields=("score",), timeout=None)
    assert GOOD == await acall_judge(judge, "p", vary=False, fields=(), timeout=None)
    assert [("ask", "p", True, ("score",)), ("aask", "p", False, ())] == judge.calls


async def test_an_event_loop_is_not_blocked():
    """A judge that is a plain function may wait for something that the loop has still to do."""
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
    """After the timeout, sync and async."""
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
    """Exceptions of the judge reach the caller unchanged, from a plain call and from a coroutine."""

    def broken(prompt):
        raise LookupError("no such model")

    with pytest.raises(LookupError, match="no such model"):
        call_judge(broken, "p", vary=False, fields=(), timeout=5)
    with pytest.raises(LookupError, match="no such model"):
        await acall_judge(broken, "p", vary=False, fields=(), timeout=5)
