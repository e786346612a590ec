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
    """Keeps finished traces. Several threads may use it at the same time.

    `Grace.feedback` needs one method more: `put_feedback(entries)`, which adds each `FeedbackEntry` to its trace and returns the ids of
    traces that are not stored. `get`, `query` and `iterate` then return the entries under `grace.feedback`, oldest first, whatever
    version of the trace is stored later.
    """

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Store traces, replacing those with the same id, and delete the journals of the runs in `ended`; see `Record.completes`."""
        ...

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Store rows of the journal of runs that are still open."""
        ...

    def recover(self) -> list[list[JournalEntry]]:
        """Return the journals of runs whose process died. Each journal is returned to one caller only."""
        ...

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """Return the trace with this id; None if there is none."""
        ...

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Return the traces that meet all conditions, newest first; see `Query`."""
        ...

    def count(self, **conditions: Any) -> int:
        """Return the number of traces that meet all conditions."""
        ...

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Yield the traces that meet all conditions, oldest first."""
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
        """Delete all traces and return how many there were."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the kind of store, its place, and the number of traces."""
        ...
