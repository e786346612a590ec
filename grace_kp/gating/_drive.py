"""The two drivers of the consent flow: they ask, wait and give up, in a plain call and in a coroutine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.background import DeadlineExceeded, await_within, call_within, finish, in_thread
from grace_kp.gating._flow import Ask, Assess, Engine, Failed, NoAnswer, Notify, Todo
from grace_kp.gating._hidden import without_secrets
from grace_kp.gating._notice import deliver
from grace_kp.gating._reviewer import as_response, is_async, review_function
from grace_kp.record import HOST

if TYPE_CHECKING:
    from grace_kp.gating._case import Case, Consent
    from grace_kp.gating._request import InterventionRequest, InterventionResponse

THREAD = "reviewer"


def drive(engine: Engine, case: Case) -> Consent:
    """Run the flow to its end in this thread."""
    done: Any = None
    while True:
        try:
            todo = engine.send(done)
        except StopIteration as stop:
            consent: Consent = stop.value
            return consent
        done = _do(todo, case) if not isinstance(todo, Ask) else ask(todo.reviewer, todo.request)


async def drive_async(engine: Engine, case: Case) -> Consent:
    """Run the flow to its end without blocking the event loop."""
    done: Any = None
    while True:
        try:
            todo = engine.send(done)
        except StopIteration as stop:
            consent: Consent = stop.value
            return consent
        if isinstance(todo, Ask):
            done = await ask_async(todo.reviewer, todo.request)
        elif isinstance(todo, Notify):
            done = await notify_async(case.scope.on_notify, todo.request)
        elif isinstance(todo, Assess) and case.scope.waits:
            import asyncio

            done = await asyncio.to_thread(_do, todo, case)
        else:
            done = _do(todo, case)


def _do(todo: Todo, case: Case) -> Any:
    try:
        if isinstance(todo, Assess):
            return case.scope.assess(case)
        if isinstance(todo, Notify):
            return notify(case.scope.on_notify, todo.request)
    except Exception as error:  # noqa: BLE001
        return Failed(error)
    return None


def notify(on_notify: Any, request: InterventionRequest) -> str | Exception:
    """Give notice that an action goes ahead, to `on_notify` or else in the log and at the terminal.

    Returns:
        Where the notice went; or what failed, which holds nothing up.
    """
    try:
        if on_notify is None:
            return deliver(request)
        finish(on_notify(without_secrets(request)))
    except Exception as error:  # noqa: BLE001
        return error
    return "on_notify"


async def notify_async(on_notify: Any, request: InterventionRequest) -> str | Exception:
    """`notify` from a coroutine."""
    try:
        if on_notify is None:
            return deliver(request)
        answer = on_notify(without_secrets(request))
        if hasattr(answer, "__await__"):
            await answer
    except Exception as error:  # noqa: BLE001
        return error
    return "on_notify"


def ask(reviewer: Any, request: InterventionRequest) -> InterventionResponse | NoAnswer | Failed:
    """Ask from a plain call. A reviewer that does not answer in time is left to itself; what it says later is not heard."""
    started = time.perf_counter()
    try:
        call = review_function(reviewer)
        if getattr(reviewer, "pauses", False):
            return _timed(as_response(call(request)), started)
        answer: Any = NoAnswer
        if not is_async(call) and (request.timeout is None or getattr(reviewer, "keeps_time", False)):
            answer = call(request)
        if answer is NoAnswer or hasattr(answer, "__await__"):
            answer = call_within(
                request.timeout, lambda: finish(call(request) if answer is NoAnswer else answer), name=THREAD
            )
        return _timed(as_response(answer), started)
    except DeadlineExceeded:
        return NoAnswer()
    except Exception as error:
        if HOST.pauses(error):
            raise
        return Failed(error)


def _timed(response: InterventionResponse, started: float) -> InterventionResponse:
    if response.response_time_ms is not None:
        return response
    return replace(response, response_time_ms=round((time.perf_counter() - started) * 1e3, 3))


async def ask_async(reviewer: Any, request: InterventionRequest) -> InterventionResponse | NoAnswer | Failed:
    """Ask from a coroutine, without blocking the event loop; a reviewer that is async is cancelled when time is up."""
    started = time.perf_counter()
    try:
        call = review_function(reviewer)
        if getattr(reviewer, "pauses", False):
            return _timed(as_response(call(request)), started)
        waiting = call(request) if is_async(call) else in_thread(lambda: finish(call(request)), name=THREAD)
        return _timed(as_response(await await_within(request.timeout, waiting)), started)
    except DeadlineExceeded:
        return NoAnswer()
    except Exception as error:
        if HOST.pauses(error):
            raise
        return Failed(error)
