"""The asyncio tasks in which root events begin.

LangChain reports nothing when a lone tool is cancelled, or when a sequence is cancelled while its handlers are called one after another.
Then only the end of the task shows it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable

    Task: TypeAlias = asyncio.Task[object]
    Watch: TypeAlias = tuple[ref[Task], Callable[[Task], None]]

running_loop = asyncio._get_running_loop  # None outside of a loop, where `get_running_loop` would raise an exception


class Tasks:
    """Watches root events in the tasks that they began in, each by a callback of its task until it ends."""

    def __init__(self, ended: Callable[[int, BaseException], None]) -> None:
        """Call `ended` with the key of every event that is still open when its task is done, and with the task's exception."""
        self._ended = ended

    def began(self, key: int) -> Watch | None:
        """Watch an event that begins here. Return what `unwatch` takes when it ends; None outside of any task."""
        loop = running_loop()
        task = None if loop is None else asyncio.current_task(loop)
        if task is None:
            return None
        done = partial(self._done, key)
        task.add_done_callback(done)
        return ref(task), done  # weak: a task that is dropped unfinished ends its events

    def _done(self, key: int, task: Task) -> None:
        self._ended(key, asyncio.CancelledError() if task.cancelled() else RuntimeError("not ended"))


def unwatch(watch: Watch) -> None:
    """Let the task of an event that has ended finish without a callback."""
    task = watch[0]()
    if task is not None:
        task.remove_done_callback(watch[1])
