"""Worker threads for an object that owns its queue, and locks for work in many small pieces."""

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
"""Maximum number of steps back. On a busy machine the waiting thread needs a while to wake up."""


def is_mine(lock: object) -> bool:
    """Return whether the current thread holds a reentrant lock; False for anything else."""
    return bool(getattr(lock, "_is_owned", bool)())  # `threading.Condition` asks for it too


class Latch:
    """An event for one waiting thread, which a signal handler or a finalizer may open at any time.

    `threading.Event` takes a lock to set it, so a signal handler that interrupts `set` would wait for itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def open(self) -> None:
        """Release the waiting thread, or the next one that waits."""
        with suppress(RuntimeError):  # it is open already
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` until it is open, then close it; return whether it was open."""
        return self._lock.acquire(timeout=seconds) if seconds > 0 else self._lock.acquire(blocking=False)


class PoliteLock:
    """A reentrant lock whose holder can let waiting threads go first.

    With an ordinary lock, a thread that releases it and takes it again at once keeps the others out, because it still holds the interpreter.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: deque[None] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return False if it stays busy for `timeout` seconds."""
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
        """Release the lock once."""
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
        """Let waiting threads go first. Call it between a release and the next acquire."""
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
    """Calls a method of its owner in a thread when it is woken, and again when the method asks for it.

    Threads start on demand and end after an idle time. The worker keeps its owner alive from a wake until the work is done, but not while
    idle. A forked child starts without threads. The threads do not inherit context variables.
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
            work: a method of the owner, which must not raise. It returns the seconds until its next call: 0 for at once, None to wait for
                a wake.
        """
        self._method = weakref.WeakMethod(work)
        self._name, self._most, self._idle_seconds, self._may_wait = name, threads, idle_seconds, may_wait
        self._stopped = False
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Forget the parent's threads."""
        self._changed = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._idle: set[threading.Thread] = set()
        self._wakes = self._begun = self._ended = 0
        self._work: Callable[[], float | None] | None = None

    def wake(self) -> bool:
        """Request a call of the work; return False if no thread can run it, because the worker was stopped or the interpreter exits."""
        with self._changed:
            if self._stopped:
                return False
            self._work = self._method()
            self._wakes = min(self._wakes + 1, self._most)
            if len(self._idle) >= self._wakes:
                self._changed.notify()
            elif len(self._threads) < self._most:
                prepare_exit()
                thread = BackgroundThread(
                    self._run, name=self._name, context=contextvars.Context(), may_wait=self._may_wait
                )
                self._threads.add(thread)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter exits
                    self._threads.discard(thread)
            return bool(self._threads)

    def finish_call(self, seconds: float) -> bool:
        """Request another call of the work and wait for its end; return False if it takes longer than `seconds` or no thread can run it."""
        before = self._begun
        ends = time.monotonic() + seconds
        is_awake = self.wake()
        while is_awake and self._ended <= before and time.monotonic() < ends:
            time.sleep(0.001)
        return self._ended > before

    # The name that `is_mine` looks for: whether the current thread is just waking this worker.
    def _is_owned(self) -> bool:
        return is_mine(self._changed)

    @property
    def is_running(self) -> bool:
        """Whether a thread works or waits for work."""
        return bool(self._threads)

    def stop(self, seconds: float) -> None:
        """End the threads, waiting up to `seconds` for each call to return. Later wakes have no effect."""
        with self._changed:
            self._stopped = True
            threads, self._threads = self._threads, set()
            self._idle, self._wakes, self._work = set(), 0, None
            self._changed.notify_all()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(seconds)

    def _run(self) -> None:
        thread = threading.current_thread()
        try:
            while self._call_once(thread):
                pass
        finally:
            with self._changed:
                self._threads.discard(thread)

    def _call_once(self, thread: threading.Thread) -> bool:
        """Do the work once and wait for more; return False when the thread must end."""
        with self._changed:
            self._wakes = max(0, self._wakes - 1)
            self._begun += 1
            number = self._begun
            work = self._work or self._method()
        if work is None:
            return False
        pause = work()
        del work  # a bound method would keep the owner alive while the thread is idle
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
