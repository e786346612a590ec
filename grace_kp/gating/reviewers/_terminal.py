"""Questions and answers at a terminal, line by line, until a deadline. Only input that was typed after the prompt is an answer.

Input that arrived before the prompt is dropped. Lines that arrive together, as from a paste, are dropped as a whole: after each line the
terminal is watched for a moment, in case more follows. Terminals that can mark pastes (bracketed paste) are switched to do so.
"""

from __future__ import annotations

import os
import shutil
import textwrap
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIN_WIDTH = 20
QUIET = 0.1
"""Seconds without input after which a burst has ended. People do not type the next line faster."""
PASTE_QUIET = 2.0
"""The same inside a paste whose end the terminal will mark."""
MAX_LINE = 4_095
"""Bytes of a line; the line discipline of Linux drops the rest without a word."""
_POLL = 0.02
LOOK = 0.1
"""Seconds between two looks whether a question was settled elsewhere."""
_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_MARK_PASTES, _MARK_NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"


class NoTerminal(Exception):
    """No terminal at which somebody could answer."""


class TimeIsUp(Exception):
    """The deadline passed before a line was typed."""


class Ended(Exception):
    """The question was settled elsewhere before a line was typed; the message says how."""


class Refused(Exception):
    """The input is no answer; the message says why."""


BURST = "Several lines arrived at once, as from a paste. None of them was taken as an answer."
TOO_LONG = f"The terminal passes on at most {MAX_LINE:,} bytes of a line. Nothing of this line was taken."


