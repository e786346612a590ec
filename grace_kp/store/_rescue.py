"""Rescue files: runs that a process could not write into a SQLite store before it ended, in private files beside the database.

Whoever opens the store for writing next takes them in. A file is removed when its records are in the store.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import secrets
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grace_kp.errors import GraceError, StoreError
from grace_kp.levels import RunStatus
from grace_kp.store._database import transaction
from grace_kp.store._rescue_file import PART, Damaged, checked, finish_part, open_file, read_header, read_records, write
from grace_kp.store._schema import insert_records
from grace_kp.store._unfinished import NOBODY
from grace_kp.trace import refuse_planted_link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.store._backlog import Backlog
    from grace_kp.store._outage import Outage
    from grace_kp.store._pending import Pending
    from grace_kp.store._pipeline import Pipeline
    from grace_kp.store._record import Record

    Report = tuple[str, bytes]
    """The name of a process, and what it could not record."""

TAKEN = "rescued "
"""Beginning of the names of files in the table `state`: their records are in the store."""
_log = logging.getLogger("grace_kp.store")


class CannotOpen(StoreError):
    """A store cannot be opened, but its folder may take what a process must not lose.

    Args:
        path: the file.
        error: the reason.
        rescue: keeps records beside the file, as the method of an open store does.
    """

    def __init__(self, path: Path, error: Exception, rescue: Callable[..., Path]) -> None:
        super().__init__(str(error) if isinstance(error, StoreError) else f"store {path}: cannot be opened: {error}")
        self.rescue = rescue
        self.sqlite_errorcode: int = getattr(error, "sqlite_errorcode", 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits beside a database."""

    files: int = 0
    runs: int = 0
    unusable: tuple[str, ...] = ()
    """Files that cannot be taken in, with the reasons."""


