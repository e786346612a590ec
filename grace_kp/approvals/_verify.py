"""Verification of the chain, in one pass, and the checkpoints that it is compared with.

It locates entries and contents that were changed, removed, inserted or reordered, and rows, standing approvals and accounts that were changed
without an entry. The chain alone proves nothing against whoever can write the store, because all hashes can be computed anew. A checkpoint that is
kept elsewhere does, for the entries up to its number. A notification holds a number and a hash too and serves as a checkpoint.

A file of checkpoints holds one JSON object per line, with the fields of `Checkpoint` and optionally `mac`, the code that a secret
of the owner's makes of the others. Each new one is appended, because a series of them locates a change more closely.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.approvals._chain import SALT_BYTES, commitment, contents_of, each_link, entry_bytes, entry_hash, row_facts
from grace_kp.approvals._people import ACCOUNT
from grace_kp.approvals._standing import DOCUMENT
from grace_kp.approvals._tables import RowQuery
from grace_kp.errors import ApprovalError, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals._seal import Secret
    from grace_kp.approvals._tables import Link, Reads, Row, Tables

T = TypeVar("T")
AT_MOST_PROBLEMS = 1_000
"""Further problems are only counted."""
AT_MOST_MISSING = 1 << 20
"""Missing entries in a row after which contents are no longer compared with what retention deleted."""
ATTEMPTS = 20
"""How often something is read before the store counts as too busy for it."""
NO_CHECKPOINT = (
    "No checkpoint was compared, so only accidents are found: whoever can write the store can write the whole chain anew. "
    "Keep checkpoints where they cannot be written from here."
)


# Checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a chain stood."""

    store: str
    """Id of the store."""
    seq: int
    """Number of the newest entry; 0 before the first."""
    hash: str
    """Hash of that entry; empty before the first."""
    at: float
    """When the checkpoint was taken, in seconds since the epoch."""

    def to_dict(self, secret: Secret | None = None) -> dict[str, Any]:
        """Return the checkpoint as JSON, with a code of the secret if there is one."""
        fields = asdict(self)
        return fields if secret is None else {**fields, "mac": secret.mac(entry_bytes(fields))}

    @classmethod
    def from_dict(cls, data: object, secret: Secret | None = None) -> Checkpoint:
        """Return a checkpoint from its JSON."""
        fields = dict(data) if isinstance(data, dict) else {}
        code = fields.pop("mac", None)
        kinds = {name: type(value) for name, value in fields.items()}
        at = fields.get("at")
        if (
            kinds not in ({**_CHECKPOINT_FIELDS, "at": int}, _CHECKPOINT_FIELDS)
            or fields["seq"] < 0
            or not isinstance(at, int | float)
        ):
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
    """Append a checkpoint to a file, which is created if it does not exist."""
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
    """Return the checkpoints of a text, one per line; none for an empty one."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found.append(Checkpoint.from_dict(json.loads(line), secret))
        except (ValueError, RecursionError):
            raise ApprovalError(f"{place}, line {number}: it is no JSON: {brief(line)}") from None
        except ApprovalError as error:
            raise ApprovalError(f"{place}, line {number}: {error}") from None
    return found


# Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProblem:
    """A deviation, and its place."""

    seq: int
    """Number of the entry; 0 where it concerns none."""
    kind: str
    """`changed`, `contents`, `missing`, `order`, `row`, `standing`, `account`, `checkpoint`."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification has found, and what it could not check."""

    ok: bool
    """Whether no problem was found. Without a checkpoint (`against` is `nothing`) this means that there was no accident, and no more; see `unchecked`."""
    entries: int
    """Number of entries that were read."""
    problems: Sequence[ChainProblem]
    """The first 1,000 problems by number of the entry, those of the whole chain last."""
    problem_count: int
    against: str
    """`checkpoint`, or `nothing`: then only accidents are found."""
    deleted: int
    """Number of entries whose contents retention has deleted."""
    checkpoint: Checkpoint
    """The newest entry that was read: what to keep elsewhere for the next verification."""
    unchecked: Sequence[str]
    """What could not be checked, as sentences."""

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
    return Verification(
        ok=not found.count,
        entries=found.entries,
        problems=tuple(found.problems),
        problem_count=found.count,
        against="checkpoint" if points else "nothing",
        deleted=found.deleted,
        checkpoint=Checkpoint(store=tables.identity, seq=found.seq, hash=found.hash, at=at),
        unchecked=(*_beyond(points, found.seq), *found.unchecked),
    )


