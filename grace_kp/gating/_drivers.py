"""The steps that the engine yields, and the two drivers that perform them: in a plain call and in a coroutine. Here a gate fails closed.

The driver raises the error of a step inside the engine, which then ends without a consent. `InterventionHandler` performs single steps
for decisions outside of a gate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from grace_kp.background import DeadlineExceeded, await_within, begin, call_within, finish, in_thread, running_loop
from grace_kp.gating._digest import digest_of
from grace_kp.gating._outcome import Raised, Returned
from grace_kp.gating._policy import check_auto_proceed, check_timeout
from grace_kp.gating._request import (
    InterventionRequest,
    InterventionResponse,
    as_response,
    deliver,
    for_reviewer,
    is_async,
    name_of,
    new_request_id,
    review_function,
    without_secrets,
)
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import HOST, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from grace_kp.confidence import ActionDecision
    from grace_kp.gating._case import Consent
    from grace_kp.gating._request import Reviewer

    T = TypeVar("T")
    Steps: TypeAlias = Generator["EngineStep", Any, T]
    """Steps for a driver, which end with a result."""

THREAD = "reviewer"


class EngineStep:
    """One step of the engine. `perform_async` does not block the event loop."""

    __slots__ = ()
    blocks = False
    """Whether it may take long, and must not be performed on an event loop."""

    def perform(self) -> Any:
        """Perform the step, and return the result for the engine."""
        raise NotImplementedError

    async def perform_async(self) -> Any:
        """`perform` in a coroutine."""
        return self.perform()


@dataclass(frozen=True, slots=True)
class Failed:
    """The step failed with this error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No answer arrived in time."""


@dataclass(frozen=True, slots=True)
class Work(EngineStep):
    """Compute the confidence, or read or write the ledger."""

    work: Callable[[], object]
    blocks: bool = True
    writes: bool = False
    """Whether a cancellation of the caller waits until the work is complete."""

    def perform(self) -> object:
        """Return the result, or `Failed`."""
        try:
            return self.work()
        except Exception as error:  # noqa: BLE001 — the engine decides what follows
            return Failed(error)

    async def perform_async(self) -> object:
        """Perform in a thread. A cancellation during a write is raised after the write."""
        if not self.blocks:
            return self.perform()
        import asyncio
        import contextvars

        if not self.writes:
            return await asyncio.to_thread(self.perform)
        try:
            # A future and no task: an event loop that ends cancels all its tasks.
            performing = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, self.perform)
        except RuntimeError:  # the loop's threads have ended
            return self.perform()
        cancelled: BaseException | None = None
        while not performing.done():
            try:
                await asyncio.shield(performing)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        return performing.result()


@dataclass(frozen=True, slots=True)
class Ask(EngineStep):
    """Ask a reviewer, and give up after the request's timeout."""

    request: InterventionRequest
    reviewer: Reviewer
    blocks = True

    def perform(self) -> InterventionResponse | NoAnswer | Failed:
        # The thread of a reviewer that does not answer in time goes on. Its later answer has no effect.
        started, request = time.perf_counter(), self.request
        try:
            call = review_function(self.reviewer)
            answer: Any = NoAnswer
            is_direct = request.timeout is None or getattr(self.reviewer, "keeps_time", False)
            if getattr(self.reviewer, "pauses", False) or (is_direct and not is_async(call)):
                answer = call(request)
            if answer is NoAnswer or hasattr(answer, "__await__"):
                answer = call_within(
                    request.timeout, lambda: finish(call(request) if answer is NoAnswer else answer), name=THREAD
                )
            return _with_time(as_response(answer), started)
        except Exception as error:  # noqa: BLE001 — the engine decides what follows
            return _without_answer(error)

    async def perform_async(self) -> InterventionResponse | NoAnswer | Failed:
        # An async reviewer is cancelled when time is up.
        started, request = time.perf_counter(), self.request
        try:
            call = review_function(self.reviewer)
            if getattr(self.reviewer, "pauses", False):
                return _with_time(as_response(call(request)), started)
            waiting = call(request) if is_async(call) else in_thread(lambda: finish(call(request)), name=THREAD)
            return _with_time(as_response(await await_within(request.timeout, waiting)), started)
        except Exception as error:  # noqa: BLE001 — the engine decides what follows
            return _without_answer(error)


def _with_time(response: InterventionResponse, started: float) -> InterventionResponse:
    if response.response_time_ms is not None:
        return response
    return replace(response, response_time_ms=round((time.perf_counter() - started) * 1e3, 3))


