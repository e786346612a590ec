"""One transaction of the desk: it writes rows with their entries, and refuses changes that the table of states does not have."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from grace_kp.approvals._chain import append
from grace_kp.approvals._listing import note_people, same_as
from grace_kp.approvals._opened import opened_with
from grace_kp.approvals._record import WAITER, Record, approval_of, read_record
from grace_kp.approvals._standing import note_left
from grace_kp.approvals._states import ENTITLING, ApprovalState, may_follow
from grace_kp.errors import ApprovalError, GraceError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._actor import Actor
    from grace_kp.approvals._approval import Approval
    from grace_kp.approvals._rights import Rights
    from grace_kp.approvals._secret import Secret
    from grace_kp.approvals._tables import Link, Reads, Tables, Writes


@dataclass(frozen=True, slots=True)
class Office:
    """What every verb of a desk works with."""

    tables: Tables
    rights: Rights
    secret: Secret | None

    def shown(self, reads: Reads, record: Record) -> Approval:
        """Return what people see of a record."""
        approval = approval_of(reads, record, tables=self.tables, opened=opened_with(self.secret))
        return replace(approval, same=same_as(reads, record))


@dataclass(slots=True)
class Turn:
    """A transaction that is under way."""

    office: Office
    writes: Writes
    now: float
    """The wall clock, in seconds since the epoch."""
    error: GraceError | None = None
    """What to raise after the transaction; what it wrote stays."""
    changes: int = 0
    """Changes that were begun."""
    changes_due: int = 0
    """Changes that only wrote what was due; they stay although the verb fails."""
    links: list[tuple[Record, Link]] = field(default_factory=list)

    @property
    def next_seq(self) -> int:
        """Number of the entry that is written next."""
        return self.writes.head()[0] + 1

    def read(self, approval_id: str) -> Record:
        """Return the record with an id.

        Raises:
            UnknownApproval: there is none.
        """
        return read_record(self.writes, approval_id)

    def write(
        self,
        before: Record | None,
        after: Record,
        kind: str,
        *,
        actor: Actor,
        facts: Mapping[str, object] | None = None,
        contents: Mapping[str, object] | None = None,
    ) -> Record:
        """Write a record and its entry; return the record that was written.

        Args:
            before: the record as it was read in this transaction; None for a new one.
            after: the record to write; times and revision are set here.
            kind: what happened.
            actor: who did it.
            facts: what may be kept for ever.
            contents: what retention may delete.

        Raises:
            ApprovalError: the state may not follow.
        """
        if before is not None and before.state is not after.state and not may_follow(before.state, after.state):
            raise ApprovalError(
                f"{after.id} is {before.state.value}; {after.state.value} cannot follow", approval_id=after.id
            )
        self.changes += 1  # before the first write: a verb that fails halfway leaves nothing
        at = self.now if before is None else before.at(self.now)
        revision = 1 if before is None else before.row.revision + 1
        data = json.dumps(after.data, separators=(",", ":")).encode()
        written = Record(replace(after.row, changed=at, revision=revision, data=data), after.data)
        if not self.writes.put(written.row):
            raise StoreError(f"the approval {after.id} was changed by somebody else inside of a transaction")
        link = append(
            self.writes,
            kind,
            at=at,
            approval=after.id,
            revision=revision,
            actor=actor,
            facts=facts,
            contents=contents,
        )
        if before is not None:
            self._tidy(before, written)
        note_people(self.writes, written)
        self.links.append((written, link))
        return written

    def _tidy(self, before: Record, after: Record) -> None:
        """Remove what only matters while nobody has claimed the action."""
        if after.state is ApprovalState.PENDING or after.state in ENTITLING:
            return
        if self.writes.document(WAITER, after.id) is not None:
            self.writes.put_document(WAITER, after.id, None)
        if before.state in ENTITLING and after.data["standing"]:
            note_left(self.writes, after.data["standing"], after.id)
