"""The only global state of recording: where this context is, what went wrong so far, and which threads are instrumented.

The context variable is set when a recorded call begins and reset when it ends, and for generators around each resume; it is
never held across a `yield`, where it would leak to the caller.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextvars import ContextVar
from typing import Any

from grace_kp.background import Resident, watch
from grace_kp.record._host import Host

CURRENT: ContextVar[Any] = ContextVar("grace_kp_current", default=None)
"""The innermost recorded call or run of this context. `_place` reads it by its type."""

CAPTURE: ContextVar[list[Any] | None] = ContextVar("grace_kp_capture", default=None)
"""Runs that begin in this context are put here too, for `grace_kp.testing.capture`."""

HOST = Host()
"""The frameworks that have registered."""

ORDER = itertools.count(1)
"""Numbers runs in the order in which they begin."""


class FirstRun(threading.local):
    """The number of the first run that began in the thread that is running; 0 where none has."""

    number = 0


FIRST = FirstRun()


class Troubles:
    """What went wrong inside recording, by kind, since the process began."""

    __slots__ = ("counts", "last", "own")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.own = 0
        """Exceptions in our own code, each of which may have cost evidence."""
        self.last: str | None = None


TROUBLES = Troubles()


class Patches(Resident):
    """Who asked for instrumented threads, and what stood there before."""

    __slots__ = ("asked", "lock", "originals")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: list[object] = []
        self.originals: list[tuple[type, str, Any]] = []

    def after_fork(self) -> None:
        """Replace the lock in the child, where nobody else is to give it back."""
        self.lock = threading.Lock()


PATCHES = Patches()
watch(PATCHES)
