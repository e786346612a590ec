"""An action that goes ahead with a notice is told to somebody: a callback, or the log and the terminal; and the trace keeps it."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import textwrap
from pathlib import Path

import pexpect
import pytest

import grace_kp as gk
from grace_kp.gating._notice import MAX_LINE, notice_line
from grace_kp.testing import capture, make_grace

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-proj-" + "a1B2c3D4" * 6
both = pytest.mark.parametrize("is_async", [False, True])


class Terminal(io.StringIO):
    def __init__(self, is_terminal=True):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


def act_of(grace, is_async, **options):
    def pay(to, euros=5):
        return "paid"

    async def pay_async(to, euros=5):
        return "paid"

    act = grace.gate(name="pay", floor="notify", **options)(pay_async if is_async else pay)
    return (lambda *a: asyncio.run(act(*a))) if is_async else act


@both
def test_one_line_at_a_terminal(is_async, monkeypatch):
    """Action, arguments and reason, without secrets and control characters; the entry keeps the line and where it went."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with capture() as captured:
        act_of(make_grace(unmeasured="notify"), is_async)(f"ana\x1b[2J\r\n{KEY}")
    (line,) = terminal.getvalue().splitlines()
    assert line.startswith("grace-kp: pay(to=ana[2J")
    assert "euros=5) goes ahead with a notice: " in line
    assert line.isprintable()
    assert KEY not in line
    notice = captured.only.grace["decisions"][0]["notice"]
    assert {"to": "terminal", "text": line.removeprefix("grace-kp: ")} == notice


@both
def test_nothing_is_printed_elsewhere(is_async, monkeypatch, caplog):
    """A pipe gets no line; the log does, and so does the entry."""
    pipe = Terminal(is_terminal=False)
    monkeypatch.setattr(sys, "stderr", pipe)
    with capture() as captured, caplog.at_level(logging.INFO, logger="grace_kp.gate"):
        act_of(make_grace(unmeasured="notify"), is_async)("ana")
    assert "" == pipe.getvalue()
    (record,) = [record for record in caplog.records if record.name == "grace_kp.gate"]
    notice = captured.only.grace["decisions"][0]["notice"]
    assert {"to": "log", "text": record.getMessage()} == notice
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith("pay(to=ana, euros=5) goes ahead with a notice: ")


def test_without_standard_error(monkeypatch):
    """A program without a console has none; the action goes ahead."""
    monkeypatch.setattr(sys, "stderr", None)
    with capture() as captured:
        assert "paid" == act_of(make_grace(unmeasured="notify"), False)("ana")
    assert "log" == captured.only.grace["decisions"][0]["notice"]["to"]


@both
def test_on_notify_replaces_the_default(is_async, monkeypatch):
    """A callback, sync or async, gets the request, and the terminal nothing."""
    terminal, requests = Terminal(), []
    monkeypatch.setattr(sys, "stderr", terminal)

    async def later(request):
        await asyncio.sleep(0)
        requests.append(request)

    with capture() as captured:
        act_of(make_grace(unmeasured="notify", on_notify=requests.append), is_async)("ana")
        act_of(make_grace(unmeasured="notify", on_notify=later), is_async)("bob")
    assert ["ana", "bob"] == [request.arguments["to"] for request in requests]
    assert "" == terminal.getvalue()
    assert ["on_notify"] * 2 == [trace.grace["decisions"][0]["notice"]["to"] for trace in captured]


@both
def test_a_notice_that_fails_holds_nothing_up(is_async, monkeypatch):
    """The entry says what failed and that nobody was told."""

    def broken(request):
        raise ConnectionError("no network")

    class Closed(Terminal):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    with capture() as captured:
        assert "paid" == act_of(make_grace(unmeasured="notify", on_notify=broken), is_async)("ana")
        assert "paid" == act_of(make_grace(unmeasured="notify"), is_async)("ana")
    entries = [trace.grace["decisions"][0] for trace in captured]
    assert [None, None] == [entry["notice"]["to"] for entry in entries]
    assert ["ConnectionError: no network", "BrokenPipeError: "] == [entry["notify_error"] for entry in entries]
    assert ["executed", "executed"] == [entry["outcome"] for entry in entries]


