"""Waiting for changes that other threads and processes make: one thread of a runtime looks at the tables while somebody waits.

The same thread keeps the lease of the process while it waits or runs an action.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from grace_kp.background import Latch, Resident, Worker, running_loop, watch
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from grace_kp.approvals._tables import Tables
    from grace_kp.background import Lock

LOOK_SECONDS = 0.05
"""How often the thread looks."""
FAILED_SECONDS = 1.0
"""How often it looks while the tables cannot be read."""
HOLD_SECONDS = 5.0
"""How often it renews the lease while actions run and nobody waits."""
SLEEP_SECONDS = 60.0
"""How long those who wait sleep at most before they look for themselves, should nobody wake them."""
PAGE = 1_000
_log = logging.getLogger("grace_kp.approvals")


class Waiter:
    """Somebody who waits for changes of one approval, or of all. Whoever is woken reads the store; a wake may be for nothing."""

    __slots__ = ("_look", "_wake", "approval", "due")

    def __init__(self, approval: str | None, look: Callable[[], bool]) -> None:
        self.approval = approval
        self.due: float | None = None
        """Seconds since the epoch at which to be woken without a change."""
        self._look = look
        self._wake: Callable[[], object] | None = None

    def wake(self) -> None:
        """Let the waiter read the store."""
        wake = self._wake
        if wake is not None:
            wake()

    def sleep(self, latch: Latch) -> None:
        """Wait in this thread until there may be a change."""
        latch.wait(SLEEP_SECONDS if self._look() else LOOK_SECONDS)

    @contextmanager
    def in_thread(self) -> Iterator[Callable[[], None]]:
        """Return a function that waits in this thread until there may be a change."""
        latch = Latch()
        self._wake = latch.open
        yield lambda: self.sleep(latch)

    @contextmanager
    def on_loop(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """Return a coroutine function that waits on the running event loop until there may be a change."""
        import asyncio

        loop, changed = running_loop(), asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:  # the loop is closed, and nobody waits any more
                self._wake = None

        async def sleep() -> None:
            # Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that arrives together with the change.
            timer = loop.call_later(SLEEP_SECONDS if self._look() else LOOK_SECONDS, changed.set)
            try:
                await changed.wait()
            finally:
                timer.cancel()
            changed.clear()

        self._wake = wake
        yield sleep


class Watcher(Resident):
    """Wakes those who wait, within `LOOK_SECONDS` of a change in any process, and holds the lease of this process meanwhile.

    A forked child has none who wait: their threads belong to the parent.
    """

    def __init__(self, tables: Tables, *, clock: Callable[[], float] = time.time) -> None:
        self._tables, self._clock = tables, clock
        self._worker = Worker(self._look, name="approvals")
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[int, Waiter] = {}
        self._holders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._seen: int | None = None
        """Number of the newest entry that was looked at; None before the first look since somebody waits."""
        self._changes: int | None = None

    def fork_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Forget the parent's waiters."""
        self._begin()

    @contextmanager
    def waiting(self, approval: str | None) -> Iterator[Waiter]:
        """Register somebody who waits for changes of an approval, or with None of all; then read, then wait."""
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
        """Keep the lease of this process until `let_go`, or until the holder is no more: it runs an action, for however long."""
        with self._lock:
            self._holders.add(holder)
        self._worker.wake()

    def let_go(self, holder: object) -> None:
        """Keep the lease no longer for this holder."""
        with self._lock:
            self._holders.discard(holder)

    def count_waiting(self, approval: str) -> int:
        """Return how many in this process wait for the approval."""
        with self._lock:
            return sum(waiter.approval == approval for waiter in self._waiters.values())

    def _all(self) -> list[Waiter]:
        with self._lock:
            return list(self._waiters.values())

    def _look(self) -> float | None:
        """Wake those whose approval may have changed or who are due; the worker's work."""
        if not self._all():
            return self._held()
        try:
            changed = self._find_changed()
        except Exception as error:  # noqa: BLE001 — those who wait read for themselves, and find out what is wrong
            _log.debug("the approvals cannot be read: %s", redacted_error(error))
            for waiter in self._all():
                waiter.wake()
            return FAILED_SECONDS
        now = self._clock()
        # Also those who came while the tables were read, and may have read before the change.
        for waiter in self._all():
            if waiter.due is not None and waiter.due <= now:
                waiter.due = None
                waiter.wake()
            elif changed is None or (changed and (waiter.approval is None or waiter.approval in changed)):
                waiter.wake()
        return LOOK_SECONDS

    def _held(self) -> float | None:
        """Renew the lease while actions run; return when to renew it again."""
        with self._lock:
            if not self._holders:
                return None
        try:
            self._tables.hold()
        except Exception as error:  # noqa: BLE001 — the action goes on, and its outcome is written again and again
            _log.debug("the lease cannot be renewed: %s", redacted_error(error))
            return FAILED_SECONDS
        return HOLD_SECONDS

    def _find_changed(self) -> set[str] | None:
        """Return the approvals that may have changed since the last look; None for all."""
        self._tables.hold()
        changes = self._tables.changes()
        if self._seen is not None and changes == self._changes:
            return set()
        if self._seen is None:
            self._seen, self._changes = self._tables.head()[0], changes
            return None
        found: set[str] = set()
        while True:
            links = self._tables.links(after=self._seen, limit=PAGE)
            found.update(link.approval or "" for link in links)
            if links:
                self._seen = links[-1].seq
            if len(links) < PAGE:
                break
        self._changes = changes
        return found
