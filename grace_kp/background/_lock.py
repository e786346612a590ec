"""A lock for work in many small pieces: whoever waits for it gets it after the current piece."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from typing import Self

STEP_BACK_SECONDS = 0.0005
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