def _without_answer(error: Exception) -> NoAnswer | Failed:
    if isinstance(error, DeadlineExceeded):
        return NoAnswer()
    if HOST.pauses(error):
        raise error
    return Failed(error)


@dataclass(frozen=True, slots=True)
class AskBeside(EngineStep):
    """Ask a second reviewer about a request in the inbox, without waiting for the answer."""

    request: InterventionRequest
    reviewer: Reviewer
    decide: Callable[[InterventionRequest, InterventionResponse], None]
    """Decides the request by the answer."""
    describe_end: Callable[[], str]
    """Returns how the request was settled elsewhere; empty while it is open."""

    def perform(self) -> bool:
        shown, asked = for_reviewer(self.request, self.reviewer), self.reviewer
        if (review_until := getattr(asked, "review_until", None)) is not None:
            # A prompt that stays open would read answers to other questions.
            asked = SimpleNamespace(
                review=lambda request: review_until(request, self.describe_end),
                keeps_time=getattr(asked, "keeps_time", False),
            )

        def answer() -> None:
            response = Ask(shown, asked).perform()
            if isinstance(response, InterventionResponse) and not response.timeout_reached:
                self.decide(shown, replace(response, reviewer=response.reviewer or name_of(self.reviewer)))

        return begin(answer, name=THREAD)


@dataclass(frozen=True, slots=True)
class Await(EngineStep):
    """Wait for a decision in the inbox, for an execution elsewhere to end, or for the calls before this one in a program."""

    wait: Callable[[], object]
    wait_async: Callable[[], Awaitable[object]]
    blocks = True

    def perform(self) -> object:
        """Wait in this thread; return the result, or `Failed`."""
        return Work(self.wait).perform()

    async def perform_async(self) -> object:
        """Wait on the event loop; return the result, or `Failed`."""
        try:
            return await self.wait_async()
        except Exception as error:  # noqa: BLE001 — the engine decides what follows
            return Failed(error)


@dataclass(frozen=True, slots=True)
class Notify(EngineStep):
    """Give notice that an action goes ahead, to `on_notify` or else in the log and at the terminal.

    The engine gets where the notice went, or why it could not be delivered.
    """

    request: InterventionRequest
    on_notify: Callable[[InterventionRequest], object] | None

    def perform(self) -> str | Exception:
        try:
            if self.on_notify is None:
                return deliver(self.request)
            finish(self.on_notify(without_secrets(self.request)))
        except Exception as error:  # noqa: BLE001 — a notice asks nothing
            return error
        return "on_notify"

    async def perform_async(self) -> str | Exception:
        try:
            if self.on_notify is None:
                return deliver(self.request)
            answer = self.on_notify(without_secrets(self.request))
            if hasattr(answer, "__await__"):
                await answer
        except Exception as error:  # noqa: BLE001 — as above
            return error
        return "on_notify"


@dataclass(frozen=True, slots=True)
class RunAction(EngineStep):
    """Run the action, by the function that the driver has for it."""

    consent: Consent
    operation: str = ""
    """Source of the idempotency key: the same for each attempt under one approval or one entry in the ledger."""


class CoroutineClosed(BaseException):
    """The coroutine of the call is being closed. A GeneratorExit would close the engine before it can state the outcome."""


def _no_action(_consent: Consent) -> Any:
    raise TypeError("this engine runs no action")


def drive(engine: Steps[T], run: Callable[[Consent], object] = _no_action) -> T:
    """Run the engine to its end in this thread."""
    advance: Callable[[Any], EngineStep] = engine.send
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
                outer = OPERATIONS.get()
                OPERATIONS.set((*outer, step.operation))
                try:
                    answer = Returned(run(step.consent))
                finally:
                    OPERATIONS.set(outer)
            else:
                answer = step.perform()
        except BaseException as error:  # noqa: BLE001 — the engine raises it, after it has stated it in the trace
            advance, answer = _outcome_of(step, error, engine)


async def drive_async(engine: Steps[T], run: Callable[[Consent], Awaitable[object]] = _no_action) -> T:
    """`drive` without blocking the event loop."""
    advance: Callable[[Any], EngineStep] = engine.send
    answer: Any = None
    is_closing = False  # a coroutine that is being closed can wait for nothing
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
            if isinstance(step, RunAction):
                outer = OPERATIONS.get()
                OPERATIONS.set((*outer, step.operation))
                try:
                    answer = Returned(await run(step.consent))
                finally:
                    OPERATIONS.set(outer)
            elif is_closing:
                answer = step.perform()
            else:
                if step.blocks:
                    running_loop()
                answer = await step.perform_async()
        except BaseException as error:  # noqa: BLE001 — as in `drive`
            advance, answer = _outcome_of(step, error, engine)
            if isinstance(error, GeneratorExit):
                is_closing = True
                answer = answer if isinstance(step, RunAction) else CoroutineClosed()