def rescue_pending(
    keep: Callable[..., Path],
    pending: Pending,
    ended: list[str],
    pipeline: Pipeline,
    backlog: Backlog,
    outage: Outage,
) -> bool:
    """Keep the records that wait, and take them off the list; return whether there were any and it worked.

    Args:
        keep: the method `rescue` of a store.
        pending: the records.
        ended: runs whose journals the store still has to delete.
        pipeline: states what the process could not record.
        backlog: counts and reports the rescued runs.
        outage: reports why they cannot be rescued.
    """
    records, entries = pending.batch(None)
    done = list(ended)
    if not records and not done and backlog.unstored_report is None:
        return False
    try:
        place = keep(records, done, report=backlog.take_report(pipeline))
    except (OSError, sqlite3.Error, GraceError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        pending.failed()
        outage.report(f"{outage.last_error}; and no file beside it can be written: {error}")
        return False
    backlog.rescue(
        len({record.id for record in records}), place, outage.last_error
    )  # before a flush that waits goes on
    backlog.unstored_report = None
    for mark in pending.written(entries)[1]:
        mark.let_go()
    del ended[: len(done)]
    return True


class RescueFiles:
    """The rescue files of one database.

    Args:
        database: the path of the database, which may be a symbolic link.
        mode: permissions of a new file.
    """

    def __init__(self, database: Path, mode: int = 0o600) -> None:
        self._database, self._mode = database, mode
        self._reported: set[Path] = set()

    def write(
        self,
        records: Sequence[Record],
        ended: Sequence[str] = (),
        *,
        owner: str | None = None,
        report: Report | None = None,
    ) -> Path:
        """Write a rescue file, completely or not at all, and return its path.

        Args:
            records: the records, in the order in which they would have been stored.
            ended: runs whose journals are deleted.
            owner: the owner of these journals.
            report: what the process could not record.

        Raises:
            OSError: it cannot be written.
        """
        refuse_planted_link(self._database)
        real = Path(os.path.realpath(self._database))
        path = real.with_name(f"{real.name}.rescue-{secrets.token_hex(8)}")
        facts = {
            "at": time.time(),
            "owner": owner,
            "ended": list(ended),
            "report": None if report is None else [report[0], report[1].decode(errors="replace")],
        }
        write(path, facts, records, self._mode)
        return path

    def take_in(self, connection: sqlite3.Connection) -> str:
        """Store what waits beside the database, each file in one transaction, and remove the files.

        Returns:
            Which files stay, with the reasons; an empty text if none does. Each is reported once in the log.
        """
        for part in self._paths(parts=True):
            with contextlib.suppress(OSError, Damaged):
                finish_part(part)
        remaining: list[str] = []
        for path in self._paths():
            try:
                with transaction(connection):
                    _take_in(connection, path)
                path.unlink(missing_ok=True)
            except (Damaged, OSError, ValueError, TypeError, sqlite3.Error) as error:
                remaining.append(f"the runs in {path} cannot be stored and removed from there: {error}")
                if path not in self._reported:
                    self._reported.add(path)
                    _log.warning(remaining[-1])
                if isinstance(error, sqlite3.OperationalError):
                    break  # the others would wait for the same lock
        return "; ".join(remaining)

    def waiting(self) -> Waiting:
        """Return what waits beside the database."""
        files = runs = 0
        unusable: list[str] = []
        for path in self._paths():
            try:
                with open_file(path) as file:
                    runs += checked(file)["runs"]
                files += 1
            except FileNotFoundError:
                continue  # taken in meanwhile
            except (Damaged, OSError) as error:
                unusable.append(f"{path}: {error}")
        return Waiting(files, runs, tuple(unusable))

    def _paths(self, *, parts: bool = False) -> list[Path]:
        """Return the complete files, or the parts, the oldest first."""
        found: list[tuple[float, Path]] = []
        real = Path(os.path.realpath(self._database))
        for path in real.parent.glob(f"{glob.escape(real.name)}.rescue-*"):
            with contextlib.suppress(OSError):
                if (path.suffix == PART) == parts:
                    found.append((path.lstat().st_mtime, path))
        return [path for _, path in sorted(found)]


def _take_in(connection: sqlite3.Connection, path: Path) -> None:
    """Store the records of a file, unless another process has done it, and note that, in the caller's transaction."""
    for (name,) in connection.execute("SELECT name FROM state WHERE name GLOB ?", (f"{TAKEN}*",)).fetchall():
        if not path.with_name(name.removeprefix(TAKEN)).exists():
            connection.execute("DELETE FROM state WHERE name = ?", (name,))
        elif name == TAKEN + path.name:
            return
    try:
        file = open_file(path)
    except FileNotFoundError:
        return  # taken in meanwhile
    with file:
        header = read_header(file)
        for record in read_records(file, header):
            _store(connection, record)
        try:
            owner, ended, report = header["owner"], header["ended"], header["report"]
            connection.executemany(
                "DELETE FROM journal WHERE run_id = ? AND owner = ?", [(run, owner) for run in ended]
            )
            if report is not None:
                row = (report[0], header["at"], report[1].encode())
                connection.execute("INSERT OR REPLACE INTO reports VALUES (?,?,?)", row)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise Damaged(f"its header is incomplete: {error!r}") from None
    connection.execute("INSERT INTO state VALUES (?, '')", (TAKEN + path.name,))


def _store(connection: sqlite3.Connection, record: Record) -> None:
    """Store a record of a rescue file, unless the store holds a better version of its run."""
    row = connection.execute(
        "SELECT status, length(data), (SELECT awaits FROM completions WHERE run_id = id) FROM traces WHERE id = ?",
        (record.id,),
    ).fetchone()
    if not (not record.completes if row is None else _is_better(record, *row)):
        return
    insert_records(connection, [record])
    connection.execute("DELETE FROM completions WHERE run_id = ?", (record.id,))
    if record.awaits:
        connection.execute("INSERT INTO completions VALUES (?,?,?)", (record.id, NOBODY, " ".join(record.awaits)))


def _is_better(record: Record, status: str, size: int, awaits: str | None) -> bool:
    """Return whether a record replaces the stored version of its run.

    Args:
        record: the record.
        status: the status of the stored version.
        size: its size in bytes.
        awaits: what it awaits; None if it is complete.
    """
    if record.completes:
        return awaits is not None
    if status == RunStatus.INTERRUPTED:
        return record.status != RunStatus.INTERRUPTED
    if status == RunStatus.SUSPENDED:  # a later version continues an earlier document
        return record.status not in {RunStatus.SUSPENDED, RunStatus.INTERRUPTED} or len(record.data) > size
    return awaits is not None and not record.awaits
