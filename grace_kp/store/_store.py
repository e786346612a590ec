"""The protocol of a store: it keeps finished traces, finds them again, and holds the journal of runs that are still open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from grace_kp.store._deletion import Deleted
    from grace_kp.store._record import JournalEntry, Record
    from grace_kp.trace import ReasoningTrace


@runtime_checkable
class Store(Protocol):
    """Keeps finished traces. Several threads may use it at a time."""

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Keep these traces, replacing those with the same id, and forget the journals of the runs in `ended`."""
        ...

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Keep what has come of runs that are still open."""
        ...

    def recover(self) -> list[list[JournalEntry]]:
        """The journals of runs whose process died, each given to one caller only."""
        ...

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """The trace of this id; None where there is none."""
        ...

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Traces that meet all conditions, newest first; see `Query`."""
        ...

    def count(self, **conditions: Any) -> int:
        """How many traces meet all conditions."""
        ...

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Traces that meet all conditions, oldest first, one at a time."""
        ...

    def delete(
        self,
        *,
        id: str | None = None,  # noqa: A002
        session: str | None = None,
        user: str | None = None,
        older_than: datetime | timedelta | str | None = None,
    ) -> Deleted:
        """Delete the runs that meet every condition, with the runs nested in them, everywhere in the store.

        Args:
            id: one run.
            session: all runs of a session.
            user: all runs of a user.
            older_than: runs that began before: "30d", a timedelta, a datetime or ISO text.

        Returns:
            The number of runs, with what else happened as attributes.

        Raises:
            ValueError: there is no condition, or one cannot be used.
            StoreError: the run named by `id` is still open.
        """
        ...

    def clear(self) -> int:
        """Forget all traces; how many there were."""
        ...

    def close(self) -> None:
        """Give back what the store holds."""
        ...

    def describe(self) -> dict[str, Any]:
        """What kind of store this is, where, and how much is in it."""
        ...
