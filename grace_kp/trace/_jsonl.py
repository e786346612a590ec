"""Files of traces: read trace by trace, with file and line for each problem, and written completely or not at all.

A file holds JSON lines or JSON documents, native traces or runs that were recorded elsewhere (`formats/`), plain or gzip.
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from grace_kp.errors import InvalidRecord, InvalidTrace
from grace_kp.settings import Settings
from grace_kp.trace._files import whole_file
from grace_kp.trace._json_text import TOO_DEEP, BrokenText, FoundValue, JsonText, TooLong, lines_of, read_line
from grace_kp.trace._model import ReasoningTrace
from grace_kp.trace.formats import is_message, is_native, read_run, runs_in, span_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Source = str | os.PathLike[str] | IO[bytes] | IO[str]

STANDARD = "-"
_BOM = b"\xef\xbb\xbf"
_OTHERS = {
    (b"\xff\xfe", b"\xfe\xff"): "is UTF-16; only UTF-8 can be read",
    (b"PK\x03\x04",): "is a zip archive, such as an Inspect log (.eval), which cannot be read",
}


class SpanFormat(InvalidRecord):
    """A document holds spans instead of runs."""


class FileRun(NamedTuple):
    """A run of a file."""

    trace: ReasoningTrace
    document: Any
    """The parsed JSON."""
    line: int
    path: str
    """Path of the run within the JSON value of the line; empty for the whole value."""
    file: str
    """The file, as the caller named it."""


def read_traces(
    source: Source, *, name: str | None = None, domain: str | None = None, max_document_mb: float | None = None
) -> Iterator[ReasoningTrace | InvalidRecord]:
    """Yield the traces of a file in order; an `InvalidRecord` with place and reason replaces each that cannot be read.

    The file may hold JSON lines, or JSON documents over many lines each; a list of runs is read item by item. It may be compressed with
    gzip, whatever its name. JSON lines are read lazily, one at a time.

    A document that is not a ReasoningTrace is read as a recorded run of chat messages. If it names no time, it gets the time of the
    file.

    Args:
        source: a path, `-` for standard input, or an open file, binary or text, which stays open.
        name: name of the file in messages; the path when None.
        domain: task domain for foreign runs without one.
        max_document_mb: limit in megabytes, unpacked, for a line or a document over several lines; longer ones are reported and not read. The
            setting `max_document_mb` when None.

    Raises:
        InvalidRecord: the file cannot be opened.
        TypeError: the source is neither a path nor a file.
    """
    runs = read_runs(source, name=name, domain=domain, max_document_mb=max_document_mb)
    return (run if isinstance(run, InvalidRecord) else run.trace for run in runs)


def read_runs(
    source: Source,
    *,
    name: str | None = None,
    domain: str | None = None,
    max_document_mb: float | None = None,
    use_labels: bool = True,
    spans_only: bool = False,
) -> Iterator[FileRun | InvalidRecord]:
    """Yield the runs of a file as `read_traces` does, each with the document that it was read from."""
    label = name if name is not None else _label(source)
    if isinstance(source, str | os.PathLike) and source != STANDARD:
        try:  # at once, before the first trace is requested
            mode = Path(source).stat().st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "is a folder, not a file")
            if stat.S_ISREG(mode):  # opening a pipe twice would lose its content
                Path(source).open("rb").close()
        except (OSError, ValueError) as error:
            raise InvalidRecord(_read_problem(error), file=label) from None
    elif source != STANDARD and not hasattr(source, "read"):
        raise TypeError(f"a source is a path, '-' or an open file (got {type(source).__name__})")
    if max_document_mb is None:
        max_document_mb = Settings.load().max_document_mb
    return _Reading(label, domain or "default", int(max_document_mb * (1 << 20)), use_labels, spans_only).all_of(source)


def write_traces(path: str | os.PathLike[str], traces: Iterable[ReasoningTrace], *, mode: int | None = None) -> int:
    """Write traces as JSON lines. If anything fails, the file is unchanged.

    Args:
        path: the file; `.gz` at its end selects gzip, `-` is standard output.
        traces: the traces; an iterator is read lazily.
        mode: permissions of a new file; the setting `file_mode`, 0600 by default, when None. A file that is replaced keeps its own.

    Returns:
        The number of traces written.

    Raises:
        OSError: the file cannot be written.
        InvalidTrace: a trace holds a value without a form in JSON, or is an `InvalidRecord` from `read_traces`.
    """
    if path == STANDARD:
        stream: Any = getattr(sys.stdout, "buffer", None)
        sys.stdout.flush()
        if stream is None:  # a replaced standard output, which takes text only
            return _write(lambda line: sys.stdout.write(line.decode()), traces)
        count = _write(stream.write, traces)
        stream.flush()
        return count
    with whole_file(path, mode) as file:
        if not os.path.realpath(path).endswith(".gz"):
            return _write(file.write, traces)
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            return _write(packed.write, traces)


class _Reading:
    """A file that is being read: its name, and the fallbacks for its runs."""

    def __init__(self, label: str, domain: str, limit: int, use_labels: bool, spans_only: bool) -> None:
        self._label = label
        self._domain = domain
        self._limit = limit
        self._use_labels = use_labels
        self._spans_only = spans_only
        self._created_at: str | None = None
        self._line = 0

    def all_of(self, source: Source) -> Iterator[FileRun | InvalidRecord]:
        if isinstance(source, str | os.PathLike) and source != STANDARD:
            try:
                file: Any = Path(source).open("rb")  # noqa: SIM115 — closed below
            except OSError as error:
                yield self._invalid(_read_problem(error), 0)
                return
            with file:
                yield from self._stream(file)
        else:
            yield from self._stream(sys.stdin if source == STANDARD else source)

    def _stream(self, file: Any) -> Iterator[FileRun | InvalidRecord]:
        try:
            status = os.fstat(file.fileno())
        except (OSError, ValueError, AttributeError, TypeError):
            status = None  # not a file on disk
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_mtime >= 0:
            written = datetime.fromtimestamp(int(status.st_mtime), UTC)
            self._created_at = f"{written:%Y-%m-%dT%H:%M:%S}.000Z"
        lines = self._lines(file)
        for number, line in enumerate(lines):
            if not isinstance(line, str):
                yield line
                continue
            found = read_line(line, self._line)
            if number == 0 and isinstance(found, BrokenText) and found.incomplete and line.lstrip()[:1] in {"{", "["}:
                yield from self._text(line, lines)  # up to the end of the file
                return
            yield from self._traces_of(found)

    def _lines(self, file: object) -> Iterator[str | InvalidRecord]:
        """Yield the lines that are not blank; if the rest of the file cannot be read, the problem is the last item."""
        try:
            for line in lines_of(file, self._limit):
                self._line += 1
                if isinstance(line, TooLong):
                    yield self._too_long("the line is", "; the rest of the file is not read" if line.ends else "")
                    continue
                if self._line == 1:
                    if problem := next((_OTHERS[begin] for begin in _OTHERS if line.startswith(begin)), None):
                        yield self._invalid(problem, 1)
                        return
                    line = line.removeprefix(_BOM)
                if not line.strip():
                    continue
                try:
                    text = line.decode()
                except UnicodeDecodeError as error:
                    problem = f"is not UTF-8: byte {error.start + 1} is 0x{line[error.start]:02x}"
                    yield self._invalid(problem, self._line)
                else:
                    yield text
        except EOFError:
            yield self._invalid("the compressed file ends too early", self._line + 1)
        except (OSError, zlib.error, UnicodeError, ValueError) as error:
            yield self._invalid(f"cannot be read any further: {_read_problem(error)}", self._line + 1)

    def _text(self, first: str, lines: Iterator[str | InvalidRecord]) -> Iterator[FileRun | InvalidRecord]:
        """Yield the traces of a file whose first line is only the beginning of a document."""
        begin = expected = self._line
        kept = [first]
        failed: InvalidRecord | None = None
        size = len(first)
        for line in lines:
            if not isinstance(line, str):
                failed = line
                break
            size += len(line)
            if size > self._limit:
                yield self._too_long("a document over several lines is", "; the rest of the file is not read", begin)
                return
            expected += 1
            kept.append("\n" * (self._line - expected) + line)  # blank lines were skipped, but count
            expected = self._line
        for found in JsonText("".join(kept), begin, is_message).values():
            if failed is not None and isinstance(found, BrokenText):
                break  # broken because the rest could not be read
            yield from self._traces_of(found)
        if failed is not None:
            yield failed

    def _traces_of(self, found: FoundValue | BrokenText) -> Iterator[FileRun | InvalidRecord]:
        if isinstance(found, BrokenText):
            column = f" (column {found.column})" if found.column else ""
            yield self._invalid(found.problem + column, found.line, found.path)
            return
        spans = span_format(found.value)
        if spans is not None:
            problem = f"there is no reader for this format: {spans[0]}; a file holds traces or chat runs"
            yield SpanFormat(problem, file=self._label, line=found.line, path=_below(found.path, spans[1]))
            return
        if self._spans_only:
            return
        several = runs_in(found.value) if not is_native(found.value) else None
        if several is None:
            yield self._run(found.value, found.line, found.path)
            return
        name, runs = several
        for index, run in enumerate(runs):
            yield self._run(run, found.line, f"{_below(found.path, name)}[{index}]")

    def _run(self, document: object, line: int, path: str) -> FileRun | InvalidRecord:
        try:
            if is_native(document):
                trace = ReasoningTrace.model_validate(document)
            else:
                trace = read_run(
                    document,
                    fallback_created_at=self._created_at,
                    fallback_domain=self._domain,
                    use_label=self._use_labels,
                )
            return FileRun(trace, document, line, path, self._label)
        except InvalidTrace as error:
            return self._invalid(error.problem, line, _below(path, error.path))
        except RecursionError:
            return self._invalid(TOO_DEEP, line, path)

    def _too_long(self, what: str, consequence: str, line: int | None = None) -> InvalidRecord:
        problem = (
            f"{what} longer than {self._limit / (1 << 20):.3g} MB{consequence}; "
            "the setting max_document_mb (GRACE_KP_MAX_DOCUMENT_MB) allows more"
        )
        return self._invalid(problem, self._line if line is None else line)

    def _invalid(self, problem: str, line: int, path: str = "") -> InvalidRecord:
        return InvalidRecord(problem, file=self._label, line=line, path=path)


def _label(source: object) -> str:
    if source == STANDARD:
        return "<stdin>"
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def _read_problem(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be read: {reason}"


def _below(path: str, inner: str) -> str:
    return f"{path}.{inner}" if path and inner and not inner.startswith("[") else path + inner


def _write(write: Callable[[bytes], object], traces: Iterable[ReasoningTrace]) -> int:
    count = 0
    for trace in traces:
        if isinstance(trace, InvalidTrace):
            raise trace
        write(trace.to_json().encode() + b"\n")
        count += 1
    return count
