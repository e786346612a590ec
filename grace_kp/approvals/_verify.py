"""Verification of the chain, in one pass, and the checkpoints that it is compared with.

It locates entries and contents that were changed, removed, inserted or reordered, and rows, standing approvals and accounts that were changed
without an entry. The chain alone proves nothing against a writer of the store, who can recompute all hashes. A checkpoint that is kept elsewhere
proves the entries up to its number. A notification holds a number and a hash, and serves as a checkpoint.

A file of checkpoints holds one JSON object per line, with the fields of `Checkpoint` and optionally `mac`, a code of a secret over the other fields.
New checkpoints are appended, because a series of them locates a change more closely.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.approvals._chain import SALT_BYTES, commitment, contents_of, each_link, entry_bytes, entry_hash, row_facts
from grace_kp.approvals._record import STANDING
from grace_kp.approvals._request import ACCOUNT
from grace_kp.approvals._tables import RowQuery
from grace_kp.errors import ApprovalError, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals._digest import Secret
    from grace_kp.approvals._tables import Link, Reads, Tables

T = TypeVar("T")
AT_MOST_PROBLEMS = 1_000
"""Further problems are only counted."""
AT_MOST_MISSING = 1 << 20
"""Maximum gap in entry numbers; contents after a larger one are not compared with deletions."""
ATTEMPTS = 20
"""Number of reads after which the store counts as too busy."""
NO_CHECKPOINT = (
    "No checkpoint was compared, so only accidents are found: anyone who can write to the store can rewrite the whole chain. "
    "Keep checkpoints where they cannot be written from here."
)


# Checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state of a chain at one time."""

    store: str
    """Id of the store."""
    seq: int
    """Number of the newest entry; 0 before the first."""
    hash: str
    """Hash of that entry; empty before the first."""
    at: float
    """When the checkpoint was taken, in seconds since the epoch."""

    def to_dict(self, secret: Secret | None = None) -> dict[str, Any]:
        """Return the checkpoint as JSON, with a secret also its code."""
        fields = asdict(self)
        return fields if secret is None else {**fields, "mac": secret.mac(entry_bytes(fields))}

    @classmethod
    def from_dict(cls, data: object, secret: Secret | None = None) -> Checkpoint:
        """Return a checkpoint from its JSON."""
        fields = dict(data) if isinstance(data, dict) else {}
        code = fields.pop("mac", None)
        kinds = {name: type(value) for name, value in fields.items()}
        if kinds not in ({**_CHECKPOINT_FIELDS, "at": int}, _CHECKPOINT_FIELDS) or fields["seq"] < 0:
            raise ApprovalError(
                f"a checkpoint must be a JSON object with {', '.join(_CHECKPOINT_FIELDS)}, not {brief(data)}"
            )
        found = cls(**fields)
        if secret is not None and not hmac.compare_digest(str(code).encode(), found.to_dict(secret)["mac"].encode()):
            problem = "has no code of a secret" if code is None else "was changed, or has the code of another secret"
            raise ApprovalError(
                f"the checkpoint of entry {found.seq} {problem}: use the file and the secret that it was written with"
            )
        return found


_CHECKPOINT_FIELDS = {"store": str, "seq": int, "hash": str, "at": float}


def checkpoint(tables: Tables, *, at: float) -> Checkpoint:
    """Return a checkpoint of the newest entry, unverified; `Verification.checkpoint` is one of the newest that was verified."""
    seq, digest = tables.head()
    return Checkpoint(store=tables.identity, seq=seq, hash=digest, at=at)


def write_checkpoint(path: str | Path, point: Checkpoint, *, secret: Secret | None = None) -> None:
    """Append a checkpoint to a file, which is created if necessary."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(point.to_dict(secret)) + "\n")


def read_checkpoints(path: str | Path, *, secret: Secret | None = None) -> list[Checkpoint]:
    """Return the checkpoints of a file."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    found = parse_checkpoints(text, secret=secret, place=str(path))
    if not found:
        raise ApprovalError(
            f"{path}: it holds no checkpoint; `grace-kp approvals verify --write-checkpoint` writes one"
        )
    return found


