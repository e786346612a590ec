"""Carrying the current run into other threads: one function at a time, or every thread and executor after one call.

`asyncio` tasks and `asyncio.to_thread` carry it by themselves, because they copy the context.
"""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from grace_kp.record._current import CURRENT, PATCHES
from grace_kp.record._location import located

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def propagate(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, so that wherever it is called it belongs to the run that is current now.

    For threads, executors and callbacks that do not copy the context: `executor.submit(gk.propagate(work), item)`. It may be
    called many times and in many threads at once. Outside of any run it changes nothing.
    """
    here = located()
    if here is None:
        return function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def carried_coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
            token = CURRENT.set(here)
            try:
                return await function(*args, **kwargs)
            finally:
                CURRENT.reset(token)

        return carried_coroutine  # type: ignore[return-value]

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        token = CURRENT.set(here)
        try:
            return function(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    return carried


def instrument_threads() -> Callable[[], None]:
    """From now on every Thread, ThreadPoolExecutor and `run_in_executor` carries the current run.

    Returns:
        A function that undoes it. Calling this twice needs two undoings, in any order; undoing twice does nothing.
    """
    mark = object()
    with PATCHES.lock:
        if not PATCHES.asked:
            _patch()
        PATCHES.asked.append(mark)

    def undo() -> None:
        with PATCHES.lock:
            if mark in PATCHES.asked:
                PATCHES.asked.remove(mark)
                if not PATCHES.asked:
                    _restore()

    return undo


def _patch() -> None:
    from concurrent.futures import ThreadPoolExecutor

    submit: Any = ThreadPoolExecutor.submit
    start = threading.Thread.start

    @functools.wraps(submit)
    def carrying_submit(self: object, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
        return submit(self, _carried_task(fn), *args, **kwargs)

    @functools.wraps(start)
    def carrying_start(self: threading.Thread) -> None:
        here = located()
        # A pool's own worker lives on after the run that happened to start it; its tasks carry what they need.
        if here is not None and not _is_pool_worker(self):
            own = self.run

            def run() -> None:
                CURRENT.set(here)  # the thread's own context ends with it
                own()

            self.run = run  # type: ignore[method-assign]
        start(self)

    PATCHES.originals.extend([(ThreadPoolExecutor, "submit", submit), (threading.Thread, "start", start)])
    ThreadPoolExecutor.submit = carrying_submit  # type: ignore[method-assign]
    threading.Thread.start = carrying_start  # type: ignore[method-assign]


def _restore() -> None:
    for owner, name, original in PATCHES.originals:
        setattr(owner, name, original)
    PATCHES.originals.clear()


def _carried_task(fn: Callable[..., Any]) -> Any:
    """`propagate`, for a task whose result is handed on: exactly what the pool would have run, in the current run."""
    here = located()
    if here is None:
        return fn

    @functools.wraps(fn, assigned=(), updated=())
    def task(*args: object, **kwargs: object) -> Any:
        token = CURRENT.set(here)
        try:
            return fn(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    return task


def _is_pool_worker(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", None) == "concurrent.futures.thread"
