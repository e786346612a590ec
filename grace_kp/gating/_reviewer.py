"""Reviewers: any callable from request to response, sync or async, or an object with `review`. And notices, which need no answer.

An action neither waits for its notice nor fails with it.
"""

from __future__ import annotations

import inspect
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from grace_kp.gating._digest import digest_of
from grace_kp.gating._request import InterventionResponse
from grace_kp.levels import InterventionAction
from grace_kp.pages import printable
from grace_kp.trace import cut, redact_text, redact_value, render, to_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from grace_kp.gating._request import InterventionRequest

    Rounds = Generator[InterventionRequest, object, InterventionResponse]

LOGGER = "grace_kp.gate"
MAX_ARGUMENT = 120
MAX_LINE = 1_000


class Reviews(Protocol):
    """An object that answers requests."""

    def review(self, request: InterventionRequest, /) -> InterventionResponse | Awaitable[InterventionResponse]:
        """Return the answer."""


Reviewer: TypeAlias = Reviews | Callable[["InterventionRequest"], Any]


class ForwardingReviewer:
    """A reviewer that asks another, with the name and the abilities of that."""

    def __init__(self, asked: Reviewer, name: str | None = None) -> None:
        self.name = name or name_of(asked)
        # The attributes that a gate reads from its reviewer.
        self.keeps_time: bool = getattr(asked, "keeps_time", False) is True
        self.pauses: bool = getattr(asked, "pauses", False) is True
        self.stores: Callable[[str], bool] | None = getattr(asked, "stores", None)


def review_function(reviewer: object) -> Callable[[InterventionRequest], Any]:
    """Return the reviewer as a callable."""
    review = getattr(reviewer, "review", None)
    if callable(review):
        return cast("Callable[[InterventionRequest], Any]", review)
    if callable(reviewer):
        return reviewer
    raise TypeError(f"a reviewer must be a callable or have review(), not {type(reviewer).__name__}")


def name_of(reviewer: object) -> str:
    """Return the name under which the reviewer is recorded unless its response has another."""
    names = (getattr(reviewer, "name", None), getattr(reviewer, "__name__", None))
    return next((name for name in names if name and isinstance(name, str)), type(reviewer).__name__)


