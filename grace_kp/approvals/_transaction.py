"""The verbs of people (approve, edit, reject, respond, skip, retry, withdraw), and the transactions that they and all other verbs are.

A transaction writes rows with their entries, and first whatever is due.

A verb that fails leaves nothing, except what was due: expiry, escalation, and claims whose claimant is gone. The first process that looks writes that.
Times are those of the wall clock, which all processes share. Expiry is final, even if the clock is set back.

Verbs share who may decide, checks of people and digests, votes, and closing. Groups come from the configuration of the process that calls the verb. A
writer of the store can write a decision: separation of duties needs the store behind a server under another account.

An edit replaces arguments and consents to the result; votes for other arguments no longer count. Only parameters that the digest covers can be
edited, and not those that identify the operation.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from grace_kp.approvals._arguments import encode, tag_of
from grace_kp.approvals._chain import append, was_viewed
from grace_kp.approvals._digest import (
    clean_note,
    has_digest,
    list_sealed,
    opened_arguments,
    sealed_arguments,
    sealed_texts,
    without_texts,
)
from grace_kp.approvals._digest import digest as digest_of
from grace_kp.approvals._record import (
    STANDING,
    WAITER,
    RequestRecord,
    approval_of,
    contents_at,
    note_at,
    note_people,
    read_record,
    record_of,
    stored_arguments,
    texts_in_sealed,
)
from grace_kp.approvals._request import ENTITLING, FOLLOWING, Actor, ApprovalState, person, reason_without_account
from grace_kp.approvals._schema import fitted_edit
from grace_kp.approvals._tables import RowQuery
from grace_kp.errors import (
    AlreadyDecided,
    ApprovalError,
    ChangedSinceShown,
    EditRefused,
    GraceError,
    KeyReused,
    NotEntitled,
    StoreError,
    brief,
)
from grace_kp.levels import InterventionLevel
from grace_kp.pages import printable
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.approvals._digest import Secret
    from grace_kp.approvals._record import Approval
    from grace_kp.approvals._request import PolicyNow
    from grace_kp.approvals._tables import Reads, Tables, Writes

_Result = TypeVar("_Result")
_P = ParamSpec("_P")
_S = ApprovalState
BATCH = 100
"""Requests per transaction of a sweep, so that other processes can write in between."""
ESCALATE = "escalate:"
DEADLINE = "deadline"
"""Name and channel of the actor if time has closed a request."""
TIMED = (_S.PENDING.value, *sorted(state.value for state in ENTITLING))
"""States that time ends."""


# Who may decide


def users_of(record: RequestRecord) -> set[str]:
    return {person(user) for user in (record.data["user"], *record.data["users"]) if user}


def vote_of(reads: Reads, record: RequestRecord, actor: Actor) -> Mapping[str, Any] | None:
    """Return the vote of a person for the current arguments; None without one, or if the account may no longer decide."""
    for vote in record.data["votes"]:
        if vote["digest"] == record.row.digest and person(vote["actor"]["name"]) == person(actor.name):
            return None if reason_without_account(reads, Actor.from_dict(vote["actor"])) else vote
    return None


class Rights:
    """The configured groups of each person. Names are compared exactly."""

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[str, Sequence[str]] | None = None) -> None:
        configured = (groups or {}).items()
        self._groups = {redact_text(name, identifiers=False): frozenset(member_of) for name, member_of in configured}

    def reason_against(self, reads: Reads, record: RequestRecord, actor: Actor) -> str:
        """Return why a person may not decide a request, or an empty string."""
        quorum, groups, own = record.data["quorum"], record.groups, self._groups.get(actor.name, frozenset())
        if groups and not own.intersection(groups):
            belongs = ", ".join(sorted(own)) or "no group"
            return f"it needs a member of {' or '.join(groups)}, and this name belongs to {belongs}"
        if (groups or quorum > 1) and person(actor.name) in users_of(record):
            return "the run acts for this person, and another person must decide"
        return reason_without_account(reads, actor)

    def check(self, reads: Reads, record: RequestRecord, actor: Actor) -> None:
        reason = self.reason_against(reads, record, actor)
        if reason:
            raise NotEntitled(f"{printable(actor.name)} may not decide {record.id}: {reason}", approval_id=record.id)

    def counts(self, record: RequestRecord, actor: Actor) -> bool:
        """Return whether a vote counts. A quorum above 1 counts authenticated people only, unless it accepts stated names."""
        return bool(record.data["quorum"] == 1 or record.data["identity"] == "stated" or actor.authenticated)

    def count_votes(self, reads: Reads, record: RequestRecord, votes: Sequence[Mapping[str, Any]]) -> int:
        """Return how many people have a counting vote for the current arguments and may still decide."""
        people = {
            person(vote["actor"]["name"])
            for vote in votes
            if vote["digest"] == record.row.digest
            and vote["counts"]
            and not self.reason_against(reads, record, Actor.from_dict(vote["actor"]))
        }
        return len(people)


# Transactions


@dataclass(slots=True)
class Transaction:
    """A transaction that is under way."""

    tables: Tables
    rights: Rights
    secret: Secret | None
    writes: Writes
    now: float
    """The wall clock, in seconds since the epoch."""
    error: GraceError | None = None
    """The error to raise after the commit."""
    changes: int = 0
    """Number of changes, including unfinished ones."""
    changes_due: int = 0
    """Number of changes that were due, which stay even if the verb fails."""

    @property
    def next_seq(self) -> int:
        return self.writes.head()[0] + 1

    def show(self, record: RequestRecord) -> Approval:
        """Return the approval of a record."""
        return approval_of(self.writes, record, tables=self.tables, secret=self.secret)

    def read_due(self, approval_id: str) -> RequestRecord:
        """Return the record with an id, after writing what is due to it."""
        return write_due(self, read_record(self.writes, approval_id))

    def hide_sealed(self, record: RequestRecord, text: str) -> str:
        """Return a string without the values of sealed arguments, before and after an edit, as far as they can be opened here."""
        return without_texts(text, texts_in_sealed(self.writes, self.secret, record)[0])  # type: ignore[no-any-return]

    def stamp(self, record: RequestRecord, state: ApprovalState, actor: Actor) -> dict[str, Any]:
        """Return a state with its author, its time, and the number of the entry that is written next."""
        return {"state": state.value, "actor": actor.to_dict(), "at": record.at(self.now), "seq": self.next_seq}

    def write(
        self,
        before: RequestRecord | None,
        after: RequestRecord,
        kind: str,
        *,
        actor: Actor,
        facts: Mapping[str, object] | None = None,
        contents: Mapping[str, object] | None = None,
    ) -> RequestRecord:
        """Write a record and its entry; return the record that was written."""
        if before is not None and before.state is not after.state and after.state not in FOLLOWING[before.state]:
            raise ApprovalError(
                f"{after.id} is {before.state.value}; {after.state.value} cannot follow", approval_id=after.id
            )
        self.changes += 1  # counted before the first write, so that a failure in the middle is rolled back
        at = self.now if before is None else before.at(self.now)
        revision = 1 if before is None else before.row.revision + 1
        data = json.dumps(after.data, separators=(",", ":")).encode()
        written = RequestRecord(replace(after.row, changed=at, revision=revision, data=data), after.data)
        if not self.writes.put(written.row):
            raise StoreError(f"the approval {after.id} was changed by another process inside of a transaction")
        append(
            self.writes, kind, at=at, approval=after.id, revision=revision, actor=actor, facts=facts, contents=contents
        )
        if before is not None and written.state is not _S.PENDING and written.state not in ENTITLING:
            self._end_waiting(before, written)
        note_people(self.writes, written)
        return written

    def _end_waiting(self, before: RequestRecord, after: RequestRecord) -> None:
        """Remove the waiting process and the reserved use of a standing approval."""
        if self.writes.document(WAITER, after.id) is not None:
            self.writes.put_document(WAITER, after.id, None)
        name = after.data["standing"]
        if before.state in ENTITLING and name and (data := self.writes.document(STANDING, name)):
            standing = json.loads(data)
            standing["open"] = [each for each in standing["open"] if each != after.id]
            self.writes.put_document(STANDING, name, json.dumps(standing, separators=(",", ":")).encode())


class Transactions:
    """Runs verbs on the requests of one store, each in one transaction.

    Args:
        tables: the tables of the store.
        groups: the groups of each person, by name.
        secret: the key that opens sealed parameters and computes the digests of edits.
        clock: the wall clock, in seconds since the epoch.
        on_commit: called after each commit that changed something. It must not raise.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        secret: Secret | None = None,
        clock: Callable[[], float] = time.time,
        on_commit: Callable[[], object] = lambda: None,
    ) -> None:
        self.tables, self.secret, self.clock = tables, secret, clock
        self.rights = Rights(groups)
        self._on_commit = on_commit

    def show(self, record: RequestRecord) -> Approval:
        """Return the approval of a record outside of a transaction."""
        return approval_of(self.tables, record, tables=self.tables, secret=self.secret)

    def change(
        self, verb: Callable[Concatenate[Transaction, _P], RequestRecord], *args: _P.args, **kwargs: _P.kwargs
    ) -> Approval:
        """Run a verb; return the approval after it."""
        return self.run(lambda tx: tx.show(verb(tx, *args, **kwargs)))

    def run(
        self, verb: Callable[Concatenate[Transaction, _P], _Result], *args: _P.args, **kwargs: _P.kwargs
    ) -> _Result:
        """Run a verb in one transaction; return what it returns."""
        with self.tables.transaction() as writes:
            tx = Transaction(self.tables, self.rights, self.secret, writes, self.clock())
            try:
                outcome = verb(tx, *args, **kwargs)
            except (ApprovalError, KeyReused) as error:
                if tx.changes != tx.changes_due:
                    raise
                tx.error = error
        if tx.changes:
            self._on_commit()
        if tx.error is not None:
            raise tx.error
        return outcome

    def expire(self) -> int:
        """Write expiry and escalation; return the number of changes."""
        count = 0
        while ended := self.tables.rows(RowQuery(states=TIMED, due_before=self.clock(), limit=BATCH)):
            changes = self.run(_write_due, [row.id for row in ended])
            if not changes:
                break
            count += changes
        return count

    def lose(self) -> int:
        """Write that claimants are gone; return the number of changes."""
        claimed = self.tables.rows(RowQuery(states=(_S.CLAIMED.value,), limit=None))
        lost = [row.id for row in claimed if is_due(record_of(row), self.clock(), self.tables)]
        return sum(self.run(_write_due, [each]) for each in lost)


