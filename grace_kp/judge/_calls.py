"""Asking a judge, whatever kind of callable it is: in a thread or in a coroutine, with a bound on the time."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from grace_kp.background import bounded
from grace_kp.errors import JudgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def call_judge(judge: Any, prompt: str, *, vary: bool, fields: Sequence[str], timeout: float | None) -> Any:
    """One reply, from a plain call. A judge that is asynchronous gets an event loop of its own, in a thread of its own."""
    ask = _way(judge, vary, fields)

    def call() -> Any:
        reply = ask(prompt)
        # A loop of its own, in a thread of its own: there may be one running in this one.
        return _elsewhere(reply) if inspect.isawaitable(reply) else reply

    return bounded(call, timeout)


def _elsewhere(reply: Any) -> Any:
    import asyncio

    done: list[tuple[Any, BaseException | None]] = []
    worker = threading.Thread(target=lambda: done.append(_caught(lambda: asyncio.run(_awaited(reply)))), daemon=True)
    worker.start()
    worker.join()
    result, error = done[0]
    if error is not None:
        raise error
    return result


async def acall_judge(
    judge: Any,
    prompt: str,
    *,
    vary: bool,
    fields: Sequence[str],
    timeout: float | None,  # noqa: ASYNC109
) -> Any:
    """One reply, without blocking the event loop."""
    import asyncio

    ask = getattr(judge, "aask", None)
    work: Any
    if callable(ask):
        work = ask(prompt, vary=vary, fields=fields)
    else:
        plain = _way(judge, vary, fields)
        work = _settled(plain, prompt) if _is_async(plain) else asyncio.to_thread(_plain, plain, prompt)
    try:
        async with asyncio.timeout(timeout):
            reply = await work
            return await reply if inspect.isawaitable(reply) else reply
    except TimeoutError:
        raise JudgeError(f"the judge did not answer within {timeout:g} s") from None


def _way(judge: Any, vary: bool, fields: Sequence[str]) -> Callable[[str], Any]:
    ask = getattr(judge, "ask", None)
    if callable(ask):
        return lambda prompt: ask(prompt, vary=vary, fields=fields)
    call: Callable[[str], Any] = judge
    return call


def _is_async(call: Any) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def _plain(call: Callable[[str], Any], prompt: str) -> Any:
    return call(prompt)


async def _settled(call: Callable[[str], Any], prompt: str) -> Any:
    return await call(prompt)


async def _awaited(reply: Any) -> Any:
    return await reply


def _caught(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001
        return None, error
