"""How many runs a process has ended and how many of these are accounted for, in a small file that outlives a kill.

The file stands beside the database and is mapped into memory, so that counting a run is one write to memory. The kernel keeps the page
when the process is killed. The process holds a lock on the file for as long as it lives. Whoever opens the database for writing later and
finds the lock free reports the difference, and removes the file. A process that ends by itself removes its own.

Every race makes the difference smaller, never larger: threads that end runs at the same moment may leave the number of one of them.
Where the system has no `fcntl`, as on Windows, or the file system has no locks, there is no tally.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import re
import sqlite3
import stat
import threading
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import Resident, report_loss, watch
from grace_kp.errors import StoreError
from grace_kp.levels import RunStatus
from grace_kp.trace import refuse_planted_link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grace_kp.store._record import Record

    Cells = Any
    """Numbers that are read and written by their place."""

try:
    import fcntl
except ImportError:
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

BYTES = 4_096
MAGIC = int.from_bytes(b"gracekp1", "big")
CELLS = 11
FORMAT, PID, BOOT, SEEN, EXITED, ENDED, STORED, BATCH, SKIPPED, REPORTED, ID_BYTES = range(CELLS)
"""The cells of the file, numbers of eight bytes: its format; the process, the start of the machine, when it last wrote (seconds since the
epoch), whether it ended by itself; how many runs ended; of these, how many are stored, will be stored with the current batch, are not to be
stored, or were reported as dropped; the length of the id of a run in the current batch."""
ID_AT, MAX_ID_BYTES = 128, 512
ATTEMPTS = 3
_NAME = re.compile(r".*\.tally-[0-9a-f]{16}", re.DOTALL)
_log = logging.getLogger("grace_kp.store")


class _First:
    """Stands for the cells until the first run ends, whose count opens the file."""

    def __init__(self, begin: Callable[[int], None]) -> None:
        self._begin = begin

    def __setitem__(self, cell: int, number: int) -> None:
        if cell == ENDED:
            self._begin(number)


class Tally(Resident):
    """The tally of one writer. A thread that ends a run counts it by `tally.cells[ENDED] = next(tally.numbers)`.

    A store without a database has none. The file has the permissions `mode`, 0600 when None.
    """

    cells: Any
    numbers: Iterator[int]

    def __init__(self, database: Path | None, mode: int | None = None) -> None:
        self._database, self._mode = database if HAS_LOCKS else None, mode or 0o600
        self._path: Path | None = None
        self._opened: tuple[int, int] | None = None
        self._map: mmap.mmap | None = None
        self._begin_process()
        watch(self)

    def _begin_process(self) -> None:
        self.lock = threading.RLock()
        self._pid = os.getpid()
        self._stored = self._skipped = self._reported = self._batch = 0
        self._early: set[str] = set()
        self.numbers = count(1)
        self.cells = [0] * CELLS if self._database is None else _First(self._begin)

    def fork_locks(self) -> Iterator[Any]:
        """Yield the lock, so that no file is half open in the child."""
        yield self.lock

    def after_fork(self) -> None:
        """Begin a tally of its own in the child. Without its map the child no longer shares the parent's lock."""
        cells, mapped = self.cells, self._map
        self._path = self._map = None
        self._begin_process()
        with contextlib.suppress(AttributeError, BufferError, ValueError):
            if isinstance(cells, memoryview):
                cells.release()
            mapped.close()  # type: ignore[union-attr]

    def at_exit(self) -> None:
        """Remove the file, after the writer has left. If runs are not accounted for, it stays for whoever opens the database next."""
        with self.lock:
            if not self.close():
                self.cells[EXITED] = 1

    def __del__(self) -> None:
        # At the end of the process the module's names are gone, and where the stack is full there is no room to close the file,
        # which then stays for whoever opens the database next. `suppress` would need room itself.
        try:  # noqa: SIM105
            self.close()
        except (OSError, TypeError, AttributeError, RecursionError):
            pass

    def begin(self) -> None:
        """Create the file, unless it was created before."""
        if type(self.cells) is _First:
            self._begin(0)

    def close(self) -> bool:
        """Remove the file and count no more, if every run is accounted for; return whether it is."""
        with self.lock:
            path, cells = self._path, self.cells
            if path is not None and self._pid == os.getpid():
                if _missing(cells, self._stored):
                    return False
                cells[FORMAT] = 0
                with contextlib.suppress(OSError):
                    if _identity(path) == self._opened:
                        path.unlink()
            self._path = self._map = self._database = None
            self.cells = [0] * CELLS  # the map goes when no thread uses it any more
            return True

    def begin_batch(self, records: Sequence[Record]) -> None:
        """Note which records of this process's runs are being stored, in one transaction."""
        ids = [record.id for record in records if not record.completes and record.status != RunStatus.INTERRUPTED]
        own = [name for name in ids if name not in self._early]
        self._early.difference_update(ids)
        self._batch = len(own)
        mapped = self._map
        if not own or mapped is None:
            return
        name = own[0].encode("utf-8", "surrogatepass")
        name = name if len(name) <= MAX_ID_BYTES else b""
        mapped[ID_AT : ID_AT + len(name)] = name
        self.cells[ID_BYTES] = len(name)
        self.cells[BATCH] = self._stored + self._batch

    def stored_early(self, ids: Iterable[str]) -> None:
        """Note runs that are stored before they end, because others may see that they wait for an answer."""
        new = {*ids} - self._early
        self._early |= new
        self._stored += len(new)
        self.cells[STORED] = self._stored

    def end_batch(self) -> None:
        """Note that they are stored."""
        self._stored, self._batch = self._stored + self._batch, 0
        self.cells[STORED] = self._stored
        self.cells[SEEN] = int(time.time())

    def skip(self) -> None:
        """Count a run that is not stored because it is sampled out, or because it cannot be finished, which was reported."""
        self._skipped += 1
        self.cells[SKIPPED] = self._skipped

    def reported(self, dropped: int) -> None:
        """Note how many dropped runs the store knows of."""
        if dropped != self._reported:
            self._reported = self.cells[REPORTED] = dropped

    def renew(self) -> None:
        """Create the file anew if it does not stand at its path any more."""
        with self.lock:
            if self._path is None or _identity(self._path) == self._opened:
                return
            old, self._path, self._map = self.cells, None, None
            old[FORMAT] = 0  # whoever finds it where it was moved to counts nothing
            self._begin(old[ENDED])

    def _begin(self, ended: int) -> None:
        with self.lock:
            if self._database is None or self._map is not None:
                return
            self.cells = [0] * CELLS  # for a run that ends in a finalizer meanwhile
            try:
                self._path, self._map = _create(self._database, self._mode)
            except (OSError, ValueError) as error:
                self._database = None
                _log.warning("runs that a kill loses are not counted: there is no tally: %s", error)
                return
            except RecursionError:  # the stack is full, so later
                self.cells = _First(self._begin)
                return
            self._opened = _identity(self._path)
            cells = memoryview(self._map).cast("Q")
            cells[PID], cells[BOOT], cells[SEEN], cells[ENDED] = os.getpid(), _boot(), int(time.time()), ended
            self.cells = cells
            cells[SKIPPED], cells[REPORTED] = self._skipped, self._reported
            cells[STORED] = cells[BATCH] = self._stored
            cells[FORMAT] = MAGIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What a process has left that ended before its runs were stored."""

    pid: int
    seen: str
    """When it last wrote, in UTC."""
    runs: int
    """Runs that had ended and are not in the store, or are there as interrupted."""
    was_killed: bool
    """Whether it did not end by itself."""
    is_certain: bool
    """Whether the machine has not stopped since. A machine that stops may have kept an older state of the file than of the database."""


class Tallies:
    """The tallies beside a database, as other processes find them."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._reported: set[Path] = set()

    def take(self, store: Any) -> None:
        """Report what dead processes have left, each once, on stderr and in the store, and remove their files."""
        for path in self._paths():
            try:
                with _locked(path, to_take=True) as cells:
                    if cells is None:
                        continue
                    killed = _read(cells, store)
                    if killed is not None:
                        _report(killed, path, store)
                    path.unlink()
            except (OSError, ValueError, StoreError, sqlite3.Error) as error:
                if path not in self._reported:
                    self._reported.add(path)
                    _log.warning("the tally %s is left alone: %s", path, error)

    def look(self, store: Any) -> tuple[int, list[Killed]]:
        """Return how many processes hold a tally, and what dead ones have left that is not reported yet. This changes nothing."""
        live, dead = 0, []
        for path in self._paths():
            with (
                contextlib.suppress(OSError, ValueError, StoreError, sqlite3.Error),
                _locked(path, to_take=False) as cells,
            ):
                if cells is None:
                    live += 1
                elif (killed := _read(cells, store)) is not None:
                    dead.append(killed)
        return live, dead

    def _paths(self) -> list[Path]:
        real = Path(os.path.realpath(self._database))
        start = f"{real.name}.tally-"
        with contextlib.suppress(OSError):
            names = os.listdir(real.parent) if HAS_LOCKS else ()  # noqa: PTH208 — of folders with many files
            return [real.with_name(name) for name in names if name.startswith(start) and _NAME.fullmatch(name)]
        return []