def parse_checkpoints(text: str, *, secret: Secret | None = None, place: str) -> list[Checkpoint]:
    """Return the checkpoints in a string, one per line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found.append(Checkpoint.from_dict(json.loads(line), secret))
        except (ValueError, RecursionError):
            raise ApprovalError(f"{place}, line {number}: it is not JSON: {brief(line)}") from None
        except ApprovalError as error:
            raise ApprovalError(f"{place}, line {number}: {error}") from None
    return found


# Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProblem:
    """A problem and its place."""

    seq: int
    """Number of the entry; 0 without one."""
    kind: str
    """`changed`, `contents`, `missing`, `order`, `row`, `standing`, `account`, `checkpoint`."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a verification."""

    ok: bool
    """Whether no problem was found. Without a checkpoint (`against` is `nothing`), this only excludes accidents; see `unchecked`."""
    entries: int
    """Number of entries that were read."""
    problems: Sequence[ChainProblem]
    """The first 1,000 problems by number of the entry; problems of the whole chain are last."""
    problem_count: int
    against: str
    """`checkpoint` or `nothing`."""
    deleted: int
    """Number of entries whose contents retention has deleted."""
    checkpoint: Checkpoint
    """Checkpoint of the newest entry that was read, for the next verification."""
    unchecked: Sequence[str]
    """Sentences about what could not be checked."""

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return asdict(self)


def verify(tables: Tables, *, at: float, checkpoint: Checkpoint | Sequence[Checkpoint] | None = None) -> Verification:
    """Verify the chain and the rows of a store, which may be written meanwhile.

    Memory: one byte per entry, one page of entries, and a record for each approval that is open at that place of the chain.
    """
    points = [checkpoint] if isinstance(checkpoint, Checkpoint) else list(checkpoint or ())
    found = _Pass(tables, points)
    for link in each_link(tables):
        found.add(link)
    found.end()
    last = max((point.seq for point in points), default=0)
    beyond = [] if points else [NO_CHECKPOINT]
    if points and found.seq > last:
        later = f"Entries {last + 1:,} to {found.seq:,} came after the newest checkpoint"
        beyond = [f"{later}: of them, and of the approvals whose last entry is among them, only accidents are found."]
    return Verification(
        ok=not found.count,
        entries=found.entries,
        problems=tuple(found.problems),
        problem_count=found.count,
        against="checkpoint" if points else "nothing",
        deleted=found.deleted,
        checkpoint=Checkpoint(store=tables.identity, seq=found.seq, hash=found.hash, at=at),
        unchecked=(*beyond, *found.unchecked),
    )


def verdict_text(found: Verification) -> str:
    """Return the result of a verification as a sentence."""
    has_checkpoint = found.against == "checkpoint"
    if not found.ok:
        result = f"{found.problem_count:,} problem{'' if found.problem_count == 1 else 's'}"
    else:  # without a checkpoint, a rewritten chain looks correct
        result = "no problem found" if has_checkpoint else "no accident found; a deliberate change would not show"
    return f"{found.entries:,} entries verified {'against the' if has_checkpoint else 'without a'} checkpoint: {result}"


