"""The audit trail: entries that each hold the hash of the one before it and salted commitments instead of contents; their export; and retention.

An entry is canonical JSON (RFC 8785) with these fields:

    v           1
    seq         its number: 1 for the first, then without gaps
    prev        hash of the entry before it; empty for the first
    at          seconds since the epoch
    kind        what happened, see `KINDS`
    approval    id of the approval; null if the entry concerns another object, such as a standing approval
    revision    revision of the approval after what happened; null without one
    actor       who did it, see `Actor.to_dict`; null without an actor
    facts       data that is never deleted: states, digests, levels, counts. For an approval they include `state`, `digest`, and `row`,
                a hash of the row that was written with the entry
    commitment  SHA-256 of salt and contents; null without contents

The hash of an entry is the SHA-256 of these bytes, in hexadecimal digits. Contents (arguments, notes, reasons, results, the trace of the run)
are JSON. They and a salt of 16 random bytes are stored beside the entry, so that both can be deleted and the chain still verifies. Without the salt,
contents cannot be found by trying likely ones.

Retention deletes contents and salts of approvals that have ended, and an entry records the deletion. Entries stay, with the names of actors and facts.

docs/how-to/approvals.md has a program that checks an export without this library.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._request import FOLLOWING, ApprovalState
from grace_kp.approvals._tables import Link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grace_kp.approvals._request import Actor
    from grace_kp.approvals._tables import Reads, Row, Tables, Writes


KINDS = frozenset(
    {
        "requested",
        "joined",
        "viewed",
        "voted",
        "edited",
        "decided",
        "escalated",
        "expired",
        "withdrawn",
        "claimed",
        "released",
        "settled",
        "late_report",
        "reconciled",
        "standing_granted",
        "standing_used",
        "standing_ended",
        "restored",
        "forgotten",
        "account_changed",
        "refused",
    }
)
SALT_BYTES = 16
PAGE_BYTES = 1 << 22


def append(
    writes: Writes,
    kind: str,
    *,
    at: float,
    approval: str | None = None,
    revision: int | None = None,
    actor: Actor | None = None,
    facts: Mapping[str, object] | None = None,
    contents: Mapping[str, object] | None = None,
) -> Link:
    """Append an entry inside of a transaction, and return it. Put the row first: the entry records its state, digest and hash."""
    seq, previous = writes.head()
    stated = dict(facts or {})
    if approval is not None:
        row = writes.row(approval)
        if row is None or row.revision != revision:
            found = "is not there" if row is None else f"has revision {row.revision}"
            raise ValueError(f"put the row of {approval} with revision {revision} before its entry: it {found}")
        stated |= row_facts(row)
    text = None if contents is None else json.dumps(contents, allow_nan=False, separators=(",", ":")).encode()
    salt = None if text is None else secrets.token_bytes(SALT_BYTES)
    entry = {
        "v": 1,
        "seq": seq + 1,
        "prev": previous,
        "at": at,
        "kind": kind,
        "approval": approval,
        "revision": revision,
        "actor": None if actor is None else actor.to_dict(),
        "facts": stated,
        "commitment": None if text is None or salt is None else commitment(salt, text),
    }
    data = entry_bytes(entry)
    link = Link(seq=seq + 1, hash=entry_hash(data), approval=approval, data=data, salt=salt, contents=text)
    writes.append(link)
    return link


def was_viewed(reads: Reads, approval: str, revision: int, actor: Actor) -> bool:
    """Return whether the chain records that this person has seen this revision or a later one."""
    return any(
        entry["kind"] == "viewed" and entry["revision"] >= revision and entry["actor"]["name"] == actor.name
        for entry in map(entry_of, each_link(reads, approval=approval))
    )


def entry_of(link: Link) -> dict[str, Any]:
    """Return the entry of a link as JSON."""
    entry = json.loads(link.data)
    if not isinstance(entry, dict):
        raise ValueError(f"entry {link.seq} of the chain is not a JSON object")
    return entry


def contents_of(link: Link) -> Any:
    """Return the contents of a link as JSON; None without contents, or after retention has deleted them."""
    return None if link.contents is None else json.loads(link.contents)


def each_link(reads: Reads, *, after: int = 0, approval: str | None = None, kept: bool = False) -> Iterator[Link]:
    """Yield the entries after `after` by number, in pages that hold about `PAGE_BYTES`; see `Reads.links`."""
    limit = 100
    while links := reads.links(after=after, limit=limit, approval=approval, kept=kept):
        yield from links
        after = links[-1].seq
        size = sum(len(link.data) + len(link.contents or b"") for link in links) / len(links)
        limit = max(1, min(1_000, int(PAGE_BYTES / max(size, 1))))


def entry_bytes(entry: Mapping[str, object]) -> bytes:
    """Return the canonical JSON of an entry, which its hash covers."""
    import rfc8785

    canonical: bytes = rfc8785.dumps(_plain(entry))
    return canonical


def entry_hash(data: bytes) -> str:
    """Return the hash of an entry from its canonical JSON."""
    return hashlib.sha256(data).hexdigest()


def commitment(salt: bytes, text: bytes) -> str:
    return hashlib.sha256(salt + text).hexdigest()


def row_facts(row: Row) -> dict[str, Any]:
    """Return what an entry states about the row that is written with it."""
    # The hash depends on the order of the columns, which therefore never changes.
    *columns, data = (getattr(row, field.name) for field in fields(row))
    columns.append(hashlib.sha256(data).hexdigest())
    return {"state": row.state, "digest": row.digest, "row": entry_hash(entry_bytes({"row": columns}))}


def _plain(value: object) -> Any:
    # Names of people and machines may hold bytes that cannot be decoded.
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_plain(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def export(
    reads: Reads, *, after: int = 0, approval: str | None = None, with_contents: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the entries of the chain as JSON objects, one per line of an export."""
    for link in each_link(reads, after=after, approval=approval):
        try:
            entry: object = entry_of(link)
        except (ValueError, RecursionError):  # damaged; as a string it does not verify
            entry = link.data.decode("utf-8", "backslashreplace")
        salt = contents = None
        if with_contents and link.salt is not None and link.contents is not None:
            salt, contents = link.salt.hex(), link.contents.decode("utf-8", "backslashreplace")
        yield {"entry": entry, "hash": link.hash, "salt": salt, "contents": contents}


