"""What a verification checks, entry by entry: the chain, the contents beside it, and the rows that it accounts for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.approvals._chain import SALT_BYTES, commitment, entry_bytes, entry_hash, row_facts
from grace_kp.approvals._tables import RowQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals._checkpoint import Checkpoint
    from grace_kp.approvals._tables import Link, Reads, Row

T = TypeVar("T")
AT_MOST_PROBLEMS = 1_000
"""Further problems are only counted."""
AT_MOST_MISSING = 1 << 20
"""Missing entries in a row after which contents are no longer compared with what retention deleted."""
ATTEMPTS = 20
"""How often something is read before the store counts as too busy for it."""
_NONE, _KEPT, _DELETED = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and where."""

    seq: int
    """Number of the entry; 0 where it concerns none."""
    kind: str
    """`changed`, `contents`, `missing`, `order`, `row`, `standing`, `account`, `checkpoint`."""
    message: str


@dataclass(slots=True)
class Problems:
    """The problems found so far."""

    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, seq: int, kind: str, message: str) -> None:
        self.count += 1
        if len(self.kept) < AT_MOST_PROBLEMS:
            self.kept.append(Problem(seq=seq, kind=kind, message=message))


class ChainCheck:
    """The order of the entries, their bytes, and what checkpoints say of them."""

    def __init__(self, found: Problems, store: str, points: Sequence[Checkpoint]) -> None:
        self._found, self._store = found, store
        self._points: dict[int, list[Checkpoint]] = {}
        for point in points:
            self._points.setdefault(point.seq, []).append(point)
            if point.store != store:
                found.add(
                    0,
                    "checkpoint",
                    f"the checkpoint of entry {point.seq} is of store {point.store}, and this is {store}",
                )
        self._agreed = 0
        self.seq, self.hash, self.entries = 0, "", 0
        self._previous = {""}

    def add(self, link: Link) -> dict[str, Any] | None:
        """Check an entry against the one before; return it, or None if it cannot be relied on."""
        self.entries += 1
        computed = entry_hash(link.data)
        entry = self._read(link, computed)
        if link.seq > self.seq + 1:
            self._missing(self.seq + 1, link.seq - 1)
        elif entry is not None and entry["prev"] not in self._previous:
            self._found.add(
                link.seq,
                "order",
                f"entry {link.seq} does not follow the entry {link.seq - 1} that is there: one of the two was replaced",
            )
        for point in self._points.pop(link.seq, ()):
            self._compare(point, computed)
        # Where its bytes were changed, which is reported, the next one follows what was there.
        self.seq, self.hash, self._previous = link.seq, computed, {computed, link.hash}
        return entry

    def _read(self, link: Link, computed: str) -> dict[str, Any] | None:
        entry = _entry(link)
        if entry is None:
            wrong = "it cannot be read"
        elif computed != link.hash:
            wrong = "its hash is not that of its bytes"
        elif entry["approval"] != link.approval:
            wrong = f"it stands under approval {link.approval} and is of {entry['approval']}"
        else:
            if entry["seq"] != link.seq:
                self._found.add(link.seq, "order", f"entry {link.seq} is not in its place: it is entry {entry['seq']}")
            return entry
        self._found.add(link.seq, "changed", f"entry {link.seq} was changed: {wrong}")
        return None

    def _missing(self, first: int, last: int) -> None:
        text = f"entry {first} is" if first == last else f"entries {first} to {last} are"
        self._found.add(first, "missing", f"{text} missing")

    def _compare(self, point: Checkpoint, computed: str) -> None:
        if point.hash == computed:
            self._agreed = max(self._agreed, point.seq)
            return
        between = f"between {self._agreed + 1} and {point.seq}" if point.seq > self._agreed + 1 else f"at {point.seq}"
        self._found.add(
            point.seq,
            "checkpoint",
            f"entry {point.seq} is not the one of the checkpoint: the chain was changed {between}, or is another store's",
        )

    def end(self) -> None:
        """Report the checkpoints that the chain does not reach."""
        for seq, points in sorted(self._points.items()):
            for point in points:
                if seq <= self.seq and (seq or not point.hash):
                    continue  # reported as missing, or taken before the first entry
                self._found.add(
                    self.seq + 1,
                    "missing",
                    f"the chain ends at entry {self.seq}, and the checkpoint is of entry {seq}: entries were removed from its end",
                )


