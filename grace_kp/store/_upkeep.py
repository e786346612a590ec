"""What a store needs besides records: a renewed lease, what dead processes have left, retention, reports, and its file in its place.

A store of a user's own may have none of these; each is a method that is called where it exists.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.store._backlog import Backlog
    from grace_kp.store._pipeline import Pipeline
    from grace_kp.store._store import Store

RECOVER_SECONDS = 30.0
RETENTION_SECONDS = 3_600.0


class Upkeep:
    """The upkeep of one store by one writer."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        retention_days: float,
        wake: Callable[[], object],
        backlog: Callable[[], Backlog],
    ) -> None:
        """Do nothing yet.

        Args:
            store: the store.
            pipeline: completes what dead processes have left.
            retention_days: how long runs are kept; 0 for ever.
            wake: has the backlog settled.
            backlog: takes runs of dead processes, and counts runs that are not in the store any more; another one after a fork.
        """
        self._store: Any = store
        self._pipeline = pipeline
        self._retention_days, self._wake, self._backlog = retention_days, wake, backlog
        self._recover_at = self._retain_at = 0.0
        self._parts: frozenset[str] = frozenset()
        """What the pipeline could add when it was asked last. It may choose models later."""
        self._times_reopened = getattr(store, "times_reopened", 0)
        self.written = 0
        """Runs written to the store's file since it was opened."""

    def _offers(self, method: str) -> bool:
        return callable(getattr(self._store, method, None))

    def recover(self) -> None:
        """Take over what dead processes have left."""
        self._recover_at = time.monotonic() + RECOVER_SECONDS
        self._parts = self._pipeline.parts
        if self._offers("recover"):
            # Not settled here: the store's lock is held, and a hook that asks for the store would wait for it.
            runs = [self._pipeline.lost(rows) for rows in self._store.recover()]
            if runs:
                self._backlog().queue.extend(runs)
                self._wake()
        if self._offers("incomplete") and self._parts:
            found = self._store.incomplete(self._parts)
            self._pipeline.adopt(found)
            if found:
                self._recover_at = 0.0  # there may be more

    def do_what_is_due(self) -> None:
        """Renew the lease of this process, take over from dead ones, and delete what is too old, each when it is due."""
        if self._offers("renew_lease") and (self._pipeline.has_open_runs or self._pipeline.is_completing):
            self._store.renew_lease()
        now = time.monotonic()
        if now >= self._recover_at or not self._pipeline.parts <= self._parts:
            self.recover()
        if self._retention_days and now >= self._retain_at and self._offers("retain"):
            self._retain_at = now + RETENTION_SECONDS
            self._store.retain(self._retention_days)

    def report(self, backlog: Backlog) -> None:
        """Store what this process could not record, if that is news."""
        report = backlog.take_report(self._pipeline) if self._offers("report") else None
        if report is not None:
            self._store.report(*report)
            backlog.unstored_report = None

    def leave(self) -> None:
        """Close the store."""
        if self._offers("close"):
            self._store.close()

    def reopen_if_displaced(self) -> bool:
        """Open the store's file anew where it was deleted or moved; return whether it was. What it held counts as lost."""
        if getattr(self._store, "is_displaced", False):
            self._store.reopen()
        times = getattr(self._store, "times_reopened", 0)  # whoever reads may have opened it anew
        if times == self._times_reopened:
            return False
        self._times_reopened = times
        gone, self.written = self.written, 0
        if gone:
            self._backlog().lose(
                gone, f"{self._store.path} was deleted, moved or replaced after they had been written to it"
            )
        return True
