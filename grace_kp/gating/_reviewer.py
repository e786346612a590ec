"""Reviewers: any callable from request to response, sync or async, or an object with `review`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from grace_kp.gating._request import InterventionResponse
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from grace_kp.gating._request import InterventionRequest


class Reviews(Protocol):
    """An object that answers requests."""

    def review(self, request: InterventionRequest, /) -> InterventionResponse | Awaitable[InterventionResponse]:
        """Return the answer."""
        ...


Reviewer: TypeAlias = Reviews | Callable[["InterventionRequest"], Any]


class UnusableAnswer(Exception):
    """A reviewer returned neither a response nor an action."""


class ForwardingReviewer:
    """A reviewer that asks another, with the name and the abilities of that."""

    def __init__(self, asked: Reviewer, name: str | None = None) -> None:
        self.name = name or name_of(asked)
        # What a gate reads from its reviewer.
        self.keeps_time: bool = getattr(asked, "keeps_time", False) is True
        self.pauses: bool = getattr(asked, "pauses", False) is True
        self.stores: Callable[[str], bool] | None = getattr(asked, "stores", None)


def review_function(reviewer: object) -> Callable[[InterventionRequest], Any]:
    """Return the reviewer as a callable.

    Raises:
        TypeError: it can neither be called nor has it `review`.
    """
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
    """Return the answer as a response.

    Raises:
        UnusableAnswer: the answer is neither a response nor an action. True is not an action: a slip must not approve.
    """
    if isinstance(answer, InterventionResponse):
        return answer
    if isinstance(answer, InterventionAction) or (type(answer) is str and answer in set(InterventionAction)):
        return InterventionResponse(answer)
    known = ", ".join(InterventionAction)
    # Only the type is named: the value may be something secret that the reviewer was shown.
    raise UnusableAnswer(
        f"the answer has the type {type(answer).__name__}; a reviewer returns a response or one of {known}"
    )