class ContentsCheck:
    """Whether contents are those that entries commit to, and whether deleted ones were deleted by retention."""

    def __init__(self, found: Problems, head: int) -> None:
        self._found, self._head = found, head
        self._states = bytearray(1)
        self.deleted = 0

    def add(self, link: Link, entry: Mapping[str, Any]) -> None:
        """Check the contents of an entry, and what it says of deleted ones."""
        state = self._state(link, entry["commitment"])
        if link.seq > len(self._states) + AT_MOST_MISSING:
            return  # its number is nonsense, which the order of the entries shows
        self._states.extend(bytes(max(0, link.seq + 1 - len(self._states))))
        self._states[link.seq] = state
        if entry["kind"] == "forgotten":
            self._forget(link.seq, entry["facts"])

    def _state(self, link: Link, committed: str | None) -> int:
        if committed is None:
            if link.contents is not None or link.salt is not None:
                self._found.add(link.seq, "contents", f"entry {link.seq} has contents, and it was written without")
            return _NONE
        if link.contents is None and link.salt is None:
            return _DELETED
        matches = (
            link.salt is not None
            and link.contents is not None
            and len(link.salt) == SALT_BYTES
            and commitment(link.salt, link.contents) == committed
        )
        if not matches:
            self._found.add(link.seq, "contents", f"the contents of entry {link.seq}, or their salt, were changed")
        return _KEPT

    def _forget(self, seq: int, facts: Mapping[str, Any]) -> None:
        missing = 0
        for first, last in _ranges(facts, seq):
            states = self._states[first : last + 1]
            self._states[first : last + 1] = bytes(len(states))
            missing += states.count(_DELETED)
            if seq <= self._head:  # contents that are being deleted now may have been read before
                self._report_kept(seq, first, states)
        self.deleted += missing
        if seq <= self._head and missing != facts.get("count"):
            text = f"entry {seq} says that the contents of {facts.get('count')} entries were deleted, and those of {missing} are missing"
            self._found.add(seq, "contents", text)

    def _report_kept(self, seq: int, first: int, states: bytearray) -> None:
        kept = states.find(_KEPT)
        while kept >= 0:
            text = f"entry {seq} says that the contents of entry {first + kept} were deleted, and they are there"
            self._found.add(first + kept, "contents", text)
            kept = states.find(_KEPT, kept + 1)

    def end(self) -> None:
        """Report contents that are gone without an entry."""
        seq = self._states.find(_DELETED)
        while seq >= 0:
            self._found.add(
                seq, "contents", f"the contents of entry {seq} are missing, and no entry says that they were deleted"
            )
            seq = self._states.find(_DELETED, seq + 1)

    def unchecked(self) -> list[str]:
        """Return what deleted contents keep from being checked."""
        if not self.deleted:
            return []
        return [
            f"Contents deleted: those of {self.deleted:,} entries, by retention. What they were cannot be checked any more."
        ]


