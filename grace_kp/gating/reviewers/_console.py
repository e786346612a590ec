"""A reviewer at the terminal: it shows a person the whole call and the reason for the question, and reads a letter as the answer.

An approval counts only after everything was shown. An argument that cannot be shown needs a phrase instead of a letter. Enter alone approves
nothing. Only lines typed after the prompt are answers: input before the prompt is dropped, and so are lines that arrive together, as from a
paste. After each line the terminal is watched for a moment in case more follows. Bracketed paste is switched on where the terminal has it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TextIO

from grace_kp.gating._request import InterventionResponse, sizes_text
from grace_kp.gating.reviewers._question import Page, Question, place_lines, units, wrap
from grace_kp.levels import InterventionAction
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.gating._request import InterventionRequest


MIN_WIDTH = 20
QUIET = 0.1
"""Seconds without input that end a burst. People do not type the next line faster."""
PASTE_QUIET = 2.0
"""The same inside a paste whose end the terminal will mark."""
MAX_LINE = 4_095
"""Bytes of a line; the line discipline of Linux silently drops the rest."""
_POLL = 0.02
LOOK = 0.1
"""Seconds between two looks whether a question was settled elsewhere."""
_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_MARK_PASTES, _MARK_NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"


class NoTerminal(Exception):
    """No terminal at which a person could answer."""


class TimeIsUp(Exception):
    """The deadline passed before a line was typed."""


class QuestionEnded(Exception):
    """The question was settled elsewhere before a line was typed; the message says how."""


class LineRefused(Exception):
    """The input is not an answer; the message says why."""


BURST = "Several lines arrived at once, as from a paste. None of them was taken as an answer."
TOO_LONG = f"The terminal passes on at most {MAX_LINE:,} bytes of a line. Nothing of this line was taken."


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a question is asked."""

    deadline: float | None = None
    """Value of `time.monotonic` after which the question ends; None is never."""
    ended: Callable[[], str] | None = None
    """Returns how the question was settled elsewhere; empty while it was not."""

    def seconds(self) -> float | None:
        """Seconds to wait before asking again; None where nothing but an answer ends the question."""
        if self.ended is not None and (how := self.ended()):
            raise QuestionEnded(how)
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

    Raises:
        NoTerminal: `stdin` is closed or not a terminal.
    """

    def __init__(self, stdin: TextIO | None, stdout: TextIO | None, limit: Limit) -> None:
        try:
            if stdin is None or stdout is None or not stdin.isatty():
                raise NoTerminal("standard input is not a terminal, so no reviewer is available")
            self._in = stdin.fileno()
        except (ValueError, OSError):
            raise NoTerminal("standard input is closed, so no reviewer is available") from None
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
        try:
            self._out.write(text)
        except UnicodeEncodeError:
            self._out.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        self._out.flush()

    def ask(self, prompt: str, *, within: float | None = None) -> str:
        """Show the prompt and return the line that is typed in reply, without blanks around it; `within` limits the seconds."""
        source = self._source if within is None else _source(self._in, self._limit.within(within))
        while True:
            source.drop()
            self.write(prompt)
            try:
                return source.line().strip()
            except LineRefused as refusal:
                self.write("\n".join(["", *textwrap.wrap(str(refusal), self.size[0]), ""]))


def _source(descriptor: int, limit: Limit) -> PosixLines | WindowsLines:
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
        """Drop everything that has arrived so far, and wait until nothing more arrives."""
        import termios

        with self._by_character():
            while True:
                self._limit.seconds()
                termios.tcflush(self._fd, termios.TCIFLUSH)
                if not self._arrives(QUIET / 2):
                    break
        termios.tcflush(self._fd, termios.TCIFLUSH)

    def line(self) -> str:
        data = b""
        while b"\n" not in data:
            if self._arrives(self._limit.seconds()):
                data += self._read()
        line, _, rest = data.partition(b"\n")
        in_paste = line.rfind(_PASTE_BEGIN) > line.rfind(_PASTE_END)
        if self._drain(in_paste=in_paste) or rest or in_paste:
            raise LineRefused(BURST)
        if len(line) >= MAX_LINE:
            raise LineRefused(TOO_LONG)
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
    """Lines of the console of Windows, read key by key from the module `msvcrt`."""

    def __init__(self, keys: Any, limit: Limit) -> None:
        self._keys = keys
        self._limit = limit

    def drop(self) -> None:
        while self._arrives(QUIET / 2):
            self._keys.getwch()
            self._limit.seconds()

    def line(self) -> str:
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
            raise LineRefused(BURST)
        return "".join(typed)

    def _key(self) -> str:
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


UNSEEN = "run unseen"
"""The phrase that runs an action although an argument cannot be shown in full."""
REASON_SECONDS = 60.0
"""Time to type the reason of a refusal. The agent must not wait for a person who has left."""
VIEW = "view"
_WORDS: dict[str, InterventionAction | str] = {
    "view": VIEW,
    "yes": InterventionAction.PROCEED,
    "no": InterventionAction.CANCEL,
    "edit": InterventionAction.MODIFY,
    "skip": InterventionAction.SKIP,
    "retry": InterventionAction.RETRY,
    "input": InterventionAction.INPUT,
}
_ANSWERS = {typed: answer for word, answer in _WORDS.items() for typed in (word, word[0])}
_PLACES = "places"
_CHOICES = "  ".join(f"[{word[0]}]{word[1:]}" for word in _WORDS) + "\N{NO-BREAK SPACE}>"
_ONE_AT_A_TIME = threading.Lock()


class ConsoleReviewer:
    """Asks at the terminal, one question at a time.

    The whole request is shown: complete arguments, neither redacted nor cut, with invisible characters escaped. Long values are folded;
    `v` shows everything, page by page, and only then does `y` count. After `n` it asks for a reason, which is optional.

    Args:
        stdin: a terminal from which answers are read; the process's standard input when None.
        stdout: where the question is shown. When None: standard error, so that it does not mix with the program's output; or standard
            output, where only that is a terminal.
        name: name of the reviewer in the record.
    """

    keeps_time = True
    """`review` returns by itself when the request's time is over."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None, *, name: str = "console") -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.name = name

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Show the request, and ask until there is an answer.

        Raises:
            NoTerminal: standard input is closed, at its end, or not a terminal; or no output is a terminal.
        """
        return self.review_until(request, None)

    def review_until(self, request: InterventionRequest, ended: Callable[[], str] | None) -> InterventionResponse:
        """`review`, which also ends without an answer once `ended` returns how the question was settled elsewhere."""
        limit = Limit(None if request.timeout is None else time.monotonic() + request.timeout, ended)
        try:
            is_free = _ONE_AT_A_TIME.acquire(blocking=False)
            while not is_free:
                left = limit.seconds()
                is_free = _ONE_AT_A_TIME.acquire(timeout=-1 if left is None else left)
        except (QuestionEnded, TimeIsUp):
            return self._timed_out()
        try:
            with Terminal(self._stdin or sys.stdin, self._stdout or _screen(), limit) as terminal:
                try:
                    return replace(_Dialogue(request, terminal).answer(), reviewer=self.name)
                except TimeIsUp:
                    terminal.write("\nTime is up without an answer.\n")
                except QuestionEnded as how:
                    ended_how = printable(str(how))
                    terminal.write(f"\nThis question has ended: {ended_how}. Nothing more is asked about it.\n")
            return self._timed_out()
        finally:
            _ONE_AT_A_TIME.release()

    def _timed_out(self) -> InterventionResponse:
        return InterventionResponse(InterventionAction.CANCEL, timeout_reached=True, reviewer=self.name)


def _screen() -> TextIO:
    for stream in (sys.stderr, sys.stdout):
        try:
            if stream is not None and stream.isatty():
                return stream
        except ValueError:  # closed
            continue
    raise NoTerminal("neither standard error nor standard output is a terminal, so the question cannot be shown")


class _Dialogue:
    """One question at a terminal, until it is answered. Its steps return None where the question must be repeated."""

    def __init__(self, request: InterventionRequest, terminal: Terminal) -> None:
        self._request = request
        self._terminal = terminal
        self._question = Question(request)
        self._is_shown = False

    def answer(self) -> InterventionResponse:
        rows = self._terminal.size[1] - self._prompt().count("\n") - 1
        lines, self._is_shown = self._question.on_screen(self._page(), rows)
        self._write(["", *lines])
        while (response := self._read_answer(self._terminal.ask(self._prompt()).lower())) is None:
            pass
        return response

    def _read_answer(self, typed: str) -> InterventionResponse | None:
        if typed in {_PLACES, _PLACES[0]} and self._request.find_places is not None:
            found = [line for place in self._request.find_places() for line in place_lines(place, self._page())]
            self._show(found or ["No result of a tool that the run holds contains these values."])
            return None
        action = InterventionAction.PROCEED if typed == UNSEEN and self._question.opaque else _ANSWERS.get(typed)
        if action is None:
            self._remark("Please type one of the letters in brackets. Enter alone does nothing.")
        elif action is VIEW:
            self._is_shown = self._show(self._question.in_full(self._page())) or self._is_shown
        elif action is InterventionAction.PROCEED:
            return self._approve(typed)
        elif action is InterventionAction.MODIFY:
            return self._edit()
        elif action is InterventionAction.INPUT:
            words = self._terminal.ask("Your words for the agent > ")
            if words:
                return InterventionResponse(InterventionAction.INPUT, user_input=words)
            self._remark("No words were typed, so nothing was answered.")
        elif action is InterventionAction.CANCEL:
            return InterventionResponse(action, user_input=self._reason())
        else:
            return InterventionResponse(action)
        return None

    def _reason(self) -> str | None:
        # The refusal applies, with or without a reason.
        try:
            return self._terminal.ask("Why? A reason for the agent, or Enter > ", within=REASON_SECONDS) or None
        except (QuestionEnded, TimeIsUp, NoTerminal, OSError):
            return None

    def _approve(self, typed: str) -> InterventionResponse | None:
        if self._request.hidden:
            hidden = sizes_text(self._request.hidden)
            self._remark(f"Hidden content cannot be approved: {hidden}. Edit these arguments, or answer n.")
        elif not self._is_shown:
            self._remark("Not everything that would run has been shown. Type v to see all of it, then answer.")
        else:
            return self._accept(self._question, {}, typed)
        return None

    def _accept(self, question: Question, changes: dict[str, Any], typed: str) -> InterventionResponse | None:
        if question.opaque and typed != UNSEEN:
            opaque = ", ".join(question.opaque)
            self._remark(f"These arguments cannot be shown in full: {opaque}. To run it unseen, type: {UNSEEN}")
            return None
        action = InterventionAction.MODIFY if changes else InterventionAction.PROCEED
        seen = UNSEEN if question.opaque else None
        return InterventionResponse(action, modified=changes or None, selected_option=seen)

    # Editing

    def _edit(self) -> InterventionResponse | None:
        changes: dict[str, Any] = {}
        for name, value in self._request.arguments.items():
            self._show(self._question.argument(name, self._page()))
            has_new_value, new_value = self._new_value(is_text=isinstance(value, str))
            if has_new_value:
                changes[name] = new_value
        if not changes:
            self._remark("Nothing was changed.")
            return None
        hidden = {name: count for name, count in self._request.hidden.items() if name not in changes}
        result = replace(self._request, arguments={**self._request.arguments, **changes}, hidden=hidden)
        question = Question(result, changed=changes)
        self._write(["", "It would run with (* is new):"])
        if not self._show(question.in_full(self._page())):
            self._remark("Nothing was changed, because the result was not shown to its end.")
            return None
        if hidden:
            self._remark(f"Hidden content cannot be approved: {sizes_text(hidden)}. Nothing was changed.")
            return None
        while (typed := self._terminal.ask("Run it like this? [y]es  [n]o > ").lower()) not in {"n", "no"}:
            is_consent = typed in {"y", "yes"} or (typed == UNSEEN and question.opaque)
            if is_consent and (response := self._accept(question, changes, typed)) is not None:
                return response
        return None

    def _new_value(self, *, is_text: bool) -> tuple[bool, Any]:
        """Return whether a value was typed, and the value. Strings need no quotes; other values are JSON."""
        kind = 'text (or JSON in "quotes")' if is_text else "JSON"
        while typed := self._terminal.ask(f"   new value as {kind}, Enter keeps > "):
            if is_text and not typed.startswith('"'):
                return True, typed
            try:
                return True, json.loads(typed)
            except (ValueError, RecursionError):
                self._remark("That is not a JSON value.")
        return False, None

    # Showing

    def _page(self) -> Page:
        return Page(self._terminal.size[0], self._terminal.encoding)

    def _write(self, lines: list[str]) -> None:
        self._terminal.write("".join(f"{line}\n" for line in lines))

    def _remark(self, text: str) -> None:
        page = self._page()
        self._write(wrap(units(text, page), page.width))

    def _prompt(self) -> str:
        width = self._terminal.size[0]
        remark = [] if self._is_shown else textwrap.wrap("Not everything is shown yet; v shows it.", width)
        places = "" if self._request.find_places is None else f"[{_PLACES[0]}]{_PLACES[1:]}  "
        choices = _CHOICES.replace("[i]nput", f"{places}[i]nput")
        return "\n".join([*remark, *textwrap.wrap(choices, width - 2)]).replace("\N{NO-BREAK SPACE}", " ") + " "

    def _show(self, lines: list[str]) -> bool:
        """Show lines page by page; True once the reviewer has seen all of them."""
        rows = max(self._terminal.size[1] - 2, 4)
        pages = [lines[start : start + rows] for start in range(0, len(lines), rows)]
        for number, page in enumerate(pages, 1):
            self._write(page)
            answer = None if number < len(pages) else ""
            while answer not in {"", "q"}:
                answer = self._terminal.ask(f"page {number} of {len(pages)}: Enter goes on, q stops > ").lower()
            if answer:
                return False
        return True
