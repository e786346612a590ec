"""Verification of the chain: it locates entries and contents that were changed, removed, inserted or reordered, and rows,
standing approvals and accounts that were changed without an entry.

The chain alone proves nothing against whoever can write the store, because all hashes can be computed anew. A checkpoint that is kept elsewhere
(see `_checkpoint`) does, for the entries up to its number. A notification holds a number and a hash too and serves as a checkpoint.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from grace_kp.approvals._chain import SALT_BYTES, commitment, contents_of, each_link, entry_bytes, entry_hash, row_facts
from grace_kp.approvals._people import ACCOUNT
from grace_kp.approvals._standing import DOCUMENT
from grace_kp.approvals._tables import RowQuery
from grace_kp.errors import ApprovalError, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals._tables import Link, Reads, Row, Tables


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


def _ranges(facts: Mapping[str, Any], seq: int) -> list[tuple[int, int]]:
    """Return the first and last numbers of entries whose contents were deleted, as far as they can be right."""
    found = []
    for pair in facts.get("ranges") or ():
        if isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair):
            first, last = pair
            if 0 < first <= last < seq:
                found.append((first, last))
    return found


def token_mark(token_sha256: str) -> str:
    """Return what entries of the chain state about a token: it tells two tokens apart, and nobody can log in with it."""
    return hashlib.sha256(token_sha256.encode()).hexdigest()[:16]


class AccountCheck:
    """Compares the documents of accounts with their entries. It keeps one record per account."""

    def __init__(self, found: Problems, reads: Reads) -> None:
        self._found = found
        found_at = at_one_head(reads, lambda: {name: data for name, data in reads.documents(ACCOUNT).items() if data})
        self._head = found_at[0] if found_at else 0
        self._documents = found_at[1] if found_at else None
        self._last: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self.unchecked = (
            ()
            if self._documents is not None
            else ("Accounts were not compared, because the store was written all the time.",)
        )

    def add(self, seq: int, entry: Mapping[str, Any]) -> None:
        """Note what an entry says of an account."""
        name = entry["facts"].get("account")
        if entry["kind"] == "account_changed" and isinstance(name, str) and seq <= self._head:
            self._last[name] = seq, entry["facts"]

    def end(self) -> None:
        """Compare the documents."""
        if self._documents is None:
            return
        for name, data in self._documents.items():
            seq, facts = self._last.get(name, (0, {}))
            if not seq or _facts(data) != (facts.get("role"), facts.get("token")) or facts.get("change") == "removed":
                wrong = f"is not as entry {seq} has left it" if seq else "was added without an entry"
                self._found.add(seq, "account", f"the account {name} {wrong}")
        for name, (seq, facts) in self._last.items():
            if facts.get("change") != "removed" and name not in self._documents:
                self._found.add(seq, "account", f"the account {name} was removed without an entry")


def _facts(data: bytes) -> tuple[object, object]:
    try:
        account = json.loads(data)
        return account["role"], token_mark(account["token_sha256"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, None


class Authenticator(Protocol):
    """What authenticates a checkpoint: the secret that also seals arguments."""

    def mac(self, data: bytes) -> str:
        """Return the message authentication code of `data`."""
        ...


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

    def to_dict(self, secret: Authenticator | None = None) -> dict[str, Any]:
        """Return the checkpoint as JSON, with a code of the secret if there is one."""
        fields = asdict(self)
        return fields if secret is None else {**fields, "mac": secret.mac(entry_bytes(fields))}

    @classmethod
    def from_dict(cls, data: object, secret: Authenticator | None = None) -> Checkpoint:
        """Return a checkpoint from its JSON.

        Raises:
            ApprovalError: a field is missing or wrong, or the secret did not authenticate it.
        """
        fields = dict(data) if isinstance(data, dict) else {}
        code = fields.pop("mac", None)
        kinds = {name: type(value) for name, value in fields.items()}
        at = fields.get("at")
        if kinds not in ({**_KINDS, "at": int}, _KINDS) or fields["seq"] < 0 or not isinstance(at, int | float):
            raise ApprovalError(f"a checkpoint must be a JSON object with {', '.join(_KINDS)}, not {brief(data)}")
        found = cls(**fields)
        if secret is not None and not hmac.compare_digest(str(code).encode(), found.to_dict(secret)["mac"].encode()):
            problem = "has no code of a secret" if code is None else "was changed, or has the code of another secret"
            raise ApprovalError(
                f"the checkpoint of entry {found.seq} {problem}: use the file and the secret that it was written with"
            )
        return found


_KINDS = {"store": str, "seq": int, "hash": str, "at": float}


def checkpoint(tables: Tables, *, at: float) -> Checkpoint:
    """Return a checkpoint of the newest entry, unverified; `Verification.checkpoint` is one of the newest that was verified."""
    seq, digest = tables.head()
    return Checkpoint(store=tables.identity, seq=seq, hash=digest, at=at)


def write_checkpoint(path: str | Path, point: Checkpoint, *, secret: Authenticator | None = None) -> None:
    """Append a checkpoint to a file, which is created if it does not exist.

    Raises:
        OSError: the file cannot be written.
    """
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(point.to_dict(secret)) + "\n")


def read_checkpoints(path: str | Path, *, secret: Authenticator | None = None) -> list[Checkpoint]:
    """Return the checkpoints of a file.

    Args:
        path: the file.
        secret: what each must be authenticated by; None does not check it.

    Raises:
        OSError: the file cannot be read.
        ApprovalError: a line is no checkpoint, there is none, or the secret did not authenticate it. The message names the line.
    """
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    found = parse_checkpoints(text, secret=secret, place=str(path))
    if not found:
        raise ApprovalError(
            f"{path}: it holds no checkpoint; `grace-kp approvals verify --write-checkpoint` writes one"
        )
    return found


def parse_checkpoints(text: str, *, secret: Authenticator | None = None, place: str) -> list[Checkpoint]:
    """Return the checkpoints of a text, one per line; none for an empty one.

    Args:
        text: JSON lines.
        secret: what each must be authenticated by; None does not check it.
        place: where the text comes from, for messages.

    Raises:
        ApprovalError: a line is no checkpoint, or the secret did not authenticate it. The message names the line.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found.append(Checkpoint.from_dict(json.loads(line), secret))
        except (ValueError, RecursionError):
            raise ApprovalError(f"{place}, line {number}: it is no JSON: {brief(line)}") from None
        except ApprovalError as error:
            raise ApprovalError(f"{place}, line {number}: {error}") from None
    return found


