"""The only global state of recording: the current call, registered frameworks, troubles so far, and instrumented threads.

The context variable is set when a recorded call begins and reset when it ends, and for generators around each resume; it is
never held across a `yield`, where it would leak to the caller.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from grace_kp.background import Resident, watch
from grace_kp.record._host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

CURRENT: ContextVar[Any] = ContextVar("grace_kp_current", default=None)
"""The innermost recorded call or run of this context. `_location` knows its type."""

get_frame, set_frame, reset_frame = CURRENT.get, CURRENT.set, CURRENT.reset

CAPTURE: ContextVar[list[Any] | None] = ContextVar("grace_kp_capture", default=None)
"""Runs that begin in this context are put here too, for `grace_kp.testing.capture`."""

OPERATIONS: ContextVar[tuple[str, ...]] = ContextVar("grace_kp_operations", default=())
"""The gated actions that run in this context, the innermost last. The idempotency key of an action is derived from its entry."""

FOLLOWED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The run that each generator or coroutine of ours keeps open for a returned one."""

HOST = Host()
"""The frameworks that have registered."""

ORDER = itertools.count(1)
"""Numbers runs in the order in which they begin."""


class FirstRun(threading.local):
    """The number of the first run that began in this thread; 0 if none has."""

    number = 0


FIRST = FirstRun()


class Troubles:
    """Failures inside recording since the process began, counted by kind."""

    __slots__ = ("counts", "last", "late", "own")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.own = 0
        """Exceptions in our own code, each of which may have cost evidence."""
        self.last: str | None = None
        self.late: list[tuple[Callable[[Any, Any], None], Any, Any]] = []
        """Calls and runs that ended where the stack was full, each with the function that ends it and the result or error."""


TROUBLES = Troubles()


class Patches(Resident):
    """Requests for instrumented threads, and the originals of the patched methods."""

    __slots__ = ("asked", "lock", "originals")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: list[object] = []
        self.originals: list[tuple[type, str, Any]] = []

    def after_fork(self) -> None:
        """Replace the lock in the child, where no other thread can release it."""
        self.lock = threading.Lock()


PATCHES = Patches()
watch(PATCHES)

PICKLED: dict[str, Any] = {}
"""The runtimes that were pickled here, or opened from a pickle, by their names in pickles."""
