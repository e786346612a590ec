"""Threads that do the work of an object whenever it has some, and locks for work in many small pieces.

The object owns its queue; the worker owns the threads.
"""

from __future__ import annotations

import contextvars
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from grace_kp.background._calls import BackgroundThread
from grace_kp.background._process import STEP_BACK_SECONDS, Resident, prepare_exit, watch

if TYPE_CHECKING:
    from collections.abc import Callable


IDLE_SECONDS = 5.0
MAX_STEPS_BACK = 200
"""How often a thread steps back at most. On a busy machine the thread that waits needs a while to wake up."""


def is_mine(lock: object) -> bool:
    """Return whether the current thread holds a reentrant lock; False for anything else."""
    return bool(getattr(lock, "_is_owned", bool)())  # `threading.Condition` asks for it too


class Latch:
    """An event for one thread that waits. A signal handler or a finalizer may open it anywhere.

    `threading.Event` holds a lock while it is set, and would wait for itself where the same thread is just setting it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def open(self) -> None:
        """Let the thread go on that waits, or the next that would."""
        with suppress(RuntimeError):  # it is open
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` until it is open, and close it again; return whether it was open."""
        return self._lock.acquire(timeout=seconds) if seconds > 0 else self._lock.acquire(blocking=False)


class PoliteLock:
    """A reentrant lock whose holder sees that others wait for it.

    A thread that releases an ordinary lock and takes it again at once keeps the others out, because it still holds the interpreter.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: deque[None] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return False where it stays busy for `timeout` seconds."""
        if self._lock.acquire(blocking=False):
            return True
        if not blocking:
            return False
        self._waiting.append(None)
        try:
            return self._lock.acquire(timeout=timeout)
        finally:
            self._waiting.pop()

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def let_go(self) -> None:
        """Release the lock as often as the current thread holds it."""
        while self.is_mine:
            self._lock.release()

    @property
    def is_mine(self) -> bool:
        """Whether the current thread holds the lock."""
        return is_mine(self._lock)

    def _is_owned(self) -> bool:
        return is_mine(self._lock)

    def step_back(self) -> None:
        """Let those go first who wait. The caller has released the lock and is about to take it again."""
        for _ in range(MAX_STEPS_BACK):
            if not self._waiting:
                return
            time.sleep(STEP_BACK_SECONDS)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Worker(Resident):
    """Calls a method of its owner in a thread whenever it is woken, and again when the method asks for it.

    Threads start when they are needed and end when there was nothing to do for a while. From a wake until the work is done the
    owner is kept alive; an idle thread does not keep it. In a forked child the worker begins anew. Its threads see none of the
    context variables of whoever wakes it.
    """

    def __init__(
        self,
        work: Callable[[], float | None],
        *,
        name: str,
        threads: int = 1,
        idle_seconds: float = IDLE_SECONDS,
        may_wait: bool = True,
    ) -> None:
        """Start no thread yet.

        Args:
            work: a method of the owner, which must not raise. It returns the seconds after which it wants to be called again: 0 for
                at once, None for when the worker is woken.
        """
        self._method = weakref.WeakMethod(work)
        self._name, self._most, self._idle_seconds, self._may_wait = name, threads, idle_seconds, may_wait
        self._stopped = False
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Forget the threads: they are the parent's."""
        self._changed = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._idle: set[threading.Thread] = set()
        self._wakes = self._begun = self._ended = 0
        self._work: Callable[[], float | None] | None = None

    def wake(self) -> bool:
        """Have the work done soon; False where no thread can do it, because the worker was stopped or the interpreter exits."""
        with self._changed:
            if self._stopped:
                return False
            self._work = self._method()
            self._wakes = min(self._wakes + 1, self._most)
            if len(self._idle) >= self._wakes:
                self._changed.notify()
            elif len(self._threads) < self._most:
                self._start()
            return bool(self._threads)

    def finish_call(self, seconds: float) -> bool:
        """Have the work done once more, and wait for the end of that call; False when it takes longer than `seconds` or no thread can do it."""
        before = self._begun
        ends = time.monotonic() + seconds
        is_awake = self.wake()
        while is_awake and self._ended <= before and time.monotonic() < ends:
            time.sleep(0.001)
        return self._ended > before

    def _is_owned(self) -> bool:  # as a lock has it, for `is_mine`: the current thread is just waking it
        return is_mine(self._changed)

    @property
    def is_running(self) -> bool:
        """Whether a thread works or waits for work."""
        return bool(self._threads)

    def abandon(self) -> None:
        """Leave the threads to themselves. Each ends when its call returns; the next wake starts another."""
        with self._changed:
            self._forget()

    def stop(self, seconds: float) -> None:
        """End the threads, waiting up to `seconds` for each call to return. Nothing wakes the worker any more."""
        with self._changed:
            self._stopped = True
            threads = self._forget()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(seconds)

    def _forget(self) -> set[threading.Thread]:
        threads, self._threads = self._threads, set()
        self._idle = set()
        self._wakes = 0
        self._work = None
        self._changed.notify_all()
        return threads

    def _start(self) -> None:
        prepare_exit()
        thread = BackgroundThread(self._run, name=self._name, context=contextvars.Context(), may_wait=self._may_wait)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the interpreter exits
            self._threads.discard(thread)

    def _run(self) -> None:
        thread = threading.current_thread()
        try:
            while self._call_once(thread):
                pass
        finally:
            with self._changed:
                self._threads.discard(thread)

    def _call_once(self, thread: threading.Thread) -> bool:
        """Do the work once and wait for more; False when the thread is to end."""
        with self._changed:
            self._wakes = max(0, self._wakes - 1)
            self._begun += 1
            number = self._begun
            work = self._work or self._method()
        if work is None:
            return False
        pause = work()
        del work
        with self._changed:
            self._ended = max(self._ended, number)
            if thread in self._threads and not self._wakes and pause != 0:
                if pause is None:
                    self._work = None  # the owner may go while its thread waits
                self._idle.add(thread)
                self._changed.wait(self._idle_seconds if pause is None else pause)
                self._idle.discard(thread)
                if pause is None and not self._wakes:
                    self._threads.discard(thread)
            return thread in self._threads
