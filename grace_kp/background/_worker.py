"""Threads that do the work of an object whenever it has some. The object owns its queue; the worker owns the threads."""

from __future__ import annotations

import contextvars
import threading
import time
import weakref
from typing import TYPE_CHECKING

from grace_kp.background._lock import is_mine
from grace_kp.background._process import Resident, prepare_exit, watch
from grace_kp.background._thread import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_SECONDS = 5.0


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
            name: what the threads are called.
            threads: the most that work at a time.
            idle_seconds: how long a thread waits for more before it ends.
            may_wait: whether the work may wait for other background work; see `may_wait`.
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
