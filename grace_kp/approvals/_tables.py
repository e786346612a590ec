"""Interface of approvals to a store: rows that are replaced revision by revision, an append-only chain, and leases of processes.

The memory and SQLite stores implement it, and other databases can. All logic of approvals is above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request for approval as a table holds it: the columns of queries, and all other data except contents."""

    id: str
    state: str
    action: str
    domain: str
    key: str | None
    """Digest of the key; None without a key."""
    digest: str
    """Digest of the current arguments."""
    run_id: str | None
    level: int
    """Rank of the level: 0 silent to 3 escalate."""
    deadline: float | None
    """Deadline of a pending request, or use-by time of a decision, in seconds since the epoch; None for never."""
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
    """Canonical JSON of the entry, which `hash` covers."""
    salt: bytes | None = None
    """Salt of the commitment; None without contents, or after their deletion."""
    contents: bytes | None = None
    """JSON of the contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """Conditions on rows; None or empty for any."""

    states: Sequence[str] = ()
    action: str | None = None
    """A name or a glob (`*`, `?`, `[…]`), case-sensitive."""
    domain: str | None = None
    key: str | None = None
    digest: str | None = None
    run_id: str | None = None
    due_before: float | None = None
    since: float | None = None
    """Only rows that changed at or after this time."""
    order: str = "due"
    """`due`: by deadline, rows without one last, then by level, stricter first, then by age. `newest`: by last change, newest first."""
    limit: int | None = 100
    offset: int = 0


class Reads(Protocol):
    """Reads. Each sees one state of the tables; all reads of one transaction see the same."""

    @property
    def identity(self) -> str:
        """Id of the store, drawn when its tables are created. A copy has the same."""

    def row(self, approval: str) -> Row | None:
        """Return the row with this id; None if there is none."""

    def ids(self, begins: str, *, limit: int) -> list[str]:
        """Return the ids with this prefix, at most `limit`, in alphabetical order."""

    def rows(self, query: RowQuery) -> list[Row]:
        """Return the rows that match, in the order of the query."""

    def count(self, query: RowQuery) -> int:
        """Return how many rows match, without the limit."""

    def link(self, seq: int) -> Link | None:
        """Return the entry of the chain with this number; None if there is none."""

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        """Return entries after `after` by number; with `kept`, only entries that still have contents."""

    def links_before(self, before: int | None = None, *, limit: int = 1_000, approval: str | None = None) -> list[Link]:
        """Return the entries with smaller numbers than `before` (all when None), newest first."""

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and an empty string before the first."""

    def document(self, kind: str, name: str) -> bytes | None:
        """Return a small document, such as a standing approval."""

    def documents(self, kind: str) -> dict[str, bytes]:
        """Return all documents of a kind, by name."""


class Writes(Reads, Protocol):
    """Reads and writes of a transaction."""

    def put(self, row: Row) -> bool:
        """Insert a row of revision 1, or replace the row of the previous revision; return False if another revision is there."""

    def append(self, link: Link) -> None:
        """Append an entry with the next number to the chain."""

    def put_document(self, kind: str, name: str, data: bytes | None) -> None:
        """Put a document, or delete it with None."""

    def forget(self, seqs: Sequence[int]) -> int:
        """Delete salt and contents of entries; return how many had some."""


class Tables(Reads, Protocol):
    """The tables of approvals in one store."""

    @property
    def lasting(self) -> bool:
        """Whether the tables outlive the process."""

    def transaction(self) -> AbstractContextManager[Writes]:
        """Return a block whose writes are all kept, or after an exception none. Other processes wait. Its end means that the writes are on disk."""

    def changes(self) -> int:
        """Return a number that changes whenever another process or thread may have written. The call is cheap."""

    def hold(self) -> str:
        """Take the lease of this process, or renew it every few seconds, and return its id. A forked child has another."""

    def is_alive(self, process: str) -> bool | None:
        """Return whether the process with this id runs; None if its lease has expired and it may be stopped or on another machine."""