# Due changes


def is_due(record: RequestRecord, now: float, tables: Tables) -> bool:
    """Return whether something must be written before the record is used."""
    if record.state is _S.CLAIMED:
        return tables.is_alive(record.data["claim"]["process"]) is False
    return record.due is not None and record.due <= record.at(now)


def write_due(tx: Transaction, record: RequestRecord) -> RequestRecord:
    while is_due(record, tx.now, tx.tables):
        record = _advance(tx, record)
        tx.changes_due = tx.changes
    return record


def _write_due(tx: Transaction, approvals: Sequence[str]) -> int:
    for each in approvals:
        tx.read_due(each)
    return tx.changes


def _advance(tx: Transaction, record: RequestRecord) -> RequestRecord:
    data = record.data
    if record.state is _S.CLAIMED:
        actor = Actor.here("observer", channel="gate")
        outcome = {**tx.stamp(record, _S.UNKNOWN, actor), "error": "", "reconciled": False}
        after = record.revise(_S.UNKNOWN, outcome=outcome)
        note = "the process that ran it ended without a report"
        facts: dict[str, object] = {"process": data["claim"]["process"]}
        return tx.write(record, after, "settled", actor=actor, facts=facts, contents={"note": note})
    actor = Actor.here(DEADLINE, channel=DEADLINE)
    if record.state is _S.PENDING and data["on_deadline"].startswith(ESCALATE) and not data["escalated"]:
        group = data["on_deadline"].removeprefix(ESCALATE).strip()
        # The group gets the full time from now on, even if no process looked when the first deadline passed.
        deadline = record.at(tx.now) + data["deadline_seconds"]
        after = record.revise(groups=[group], deadline=deadline, votes=[], escalated=True)
        facts = {"group": group, "due": record.due, "deadline": deadline}
        return tx.write(record, after, "escalated", actor=actor, facts=facts)
    is_pending = record.state is _S.PENDING
    state = _S.SKIPPED if is_pending and data["on_deadline"] == "skip" else _S.EXPIRED
    note = "no decision in time" if is_pending else "not used in time"
    after = record.revise(state, decision=tx.stamp(record, state, actor))
    return tx.write(record, after, "expired", actor=actor, facts={"due": record.due}, contents={"note": note})


