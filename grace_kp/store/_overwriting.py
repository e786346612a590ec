"""Deleted contents in a SQLite file and its index: the marks that there are some, and rewriting or removing the files."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from grace_kp.store._database import Connection, DatabaseError, rewrite
from grace_kp.store._schema import PUT_STATE

if TYPE_CHECKING:
    from pathlib import Path

    from grace_kp.store._catalog_erasure import HeldIndex


def mark_unclean(connection: Connection) -> None:
    """Note, in the transaction that deletes, that the file holds deleted contents until `overwrite` has succeeded."""
    connection.execute(PUT_STATE, ("unclean", secrets.token_hex(8)))


def mark_index(connection: Connection) -> str:
    """Note, in the transaction that deletes runs, that an index beside the file holds contents of them until `forget_index` has succeeded.

    Returns:
        The mark; empty if an earlier deletion has left its own, so that the index holds contents of runs that nobody knows any more.
    """
    earlier = connection.execute("SELECT 1 FROM state WHERE name = 'unclean_index'").fetchone()
    mark = secrets.token_hex(8)
    connection.execute(PUT_STATE, ("unclean_index", mark))
    return "" if earlier else mark


def forget_index(connection: Connection, path: Path, index: HeldIndex | None = None) -> str:
    """Erase deleted runs from the index of the file, or remove it where that fails; whoever serves it builds it again.

    Args:
        connection: the connection to the file.
        path: the file.
        index: the index, held since before the deletion. None to remove it.

    Returns:
        Why it could not be removed and what to do; an empty text if no deleted contents remain.
    """
    mark = connection.execute("SELECT value FROM state WHERE name = 'unclean_index'").fetchone()
    if index is not None:
        is_erased = bool(index.mark) and index.erase()
        index.release()
        if is_erased:
            # Another process may have deleted meanwhile. Its mark is another and stays.
            connection.execute("DELETE FROM state WHERE name = 'unclean_index' AND value = ?", (index.mark,))
            return ""
    if mark is None:
        return ""
    from grace_kp.store._catalog_files import remove_index  # only where runs were deleted

    problem = remove_index(path)
    if not problem:
        connection.execute("DELETE FROM state WHERE name = 'unclean_index' AND value = ?", mark)
    return problem


def overwrite(connection: Connection, path: Path) -> str:
    """Rewrite an unclean file without its free space and empty the write-ahead log.

    Zeroing deleted rows (`secure_delete`) is not enough: pages that were rebuilt keep copies of rows that have moved.

    Returns:
        Why the file could not be cleaned and what to do; an empty text if no deleted contents remain.
    """
    mark = connection.execute("SELECT value FROM state WHERE name = 'unclean'").fetchone()
    if mark is None:
        return ""
    again = "delete again, for example `grace-kp traces delete --older-than 100000d`, when"
    try:
        is_rewritten = rewrite(connection)
    except DatabaseError as error:
        return f"{path} could not be rewritten ({error}) and may hold deleted contents; {again} that can be done"
    if not is_rewritten:
        return f"another connection reads {path}, so it and {path.name}-wal still hold deleted contents; {again} it has finished"
    # Another process may have deleted since the file was rewritten. Its mark is another and stays.
    connection.execute("DELETE FROM state WHERE name = 'unclean' AND value = ?", mark)
    return ""
