"""Whatever a reviewer answers or raises: the action does not run, and the error neither fails itself nor repeats what it was shown."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import io
import logging
import sys
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.gating import _request, digest_of
from grace_kp.gating._request import notice_line
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.gating.inboxes import gated, request_for

R = gk.InterventionResponse
both = pytest.mark.parametrize("is_async", [False, True])


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("unreadable")

    __repr__ = __str__


def asked(reviewer, is_async=False):
    """The error of a gated call that this reviewer is asked about, and the gate's entry."""
    grace = make_grace(reviewer=reviewer)
    act, ran = gated(grace, is_async=is_async, floor="confirm")
    with pytest.raises(gk.ActionCancelled) as caught, grace.run("log in") as run:
        act("correct horse")
    assert [] == ran
    return caught.value, run.trace.grace["decisions"][0]


def test_errors_and_words_that_cannot_be_read_are_named():
    error, entry = asked(ScriptedReviewer(Unreadable()))
    assert "failed (Unreadable: <message cannot be read>)" in str(error)
    assert "Unreadable: <message cannot be read>" == entry["error"]
    error, entry = asked(lambda request: R("cancel", user_input=Unreadable()))
    assert ("cancelled", True) == (entry["outcome"], "refused" in str(error))


def generator(request):
    yield gk.InterventionResponse("proceed")


async def async_generator(request):
    yield gk.InterventionResponse("proceed")


@both
@pytest.mark.parametrize(
    ("reviewer", "problem"),
    [
        (lambda request: request.arguments["it"], "type str; a reviewer returns a response or one of proceed, modify"),
        (lambda request: Unreadable(), "type Unreadable"),
        (lambda request: type("Text", (str,), {})("proceed"), "type Text"),
        (generator, "type generator"),
        (async_generator, "type async_generator"),
        (lambda request: int("x" * 10_000), "ValueError: invalid"),
    ],
)
def test_nonsense_is_named_by_its_type(reviewer, problem, is_async):
    error, entry = asked(reviewer, is_async)
    assert problem in str(error)
    assert "correct horse" not in str(error) + entry["error"]
    assert len(entry["error"]) <= 600


CHANGE = R("modify", modified={"euros": 1})


class Reviewer:
    """Answers from a list; in the running loop where it is async."""

    def __init__(self, *answers):
        self.requests = []
        self.loops = []
        self._answers = list(answers)

    def __call__(self, request):
        self.requests.append(request)
        return self._answers.pop(0)

    async def ask(self, request):
        self.loops.append(asyncio.get_running_loop())
        return self(request)


FORMS = {
    "sync": lambda inner: inner,
    "coroutine function": lambda inner: inner.ask,
    "partial": lambda inner: functools.partial(inner.ask),
    "returns a coroutine": lambda inner: lambda request: inner.ask(request),
}
forms = pytest.mark.parametrize("form", FORMS)


def act_of(grace, is_async=False, **options):

    def pay(to, euros=5):
        return f"{to} {euros}"

    async def pay_async(to, euros=5):
        return f"{to} {euros}"

    act = grace.gate(**{"name": "pay", "floor": "notify", **options})(pay_async if is_async else pay)
    return (lambda *a: asyncio.run(act(*a))) if is_async else act


def call(reviewer, is_async=False, **policy):
    return act_of(make_grace(reviewer=reviewer), is_async, floor="confirm", **policy)("ana", 9)


@both
@forms
def test_changes_are_confirmed(form, is_async):
    inner = Reviewer(CHANGE, "proceed")
    assert "ana 1" == call(gk.ConfirmationFlow(FORMS[form](inner)), is_async)
    assert [9, 1] == [request.arguments["euros"] for request in inner.requests]