# Parts of verbs


def add_vote(
    tx: Transaction,
    before: RequestRecord,
    after: RequestRecord,
    actor: Actor,
    *,
    verb: str,
    note: str,
    facts: Mapping[str, object] | None = None,
    contents: Mapping[str, object] | None = None,
) -> RequestRecord:
    """Write a vote; with the last one that is needed, the decision."""
    at, digest = before.at(tx.now), after.row.digest
    vote = {"actor": actor.to_dict(), "at": at, "digest": digest, "counts": tx.rights.counts(after, actor)}
    others = [each for each in after.data["votes"] if person(each["actor"]["name"]) != person(actor.name)]
    after = after.revise(votes=[*others, {**vote, "seq": tx.next_seq}])
    count, quorum = tx.rights.count_votes(tx.writes, after, after.data["votes"]), after.data["quorum"]
    if is_decided := count >= quorum:
        state = _S.APPROVED if digest == after.data["asked_digest"] else _S.EDITED
        use_within = after.data["use_within"]
        use_by = None if use_within is None else at + use_within
        after = after.revise(state, decision=tx.stamp(before, state, actor), use_by=use_by)
    kind = "edited" if verb == "edit" else "decided" if is_decided else "voted"
    stated = {"verb": verb, "votes": count, "quorum": quorum, **(facts or {})}
    return tx.write(before, after, kind, actor=actor, facts=stated, contents={"note": note, **(contents or {})})