def is_async(call: object) -> bool:
    """Whether a call returns an awaitable: true for coroutine functions and objects whose `__call__` is such a function."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def as_response(answer: object) -> InterventionResponse:
    """Return the answer as a response."""
    if isinstance(answer, InterventionResponse):
        return answer
    if isinstance(answer, InterventionAction) or (type(answer) is str and answer in set(InterventionAction)):
        return InterventionResponse(answer)
    known = ", ".join(InterventionAction)
    # Only the type is named: the value may be something secret that the reviewer was shown.
    raise TypeError(f"the answer has the type {type(answer).__name__}; a reviewer returns a response or one of {known}")


class CallbackReviewer(ForwardingReviewer):
    """Asks a callable, sync or async. The record shows `name`, or the callable's own.

    Raises:
        TypeError: `callback` cannot be called.
    """

    def __init__(self, callback: Callable[[InterventionRequest], object], name: str | None = None) -> None:
        if not callable(callback):
            raise TypeError(f"callback must be a callable, not {type(callback).__name__}")
        super().__init__(callback, name)
        self._callback = callback

    @property
    def review(self) -> Callable[[InterventionRequest], object]:
        """Ask the callable."""
        return self._callback


class ConfirmationFlow(ForwardingReviewer):
    """Show changed arguments to the reviewer again until it confirms them; after `max_rounds` changes the action is cancelled.

    Wrap a reviewer to use it: `reviewer=ConfirmationFlow(mine)`. The answer is PROCEED where nothing was changed, and MODIFY with all
    changes otherwise. The flow is sync or async like its reviewer.

    Raises:
        TypeError: `reviewer` can neither be called nor has it `review`.
        ValueError: `max_rounds` is less than 1.
    """

    def __init__(self, reviewer: Reviewer, *, max_rounds: int = 3) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, not {max_rounds!r}")
        self._ask = review_function(reviewer)
        self._max_rounds = max_rounds
        super().__init__(reviewer)

    @property
    def review(self) -> Callable[[InterventionRequest], InterventionResponse | Awaitable[InterventionResponse]]:
        """Ask until the reviewer confirms, or has changed the arguments `max_rounds` times; a coroutine function where it is async."""
        return self._review_async if is_async(self._ask) else self._review

    def _review(self, request: InterventionRequest) -> InterventionResponse | Awaitable[InterventionResponse]:
        rounds = self._rounds(request)
        answer: object = None
        try:
            while not hasattr(answer, "__await__"):
                answer = self._ask(rounds.send(answer))
        except StopIteration as end:
            response: InterventionResponse = end.value
            return response
        return self._continue(rounds, answer)  # the reviewer is async, or a plain function that returned a coroutine

    async def _review_async(self, request: InterventionRequest) -> InterventionResponse:
        return await self._review(request)  # type: ignore[misc, no-any-return]

    async def _continue(self, rounds: Rounds, answer: object) -> InterventionResponse:
        try:
            while True:
                answer = self._ask(rounds.send(await answer if hasattr(answer, "__await__") else answer))
        except StopIteration as end:
            response: InterventionResponse = end.value
            return response

    def _rounds(self, request: InterventionRequest) -> Rounds:
        """Yield each request to show, receive the answer, and return the response."""
        ends = None if request.timeout is None else time.monotonic() + request.timeout
        changes: dict[str, object] = {}
        shown = request
        for _ in range(self._max_rounds + 1):
            response = as_response((yield shown))
            if response.timeout_reached:
                return response
            if response.action is InterventionAction.PROCEED and changes:
                return replace(response, action=InterventionAction.MODIFY, modified=changes)
            if response.action is not InterventionAction.MODIFY:
                return response
            if not response.modified:
                # No arguments to run with, and the reviewer has not approved the original ones.
                return replace(response, action=InterventionAction.CANCEL, user_input="modified without arguments")
            changes = {**changes, **response.modified}
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                return InterventionResponse(InterventionAction.CANCEL, timeout_reached=True, reviewer=self.name)
            shown = replace(
                request,
                arguments={**request.arguments, **changes},
                digest=digest_of({"request": request.digest, "changes": changes}),
                attempt=shown.attempt + 1,
                timeout=None if left is None else round(left, 1),
                hidden={name: count for name, count in request.hidden.items() if name not in changes},
            )
        return InterventionResponse(
            InterventionAction.CANCEL, user_input=f"changed more than {self._max_rounds} times", reviewer=self.name
        )


def deliver(request: InterventionRequest) -> str:
    """Log the notice, and print it where standard error is a terminal."""
    line = notice_line(request.action, request.arguments, request.reason)
    logging.getLogger(LOGGER).info("%s", line)
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return "log"
    stream.write(f"grace-kp: {line}\n")
    stream.flush()
    return "terminal"


def notice_line(action: str, arguments: Mapping[str, object], reason: str) -> str:
    """Return action, arguments and reason on one line, without control characters and secrets; long values are visibly cut."""
    # First remove control characters: they could split a secret in two and hide it from redaction.
    shown = redact_value(_printable(render(dict(arguments))), identifiers=False)
    called = ", ".join(f"{name}={cut(to_text(value), MAX_ARGUMENT)}" for name, value in shown.items())
    why = redact_text(_printable(reason), identifiers=False)
    return cut(_printable(f"{action or 'an action'}({called}) goes ahead with a notice: {why}"), MAX_LINE)


def record_notice(entry: dict[str, Any], request: InterventionRequest, delivered: str | Exception) -> None:
    """Add the notice to a gate's entry, and where it went or why it was not delivered."""
    failed = isinstance(delivered, Exception)
    text = notice_line(request.action, request.arguments, request.reason)
    entry["notice"] = {"to": None if failed else delivered, "text": text}
    if failed:
        entry["notify_error"] = f"{type(delivered).__name__}: {delivered}"


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value, replace=lambda character: " " if character.isspace() else "")
    if isinstance(value, dict):
        return {_printable(name): _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value
