"""The verbs of people: approve, edit, reject, respond, skip, retry, withdraw.

An edit replaces arguments and consents to the result; votes for other arguments no longer count. Only parameters that the digest covers can be
edited, and not those that identify the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import encode, tag_of
from grace_kp.approvals._chain import each_link, entry_of
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
from grace_kp.approvals._record import contents_at, note_at, stored_arguments
from grace_kp.approvals._request import ENTITLING, ApprovalState, person
from grace_kp.approvals._schema import fitted_edit
from grace_kp.approvals._standing import end_covering
from grace_kp.approvals._transaction import (
    add_vote,
    already_decided,
    check_actor,
    check_digest,
    close,
    is_same_person,
    vote_of,
)
from grace_kp.errors import ApprovalError, ChangedSinceShown, EditRefused, brief
from grace_kp.levels import InterventionLevel
from grace_kp.pages import printable

if TYPE_CHECKING:
    from grace_kp.approvals._execution import PolicyNow
    from grace_kp.approvals._record import RequestRecord
    from grace_kp.approvals._request import Actor
    from grace_kp.approvals._transaction import Transaction


_S = ApprovalState
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
    check_actor(actor)
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
    for entry in map(entry_of, each_link(tx.writes, approval=record.id)):
        if entry["kind"] == "viewed" and entry["actor"]["name"] == actor.name and entry["revision"] >= data["edited"]:
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
    check_actor(actor)
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
    closed = close(tx, record, state, "decided", actor=actor, verb=verb, note=note)
    if verb == "reject":
        end_covering(tx, closed, actor)
    return closed


def withdraw(tx: Transaction, approval_id: str, *, actor: Actor, reason: str) -> RequestRecord:
    """Cancel a request, or a decision that is not claimed yet."""
    check_actor(actor)
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
    check_actor(actor)
    note = clean_note(note, approval_id)
    record = tx.read_due(approval_id)
    if _may_repeat_edit(tx, record, actor, digest):
        with suppress(EditRefused):
            if _apply(tx, record, changes, is_encoded)[3] == record.row.digest:
                return record
    if record.state is not ApprovalState.PENDING:
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
    return record.data["decision"] is None or record.data["decision"]["state"] == ApprovalState.EDITED.value


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
