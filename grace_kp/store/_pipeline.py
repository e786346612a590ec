"""What the writer needs to know of ended runs. The runtime implements it; a record is all that the writer and the stores see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grace_kp.store._record import JournalEntry, Record


class Pipeline(Protocol):
    """From an ended run to its record, and on to what comes once it is stored.

    The writer calls `settle` for one run at a time, in the order in which the runs ended.
    """

    @property
    def has_open_runs(self) -> bool:
        """Whether there is anything to journal."""
        ...

    @property
    def is_completing(self) -> bool:
        """Whether stored runs wait for their judgement or scores."""
        ...

    @property
    def is_mine(self) -> bool:
        """Whether the current thread is at work in it, so that settling would wait for this thread."""
        ...

    @property
    def parts(self) -> frozenset[str]:
        """What this runtime can add to a stored run that awaits it, such as a judgement."""
        ...

    def prepare(self) -> None:
        """Load what settling needs, while the first run is still open."""
        ...

    def settle(self, item: Any, /) -> tuple[Record | None, object]:
        """Return the record of a run and what follows once it is stored.

        The record is None for a run that is not stored, and what follows is None if nothing does.
        """
        ...

    def follow(self, stored: Sequence[object], /) -> None:
        """Go on with runs that the store has taken, or could not take for now: judge them, score them, hand them out."""
        ...

    def adopt(self, documents: Sequence[bytes], /) -> None:
        """Complete stored runs of dead processes."""
        ...

    def complete(self, deadline: float | None, /) -> bool:
        """Wait until the stored runs are complete, at most until a time of `time.monotonic`; return whether they are."""
        ...

    def give_up(self) -> None:
        """Wait for no judgement and no score any longer."""
        ...

    def lost(self, rows: list[JournalEntry], /) -> object:
        """Return the run whose process died and left this journal, as an item to settle."""
        ...

    def journal(self) -> Iterator[Sequence[JournalEntry]]:
        """Yield for each open run what has happened in it since the last call."""
        ...

    def report(self, dropped: int, lost: int, /) -> tuple[str, bytes] | None:
        """Return the name of this process and what it could not record; None where that is not news."""
        ...
