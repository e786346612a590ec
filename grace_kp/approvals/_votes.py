"""One person's consent: a vote for a digest, and the decision once enough people have voted for the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._account import reason_without_account
from grace_kp.approvals._actor import Actor, person
from grace_kp.approvals._states import ApprovalState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._record import Record
    from grace_kp.approvals._tables import Reads
    from grace_kp.approvals._turn import Turn


def vote_of(reads: Reads, record: Record, actor: Actor) -> Mapping[str, Any] | None:
    """Return the vote of a person for the arguments that are decided on now; None if there is none, or if it no longer counts."""
    for vote in record.data["votes"]:
        if vote["digest"] == record.row.digest and person(vote["actor"]["name"]) == person(actor.name):
            return None if reason_without_account(reads, Actor.from_dict(vote["actor"])) else vote
    return None


def voted(
    turn: Turn,
    before: Record,
    after: Record,
    actor: Actor,
    *,
    verb: str,
    note: str,
    facts: Mapping[str, object] | None = None,
    contents: Mapping[str, object] | None = None,
) -> Record:
    """Write a vote; with the last one that is needed, the decision.

    Args:
        turn: the transaction.
        before: the pending record as it was read.
        after: the record with what else changes.
        actor: who consents.
        verb: `approve` or `edit`.
        note: the note, cleaned.
        facts: what else the entry states.
        contents: what else retention may delete.
    """
    at, seq, rights, digest = before.at(turn.now), turn.next_seq, turn.office.rights, after.row.digest
    vote = {"actor": actor.to_dict(), "at": at, "digest": digest, "counts": rights.counts(after, actor), "seq": seq}
    others = [each for each in after.data["votes"] if person(each["actor"]["name"]) != person(actor.name)]
    votes = [*others, vote]
    count, quorum = rights.votes_for(turn.writes, after, votes, digest), after.data["quorum"]
    is_decided = count >= quorum
    if is_decided:
        state = ApprovalState.APPROVED if digest == after.data["asked_digest"] else ApprovalState.EDITED
        decision = {"state": state.value, "actor": vote["actor"], "at": at, "seq": seq}
        use_within = after.data["use_within"]
        use_by = None if use_within is None else at + use_within
        record = after.changed(state, votes=votes, decision=decision, use_by=use_by)
    else:
        record = after.changed(votes=votes)
    kind = "edited" if verb == "edit" else "decided" if is_decided else "voted"
    stated = {"verb": verb, "votes": count, "quorum": quorum, **(facts or {})}
    return turn.write(before, record, kind, actor=actor, facts=stated, contents={"note": note, **(contents or {})})
