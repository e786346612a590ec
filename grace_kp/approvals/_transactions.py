"""Transactions of the desk: what was due stays written although a verb fails, a verb that fails halfway leaves nothing, and events follow."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from grace_kp.approvals._due import TIMED, is_due, observed, sweep_batch
from grace_kp.approvals._record import record_of
from grace_kp.approvals._states import ApprovalState
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._turn import Turn
from grace_kp.errors import ApprovalError, KeyReused
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.approvals._approval import Approval
    from grace_kp.approvals._record import Record
    from grace_kp.approvals._tables import Link
    from grace_kp.approvals._turn import Office

_Result = TypeVar("_Result")
_log = logging.getLogger("grace_kp.approvals")
BATCH = 100
"""Requests that one transaction of a sweep ends, so that others can write in between."""


class Transactions:
    """Runs the verbs of a desk.

    Args:
        office: what verbs work with.
        clock: the wall clock.
        on_event: called with the approval and the entry after each change is committed.
    """

    __slots__ = ("_clock", "_office", "_on_event")

    def __init__(
        self, office: Office, clock: Callable[[], float], on_event: Callable[[Approval, Link], None] | None
    ) -> None:
        self._office, self._clock, self._on_event = office, clock, on_event

    def approved(self, work: Callable[[Turn], Record]) -> Approval:
        """Run a verb; return the approval as it stands at its end."""
        return self.run(lambda turn: self._office.shown(turn.writes, work(turn)))

    def run(self, work: Callable[[Turn], _Result]) -> _Result:
        """Run a verb in one transaction; return what it returns.

        Raises:
            ApprovalError, KeyReused: the verb was refused. What was due stays written, and what the refusal itself writes (`turn.error`).
            StoreError: the store failed; nothing stays written.
        """
        with self._office.tables.transaction() as writes:
            turn = Turn(self._office, writes, self._clock())
            try:
                outcome = work(turn)
            except (ApprovalError, KeyReused) as error:
                if turn.changes != turn.changes_due:
                    raise
                turn.error = error
            shown = [] if self._on_event is None else turn.links
            events = [(self._office.shown(writes, record), link) for record, link in shown]
        for approval, link in events:
            self._publish(approval, link)
        if turn.error is not None:
            raise turn.error
        return outcome

    def expire(self) -> int:
        """Write what time has ended; return the number of changes."""
        count = 0
        while self._office.tables.rows(RowQuery(states=TIMED, due_before=self._clock(), limit=1)):
            changes = self.run(lambda turn: sweep_batch(turn, BATCH))
            if not changes:
                break
            count += changes
        return count

    def lose(self) -> int:
        """Write which claimants are gone; return the number of changes."""
        tables = self._office.tables
        claimed = tables.rows(RowQuery(states=(ApprovalState.CLAIMED.value,), limit=None))
        lost = [row.id for row in claimed if is_due(record_of(row), self._clock(), tables)]
        return sum(self.run(lambda turn, each=each: _observe(turn, each)) for each in lost)  # type: ignore[misc]

    def _publish(self, approval: Approval, link: Link) -> None:
        try:
            if self._on_event is not None:
                self._on_event(approval, link)
        except Exception as error:  # noqa: BLE001 — what was decided is decided, whoever listens
            _log.warning("on_event failed for %s: %s", approval.id, redacted_error(error))


def _observe(turn: Turn, approval_id: str) -> int:
    observed(turn, turn.read(approval_id))
    return turn.changes
