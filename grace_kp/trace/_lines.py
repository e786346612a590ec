"""The lines of a plain or gzip file as bytes, within a memory limit.

A few megabytes of gzip may hold gigabytes. A line beyond the limit is skipped and reported.
"""

from __future__ import annotations

import gzip
import io
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    head = raw.read(2)
    if isinstance(head, str):
        yield from _bounded(_Encoded(head, raw), limit)
        return
    if head and len(head) < 2:
        head += raw.read(1) or b""
    stream: Any = io.BufferedReader(_Rest(head or b"", raw), 1 << 16)
    yield from _bounded(gzip.GzipFile(fileobj=stream, mode="rb") if head == _GZIP else stream, limit)


def _bounded(stream: Any, limit: int) -> Iterator[bytes | TooLong]:
    while line := stream.readline(limit + 1):
        if len(line) <= limit or line.endswith(b"\n"):
            yield line
            continue
        left = SKIPPED * limit
        while left > 0 and (piece := stream.readline(_CHUNK)):
            left -= len(piece)
            if piece.endswith(b"\n"):
                break
        yield TooLong(ends=left <= 0)
        if left <= 0:
            return


class _Rest(io.RawIOBase):
    """A binary stream after the bytes that were read from it to look at."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)]
        self._head = self._head[len(data) :]
        data = data or self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


class _Encoded:
    """A text stream as lines of UTF-8, after the text that was read from it to look at."""

    def __init__(self, head: str, text: IO[str]) -> None:
        self._head = head
        self._text = text

    def readline(self, size: int) -> bytes:
        """Return the next line, or its first `size` characters."""
        line, newline, rest = self._head.partition("\n")
        if newline:
            self._head = rest
            return (line + newline).encode("utf-8", "surrogatepass")
        self._head = ""
        more: str = self._text.readline(size)
        return (line + more).encode("utf-8", "surrogatepass")