AT_MOST = 100_000
"""Entries per transaction. Other writers wait for each, and each overwrites the deleted bytes in the file."""


def forget(tables: Tables, *, before: float, at: float, actor: Actor | None = None) -> int:
    """Delete contents and salts of approvals that ended before `before`, in seconds since the epoch; return the number of entries.

    An approval has ended when its state is final, so that an unknown outcome keeps its contents until it is reconciled. For entries without an
    approval, the time of the entry counts.
    """
    spans, count = _spans(tables, before), 0
    while batch := list(islice(spans, AT_MOST)):
        with tables.transaction() as writes:
            count += _forget(writes, batch, at=at, actor=actor, facts={"before": before})
    return count


def forget_approvals(writes: Writes, approvals: Iterable[str], *, at: float) -> int:
    """Delete contents and salts of these approvals in a transaction, because their runs are deleted; return the number of approvals."""
    seqs: list[int] = []
    count = 0
    for approval in approvals:
        of_this = [link.seq for link in each_link(writes, approval=approval, kept=True)]
        seqs.extend(of_this)
        count += bool(of_this)
    seqs.sort()
    if seqs:
        adjoining = [(seq, seq - 1 == before) for before, seq in zip([0, *seqs], seqs, strict=False)]
        _forget(writes, adjoining, at=at, actor=None, facts={})
    return count


def _forget(
    writes: Writes, batch: list[tuple[int, bool]], *, at: float, actor: Actor | None, facts: dict[str, object]
) -> int:
    deleted = writes.forget([seq for seq, _ in batch])
    ranges: list[list[int]] = []  # they also span entries that never had contents
    for seq, adjoins in batch:
        if adjoins and ranges:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    if deleted:
        append(writes, "forgotten", at=at, actor=actor, facts={**facts, "count": deleted, "ranges": ranges})
    return deleted


def _spans(tables: Tables, before: float) -> Iterator[tuple[int, bool]]:
    """Yield the numbers of entries to forget, each with whether the entry with contents before it is forgotten, too."""
    ended: dict[str, bool] = {}
    adjoins = False
    for link in each_link(tables, kept=True):
        if link.approval is None:
            is_due = entry_of(link)["at"] < before
        else:
            if link.approval not in ended:
                if len(ended) >= AT_MOST:
                    ended.clear()
                row = tables.row(link.approval)
                ended[link.approval] = row is None or (not FOLLOWING[ApprovalState(row.state)] and row.changed < before)
            is_due = ended[link.approval]
        if is_due:
            yield link.seq, adjoins
        adjoins = is_due