def _beyond(points: Sequence[Checkpoint], seq: int) -> list[str]:
    if not points:
        return [NO_CHECKPOINT]
    last = max(point.seq for point in points)
    if seq <= last:
        return []
    return [
        f"Entries {last + 1:,} to {seq:,} came after the newest checkpoint: of them, and of the approvals whose last entry is among them, only accidents are found."
    ]


class _Pass:
    """One pass over the chain and, at its end, over the rows, standing approvals and accounts that its entries must account for."""

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
        """By number of the entry: whether its contents are there."""
        self._ahead: dict[str, tuple[int, int]] = {}
        """Revision of the row and number of the last entry read, for approvals with a row that later entries must account for."""
        self._reported: set[str] = set()
        self._requested = 0
        self._granted: dict[str, tuple[int, Mapping[str, Any], Any]] = {}
        self._used: dict[str, int] = {}
        self._ended: set[str] = set()
        self._last_of_account: dict[str, tuple[int, Mapping[str, Any]]] = {}
        # What must agree with entries is read together with the number of the newest one.
        self._rows = _read_at_head(tables, lambda: tables.count(RowQuery(limit=None)))
        self._standing = _read_at_head(tables, lambda: _documents(tables, DOCUMENT))
        self._accounts = _read_at_head(tables, lambda: _documents(tables, ACCOUNT))
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
            text = f"entry {first} is" if first == last else f"entries {first} to {last} are"
            self._report(first, "missing", f"{text} missing")
        elif entry is not None and entry["prev"] not in self._previous:
            wrong = f"does not follow the entry {link.seq - 1} that is there: one of the two was replaced"
            self._report(link.seq, "order", f"entry {link.seq} {wrong}")
        for point in self._points.pop(link.seq, ()):
            self._compare_point(point, computed)
        # Where its bytes were changed, which is reported, the next one follows what was there.
        self.seq, self.hash, self._previous = link.seq, computed, {computed, link.hash}
        if entry is None:
            self._skip_row(link.approval)
            return
        self._add_contents(link, entry)
        self._add_row(link.seq, entry)
        self._add_standing(link, entry)
        account = entry["facts"].get("account")
        if entry["kind"] == "account_changed" and isinstance(account, str) and _is_before(link.seq, self._accounts):
            self._last_of_account[account] = link.seq, entry["facts"]

    def end(self) -> None:
        """Report entries and contents that are missing, and what no entry accounts for."""
        self._end_points()
        seq = self._contents.find(_DELETED)
        while seq >= 0:
            wrong = f"the contents of entry {seq} are missing, and no entry says that they were deleted"
            self._report(seq, "contents", wrong)
            seq = self._contents.find(_DELETED, seq + 1)
        if self.deleted:
            self.unchecked.append(
                f"Contents deleted: those of {self.deleted:,} entries, by retention. What they were cannot be checked any more."
            )
        self._end_rows()
        self._end_standing()
        self._end_accounts()

    def _report(self, seq: int, kind: str, message: str) -> None:
        self.count += 1
        if len(self.problems) < AT_MOST_PROBLEMS:
            self.problems.append(ChainProblem(seq=seq, kind=kind, message=message))

    def _report_busy(self, what: str) -> None:
        self.unchecked.append(f"{what}, because the store was written all the time.")

    # Entries and checkpoints

    def _read(self, link: Link, computed: str) -> dict[str, Any] | None:
        """Return the entry of a link; None if it cannot be relied on."""
        entry = _entry(link)
        if entry is None:
            wrong = "it cannot be read"
        elif computed != link.hash:
            wrong = "its hash is not that of its bytes"
        elif entry["approval"] != link.approval:
            wrong = f"it stands under approval {link.approval} and is of {entry['approval']}"
        else:
            if entry["seq"] != link.seq:
                self._report(link.seq, "order", f"entry {link.seq} is not in its place: it is entry {entry['seq']}")
            return entry
        self._report(link.seq, "changed", f"entry {link.seq} was changed: {wrong}")
        return None

    def _compare_point(self, point: Checkpoint, computed: str) -> None:
        if point.hash == computed:
            self._agreed = max(self._agreed, point.seq)
            return
        between = f"between {self._agreed + 1} and {point.seq}" if point.seq > self._agreed + 1 else f"at {point.seq}"
        wrong = f"is not the one of the checkpoint: the chain was changed {between}, or is another store's"
        self._report(point.seq, "checkpoint", f"entry {point.seq} {wrong}")

    def _end_points(self) -> None:
        for seq, points in sorted(self._points.items()):
            for point in points:
                if seq <= self.seq and (seq or not point.hash):
                    continue  # reported as missing, or taken before the first entry
                wrong = f"and the checkpoint is of entry {seq}: entries were removed from its end"
                self._report(self.seq + 1, "missing", f"the chain ends at entry {self.seq}, {wrong}")

    # Contents

    def _add_contents(self, link: Link, entry: Mapping[str, Any]) -> None:
        state = self._check_contents(link, entry["commitment"])
        if link.seq > len(self._contents) + AT_MOST_MISSING:
            return  # its number is nonsense, which the order of the entries shows
        self._contents.extend(bytes(max(0, link.seq + 1 - len(self._contents))))
        self._contents[link.seq] = state
        if entry["kind"] == "forgotten":
            self._forget(link.seq, entry["facts"])

    def _check_contents(self, link: Link, committed: str | None) -> int:
        if committed is None:
            if link.contents is not None or link.salt is not None:
                self._report(link.seq, "contents", f"entry {link.seq} has contents, and it was written without")
            return _NONE
        if link.contents is None and link.salt is None:
            return _DELETED
        is_whole = link.salt is not None and link.contents is not None and len(link.salt) == SALT_BYTES
        if not is_whole or commitment(link.salt or b"", link.contents or b"") != committed:
            self._report(link.seq, "contents", f"the contents of entry {link.seq}, or their salt, were changed")
        return _KEPT

    def _forget(self, seq: int, facts: Mapping[str, Any]) -> None:
        """Take off the contents that an entry says were deleted."""
        missing = 0
        for first, last in _ranges(facts, seq):
            states = self._contents[first : last + 1]
            self._contents[first : last + 1] = bytes(len(states))
            missing += states.count(_DELETED)
            if seq <= self._head:  # contents that are being deleted now may have been read before
                for number in (first + place for place, state in enumerate(states) if state == _KEPT):
                    wrong = f"entry {seq} says that the contents of entry {number} were deleted, and they are there"
                    self._report(number, "contents", wrong)
        self.deleted += missing
        if seq <= self._head and missing != facts.get("count"):
            stated = f"the contents of {facts.get('count')} entries were deleted"
            self._report(seq, "contents", f"entry {seq} says that {stated}, and those of {missing} are missing")

    # Rows

    def _add_row(self, seq: int, entry: Mapping[str, Any]) -> None:
        """Compare the row of an approval with its entry if no later entry is to be expected."""
        self._requested += entry["kind"] == "requested" and _is_before(seq, self._rows)
        approval, revision = entry["approval"], entry["revision"]
        if approval is None or approval in self._reported:
            return
        known = self._ahead.get(approval)
        if known is not None and revision < known[0]:
            self._ahead[approval] = known[0], seq
            return
        self._ahead.pop(approval, None)
        row = self._tables.row(approval)
        if row is None:
            self._report_row(seq, approval, "is missing")
        elif type(row.revision) is int and row.revision > revision:
            self._ahead[approval] = row.revision, seq
        elif wrong := _difference(seq, row, entry):
            self._report_row(seq, approval, wrong)

    def _skip_row(self, approval: str | None) -> None:
        if approval is not None and len(self._reported) < AT_MOST_PROBLEMS:
            self._reported.add(approval)
            self._ahead.pop(approval, None)

    def _report_row(self, seq: int, approval: str, wrong: str) -> None:
        if len(self._reported) < AT_MOST_PROBLEMS:
            self._reported.add(approval)
        self._report(seq, "row", f"the row of approval {approval} {wrong}")

    def _end_rows(self) -> None:
        for approval, (revision, seq) in self._ahead.items():
            wrong = f"has revision {revision}, and entry {seq} is its last: it was changed without an entry, or entries are missing"
            self._report_row(seq, approval, wrong)
        if self._rows is None:
            self._report_busy("Rows without any entry were not looked for")
        elif self._rows[1] > self._requested:
            self._find_rows_without_entry()

    def _find_rows_without_entry(self) -> None:
        query = RowQuery(order="newest", limit=500)
        while rows := self._tables.rows(query):
            for row in rows:
                if not self._tables.links(approval=row.id, limit=1):
                    self._report_row(0, row.id, "has no entry at all")
            query = RowQuery(order="newest", limit=500, offset=query.offset + len(rows))

    # Standing approvals and accounts

    def _add_standing(self, link: Link, entry: Mapping[str, Any]) -> None:
        name, kind = entry["facts"].get("standing"), entry["kind"]
        if not isinstance(name, str) or not _is_before(link.seq, self._standing):
            return
        if kind == "standing_granted":
            self._granted[name] = link.seq, entry["facts"], _parameters(link)
        elif kind in {"standing_used", "released"}:  # a released claim has done nothing, and its use was given back
            self._used[name] = self._used.get(name, 0) + (1 if kind == "standing_used" else -1)
        elif kind == "standing_ended":
            self._ended.add(name)

    def _end_standing(self) -> None:
        if self._standing is None:
            self._report_busy("Standing approvals were not compared")
            return
        for name, data in self._standing[1].items():
            seq = self._granted[name][0] if name in self._granted else 0
            if wrong := self._compare_standing(name, data):
                self._report(seq, "standing", f"the standing approval {name} {wrong}")

    def _compare_standing(self, name: str, data: bytes) -> str:
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
        if used != self._used.get(name, 0):
            return f"counts {used} uses, and the chain {self._used.get(name, 0)}"
        if ended != (name in self._ended):
            return "was ended without an entry" if ended else "holds, and an entry has ended it"
        return ""

    def _end_accounts(self) -> None:
        if self._accounts is None:
            self._report_busy("Accounts were not compared")
            return
        for name, data in self._accounts[1].items():
            seq, facts = self._last_of_account.get(name, (0, {}))
            if not seq:
                self._report(seq, "account", f"the account {name} was added without an entry")
            elif _account_facts(data) != (facts.get("role"), facts.get("token")) or facts.get("change") == "removed":
                self._report(seq, "account", f"the account {name} is not as entry {seq} has left it")
        for name, (seq, facts) in self._last_of_account.items():
            if facts.get("change") != "removed" and name not in self._accounts[1]:
                self._report(seq, "account", f"the account {name} was removed without an entry")


