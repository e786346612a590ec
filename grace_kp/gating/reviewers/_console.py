"""A person at a terminal: sees what would run and why it is asked, and answers with a letter. Enter alone approves nothing.

It reads the terminal with a deadline of its own, so that giving up leaves nobody behind who would swallow the next line typed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, TextIO

from grace_kp.confidence import part_text, penalties_text
from grace_kp.gating._request import InterventionResponse
from grace_kp.levels import InterventionAction
from grace_kp.trace._redact import redact_text, redact_value
from grace_kp.trace._render import cut, render, to_text

if TYPE_CHECKING:
    from grace_kp.gating._request import InterventionRequest

WIDTH = 78
_ANSWERS = {
    "y": InterventionAction.PROCEED,
    "yes": InterventionAction.PROCEED,
    "n": InterventionAction.CANCEL,
    "no": InterventionAction.CANCEL,
    "e": InterventionAction.MODIFY,
    "edit": InterventionAction.MODIFY,
    "s": InterventionAction.SKIP,
    "skip": InterventionAction.SKIP,
    "r": InterventionAction.RETRY,
    "retry": InterventionAction.RETRY,
    "i": InterventionAction.INPUT,
    "input": InterventionAction.INPUT,
}
_PROMPT = "[y]es  [n]o  [e]dit  [s]kip  [r]etry  [i]nput > "
_PARTS = {
    "search_quality": "search quality",
    "source_agreement": "source agreement",
    "llm_self_eval": "self-evaluation",
    "tool_success": "tool success",
    "query_coverage": "query coverage",
}


class NoTerminal(Exception):
    """There is nobody at a terminal to ask."""


class _TimeIsUp(Exception):
    """The deadline passed before a line was typed."""


_ONE_AT_A_TIME = threading.Lock()


class ConsoleReviewer:
    """Asks at the terminal, one question at a time.

    Args:
        stdin: where answers come from; the process's standard input when None. Must be a terminal.
        stdout: where the question is shown; standard error when None, so that a program's output stays its own.
        name: what the record calls the reviewer.
    """

    keeps_time = True
    """It gives up by itself when the request's time is over."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None, *, name: str = "console") -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.name = name

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Show the request, and ask until there is an answer.

        Raises:
            NoTerminal: standard input is closed, no terminal, or at its end.
        """
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        if not _ONE_AT_A_TIME.acquire(timeout=-1 if request.timeout is None else request.timeout):
            return InterventionResponse(InterventionAction.CANCEL, timeout_reached=True, reviewer=self.name)
        try:
            lines = _Lines(self._stdin or sys.stdin, self._stdout or sys.stderr, deadline)
            try:
                lines.forget_typed()
                lines.write(describe(request))
                return self._answer(request, lines)
            except _TimeIsUp:
                lines.write("\nTime is up; nobody answered.\n")
                return InterventionResponse(InterventionAction.CANCEL, timeout_reached=True, reviewer=self.name)
        finally:
            _ONE_AT_A_TIME.release()

    def _answer(self, request: InterventionRequest, lines: _Lines) -> InterventionResponse:
        while True:
            action = _ANSWERS.get(lines.ask(_PROMPT).strip().lower())
            if action is None:
                lines.write("Please type one of y, n, e, s, r, i; Enter alone does nothing.\n")
            elif action is InterventionAction.INPUT:
                words = lines.ask("Your words for the agent > ").strip()
                if words:
                    return InterventionResponse(action, user_input=words, reviewer=self.name)
                lines.write("No words, no answer.\n")
            elif action is InterventionAction.MODIFY:
                modified = _edited(request, lines)
                if modified:
                    return InterventionResponse(action, modified=modified, reviewer=self.name)
            else:
                return InterventionResponse(action, reviewer=self.name)


def _edited(request: InterventionRequest, lines: _Lines) -> dict[str, Any] | None:
    """New values, one argument after the other; None where nothing was changed or the result was not wanted."""
    changes: dict[str, Any] = {}
    for name, value in request.arguments.items():
        while True:
            typed = lines.ask(
                f"  {_safe(name)} = {_shown(name, value, 50)}\n  new value as JSON or text, Enter keeps > "
            ).strip()
            if not typed:
                break
            try:
                changes[name] = json.loads(typed)
            except json.JSONDecodeError:
                if isinstance(value, str):
                    changes[name] = typed
                else:
                    lines.write("  That is no JSON, and the value is no text.\n")
                    continue
            break
    if not changes:
        lines.write("Nothing was changed.\n")
        return None
    lines.write("It would run with:\n")
    for name, value in {**request.arguments, **changes}.items():
        mark = "*" if name in changes else " "
        lines.write(f" {mark}{_safe(name)} = {_shown(name, value, 60)}\n")
    while True:
        answer = lines.ask("Run it like this? [y]es  [n]o > ").strip().lower()
        if answer in {"y", "yes"}:
            return changes
        if answer in {"n", "no"}:
            return None


def describe(request: InterventionRequest) -> str:
    """The question as plain text of at most 78 columns: what would run, with what, and why a person is asked."""
    rule = "─" * WIDTH
    out = ["", rule, f" {request.level.value.upper()}  may {_safe(request.action)} run?", rule]
    if request.objective:
        out.append(f" for:        {_fit(redact_text(request.objective, identifiers=False), WIDTH - 13)}")
    if request.problem:
        out.append(f" problem:    {_fit(request.problem, WIDTH - 13)}")
    out.append(" arguments:" + ("" if request.arguments else "  none"))
    out.extend(
        f"   {_safe(name)} = {_shown(name, value, WIDTH - 6 - len(name))}" for name, value in request.arguments.items()
    )
    out.append(f" confidence: {request.decision.confidence_score:.3f} {_bar(request.decision.confidence_score)}")
    score = request.confidence
    if score is not None:
        for part, value in score.evaluated.items():
            told = part_text(value) if value is None else f"{part_text(value)} {_bar(value)}"
            out.append(f"   {_PARTS.get(part, part):<17} {told}")
        if score.penalties_applied:
            out.append(f"   penalties         {penalties_text(score.penalties_applied)}")
    if request.reason:
        out.append(f" because:    {_fit(request.reason, WIDTH - 13)}")
    if request.timeout is not None:
        out.append(f" time:       {request.timeout:g} s, then it does not run")
    return "\n".join([*out, rule, ""])


def _bar(value: float) -> str:
    filled = round(value * 20)
    return "█" * filled + "░" * (20 - filled)


def _shown(name: str, value: Any, width: int) -> str:
    safe = redact_value({name: render(value)}, identifiers=False)
    return _fit(
        to_text(next(iter(safe.values())))
        if not isinstance(value, str)
        else json.dumps(next(iter(safe.values())), ensure_ascii=False),
        max(width, 20),
    )


def _fit(text: str, width: int) -> str:
    text = _safe(text)
    return text if len(text) <= width else cut(text, max(width - 40, 20))


def _safe(text: str) -> str:
    """Without control characters: a value must not paint over the screen that asks about it."""
    return "".join(
        sign if sign.isprintable() else f"\\x{ord(sign):02x}" if ord(sign) < 256 else f"\\u{ord(sign):04x}"
        for sign in text
    )


class _Lines:
    """Reads lines from a terminal until a deadline."""

    def __init__(self, stdin: TextIO | None, stdout: TextIO | None, deadline: float | None) -> None:
        try:
            if stdin is None or stdout is None or not stdin.isatty():
                raise NoTerminal("standard input is no terminal, so there is nobody to ask")
            self._fd = stdin.fileno()
        except (ValueError, OSError):
            raise NoTerminal("standard input is closed, so there is nobody to ask") from None
        self._stdin = stdin
        self._out = stdout
        self._deadline = deadline
        self._typed = b""

    def write(self, text: str) -> None:
        try:
            self._out.write(text)
        except UnicodeEncodeError:
            self._out.write(text.encode("ascii", "replace").decode())
        self._out.flush()

    def forget_typed(self) -> None:
        """What was typed before the question was shown is no answer to it."""
        if os.name == "posix":
            import termios

            termios.tcflush(self._fd, termios.TCIFLUSH)

    def ask(self, prompt: str) -> str:
        self.write(prompt)
        return self._line() if os.name == "posix" else self._line_anywhere()

    def _line(self) -> str:
        import select

        while b"\n" not in self._typed:
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                raise _TimeIsUp
            ready, _, _ = select.select([self._fd], [], [], left)
            if not ready:
                raise _TimeIsUp
            piece = os.read(self._fd, 4_096)
            if not piece:
                raise NoTerminal("standard input ended before there was an answer")
            self._typed += piece
        line, _, rest = self._typed.partition(b"\n")
        # Several lines at once are a paste: only the first was typed for this question.
        self._typed = b""
        if rest:
            self.write("(more than one line; the rest was not taken)\n")
        return line.decode("utf-8", "replace")

    def _line_anywhere(self) -> str:
        line = self._stdin.readline()
        if not line:
            raise NoTerminal("standard input ended before there was an answer")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise _TimeIsUp
        return line.rstrip("\n")
