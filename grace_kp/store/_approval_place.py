"""Whether the tables of approvals are still those that were opened: the same file at the same path, with the same history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.errors import StoreError
from grace_kp.store._files import OpenFiles

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


class Place:
    """The file at a path. Created right before the first connection to it.

    A copy that takes the place of the file is another file. A copy that is written over it has the same inode and the same id, so the newest
    entry of the chain that was seen must still be there, too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = OpenFiles(path)
        self._seen = (0, "")
        """Number and hash of the newest entry that was seen."""
        self.identity = ""
        """Id of the store."""
        self.is_entered = False
        """Whether a connection is open."""

    def enter(self, connection: sqlite3.Connection) -> None:
        """Note what a first connection has opened."""
        self.identity = self.identity or identity_of(connection)
        self._files.look_beside()
        self.is_entered = True

    def leave_to_parent(self) -> None:
        """Expect the same file in a forked child, but not the same log: it is removed once nobody has the file open."""
        self._files.leave_beside()
        self.is_entered = False

    def note(self, head: tuple[int, str]) -> None:
        """Note the newest entry of the chain."""
        if head[0] > self._seen[0]:
            self._seen = head

    def check(self, connection: sqlite3.Connection | None = None) -> None:
        """Compare the file at the path, and what a connection reads, with what was opened.

        Raises:
            StoreError: it is another file, another store, or an earlier state of the same.
        """
        if self._files.are_displaced:
            raise self._error("is no longer the file that was opened: it was deleted, moved or replaced")
        if connection is None:
            return
        if identity_of(connection) != self.identity:
            raise self._error("holds another store than the one that was opened")
        number, expected = self._seen
        if number:
            found = connection.execute("SELECT hash FROM approval_chain WHERE seq = ?", (number,)).fetchone()
            if found is None or found[0] != expected:
                raise self._error(f"lacks entry {number} of its audit trail: an earlier state was written over it")

    def _error(self, problem: str) -> StoreError:
        return StoreError(
            f"store {self._path} {problem}. Approvals do not go on in it, because an action could run twice. Restore what is missing, or run "
            "`grace-kp approvals restored` if a backup was put in its place; then restart this program"
        )

    def leave(self, connection: sqlite3.Connection) -> None:
        """Close a connection."""
        self._files.leave(connection)


def identity_of(connection: sqlite3.Connection) -> str:
    """Return the id of the store that a connection reads."""
    found = connection.execute("SELECT id FROM approval_identity").fetchone()
    return "" if found is None else str(found[0])
