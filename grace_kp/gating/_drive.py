"""The two drivers of the consent flow: they ask, wait and give up, in a plain call and in a coroutine."""

from __future__ import annotations

import contextvars
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating._flow import Ask, Assess, Engine, Failed, NoAnswer, Notify, Todo
from grace_kp.gating._hidden import without_secrets
from grace_kp.gating._notice import deliver
from grace_kp.gating._reviewer import asking, is_async, understood
from grace_kp.record import pauses

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._case import Case, Consent
    from grace_kp.gating._request import InterventionRequest, InterventionResponse


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


def _finish(answer: Any) -> None:
    """A notice may be a coroutine."""
    if hasattr(answer, "__await__"):
        import asyncio

        worker = threading.Thread(target=lambda: asyncio.run(_awaited(answer)), daemon=True)
        worker.start()
        worker.join()


def notify(on_notify: Any, request: InterventionRequest) -> str | Exception:
    """Give notice that an action goes ahead, to `on_notify` or else in the log and at the terminal.

    Returns:
        Where the notice went; or what failed, which holds nothing up.
    """
    try:
        if on_notify is None:
            return deliver(request)
        _finish(on_notify(without_secrets(request)))
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
        call = asking(reviewer)
        if getattr(reviewer, "pauses", False):
            return _timed(understood(call(request)), started)
        if not is_async(call) and (request.timeout is None or getattr(reviewer, "keeps_time", False)):
            answer = call(request)
            if not hasattr(answer, "__await__"):
                return _timed(understood(answer), started)
            call = _ready(answer)
        box = _Box()
        context = contextvars.copy_context()
        worker = threading.Thread(
            target=context.run, args=(box.fill, call, request), daemon=True, name="grace_kp reviewer"
        )
        worker.start()
        if not box.done.wait(request.timeout):
            return NoAnswer()
        if box.error is not None:
            raise box.error
        return _timed(understood(box.answer), started)
    except Exception as error:
        if pauses(error):
            raise
        return Failed(error)


def _ready(answer: Any) -> Callable[[Any], Any]:
    return lambda _request: answer


def _timed(response: InterventionResponse, started: float) -> InterventionResponse:
    if response.response_time_ms is not None:
        return response
    return replace(response, response_time_ms=round((time.perf_counter() - started) * 1e3, 3))


class _Box:
    """What a reviewer in another thread came to."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None

    def fill(self, call: Callable[[Any], Any], request: InterventionRequest) -> None:
        try:
            answer = call(request)
            if hasattr(answer, "__await__"):
                import asyncio

                answer = asyncio.run(_awaited(answer))
            self.answer = answer
        except BaseException as error:  # noqa: BLE001
            self.error = error
        self.done.set()


async def _awaited(answer: Any) -> Any:
    return await answer


async def ask_async(reviewer: Any, request: InterventionRequest) -> InterventionResponse | NoAnswer | Failed:
    """Ask from a coroutine, without blocking the event loop; a reviewer that is async is cancelled when time is up."""
    import asyncio

    started = time.perf_counter()
    try:
        call = asking(reviewer)
        if getattr(reviewer, "pauses", False):
            return _timed(understood(call(request)), started)
        waiting = _awaited(call(request)) if is_async(call) else _in_thread(call, request)
        task = asyncio.ensure_future(waiting)
        try:
            done, _ = await asyncio.wait({task}, timeout=request.timeout)
        except BaseException:
            task.cancel()
            raise
        if not done:
            task.cancel()
            return NoAnswer()
        return _timed(understood(task.result()), started)
    except Exception as error:
        if pauses(error):
            raise
        return Failed(error)


async def _in_thread(call: Callable[[Any], Any], request: InterventionRequest) -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    finished = asyncio.Event()
    box = _Box()
    context = contextvars.copy_context()

    def work() -> None:
        box.fill(call, request)
        try:
            loop.call_soon_threadsafe(finished.set)
        except RuntimeError:
            return  # the loop is gone, and with it whoever asked

    threading.Thread(target=context.run, args=(work,), daemon=True, name="grace_kp reviewer").start()
    await finished.wait()
    if box.error is not None:
        raise box.error
    return box.answer
