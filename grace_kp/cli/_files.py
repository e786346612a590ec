"""The traces of input files for commands that process them; unreadable parts are reported briefly and counted."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from grace_kp.cli._output import progress, say_error
from grace_kp.errors import InvalidRecord
from grace_kp.trace import read_traces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.trace import ReasoningTrace

REPORTED = 5
"""Unreadable places of a file that are reported individually."""
GIVE_UP = 200
"""Unreadable places from the beginning of a file after which the file counts as another kind of file."""


class Unreadable:
    """Number of traces that could not be read."""

    def __init__(self) -> None:
        self.count = 0


def readable(
    files: list[str], what: str, unreadable: Unreadable, *, domain: str | None = None
) -> Iterator[ReasoningTrace]:
    """Yield the traces of all files in order. Unreadable parts are reported on standard error and counted.

    Args:
        files: paths; `-` is standard input.
        what: name of the work, for the progress bar.
        unreadable: counts the traces that could not be read.
        domain: task domain for runs without one.
    """
    work = _Position(files)
    traces = (trace for name in files for trace in _File(name, unreadable).traces(work, domain))
    yield from progress(traces, what, total=work.total, position=work.bytes_read if work.total else None)


class _Position:
    """Number of bytes read from all files."""

    def __init__(self, files: list[str]) -> None:
        paths = [Path(name) for name in files]
        known = all(name != "-" and path.is_file() for name, path in zip(files, paths, strict=True))
        self.total = sum(path.stat().st_size for path in paths) if known else None
        self._read = 0

    def add(self, count: int) -> None:
        self._read += count

    def bytes_read(self) -> int:
        return self._read


class _Counted:
    """A file that reports the number of bytes read to a position."""

    def __init__(self, file: IO[bytes], work: _Position) -> None:
        self._file = file
        self._work = work
        self.name = file.name

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._work.add(len(data))
        return data

    def fileno(self) -> int:
        return self._file.fileno()


class _File:
    """A file with its problems."""

    def __init__(self, name: str, unreadable: Unreadable) -> None:
        self._name = name
        self._unreadable = unreadable
        self._problems = 0
        self._waiting: list[InvalidRecord] = []
        self._any = False

    def traces(self, work: _Position, domain: str | None) -> Iterator[ReasoningTrace]:
        try:
            for item in self._items(work, domain):
                if not isinstance(item, InvalidRecord):
                    self._found()
                    yield item
                elif self._report(item):
                    break
        except InvalidRecord as error:
            self._report(error)
        self._finish()

    def _items(self, work: _Position, domain: str | None) -> Iterator[ReasoningTrace | InvalidRecord]:
        try:
            file: Any = None if self._name == "-" else Path(self._name).open("rb")  # noqa: SIM115 — closed below
        except (OSError, ValueError):
            file = None  # `read_traces` says why
        if file is None:
            yield from read_traces(self._name, domain=domain)
            return
        with file:
            yield from read_traces(_Counted(file, work), name=self._name, domain=domain)  # type: ignore[arg-type]

    def _found(self) -> None:
        """Note that a trace was read, and report the earlier problems: the file is of the right kind."""
        if not self._any:
            self._any = True
            for problem in self._waiting:
                say_error(problem)
            self._waiting.clear()

    def _report(self, problem: InvalidRecord) -> bool:
        """Note a problem; return True if the file is of another kind."""
        self._problems += 1
        self._unreadable.count += 1
        if self._problems <= REPORTED:
            if self._any:
                say_error(problem)
            else:
                self._waiting.append(problem)
        return not self._any and self._problems >= GIVE_UP

    def _finish(self) -> None:
        if self._any:
            if self._problems > REPORTED:
                say_error(f"{self._name}: and {self._problems - REPORTED:,} more that cannot be read")
        elif self._problems == 1:
            say_error(self._waiting[0])
        elif self._problems >= GIVE_UP:
            say_error(
                f"{self._waiting[0]}; none of the first {GIVE_UP} can be read, so the rest was not tried: {WANTED}"
            )
        elif self._problems:
            say_error(f"{self._waiting[0]}; none of the {self._problems:,} in the file can be read: {WANTED}")


WANTED = "a file holds traces or chat runs, as JSON or JSON lines"
