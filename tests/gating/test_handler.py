"""A handler notifies, asks or proceeds as a decision's level requires, and never raises on account of a callback."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

import grace_kp as gk

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "intervention.jsonl"
R = gk.InterventionResponse
both = pytest.mark.parametrize("is_async", [False, True])


def decide(level):
    return gk.ActionDecision(gk.InterventionLevel(level), 0.5, "because", "proceed")


def test_golden_vectors():
    """What the handler does at each level, with and without a callback."""
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        callback = None if row["handler_action"] is None else (lambda request, row=row: R(row["handler_action"]))
        handler = gk.InterventionHandler(
            on_notify=lambda request: None, on_confirm=callback, on_escalate=callback,
            auto_proceed_on_timeout=row["auto_proceed_on_timeout"],
        )  # fmt: skip
        response = handler.handle(decide(row["level"]))
        got = {
            "action": response.action,
            "should_continue": response.should_continue,
            "timeout_reached": response.timeout_reached,
        }
        assert row["expected"] == got, row
        assert row["expected"]["action"] == asyncio.run(handler.ahandle(decide(row["level"]))).action


def handled(handler, decision, is_async):
    return asyncio.run(handler.ahandle(decision)) if is_async else handler.handle(decision)


def outcome(response):
    return str(response.action), response.timeout_reached


@both
@pytest.mark.parametrize("level", ["silent", "notify"])
def test_levels_that_do_not_ask_proceed(level, is_async):
    """Nobody is asked, and only NOTIFY calls `on_notify`."""
    notices, asked = [], []
    handler = gk.InterventionHandler(on_notify=notices.append, on_confirm=asked.append, on_escalate=asked.append)
    assert ("proceed", False) == outcome(handled(handler, decide(level), is_async))
    assert ([level] * (level == "notify"), []) == ([str(request.level) for request in notices], asked)


@both
def test_each_level_has_its_callback(is_async):
    """CONFIRM asks `on_confirm`, ESCALATE asks `on_escalate`; the response is the callback's."""
    handler = gk.InterventionHandler(on_confirm=lambda request: R("skip"), on_escalate=lambda request: "cancel")
    assert ("skip", False) == outcome(handled(handler, decide("confirm"), is_async))
    assert ("cancel", False) == outcome(handled(handler, decide("escalate"), is_async))


@both
def test_a_callback_may_be_async(is_async):
    """A coroutine function is awaited by both methods."""

    async def confirm(request):
        await asyncio.sleep(0)
        return R("proceed", user_input=request.reason)

    response = handled(gk.InterventionHandler(on_confirm=confirm), decide("confirm"), is_async)
    assert ("proceed", "because") == (str(response.action), response.user_input)


def fails(request):
    raise ConnectionError("no network")


def waits(request):
    threading.Event().wait()


@both
@pytest.mark.parametrize("callback", [None, fails, waits, lambda request: True])
@pytest.mark.parametrize(("proceeds", "action"), [(False, "cancel"), (True, "proceed")])
def test_without_an_answer(callback, proceeds, action, is_async):
    """No callback, a failure, silence and nonsense all count as a timeout."""
    handler = gk.InterventionHandler(
        on_confirm=callback, timeout=0.01 if callback is waits else 30.0, auto_proceed_on_timeout=proceeds
    )
    assert (action, True) == outcome(handled(handler, decide("confirm"), is_async))


@both
def test_a_notice_that_fails_changes_nothing(is_async):
    """The action proceeds."""
    assert ("proceed", False) == outcome(handled(gk.InterventionHandler(on_notify=fails), decide("notify"), is_async))


def test_callbacks_get_a_request():
    """It carries the decision, its level and reason, and the handler's timeout; it has no arguments, and an id of its own."""
    requests = []
    handler = gk.InterventionHandler(on_confirm=lambda request: requests.append(request) or "cancel", timeout=7.5)
    decision = decide("confirm")
    handler.handle(decision)
    handler.handle(decision)
    first, second = requests
    assert (decision, decision.level, "because", 7.5) == (first.decision, first.level, first.reason, first.timeout)
    assert ("", {}, 64) == (first.action, dict(first.arguments), len(first.digest))
    assert first.id != second.id


def test_a_request_is_passed_on_unchanged():
    """Its own timeout holds."""
    requests = []
    request = gk.InterventionRequest(
        id="mine", action="pay", arguments={"to": "ana"}, digest="", level=gk.InterventionLevel.ESCALATE,
        decision=decide("escalate"), timeout=30,
    )  # fmt: skip
    handler = gk.InterventionHandler(on_escalate=lambda request: requests.append(request) or "proceed", timeout=0)
    assert "proceed" == handler.handle(request).action
    assert requests[0] is request
