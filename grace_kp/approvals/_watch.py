"""Waiting for changes by other threads and processes: one thread of a runtime polls the tables while there are waiters.

The same thread renews the lease of the process while it waits or runs an action.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import each_link, entry_of
from grace_kp.approvals._request import Actor
from grace_kp.background import Latch, Resident, Worker, running_loop, to_thread, watch
from grace_kp.errors import StoreError
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from grace_kp.approvals._tables import Link, Tables
    from grace_kp.background import Lock

LOOK_SECONDS = 0.05
"""Interval of the polls."""
FAILED_SECONDS = 1.0
"""Interval while the tables cannot be read."""
HOLD_SECONDS = 5.0
"""Interval of renewals while actions run and there are no waiters."""
SLEEP_SECONDS = 60.0
"""Time after which waiters read the tables without being woken."""
_log = logging.getLogger("grace_kp.approvals")


@dataclass(slots=True, eq=False)
class Waiter:
    """One waiter for changes of one approval, or of all. It reads the store when it is woken, possibly without a change."""

    approval: str | None
    look: Callable[[], bool]
    """Makes the watcher look soon; returns whether it can."""
    due: float | None = None
    """Time at which to be woken without a change, in seconds since the epoch."""
    wake: Callable[[], object] = lambda: None

    @contextmanager
    def in_thread(self) -> Iterator[Callable[[], object]]:
        """Return a function that waits in this thread until there may be a change."""
        latch = Latch()
        self.wake = latch.open
        yield lambda: latch.wait(SLEEP_SECONDS if self.look() else LOOK_SECONDS)

    @contextmanager
    def on_loop(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """Return a coroutine function that waits on the running event loop until there may be a change."""
        import asyncio

        loop, changed = running_loop(), asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:  # the loop is closed
                self.wake = lambda: None

        async def sleep() -> None:
            # Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that arrives together with the change.
            timer = loop.call_later(SLEEP_SECONDS if self.look() else LOOK_SECONDS, changed.set)
            try:
                await changed.wait()
            finally:
                timer.cancel()
            changed.clear()

        self.wake = wake
        yield sleep


class Watcher(Resident):
    """Wakes waiters within `LOOK_SECONDS` of a change in any process, and renews the lease of this process meanwhile.

    A forked child has no waiters: their threads belong to the parent.
    """

    def __init__(self, tables: Tables, *, clock: Callable[[], float] = time.time) -> None:
        self.tables, self.clock = tables, clock
        self._worker = Worker(self._look, name="approvals")
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[int, Waiter] = {}
        self._holders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._seen: int | None = None
        """Number of the newest entry that was read; None before the first poll for the present waiters."""
        self._changes: int | None = None

    def fork_locks(self) -> Sequence[Lock]:
        return (self._lock,)

    @contextmanager
    def waiting(self, approval: str | None) -> Iterator[Waiter]:
        """Register a waiter for changes of an approval, or of all with None. Read the store after this and before the wait."""
        waiter = Waiter(approval, self._worker.wake)
        with self._lock:
            if not self._waiters:
                self._seen = None
            self._waiters[id(waiter)] = waiter
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters.pop(id(waiter), None)

    def hold(self, holder: object) -> None:
        """Renew the lease of this process until `let_go`, or until the holder is garbage: it runs an action."""
        with self._lock:
            self._holders.add(holder)
        self._worker.wake()

    def let_go(self, holder: object) -> None:
        with self._lock:
            self._holders.discard(holder)

    def count_waiting(self, approval: str) -> int:
        """Return the number of waiters for the approval in this process."""
        with self._lock:
            return sum(waiter.approval == approval for waiter in self._waiters.values())

    def _all(self) -> list[Waiter]:
        with self._lock:
            return list(self._waiters.values())

    def _look(self) -> float | None:
        """Wake the waiters that are due or whose approval may have changed; return the seconds until the next poll."""
        if not self._all():
            return self._renew_lease()
        try:
            changed = self._find_changed()
        except Exception as error:  # noqa: BLE001 — waiters read for themselves, and raise the error
            _log.debug("the approvals cannot be read: %s", redacted_error(error))
            for waiter in self._all():
                waiter.wake()
            return FAILED_SECONDS
        now = self.clock()
        # Including waiters that came during the read of the tables: they may have read before the change.
        for waiter in self._all():
            if waiter.due is not None and waiter.due <= now:
                waiter.due = None
                waiter.wake()
            elif changed is None or (changed and (waiter.approval is None or waiter.approval in changed)):
                waiter.wake()
        return LOOK_SECONDS

    def _renew_lease(self) -> float | None:
        with self._lock:
            if not self._holders:
                return None
        try:
            self.tables.hold()
        except Exception as error:  # noqa: BLE001 — the action goes on, and its outcome is written with retries
            _log.debug("the lease cannot be renewed: %s", redacted_error(error))
            return FAILED_SECONDS
        return HOLD_SECONDS

    def _find_changed(self) -> set[str] | None:
        """Return the approvals that may have changed since the last poll; None for all."""
        self.tables.hold()
        changes, found = self.tables.changes(), None
        if self._seen is None:
            self._seen = self.tables.head()[0]
        else:
            found = set()
            if changes != self._changes:
                for link in each_link(self.tables, after=self._seen):
                    found.add(link.approval or "")
                    self._seen = link.seq
        self._changes = changes  # after the entries are read, so that a failure is repeated
        return found


SWEEP_SECONDS = 1.0
"""Interval of sweeps while a program watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of the chain."""

    seq: int
    at: float
    """Seconds since the epoch."""
    kind: str
    """Such as `requested`, `decided` or `settled`."""
    approval: str | None = None
    """Id of the approval; None for other objects, such as a standing approval."""
    actor: Actor | None = None
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, link: Link) -> Change:
        """Return an entry of the chain as a change."""
        entry = entry_of(link)
        actor = entry.get("actor")
        return cls(
            seq=link.seq,
            at=entry["at"],
            kind=entry["kind"],
            approval=link.approval,
            actor=None if actor is None else Actor.from_dict(actor),
            facts=entry.get("facts") or {},
        )


class Changes:
    """An endless iterator of changes after a number, for `for` and `async for`. `sweep` writes what is due."""

    def __init__(self, watcher: Watcher, sweep: Callable[[], object], after: int) -> None:
        self._watcher, self._sweep, self._seq = watcher, sweep, after

    def __iter__(self) -> Iterator[Change]:
        with self._watcher.waiting(None) as waiter, waiter.in_thread() as sleep:
            while True:
                for change in self._next(waiter):
                    self._seq = change.seq
                    yield change
                sleep()

    async def __aiter__(self) -> AsyncIterator[Change]:
        with self._watcher.waiting(None) as waiter, waiter.on_loop() as sleep:
            while True:
                for change in await to_thread(self._next, waiter):
                    self._seq = change.seq
                    yield change
                await sleep()

    def _next(self, waiter: Waiter) -> list[Change]:
        """Return the changes since the previous ones; none while the store is busy."""
        waiter.due = self._watcher.clock() + SWEEP_SECONDS
        try:
            self._sweep()
            return [Change.of(link) for link in self._watcher.tables.links(after=self._seq)]
        except StoreError:
            self._watcher.tables.head()  # raises if the store cannot even be read
            return []
