"""A confirmation flow asks as its reviewer is asked: sync or async, and with the same promises."""

from __future__ import annotations

import asyncio
import functools
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.gating import CallbackReviewer, _confirmation, digest_of
from grace_kp.testing import make_grace

R = gk.InterventionResponse
CHANGE = R("modify", modified={"euros": 1})


class Reviewer:
    """Answers from a list; in the running loop where it is async."""

    def __init__(self, *answers):
        self.requests = []
        self.loops = []
        self._answers = list(answers)

    def __call__(self, request):
        self.requests.append(request)
        return self._answers.pop(0)

    async def ask(self, request):
        self.loops.append(asyncio.get_running_loop())
        return self(request)


class AsyncReviewer(Reviewer):
    async def review(self, request):
        return await self.ask(request)


FORMS = {
    "sync": lambda inner: inner,
    "coroutine function": lambda inner: inner.ask,
    "partial": lambda inner: functools.partial(inner.ask),
    "returns a coroutine": lambda inner: lambda request: inner.ask(request),
    "callback": lambda inner: CallbackReviewer(inner.ask),
}
forms = pytest.mark.parametrize("form", FORMS)
both = pytest.mark.parametrize("is_async", [False, True])


def call(reviewer, is_async, **policy):
    """What a gated payment of 9 returns."""
    grace = make_grace(reviewer=reviewer)

    def pay(to, euros):
        return f"{to} {euros}"

    async def pay_async(to, euros):
        return f"{to} {euros}"

    gated = grace.gate(floor="confirm", **policy)(pay_async if is_async else pay)
    return asyncio.run(gated("ana", 9)) if is_async else gated("ana", 9)


@both
@forms
def test_changes_are_confirmed(form, is_async):
    """Whether the gated function and the reviewer are sync or async."""
    inner = Reviewer(CHANGE, "proceed")
    assert "ana 1" == call(gk.ConfirmationFlow(FORMS[form](inner)), is_async)
    assert [9, 1] == [request.arguments["euros"] for request in inner.requests]


@both
@forms
def test_a_refusal_ends_it(form, is_async):
    """Nothing runs."""
    inner = Reviewer(CHANGE, "cancel")
    with pytest.raises(gk.ActionCancelled):
        call(gk.ConfirmationFlow(FORMS[form](inner)), is_async)


@both
def test_an_object_with_review(is_async):
    """Async, too."""
    inner = AsyncReviewer(CHANGE, "proceed")
    assert "ana 1" == call(gk.ConfirmationFlow(inner), is_async)


@pytest.mark.parametrize("wrap", [gk.ConfirmationFlow, CallbackReviewer])
def test_an_async_reviewer_runs_in_the_loop_of_the_action(wrap):
    """What belongs to that loop, such as a client or a queue, can be used."""
    inner = Reviewer("proceed")

    async def main():
        @make_grace(reviewer=wrap(inner.ask)).gate(floor="confirm")
        async def act(): ...

        await act()
        return asyncio.get_running_loop()

    assert inner.loops == [asyncio.run(main())]


class Channel(Reviewer):
    """Keeps its time, and stores what it shows."""

    keeps_time = True

    def stores(self, text):
        return False


@pytest.mark.parametrize("wrap", [gk.ConfirmationFlow, CallbackReviewer])
def test_the_promises_of_the_reviewer_hold(wrap):
    """It is asked in the same thread, and gets no secrets where its channel must not carry them."""
    inner = Channel("proceed", "proceed", "proceed")
    wrapped = wrap(inner)
    assert wrapped.keeps_time
    with pytest.raises(gk.ActionCancelled, match="hidden content"):
        make_grace(reviewer=wrapped).gate(floor="confirm")(lambda password: None)("correct horse")
    assert ["[REDACTED:password]"] * 3 == [request.arguments["password"] for request in inner.requests]


def test_all_rounds_share_the_time():
    """The second question has less of it; when none is left, nobody has answered."""
    inner = Channel(CHANGE, "proceed")
    assert "ana 1" == call(gk.ConfirmationFlow(inner), False, timeout=100)
    first, second = (request.timeout for request in inner.requests)
    assert first == 100 >= second > 0
    with pytest.raises(gk.ActionTimedOut):
        call(gk.ConfirmationFlow(Channel(CHANGE, "proceed")), False, timeout=0)


def test_the_number_of_changes_is_bounded(request_for):
    """After one change more than allowed, nothing runs."""
    inner = Reviewer(CHANGE, CHANGE, CHANGE)
    request = request_for({"euros": 9})
    response = gk.ConfirmationFlow(inner, max_rounds=1).review(request)
    assert ("cancel", "changed more than 1 times") == (response.action.value, response.user_input)
    assert [request.attempt, request.attempt + 1] == [shown.attempt for shown in inner.requests]
    with pytest.raises(ValueError, match="max_rounds must be 1 or more, not 0"):
        gk.ConfirmationFlow(inner, max_rounds=0)


def test_the_second_question_is_about_the_changed_call(request_for, monkeypatch):
    """Changed arguments hide nothing any more, and digest and time are those of the second question."""
    clock = iter([1_000.0, 1_010.26])
    monkeypatch.setattr(_confirmation, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    inner = Reviewer(CHANGE, "proceed")
    request = request_for({"euros": 9, "token": "x"}, timeout=100, hidden={"euros": 3, "token": 13})
    response = gk.ConfirmationFlow(inner).review(request)
    assert ("modify", {"euros": 1}) == (response.action.value, response.modified)
    second = inner.requests[1]
    assert {"euros": 1, "token": "x"} == dict(second.arguments)
    assert ({"token": 13}, 89.7) == (second.hidden, second.timeout)
    assert digest_of({"request": request.digest, "changes": {"euros": 1}}) == second.digest
