"""Entries of the audit trail: each holds the hash of the one before it, and salted commitments instead of contents.

An entry is canonical JSON (RFC 8785) with these fields:

    v           1
    seq         its number: 1 for the first, then without gaps
    prev        hash of the entry before it; empty for the first
    at          seconds since the epoch
    kind        what happened, see `KINDS`
    approval    id of the approval; null for what concerns none, such as a standing approval
    revision    revision of the approval after what happened; null without one
    actor       who did it, see `Actor.to_dict`; null if nobody did
    facts       what can stay for ever: states, digests, levels, counts. Those of an approval include `state`, `digest`, and `row`,
                a hash of the row that was written with the entry
    commitment  SHA-256 of salt and contents; null without contents

The hash of an entry is the SHA-256 of these bytes, in hexadecimal digits. Contents (arguments, notes, reasons, results, the trace of the run)
are JSON text. They and their salt of 16 random bytes are kept beside the entry, so that both can be deleted and the chain still holds. Without
the salt, nobody can find out contents by trying likely ones.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._tables import Link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.approvals._actor import Actor
    from grace_kp.approvals._tables import Reads, Row, Writes

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
"""What an entry can record."""
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
    """Append an entry inside of a transaction, and return it.

    Put the row of the approval first: the entry records its state, digest and hash.

    Args:
        writes: the transaction.
        kind: what happened, one of `KINDS`.
        at: when, in seconds since the epoch.
        approval: the id of the approval.
        revision: its revision after what happened.
        actor: who did it.
        facts: JSON that may be kept for ever. It must hold no contents.
        contents: JSON that retention may delete. It is kept as it is, with its order and its kinds of numbers.

    Raises:
        ValueError: the kind is unknown, the row is not there or has another revision, or facts or contents are no JSON.
        StoreError: the tables cannot be written.
    """
    if kind not in KINDS:
        raise ValueError(f"the kind of an entry must be one of {', '.join(sorted(KINDS))}, not {kind!r:.60}")
    seq, previous = writes.head()
    text = None if contents is None else contents_text(contents)
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
        "facts": {**(facts or {}), **_row_of(writes, approval, revision)},
        "commitment": None if text is None or salt is None else commitment(salt, text),
    }
    data = entry_bytes(entry)
    link = Link(seq=seq + 1, hash=entry_hash(data), approval=approval, data=data, salt=salt, contents=text)
    writes.append(link)
    return link


def append_view(writes: Writes, row: Row, *, at: float, actor: Actor) -> Link | None:
    """Append that a person has seen this revision of a request; None if the chain records it already."""
    if was_viewed(writes, row.id, row.revision, actor):
        return None
    return append(writes, "viewed", at=at, approval=row.id, revision=row.revision, actor=actor)


def was_viewed(reads: Reads, approval: str, revision: int, actor: Actor) -> bool:
    """Return whether the chain records that this person has seen this revision, so that a reader need not write."""
    return any(
        entry["kind"] == "viewed" and entry["revision"] == revision and entry["actor"]["name"] == actor.name
        for entry in map(entry_of, each_link(reads, approval=approval))
    )


def entry_of(link: Link) -> dict[str, Any]:
    """Return the entry of a link as JSON.

    Raises:
        ValueError: it is no JSON object.
    """
    entry = json.loads(link.data)
    if not isinstance(entry, dict):
        raise ValueError(f"entry {link.seq} of the chain is no JSON object")
    return entry


def contents_of(link: Link) -> Any:
    """Return the contents of a link as JSON; None where it has none, or where retention has deleted them.

    Raises:
        ValueError: they are no JSON.
    """
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
    """Return the canonical JSON of an entry, which its hash covers.

    Raises:
        ValueError: it holds what canonical JSON cannot, such as NaN or an integer beyond 2^53.
    """
    import rfc8785

    canonical: bytes = rfc8785.dumps(_plain(entry))
    return canonical


def entry_hash(data: bytes) -> str:
    """Return the hash of an entry from its canonical JSON."""
    return hashlib.sha256(data).hexdigest()


def contents_text(contents: Mapping[str, object]) -> bytes:
    """Return contents as they are kept: JSON in ASCII.

    Raises:
        ValueError: they are no JSON.
    """
    try:
        return json.dumps(contents, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    except TypeError as error:
        raise ValueError(f"the contents of an entry must be JSON: {error}") from None


def commitment(salt: bytes, text: bytes) -> str:
    """Return the commitment to contents."""
    return hashlib.sha256(salt + text).hexdigest()


def row_facts(row: Row) -> dict[str, Any]:
    """Return what an entry states about the row that is written with it."""
    columns = [
        row.id,
        row.state,
        row.action,
        row.domain,
        row.key,
        row.digest,
        row.run_id,
        row.level,
        row.deadline,
        row.created,
        row.changed,
        row.revision,
        row.waiter,
        hashlib.sha256(row.data).hexdigest(),
    ]
    return {"state": row.state, "digest": row.digest, "row": entry_hash(entry_bytes({"row": columns}))}


def _row_of(reads: Reads, approval: str | None, revision: int | None) -> dict[str, Any]:
    if approval is None:
        return {}
    row = reads.row(approval)
    if row is None or row.revision != revision:
        found = "is not there" if row is None else f"has revision {row.revision}"
        raise ValueError(f"put the row of {approval} with revision {revision} before its entry: it {found}")
    return row_facts(row)


def _plain(value: object) -> Any:
    """Return JSON whose texts UTF-8 can hold: names of people and machines may carry undecodable bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_plain(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
