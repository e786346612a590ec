"""Rescue files: private files next to the database with runs that a process could not store before it ended, as lines of JSON.

A file holds a header and a line for each record. The next process that opens the store for writing takes the files in and removes them.
"""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import secrets
import stat
import time
from base64 import b64decode
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.levels import RunStatus
from grace_kp.store._database import DatabaseError, OperationalError, transaction
from grace_kp.store._leases import UNOWNED
from grace_kp.store._record import Record
from grace_kp.store._runs import PUT_REPORT, insert_records
from grace_kp.trace import refuse_planted_link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from grace_kp.store._database import Connection

    Report = tuple[str, bytes]
    """The name of a process, and what it could not record."""


FORMAT, VERSION = "grace_kp rescue", 2
READABLE = (1, 2)
_NOT_WHOLE = "it was cut off, or is not a rescue file"
"""Files of version 1 end with a digest, which is not read any more."""
_log = logging.getLogger("grace_kp.store")


class Damaged(Exception):
    """A rescue file cannot be used. The message is the reason."""


class CannotOpen(StoreError):
    """A store cannot be opened. `rescue` keeps records next to its file, like the method of an open store."""

    def __init__(self, path: Path, error: Exception, rescue: Callable[..., Path]) -> None:
        super().__init__(str(error) if isinstance(error, StoreError) else f"store {path}: cannot be opened: {error}")
        self.rescue = rescue
        self.sqlite_errorcode: int = getattr(error, "sqlite_errorcode", 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rescue files next to a database, and the runs in them."""

    files: int = 0
    runs: int = 0
    unusable: tuple[str, ...] = ()
    """Files that cannot be taken in, with the reasons."""


class RescueFiles:
    """The rescue files of one database, whose path may be a symbolic link."""

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
        """Write a rescue file, completely or not at all, and return its path; `owner` is that of the journals of the runs in `ended`."""
        refuse_planted_link(self._database)
        real = Path(os.path.realpath(self._database))
        path = real.with_name(f"{real.name}.rescue-{secrets.token_hex(8)}")
        header = {
            "format": FORMAT,
            "version": VERSION,
            "records": len(records),
            "runs": len({record.id for record in records}),
            "at": time.time(),
            "owner": owner,
            "ended": list(ended),
            "report": None if report is None else [report[0], report[1].decode(errors="replace")],
        }
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), self._mode)
                file.writelines(map(_to_line, (header, *map(_columns_of, records))))
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise
        return path

    def take_in(self, connection: Connection) -> str:
        """Store the records of the rescue files, each file in one transaction, and remove the files.

        Return which files stay, with the reasons. Each is reported once in the log.
        """
        remaining: list[str] = []
        for path in self._paths():
            try:
                with transaction(connection):
                    _take_in(connection, path)
                path.unlink(missing_ok=True)
            except FileNotFoundError:
                continue  # taken in meanwhile
            except (Damaged, OSError, ValueError, TypeError, LookupError, AttributeError, DatabaseError) as error:
                remaining.append(f"the runs in {path} cannot be stored and removed from there: {error}")
                if path not in self._reported:
                    self._reported.add(path)
                    _log.warning(remaining[-1])
                if isinstance(error, OperationalError):
                    break  # the others would wait for the same lock
        return "; ".join(remaining)

    def waiting(self) -> Waiting:
        """Return the number of files and runs that wait to be stored."""
        files = runs = 0
        unusable: list[str] = []
        for path in self._paths():
            try:
                files, runs = files + 1, runs + len({record.id for record in read(path)[1]})
            except FileNotFoundError:
                continue  # taken in meanwhile
            except (Damaged, OSError) as error:
                unusable.append(f"{path}: {error}")
        return Waiting(files, runs, tuple(unusable))

    def _paths(self) -> list[Path]:
        found: list[tuple[float, Path]] = []
        real = Path(os.path.realpath(self._database))
        for path in real.parent.glob(f"{glob.escape(real.name)}.rescue-*"):
            with contextlib.suppress(OSError):
                found.append((path.lstat().st_mtime, path))
        return [path for _, path in sorted(found)]


def _take_in(connection: Connection, path: Path) -> None:
    """Store the records of a file, in the caller's transaction.

    A process may die before it removes the file. A later one reads it again, and finds all versions stored. A deletion begins by doing so:
    otherwise the deleted run would come back.
    """
    header, records = read(path)
    for record in records:
        if not _is_better(connection, record):
            continue
        insert_records(connection, [record])
        connection.execute("DELETE FROM completions WHERE run_id = ?", (record.id,))
        if record.awaits:
            connection.execute("INSERT INTO completions VALUES (?,?,?)", (record.id, UNOWNED, " ".join(record.awaits)))
    connection.executemany(
        "DELETE FROM journal WHERE run_id = ? AND owner = ?", [(run, header["owner"]) for run in header["ended"]]
    )
    if header["report"] is not None:
        process, data = header["report"]
        connection.execute(PUT_REPORT, (process, header["at"], data.encode()))


def _is_better(connection: Connection, record: Record) -> bool:
    """Return whether the store holds no version of a run, or one that this record replaces."""
    stored = connection.execute(
        "SELECT status, length(data), (SELECT awaits FROM completions WHERE run_id = id) FROM traces WHERE id = ?",
        (record.id,),
    ).fetchone()
    if stored is None:
        return not record.completes
    status, size, awaits = stored
    if record.completes:
        return awaits is not None
    if status == RunStatus.INTERRUPTED:
        return record.status != RunStatus.INTERRUPTED
    if status == RunStatus.SUSPENDED:  # a later version continues an earlier document
        return record.status not in {RunStatus.SUSPENDED, RunStatus.INTERRUPTED} or len(record.data) > size
    return awaits is not None and not record.awaits


def _columns_of(record: Record) -> dict[str, Any]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    return {**values, "data": record.data.decode("utf-8", "surrogateescape")}  # whatever the bytes are, they come back


def _to_line(values: dict[str, Any]) -> bytes:
    # Half a surrogate pair passes, so that reading returns the same string.
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _record_of(line: bytes) -> Record:
    values = json.loads(line)
    data = values["data"]
    # Earlier versions wrote bytes that are not UTF-8 in base64.
    is_text = isinstance(data, str)
    values["data"] = data.encode("utf-8", "surrogateescape") if is_text else b64decode(data["base64"], validate=True)
    for name in ("scores", "attributes"):
        values[name] = tuple(tuple(row) for row in values[name])
    values["awaits"] = tuple(values["awaits"])
    return Record(**values)


def read(path: Path) -> tuple[dict[str, Any], list[Record]]:
    with open_file(path) as file:
        try:
            header = json.loads(file.readline())
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise Damaged(_NOT_WHOLE)
            if header.get("version") not in READABLE:
                raise Damaged(f"its version is {header.get('version')!r:.40}, and this grace_kp knows {VERSION}")
            if not header.keys() >= {"at", "owner", "ended", "report", "records"}:
                raise Damaged("its header is incomplete")
            return header, [_record_of(file.readline()) for _ in range(header["records"])]
        except ValueError:
            raise Damaged(_NOT_WHOLE) from None
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            raise Damaged(f"a record in it cannot be read: {type(error).__name__}: {error!s:.100}") from None


def open_file(path: Path) -> IO[bytes]:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    file = os.fdopen(handle, "rb")
    found, folder = os.fstat(handle), path.parent.stat()
    is_shared = folder.st_mode & stat.S_IWOTH and folder.st_mode & stat.S_ISVTX
    if stat.S_ISREG(found.st_mode) and not (is_shared and found.st_uid not in {os.geteuid(), folder.st_uid}):
        return file
    file.close()
    raise Damaged("it is not a regular file, or another user has put it into a shared folder")
