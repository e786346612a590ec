"""Asking a judge for one reply, whatever kind of callable it is, from a plain call or from a coroutine, with a deadline."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from grace_kp.background import DeadlineExceeded, await_within, call_within, finish, in_thread
from grace_kp.errors import JudgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from grace_kp.protocols import JudgeLike

THREAD = "judge"


def call_judge(
    judge: JudgeLike | None, prompt: str, *, vary: bool, fields: Sequence[str], timeout: float | None
) -> Any:
    """Return one reply, from a plain call.

    Raises:
        JudgeError: the judge took longer than `timeout` seconds. Its own exceptions are raised as they are.
    """
    ask = _question(judge, vary, fields)
    try:
        return call_within(timeout, lambda: finish(ask(prompt)), name=THREAD, or_inline=True)
    except DeadlineExceeded:
        raise _too_late(timeout) from None


async def acall_judge(
    judge: JudgeLike | None,
    prompt: str,
    *,
    vary: bool,
    fields: Sequence[str],
    timeout: float | None,  # noqa: ASYNC109
) -> Any:
    """Return one reply, without blocking the event loop; errors as for `call_judge`."""
    try:
        return await await_within(timeout, _reply(judge, prompt, vary, fields))
    except DeadlineExceeded:
        raise _too_late(timeout) from None


async def _reply(judge: JudgeLike | None, prompt: str, vary: bool, fields: Sequence[str]) -> Any:
    ask_async = getattr(judge, "aask", None)
    if callable(ask_async):
        reply: Awaitable[Any] = ask_async(prompt, vary=vary, fields=fields)
    else:
        ask = _question(judge, vary, fields)
        reply = ask(prompt) if _is_async(ask) else in_thread(lambda: ask(prompt), name=THREAD)
    found = await reply
    return await found if inspect.isawaitable(found) else found


def _question(judge: JudgeLike | None, vary: bool, fields: Sequence[str]) -> Callable[[str], Any]:
    ask = getattr(judge, "ask", None)
    if callable(ask):
        return lambda prompt: ask(prompt, vary=vary, fields=fields)
    return cast("Callable[[str], Any]", judge)


def _is_async(call: object) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def _too_late(timeout: float | None) -> JudgeError:
    return JudgeError(f"the judge did not answer within {timeout:g} s")
