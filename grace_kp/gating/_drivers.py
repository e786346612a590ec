"""The two drivers of the engine: they do its steps in a plain call and in a coroutine. Here a gate fails closed.

Whatever a step raises goes back into the engine, which then ends without a consent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.background import DeadlineExceeded, await_within, begin, call_within, finish, in_thread, running_loop
from grace_kp.gating._hidden import for_reviewer, without_secrets
from grace_kp.gating._outcome import Raised, Returned
from grace_kp.gating._request import InterventionResponse
from grace_kp.gating._reviewer import as_response, deliver, is_async, name_of, review_function
from grace_kp.gating._steps import Ask, AskBeside, Await, Failed, NoAnswer, Notify, RunAction, WaitTurn
from grace_kp.record import HOST, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from grace_kp.gating._case import Consent
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._reviewer import Reviewer
    from grace_kp.gating._steps import Step, Work

    Notified = Callable[[InterventionRequest], object] | None
    T = TypeVar("T")

THREAD = "reviewer"


class CoroutineClosed(BaseException):
    """The coroutine of the call is being closed. A GeneratorExit would close the generators in the engine, which could state nothing more."""


def _no_action(_consent: Consent) -> Any:
    raise TypeError("this engine runs no action")


def drive(engine: Generator[Step, Any, T], run: Callable[[Consent], object] = _no_action) -> T:
    """Run the engine to its end in this thread."""
    advance: Callable[[Any], Step] = engine.send
    answer: Any = None
    while True:
        try:
            step = advance(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        advance = engine.send
        try:
            if isinstance(step, RunAction):
                answer = _run(step, run)
            elif isinstance(step, Ask):
                answer = ask(step.reviewer, step.request)
            elif isinstance(step, Notify):
                answer = notify(step.on_notify, step.request)
            elif isinstance(step, WaitTurn):
                step.program.wait()
                answer = None
            elif isinstance(step, Await):
                answer = _perform_waiting(step)
            elif isinstance(step, AskBeside):
                answer = ask_beside(step)
            else:
                answer = _perform(step)
        except BaseException as error:  # noqa: BLE001 — the engine raises it, after it has stated it in the trace
            advance, answer = engine.throw, error


async def drive_async(engine: Generator[Step, Any, T], run: Callable[[Consent], Awaitable[object]] = _no_action) -> T:
    """`drive` without blocking the event loop."""
    advance: Callable[[Any], Step] = engine.send
    answer: Any = None
    is_closing = False
    """Whether the coroutine is being closed, so that it can wait for nothing."""
    while True:
        try:
            step = advance(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except CoroutineClosed:
            raise GeneratorExit from None
        advance = engine.send
        try:
            if getattr(step, "blocks", isinstance(step, Ask | Await)) and not is_closing:
                running_loop()
            if isinstance(step, RunAction):
                answer = await _run_async(step, run)
            elif isinstance(step, Ask):
                answer = await ask_async(step.reviewer, step.request)
            elif isinstance(step, Notify):
                answer = await notify_async(step.on_notify, step.request)
            elif isinstance(step, WaitTurn):
                await step.program.wait_async()
                answer = None
            elif isinstance(step, Await):
                answer = await _perform_waiting_async(step)
            elif isinstance(step, AskBeside):
                answer = ask_beside(step)
            elif step.blocks and not is_closing:
                answer = await _perform_in_thread(step)
            else:
                answer = _perform(step)
        except GeneratorExit as error:
            is_closing = True
            if isinstance(step, RunAction):
                answer = Raised(error)
            else:
                advance, answer = engine.throw, CoroutineClosed()
        except BaseException as error:  # noqa: BLE001 — as in `drive`
            advance, answer = engine.throw, error


def attempt(engine: Generator[Step, Any, T]) -> Generator[Step, Any, T | Exception]:
    """Return what an engine returns or raises, for callers that phrase a refusal or a failure themselves."""
    try:
        return (yield from engine)
    except Exception as error:  # noqa: BLE001 — whatever it is, there is no consent
        return error


def _perform(step: Work) -> object:
    try:
        return step.perform()
    except Exception as error:  # noqa: BLE001 — the engine decides what follows
        return Failed(error)


async def _perform_in_thread(step: Work) -> object:
    """Do a step in a thread. Where it writes, a cancellation is raised only after its end, so that nothing is left half done."""
    import asyncio
    import contextvars

    if not step.writes:
        return await asyncio.to_thread(_perform, step)
    try:
        # A future and no task: an event loop that ends cancels all its tasks.
        performing = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, _perform, step)
    except RuntimeError:  # the loop's threads have ended
        return _perform(step)
    cancelled: BaseException | None = None
    while not performing.done():
        try:
            await asyncio.shield(performing)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return performing.result()


def _perform_waiting(step: Await) -> object:
    try:
        return step.inquiry.wait()
    except Exception as error:  # noqa: BLE001 — the engine decides what follows
        return Failed(error)


async def _perform_waiting_async(step: Await) -> object:
    try:
        return await step.inquiry.wait_async()
    except Exception as error:  # noqa: BLE001 — as above
        return Failed(error)


def _run(step: RunAction, run: Callable[[Consent], object]) -> Returned | Raised:
    outer = OPERATIONS.get()
    OPERATIONS.set((*outer, step.operation))
    try:
        return Returned(run(step.consent))
    except BaseException as error:  # noqa: BLE001 — raised again once the outcome is stated
        return Raised(error)
    finally:
        OPERATIONS.set(outer)


async def _run_async(step: RunAction, run: Callable[[Consent], Awaitable[object]]) -> Returned | Raised:
    outer = OPERATIONS.get()
    OPERATIONS.set((*outer, step.operation))
    try:
        return Returned(await run(step.consent))
    except BaseException as error:  # noqa: BLE001 — as in `_run`
        return Raised(error)
    finally:
        OPERATIONS.set(outer)


def notify(on_notify: Notified, request: InterventionRequest) -> str | Exception:
    """Give notice that an action goes ahead, to `on_notify` or else in the log and at the terminal."""
    try:
        if on_notify is None:
            return deliver(request)
        finish(on_notify(without_secrets(request)))
    except Exception as error:  # noqa: BLE001
        return error
    return "on_notify"


async def notify_async(on_notify: Notified, request: InterventionRequest) -> str | Exception:
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


def ask(reviewer: Reviewer, request: InterventionRequest) -> InterventionResponse | NoAnswer | Failed:
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


@dataclass(frozen=True, slots=True)
class _Until:
    """A reviewer at a terminal whose question ends when it is decided elsewhere."""

    review: Callable[[InterventionRequest], InterventionResponse]
    keeps_time: bool = True


def ask_beside(step: AskBeside) -> bool:
    """Ask a second reviewer in a thread of its own, and decide the request in the inbox by its answer; return whether a thread could begin."""
    shown, inquiry = for_reviewer(step.request, step.reviewer), step.inquiry
    reviewer: Any = step.reviewer
    if (review_until := getattr(reviewer, "review_until", None)) is not None:
        # A prompt that stays open would take what is typed for another question.
        reviewer = _Until(lambda request: review_until(request, inquiry.ended))

    def answer() -> None:
        response = ask(reviewer, shown)
        if isinstance(response, InterventionResponse) and not response.timeout_reached:
            inquiry.answer(shown, replace(response, reviewer=response.reviewer or name_of(step.reviewer)))

    return begin(answer, name=THREAD)


def _timed(response: InterventionResponse, started: float) -> InterventionResponse:
    if response.response_time_ms is not None:
        return response
    return replace(response, response_time_ms=round((time.perf_counter() - started) * 1e3, 3))


async def ask_async(reviewer: Reviewer, request: InterventionRequest) -> InterventionResponse | NoAnswer | Failed:
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
