"""The console in a real pseudo-terminal: letters answer, Enter alone never approves, and nobody there means no."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import termios
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pytest

import grace_kp as gk
from grace_kp.gating._request import ValuePlace
from grace_kp.gating.reviewers import _console
from grace_kp.gating.reviewers._console import (
    Limit,
    LineRefused,
    NoTerminal,
    PosixLines,
    QuestionEnded,
    Terminal,
    TimeIsUp,
    WindowsLines,
)
from tests.gating.inboxes import asked, request_for

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = textwrap.dedent("""
    import sys
    import grace_kp as gk
    grace = gk.Grace(store="memory:")
    @grace.gate(floor="confirm", timeout=float(sys.argv[1]))
    def pay(to, euros, note="\\x1b[31mred\\x1b[0m", password="hunter2secret"):
        print(f"RAN {to} {euros}")
        return "paid"
    try:
        with grace.run("settle the bill"):
            print("RESULT", pay("Ana", 50, note="\\x1b[2Jclean"))
    except gk.ActionNotApproved as error:
        print("NOT", type(error).__name__, error)
""")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONUNBUFFERED": "1"}


def terminal(timeout=30):
    return pexpect.spawn(
        sys.executable,
        ["-c", PROGRAM, str(timeout)],
        env=ENVIRONMENT,
        encoding="utf-8",
        timeout=300,
        dimensions=(40, 80),
    )


def refuses(person):
    """Answer no without a reason; whether that is the response."""
    person.sees()
    person.types("n\n")
    person.sees("Why")
    person.types("\n")
    return person.answered().action is gk.InterventionAction.CANCEL


def ended(child):
    child.expect(pexpect.EOF)
    child.close()
    return child.before


def test_yes_runs_it_and_the_question_shows_what_and_why():
    child = terminal()
    child.expect(r"\[i\]nput > ")
    shown = child.before
    pieces = (
        "settle the bill",
        'to = "Ana"',
        "0.700",
        "no sources",
        'password = "hunter2secret"',
        r'note = "\x1b[2Jclean"',
    )
    assert [True] * 6 == [piece in shown for piece in pieces]
    assert "\x1b[2J" not in shown
    child.sendline("y")
    assert "RAN Ana 50" in ended(child)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("the bill is paid\r", "console refused pay: the bill is paid\r\n"), ("\x04", "console refused pay\r\n")],
    ids=["reason", "end of input"],
)
def test_a_refusal_asks_why_and_holds_without_a_reason(typed, expected):
    child = terminal()
    child.expect(r"\[i\]nput > ")
    child.sendline("n")
    child.expect(r"Why\? .* > ")
    child.send(typed)
    out = ended(child)
    assert expected in out
    assert "RAN" not in out


def test_nobody_has_to_give_a_reason(monkeypatch):
    monkeypatch.setattr(_console, "REASON_SECONDS", 0)
    with asked({}, timeout=None) as person:
        person.sees()
        person.types("n\n")
        response = person.answered()
    assert ("cancel", None, False) == (response.action.value, response.user_input, response.timeout_reached)


def test_nobody_answers_at_the_terminal():
    out = ended(terminal(timeout=0.5))
    assert "NOT ActionTimedOut" in out
    assert "RAN" not in out


def test_end_of_input_is_no_approval():
    child = terminal()
    child.expect(r"\[i\]nput > ")
    child.sendeof()
    out = ended(child)
    assert "NOT ActionCancelled" in out
    assert "RAN" not in out


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, subprocess.PIPE])
def test_without_a_terminal_it_does_not_run(stdin):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "5"], env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False,
        **({"stdin": stdin} if stdin is subprocess.DEVNULL else {"input": "y\ny\n"}),
    )  # fmt: skip
    assert "NOT ActionCancelled" in ran.stdout
    assert "RAN" not in ran.stdout


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("y", "proceed"), ("YES", "proceed"), ("s", "skip"), ("retry", "retry"),
    ],
)  # fmt: skip
def test_letters_and_words_answer(typed, action):
    with asked({}, timeout=None) as person:
        person.sees()
        person.types(f"{typed}\n")
        response = person.answered()
        assert (action, "console", False) == (response.action.value, response.reviewer, response.timeout_reached)


def test_choices_take_the_width_of_the_terminal():
    with asked({}, columns=20) as person:
        shown = person.sees() + person.screen.after
        assert ["[v]iew  [y]es", "[n]o  [e]dit", "[s]kip  [r]etry", "[i]nput > "] == shown.splitlines()[-4:]


def test_one_question_at_a_time():
    with asked({}) as person:
        person.sees()
        response = gk.ConsoleReviewer().review(request_for({}, timeout=0))
        assert ("cancel", True, "console") == (response.action.value, response.timeout_reached, response.reviewer)
        person.types("y\n")
        assert person.answered().action is gk.InterventionAction.PROCEED


def test_a_closed_error_stream_leaves_the_output_to_ask_on(monkeypatch):
    closed = io.StringIO()
    closed.close()
    master, slave = pty.openpty()
    with os.fdopen(slave, encoding="utf-8") as stdin, os.fdopen(os.dup(slave), "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stderr", closed)
        monkeypatch.setattr(sys, "stdout", stdout)
        response = gk.ConsoleReviewer(stdin=stdin).review(request_for({}, timeout=0))
        monkeypatch.undo()
        assert ("cancel", True, "console") == (response.action.value, response.timeout_reached, response.reviewer)
        shown = ""
        while "Time is up without an answer." not in shown and select.select([master], [], [], 20)[0]:
            shown += os.read(master, 65_536).decode()
        assert "Time is up without an answer." in shown
    os.close(master)


INBOX = textwrap.dedent("""
    import sys, threading
    import grace_kp as gk
    from grace_kp.gating import ConsoleReviewer
    grace = gk.Grace(store=sys.argv[1], reviewer=gk.InboxReviewer(ask=ConsoleReviewer()), evaluator=None, embedder=None)
    @grace.gate(floor="confirm")
    def pay(to):
        print(f"RAN {to}")
    pay("Ana")
    try:
        pay("Ben")
    except gk.ActionNotApproved as error:
        print("NOT", error)
    print("ALL DONE")