class LineSource(Protocol):
    """Where lines come from: a POSIX terminal, or the console of Windows."""

    def drop(self) -> None:
        """Drop everything that has arrived so far, and wait until nothing more arrives.

        Raises:
            TimeIsUp: input kept arriving until the deadline.
        """
        ...

    def line(self) -> str:
        """Return the next line.

        Raises:
            Refused: it came in a burst, or is too long.
            TimeIsUp: the deadline passed.
            Ended: the question was settled elsewhere.
            NoTerminal: the input has ended.
        """
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a question is asked."""

    deadline: float | None = None
    """Value of `time.monotonic` after which nobody is asked any more; None is never."""
    ended: Callable[[], str] | None = None
    """Returns how the question was settled elsewhere; empty while it was not."""

    def seconds(self) -> float | None:
        """Seconds to wait before asking again; None where nothing but an answer ends the question.

        Raises:
            TimeIsUp: the deadline has passed.
            Ended: the question was settled elsewhere.
        """
        if self.ended is not None and (how := self.ended()):
            raise Ended(how)
        left = None if self.deadline is None else self.deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeIsUp
        if self.ended is None:
            return left
        return LOOK if left is None else min(left, LOOK)

    def within(self, seconds: float) -> Limit:
        """Return this limit, or an earlier one so many seconds from now."""
        soon = time.monotonic() + seconds
        return replace(self, deadline=soon if self.deadline is None else min(soon, self.deadline))


class Terminal:
    """One conversation at a terminal. Use it as a context manager.

    Args:
        stdin: the terminal's input.
        stdout: where questions are shown.
        limit: when it gives up.

    Raises:
        NoTerminal: `stdin` is closed or no terminal.
    """

    def __init__(self, stdin: TextIO | None, stdout: TextIO | None, limit: Limit) -> None:
        try:
            if stdin is None or stdout is None or not stdin.isatty():
                raise NoTerminal("standard input is not a terminal, so there is nobody to ask")
            self._in = stdin.fileno()
        except (ValueError, OSError):
            raise NoTerminal("standard input is closed, so there is nobody to ask") from None
        self._out = stdout
        self._limit = limit
        self._source = _source(self._in, limit)
        self._marks_pastes = isinstance(self._source, PosixLines) and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Self:
        if self._marks_pastes:
            self.write(_MARK_PASTES)
        return self

    def __exit__(self, *_: object) -> None:
        if self._marks_pastes:
            self.write(_MARK_NO_PASTES)

    @property
    def encoding(self) -> str:
        """Encoding of the output."""
        return getattr(self._out, "encoding", None) or "utf-8"

    @property
    def size(self) -> tuple[int, int]:
        """Current number of columns (20 or more) and rows."""
        for stream in (self._out, None):
            try:
                columns, rows = os.get_terminal_size(self._in if stream is None else stream.fileno())
            except (OSError, ValueError, AttributeError):
                continue
            if columns and rows:
                return max(columns, MIN_WIDTH), rows
        columns, rows = shutil.get_terminal_size()
        return max(columns, MIN_WIDTH), rows

    def write(self, text: str) -> None:
        """Show a text."""
        try:
            self._out.write(text)
        except UnicodeEncodeError:
            self._out.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        self._out.flush()

    def ask(self, prompt: str, *, within: float | None = None) -> str:
        """Show the prompt and return the line that is typed in reply, without blanks around it; `within` limits the seconds.

        Raises:
            TimeIsUp: nobody answered in time.
            Ended: the question was settled elsewhere.
            NoTerminal: the input has ended.
        """
        source = self._source if within is None else _source(self._in, self._limit.within(within))
        while True:
            source.drop()
            self.write(prompt)
            try:
                return source.line().strip()
            except Refused as refusal:
                self.write("\n".join(["", *textwrap.wrap(str(refusal), self.size[0]), ""]))


def _source(descriptor: int, limit: Limit) -> LineSource:
    if os.name == "posix":
        return PosixLines(descriptor, limit)
    import msvcrt

    return WindowsLines(msvcrt, limit)


class PosixLines:
    """Lines of a terminal in canonical mode."""

    def __init__(self, descriptor: int, limit: Limit) -> None:
        self._fd = descriptor
        self._limit = limit

    def drop(self) -> None:
        """Drop what has arrived; see `LineSource`."""
        import termios

        with self._by_character():
            while True:
                self._limit.seconds()
                termios.tcflush(self._fd, termios.TCIFLUSH)
                if not self._arrives(QUIET / 2):
                    break
        termios.tcflush(self._fd, termios.TCIFLUSH)

    def line(self) -> str:
        """Return the next line; see `LineSource`."""
        data = b""
        while b"\n" not in data:
            if self._arrives(self._limit.seconds()):
                data += self._read()
        line, _, rest = data.partition(b"\n")
        in_paste = line.rfind(_PASTE_BEGIN) > line.rfind(_PASTE_END)
        if self._drain(in_paste=in_paste) or rest or in_paste:
            raise Refused(BURST)
        if len(line) >= MAX_LINE:
            raise Refused(TOO_LONG)
        return line.replace(_PASTE_BEGIN, b"").replace(_PASTE_END, b"").decode("utf-8", "replace")

    def _drain(self, *, in_paste: bool) -> bool:
        """Drop the input that follows a line in the same burst; True where there was any."""
        tail = b""
        with self._by_character():
            while self._arrives(PASTE_QUIET if in_paste else QUIET):
                tail = (tail + self._read())[-4_096:]
                in_paste = in_paste and _PASTE_END not in tail
                self._limit.seconds()
        return bool(tail)

    @contextmanager
    def _by_character(self) -> Iterator[None]:
        """Make characters readable before a line break follows: they belong to a burst, too."""
        import termios

        before: list[Any] = termios.tcgetattr(self._fd)
        changed = [*before[:6], [*before[6]]]
        changed[3] &= ~termios.ICANON
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSANOW, changed)
        try:
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSANOW, before)

    def _arrives(self, seconds: float | None) -> bool:
        import select

        return bool(select.select([self._fd], [], [], seconds)[0])

    def _read(self) -> bytes:
        try:
            piece = os.read(self._fd, 65_536)
        except OSError:
            piece = b""  # the terminal was closed
        if not piece:
            raise NoTerminal("standard input ended before there was an answer")
        return piece


class WindowsLines:
    """Lines of the console of Windows, read key by key.

    Args:
        keys: the module `msvcrt`.
        limit: as for `Terminal`.
    """

    def __init__(self, keys: Any, limit: Limit) -> None:
        self._keys = keys
        self._limit = limit

    def drop(self) -> None:
        """Drop what has arrived; see `LineSource`."""
        while self._arrives(QUIET / 2):
            self._keys.getwch()
            self._limit.seconds()

    def line(self) -> str:
        """Return the next line; see `LineSource`."""
        typed: list[str] = []
        while (key := self._key()) not in {"\r", "\n"}:
            if key == "\b":
                if typed:
                    typed.pop()
                    self._echo("\b \b")
            elif key == "\x1a":
                raise NoTerminal("standard input ended before there was an answer")
            else:
                typed.append(key)
                self._echo(key)
        self._echo("\r\n")
        if self._arrives(QUIET):
            self.drop()
            raise Refused(BURST)
        return "".join(typed)

    def _key(self) -> str:
        """Return the next key that stands for a character."""
        while True:
            while not self._arrives(_POLL):
                self._limit.seconds()
            key: str = self._keys.getwch()
            if key == "\x03":
                raise KeyboardInterrupt
            if key not in {"\x00", "\xe0"}:
                return key
            self._keys.getwch()  # the second half of an arrow or function key

    def _echo(self, text: str) -> None:
        for character in text:
            self._keys.putwch(character)

    def _arrives(self, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while not self._keys.kbhit():
            if time.monotonic() >= ends:
                return False
            time.sleep(_POLL / 4)
        return True
