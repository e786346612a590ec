"""JSON values with their lines: from a line of a file, or from documents over several lines. Also the bounded lines of a stream.

A value that cannot be read becomes a `BrokenText` with the reason and the place. The meaning of the values is unknown here.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from bisect import bisect_left
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


_SPACE = re.compile(r"[ \t\r\n]*")
_OUTSIDE_TEXTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?Infinity|NaN)|(-?[0-9]{4301,})', re.DOTALL)
TOO_DEEP = "is nested too deeply to be read"


class BrokenText(NamedTuple):
    """Input that is not JSON, with the reason and the place."""

    problem: str
    line: int
    column: int = 0
    path: str = ""
    incomplete: bool = False
    """Whether the input ends where a value could go on."""


class FoundValue(NamedTuple):
    """A value, the line on which it begins, and its path in a list."""

    value: Any
    line: int
    path: str = ""


def read_line(text: str, line: int) -> FoundValue | BrokenText:
    text = text.rstrip()
    try:
        return FoundValue(json.loads(text, parse_constant=refuse_constant), line)
    except json.JSONDecodeError as error:
        incomplete = error.pos >= len(text) and not error.msg.startswith("Unterminated string")
        return BrokenText(_describe_error(error), line, error.colno, incomplete=incomplete)
    except (ValueError, RecursionError) as error:
        return BrokenText(_describe_error(error), line)


class JsonText:
    """A string with JSON values over any number of lines each, which begins in this line of a file."""

    def __init__(self, text: str, line: int, is_part: Callable[[object], bool]) -> None:
        self._text = text
        self._line = line
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._is_part = is_part
        self._decoder = json.JSONDecoder(parse_constant=refuse_constant)

    def values(self) -> Iterator[FoundValue | BrokenText]:
        """Yield the values, and the items of a list separately.

        After a broken value, reading continues at the next line with the same indentation that opens an object or a list.
        """
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

    def _items(self, start: int) -> Generator[FoundValue | BrokenText, None, int]:
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
                yield BrokenText("is not JSON: expecting ',' or ']' after an item of the list", self._line_of(position))
                position = position if following in "{[" else self._next_value(position, begin)
            elif was_read:
                yield BrokenText("is not JSON: the list is not closed", self._line_of(position))
            if position >= len(self._text):
                return position

    def _value(self, position: int, path: str) -> Generator[FoundValue | BrokenText, None, tuple[int, bool]]:
        """Yield one value or its problem; return the position to continue at, and whether the value was read."""
        line = self._line_of(position)
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            where, at = error.pos, self._line_of(error.pos)
            column = where - self._text.rfind("\n", 0, where)
            if column == 1 and self._text[where : where + 1] in {"{", "["} and at > line:
                # The next value begins where this value should go on: this value was cut off.
                yield BrokenText("is not JSON: it is not complete when the next value begins", line, path=path)
            else:
                yield BrokenText(_describe_error(error), at, column, path)
        except (ValueError, RecursionError) as error:
            numbers = _OUTSIDE_TEXTS.finditer(self._text, position)
            unreadable = (found.start() for found in numbers if found[1] or found[2])
            yield BrokenText(_describe_error(error), self._line_of(next(unreadable, position)), path=path)
        else:
            yield FoundValue(value, line, path)
            return end, True
        return self._next_value(position + 1, position), False

    def _next_value(self, position: int, like: int) -> int:
        """Return the start of the next line that is indented like the line of `like` and opens an object or a list."""
        indent = self._text[self._text.rfind("\n", 0, like) + 1 : like]
        indent = "" if indent.strip() else indent
        found = re.compile(rf"\n{re.escape(indent)}(?=[{{\[])").search(self._text, position)
        return found.end() if found else len(self._text)

    def _skip(self, position: int) -> int:
        return _SPACE.match(self._text, position).end()  # type: ignore[union-attr]  # it matches no blanks, too

    def _line_of(self, position: int) -> int:
        return self._line + bisect_left(self._breaks, position)


def refuse_constant(name: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`, which Python's parser would take; for its `parse_constant`."""
    raise ValueError(f"{name} is not a JSON number")


def _describe_error(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
    if isinstance(error, RecursionError):
        return TOO_DEEP
    text = str(error)
    return "is not JSON that can be read: " + ("a number has too many digits" if "digits" in text else text)


def object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; for the `object_pairs_hook` of `json.loads`."""
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {brief(next(key for key in keys if keys.count(key) > 1))}")
    return result


_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
SKIPPED = 16
"""Multiple of the limit beyond which a line is not even skipped: the rest of the file is left unread."""


class TooLong(NamedTuple):
    """A line beyond the limit. `ends` is True if reading stopped before the end of the line."""

    ends: bool = False


def lines_of(file: object, limit: int) -> Iterator[bytes | TooLong]:
    """Yield the lines of a stream as bytes, unpacked if they are packed; `TooLong` replaces a line of more than `limit` bytes."""
    raw: Any = getattr(file, "buffer", None)  # the bytes below a text file may be packed
    wide = str(getattr(file, "encoding", "")).lower().startswith(("utf-16", "utf_16", "utf16", "utf-32", "utf_32"))
    if wide or not hasattr(raw, "read"):
        raw = file
    head = raw.read(1)
    if isinstance(head, str):
        yield from _bounded_lines(partial(_read_encoded, raw, [head]), limit)
        return
    stream: Any = io.BufferedReader(_Unread(head or b"", raw), 1 << 16)
    packed = stream.peek(2)[:2] == _GZIP
    yield from _bounded_lines((gzip.GzipFile(fileobj=stream, mode="rb") if packed else stream).readline, limit)


def _bounded_lines(readline: Callable[[int], bytes], limit: int) -> Iterator[bytes | TooLong]:
    while line := readline(limit + 1):
        if len(line) <= limit or line.endswith(b"\n"):
            yield line
            continue
        left = SKIPPED * limit
        while left > 0 and (piece := readline(_CHUNK)):
            left -= len(piece)
            if piece.endswith(b"\n"):
                break
        yield TooLong(ends=left <= 0)
        if left <= 0:
            return


def _read_encoded(file: IO[str], head: list[str], size: int) -> bytes:
    """Return the next line of a text stream, or its first `size` characters, after the character that was read from it already."""
    line = head.pop() if head else ""
    if not line.endswith("\n"):
        line += file.readline(size)
    return line.encode("utf-8", "surrogatepass")


class _Unread(io.RawIOBase):
    """A binary stream in front of which bytes are put back."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head + (self._stream.read(len(buffer) - len(self._head)) or b"")
        self._head = b""
        buffer[: len(data)] = data
        return len(data)
