"""Requests: create one, join the open one of a key, or return the one that stands for it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._due import ESCALATE
from grace_kp.approvals._join import MAX_EARLIER, WITHOUT_EFFECT, joined, refused
from grace_kp.approvals._notes import clean_json
from grace_kp.approvals._record import Record, record_of
from grace_kp.approvals._seal import sealed_texts, secret_parameters, unopened, without_texts
from grace_kp.approvals._standing_use import matching, opened_for
from grace_kp.approvals._states import ApprovalState
from grace_kp.approvals._tables import Row, RowQuery
from grace_kp.approvals._votes import voted
from grace_kp.levels import InterventionLevel
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from grace_kp.approvals._new_request import NewRequest
    from grace_kp.approvals._turn import Turn

_S = ApprovalState


def check_new(new: NewRequest, *, is_lasting: bool) -> None:
    """Refuse settings that cannot be used, and secrets in the clear.

    Raises:
        ValueError: with the setting and what is allowed.
    """
    InterventionLevel(new.level)
    for name, seconds in (("deadline", new.deadline_seconds), ("use_within", new.use_within_seconds)):
        if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"{name} must be 0 or more seconds, or None, not {seconds!r}")
    action = new.on_deadline
    if action not in {"cancel", "skip"} and not (action.startswith(ESCALATE) and action.removeprefix(ESCALATE).strip()):
        raise ValueError(f"on_deadline must be cancel, skip or escalate:GROUP, not {action!r:.60}")
    if type(new.quorum) is not int or new.quorum < 1:
        raise ValueError(f"quorum must be a whole number of 1 or more, not {new.quorum!r:.60}")
    if new.identity not in {"authenticated", "stated"}:
        raise ValueError(f"identity must be authenticated or stated, not {new.identity!r:.60}")
    groups: object = new.groups
    if isinstance(groups, str):
        raise ValueError(f"groups must be a list of names, not the text {groups!r:.60}")
    open_names = set(new.key_fields) & set(new.sealed)
    if open_names:
        raise ValueError(f"a key is kept in the clear, and {', '.join(sorted(open_names))} must not be")
    closed = unopened(new.stored)
    missing = sorted(set(new.sealed) - set(closed))
    if missing:
        raise ValueError(f"{', '.join(missing)} is to be kept sealed, and `stored` holds it in the clear")
    if is_lasting:
        shown = {name: value for name, value in new.stored.items() if name not in closed}
        for name in secret_parameters(shown):
            raise ValueError(f"{name} holds a secret, which must not reach the disk in the clear")
        names = {"key": [new.key or ""], "action": [new.action], "domain": [new.domain], "groups": new.groups}
        for name, text in ((name, text) for name, texts in names.items() for text in texts):
            if redact_text(text, identifiers=False) != text:
                raise ValueError(f"{name} holds a secret, which must not reach the disk in the clear")


def digest_of_key(key: str) -> str:
    """Return what requests of a key are found by."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def request(turn: Turn, new: NewRequest) -> Record:
    """Return the record that stands for a call, creating one where there is none.

    Raises:
        KeyReused: the key belongs to a request with other arguments that is open, may have happened, or was done.
    """
    new = replace(new, user=None if new.user is None else redact_text(new.user, identifiers=False))
    key = None if new.key is None else digest_of_key(new.key)
    if key is not None:
        found = joined(turn, key, new) or refused(turn, key, new)
        if found is not None:
            return found
    return _created(turn, new, key)


def _created(turn: Turn, new: NewRequest, key: str | None) -> Record:
    seq, now = turn.next_seq, turn.now
    row = Row(
        id=new.id,
        state=_S.PENDING.value,
        action=new.action,
        domain=new.domain,
        key=key,
        digest=new.digest,
        run_id=new.run_id,
        level=InterventionLevel(new.level).severity,
        deadline=None,
        created=now,
        changed=now,
        revision=1,
    )
    data = {**_fixed(new), **_moving(turn, new), "request": seq, "earlier": _earlier(turn, key)}
    data["attempt"] = _attempt(turn, key)
    contents = {"arguments": dict(new.stored), "schema": dict(new.schema), "key": new.key, **_words(new)}
    actor = Actor.here("gate", channel="gate")
    facts = {"level": new.level, "quorum": new.quorum, "groups": list(new.groups), "run": new.run_id}
    record = turn.write(None, Record(row, data).changed(), "requested", actor=actor, facts=facts, contents=contents)
    return _approved_by_standing(turn, record)