@pytest.mark.parametrize("wrap", [gk.ConfirmationFlow, lambda reviewer: reviewer])
def test_an_async_reviewer_runs_in_the_loop_of_the_action(wrap):
    """What belongs to that loop, such as a client or a queue, can be used."""
    inner = Reviewer("proceed")

    async def main():
        @make_grace(reviewer=wrap(inner.ask)).gate(floor="confirm")
        async def act(): ...

        await act()
        return asyncio.get_running_loop()

    assert inner.loops == [asyncio.run(main())]


class Channel(Reviewer):
    """Keeps its time, and stores what it shows."""

    keeps_time = True

    def stores(self, text):
        return False


def test_the_promises_of_the_reviewer_hold():
    """It is asked in the same thread, and gets no secrets where its channel must not carry them."""
    inner = Channel("proceed", "proceed", "proceed")
    wrapped = gk.ConfirmationFlow(inner)
    assert wrapped.keeps_time
    with pytest.raises(gk.ActionCancelled, match="hidden content"):
        make_grace(reviewer=wrapped).gate(floor="confirm")(lambda password: None)("correct horse")
    assert ["[REDACTED:password]"] * 3 == [request.arguments["password"] for request in inner.requests]


def test_a_subclass_can_refuse_by_its_own_review():
    class Strict(gk.ConfirmationFlow):
        @property
        def review(self):
            return lambda request: "cancel" if request.arguments["euros"] > 5 else super(Strict, self).review(request)

    with pytest.raises(gk.ActionCancelled):
        call(Strict(Reviewer("proceed").ask))


def test_all_rounds_share_the_time():
    """The second question has less of it; when none is left, nobody has answered."""
    inner = Channel(CHANGE, "proceed")
    assert "ana 1" == call(gk.ConfirmationFlow(inner), timeout=100)
    first, second = (request.timeout for request in inner.requests)
    assert first == 100 >= second > 0
    with pytest.raises(gk.ActionTimedOut):
        call(gk.ConfirmationFlow(Channel(CHANGE, "proceed")), timeout=0)


def test_the_number_of_changes_is_bounded():
    inner = Reviewer(CHANGE, CHANGE, CHANGE)
    request = request_for({"euros": 9})
    response = gk.ConfirmationFlow(inner, max_rounds=1).review(request)
    assert ("cancel", "changed more than 1 times") == (response.action.value, response.user_input)
    assert [request.attempt, request.attempt + 1] == [shown.attempt for shown in inner.requests]
    with pytest.raises(ValueError, match="max_rounds must be 1 or more, not 0"):
        gk.ConfirmationFlow(inner, max_rounds=0)


