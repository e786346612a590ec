"""Rescue files: runs that a process could not store before it ended, as lines of JSON in private files beside the database.

A file holds a header, a line for each record, and a digest. Whoever opens the store for writing next takes the files in and removes them.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import stat
import time
from base64 import b64decode
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.levels import RunStatus
from grace_kp.store._database import transaction
from grace_kp.store._leases import NOBODY
from grace_kp.store._record import Record
from grace_kp.store._schema import insert_records
from grace_kp.trace import refuse_planted_link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import IO

    Report = tuple[str, bytes]
    """The name of a process, and what it could not record."""


FORMAT, VERSION = "grace_kp rescue", 1
_log = logging.getLogger("grace_kp.store")


class Damaged(Exception):
    """A rescue file cannot be used. The message is the reason."""


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
            Which files stay, with the reasons; empty if none does. Each is reported once in the log.
        """
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

    def _paths(self) -> list[Path]:
        """Return the files, the oldest first."""
        found: list[tuple[float, Path]] = []
        real = Path(os.path.realpath(self._database))
        for path in real.parent.glob(f"{glob.escape(real.name)}.rescue-*"):
            with contextlib.suppress(OSError):
                found.append((path.lstat().st_mtime, path))
        return [path for _, path in sorted(found)]


def _take_in(connection: sqlite3.Connection, path: Path) -> None:
    """Store the records of a file, in the caller's transaction.

    A process may die before it removes the file. A later one reads it again, and finds all versions stored. A deletion begins by doing so:
    otherwise the deleted run would come back.
    """
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
        size: its size in bytes.
    """
    if record.completes:
        return awaits is not None
    if status == RunStatus.INTERRUPTED:
        return record.status != RunStatus.INTERRUPTED
    if status == RunStatus.SUSPENDED:  # a later version continues an earlier document
        return record.status not in {RunStatus.SUSPENDED, RunStatus.INTERRUPTED} or len(record.data) > size
    return awaits is not None and not record.awaits


def write(path: Path, facts: dict[str, Any], records: Sequence[Record], mode: int) -> None:
    """Write a file completely, or not at all."""
    runs = len({record.id for record in records})
    header = {"format": FORMAT, "version": VERSION, "records": len(records), "runs": runs, **facts}
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            digest = hashlib.sha256()
            for line in (header, *map(_fields_of, records)):
                data = _to_line(line)
                digest.update(data)
                file.write(data)
            file.write(_to_line({"sha256": digest.hexdigest()}))
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _fields_of(record: Record) -> dict[str, Any]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    return {**values, "data": record.data.decode("utf-8", "surrogateescape")}  # whatever the bytes are, they come back


def _record_of(values: dict[str, Any]) -> Record:
    data = values["data"]
    # Earlier versions wrote bytes that are not UTF-8 in base64.
    is_text = isinstance(data, str)
    values["data"] = data.encode("utf-8", "surrogateescape") if is_text else b64decode(data["base64"], validate=True)
    for name in ("scores", "attributes"):
        values[name] = tuple(tuple(row) for row in values[name])
    values["awaits"] = tuple(values["awaits"])
    return Record(**values)


def _to_line(values: dict[str, Any]) -> bytes:
    # Half a surrogate pair passes, so that each text comes back as it was.
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _from_line(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise Damaged("it is cut off")
    try:
        values = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise Damaged("its content is not that of a rescue file")
    return values


def checked(file: IO[bytes]) -> dict[str, Any]:
    """Read a whole file and return its header."""
    header = read_header(file)
    for _ in read_records(file, header):
        pass
    return header


def read_header(file: IO[bytes]) -> dict[str, Any]:
    """Return the header at the beginning of a file."""
    line = file.readline()
    header = _from_line(line)
    if header.get("format") != FORMAT:
        raise Damaged("its content is not that of a rescue file")
    if header.get("version") != VERSION:
        raise Damaged(f"its version is {header.get('version')!r:.40}, and this grace_kp knows {VERSION}")
    if not all(isinstance(header.get(name), int) for name in ("records", "runs")):
        raise Damaged("its header is incomplete")
    return {**header, "digest": hashlib.sha256(line)}


def read_records(file: IO[bytes], header: dict[str, Any]) -> Iterator[Record]:
    """Yield the records after the header."""
    digest = header["digest"]
    try:
        for _ in range(header["records"]):
            line = file.readline()
            digest.update(line)
            yield _record_of(_from_line(line))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Damaged(f"a record in it cannot be read: {error!r:.100}") from None
    if _from_line(file.readline()).get("sha256") != digest.hexdigest() or file.read(1):
        raise Damaged("its content was changed after it had been written")


def open_file(path: Path) -> IO[bytes]:
    """Open a rescue file for reading."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    file = os.fdopen(handle, "rb")
    found, folder = os.fstat(handle), path.parent.stat()
    is_shared = folder.st_mode & stat.S_IWOTH and folder.st_mode & stat.S_ISVTX
    if stat.S_ISREG(found.st_mode) and not (is_shared and found.st_uid not in {os.geteuid(), folder.st_uid}):
        return file
    file.close()
    raise Damaged("it is no regular file, or another user has put it into a shared folder")
