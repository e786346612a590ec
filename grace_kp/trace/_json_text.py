"""JSON text as values with their lines: one line of a file, or a text that holds documents over several lines.

What the values mean is not known here. A value that cannot be read is a `Broken` that says where and why.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_SPACE = re.compile(r"[ \t\r\n]*")
_OUTSIDE_TEXTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?Infinity|NaN)|(-?[0-9]{4301,})', re.DOTALL)
TOO_DEEP = "is nested too deeply to be read"


class Broken(NamedTuple):
    """What is not JSON: why, and where it is."""

    problem: str
    line: int
    column: int = 0
    path: str = ""
    incomplete: bool = False
    """Whether it is the beginning of something that is cut off where more could follow."""


class Found(NamedTuple):
    """A value, the line on which it begins, and its path when it stands in a list."""

    value: Any
    line: int
    path: str = ""


def read_line(text: str, line: int) -> Found | Broken:
    """The one value of a line."""
    text = text.rstrip()
    try:
        return Found(json.loads(text, parse_constant=_refused), line)
    except json.JSONDecodeError as error:
        incomplete = error.pos >= len(text) and not error.msg.startswith("Unterminated string")
        return Broken(f"is not JSON: {_said(error)}", line, error.colno, incomplete=incomplete)
    except (ValueError, RecursionError) as error:
        return Broken(_why(error), line)


def read_text(text: str, line: int, is_one: Callable[[Any], bool]) -> Iterator[Found | Broken]:
    """The values of a text in which they may go over several lines; those of a list one by one.

    After a broken value it goes on where the next one seems to begin: on a line that is indented like the first.

    Args:
        text: the whole text.
        line: the number of its first line.
        is_one: whether a list that begins with this item is one value and not a list of values.
    """
    return _Text(text, line, is_one).values()


class _Text:
    """A text under way: how far it has been read, and how many lines that was."""

    def __init__(self, text: str, line: int, is_one: Callable[[Any], bool]) -> None:
        self._text = text
        self._line = line
        self._counted = 0
        self._is_one = is_one
        self._decoder = json.JSONDecoder(parse_constant=_refused)

    def values(self) -> Iterator[Found | Broken]:
        position = self._skip(0)
        while position < len(self._text):
            if self._text[position] == "[" and self._is_list_of_values(position):
                position = yield from self._items(position)
            else:
                position, _ = yield from self._value(position, "")
            position = self._skip(position)

    def _is_list_of_values(self, position: int) -> bool:
        first = self._skip(position + 1)
        if self._text[first : first + 1] == "]":
            return False
        try:
            item, _ = self._decoder.raw_decode(self._text, first)
        except (ValueError, RecursionError):
            return self._text[first : first + 1] in {"{", "["}
        return isinstance(item, dict | list) and not self._is_one(item)

    def _items(self, start: int) -> Generator[Found | Broken, None, int]:
        """The items of a list; returns where to go on after it."""
        position, index = self._skip(start + 1), 0
        while True:
            begin = position
            position, was_read = yield from self._value(begin, f"[{index}]")
            position, index = self._skip(position), index + 1
            sign = self._text[position : position + 1]
            if was_read and sign == "]":
                return position + 1
            if was_read and sign == ",":
                position = self._skip(position + 1)
            elif was_read and sign:
                yield Broken("is not JSON: expecting ',' or ']' after an item of the list", self._line_of(position))
                position = position if sign in "{[" else self._next_value(position, begin)
            elif was_read:
                yield Broken("is not JSON: the list is not closed", self._line_of(position))
            if position >= len(self._text):
                return position

    def _value(self, position: int, path: str) -> Generator[Found | Broken, None, tuple[int, bool]]:
        """One value, or why it is none; returns where to go on, and whether it could be read."""
        line = self._line_of(position)
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            yield self._broken(error, line, path)
        except (ValueError, RecursionError) as error:
            yield Broken(_why(error), self._line_within(position, line), path=path)
        else:
            yield Found(value, line, path)
            return end, True
        return self._next_value(position + 1, position), False

    def _broken(self, error: json.JSONDecodeError, line: int, path: str) -> Broken:
        where = error.pos
        at = line + self._text.count("\n", self._counted, where)
        column = where - self._text.rfind("\n", 0, where)
        if column == 1 and self._text[where : where + 1] in {"{", "["} and at > line:
            # The next value begins where this one should have gone on: it is this one that was cut off.
            return Broken("is not JSON: it is not complete when the next value begins", line, path=path)
        return Broken(f"is not JSON: {_said(error)}", at, column, path)

    def _line_within(self, position: int, line: int) -> int:
        """The line of the first number that cannot be read, from `position` on."""
        for found in _OUTSIDE_TEXTS.finditer(self._text, position):
            if found[1] or found[2]:
                return line + self._text.count("\n", position, found.start())
        return line

    def _next_value(self, position: int, like: int) -> int:
        """Where the next line begins that is indented like the line of `like` and opens an object or a list."""
        indent = self._text[self._text.rfind("\n", 0, like) + 1 : like]
        indent = "" if indent.strip() else indent
        found = re.compile(rf"\n{re.escape(indent)}(?=[{{\[])").search(self._text, position)
        return found.end() if found else len(self._text)

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        return found.end() if found else position

    def _line_of(self, position: int) -> int:
        """Asked for growing positions, so that the lines are counted once."""
        if position > self._counted:
            self._line += self._text.count("\n", self._counted, position)
            self._counted = position
        return self._line


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _said(error: json.JSONDecodeError) -> str:
    return error.msg[:1].lower() + error.msg[1:]


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return TOO_DEEP
    text = str(error)
    return "is not JSON that can be read: " + ("a number has too many digits" if "digits" in text else text)


def object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; for the `object_pairs_hook` of `json.loads`.

    Raises:
        ValueError: a key occurs twice.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {brief(next(key for key in keys if keys.count(key) > 1))}")
    return result
