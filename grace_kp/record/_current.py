"""The only global state of recording: where this context is, what went wrong so far, and which threads are instrumented.

The context variable is set when a recorded call begins and reset when it ends, and for generators around each resume; it is
never held across a `yield`, where it would leak to the caller.
"""

from __future__ import annotations

import itertools
import logging  # noqa: F401 - before the hooks below, see there
import os
import threading
from collections import Counter
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakSet

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


class Patches:
    """Who asked for instrumented threads, and what stood there before."""

    __slots__ = ("asked", "lock", "originals")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: list[object] = []
        self.originals: list[tuple[type, str, Any]] = []


PATCHES = Patches()


class Forkable(Protocol):
    """Something with locks, threads or files that must be at rest while the process forks."""

    def before_fork(self) -> None:
        """Come to rest: what is locked now would stay locked in the child for ever."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork(self) -> None:
        """In the child: forget the parent's affairs."""
        ...


FORKABLE: WeakSet[Forkable] = WeakSet()


def _before() -> None:
    for one in list(FORKABLE):
        one.before_fork()


def _in_parent() -> None:
    for one in list(FORKABLE):
        one.after_fork_in_parent()


def _in_child() -> None:
    PATCHES.lock = threading.Lock()
    for one in list(FORKABLE):
        one.after_fork()


# What was registered last runs first before a fork. Logging takes its lock there too: were it imported later, it would be
# holding that lock while we wait for a thread that is about to log, or to import a module that asks for a logger.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
