"""How results are shown: tables for people, JSON for machines, errors as one line on standard error."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console
    from rich.table import Table

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """A console that fits the terminal; 100 columns where there is none."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # No emoji codes: `:smile:` in somebody's text is just that.
    return Console(stderr=stderr, highlight=False, emoji=False, width=None if stream.isatty() else 100)


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """An empty table with these columns; those in `right` hold numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    numbers = set(right)
    for column in columns:
        fixed = column in numbers or column in {"id", "run", "objective", "when"}
        made.add_column(column, justify="right" if column in numbers else "left", no_wrap=fixed, overflow="ellipsis")
    return made


def plain(text: str, width: int = 0) -> str:
    """One line without control characters and markup, cut to a width."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    line = line if not width or len(line) <= width else line[: width - 1] + "…"
    return _escaped(line)


_BRACKETS = re.compile(r"(\\*)\[(?=([a-z#/@][^\[\]]*\])?)")
_OPEN_END = re.compile(r"\\\Z|\[[^\[\]]*\Z")


def _escaped(line: str) -> str:
    """A text as rich's markup for just this text, whatever stands after it.

    `rich.markup.escape` does not do it: rich takes away a backslash before any bracket, not only before one that opens a tag, and it
    halves the backslashes before a tag.
    """

    def bracket(match: re.Match[str]) -> str:
        slashes, tag = match.groups()
        if tag is not None:
            return "\\" * (2 * len(slashes) + 1) + "["
        return f"{slashes}\\[" if slashes else "["

    made = _BRACKETS.sub(bracket, line)
    if not _OPEN_END.search(line):
        return made
    # What stands after it would complete a tag, or be escaped: an empty style in between keeps them apart.
    slashes = len(line) - len(line.rstrip("\\"))
    return made + "\\" * slashes + "[none][/none]"


def put_json(value: Any) -> None:
    """One JSON value on standard output, indented."""
    from grace_kp.trace._render import storable

    sys.stdout.write(storable(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def put_jsonl(values: Iterable[Any]) -> None:
    """JSON lines on standard output, each as soon as it is there."""
    for value in values:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def say_error(message: object) -> None:
    """One line on standard error."""
    line = "".join(sign if sign.isprintable() else " " for sign in " ".join(str(message).split()))
    sys.stderr.write(f"grace-kp: {line}\n")


def progress(items: Iterable[T], what: str) -> Iterator[T]:
    """The items, with a bar on standard error while they go by, when that is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.completed:,}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        for item in items:
            yield item
            bar.advance(task)


def bar(value: float, width: int = 20) -> str:
    """A number from 0 to 1 as a bar."""
    filled = round(max(0.0, min(1.0, value)) * width)
    return "█" * filled + "░" * (width - filled)
