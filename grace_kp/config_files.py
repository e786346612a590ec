"""Configuration files: where they are searched, and what stands in them. What a setting means is stated in `settings`.

A file that is there and cannot be read is an error, and so is a name that is nearly right: neither may count as a file without policies.
"""

from __future__ import annotations

import os
import re
import stat
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.errors import SettingsError, brief

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "grace_kp.toml"
_PROJECT = "pyproject.toml"
_LARGEST = 4 << 20
"""Bytes of a configuration file."""
_LISTED = 1_000
"""Entries of a folder that are searched for misspelt names."""
_NEAR_FILE = re.compile(r"[\W_]*grace[\W_]*kp[\W_]*toml(\.(txt|toml))?\s*", re.IGNORECASE)
_NEAR_TABLE = re.compile(r"[\W_]*((tools?|project)[\W_]*)*grace[\W_]*kp[\W_]*(\..*)?", re.IGNORECASE | re.DOTALL)
_MENTION = re.compile(rb"grace[\W_]*kp", re.IGNORECASE)
_ESCAPE = re.compile(rb"\\(?:u00|U000000)([0-7][0-9a-fA-F])")
"""An ASCII character as a quoted name may state it."""
# A pyproject.toml that cannot be parsed may hold our table if a line looks like it.
_TABLE = re.compile(
    rb"""tool["']?\s*\.\s*["']?grace[\W_]?kp\b|(?:^|[{,])\s*["']?grace_kp["']?\s*[.=](?!=)""",
    re.IGNORECASE | re.MULTILINE,
)


def search(start: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the files with settings in a folder and its parents, the nearest first, and their tables."""
    for folder in (start, *start.parents):
        _check_names(folder)
        for name in (FILE, _PROJECT):
            table = content_of(folder / name)
            if table is not None:
                yield folder / name, table


def content_of(path: Path) -> dict[str, Any] | None:
    """Return the settings in a file; None if there is no such file, or a pyproject.toml has no table for us."""
    is_project = path.name == _PROJECT
    try:
        data = _bytes_of(path)
        # In UTF-16 every other byte of a name is 0.
        ascii_bytes = (
            b"" if data is None else _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), data.replace(b"\0", b""))
        )
        if data is None or (is_project and not _MENTION.search(ascii_bytes)):
            return None
        import tomllib

        try:
            table: Any = tomllib.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            if is_project and not _TABLE.search(ascii_bytes):
                return None  # faults of a file without our table are not ours to report
            raise
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{shown(path)}: cannot be read: {reason(error)}") from None
    if is_project and (table := _project_table(table, path)) is None:
        return None
    if not isinstance(table, dict):
        raise SettingsError(f"{shown(path)}: tool.grace_kp must be a table, not {brief(table)}")
    return table


def reason(error: Exception) -> str:
    """Return why something cannot be read, as one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return shown((error.strerror if isinstance(error, OSError) else None) or error)


def shown(name: object) -> str:
    """Return a name or a path as one printable line."""
    text = str(name)
    return text if text.isprintable() else ascii(text)


def _check_names(folder: Path) -> None:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _LISTED)]
    except OSError:
        return  # a folder that cannot be listed: its files can still be opened by their names
    for name in names:
        # Where a file system ignores case, the name that is nearly right is opened by the right one.
        if name != FILE and _NEAR_FILE.fullmatch(name) and (FILE in names or not os.path.lexists(folder / FILE)):
            raise SettingsError(
                f"{shown(folder / name)} is not read: the file must be called {FILE}; rename or remove it"
            )


def _project_table(document: dict[str, Any], path: Path) -> Any:
    for name in _names_of_tables(document):
        if _NEAR_TABLE.fullmatch(name):
            raise SettingsError(
                f"{shown(path)}: [{shown(name)}] is not read: the table must be called [tool.grace_kp]; rename it"
            )
    tool = document.get("tool")
    return tool.get("grace_kp") if isinstance(tool, dict) else None


def _names_of_tables(document: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the names of what stands in the first three levels of a document, except our table."""
    for name, value in document.items():
        if (above, name) != ("tool.", "grace_kp"):
            key = f'{above}"{name}"' if "." in name else above + name
            yield key
            if isinstance(value, dict) and above.count(".") < 2:
                yield from _names_of_tables(value, f"{key}.")


def _bytes_of(path: Path) -> bytes | None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(path):
            raise OSError("it is a link to nothing") from None
        return None
    if not stat.S_ISREG(mode):  # opening a pipe would wait
        raise OSError("it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise OSError(f"it is larger than {_LARGEST >> 20} MB")
    return data