class RowsCheck:
    """Whether the row of each approval is the one that its last entry was written with."""

    def __init__(self, found: Problems, reads: Reads) -> None:
        self._found, self._reads = found, reads
        self._ahead: dict[str, tuple[int, int]] = {}
        """Revision of the row and number of the last entry read, for approvals with a row that later entries must account for."""
        self._reported: set[str] = set()
        self._requested = 0
        self._counted = at_one_head(reads, lambda: reads.count(RowQuery(limit=None)))
        self.unchecked: list[str] = []

    def add(self, seq: int, entry: Mapping[str, Any]) -> None:
        """Compare the row of an approval with its entry if no later entry is to be expected."""
        if self._counted is not None and seq <= self._counted[0]:
            self._requested += entry["kind"] == "requested"
        approval, revision = entry["approval"], entry["revision"]
        if approval is None or approval in self._reported:
            return
        known = self._ahead.get(approval)
        if known is not None and revision < known[0]:
            self._ahead[approval] = known[0], seq
            return
        self._ahead.pop(approval, None)
        row = self._reads.row(approval)
        if row is None:
            self._report(seq, approval, "is missing")
        elif type(row.revision) is int and row.revision > revision:
            self._ahead[approval] = row.revision, seq
        else:
            self._compare(seq, approval, row, entry)

    def _compare(self, seq: int, approval: str, row: Row, entry: Mapping[str, Any]) -> None:
        revision, stated = entry["revision"], entry["facts"]
        try:
            facts = row_facts(row)
        except (ValueError, TypeError) as error:  # values that no row is written with
            self._report(seq, approval, f"was changed after entry {seq} and cannot be read: {error}")
            return
        if type(row.revision) is int and row.revision < revision:
            wrong = f"is older than entry {seq}: it has revision {row.revision}, and the entry {revision}"
        elif facts != {name: stated.get(name) for name in facts}:
            wrong = f"was changed after entry {seq}: it is {row.state}, and the entry says {stated.get('state')}"
        else:
            return
        self._report(seq, approval, wrong)

    def skip(self, approval: str | None) -> None:
        """Leave out the row of an approval with an entry that cannot be relied on."""
        if approval is not None and len(self._reported) < AT_MOST_PROBLEMS:
            self._reported.add(approval)
            self._ahead.pop(approval, None)

    def _report(self, seq: int, approval: str, wrong: str) -> None:
        if len(self._reported) < AT_MOST_PROBLEMS:
            self._reported.add(approval)
        self._found.add(seq, "row", f"the row of approval {approval} {wrong}")

    def end(self) -> None:
        """Report rows that entries do not account for."""
        for approval, (revision, seq) in self._ahead.items():
            self._report(
                seq,
                approval,
                f"has revision {revision}, and entry {seq} is its last: it was changed without an entry, or entries are missing",
            )
        if self._counted is None:
            self.unchecked.append(
                "Rows without any entry were not looked for, because the store was written all the time."
            )
        elif self._counted[1] > self._requested:
            self._find_strangers()

    def _find_strangers(self) -> None:
        query = RowQuery(order="newest", limit=500)
        while rows := self._reads.rows(query):
            for row in rows:
                if not self._reads.links(approval=row.id, limit=1):
                    self._report(0, row.id, "has no entry at all")
            query = RowQuery(order="newest", limit=500, offset=query.offset + len(rows))


def at_one_head(reads: Reads, read: Callable[[], T]) -> tuple[int, T] | None:
    """Return the number of the newest entry, and what was read at that moment; None if the store is too busy."""
    for _ in range(ATTEMPTS):
        head = reads.head()
        found = read()
        if head == reads.head():
            return head[0], found
    return None


def _entry(link: Link) -> dict[str, Any] | None:
    """Return the entry of a link; None unless it is a canonical object with the fields of an entry."""
    try:
        entry = json.loads(link.data)
        if not isinstance(entry, dict) or entry.keys() != _FIELDS or not _is_canonical(entry, link.data):
            return None
    except (ValueError, RecursionError):
        return None
    kinds = (isinstance(entry[name], kind) for name, kind in _KINDS.items())
    return (
        entry if entry["v"] == 1 and all(kinds) and (entry["approval"] is None) == (entry["revision"] is None) else None
    )


def _is_canonical(entry: dict[str, Any], data: bytes) -> bool:
    # Most are what the fast encoder writes, too.
    fast = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")
    return fast == data or entry_bytes(entry) == data


_KINDS: dict[str, Any] = {
    "v": int,
    "seq": int,
    "prev": str,
    "at": int | float,
    "kind": str,
    "approval": str | None,
    "revision": int | None,
    "actor": dict | None,
    "facts": dict,
    "commitment": str | None,
}
_FIELDS = _KINDS.keys()


def _ranges(facts: Mapping[str, Any], seq: int) -> list[tuple[int, int]]:
    """Return the first and last numbers of entries whose contents were deleted, as far as they can be right."""
    found = []
    for pair in facts.get("ranges") or ():
        if isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair):
            first, last = pair
            if 0 < first <= last < seq:
                found.append((first, last))
    return found
