"""Only a line that was typed to the question, alone, is an answer."""

from __future__ import annotations

import io
import os
import pty
import termios
import threading
import time

import pytest

import grace_kp as gk
from grace_kp.gating.reviewers import _terminal
from grace_kp.gating.reviewers._terminal import (
    Ended,
    Limit,
    NoTerminal,
    PosixLines,
    Refused,
    Terminal,
    TimeIsUp,
    WindowsLines,
)

# What was typed before the question, or together with something else


def test_what_was_typed_before_the_question_is_dropped(asked):
    """With and without Enter."""
    for early in ("y\n", "y"):
        with asked({}, start=False) as person:
            person.types(early)
            person.start()
            person.sees()
            person.types("\n")
            assert "Please type one of" in person.sees()


@pytest.mark.parametrize(
    "burst",
    [
        "zzz\ny\n",
        "y\ny\n",
        "y\nrm",
        "\ny\n",
        "y\n\n",
        "zzz\ny",
        "\x1b[200~zzz\ny\n\x1b[201~",
        "\x1b[200~y\n\x1b[201~",
    ],
    ids=["no-yes", "yes-yes", "yes-rest", "enter-yes", "yes-enter", "no-rest", "marked", "marked-yes"],
)
def test_lines_that_arrive_together_are_no_answer(burst, asked):
    """A burst is dropped as a whole; what is typed to the next prompt counts."""
    with asked({}) as person:
        person.sees()
        person.types(burst)
        person.sees("None of them was taken")
        person.sees()
        person.types("n\n")
        person.sees("Why")
        person.types("\n")
        assert person.answered().action is gk.InterventionAction.CANCEL


def test_a_marked_paste_is_one_burst_however_slow_it_is(monkeypatch, asked):
    """Between the terminal's marks, time does not matter."""
    monkeypatch.setattr(_terminal, "QUIET", 0.0)
    monkeypatch.setattr(_terminal, "PASTE_QUIET", 20.0)
    with asked({}) as person:
        person.sees()
        person.types("\x1b[200~zzz\n")
        person.sees("zzz")
        person.types("y\n\x1b[201~")
        person.sees("None of them was taken")
        person.sees()
        person.types("n\n")
        person.sees("Why")
        person.types("\n")
        assert person.answered().action is gk.InterventionAction.CANCEL


def test_a_paste_longer_than_the_terminal_holds_leaves_nothing_behind(monkeypatch, asked):
    """Its tail is no answer to the next prompt."""
    monkeypatch.setattr(_terminal, "QUIET", 1.0)
    with asked({}) as person:
        person.sees()
        writing = threading.Thread(target=person.types, args=["x" * 3_000 + "\n" + "y\n" * 3_000])
        writing.start()
        person.sees("None of them was taken")
        writing.join()
        person.sees()
        person.types("n\n")
        person.sees("Why")
        person.types("\n")
        assert person.answered().action is gk.InterventionAction.CANCEL


@pytest.mark.parametrize(("first", "prompt"), [("i\n", "agent > "), ("e\n", "keeps > ")])
def test_a_burst_is_neither_words_nor_a_value(first, prompt, asked):
    """The inner prompts refuse it as well; a single pasted line is words."""
    with asked({"to": "Ana"}) as person:
        person.sees()
        person.types(first)
        person.sees(prompt)
        person.types("one\ny\ny\n")
        person.sees("None of them was taken")
        person.sees(prompt)
        person.types("\x1b[200~ask Bob\x1b[201~\n")
        if first == "e\n":
            person.sees(r"\[n\]o > ")
            person.types("zzz\ny\n")
            person.sees("None of them was taken")
            person.sees(r"\[n\]o > ")
            person.types("y\n")
        response = person.answered()
        assert "ask Bob" == (response.user_input or response.modified["to"])


def test_a_line_that_the_terminal_cuts_is_refused(asked):
    """Linux passes on 4,095 bytes of a line and drops the rest."""
    with asked({}) as person:
        person.sees()
        person.types("i\n")
        person.sees("agent > ")
        person.types("x" * 5_000 + "\n")
        assert "at most 4,095 bytes" in person.sees("agent > ")
        person.types("call Ana\n")
        assert "call Ana" == person.answered().user_input


def test_a_limit_within_seconds_is_never_later_than_the_limit():
    """The time to give a reason ends with the time of the question."""
    assert 5.0 == Limit(deadline=5.0).within(1e9).deadline
    soon, ended = Limit(deadline=1e12).within(1).deadline, str
    assert soon < 1e12
    assert ended is Limit(ended=ended).within(1).ended


def test_the_terminal_is_left_as_it_was(asked):
    """Modes that were switched for the question are switched back."""
    with asked({}, start=False) as person:
        before = termios.tcgetattr(person.master)
        person.start()
        person.sees()
        person.types("s\n")
        person.answered()
        person.sees(r"\x1b\[\?2004l")
        assert before == termios.tcgetattr(person.master)


class Keys:
    """Stands for the module `msvcrt`."""

    def __init__(self, text):
        self.waiting = list(text)
        self.echoed = ""

    def kbhit(self):
        return bool(self.waiting)

    def getwch(self):
        return self.waiting.pop(0)

    def putwch(self, character):
        self.echoed += character


def test_keys_of_windows():
    """Backspace edits, arrow keys count for nothing, and a burst is refused as a whole."""
    keys = Keys("nx\b\xe0Ho\r")
    assert "no" == WindowsLines(keys, Limit()).line()
    keys = Keys("zzz\ry\r")
    with pytest.raises(Refused):
        WindowsLines(keys, Limit()).line()
    assert [] == keys.waiting
    keys = Keys("y\r")
    WindowsLines(keys, Limit()).drop()
    assert [] == keys.waiting


def test_windows_ends_the_question_by_a_key_or_by_time():
    """Ctrl-C interrupts the program, Ctrl-Z ends the input, and a deadline in the past takes no key."""
    for key, error in (("\x03", KeyboardInterrupt), ("\x1a", NoTerminal)):
        with pytest.raises(error):
            WindowsLines(Keys(f"y{key}\r"), Limit()).line()
    with pytest.raises(TimeIsUp):
        WindowsLines(Keys(""), Limit(time.monotonic())).line()


def test_a_terminal_that_is_closed_has_no_answer():
    """The input has ended; it is not the time that is up."""
    master, slave = pty.openpty()
    os.close(master)
    with pytest.raises(NoTerminal, match="standard input ended before there was an answer"):
        PosixLines(slave, Limit(time.monotonic() + 10)).line()
    os.close(slave)


def test_an_output_without_a_size_has_the_size_of_the_input():
    """Columns are at least twenty, so that a question can be laid out."""
    master, slave = pty.openpty()
    for columns, expected in ((33, 33), (5, 20)):
        termios.tcsetwinsize(slave, (12, columns))
        with os.fdopen(os.dup(slave), encoding="utf-8") as stdin:
            assert (expected, 12) == Terminal(stdin, io.StringIO(), Limit()).size
    os.close(slave)
    os.close(master)


def test_a_question_that_is_settled_elsewhere_ends():
    """At a terminal of either kind, whether or not there is a deadline."""
    master, slave = pty.openpty()
    for deadline in (None, time.monotonic() + 60):
        looks: list[int] = []

        def ended(looks=looks):
            looks.append(1)
            return "ana approved it" if len(looks) > 2 else ""

        for lines in (PosixLines(slave, Limit(deadline, ended)), WindowsLines(Keys(""), Limit(deadline, ended))):
            with pytest.raises(Ended, match="ana approved it"):
                lines.line()
    os.close(slave)
    os.close(master)
