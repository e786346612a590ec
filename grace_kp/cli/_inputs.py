"""Inputs of commands: files, whose unreadable parts are reported briefly and counted, and modules of the user."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, TypeVar

from grace_kp.cli._output import progress, say_error
from grace_kp.errors import GraceError, InvalidRecord
from grace_kp.trace import describe_error, read_traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from grace_kp.trace import ReasoningTrace


T = TypeVar("T")
REPORTED = 5
"""Maximum of unreadable parts of a file that are reported individually."""
GIVE_UP = 200
"""Number of unreadable parts at the beginning of a file after which reading stops."""
WANTED = "a file holds traces or chat runs, as JSON or JSON lines"


class Unreadable:
    """The number of unreadable parts, and the first one."""

    count = 0
    first: InvalidRecord | None = None

    def add(self, problem: InvalidRecord) -> None:
        self.count += 1
        self.first = self.first or problem


def readable(
    files: list[str], what: str, unreadable: Unreadable, *, domain: str | None = None
) -> Iterator[ReasoningTrace]:
    """Yield the traces of the files; unreadable parts as for `read_files`."""
    return read_files(files, what, unreadable, lambda source, name: read_traces(source, name=name, domain=domain))


def read_files(
    files: list[str], what: str, unreadable: Unreadable, read: Callable[[Any, str], Iterator[T | InvalidRecord]]
) -> Iterator[T]:
    """Yield the items that a reader finds in the files. Unreadable parts are reported on standard error and counted."""
    work = Position(files)
    items = (item for name in files for item in _readable(name, work, unreadable, read))
    yield from progress(items, what, total=work.total, position=(lambda: work.bytes_read) if work.total else None)


def _readable(
    name: str, work: Position, unreadable: Unreadable, read: Callable[[Any, str], Iterator[T | InvalidRecord]]
) -> Iterator[T]:
    """Yield the items of a file. Problems are reported after the first item, which proves that the file is of the right kind."""
    waiting: list[InvalidRecord] = []
    found, count = False, 0
    for item in _items(name, work, read):
        if not isinstance(item, InvalidRecord):
            if not found:
                found = True
                for problem in waiting:
                    say_error(problem)
            yield item
            continue
        count += 1
        unreadable.add(item)
        if count <= REPORTED:
            say_error(item) if found else waiting.append(item)
        if count >= GIVE_UP and not found:
            break
    if found and count > REPORTED:
        say_error(f"{name}: and {count - REPORTED:,} more that cannot be read")
    elif waiting and not found:
        rest = f"none of the {count:,} in the file can be read"
        if count >= GIVE_UP:
            rest = f"none of the first {GIVE_UP} can be read, so the rest was not tried"
        say_error(waiting[0] if count == 1 else f"{waiting[0]}; {rest}: {WANTED}")


def _items(
    name: str, work: Position, read: Callable[[Any, str], Iterator[T | InvalidRecord]]
) -> Iterator[T | InvalidRecord]:
    try:
        try:
            file: Any = None if name == "-" else Path(name).open("rb")  # noqa: SIM115 — closed below
        except (OSError, ValueError):
            file = None  # the reader reports the reason
        with nullcontext() if file is None else file:
            yield from read(name if file is None else work.count(file), name)
    except InvalidRecord as error:
        yield error


class Position:
    """Number of bytes read from all files."""

    def __init__(self, files: list[str]) -> None:
        paths = [Path(name) for name in files]
        known = all(name != "-" and path.is_file() for name, path in zip(files, paths, strict=True))
        self.total = sum(path.stat().st_size for path in paths) if known else None
        self.bytes_read = 0

    def count(self, file: IO[bytes]) -> Any:
        """Return the file with its bytes counted as they are read."""

        def read(size: int = -1) -> bytes:
            data = file.read(size)
            self.bytes_read += len(data)
            return data

        return SimpleNamespace(read=read, fileno=file.fileno, name=file.name)


def load_module(name: str, label: str) -> ModuleType:
    """Import a module by its name, also from the working folder, or a file by its path."""
    file = Path(name)
    try:
        if name.endswith(".py"):
            sys.path.insert(0, str(file.resolve().parent))
            # A file may have the name of a loaded module, and must not replace it.
            module_name = f"grace_kp_import_{file.stem}" if file.stem in sys.modules else file.stem
            spec = importlib.util.spec_from_file_location(module_name, file)
            if spec is None or spec.loader is None:
                raise ImportError("this is not a Python file")
            sys.modules[module_name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, str(Path.cwd()))
            module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — the user's module may raise anything, and may want to end the program
        raise GraceError(f"{label} {name}: {': '.join(describe_error(error, 400))}") from None
    return module