def _create(database: Path, mode: int) -> tuple[Path, mmap.mmap]:
    """Create the file of a tally, locked.

    Raises:
        OSError: it cannot be created, or the file system has no locks.
    """
    refuse_planted_link(database)
    real = Path(os.path.realpath(database))
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(ATTEMPTS):
        path = real.with_name(f"{real.name}.tally-{os.urandom(8).hex()}")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(handle, mode)
            # Written, because a page that the disk has no room for would end the process when it is used.
            if os.write(handle, bytes(BYTES)) != BYTES:
                raise OSError("the disk is full")
            found = os.fstat(handle)
            if _identity(path) == (found.st_dev, found.st_ino):
                return path, mmap.mmap(handle, BYTES)
        except BlockingIOError:  # somebody looks at the file that is not locked yet
            path.unlink(missing_ok=True)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)  # the map has its own, which keeps the lock
    raise OSError("other processes removed it before it was locked")


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.lstat()
        return found.st_dev, found.st_ino
    return None


@contextlib.contextmanager
def _locked(path: Path, *, to_take: bool) -> Iterator[Cells | None]:
    """Lock the tally of a dead process for the block and yield its cells; None where its process lives, or where it is gone."""
    access, lock = (os.O_RDWR, fcntl.LOCK_EX) if to_take else (os.O_RDONLY, fcntl.LOCK_SH)
    try:
        handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        found, folder = os.fstat(handle), path.parent.stat()
        is_shared = folder.st_mode & stat.S_IWOTH and folder.st_mode & stat.S_ISVTX
        if not stat.S_ISREG(found.st_mode) or (is_shared and found.st_uid not in {os.geteuid(), folder.st_uid}):
            raise ValueError("it is no regular file, or another user has put it into a shared folder")
        try:
            fcntl.flock(handle, lock | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        is_there = _identity(path) == (found.st_dev, found.st_ino)  # else another process has just taken it
        yield _cells_of(os.read(handle, BYTES + 1)) if is_there else None
    finally:
        os.close(handle)


def _cells_of(content: bytes) -> Cells:
    if not content:  # its process died while it created the file
        return [0] * CELLS
    if len(content) == BYTES:
        cells = memoryview(content).cast("Q")
        if cells[FORMAT] in {0, MAGIC}:
            return cells if cells[FORMAT] else [0] * CELLS
    raise ValueError("its content is not that of a tally of this version")


def _missing(cells: Cells, stored: int) -> int:
    return max(0, int(cells[ENDED]) - stored - int(cells[SKIPPED]) - int(cells[REPORTED]))


def _read(cells: Cells, store: Any) -> Killed | None:
    """Return what a dead process has left; None if all its runs are accounted for."""
    stored = int(cells[STORED])
    if cells[BATCH] > stored and _has_batch(cells, store):
        stored = int(cells[BATCH])
    runs = _missing(cells, stored)
    if not runs:
        return None
    seen = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cells[SEEN]))
    return Killed(
        pid=int(cells[PID]), seen=seen, runs=runs, was_killed=not cells[EXITED], is_certain=cells[BOOT] == _boot()
    )


