"""Faults of the place where runs are stored: a full disk, a lock, a file that disappears, more runs than can be stored."""

from __future__ import annotations

import errno
import resource
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

from fault_suite.scenarios import Scenario

if TYPE_CHECKING:
    from pathlib import Path

    from fault_suite.stage import Stage

DISK_MB = 4
LOCKER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
"""


class Disk:
    """A small disk under the store: a file system in memory where the program may mount one, else a limit on the size of files."""

    def __init__(self, stage: Stage) -> None:
        self._filler = stage.data / "filler"
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(stage.data)],
            capture_output=True,
            check=False,
        )
        self.is_mounted = mounted.returncode == 0
        stage.state(disk="tmpfs" if self.is_mounted else "RLIMIT_FSIZE")

    def fill(self) -> None:
        if not self.is_mounted:
            largest = max((path.stat().st_size for path in self._filler.parent.iterdir()), default=0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
            return
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 10, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self._filler.unlink(missing_ok=True)


def full_for_a_while(stage: Stage) -> None:
    disk = Disk(stage)
    stage.runs()
    stage.flush()
    disk.fill()
    stage.runs(200)
    stage.flush(1.0)
    disk.free()
    stage.flush()


def full_until_the_exit(stage: Stage) -> None:
    disk = Disk(stage)
    stage.runs()
    stage.flush()
    disk.fill()
    stage.runs(200)
    stage.flush(1.0)


def full_from_the_beginning(stage: Stage) -> None:
    disk = Disk(stage)
    disk.fill()
    stage.runs()
    stage.flush(1.0)


def locked(stage: Stage, seconds: float) -> None:
    """Return once another process has locked the database; it lets go after so many seconds."""
    command = [sys.executable, "-I", "-S", "-c", LOCKER, str(stage.path), str(seconds)]
    locker = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert locker.stdout is not None
    locker.stdout.readline()


def locked_while_running(stage: Stage) -> None:
    stage.runs()
    stage.flush()
    locked(stage, 3.0)
    stage.runs(100, steady=True)
    stage.flush(0.5)
    stage.flush(20.0)


def locked_for_a_second_at_exit(stage: Stage) -> None:
    stage.runs()
    stage.flush()
    locked(stage, 1.0)
    stage.runs(100)


def locked_for_long_at_exit(stage: Stage) -> None:
    stage.runs()
    stage.flush()
    locked(stage, 15.0)
    stage.runs(100)


def locked_at_the_first_run(stage: Stage) -> None:
    sqlite3.connect(stage.path).close()
    locked(stage, 3.0)
    stage.runs(100, steady=True)
    stage.flush(20.0)


def _destroyed(stage: Stage, runs: int = 50) -> None:
    """State that the runs up to now were stored and then removed by somebody else."""
    stage.state(destroyed=runs)


def _after(stage: Stage) -> None:
    stage.runs(100, steady=True)
    stage.flush(5.0)


def _before(stage: Stage) -> None:
    stage.runs()
    stage.flush()


def _files(stage: Stage) -> list[Path]:
    return [path for path in stage.data.iterdir() if path.name.startswith("store.db")]


def deleted(stage: Stage) -> None:
    _before(stage)
    for path in _files(stage):
        path.unlink()
    _destroyed(stage)
    _after(stage)


def renamed(stage: Stage) -> None:
    _before(stage)
    for path in _files(stage):
        path.rename(stage.folder / path.name)
    _after(stage)


def folder_removed(stage: Stage) -> None:
    _before(stage)
    shutil.rmtree(stage.data)
    _destroyed(stage)
    _after(stage)


def replaced(stage: Stage) -> None:
    _before(stage)
    other = stage.folder / "other"
    with sqlite3.connect(stage.path) as source, sqlite3.connect(other) as copy:
        source.backup(copy)
    other.rename(stage.path)
    _after(stage)


def deleted_at_exit(stage: Stage) -> None:
    _before(stage)
    for path in _files(stage):
        path.unlink()
    _destroyed(stage)
    stage.runs(100)


def more_than_the_disk_takes(stage: Stage) -> None:
    stage.runs(20_000)
    stage.flush(120.0)


def more_than_memory_takes(stage: Stage) -> None:
    stage.runs()
    stage.flush()
    locked(stage, 4.0)
    stage.runs(4_000)
    stage.flush(20.0)


SCENARIOS = {
    "the disk is full for a while": Scenario(full_for_a_while),
    "the disk is full until the exit": Scenario(full_until_the_exit),
    "the disk is full from the beginning": Scenario(full_from_the_beginning),
    "another process locks the file for 3 s": Scenario(locked_while_running),
    "the file is locked at the first run, for 3 s": Scenario(locked_at_the_first_run),
    "the file is locked for 1 s at exit": Scenario(locked_for_a_second_at_exit),
    "the file is locked for 15 s at exit": Scenario(locked_for_long_at_exit),
    "the file is deleted": Scenario(deleted),
    "the file is deleted just before the exit": Scenario(deleted_at_exit),
    "the file is renamed": Scenario(renamed),
    "its folder is removed": Scenario(folder_removed),
    "the file is replaced by a copy": Scenario(replaced),
    "20,000 runs as fast as possible": Scenario(more_than_the_disk_takes),
    "more runs than memory may hold, the file locked": Scenario(
        more_than_memory_takes, settings=(("max_pending_mb", 1),)
    ),
}