def _words(new: NewRequest) -> dict[str, Any]:
    """What explains the request, without secrets and without what is sealed."""
    words = {
        "reason": new.reason,
        "gaps": list(new.gaps),
        "facts": dict(new.facts),
        "objective": new.objective,
        "run": None if new.run is None else dict(new.run),
        "note": dict(new.note),
    }
    return _cleaned(new, words)


def _cleaned(new: NewRequest, words: dict[str, Any]) -> dict[str, Any]:
    cleaned: dict[str, Any] = without_texts(clean_json(words), sealed_texts(new.encoded, new.sealed))
    return cleaned


def _fixed(new: NewRequest) -> dict[str, Any]:
    """What stays as the program asked it."""
    return {
        "version": new.version,
        "asked_digest": new.digest,
        "asked_groups": list(new.groups),
        **{name: list(getattr(new, name)) for name in ("not_covered", "sealed", "unencoded", "key_fields")},
        **{
            name: getattr(new, name)
            for name in ("user", "deadline_seconds", "on_deadline", "identity", "origin", "waits")
        },
        **_cleaned(new, {name: getattr(new, name) for name in ("score", "breakdown", "penalties", "policy")}),
        "use_within": new.use_within_seconds,
    }


def _moving(turn: Turn, new: NewRequest) -> dict[str, Any]:
    """What later revisions may change."""
    return {
        "level": new.level,
        "groups": list(new.groups),
        "quorum": new.quorum,
        "deadline": None if new.deadline_seconds is None else turn.now + new.deadline_seconds,
        "use_by": None,
        "escalated": False,
        "votes": [],
        "edit": None,
        "edited": None,
        "editor": None,
        "edited_from": None,
        "decision": None,
        "claim": None,
        "token": None,
        "outcome": None,
        "late": None,
        "standing": None,
        "runs": [new.run_id],
        "users": [],
        "received": False,
        "waiter": turn.office.tables.hold() if new.waits == "wait" else None,
    }


def _earlier(turn: Turn, key: str | None) -> list[dict[str, Any]]:
    if key is None:
        return []
    rows = turn.writes.rows(RowQuery(states=WITHOUT_EFFECT, key=key, order="newest", limit=MAX_EARLIER))
    return [_as_earlier(record_of(row)) for row in rows]


def _attempt(turn: Turn, key: str | None) -> dict[str, Any]:
    """Return what, beside key and arguments, tells an attempt from those that the receiving service must take for the same one.

    An execution that was reconciled as not done, or that a restored backup has lost, may have had its effect all the same. A new attempt after
    a failure is another one: a service may answer its key with the same failure for ever.
    """
    failed = 0 if key is None else turn.writes.count(RowQuery(states=(_S.FAILED,), key=key))
    return {"store": turn.office.tables.identity, "failed": failed}


def _as_earlier(record: Record) -> dict[str, Any]:
    ending = record.data["outcome"] or record.data["decision"] or {}
    return {
        "id": record.id,
        "state": record.state.value,
        "at": ending.get("at", record.row.changed),
        "by": ending.get("actor", {}).get("name", ""),
        "seq": ending.get("seq"),
    }


def _approved_by_standing(turn: Turn, record: Record) -> Record:
    standing = matching(turn, record)
    if standing is None or standing.granted_by is None:
        return record
    actor = Actor.from_dict({**standing.granted_by.to_dict(), "channel": "standing"})
    opened_for(turn, standing, record.id)
    after = record.changed(standing=standing.id)
    return voted(turn, record, after, actor, verb="approve", note=standing.note, facts={"standing": standing.id})
