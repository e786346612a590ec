"""Files of traces and of recorded runs, read item by item; what cannot be read is told with file and line, and reading goes on."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from grace_kp.errors import InvalidRecord, InvalidTrace
from grace_kp.trace._model import ReasoningTrace

Source = str | os.PathLike[str] | IO[Any]


def read_traces(
    source: Source, *, name: str | None = None, domain: str | None = None
) -> Iterator[ReasoningTrace | InvalidRecord]:
    """Every trace of a file, and for every item that is none the error that says why.

    It takes JSON lines or one JSON document (an object, or a list of them), plain or gzip; native traces, and runs recorded as OpenAI
    chat messages, whose confidence is not computed yet (`grace.unscored`). Lines are read one at a time.

    Args:
        source: a path, "-" for standard input, or an open file.
        name: what errors call the file; the path itself when None.
        domain: the task domain of foreign runs that name none.

    Raises:
        InvalidRecord: the file cannot be opened.
    """
    label = name or (str(source) if isinstance(source, str | os.PathLike) else str(getattr(source, "name", "input")))
    label = "standard input" if label == "-" and name is None else label
    return _Reader(label, domain).items(_opened(source, label))


def _opened(source: Source, label: str) -> IO[bytes]:
    if isinstance(source, str | os.PathLike):
        if source == "-":
            raw: Any = sys.stdin.buffer
        else:
            try:
                raw = Path(source).open("rb")  # noqa: SIM115 — closed by the reader
            except OSError as error:
                raise InvalidRecord(error.strerror or str(error), file=label) from None
    else:
        raw = source
    if isinstance(raw, io.TextIOBase):
        return io.BytesIO(raw.read().encode("utf-8", "surrogatepass"))
    buffered: Any = (
        raw
        if hasattr(raw, "peek")
        else io.BufferedReader(raw)
        if isinstance(raw, io.RawIOBase)
        else io.BytesIO(raw.read())
    )
    head = buffered.getbuffer()[:2].tobytes() if isinstance(buffered, io.BytesIO) else buffered.peek(2)[:2]
    return _Unpacked(buffered) if head == b"\x1f\x8b" else buffered  # type: ignore[return-value]


class _Unpacked(gzip.GzipFile):
    """A packed file that closes the file it reads from with itself."""

    def __init__(self, packed: Any) -> None:
        self._packed = packed
        super().__init__(fileobj=packed, mode="rb")

    def close(self) -> None:
        super().close()
        self._packed.close()


class _Reader:
    """One file being read."""

    def __init__(self, label: str, domain: str | None) -> None:
        self._label = label
        self._domain = domain
        self._line = 0

    def items(self, file: IO[bytes]) -> Iterator[ReasoningTrace | InvalidRecord]:
        with contextlib.closing(file) if self._label != "standard input" else contextlib.nullcontext():
            lines = self._lines(file)
            first = next(lines, None)
            if first is None:
                return
            if isinstance(first, bytes) and _begins_a_document(first):
                yield from self._document(first, lines)
                return
            for line in (first, *()):
                yield from self._of_line(line)
            for line in lines:
                yield from self._of_line(line)

    def _lines(self, file: IO[bytes]) -> Iterator[bytes | InvalidRecord]:
        """Lines that are not blank; an unreadable rest of the file is one error."""
        try:
            for line in file:
                self._line += 1
                text = line.removeprefix(b"\xef\xbb\xbf") if self._line == 1 else line
                if text.strip():
                    yield text
        except (OSError, EOFError, zlib.error) as error:
            yield self._problem(f"cannot be read any further: {error}", line=self._line + 1)

    def _of_line(self, line: bytes | InvalidRecord) -> Iterator[ReasoningTrace | InvalidRecord]:
        if isinstance(line, InvalidRecord):
            yield line
            return
        number = self._line
        try:
            yield self._trace(_parse(line))
        except InvalidTrace as error:
            yield self._problem(error.problem, line=number, path=error.path)

    def _document(
        self, first: bytes, lines: Iterator[bytes | InvalidRecord]
    ) -> Iterator[ReasoningTrace | InvalidRecord]:
        """A file that is one JSON document over several lines, or a list of runs."""
        start, pieces = self._line, [first]
        for line in lines:
            if isinstance(line, InvalidRecord):
                yield line
                return
            pieces.append(line)
        whole = b"".join(pieces)
        try:
            document = _parse(whole)
        except InvalidTrace as error:
            # Perhaps it was lines after all, with a broken first one.
            if sum(_is_json(piece) for piece in pieces[1:4]) and _looks_like_lines(pieces):
                for offset, piece in enumerate(pieces):
                    self._line = start + offset
                    yield from self._of_line(piece)
                return
            at = re.search(r"line (\d+)", error.problem)
            yield self._problem(error.problem, line=start - 1 + int(at[1]) if at else start)
            return
        runs = document if isinstance(document, list) and not _is_chat(document) else [document]
        for number, item in enumerate(runs):
            try:
                yield self._trace(item)
            except InvalidTrace as error:
                place = f"[{number}]" if runs is document else ""
                path = f"{place}.{error.path}" if place and error.path else place or error.path
                yield self._problem(error.problem, line=start, path=path)

    def _trace(self, item: Any) -> ReasoningTrace:
        if isinstance(item, dict) and (
            "@type" in item or ("metadata" in item and "steps" in item and "outcome" in item)
        ):
            return ReasoningTrace.model_validate(item)
        from grace_kp.trace.formats import read_run

        return read_run(item, domain=self._domain)

    def _problem(self, problem: str, *, line: int, path: str = "") -> InvalidRecord:
        return InvalidRecord(problem, file=self._label, line=line, path=path)


def _begins_a_document(line: bytes) -> bool:
    """Whether the first line is not a whole item by itself: a pretty-printed object, or a list of runs."""
    head = line.lstrip()[:1]
    if head not in b"[{":
        return False
    try:
        item = _parse(line)
    except InvalidTrace:
        return True
    return isinstance(item, list) and not _is_chat(item)


def _is_chat(items: list[Any]) -> bool:
    return bool(items) and all(
        isinstance(item, dict) and ("role" in item or ("from" in item and "value" in item)) for item in items
    )


def _looks_like_lines(pieces: list[bytes]) -> bool:
    return sum(piece.lstrip()[:1] in b"{[" and piece.rstrip()[-1:] in b"}]" for piece in pieces) * 2 >= len(pieces)


def _is_json(piece: bytes) -> bool:
    try:
        return isinstance(_parse(piece), dict | list)
    except InvalidTrace:
        return False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _parse(data: bytes) -> Any:
    """JSON, strictly.

    Raises:
        InvalidTrace: it is none, with the reason and the place.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise InvalidTrace(f"is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InvalidTrace(f"is no JSON: {error.msg.lower()} at {where}") from None
    except RecursionError:
        raise InvalidTrace("is nested too deeply") from None
    except ValueError as error:
        raise InvalidTrace(f"is no JSON that can be used: {str(error)[:200]}") from None


def write_traces(path: str | os.PathLike[str], traces: Iterable[ReasoningTrace]) -> int:
    """Write traces as JSON lines; the file is there whole or not at all.

    Args:
        path: where to; gzip when it ends in .gz, standard output when "-".
        traces: any number; they are written as they come.

    Returns:
        How many were written.

    Raises:
        OSError: the file cannot be written.
    """
    if path == "-":
        return _write(sys.stdout.buffer, traces)
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
                    count = _write(packed, traces)
            else:
                count = _write(raw, traces)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return count


def _write(file: Any, traces: Iterable[ReasoningTrace]) -> int:
    count = 0
    for count, trace in enumerate(traces, 1):  # noqa: B007 — the count is the answer
        file.write(trace.to_json().encode("utf-8", "replace") + b"\n")
    file.flush()
    return count