def close(
    tx: Transaction, record: RequestRecord, state: ApprovalState, kind: str, *, actor: Actor, verb: str, note: str
) -> RequestRecord:
    after = record.revise(state, decision=tx.stamp(record, state, actor))
    return tx.write(record, after, kind, actor=actor, facts={"verb": verb}, contents={"note": note})


_PAST = {
    _S.CLAIMED: "is being carried out, claimed",
    _S.DONE: "was carried out, claimed",
    _S.FAILED: "was carried out and failed, claimed",
    _S.UNKNOWN: "was begun and its outcome is unknown, claimed",
    _S.NOT_DONE: "did not happen, as reconciled",
}


def already_decided(
    record: RequestRecord, message: str = "", *, ending: str = "; nothing was changed"
) -> AlreadyDecided:
    """Return the error that names the earlier decision or end, its author and its time, or with another message."""
    data, state = record.data, record.state
    outcome, claim, decision = data["outcome"], data["claim"], data["decision"]
    source = (claim if state in _PAST else decision) or outcome or decision
    if state is _S.NOT_DONE:
        source = outcome
    name = "" if source is None or source["actor"]["channel"] == DEADLINE else source["actor"]["name"]
    at = record.row.changed if source is None else source["at"]
    decided = (
        f"; {decision['state']} by {printable(decision['actor']['name'], replace='?')}"
        if state in _PAST and decision
        else ""
    )
    by = f" by {printable(name, replace='?')}" if name else ""
    message = message or f"{_PAST.get(state, f'was {state.value}')}{by} at {moment(at)}{decided}{ending}"
    return AlreadyDecided(f"{record.id} {message}", approval_id=record.id, state=state.value, by=name, at=at)


