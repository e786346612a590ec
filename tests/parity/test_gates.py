"""A gate does the same for a plain action and for an async one, whatever its reviewer answers."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.testing import ScriptedReviewer, capture, make_grace

R = gk.InterventionResponse


def gated(grace, *, is_async, **options):
    """An action that counts how often it ran, sync or async, and a way to call it."""
    ran = []

    if is_async:

        @grace.gate(**options)
        async def act(to, euros=5):
            ran.append((to, euros))
            return f"{to} {euros}"

        return (lambda *a, **k: asyncio.run(act(*a, **k))), ran

    @grace.gate(**options)
    def act(to, euros=5):
        ran.append((to, euros))
        return f"{to} {euros}"

    return act, ran


@pytest.mark.parametrize("is_async", [False, True])
class TestAnswers:
    """Each answer, on a plain and on an async action."""

    def test_proceed(self, is_async):
        grace = make_grace(reviewer=ScriptedReviewer("proceed"))
        act, ran = gated(grace, is_async=is_async, floor="confirm")
        assert act("ana", euros=7) == "ana 7"
        assert ran == [("ana", 7)]

    def test_modify(self, is_async):
        grace = make_grace(reviewer=ScriptedReviewer(R("modify", modified={"euros": 1})))
        act, ran = gated(grace, is_async=is_async, floor="confirm")
        assert act("ana", 7) == "ana 1"
        assert ran == [("ana", 1)]

    def test_a_modification_that_does_not_fit_is_asked_again_three_times(self, is_async):
        bad = R("modify", modified={"dollars": 1})
        reviewer = ScriptedReviewer(bad, bad, bad)
        act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled, match="dollars"):
            act("ana")
        assert (reviewer.asked, ran) == (3, [])
        assert "dollars" in reviewer.requests[1].problem

    def test_skip(self, is_async):
        act, ran = gated(make_grace(reviewer=ScriptedReviewer("skip")), is_async=is_async, floor="confirm")
        assert act("ana") is None
        assert ran == []

    def test_input(self, is_async):
        grace = make_grace(reviewer=ScriptedReviewer(R("input", user_input="ask Bob")))
        act, ran = gated(grace, is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionRedirected) as redirected:
            act("ana")
        assert (redirected.value.user_input, ran) == ("ask Bob", [])

    def test_cancel(self, is_async):
        act, ran = gated(make_grace(reviewer=ScriptedReviewer("cancel")), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled) as refused:
            act("ana")
        assert not isinstance(refused.value, gk.ActionTimedOut)
        assert refused.value.request.action == "act"
        assert ran == []

    def test_retry_at_most_three_times(self, is_async):
        reviewer = ScriptedReviewer(*["retry"] * 4)
        act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled, match="again"):
            act("ana")
        assert (reviewer.asked, ran) == (4, [])

    @pytest.mark.parametrize("answer", [None, True, "yes please", 7, object(), RuntimeError("crash")])
    def test_whatever_is_no_answer_is_no_approval(self, is_async, answer):
        def reviewer(request):
            if isinstance(answer, Exception):
                raise answer
            return answer

        act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled):
            act("ana")
        assert ran == []

    def test_nobody_to_ask(self, is_async):
        act, ran = gated(make_grace(), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled, match="nobody"):
            act("ana")
        assert ran == []

    @pytest.mark.parametrize("async_reviewer", [False, True])
    def test_a_timeout_is_a_timeout_and_late_answers_are_not_heard(self, is_async, async_reviewer):
        is_over, answered = threading.Event(), threading.Event()

        def late(request):
            is_over.wait(60)
            answered.set()
            return R("proceed")

        async def never(request):
            await asyncio.sleep(30)

        grace = make_grace(reviewer=never if async_reviewer else late)
        act, ran = gated(grace, is_async=is_async, floor="confirm", timeout=0.05)
        with capture() as captured, pytest.raises(gk.ActionTimedOut, match="nobody answered") as error:
            act("ana")
        assert "refused" not in str(error.value)
        is_over.set()
        assert async_reviewer or answered.wait(60)
        assert ran == []
        assert captured.only.grace["decisions"][0]["outcome"] == "timed_out"

    def test_proceeding_unasked_has_to_be_said(self, is_async):
        policy = gk.Policy(floor="confirm", timeout=0.05, auto_proceed_on_timeout=True)
        is_over = threading.Event()
        act, ran = gated(make_grace(reviewer=lambda request: is_over.wait(60)), is_async=is_async, policy=policy)
        assert act("ana") == "ana 5"
        is_over.set()
        assert ran == [("ana", 5)]

    def test_deny_asks_nobody(self, is_async):
        reviewer = ScriptedReviewer()
        act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor="deny")
        with pytest.raises(gk.ActionDenied):
            act("ana")
        assert (reviewer.asked, ran) == (0, [])

    def test_arguments_that_change_meanwhile_are_not_run(self, is_async):
        basket = ["apple"]

        def sly(request):
            basket.append("car")
            return R("proceed")

        act, ran = gated(make_grace(reviewer=sly), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled, match="changed"):
            act(basket)
        assert ran == []

    def test_the_actions_own_error_passes_and_is_recorded(self, is_async):
        grace = make_grace(reviewer=ScriptedReviewer("proceed"))

        def body(to):
            raise LookupError(to)

        async def abody(to):
            raise LookupError(to)

        act = grace.gate(floor="confirm")(abody if is_async else body)
        with capture() as captured, pytest.raises(LookupError, match="ana"):
            asyncio.run(act("ana")) if is_async else act("ana")
        assert captured.only.grace["decisions"][0]["outcome"] == "failed"


BEHAVIOURS = st.sampled_from(
    ["proceed", "modify", "modify badly", "skip", "retry", "input", "cancel", "crash", "garbage", "true", "late"]
)


@given(st.lists(BEHAVIOURS, max_size=6), st.sampled_from(["confirm", "escalate"]), st.booleans())
def test_no_sequence_of_failures_lets_an_action_run_unasked(behaviours, floor, is_async):
    """Whatever a reviewer does, the action runs only after PROCEED or a fitting MODIFY, and at most once a call."""
    consents, script = [], iter(behaviours)

    def reviewer(request):
        what = next(script, "crash")
        if what == "crash":
            raise RuntimeError
        if what in {"garbage", "true"}:
            return True if what == "true" else "yes"
        if what == "late":
            return R("cancel", timeout_reached=True)
        if what == "modify badly":
            return R("modify", modified={"nonsense": 1})
        if what in {"proceed", "modify"}:
            consents.append(what)
        return R(what, modified={"euros": 1} if what == "modify" else None)

    act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor=floor, timeout=None)
    with contextlib.suppress(gk.ActionNotApproved):
        act("ana")
    assert len(ran) == len(consents) <= 1
