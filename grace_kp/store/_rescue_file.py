"""The format of a rescue file: a header, a line for each record, and a digest, as lines of JSON.

A file gets its name when it is complete. Until then it is a part, which its process keeps locked.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
import os
import stat
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from grace_kp.store._record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import IO

FORMAT, VERSION = "grace_kp rescue", 1
PART = ".part"
_log = logging.getLogger("grace_kp.store")


class Damaged(Exception):
    """A rescue file cannot be used. The message is the reason."""


def write(path: Path, facts: dict[str, Any], records: Sequence[Record], mode: int) -> None:
    """Write a file completely, or not at all.

    Args:
        path: the file, which does not exist.
        facts: further fields of the header.
        records: the records, in the order in which they would have been stored.
        mode: permissions of the file.

    Raises:
        OSError: it cannot be written.
    """
    runs = len({record.id for record in records})
    header = {"format": FORMAT, "version": VERSION, "records": len(records), "runs": runs, **facts}
    part = path.with_name(path.name + PART)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            _lock(file, wait=True)
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
        part.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _fields_of(record: Record) -> dict[str, Any]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    try:
        values["data"] = record.data.decode()
    except UnicodeDecodeError:
        values["data"] = {"base64": base64.b64encode(record.data).decode()}
    return values


def _record_of(values: dict[str, Any]) -> Record:
    data = values["data"]
    values["data"] = data.encode() if isinstance(data, str) else base64.b64decode(data["base64"], validate=True)
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
    """Read a whole file and return its header.

    Raises:
        Damaged: it cannot be taken in.
    """
    header = read_header(file)
    for _ in read_records(file, header):
        pass
    return header


def read_header(file: IO[bytes]) -> dict[str, Any]:
    """Return the header at the beginning of a file.

    Raises:
        Damaged: the file cannot be used.
    """
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
    """Yield the records after the header.

    Raises:
        Damaged: the file ends early, or was changed. What was yielded before is of no use.
    """
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
    """Open a rescue file for reading.

    Raises:
        Damaged: it is no regular file, or another user has put it into a shared folder.
        OSError: it cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    file = os.fdopen(handle, "rb")
    found, folder = os.fstat(handle), path.parent.stat()
    is_shared = folder.st_mode & stat.S_IWOTH and folder.st_mode & stat.S_ISVTX
    if stat.S_ISREG(found.st_mode) and not (is_shared and found.st_uid not in {os.geteuid(), folder.st_uid}):
        return file
    file.close()
    raise Damaged("it is no regular file, or another user has put it into a shared folder")


def finish_part(part: Path) -> None:
    """Give a part its name if the process that wrote it died right before that, and remove one that is not complete."""
    with open_file(part) as file:
        if not os.fstat(file.fileno()).st_size or not _lock(file, wait=False):
            return  # a process is writing it, or is about to
        try:
            checked(file)
        except Damaged:
            part.unlink()
            _log.warning("%s was removed: the process that wrote it was killed before it had written all runs", part)
        else:
            part.rename(part.with_suffix(""))


def _lock(file: IO[bytes], *, wait: bool) -> bool:
    """Lock a part until it is closed; return whether that worked. Elsewhere than on POSIX an open file cannot be removed anyway."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return wait  # a file system without locks
    return True