def moment(at: float) -> str:
    """Return a time as a string, in UTC to the second."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def check_digest(record: RequestRecord, digest: str | None) -> None:
    """Refuse a digest of other arguments than the current ones."""
    if digest is not None and digest != record.row.digest:
        edited = record.data["editor"]
        by = f" by {printable(edited['name'], replace='?')}" if edited else ""
        raise ChangedSinceShown(
            f"the arguments of {record.id} were changed{by} after they were shown; look at them again and decide with the "
            f"digest {record.row.digest}",
            approval_id=record.id,
        )


def is_same_person(first: Actor | None, second: Actor) -> bool:
    """Return whether two actors have spellings of one name."""
    return first is not None and person(first.name) == person(second.name)


# The verbs of people


CLOSING: Mapping[str, ApprovalState] = {
    "reject": _S.REJECTED,
    "respond": _S.RESPONDED,
    "skip": _S.SKIPPED,
    "retry": _S.RETRIED,
}
"""Verbs by which one person closes a request, with their states."""
_LAPSED = frozenset({_S.EXPIRED, _S.CANCELLED})


def approve(tx: Transaction, approval_id: str, *, actor: Actor, note: str, digest: str | None) -> RequestRecord:
    """Record the consent of a person to the arguments."""
    note = clean_note(note, approval_id)
    record = tx.read_due(approval_id)
    vote = vote_of(tx.writes, record, actor)
    if vote is not None and (vote["counts"] or not tx.rights.counts(record, actor)):
        if record.state in _LAPSED or record.state in CLOSING.values():
            raise already_decided(record)
        check_digest(record, digest)
        return record
    if record.state is not _S.PENDING:
        raise already_decided(record)
    _check_shown(tx, record, actor, digest)
    tx.rights.check(tx.writes, record, actor)
    return add_vote(tx, record, record, actor, verb="approve", note=tx.hide_sealed(record, note))


def _check_shown(tx: Transaction, record: RequestRecord, actor: Actor, digest: str | None) -> None:
    """Refuse another digest; without one, refuse consent to an edit that the person has neither made nor viewed."""
    data = record.data
    check_digest(record, digest)
    is_as_asked = data["edited"] is None or record.row.digest == data["asked_digest"]
    if digest is not None or is_as_asked or data["editor"]["name"] == actor.name:
        return
    if was_viewed(tx.writes, record.id, data["edited"], actor):
        return
    editor = printable(data["editor"]["name"], replace="?")
    raise ChangedSinceShown(
        f"the arguments of {record.id} were changed by {editor}, and this verb does not state which were shown; look at them "
        f"again and decide with the digest {record.row.digest}",
        approval_id=record.id,
    )


def conclude(
    tx: Transaction, approval_id: str, verb: str, *, actor: Actor, note: str, digest: str | None
) -> RequestRecord:
    """Close a pending request by one of the verbs of `CLOSING`."""
    state = CLOSING[verb]
    note = clean_note(note, approval_id, what="answer" if verb == "respond" else "note")
    if verb == "respond" and not note.strip():
        raise ApprovalError("an answer needs words for the agent; reject or skip instead", approval_id=str(approval_id))
    record = tx.read_due(approval_id)
    if record.state is not _S.PENDING:
        is_repeated = record.state is state and is_same_person(record.closer, actor)
        if is_repeated and verb == "respond":
            is_repeated = tx.hide_sealed(record, note) == note_at(tx.writes, record.data["decision"]["seq"])
        if is_repeated:
            return record
        raise already_decided(record)
    check_digest(record, digest)
    tx.rights.check(tx.writes, record, actor)
    note = tx.hide_sealed(record, note)
    return close(tx, record, state, "decided", actor=actor, verb=verb, note=note)


def withdraw(tx: Transaction, approval_id: str, *, actor: Actor, reason: str) -> RequestRecord:
    """Cancel a request, or a decision that is not claimed yet."""
    reason = clean_note(reason, approval_id, what="reason")
    record = tx.read_due(approval_id)
    if record.state is _S.CANCELLED and is_same_person(record.closer, actor):
        return record
    if record.state is not _S.PENDING and record.state not in ENTITLING:
        raise already_decided(record)
    reason = tx.hide_sealed(record, reason)
    return close(tx, record, _S.CANCELLED, "withdrawn", actor=actor, verb="withdraw", note=reason)


def edit(
    tx: Transaction,
    approval_id: str,
    changes: Mapping[str, object],
    *,
    actor: Actor,
    note: str,
    digest: str | None,
    policy: PolicyNow | None,
    is_encoded: bool,
) -> RequestRecord:
    """Record an edit, which is also the vote of its editor."""
    note = clean_note(note, approval_id)
    record = tx.read_due(approval_id)
    if _may_repeat_edit(tx, record, actor, digest):
        with suppress(EditRefused):
            if _apply(tx, record, changes, is_encoded)[3] == record.row.digest:
                return record
    if record.state is not _S.PENDING:
        raise already_decided(record)
    _check_shown(tx, record, actor, digest)
    tx.rights.check(tx.writes, record, actor)
    stored, sealed, texts, new = _apply(tx, record, changes, is_encoded)
    if new == record.row.digest:
        raise EditRefused(
            f"the edit of {record.id} changes nothing; approve it, or name other values", approval_id=record.id
        )
    after = _under_stricter(record, policy).revise(
        digest=new,
        sealed=list(sealed),
        votes=[],
        edit=tx.next_seq,
        edited=record.row.revision + 1,
        edited_from=record.row.digest,
        editor={"name": actor.name},
    )
    tx.rights.check(tx.writes, after, actor)
    note, contents = without_texts(tx.hide_sealed(record, note), texts), {"arguments": stored}
    facts = {"before": record.row.digest, "parameters": sorted(changes)}
    return add_vote(tx, record, after, actor, verb="edit", note=note, facts=facts, contents=contents)


def _may_repeat_edit(tx: Transaction, record: RequestRecord, actor: Actor, digest: str | None) -> bool:
    """Return whether this person has made the last edit and the request is still open or was decided by it."""
    editor, state = record.data["editor"], record.state
    if editor is None or person(editor["name"]) != person(actor.name) or vote_of(tx.writes, record, actor) is None:
        return False
    if state in _LAPSED or digest not in {None, record.row.digest, record.data["edited_from"]}:
        return False
    return record.data["decision"] is None or record.data["decision"]["state"] == _S.EDITED.value


def _apply(
    tx: Transaction, record: RequestRecord, changes: Mapping[str, object], is_encoded: bool
) -> tuple[dict[str, Any], tuple[str, ...], list[str], str]:
    row, data, secret = record.row, record.data, tx.secret
    kept = stored_arguments(tx.writes, record)
    if kept is None:
        raise _refusal(record, "its contents were deleted")
    _check_names(record, changes, kept)
    try:
        before = opened_arguments(kept, secret, approval_id=row.id, digest=row.digest)
        closed = ", ".join(list_sealed(before))
        if closed:
            raise ValueError(f"{closed} is sealed and cannot be opened here; edit it where its key is")
        if not has_digest(
            row.digest, row.action, data["version"], before, leave_out=data["not_covered"], secret=secret
        ):
            raise ValueError("the stored arguments do not have its digest; run `grace-kp approvals verify`")
        schema = (contents_at(tx.writes, data["request"]) or {}).get("schema", {})
        encoded = {**before, **_encode_changes(record, changes, is_encoded, before, schema)}
        own = secret if row.digest.startswith("hmac-") else None
        new = digest_of(row.action, data["version"], encoded, leave_out=data["not_covered"], secret=own)
        stored, sealed = sealed_arguments(encoded, data["sealed"], secret, approval_id=row.id, digest=new)
    except ValueError as error:
        if isinstance(error, EditRefused):
            raise
        raise _refusal(record, str(error)) from None
    return stored, sealed, sealed_texts(encoded, sealed), new


def _check_names(record: RequestRecord, changes: Mapping[str, object], stored: Mapping[str, Any]) -> None:
    data = record.data
    if not isinstance(changes, Mapping) or not changes or not all(isinstance(name, str) for name in changes):
        raise _refusal(record, f"an edit maps parameter names to values, not {brief(changes)}")
    if data["unencoded"]:
        names = ", ".join(data["unencoded"])
        raise _refusal(record, f"only the process that waits holds {names}; approve or reject it, or answer with words")
    for name in changes:
        if name not in stored:
            raise _refusal(record, f"the action has no parameter {brief(name)}; it has {', '.join(stored) or 'none'}")
        if name in data["key_fields"]:
            raise _refusal(record, f"{name} identifies the operation; reject the request and ask for another one")
        if name in data["not_covered"]:
            raise _refusal(record, f"{name} is not covered by the decision; the call that runs has its own value")


def _encode_changes(
    record: RequestRecord,
    changes: Mapping[str, Any],
    is_encoded: bool,
    before: Mapping[str, Any],
    schema: Mapping[str, Any],
) -> dict[str, Any]:
    if not is_encoded:
        changes, problems = encode(changes)
        for name, problem in problems.items():
            raise _refusal(record, f"{name} {problem}")
    for name, value in changes.items():
        if tag_of(value) == "$sealed":
            raise _refusal(record, f"{name} holds a sealed value; pass the value itself")
    action, hidden = record.row.action, record.data["sealed"]
    return fitted_edit(schema, changes, action=action, current=before, hidden=hidden, has_instances=not is_encoded)


def _under_stricter(record: RequestRecord, policy: PolicyNow | None) -> RequestRecord:
    """Return the record under the stricter of its own policy and the one now in force."""
    if policy is None:
        return record
    if policy.denies:
        raise _refusal(record, "the policy forbids the action now")
    level = InterventionLevel(record.data["level"])
    if policy.floor is not None:
        level = level.at_least(InterventionLevel(policy.floor))
    own, now = record.data["groups"], list(policy.groups)
    groups = [group for group in own if group in now] if own and now else own or now
    if own and now and not groups:
        raise _refusal(record, f"the policy requires a member of {' or '.join(now)} now; reject it and ask again")
    asked = record.data["asked_groups"]
    asked = [group for group in asked if group in now] or now if asked and now else asked or now
    quorum = max(record.data["quorum"], policy.quorum)
    return record.revise(level=level.value, groups=groups, asked_groups=asked, quorum=quorum)


def _refusal(record: RequestRecord, reason: str) -> ApprovalError:
    return EditRefused(f"{record.id} cannot be edited like this: {reason}", approval_id=record.id)