def _has_batch(cells: Cells, store: Any) -> bool:
    """Return whether the last batch is in the store. A batch is stored as a whole, so one of its runs tells."""
    name = bytes(memoryview(cells).cast("B")[ID_AT : ID_AT + int(cells[ID_BYTES])])
    if not name:
        return True
    try:
        trace = store.get(name.decode("utf-8", "surrogatepass"))
    except ValueError:
        return True
    return trace is not None and trace.status != RunStatus.INTERRUPTED


def _report(killed: Killed, path: Path, store: Any) -> None:
    """Report runs as lost in the store, under the name of the tally so that they count once, and on stderr."""
    runs = "1 run" if killed.runs == 1 else f"{killed.runs:,} runs"
    how = "was killed, or ended without exit handlers," if killed.was_killed else "ended"
    if not killed.is_certain:
        report_loss(
            f"the machine has stopped since process {killed.pid} recorded ({killed.seen}): up to {runs} that had ended may be missing"
        )
        return
    report: dict[str, Any] = {"troubles": {}, "last_trouble": None, "dropped": 0, "lost": 0, "killed": killed.runs}
    store.report(path.name.rpartition("-")[2], json.dumps(report).encode())
    report_loss(
        f"process {killed.pid} {how} after {killed.seen}: {runs} that had ended there {'is' if killed.runs == 1 else 'are'} not in the store,"
        " or there as interrupted"
    )


def _boot() -> int:
    """Return a number for the time from one start of the machine to the next; 0 if the system has none."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8], 16) + 1
    return 0