_NONE, _KEPT, _DELETED = 0, 1, 2


def _read_at_head(reads: Reads, read: Callable[[], T]) -> tuple[int, T] | None:
    """Return the number of the newest entry, and the value that was read at that moment; None if the store is too busy."""
    for _ in range(ATTEMPTS):
        head = reads.head()
        found = read()
        if head == reads.head():
            return head[0], found
    return None


def _documents(reads: Reads, kind: str) -> dict[str, bytes]:
    return {name: data for name, data in reads.documents(kind).items() if data}


def _is_before(seq: int, read: tuple[int, object] | None) -> bool:
    return read is not None and seq <= read[0]


def _difference(seq: int, row: Row, entry: Mapping[str, Any]) -> str:
    """Return how a row differs from the last entry about it; empty where it does not."""
    revision, stated = entry["revision"], entry["facts"]
    try:
        facts = row_facts(row)
    except (ValueError, TypeError) as error:  # values that no row is written with
        return f"was changed after entry {seq} and cannot be read: {error}"
    if type(row.revision) is int and row.revision < revision:
        return f"is older than entry {seq}: it has revision {row.revision}, and the entry {revision}"
    if facts != {name: stated.get(name) for name in facts}:
        return f"was changed after entry {seq}: it is {row.state}, and the entry says {stated.get('state')}"
    return ""


