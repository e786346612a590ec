"""The verbs of people: approve, reject, respond, skip, retry, withdraw. Edits stand in `_edit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.approvals._chain import entry_of
from grace_kp.approvals._due import observed
from grace_kp.approvals._notes import clean_note
from grace_kp.approvals._opened import without_sealed
from grace_kp.approvals._record import note_at
from grace_kp.approvals._standing_use import end_covering
from grace_kp.approvals._states import ENTITLING, ApprovalState
from grace_kp.approvals._verbs import already, check_actor, check_digest, close, is_same_person
from grace_kp.approvals._votes import vote_of, voted
from grace_kp.errors import ApprovalError, ChangedSinceShown
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._actor import Actor
    from grace_kp.approvals._record import Record
    from grace_kp.approvals._tables import Reads
    from grace_kp.approvals._turn import Turn

_S = ApprovalState
CLOSING: Mapping[str, ApprovalState] = {
    "reject": _S.REJECTED,
    "respond": _S.RESPONDED,
    "skip": _S.SKIPPED,
    "retry": _S.RETRIED,
}
"""The verbs by which one person closes a request, with the state that they lead to."""
_LAPSED = frozenset({_S.EXPIRED, _S.CANCELLED})


def approve(turn: Turn, approval_id: str, *, actor: Actor, note: str, digest: str | None) -> Record:
    """Write a person's consent to the arguments."""
    check_actor(actor)
    note = clean_note(note, approval_id)
    record = observed(turn, turn.read(approval_id))
    vote = vote_of(turn.writes, record, actor)
    if vote is not None and (vote["counts"] or not turn.office.rights.counts(record, actor)):
        if record.state in _LAPSED or record.state in CLOSING.values():
            raise already(record)
        check_digest(record, digest)
        return record
    if record.state is not _S.PENDING:
        raise already(record)
    check_digest(record, digest)
    if digest is None:
        check_seen(turn.writes, record, actor)
    turn.office.rights.check(turn.writes, record, actor)
    return voted(
        turn, record, record, actor, verb="approve", note=without_sealed(turn.writes, turn.office.secret, record, note)
    )


def check_seen(reads: Reads, record: Record, actor: Actor) -> None:
    """Refuse consent without a digest to an edit that the person has neither made nor viewed.

    Raises:
        ChangedSinceShown: naming the editor.
    """
    data = record.data
    if data["edited"] is None or record.row.digest == data["asked_digest"] or data["editor"]["name"] == actor.name:
        return
    after = 0
    while links := reads.links(approval=record.id, after=after):
        for entry in map(entry_of, links):
            is_view = entry["kind"] == "viewed" and entry["actor"]["name"] == actor.name
            if is_view and entry["revision"] >= data["edited"]:
                return
        after = links[-1].seq
    raise ChangedSinceShown(
        f"the arguments of {record.id} were changed by {printable(data['editor']['name'], replace='?')}, and this verb does not say which were shown; look at them "
        f"again and decide with the digest {record.row.digest}",
        approval_id=record.id,
    )


def conclude(turn: Turn, approval_id: str, verb: str, *, actor: Actor, note: str, digest: str | None) -> Record:
    """Close a pending request by one of the verbs of `CLOSING`."""
    check_actor(actor)
    state = CLOSING[verb]
    note = clean_note(note, approval_id, what="answer" if verb == "respond" else "note")
    if verb == "respond" and not note.strip():
        raise ApprovalError("an answer needs words for the agent; reject or skip instead", approval_id=str(approval_id))
    record = observed(turn, turn.read(approval_id))
    if record.state is not _S.PENDING:
        if record.state is state and is_same_person(record.closer, actor) and _repeats(turn, record, verb, note):
            return record
        raise already(record)
    check_digest(record, digest)
    turn.office.rights.check(turn.writes, record, actor)
    note = without_sealed(turn.writes, turn.office.secret, record, note)
    closed = close(turn, record, state, "decided", actor=actor, verb=verb, note=note)
    if verb == "reject":
        end_covering(turn, closed, actor)
    return closed


def withdraw(turn: Turn, approval_id: str, *, actor: Actor, reason: str) -> Record:
    """Cancel a request, or a decision that nobody has claimed."""
    check_actor(actor)
    reason = clean_note(reason, approval_id, what="reason")
    record = observed(turn, turn.read(approval_id))
    if record.state is _S.CANCELLED and is_same_person(record.closer, actor):
        return record
    if record.state is not _S.PENDING and record.state not in ENTITLING:
        raise already(record)
    reason = without_sealed(turn.writes, turn.office.secret, record, reason)
    return close(turn, record, _S.CANCELLED, "withdrawn", actor=actor, verb="withdraw", note=reason)


def _repeats(turn: Turn, record: Record, verb: str, note: str) -> bool:
    """Return whether a verb repeats the decision. Other words are another answer; another reason is not another refusal."""
    return verb != "respond" or without_sealed(turn.writes, turn.office.secret, record, note) == note_at(
        turn.writes, record.data["decision"]["seq"]
    )
