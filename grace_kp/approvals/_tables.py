"""What approvals need of a store: rows that are replaced only from what they were, an append-only chain, and leases of processes.

The memory and SQLite stores implement it, and a PostgreSQL store can: it names no file and no SQL. All logic of approvals stands above it, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request for approval as a table holds it. The columns are what rows are found by; `data` is everything else but contents."""

    id: str
    state: str
    action: str
    domain: str
    key: str | None
    """Digest of the key; None where the gate has none."""
    digest: str
    """Digest of the arguments that are decided on now."""
    run_id: str | None
    level: int
    """Rank of the level: 0 silent to 3 escalate."""
    deadline: float | None
    """Seconds since the epoch at which this row is due: the deadline of a pending request, the use-by time of a decision. None for never."""
    created: float
    changed: float
    revision: int
    """1 for a new row; each change adds 1."""
    waiter: str | None = None
    """The process that waits for the decision, or that has claimed the action."""
    data: bytes = b"{}"
    """JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One entry of the chain."""

    seq: int
    """1 for the first; without gaps."""
    hash: str
    approval: str | None
    data: bytes
    """Canonical JSON of the entry, which `hash` covers. It holds no contents, only commitments to them."""
    salt: bytes | None = None
    """What the commitment was made with; None once the contents are deleted, or where there are none."""
    contents: bytes | None = None
    """JSON of the contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """Which rows to read. Conditions that are None or empty do not restrict."""

    states: Sequence[str] = ()
    action: str | None = None
    """A name or a glob (`*`, `?`, `[…]`), case-sensitive."""
    domain: str | None = None
    key: str | None = None
    digest: str | None = None
    run_id: str | None = None
    due_before: float | None = None
    since: float | None = None
    """Only rows changed at or after this time."""
    order: str = "due"
    """`due`: by deadline, those without one last, then the stricter level first, then the older. `newest`: by last change, newest first."""
    limit: int | None = 100
    offset: int = 0


class Reads(Protocol):
    """Reads. Each one alone sees one state of the tables; those inside one transaction see the same."""

    def row(self, approval: str) -> Row | None:
        """Return the row with this id; None if there is none."""

    def ids(self, begins: str, *, limit: int) -> list[str]:
        """Return the ids that begin with a text, at most `limit`, in alphabetical order."""

    def rows(self, query: RowQuery) -> list[Row]:
        """Return the rows that match, in the order of the query."""

    def count(self, query: RowQuery) -> int:
        """Return how many rows match, whatever the limit."""

    def link(self, seq: int) -> Link | None:
        """Return the entry of the chain with this number; None if there is none."""

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        """Return entries by number, those after `after`; with `kept`, only those whose contents are still there."""

    def links_before(self, before: int | None = None, *, limit: int = 1_000, approval: str | None = None) -> list[Link]:
        """Return the entries with smaller numbers than `before` (all when None), newest first."""

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and an empty text before the first."""

    def document(self, kind: str, name: str) -> bytes | None:
        """Return a small document, such as a standing approval."""

    def documents(self, kind: str) -> dict[str, bytes]:
        """Return all documents of a kind, by name."""


class Writes(Reads, Protocol):
    """What may be done inside of a transaction."""

    def put(self, row: Row) -> bool:
        """Insert a row of revision 1, or replace the row of the revision before; return False, and put nothing, if there is another."""

    def append(self, link: Link) -> None:
        """Append an entry to the chain. Its number must be that after the head."""

    def put_document(self, kind: str, name: str, data: bytes | None) -> None:
        """Put a document, or delete it with None."""

    def forget(self, seqs: Sequence[int]) -> int:
        """Delete salt and contents of entries; return how many had some."""


class Tables(Reads, Protocol):
    """The tables of approvals in one store."""

    @property
    def identity(self) -> str:
        """Id of the store, drawn when its tables are created. A copy has the same; see `check_place`."""

    @property
    def lasting(self) -> bool:
        """Whether the tables outlive the process."""

    def transaction(self) -> AbstractContextManager[Writes]:
        """Return a block in which all is written or, after an exception, nothing. No other process writes meanwhile. When it has ended without an
        exception, what it wrote survives the loss of power.
        """

    def changes(self) -> int:
        """Return a number that differs whenever another process or thread may have written. It is cheap: call it many times a second."""

    def hold(self) -> str:
        """Take or renew the lease of this process, at most every few seconds, and return its id. A forked child has its own."""

    def is_alive(self, process: str) -> bool | None:
        """Return whether the process with this id runs: False if it is known to be gone, None if that cannot be known (its lease has expired, but
        it may only be stopped, or runs on another machine)."""
