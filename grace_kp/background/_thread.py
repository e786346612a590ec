"""The threads of this library. Every one is a daemon, so none keeps the interpreter from exiting."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable


class BackgroundThread(threading.Thread):
    """A thread of this library. No event loop of the user's runs in it."""

    def __init__(
        self, work: Callable[[], object], *, name: str, context: contextvars.Context, may_wait: bool = True
    ) -> None:
        super().__init__(target=context.run, args=(work,), name=f"grace_kp {name}", daemon=True)
        self.may_wait = may_wait


def may_wait() -> bool:
    """Whether the current thread may wait for background work: False where that work is waiting for the thread itself."""
    return getattr(threading.current_thread(), "may_wait", True)
