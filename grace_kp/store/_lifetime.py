"""How the writer's thread lives and ends, without keeping the writer alive, and which threads may not wait for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable

    from grace_kp.store._writer import Writer


def work(reference: weakref.ref[Writer]) -> None:
    """What the thread does: a round after the other, until the writer is closed or gone."""
    while True:
        writer = reference()
        if writer is None or not writer._round():
            return


def exiting(reference: weakref.ref[Writer]) -> Callable[[], None]:
    """What is done when the interpreter exits."""

    def at_exit() -> None:
        writer = reference()
        if writer is not None:
            writer.close(timeout=writer.exit_seconds)

    return at_exit


def would_wait_for_itself() -> bool:
    """Whether this thread does something that the writer waits for, such as scoring a run; it marks itself with `never_waits`."""
    return getattr(threading.current_thread(), "never_waits", False)