def _outcome_of(step: EngineStep, error: BaseException, engine: Steps[Any]) -> tuple[Any, Any]:
    """Return how the engine goes on after an error: an action that raised has an outcome, any other step ends the engine."""
    return (engine.send, Raised(error)) if isinstance(step, RunAction) else (engine.throw, error)


def until_action(engine: Steps[T], answer: object = None) -> Steps[T | RunAction]:
    """Perform the engine's steps until the action is to run, or to the end."""
    advance: Callable[[Any], Any] = engine.send
    while True:
        try:
            step = advance(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if isinstance(step, RunAction):
            return step
        try:
            answer = yield step
            advance = engine.send
        except BaseException as error:  # noqa: BLE001 — the engine raises it, after it has stated it
            advance, answer = engine.throw, error


def attempt(engine: Steps[T]) -> Steps[T | Exception]:
    """Return what an engine returns or raises, for callers that phrase a refusal or a failure themselves."""
    try:
        return (yield from engine)
    except Exception as error:  # noqa: BLE001 — any error means that there is no consent
        return error


class InterventionHandler:
    """SILENT proceeds; NOTIFY calls `on_notify` and proceeds; CONFIRM asks `on_confirm`; ESCALATE asks `on_escalate`.

    Callbacks take an InterventionRequest and may be async. Without a callback, with one that fails, and without an answer in time the
    response is CANCEL, or PROCEED with `auto_proceed_on_timeout`, and `timeout_reached` is set.
    """

    def __init__(
        self,
        on_notify: Callable[[InterventionRequest], Any] | None = None,
        on_confirm: Callable[[InterventionRequest], Any] | None = None,
        on_escalate: Callable[[InterventionRequest], Any] | None = None,
        timeout: float | None = 300.0,
        auto_proceed_on_timeout: bool = False,
    ) -> None:
        """See the class.

        Args:
            on_notify: called with the request that goes ahead; its errors change nothing. When None, a line in the log and, at a
                terminal, on standard error.
            on_confirm: asked to confirm.
            on_escalate: asked for help.
            timeout: seconds to wait for an answer; None waits without limit.
            auto_proceed_on_timeout: proceed without an answer, whatever the reason. Gates are stricter; see `Policy`.

        Raises:
            ValueError: `timeout` is not a number of 0 or more, or `auto_proceed_on_timeout` is neither True nor False.
        """
        check_timeout(timeout)
        check_auto_proceed(auto_proceed_on_timeout)
        self._on_notify = on_notify
        self._callbacks = {InterventionLevel.CONFIRM: on_confirm, InterventionLevel.ESCALATE: on_escalate}
        self.timeout = timeout
        self.auto_proceed_on_timeout = auto_proceed_on_timeout

    def handle(self, decision: ActionDecision | InterventionRequest) -> InterventionResponse:
        """Notify or ask as the decision's level requires, and return the response. Errors of callbacks are not raised."""
        return drive(self._handle(decision))

    async def ahandle(self, decision: ActionDecision | InterventionRequest) -> InterventionResponse:
        """`handle`, without blocking the event loop."""
        return await drive_async(self._handle(decision))

    def _handle(self, decision: ActionDecision | InterventionRequest) -> Steps[InterventionResponse]:
        request = decision
        if not isinstance(request, InterventionRequest):
            request = InterventionRequest(
                id=new_request_id(),
                action="",
                arguments={},
                digest=digest_of({}),
                level=request.level,
                decision=request,
                reason=request.reason,
                timeout=self.timeout,
                on_timeout="proceed" if self.auto_proceed_on_timeout else "cancel",
            )
        if request.level is InterventionLevel.NOTIFY:
            yield Notify(request, self._on_notify)
        if not request.level.asks:
            return InterventionResponse(InterventionAction.PROCEED)
        callback = self._callbacks[request.level]
        answer = None if callback is None else (yield Ask(request, callback))
        if isinstance(answer, InterventionResponse):
            return answer
        action = InterventionAction.PROCEED if self.auto_proceed_on_timeout else InterventionAction.CANCEL
        return InterventionResponse(action, timeout_reached=True)
