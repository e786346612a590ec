"""What the writer needs to know of ended runs. The runtime implements it; a record is all that the writer and the stores see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.store._record import JournalEntry, Record


class Pipeline(Protocol):
    """From an ended run to its record. The writer calls it for one run at a time, in the order in which the runs ended."""

    @property
    def uses_models(self) -> bool:
        """Whether settling may take a model's time."""
        ...

    @property
    def has_open_runs(self) -> bool:
        """Whether there is anything to journal."""
        ...

    def is_ready(self, item: Any, /) -> bool:
        """Return whether a run can be settled; the first call starts what the run waits for, such as its judgement."""
        ...

    def warm(self, items: Sequence[Any], /) -> None:
        """Prepare to settle these runs next."""
        ...

    def is_scored(self, item: Any, /) -> bool:
        """Return whether a run that is ready is scored too; the first call starts scoring."""
        ...

    def settle(self, item: Any, /) -> Record | None:
        """Return the record of a run; None for a run that is not stored."""
        ...

    def give_up(self) -> None:
        """Wait for no judgement and no score any longer."""
        ...

    def lost(self, rows: list[JournalEntry], /) -> object:
        """Return the run whose process died and left this journal, as an item to settle."""
        ...

    def journal(self) -> Sequence[JournalEntry]:
        """Return what has happened in the open runs since the last call."""
        ...

    def report(self, dropped: int, /) -> tuple[str, bytes] | None:
        """Return the name of this process and what it could not record; None where that is not news."""
        ...
