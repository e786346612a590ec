"""How the writer's thread lives and ends, without keeping the writer alive; and what the writer says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable

    from grace_kp.store._writer import Writer


@dataclass(frozen=True, slots=True)
class WriterStats:
    """What became of what was submitted."""

    settled: int
    written: int
    dropped: int
    pending: int
    pending_bytes: int
    errors: int
    last_error: str | None
    helped: int


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