def test_the_second_question_is_about_the_changed_call(monkeypatch):
    """Changed arguments hide nothing any more, and digest and time are those of the second question."""
    clock = iter([1_000.0, 1_010.26])
    monkeypatch.setattr(_request, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    inner = Reviewer(CHANGE, "proceed")
    request = request_for({"euros": 9, "token": "x"}, timeout=100, hidden={"euros": 3, "token": 13})
    response = gk.ConfirmationFlow(inner).review(request)
    assert ("modify", {"euros": 1}) == (response.action.value, response.modified)
    second = inner.requests[1]
    assert {"euros": 1, "token": "x"} == dict(second.arguments)
    assert ({"token": 13}, 89.7) == (second.hidden, second.timeout)
    assert digest_of({"request": request.digest, "changes": {"euros": 1}}) == second.digest


KEY = "sk-proj-" + "a1B2c3D4" * 6


class Terminal(io.StringIO):
    def __init__(self, is_terminal=True):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@both
def test_one_line_at_a_terminal(is_async, monkeypatch):
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
@pytest.mark.parametrize("stream", [Terminal(is_terminal=False), None], ids=["pipe", "no console"])
def test_nothing_is_printed_elsewhere(stream, is_async, monkeypatch, caplog):
    monkeypatch.setattr(sys, "stderr", stream)
    with capture() as captured, caplog.at_level(logging.INFO, logger="grace_kp.gate"):
        assert "ana 5" == act_of(make_grace(unmeasured="notify"), is_async)("ana")
    assert stream is None or "" == stream.getvalue()
    (record,) = [record for record in caplog.records if record.name == "grace_kp.gate"]
    assert {"to": "log", "text": record.getMessage()} == captured.only.grace["decisions"][0]["notice"]
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith("pay(to=ana, euros=5) goes ahead with a notice: ")


@both
def test_on_notify_replaces_the_default(is_async, monkeypatch):
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

    def broken(request):
        raise ConnectionError("no network")

    class Closed(Terminal):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    with capture() as captured:
        assert "ana 5" == act_of(make_grace(unmeasured="notify", on_notify=broken), is_async)("ana")
        assert "ana 5" == act_of(make_grace(unmeasured="notify"), is_async)("ana")
    entries = [trace.grace["decisions"][0] for trace in captured]
    assert [None, None] == [entry["notice"]["to"] for entry in entries]
    assert ["ConnectionError: no network", "BrokenPipeError: "] == [entry["notify_error"] for entry in entries]
    assert ["executed", "executed"] == [entry["outcome"] for entry in entries]


@pytest.mark.parametrize("floor", ["silent", "confirm"])
def test_other_levels_give_no_notice(floor):
    grace = make_grace(unmeasured="silent", reviewer=lambda request: "proceed")
    with capture() as captured:
        grace.gate(floor=floor)(lambda: None)()
    assert "notice" not in captured.only.grace["decisions"][0]


WIDE = "y" * 120


@pytest.mark.parametrize(
    ("action", "arguments", "reason", "line"),
    [
        ("pay", {"to": WIDE}, "because", f"pay(to={WIDE}) goes ahead with a notice: because"),
        ("pay", {"to": WIDE + "y"}, "so", f"pay(to={WIDE}… [cut: 120 of 121 characters kept]) goes ahead with a notice: so"),
        ("", {}, "because", "an action() goes ahead with a notice: because"),
        ("mail", {"to": "a@b.org"}, "c@b.org asked", "mail(to=a@b.org) goes ahead with a notice: c@b.org asked"),
        (
            "pay\x07", {"plan": {"a\x1bb\nc": ["d\te", {"f\u200b": 5}]}}, "be\rcause",
            'pay(plan={"ab c": ["d e", {"f": 5}]}) goes ahead with a notice: be cause',
        ),
    ],
)  # fmt: skip
def test_the_line_of_a_notice(action, arguments, reason, line):
    assert line == notice_line(action, arguments, reason)


def test_secrets_are_removed_before_a_line_is_cut():
    split = KEY[:20] + "\u200b" + KEY[20:]
    assert KEY[:12] not in notice_line("pay", {"x" * 5: "y" * 100 + " " + KEY, "split": split, "in": [split]}, KEY)


@pytest.mark.parametrize(("length", "is_cut"), [(1_000, False), (1_001, True)])
def test_a_line_has_1000_characters(length, is_cut):
    start = "pay() goes ahead with a notice: "
    line = notice_line("pay", {}, "y" * (length - len(start)))
    assert is_cut is line.endswith("… [cut: 1,000 of 1,001 characters kept]")
    assert start + "y" * (1_000 - len(start)) == line[:1_000]


@pytest.mark.parametrize("action", list(gk.InterventionAction))
def test_an_action_is_taken_by_name_too(action):
    response = R(str(action))
    assert action is response.action
    assert action.should_continue == response.should_continue


@pytest.mark.parametrize("action", ["yes", "", "PROCEED", None])
def test_a_response_is_checked_when_it_is_made(action):
    with pytest.raises(ValueError, match=r"action must be one of proceed, .*, not"):
        R(action)
    for modified in ("euros", {1: 2}):
        with pytest.raises(ValueError, match="modified must map parameter names to values"):
            R("modify", modified=modified)
    with pytest.raises(dataclasses.FrozenInstanceError):
        R("proceed").action = gk.InterventionAction("cancel")
