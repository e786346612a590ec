"""Carries the current run into other threads: one function at a time, or every thread and executor after one call.

`asyncio` tasks and `asyncio.to_thread` need neither, because they copy the context.
"""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from grace_kp.record._current import CURRENT, PATCHES
from grace_kp.record._run import find_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.record._run import Frame

P = ParamSpec("P")
R = TypeVar("R")


def propagate(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` bound to the current run, wherever it is called.

    For threads, executors and callbacks that do not copy the context: `executor.submit(gk.propagate(work), item)`. The result may be
    called many times and in many threads at once. Outside of any run this returns `function` itself.
    """
    here = find_frame()
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

    return functools.wraps(function)(_in_frame(function, here))


def _in_frame(function: Callable[P, R], here: Frame) -> Callable[P, R]:
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        token = CURRENT.set(here)
        try:
            return function(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    return carried


def instrument_threads() -> Callable[[], None]:
    """Make every Thread, ThreadPoolExecutor and `run_in_executor` carry the current run from now on.

    Returns:
        A function that undoes this call. Two calls need two undoings, in any order. Undoing a call twice does nothing.
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
                while PATCHES.originals and not PATCHES.asked:
                    setattr(*PATCHES.originals.pop())

    return undo


def _patch() -> None:
    from concurrent.futures import ThreadPoolExecutor

    submit: Any = ThreadPoolExecutor.submit
    start = threading.Thread.start

    @functools.wraps(submit)
    def carrying_submit(self: object, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
        here = find_frame()
        # Without the name and the attributes of the task, which may be any object that can be called.
        carried = fn if here is None else functools.wraps(fn, assigned=(), updated=())(_in_frame(fn, here))
        return submit(self, carried, *args, **kwargs)

    @functools.wraps(start)
    def carrying_start(self: threading.Thread) -> None:
        here = find_frame()
        # A pool's worker outlives the run that happened to start it; its tasks carry their own run.
        module = getattr(getattr(self, "_target", None), "__module__", None)
        if here is not None and module != "concurrent.futures.thread":
            own = self.run

            def run() -> None:
                CURRENT.set(here)  # the thread's own context ends with it
                own()

            self.run = run  # type: ignore[method-assign]
        start(self)

    PATCHES.originals.extend([(ThreadPoolExecutor, "submit", submit), (threading.Thread, "start", start)])
    ThreadPoolExecutor.submit = carrying_submit  # type: ignore[method-assign]
    threading.Thread.start = carrying_start  # type: ignore[method-assign]