class StandingCheck:
    """Compares the documents of standing approvals with their entries. It keeps one record per standing approval."""

    def __init__(self, found: Problems, reads: Reads) -> None:
        self._found = found
        found_at = at_one_head(reads, lambda: {name: data for name, data in reads.documents(DOCUMENT).items() if data})
        self._head = found_at[0] if found_at else 0
        self._documents = found_at[1] if found_at else None
        self._granted: dict[str, tuple[int, Mapping[str, Any], Any]] = {}
        self._used: dict[str, int] = {}
        self._ended: set[str] = set()
        self.unchecked = (
            ()
            if self._documents is not None
            else ("Standing approvals were not compared, because the store was written all the time.",)
        )

    def add(self, link: Link, entry: Mapping[str, Any]) -> None:
        """Note what an entry says of a standing approval."""
        name, kind = entry["facts"].get("standing"), entry["kind"]
        if not isinstance(name, str) or link.seq > self._head:
            return
        if kind == "standing_granted":
            self._granted[name] = link.seq, entry["facts"], _parameters(link)
        elif kind == "standing_used":
            self._used[name] = self._used.get(name, 0) + 1
        elif kind == "released":  # the claim has done nothing, and its use was given back
            self._used[name] = self._used.get(name, 0) - 1
        elif kind == "standing_ended":
            self._ended.add(name)

    def end(self) -> None:
        """Compare the documents."""
        for name, data in (self._documents or {}).items():
            seq, wrong = self._compare(name, data)
            if wrong:
                self._found.add(seq, "standing", f"the standing approval {name} {wrong}")

    def _compare(self, name: str, data: bytes) -> tuple[int, str]:
        if name not in self._granted:
            return 0, "was not granted by any entry"
        seq, facts, parameters = self._granted[name]
        try:
            stands = json.loads(data)
            limits = {limit: stands[limit] for limit in ("action", "until", "uses")}
            used, ended, allowed = stands["used"], bool(stands["ended"]), stands["parameters"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return seq, "cannot be read"
        if limits != {limit: facts.get(limit) for limit in limits} or parameters not in (None, allowed):
            return seq, f"is not as entry {seq} has granted it"
        if used != self._used.get(name, 0):
            return seq, f"counts {used} uses, and the chain {self._used.get(name, 0)}"
        if ended != (name in self._ended):
            return seq, "was ended without an entry" if ended else "holds, and an entry has ended it"
        return seq, ""


def _parameters(link: Link) -> Any:
    """Return the granted parameters; None once retention has deleted them."""
    try:
        return (contents_of(link) or {}).get("parameters")
    except (ValueError, AttributeError, RecursionError):
        return None  # changed contents are reported elsewhere


NO_CHECKPOINT = (
    "No checkpoint was compared, so only accidents are found: whoever can write the store can write the whole chain anew. "
    "Keep checkpoints where they cannot be written from here."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification has found, and what it could not check."""

    ok: bool
    """Whether no problem was found. Without a checkpoint (`against` is `nothing`) this means that there was no accident, and no more; see `unchecked`."""
    entries: int
    """Number of entries that were read."""
    problems: Sequence[Problem]
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

    Args:
        tables: the tables of the store.
        at: the time now, for the checkpoint in the result.
        checkpoint: where the chain stood earlier. With several, a change is located between two of them.

    Raises:
        StoreError: the tables cannot be read.
    """
    points = [checkpoint] if isinstance(checkpoint, Checkpoint) else list(checkpoint or ())
    found = Problems()
    chain, contents, rows = (
        ChainCheck(found, tables.identity, points),
        ContentsCheck(found, tables.head()[0]),
        RowsCheck(found, tables),
    )
    standing, accounts = StandingCheck(found, tables), AccountCheck(found, tables)
    for link in each_link(tables):
        entry = chain.add(link)
        if entry is not None:
            contents.add(link, entry)
            rows.add(link.seq, entry)
            standing.add(link, entry)
            accounts.add(link.seq, entry)
        else:
            rows.skip(link.approval)
    chain.end()
    contents.end()
    rows.end()
    standing.end()
    accounts.end()
    newest = Checkpoint(store=tables.identity, seq=chain.seq, hash=chain.hash, at=at)
    return Verification(
        ok=not found.count,
        entries=chain.entries,
        problems=tuple(found.kept),
        problem_count=found.count,
        against="checkpoint" if points else "nothing",
        deleted=contents.deleted,
        checkpoint=newest,
        unchecked=(
            *_beyond(points, chain.seq),
            *contents.unchecked(),
            *rows.unchecked,
            *standing.unchecked,
            *accounts.unchecked,
        ),
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
