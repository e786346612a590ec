"""JSON text as values with their lines: one line of a file, or a text with documents over several lines.

A value that cannot be read becomes a `Broken` with the reason and the place. The meaning of the values is unknown here.
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
    """Text that is not JSON, with the reason and the place."""

    problem: str
    line: int
    column: int = 0
    path: str = ""
    incomplete: bool = False
    """Whether the text ends where a value could go on."""


class Found(NamedTuple):
    """A value, the line on which it begins, and its path in a list."""

    value: Any
    line: int
    path: str = ""


def read_line(text: str, line: int) -> Found | Broken:
    """Read the value of a line."""
    text = text.rstrip()
    try:
        return Found(json.loads(text, parse_constant=_refuse_constant), line)
    except json.JSONDecodeError as error:
        incomplete = error.pos >= len(text) and not error.msg.startswith("Unterminated string")
        return Broken(f"is not JSON: {_message(error)}", line, error.colno, incomplete=incomplete)
    except (ValueError, RecursionError) as error:
        return Broken(_other_problem(error), line)


def read_text(text: str, line: int, is_part: Callable[[object], bool]) -> Iterator[Found | Broken]:
    """Yield the values of a text, each over any number of lines; the items of a list separately.

    After a broken value, reading continues at the next line with the same indentation that opens an object or a list.

    Args:
        text: the whole text.
        line: the number of its first line.
        is_part: whether a list with this first item is one value instead of a list of values.
    """
    return _Text(text, line, is_part).values()


class _Text:
    """A text that is being read, with the lines counted so far."""

    def __init__(self, text: str, line: int, is_part: Callable[[object], bool]) -> None:
        self._text = text
        self._line = line
        self._counted = 0
        self._is_part = is_part
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

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
        return isinstance(item, dict | list) and not self._is_part(item)

    def _items(self, start: int) -> Generator[Found | Broken, None, int]:
        """Yield the items of a list; return the position after it."""
        position, index = self._skip(start + 1), 0
        while True:
            begin = position
            position, was_read = yield from self._value(begin, f"[{index}]")
            position, index = self._skip(position), index + 1
            following = self._text[position : position + 1]
            if was_read and following == "]":
                return position + 1
            if was_read and following == ",":
                position = self._skip(position + 1)
            elif was_read and following:
                yield Broken("is not JSON: expecting ',' or ']' after an item of the list", self._line_of(position))
                position = position if following in "{[" else self._next_value(position, begin)
            elif was_read:
                yield Broken("is not JSON: the list is not closed", self._line_of(position))
            if position >= len(self._text):
                return position

    def _value(self, position: int, path: str) -> Generator[Found | Broken, None, tuple[int, bool]]:
        """Yield one value or its problem; return the position to continue at, and whether the value was read."""
        line = self._line_of(position)
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            yield self._broken(error, line, path)
        except (ValueError, RecursionError) as error:
            yield Broken(_other_problem(error), self._line_within(position, line), path=path)
        else:
            yield Found(value, line, path)
            return end, True
        return self._next_value(position + 1, position), False

    def _broken(self, error: json.JSONDecodeError, line: int, path: str) -> Broken:
        where = error.pos
        at = line + self._text.count("\n", self._counted, where)
        column = where - self._text.rfind("\n", 0, where)
        if column == 1 and self._text[where : where + 1] in {"{", "["} and at > line:
            # The next value begins where this value should go on: this value was cut off.
            return Broken("is not JSON: it is not complete when the next value begins", line, path=path)
        return Broken(f"is not JSON: {_message(error)}", at, column, path)

    def _line_within(self, position: int, line: int) -> int:
        """Return the line of the first unreadable number from `position` on."""
        for found in _OUTSIDE_TEXTS.finditer(self._text, position):
            if found[1] or found[2]:
                return line + self._text.count("\n", position, found.start())
        return line

    def _next_value(self, position: int, like: int) -> int:
        """Return the start of the next line that is indented like the line of `like` and opens an object or a list."""
        indent = self._text[self._text.rfind("\n", 0, like) + 1 : like]
        indent = "" if indent.strip() else indent
        found = re.compile(rf"\n{re.escape(indent)}(?=[{{\[])").search(self._text, position)
        return found.end() if found else len(self._text)

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        return found.end() if found else position

    def _line_of(self, position: int) -> int:
        """Return the line of a position. Positions must grow, so that each line is counted once."""
        if position > self._counted:
            self._line += self._text.count("\n", self._counted, position)
            self._counted = position
        return self._line


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _message(error: json.JSONDecodeError) -> str:
    return error.msg[:1].lower() + error.msg[1:]


def _other_problem(error: Exception) -> str:
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
