"""A writer while the process forks: what is locked then would stay locked in the child for ever."""

from __future__ import annotations

from typing import Any


class Forking:
    """Holds the locks of a writer and of its store during a fork."""

    _settling: Any
    _writing: Any
    _store: Any
    _held: list[Any]

    def before_fork(self) -> None:
        """Wait until nothing is being settled or written, and keep it so until the fork is done."""
        locks = [self._settling, self._writing]
        lock = getattr(self._store, "lock", None)
        if lock is not None:
            locks.append(lock)
        self._held = [lock for lock in locks if lock.acquire(timeout=5.0)]

    def after_fork_in_parent(self) -> None:
        """Go on."""
        held, self._held = self._held, []
        for lock in reversed(held):
            lock.release()
