"""Output of commands: strings that are safe for a terminal, JSON, errors on standard error, progress bars."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from typing import IO, TYPE_CHECKING, Any, TypeVar

import typer

from grace_kp.errors import GraceError
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rich.console import Console

T = TypeVar("T")
NO_TERMINAL = 100
"""Width without a terminal."""
HEIGHT = 25
"""Height of the console. rich takes a dumb terminal for 80 columns wide unless the height is set; nothing else depends on it."""
LEAST = 20
"""Minimum width. A narrower terminal wraps the lines."""


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal is now, on standard output or standard error."""
    from rich.console import Console

    width = columns(sys.stderr if stderr else sys.stdout)
    # Without emoji codes, which would replace `:smile:` in data.
    return Console(stderr=stderr, highlight=False, emoji=False, width=width, height=HEIGHT)


def columns(stream: IO[str]) -> int:
    """Return the width from `COLUMNS`, else of the stream's terminal, else 100."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return max(LEAST, int(wanted))
    try:
        return max(LEAST, os.get_terminal_size(stream.fileno()).columns or NO_TERMINAL)
    except (OSError, ValueError, AttributeError):
        return NO_TERMINAL


def writes_unicode(stream: IO[str]) -> bool:
    return str(getattr(stream, "encoding", None) or "").lower().replace("-", "").startswith("utf")


def clean(text: str, width: int = 0) -> str:
    """Return the string as one line with control and invisible characters escaped, optionally cut to `width` columns."""
    line = " ".join(printable(text, replace=_blank_or_escape).split())
    if not writes_unicode(sys.stdout):
        encoding = sys.stdout.encoding or "ascii"
        line = line.encode(encoding, "replace").decode(encoding)  # before widths are measured
    return shorten(line, width) if width else line


def visible(text: str) -> str:
    """Return lines with control and invisible characters escaped."""
    return _escape_in(text.replace("\r\n", "\n").replace("\t", "    "), _blank_or_escape)


def visible_json(value: object, indent: int | None = None) -> str:
    """Return JSON with control and invisible characters escaped."""
    return _escape_in(json.dumps(value, ensure_ascii=False, indent=indent, default=str), _escape)


def _escape_in(text: str, escape: Callable[[str], str]) -> str:
    text = printable(text, keep="\n", replace=escape)
    return text if writes_unicode(sys.stdout) else _BEYOND_ASCII.sub(lambda match: _escape(match[0]), text)


def _blank_or_escape(character: str) -> str:
    is_blank = character in "\t\n\r" or unicodedata.category(character) == "Zs"
    return " " if is_blank else _escape(character)


def _escape(character: str) -> str:
    """Return the JSON escape of a character, also of those that JSON does not escape, such as DEL."""
    escape = json.dumps(character)[1:-1]
    return f"\\u{ord(character):04x}" if escape == character else escape


def shorten(line: str, width: int) -> str:
    """Cut the line to `width` columns, marked by an ellipsis; wide characters count as two."""
    from rich.cells import cell_len, set_cell_size

    if len(line) <= width // 2 or cell_len(line) <= width:
        return line
    mark = "…" if writes_unicode(sys.stdout) else "..."[:width]
    return set_cell_size(line, width - len(mark)).rstrip() + mark


_BEYOND_ASCII = re.compile("[^\\x00-\\x7f]")


def put_json(value: object) -> None:
    sys.stdout.write(_json(value, indent=2) + "\n")


def put_jsonl(values: Iterable[Any]) -> None:
    """Write JSON lines to standard output, each as soon as it is available."""
    for value in values:
        sys.stdout.write(_json(value) + "\n")
        sys.stdout.flush()


def _json(value: object, indent: int | None = None) -> str:
    from grace_kp.trace import storable

    return _escape_in(storable(json.dumps(value, ensure_ascii=False, indent=indent)), _escape)


def say_error(message: object) -> None:
    """Write an error as one line to standard error."""
    sys.stderr.write(f"grace-kp: {printable(' '.join(str(message).split()), replace=_blank_or_escape)}\n")


def error_text(error: GraceError | OSError) -> str:
    """Return the message of an error, with the file that the system names."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return str(error)


def check_writable(*paths: Path | None) -> None:
    """Refuse files that cannot be written, before their content is computed."""
    for path in paths:
        if path is None:
            continue
        folder = path.resolve().parent
        if path.exists() and not os.access(path, os.W_OK):
            raise GraceError(f"{path}: cannot be written: Permission denied")
        if folder.is_dir() and not os.access(folder, os.W_OK):
            raise GraceError(f"{folder}: cannot write into this folder: Permission denied")
        if path.is_dir() or not folder.is_dir():
            reason = "it is a folder" if path.is_dir() else f"the folder {folder} does not exist"
            raise GraceError(f"{path}: cannot be written: {reason}")


def confirm(command: str, question: str, show: Callable[[], None] = lambda: None) -> None:
    """Ask at the terminal whether to go on; `show` writes the details first."""
    if not sys.stdin.isatty():
        raise ValueError(
            f"{command} asks for a confirmation, and standard input is not a terminal; use --yes to {command} without asking"
        )
    show()
    typer.confirm(question, abort=True, err=True)


def ask(prompt: str) -> str:
    """Read a line at a prompt, with its line break; empty at the end of the input."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline()


def progress(
    items: Iterable[T], title: str, *, total: int | None = None, position: Callable[[], int] | None = None
) -> Iterator[T]:
    """Yield the items, with a progress bar if standard error is a terminal; `position` replaces the number of items, say by bytes read."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    label = TextColumn("{task.description}", markup=False)
    count_column = TextColumn("{task.fields[items]:,}")
    shown = [SpinnerColumn("line"), label, count_column, TimeElapsedColumn()]
    if total is not None:
        bar = [BarColumn(bar_width=20)] if columns(sys.stderr) >= 60 else []
        shown = [
            label,
            *bar,
            TaskProgressColumn(),
            count_column,
            Remaining(compact=True, elapsed_when_finished=True),
            TextColumn("left"),
        ]
    with Progress(*shown, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task(clean(title, 40), total=total, items=0)
        for count, item in enumerate(items, 1):
            yield item
            bars.update(task, completed=count if position is None else position(), items=count)