@pytest.mark.parametrize("floor", ["silent", "confirm"])
def test_other_levels_give_no_notice(floor, monkeypatch):
    """Silent means silent, and who is asked needs no notice."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    grace = make_grace(unmeasured="silent", reviewer=lambda request: "proceed")
    with capture() as captured:
        grace.gate(floor=floor)(lambda: None)()
    assert "" == terminal.getvalue()
    assert "notice" not in captured.only.grace["decisions"][0]


@both
def test_the_handler_gives_the_same_notice(is_async, monkeypatch):
    """For decisions of your own there is a default, too."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    decision = gk.ActionDecision(gk.InterventionLevel.NOTIFY, 0.8, "because", "proceed_with_status")
    handler = gk.InterventionHandler()
    response = asyncio.run(handler.ahandle(decision)) if is_async else handler.handle(decision)
    assert "proceed" == response.action
    assert "grace-kp: an action() goes ahead with a notice: because\n" == terminal.getvalue()


def test_long_values_are_cut_and_say_so():
    """A notice is one line of bounded length; a secret is removed before anything is cut."""
    line = notice_line("pay", {f"name_{number}": "word " * 100 for number in range(50)} | {"key": KEY}, "because")
    assert len(line) <= MAX_LINE + 60
    assert "characters kept]" in line
    assert "word word" in line
    split = KEY[:20] + "\u200b" + KEY[20:]
    assert KEY[:12] not in notice_line("pay", {"x" * 5: "y" * 100 + " " + KEY, "split": split, "in": [split]}, KEY)


@pytest.mark.parametrize(
    ("length", "kept"), [(120, "y" * 120), (121, "y" * 120 + "… [cut: 120 of 121 characters kept]")]
)
def test_an_argument_has_120_characters(length, kept):
    """What is longer is cut there."""
    assert f"pay(to={kept}) goes ahead with a notice: because" == notice_line("pay", {"to": "y" * length}, "because")


@pytest.mark.parametrize(("length", "is_cut"), [(1_000, False), (1_001, True)])
def test_a_line_has_1000_characters(length, is_cut):
    """Whatever is too long on it."""
    start = "pay() goes ahead with a notice: "
    line = notice_line("pay", {}, "y" * (length - len(start)))
    assert is_cut is line.endswith("… [cut: 1,000 of 1,001 characters kept]")
    assert start + "y" * (1_000 - len(start)) == line[:1_000]


def test_addresses_are_shown():
    """People need to know who is meant; only secrets are removed."""
    line = notice_line("mail", {"to": "ana@example.org"}, "ben@example.org asked")
    assert "mail(to=ana@example.org) goes ahead with a notice: ben@example.org asked" == line


def test_structures_without_control_characters():
    """In names, keys and items; a blank stays where a line break was."""
    line = notice_line("pay\x07", {"plan": {"a\x1bb\nc": ["d\te", {"f\u200b": 5}]}}, "be\rcause")
    assert 'pay(plan={"ab c": ["d e", {"f": 5}]}) goes ahead with a notice: be cause' == line


def test_the_line_appears_at_once(monkeypatch):
    """Standard error may be buffered."""
    flushed = []

    class Buffered(Terminal):
        def flush(self):
            flushed.append(self.getvalue())

    monkeypatch.setattr(sys, "stderr", Buffered())
    act_of(make_grace(unmeasured="notify"), False)("ana")
    (line,) = flushed
    assert line.startswith("grace-kp: pay(to=ana, euros=5)")


PROGRAM = textwrap.dedent("""
    import grace_kp as gk
    grace = gk.Grace(store="memory:")
    @grace.gate(unmeasured="notify")
    def pay(to, password="hunter2secret"):
        print("RAN")
    with grace.run("settle the bill"):
        pay("Ana\\x1b[2J\\nRAN twice")
""")


def test_a_real_terminal():
    """The line appears before the action runs, and no secret and no escape with it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONUNBUFFERED": "1"}
    child = pexpect.spawn(
        sys.executable, ["-c", PROGRAM], env=environment, encoding="utf-8", timeout=300, dimensions=(40, 200)
    )
    child.expect(pexpect.EOF)
    child.close()
    first, second = child.before.strip().splitlines()
    assert first.startswith(
        "grace-kp: pay(to=Ana[2J RAN twice, password=[REDACTED:password]) goes ahead with a notice: "
    )
    assert "RAN" == second