class _Pass:
    """One pass over the chain, and then over rows, standing approvals and accounts."""

    def __init__(self, tables: Tables, points: Sequence[Checkpoint]) -> None:
        self.problems: list[ChainProblem] = []
        self.count = self.seq = self.entries = self.deleted = 0
        self.hash = ""
        self.unchecked: list[str] = []
        self._tables, self._head = tables, tables.head()[0]
        self._previous = {""}
        self._points: dict[int, list[Checkpoint]] = {}
        self._agreed = 0
        """Number of the last entry that a checkpoint agrees with."""
        self._contents = bytearray(1)
        """State of the contents by number of the entry."""
        self._ahead: dict[str, tuple[int, int]] = {}
        """Revision of the row and number of the last entry read, for approvals whose row is newer than that entry."""
        self._reported: set[str] = set()
        self._requested = 0
        self._granted: dict[str, tuple[int, Mapping[str, Any], Any]] = {}
        self._used: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._last_of_account: dict[str, tuple[int, Mapping[str, Any]]] = {}
        # Each is compared with entries up to the number of the newest one at the time of the read.
        self._rows = _read_at_head(tables, lambda: tables.count(RowQuery(limit=None)))
        self._standing = _read_at_head(tables, lambda: tables.documents(STANDING))
        self._accounts = _read_at_head(tables, lambda: tables.documents(ACCOUNT))
        for point in points:
            self._points.setdefault(point.seq, []).append(point)
            if point.store != tables.identity:
                wrong = f"the checkpoint of entry {point.seq} is of store {point.store}, and this is {tables.identity}"
                self._report(0, "checkpoint", wrong)

    def add(self, link: Link) -> None:
        """Check the next entry."""
        self.entries += 1
        computed = entry_hash(link.data)
        entry = self._read(link, computed)
        if link.seq > self.seq + 1:
            first, last = self.seq + 1, link.seq - 1
            missing = f"entry {first} is" if first == last else f"entries {first} to {last} are"
            self._report(first, "missing", f"{missing} missing")
        elif entry is not None and entry["prev"] not in self._previous:
            wrong = f"does not follow the present entry {link.seq - 1}: one of them was replaced"
            self._report(link.seq, "order", f"entry {link.seq} {wrong}")
        for point in self._points.pop(link.seq, ()):
            if point.hash == computed:
                self._agreed = max(self._agreed, point.seq)
                continue
            first = self._agreed + 1
            where = f"between {first} and {point.seq}" if point.seq > first else f"at {point.seq}"
            wrong = f"is not the one of the checkpoint: the chain was changed {where}, or is another store's"
            self._report(point.seq, "checkpoint", f"entry {point.seq} {wrong}")
        # If its bytes were changed, the next entry follows the original: report only one of the two.
        self.seq, self.hash, self._previous = link.seq, computed, {computed, link.hash}
        if entry is None:
            if link.approval is not None and len(self._reported) < AT_MOST_PROBLEMS:
                self._reported.add(link.approval)
                self._ahead.pop(link.approval, None)
            return
        self._add_contents(link, entry)
        self._requested += entry["kind"] == "requested" and _is_before(link.seq, self._rows)
        if entry["approval"] is not None and entry["approval"] not in self._reported:
            self._add_row(link.seq, entry["approval"], entry)
        self._add_standing(link, entry)
        account = entry["facts"].get("account")
        if entry["kind"] == "account_changed" and isinstance(account, str) and _is_before(link.seq, self._accounts):
            self._last_of_account[account] = link.seq, entry["facts"]

    def end(self) -> None:
        """Report missing entries and contents, and objects that differ from their entries."""
        for seq, points in sorted(self._points.items()):
            for point in points:
                if seq <= self.seq and (seq or not point.hash):
                    continue  # reported as missing, or taken before the first entry
                wrong = f"and the checkpoint is of entry {seq}: entries were removed from its end"
                self._report(self.seq + 1, "missing", f"the chain ends at entry {self.seq}, {wrong}")
        seq = self._contents.find(_DELETED)
        while seq >= 0:
            wrong = f"the contents of entry {seq} are missing, and no entry says that they were deleted"
            self._report(seq, "contents", wrong)
            seq = self._contents.find(_DELETED, seq + 1)
        if self.deleted:
            self.unchecked.append(
                f"Retention has deleted the contents of {self.deleted:,} entries, which cannot be checked any more."
            )
        for approval, (revision, seq) in self._ahead.items():
            wrong = f"has revision {revision}, and entry {seq} is its last: it was changed without an entry, or entries are missing"
            self._report_row(seq, approval, wrong)
        checks: tuple[tuple[str, tuple[int, Any] | None, Callable[[Any], None]], ...] = (
            ("Rows without any entry were not looked for", self._rows, self._find_rows_without_entry),
            ("Standing approvals were not compared", self._standing, self._compare_standing),
            ("Accounts were not compared", self._accounts, self._compare_accounts),
        )
        for what, read, compare in checks:
            if read is None:
                self.unchecked.append(f"{what}, because the store was being written all the time.")
            else:
                compare(read[1])

    def _report(self, seq: int, kind: str, message: str) -> None:
        self.count += 1
        if len(self.problems) < AT_MOST_PROBLEMS:
            self.problems.append(ChainProblem(seq=seq, kind=kind, message=message))

    def _read(self, link: Link, computed: str) -> dict[str, Any] | None:
        entry = _entry(link)
        if entry is None:
            wrong = "it cannot be read"
        elif computed != link.hash:
            wrong = "its hash is not that of its bytes"
        elif entry["approval"] != link.approval:
            wrong = f"it is stored under approval {link.approval} and belongs to {entry['approval']}"
        else:
            if entry["seq"] != link.seq:
                self._report(link.seq, "order", f"entry {link.seq} is not in its place: it is entry {entry['seq']}")
            return entry
        self._report(link.seq, "changed", f"entry {link.seq} was changed: {wrong}")
        return None

    # Contents

    def _add_contents(self, link: Link, entry: Mapping[str, Any]) -> None:
        seq, salt, contents, committed = link.seq, link.salt, link.contents, entry["commitment"]
        state = _KEPT if contents is not None or salt is not None else _DELETED
        if committed is None:
            if state == _KEPT:
                self._report(seq, "contents", f"entry {seq} has contents, and it was written without")
            state = _NONE
        elif state == _KEPT:
            is_whole = salt is not None and contents is not None and len(salt) == SALT_BYTES
            if not is_whole or commitment(salt or b"", contents or b"") != committed:
                self._report(seq, "contents", f"the contents of entry {seq}, or their salt, were changed")
        if seq > len(self._contents) + AT_MOST_MISSING:
            return  # a nonsensical number, which is reported as missing entries
        self._contents.extend(bytes(max(0, seq + 1 - len(self._contents))))
        self._contents[seq] = state
        if entry["kind"] == "forgotten":
            self._forget(seq, entry["facts"])

    def _forget(self, seq: int, facts: Mapping[str, Any]) -> None:
        """Compare the contents that are missing with a deletion that an entry records."""
        missing = 0
        for pair in facts.get("ranges") or ():
            is_pair = isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)
            if not is_pair or not 0 < pair[0] <= pair[1] < seq:
                continue  # impossible
            first, last = pair
            states = self._contents[first : last + 1]
            self._contents[first : last + 1] = bytes(len(states))
            missing += states.count(_DELETED)
            if seq <= self._head:  # a deletion during this pass may follow the read of its contents
                for number in (first + place for place, state in enumerate(states) if state == _KEPT):
                    wrong = f"entry {seq} says that the contents of entry {number} were deleted, and they are there"
                    self._report(number, "contents", wrong)
        self.deleted += missing
        if seq <= self._head and missing != facts.get("count"):
            stated = f"the contents of {facts.get('count')} entries were deleted"
            self._report(seq, "contents", f"entry {seq} says that {stated}, and {missing} are missing")

    # Rows

    def _add_row(self, seq: int, approval: str, entry: Mapping[str, Any]) -> None:
        """Compare the row of an approval with its last entry."""
        revision, stated = entry["revision"], entry["facts"]
        known = self._ahead.pop(approval, None)
        if known is not None and revision < known[0]:
            self._ahead[approval] = known[0], seq
            return
        row, wrong = self._tables.row(approval), ""
        if row is None:
            wrong = "is missing"
        elif type(row.revision) is int and row.revision > revision:
            self._ahead[approval] = row.revision, seq
        else:
            try:
                facts = row_facts(row)
                if type(row.revision) is int and row.revision < revision:
                    wrong = f"is older than entry {seq}: it has revision {row.revision}, and the entry {revision}"
                elif facts != {name: stated.get(name) for name in facts}:
                    wrong = (
                        f"was changed after entry {seq}: it is {row.state}, and the entry says {stated.get('state')}"
                    )
            except (ValueError, TypeError) as error:  # values that the library never writes
                wrong = f"was changed after entry {seq} and cannot be read: {error}"
        if wrong:
            self._report_row(seq, approval, wrong)

    def _report_row(self, seq: int, approval: str, wrong: str) -> None:
        if len(self._reported) < AT_MOST_PROBLEMS:
            self._reported.add(approval)
        self._report(seq, "row", f"the row of approval {approval} {wrong}")

    def _find_rows_without_entry(self, rows_at_head: int) -> None:
        query = RowQuery(order="newest", limit=500)
        while rows_at_head > self._requested and (rows := self._tables.rows(query)):
            for row in rows:
                if not self._tables.links(approval=row.id, limit=1):
                    self._report_row(0, row.id, "has no entry at all")
            query = replace(query, offset=query.offset + len(rows))

    # Standing approvals and accounts

    def _add_standing(self, link: Link, entry: Mapping[str, Any]) -> None:
        name, kind = entry["facts"].get("standing"), entry["kind"]
        if not isinstance(name, str) or not _is_before(link.seq, self._standing):
            return
        if kind == "standing_granted":
            parameters = None  # reported as changed contents
            with suppress(ValueError, AttributeError, RecursionError):
                parameters = (contents_of(link) or {}).get("parameters")
            self._granted[name] = link.seq, entry["facts"], parameters
        elif kind in {"standing_used", "released"}:  # a released claim gives its use back
            self._used[name] += 1 if kind == "standing_used" else -1
        elif kind == "standing_ended":
            self._ended.add(name)

    def _compare_standing(self, documents: Mapping[str, bytes]) -> None:
        for name, data in documents.items():
            seq = self._granted[name][0] if name in self._granted else 0
            if data and (wrong := self._difference(name, data)):
                self._report(seq, "standing", f"the standing approval {name} {wrong}")

    def _difference(self, name: str, data: bytes) -> str:
        if name not in self._granted:
            return "was not granted by any entry"
        seq, facts, parameters = self._granted[name]
        try:
            document = json.loads(data)
            limits = {limit: document[limit] for limit in ("action", "until", "uses")}
            used, ended, allowed = document["used"], bool(document["ended"]), document["parameters"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return "cannot be read"
        if limits != {limit: facts.get(limit) for limit in limits} or parameters not in (None, allowed):
            return f"is not as entry {seq} has granted it"
        if used != self._used[name]:
            return f"counts {used} uses, and the chain {self._used[name]}"
        if ended != (name in self._ended):
            return "was ended without an entry" if ended else "holds, and an entry has ended it"
        return ""

    def _compare_accounts(self, documents: Mapping[str, bytes]) -> None:
        kept = {name: data for name, data in documents.items() if data}
        for name in dict.fromkeys([*kept, *self._last_of_account]):
            seq, facts = self._last_of_account.get(name, (0, {}))
            was_removed = facts.get("change") == "removed"
            wrong = ""
            if name not in kept:
                wrong = "" if was_removed else "was removed without an entry"
            elif not seq:
                wrong = "was added without an entry"
            elif was_removed or _account_facts(kept[name]) != (facts.get("role"), facts.get("token")):
                wrong = f"is not as entry {seq} has left it"
            if wrong:
                self._report(seq, "account", f"the account {name} {wrong}")


_NONE, _KEPT, _DELETED = 0, 1, 2


def _read_at_head(reads: Reads, read: Callable[[], T]) -> tuple[int, T] | None:
    """Return the number of the newest entry and a value read at the same time; None if the store is too busy."""
    for _ in range(ATTEMPTS):
        head = reads.head()
        found = read()
        if head == reads.head():
            return head[0], found
    return None


def _is_before(seq: int, read: tuple[int, object] | None) -> bool:
    return read is not None and seq <= read[0]


def token_mark(token_sha256: str) -> str:
    """Return the mark of a token in the chain, with which no login is possible."""
    return hashlib.sha256(token_sha256.encode()).hexdigest()[:16]


def _account_facts(data: bytes) -> tuple[object, object]:
    try:
        account = json.loads(data)
        return account["role"], token_mark(account["token_sha256"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, None


_ENTRY_FIELDS: dict[str, Any] = {
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


def _entry(link: Link) -> dict[str, Any] | None:
    """Return the entry of a link; None unless it is canonical JSON with the fields of an entry."""
    try:
        entry = json.loads(link.data)
        if not isinstance(entry, dict) or entry.keys() != _ENTRY_FIELDS.keys():
            return None
        # The fast encoder writes most entries in canonical form, too.
        fast = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")
        if fast != link.data and entry_bytes(entry) != link.data:
            return None
    except (ValueError, RecursionError):
        return None
    has_kinds = all(isinstance(entry[name], kind) for name, kind in _ENTRY_FIELDS.items())
    is_whole = has_kinds and entry["v"] == 1 and (entry["approval"] is None) == (entry["revision"] is None)
    return entry if is_whole else None
