"""Calls in threads of this library: with a deadline, from a running event loop, several at a time, or again after a while.

Every thread is a daemon, so none keeps the interpreter from exiting. Python cannot stop a thread. One that misses its deadline is abandoned:
its result is dropped, and nothing waits for it.
"""

from __future__ import annotations

import contextvars
import inspect
import math
import threading
import time
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
LONGEST_SECONDS = 1e9
"""Stands for any longer time, so that it can be added to a clock."""


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


class DeadlineExceeded(Exception):
    """A call took longer than its deadline. Its result will be dropped."""


class _Call(Generic[R]):
    """A call that runs in a thread of its own, with the caller's context variables, and how it ended."""

    def __init__(self, call: Callable[[], R], name: str, on_end: Callable[[], object] | None = None) -> None:
        self._call, self._on_end = call, on_end
        self._result: R | None = None
        self._error: BaseException | None = None
        self.ended = threading.Event()
        BackgroundThread(self._run, name=name, context=contextvars.copy_context(), may_wait=may_wait()).start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 — raised again in the thread that waits
            self._error = error
        self.ended.set()
        if self._on_end is not None:
            self._on_end()

    def result(self) -> R:
        """Return what the call returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return cast("R", self._result)


def call_within(seconds: float | None, call: Callable[[], R], *, name: str, or_inline: bool = False) -> R:
    """Return the result of `call`, which runs in a thread of its own and is abandoned after `seconds`.

    Args:
        seconds: the deadline; without one, the call runs in the current thread.
    """
    if seconds is None:
        return call()
    try:
        started = _Call(call, name)
    except RuntimeError:
        if not or_inline:
            raise
        return call()
    if not started.ended.wait(seconds):
        raise DeadlineExceeded(f"{name} took longer than {seconds:g} s")
    return started.result()


def begin(call: Callable[[], object], *, name: str) -> bool:
    """Run `call` in a thread of its own that nobody waits for; return False where no thread can be started, because the interpreter exits."""
    try:
        _Call(call, name)
    except RuntimeError:
        return False
    return True


def finish(value: Awaitable[R] | R) -> R:
    """Return `value`, or the result of an awaitable, which gets an event loop of its own.

    The loop runs in a thread of its own, as the current thread may have a loop: one that runs, or one that `asyncio.run` would unset.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio

    async def awaited() -> R:
        return await value

    try:
        started = _Call(lambda: asyncio.run(awaited()), "event loop")
    except RuntimeError:  # the interpreter exits
        return asyncio.run(awaited())
    started.ended.wait()
    return started.result()


async def in_thread(call: Callable[[], R], *, name: str) -> R:
    """Return the result of `call`, which runs in a thread of its own. Unlike `asyncio.to_thread`, no loop waits for the thread to end."""
    import asyncio

    loop, ended = running_loop(), asyncio.Event()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(ended.set)
        except RuntimeError:
            return  # the loop is closed, and nobody waits any more

    started = _Call(call, name, wake)
    await ended.wait()
    return started.result()


async def await_within(seconds: float | None, awaitable: Awaitable[R]) -> R:
    """Return the result of `awaitable`, which is cancelled after `seconds` and not waited for any longer."""
    import asyncio

    task = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except BaseException:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise DeadlineExceeded(f"it took longer than {seconds:g} s")
    return task.result()


def for_each(work: Callable[[T], object], items: Iterable[T], *, threads: int, name: str) -> None:
    """Do `work` for each item, up to `threads` at a time; the first exception is raised when all have ended."""
    waiting = list(items)
    if threads < 2 or len(waiting) < 2:
        for item in waiting:
            work(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix=f"grace_kp {name}") as pool:
        futures = []
        for item in waiting:
            try:
                futures.append(pool.submit(work, item))
            except RuntimeError:  # no thread can be started any more, because the interpreter exits
                work(item)
    for future in futures:
        future.result()


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None where it holds neither."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        from datetime import UTC
        from email.utils import parsedate_to_datetime

        try:
            moment = parsedate_to_datetime(header)
            seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(LONGEST_SECONDS, max(0.0, seconds))
