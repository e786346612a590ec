"""The threads of this library. Every one is a daemon, so none keeps the interpreter from exiting."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncio
    import contextvars
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


class BackgroundThread(threading.Thread):
    """A thread of this library. No event loop of the user's runs in it."""

    def __init__(
        self, work: Callable[[], object], *, name: str, context: contextvars.Context, may_wait: bool = True
    ) -> None:
        super().__init__(target=context.run, args=(work,), name=f"grace_kp {name}", daemon=True)
        self.may_wait = may_wait


def may_wait() -> bool:
    """Whether the current thread may wait for background work: False where that work is waiting for the thread itself."""
    return getattr(threading.current_thread(), "may_wait", True)


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop of asyncio; raise a RuntimeError in a coroutine of another library, such as trio."""
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "async gates, judges and approvals need asyncio, and no event loop of asyncio runs here; run the program with asyncio "
            '(anyio: backend="asyncio"), or call a plain function in a worker thread, as with trio.to_thread.run_sync'
        ) from None


async def to_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call as `asyncio.to_thread` does; errors as for `running_loop`."""
    import asyncio

    running_loop()
    return await asyncio.to_thread(call, *args, **kwargs)
