"""Files with traces or reports about them: private to their owner, and written completely or not at all.

A new file gets the mode of the setting `file_mode` (0600 by default), whatever the umask. An existing file keeps its mode, except for
databases (`keep_private`).
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import contextmanager, suppress
from errno import EACCES
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIXES = ("", "-wal", "-shm", "-journal")
_log = logging.getLogger("grace_kp.store")


def default_mode() -> int:
    """Return the setting `file_mode` as a number."""
    from grace_kp.settings import Settings

    return Settings.load().permissions


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` when the block succeeds; after an exception `path` is unchanged.

    A link stays a link; its target is replaced. A link of another user in a shared folder is refused.
    """
    asked = Path(path)
    wanted = default_mode() if mode is None else mode
    target: Path | None = None
    temporary: Path | None = None
    try:
        refuse_planted_link(asked)
        target = Path(os.path.realpath(asked))
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as device:
                yield device
            return
        temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else wanted)
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        if error.errno is None or error.filename not in {None, str(asked), str(target), str(temporary)}:
            raise  # the error is not about this file
        raise OSError(error.errno, error.strerror or str(error), str(asked)) from None


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a string as UTF-8, as `whole_file` does."""
    with whole_file(path) as file:
        file.write(text.encode())


def refuse_planted_link(path: Path) -> None:
    """Check a path before writing to it."""
    try:
        link = path.lstat()
        folder = path.parent.stat()
    except OSError:
        return  # not a link
    shared = folder.st_mode & stat.S_IWOTH and folder.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(link.st_mode) and shared and link.st_uid not in {_user(), folder.st_uid}:
        raise PermissionError(EACCES, "is a link that another user has put into a shared folder", str(path))


def keep_private(path: Path, mode: int) -> None:
    """Create a database with this mode, or remove further permissions from an existing one and its companion files.

    Files of other users are left alone, with a warning in the log.
    """
    from grace_kp.settings import check_database

    refuse_planted_link(path)
    check_database(path)
    if not path.exists():
        handle = os.open(path, os.O_CREAT | os.O_RDWR, mode & 0o600)
        try:
            os.fchmod(handle, mode) if hasattr(os, "fchmod") else None
        finally:
            os.close(handle)
        return
    for suffix in _SUFFIXES:
        companion = path.with_name(path.name + suffix)
        try:
            found = companion.stat()
        except OSError:
            continue
        now = stat.S_IMODE(found.st_mode)
        if os.name != "posix" or not stat.S_ISREG(found.st_mode) or not now & ~mode:
            continue
        problem, wanted = "belongs to another user", now & mode
        if found.st_uid == _user():
            try:
                companion.chmod(wanted)
                allows = "the setting file_mode allows more"
                _log.warning(
                    "%s was open to other users (mode %04o) and is %04o now; %s", companion, now, wanted, allows
                )
                continue
            except OSError as error:
                problem = f"cannot be closed to them: {error}"
        _log.warning("%s is open to other users (mode %04o) and %s", companion, now, problem)


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else -1
