"""Calls in threads of this library: with a deadline, from a running event loop, or several in parallel.

Every thread is a daemon, so none keeps the interpreter from exiting. Python cannot stop a thread: one that misses its deadline is abandoned,
and its result is dropped.
"""

from __future__ import annotations

import contextvars
import inspect
import math
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
LONGEST_SECONDS = 1e9
"""Maximum of a waiting time. It can still be added to a clock."""


class BackgroundThread(threading.Thread):
    """A thread of this library. It never runs an event loop of the user."""

    def __init__(
        self, work: Callable[[], object], *, name: str, context: contextvars.Context, may_wait: bool = True
    ) -> None:
        super().__init__(target=context.run, args=(work,), name=f"grace_kp {name}", daemon=True)
        self.may_wait = may_wait


def may_wait() -> bool:
    """Return whether the current thread may wait for background work. It may not if that work waits for this thread."""
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
    """A call in a separate thread, with the caller's context variables, and its outcome."""

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
    """Return the result of `call`, which runs in a separate thread and is abandoned after `seconds`.

    Args:
        seconds: the deadline; without one, the call runs in the current thread.
        or_inline: run the call in the current thread if no thread can be started, because the interpreter exits.
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
    """Start `call` in a separate thread; return False if no thread can be started, because the interpreter exits."""
    try:
        _Call(call, name)
    except RuntimeError:
        return False
    return True


def finish(value: Awaitable[R] | R) -> R:
    """Return `value`; await it first if it is an awaitable, in a new event loop.

    Unless this is a thread of the library, the loop gets a thread: the current one may have a loop, which `asyncio.run` would unset.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio

    async def await_value() -> R:
        return await value

    if isinstance(threading.current_thread(), BackgroundThread) and asyncio._get_running_loop() is None:
        # Locks of this thread may be needed: a hook that flushes knows by its thread that it must not wait.
        return asyncio.run(await_value())
    return call_within(LONGEST_SECONDS, lambda: asyncio.run(await_value()), name="event loop", or_inline=True)


def start_loop(owner: object) -> asyncio.AbstractEventLoop:
    """Start an event loop in a separate thread, which ends with its owner, for clients whose connections belong to one loop."""
    import asyncio

    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        loop.close()

    BackgroundThread(run, name="event loop", context=contextvars.Context(), may_wait=False).start()
    weakref.finalize(owner, loop.call_soon_threadsafe, loop.stop)
    return loop


async def in_thread(call: Callable[[], R], *, name: str) -> R:
    """Return the result of `call`, which runs in a separate thread. Unlike with `asyncio.to_thread`, no loop waits for the thread when it closes."""
    import asyncio

    loop, ended = running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed, so nothing waits
            loop.call_soon_threadsafe(ended.set)

    started = _Call(call, name, wake)
    await ended.wait()
    return started.result()


async def await_within(seconds: float | None, awaitable: Awaitable[R]) -> R:
    """Return the result of `awaitable`, which is cancelled after `seconds`; the cancellation is not waited for."""
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
    """Call `work` with each item, up to `threads` in parallel; raise the first exception after all calls have ended."""
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
    """Return the seconds that a Retry-After header asks for; None unless it holds a number or a date."""
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