def _parameters(link: Link) -> Any:
    """Return the granted parameters; None once retention has deleted them."""
    try:
        return (contents_of(link) or {}).get("parameters")
    except (ValueError, AttributeError, RecursionError):
        return None  # changed contents are reported elsewhere


def token_mark(token_sha256: str) -> str:
    """Return what entries of the chain state about a token: it tells two tokens apart, and nobody can log in with it."""
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
_ENTRY_NAMES = _ENTRY_FIELDS.keys()


def _entry(link: Link) -> dict[str, Any] | None:
    """Return the entry of a link; None unless it is a canonical object with the fields of an entry."""
    try:
        entry = json.loads(link.data)
        if not isinstance(entry, dict) or entry.keys() != _ENTRY_NAMES or not _is_canonical(entry, link.data):
            return None
    except (ValueError, RecursionError):
        return None
    kinds = (isinstance(entry[name], kind) for name, kind in _ENTRY_FIELDS.items())
    return (
        entry if entry["v"] == 1 and all(kinds) and (entry["approval"] is None) == (entry["revision"] is None) else None
    )


def _is_canonical(entry: dict[str, Any], data: bytes) -> bool:
    # Most are what the fast encoder writes, too.
    fast = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")
    return fast == data or entry_bytes(entry) == data


def _ranges(facts: Mapping[str, Any], seq: int) -> list[tuple[int, int]]:
    """Return the first and last numbers of entries whose contents were deleted, as far as they can be right."""
    found = []
    for pair in facts.get("ranges") or ():
        if isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair):
            first, last = pair
            if 0 < first <= last < seq:
                found.append((first, last))
    return found
