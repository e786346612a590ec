"""Who can be asked: any callable from request to response, sync or async, or an object with `review`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from grace_kp.gating._request import InterventionResponse
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from grace_kp.gating._request import InterventionRequest


class Reviews(Protocol):
    """An object that answers requests."""

    def review(self, request: InterventionRequest, /) -> InterventionResponse | Awaitable[InterventionResponse]:
        """The answer."""
        ...


Reviewer: TypeAlias = Reviews | Callable[["InterventionRequest"], Any]


class UnusableAnswer(Exception):
    """A reviewer answered with something that is no answer."""


def asking(reviewer: Any) -> Callable[[InterventionRequest], Any]:
    """The reviewer as a callable.

    Raises:
        TypeError: it can neither be called nor has it `review`.
    """
    review = getattr(reviewer, "review", None)
    if callable(review):
        return review  # type: ignore[no-any-return]
    if callable(reviewer):
        return reviewer  # type: ignore[no-any-return]
    raise TypeError(f"a reviewer is a callable or has review(), not {type(reviewer).__name__}")


def name_of(reviewer: Any) -> str:
    """What the record calls the reviewer when it does not say itself."""
    names = (getattr(reviewer, "name", None), getattr(reviewer, "__name__", None))
    return next((name for name in names if name and isinstance(name, str)), type(reviewer).__name__)


def is_async(call: Any) -> bool:
    """Whether calling it gives something to await; looked for through objects with `__call__`."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def understood(answer: Any) -> InterventionResponse:
    """The answer as a response.

    Raises:
        UnusableAnswer: neither a response nor an action. True is none: a slip must not approve.
    """
    if isinstance(answer, InterventionResponse):
        return answer
    if isinstance(answer, InterventionAction) or (type(answer) is str and answer in set(InterventionAction)):
        return InterventionResponse(answer)
    known = ", ".join(InterventionAction)
    # Only the type is named: the value may be something secret that the reviewer was shown.
    raise UnusableAnswer(f"the answer has the type {type(answer).__name__} and is none of {known}")
