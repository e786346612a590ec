"""Search and read configuration files. Their settings are defined in `settings`.

An unreadable file and a nearly right name are errors, because either may hide policies.
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
"""Maximum of entries per folder that are checked for misspelt names."""
_NEAR_FILE = re.compile(r"[\W_]*grace[\W_]*kp[\W_]*toml(\.(txt|toml))?\s*", re.IGNORECASE)
_NEAR_TABLE = re.compile(r"[\W_]*((tools?|project)[\W_]*)*grace[\W_]*kp[\W_]*(\..*)?", re.IGNORECASE | re.DOTALL)
_MENTION = re.compile(rb"grace[\W_]*kp", re.IGNORECASE)
_ESCAPE = re.compile(rb"\\(?:u00|U000000)([0-7][0-9a-fA-F])")
"""Escape of an ASCII character in a quoted name."""
# Recognises our table in a pyproject.toml that cannot be parsed.
_TABLE = re.compile(
    rb"""tool["']?\s*\.\s*["']?grace[\W_]?kp\b|(?:^|[{,])\s*["']?grace_kp["']?\s*[.=](?!=)""",
    re.IGNORECASE | re.MULTILINE,
)


def search(start: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each file with settings and its table, from a folder and its parents, nearest first."""
    for folder in (start, *start.parents):
        _check_names(folder)
        for name in (FILE, _PROJECT):
            table = content_of(folder / name)
            if table is not None:
                yield folder / name, table


def content_of(path: Path) -> dict[str, Any] | None:
    """Return the settings in a file; None if the file does not exist, or is a pyproject.toml without our table."""
    is_project = path.name == _PROJECT
    try:
        data = _bytes_of(path)
        if data is None:
            return None
        # In UTF-16 every other byte of a name is 0.
        ascii_bytes = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), data.replace(b"\0", b""))
        if is_project and not _MENTION.search(ascii_bytes):
            return None
        import tomllib

        try:
            table: Any = tomllib.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            if is_project and not _TABLE.search(ascii_bytes):
                return None  # other tools report faults of a file without our table
            raise
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{printable_name(path)}: cannot be read: {reason(error)}") from None
    if is_project:
        for name in _names_of_tables(table):
            if _NEAR_TABLE.fullmatch(name):
                raise SettingsError(
                    f"{printable_name(path)}: [{printable_name(name)}] is not read: the table must be called [tool.grace_kp]; rename it"
                )
        tool = table.get("tool")
        table = tool.get("grace_kp") if isinstance(tool, dict) else None
        if table is None:
            return None
    if not isinstance(table, dict):
        raise SettingsError(f"{printable_name(path)}: tool.grace_kp must be a table, not {brief(table)}")
    return table


def reason(error: Exception) -> str:
    """Return the reason of an error as one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return printable_name((error.strerror if isinstance(error, OSError) else None) or error)


def printable_name(name: object) -> str:
    """Return a name or a path as one printable line."""
    text = str(name)
    return text if text.isprintable() else ascii(text)


def _check_names(folder: Path) -> None:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _LISTED)]
    except OSError:
        return  # files of a folder that cannot be listed can still be opened by their names
    for name in names:
        # Where a file system ignores case, the right name opens the file with the nearly right name.
        if name != FILE and _NEAR_FILE.fullmatch(name) and (FILE in names or not os.path.lexists(folder / FILE)):
            raise SettingsError(
                f"{printable_name(folder / name)} is not read: the file must be called {FILE}; rename or remove it"
            )


def _names_of_tables(document: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the names in the first three levels of a document, except our table."""
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