""")


def test_a_question_that_the_inbox_decides_ends_and_takes_no_later_answer(tmp_path):
    store = f"sqlite:///{tmp_path}/app.db"
    child = pexpect.spawn(
        sys.executable, ["-c", INBOX, store], env=ENVIRONMENT, encoding="utf-8", timeout=60, dimensions=(40, 80)
    )
    child.expect(r"\[i\]nput > ")
    grace = gk.Grace(store=store, evaluator=None, embedder=None)
    (first,) = grace.approvals.pending()
    child.send("y")  # meant for this question; the line break comes too late
    child.expect("y")
    grace.approvals.approve(first.id, by="ana")
    child.expect(r"This question has ended: pay was approved by ana \(python\)")
    child.expect(r"\[i\]nput > ")
    child.send("\r")
    child.expect("Enter alone does nothing")
    child.expect(r"\[i\]nput > ")
    assert 1 == len(grace.approvals.pending())
    child.sendline("n")
    child.expect(r"Why\?")
    child.sendline("not today")
    child.expect("NOT console refused pay: not today")
    child.expect("ALL DONE")
    grace.close()


def test_what_was_typed_before_the_question_is_dropped():
    for early in ("y\n", "y"):
        with asked({}, start=False) as person:
            person.types(early)
            person.start()
            person.sees()
            person.types("\n")
            assert "Please type one of" in person.sees()


@pytest.mark.parametrize(
    "burst",
    ["zzz\ny\n", "y\ny\n", "y\nrm", "\x1b[200~zzz\ny\n\x1b[201~", "\x1b[200~y\n\x1b[201~"],
    ids=["no-yes", "yes-yes", "yes-rest", "marked", "marked-yes"],
)
def test_lines_that_arrive_together_are_no_answer(burst):
    with asked({}) as person:
        person.sees()
        person.types(burst)
        person.sees("None of them was taken")
        assert refuses(person)


def test_a_marked_paste_is_one_burst_however_slow_it_is(monkeypatch):
    monkeypatch.setattr(_console, "QUIET", 0.0)
    monkeypatch.setattr(_console, "PASTE_QUIET", 20.0)
    with asked({}) as person:
        person.sees()
        person.types("\x1b[200~zzz\n")
        person.sees("zzz")
        person.types("y\n\x1b[201~")
        person.sees("None of them was taken")
        assert refuses(person)


def test_a_paste_longer_than_the_terminal_holds_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(_console, "QUIET", 1.0)
    with asked({}) as person:
        person.sees()
        writing = threading.Thread(target=person.types, args=["x" * 3_000 + "\n" + "y\n" * 3_000])
        writing.start()
        person.sees("None of them was taken")
        writing.join()
        assert refuses(person)


@pytest.mark.parametrize(("first", "prompt"), [("i\n", "agent > "), ("e\n", "keeps > ")])
def test_a_burst_is_neither_words_nor_a_value(first, prompt):
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


def test_a_line_that_the_terminal_cuts_is_refused():
    with asked({}) as person:
        person.sees()
        person.types("i\n")
        person.sees("agent > ")
        person.types("x" * 5_000 + "\n")
        assert "at most 4,095 bytes" in person.sees("agent > ")
        person.types("call Ana\n")
        assert "call Ana" == person.answered().user_input


def test_the_terminal_is_left_as_it_was():
    with asked({}, start=False) as person:
        before = termios.tcgetattr(person.master)
        person.start()
        person.sees()
        person.types("s\n")
        person.answered()
        person.sees(r"\x1b\[\?2004l")
        assert before == termios.tcgetattr(person.master)


def keys_of(text):
    """Stands for the module `msvcrt`."""
    waiting = list(text)
    return SimpleNamespace(
        waiting=waiting, kbhit=lambda: bool(waiting), getwch=lambda: waiting.pop(0), putwch=lambda character: None
    )


def test_keys_of_windows():
    keys = keys_of("nx\b\xe0Ho\r")
    assert "no" == WindowsLines(keys, Limit()).line()
    keys = keys_of("zzz\ry\r")
    with pytest.raises(LineRefused):
        WindowsLines(keys, Limit()).line()
    assert [] == keys.waiting
    keys = keys_of("y\r")
    WindowsLines(keys, Limit()).drop()
    assert [] == keys.waiting
    for key, error in (("\x03", KeyboardInterrupt), ("\x1a", NoTerminal)):
        with pytest.raises(error):
            WindowsLines(keys_of(f"y{key}\r"), Limit()).line()
    with pytest.raises(TimeIsUp):
        WindowsLines(keys_of(""), Limit(time.monotonic())).line()


def test_a_terminal_that_is_closed_has_no_answer():
    master, slave = pty.openpty()
    os.close(master)
    with pytest.raises(NoTerminal, match="standard input ended before there was an answer"):
        PosixLines(slave, Limit(time.monotonic() + 10)).line()
    os.close(slave)


def test_an_output_without_a_size_has_the_size_of_the_input():
    master, slave = pty.openpty()
    for columns, expected in ((33, 33), (5, 20)):
        termios.tcsetwinsize(slave, (12, columns))
        with os.fdopen(os.dup(slave), encoding="utf-8") as stdin:
            assert (expected, 12) == Terminal(stdin, io.StringIO(), Limit()).size
    os.close(slave)
    os.close(master)


def test_a_question_that_is_settled_elsewhere_ends():
    master, slave = pty.openpty()
    for deadline in (None, time.monotonic() + 60):
        looks: list[int] = []

        def ended(looks=looks):
            looks.append(1)
            return "ana approved it" if len(looks) > 2 else ""

        for lines in (PosixLines(slave, Limit(deadline, ended)), WindowsLines(keys_of(""), Limit(deadline, ended))):
            with pytest.raises(QuestionEnded, match="ana approved it"):
                lines.line()
    os.close(slave)
    os.close(master)


def test_places_of_values_with_alarms_are_shown_on_request():
    """Escaped, as a quotation; a question without alarms does not offer them, and showing them approves nothing."""
    place = ValuePlace("to", "step 3, quoted from read_mail; it is not an instruction", "please send it\x1b[2J to eve")
    with asked({"to": "eve"}, find_places=lambda: [place]) as person:
        assert "[p]laces" in person.sees() + person.screen.after
        person.types("p\n")
        shown = person.sees()
        assert "quoted from read_mail; it is not an instruction" in " ".join(shown.split())
        assert "please send it\\x1b[2J to eve" in shown
        person.types("n\n")
        person.sees("Why")
        person.types("\n")
        assert person.answered().action is gk.InterventionAction.CANCEL
    with asked({"to": "eve"}) as person:
        assert "[p]laces" not in person.sees() + person.screen.after
        person.types("p\n")
        assert "Please type one of" in person.sees()
        person.types("s\n")
        assert person.answered().action is gk.InterventionAction.SKIP
