"""An agent's final answer, gated as if giving it out were an action: `@grace.agent(release=True)`."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.runtime._gates import Gates


def released(function: Any, *, gates: Callable[[], Gates], name: str | None) -> Any:
    """`function`, whose answer is handed on only when the gate lets it.

    The action is called `<agent>.release` and has one argument, `answer`, which a reviewer may replace. A skipped release
    returns None. It runs inside the agent's run, so that the confidence is that of the whole run.

    Raises:
        GateError: a generator function, whose answer is out piece by piece before it could be gated.
    """
    from grace_kp.runtime._gates import GateSpec, gated

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise GateError(
            f"release=True on the generator {function.__qualname__}: what it yields is out before it could be gated; "
            "return the answer, or gate the action that publishes it"
        )
    spec = GateSpec(name=f"{name or getattr(function, '__name__', type(function).__name__)}.release")

    if inspect.iscoroutinefunction(function):

        async def hand_over(answer: Any) -> Any:
            return answer

        release_async = gated(hand_over, gates, spec)

        @functools.wraps(function)
        async def answering(*args: Any, **kwargs: Any) -> Any:
            return await release_async(await function(*args, **kwargs))

        return answering

    def hand_on(answer: Any) -> Any:
        return answer

    release = gated(hand_on, gates, spec)

    @functools.wraps(function)
    def answered(*args: Any, **kwargs: Any) -> Any:
        return release(function(*args, **kwargs))

    return answered
