"""The asyncio tasks in which root events begin.

LangChain reports nothing when a lone tool is cancelled, or when a sequence is cancelled while its handlers are called one after another.
Then only the end of the task shows it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

running_loop = asyncio._get_running_loop  # None outside of a loop, where `get_running_loop` would raise an exception


class Tasks:
    """Root events by the task that they began in. Each task gets one callback, however many events begin in it."""

    def __init__(self, ended: Callable[[int, BaseException], None]) -> None:
        """Call `ended` with the key of every event that is still open when its task is done, and with the task's exception."""
        self._ended = ended
        self._open: WeakKeyDictionary[asyncio.Task[object], set[int]] = WeakKeyDictionary()

    def began(self, key: int) -> set[int] | None:
        """Watch an event that begins here. Return the set to remove it from when it ends; None outside of any task."""
        loop = running_loop()
        task = None if loop is None else asyncio.current_task(loop)
        if task is None:
            return None
        keys = self._open.get(task)
        if keys is None:
            keys = self._open[task] = set()
            task.add_done_callback(self._done)
        keys.add(key)
        return keys

    def _done(self, task: asyncio.Task[object]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else RuntimeError("not ended")
        for key in tuple(self._open.pop(task, ())):
            self._ended(key, error)
