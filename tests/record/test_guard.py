"""Recording fails open, whatever breaks in it; frameworks register their signals, and recording names none of them."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import json
import logging
import subprocess
import sys

import pytest

import grace_kp as gk
from grace_kp.errors import ActionCancelled, ActionPending, StoreError
from grace_kp.record import CANCELLED, COMPLETED, FAILED, SUSPENDED, TROUBLES, Framework, Signal
from grace_kp.record._host import Host
from grace_kp.store._memory import MemoryStore
from tests.record.conftest import agent_of

pytestmark = pytest.mark.usefixtures("strict")

MESSAGE = "cannot reach https://ana:hunter2secret@example.com with password=hunter2secret"


def test_the_message_of_a_failing_hook_is_redacted(grace, caplog):
    @grace.on_complete
    def report(trace):
        raise RuntimeError(MESSAGE)

    with caplog.at_level(logging.WARNING):
        agent_of(grace)("x")
        grace.flush()
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "hook" in text
    assert "password=[REDACTED:password]" in text
    assert "hunter2secret" not in text + str(grace.status())


def test_the_message_of_a_failing_store_is_redacted(caplog):
    class Failing(MemoryStore):
        failing = True

        def put(self, records, *, ended=()):
            if self.failing:
                raise StoreError(MESSAGE)
            super().put(records, ended=ended)

    store = Failing()
    with (
        caplog.at_level(logging.WARNING),
        gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None) as grace,
    ):
        agent_of(grace)("x")
        grace.flush(timeout=0.5)
        store.failing = False
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "the store cannot write" in text
    assert "hunter2secret" not in text


@pytest.fixture
def lenient(strict, monkeypatch):
    """As in production: an error inside recording is counted and survived."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")


class ErrorWithoutClass(Exception):
    @property
    def __class__(self):
        raise RuntimeError("no class")


class Broken(Exception):
    """What our own parts raise in these tests."""


def broken(*args, **kwargs):
    raise Broken("ours")


def in_recorder(name):
    def breaks(grace, monkeypatch):
        monkeypatch.setattr(grace.recorder, name, broken)

    return breaks


def in_module(module, name):
    def breaks(grace, monkeypatch):
        monkeypatch.setattr(f"grace_kp.record.{module}.{name}", broken)

    return breaks


PARTS = {
    "clock": in_recorder("clock"),
    "wall clock": in_recorder("wall_clock"),
    "opening": in_recorder("opened"),
    "ending": in_recorder("ended"),
    "rendering of arguments": in_module("_wrap", "render"),
    "rendering of results": in_module("_run", "render"),
    "rendering of errors": in_module("_run", "describe_error"),
    "rendering of thoughts": in_module("_run", "render_text"),
    "endings": in_module("_host.Host", "status_after"),
    "hits": in_module("_run.Call", "read_hits"),
    "calls": in_module("_run.Call", "__init__"),
    "runs": in_module("_wrap", "attempt"),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.usefixtures("lenient")
async def test_whatever_breaks_in_recording_the_agent_goes_on(grace, monkeypatch, part, caplog):
    """Every kind of recorded function gives and raises what it does without recording, and the trouble is counted."""
    given, error = {"a": [1]}, LookupError("the user's")
    survived: list[Exception] = []

    @grace.tool
    def tool(value):
        return value

    @grace.retriever
    def search(value):
        return [{"score": 0.5}]

    @grace.tool
    async def atool(value):
        return value

    @grace.tool
    def fail():
        raise error

    @grace.agent
    def agent(value):
        grace.thought(value)
        grace.outcome(result=value)
        search(value)
        try:
            fail()
        except LookupError as caught:
            survived.append(caught)
        return tool(value)

    @grace.agent
    async def aagent(value):
        return await atool(value)

    @grace.agent
    def stream(value):
        yield value
        return value

    @grace.agent
    async def astream(value):
        yield value

    @grace.agent
    def failing(value):
        raise error

    before = sum(TROUBLES.counts.values())
    with monkeypatch.context() as broken_part:
        PARTS[part](grace, broken_part)
        assert agent(given) is given
        assert survived[0] is error
        assert (await aagent(given)) is given
        assert all(item is given for item in stream(given))
        assert [True] == [item is given async for item in astream(given)]
        with pytest.raises(LookupError) as caught:
            failing(given)
        assert caught.value is error
        with grace.run("block") as run:
            run.thought("x")
            assert tool(given) is given
        with pytest.raises(LookupError) as caught, grace.run("block"):
            raise error
        assert caught.value is error
    assert sum(TROUBLES.counts.values()) > before
    assert "Broken" in TROUBLES.last
    assert grace.status()["troubles"] == dict(TROUBLES.counts)


def test_an_error_without_a_class_in_an_objective_or_a_hook_loses_no_run(grace):
    """What the user's own code raises is noted, whatever it says of itself, and the run is stored."""

    def broken_by_the_user(*_):
        raise ErrorWithoutClass("no")

    grace.on_complete(broken_by_the_user)
    agent = grace.agent(objective=broken_by_the_user, name="agent")(lambda question: question)
    assert "why" == agent("why")
    assert grace.flush()
    (trace,) = grace.store.query()
    assert "why" == trace.task.objective
    assert 2 == sum("ErrorWithoutClass" in kind for kind in TROUBLES.counts)


@pytest.mark.usefixtures("lenient")
def test_a_trouble_is_counted_each_time_and_logged_once(grace, monkeypatch, caplog):
    monkeypatch.setattr("grace_kp.record._wrap.render", broken)
    monkeypatch.setattr(TROUBLES, "counts", collections.Counter())

    @grace.tool
    def tool(value):
        return value

    with grace.run("x"):
        for _ in range(20):
            tool([1])
    ((kind, count),) = TROUBLES.counts.items()
    assert 20 == count
    assert "Broken" in kind
    assert 1 == sum("Broken" in record.getMessage() for record in caplog.records)


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("what", ["new_id", "finished", "assess", "hook", "embedder"])
def test_what_breaks_while_a_run_is_finished_costs_no_other_run(monkeypatch, what):
    """The agents go on, later runs are stored, and the trouble is told in the status."""
    embedder = broken if what == "embedder" else None
    with gk.Grace(store="memory:", embedder=embedder, reviewer=None) as grace:

        @grace.tool
        def tool(value):
            return value

        @grace.agent
        def agent(text):
            return tool(text)

        with monkeypatch.context() as patch:
            if what == "new_id":
                patch.setattr(grace.recorder, "new_id", broken)
            elif what == "finished":
                patch.setattr("grace_kp.record._document.StepBuilder.finish", broken)
            elif what == "assess":
                patch.setattr(grace._pipeline.assessor, "assess", broken)
            elif what == "hook":
                grace.on_complete(broken)
            assert "first" == agent("first")
            grace.flush(60)
        assert "second" == agent("second")
        lost = {"new_id", "finished", "assess"}
        assert grace.flush(60) is (what not in lost)
        objectives = {trace.task.objective for trace in grace.store.query()}
        assert "second" in objectives
        told = json.dumps(grace.status())
        assert ("first" not in objectives) is (what in lost)
        if what == "embedder":
            assert "ours" in grace.store.query()[0].grace["value"]["novelty_fallback"]
        else:
            assert "Broken" in told


class Ask(Exception): ...


class AskAgain(Ask): ...


class Move(Exception): ...


class Other(Exception): ...


@pytest.fixture
def host():
    host = Host()
    signals = {"Ask": Signal(SUSPENDED, pauses=True), "Move": Signal(COMPLETED, targets=lambda error: error.args[0])}
    host.register(Framework("frame", package="frame", load=lambda: None, signals=signals))
    return host


def named(name, base=BaseException):
    return type(name, (base,), {})()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Ask("?"), SUSPENDED), (AskAgain("?"), SUSPENDED), (Move("there"), COMPLETED), (Other("no"), FAILED), (KeyboardInterrupt(), CANCELLED),
        (SystemExit(), "exited"), (GeneratorExit(), "closed"), (named("ActionNotApproved", Exception), "not_approved"),
        (named("Cancelled"), CANCELLED), (named("GreenletExit"), CANCELLED), (named("Own", type(named("GreenletExit"))), CANCELLED),
        (asyncio.CancelledError(), CANCELLED), (concurrent.futures.CancelledError(), CANCELLED),
        (BaseExceptionGroup("", [named("Cancelled"), BaseExceptionGroup("", [asyncio.CancelledError()])]), CANCELLED),
        (BaseExceptionGroup("", [named("Cancelled"), ValueError()]), FAILED), (ExceptionGroup("", [ValueError()]), FAILED),
        (named("Cancelled", Exception), FAILED), (named("Timeout"), FAILED),
        (ExceptionGroup("", [ActionPending("later"), ActionPending("later")]), "waiting"),
        (ExceptionGroup("", [ActionPending("later"), ActionCancelled("no")]), FAILED),
        (ExceptionGroup("", [ExceptionGroup("inner", [ActionPending("later")])]), "waiting"),
        (ExceptionGroup("", [Other("no"), ActionPending("later")]), FAILED),
    ],
)  # fmt: skip
def test_the_class_of_an_exception_decides_what_it_means(host, error, status):
    """A signal counts for its subclasses, a cancellation is no failure, and a group has the status that all its members have."""
    assert (status, status == SUSPENDED) == (host.status_after(error), host.pauses(error))
    assert (type(error) is Move) == host.hands_off(error)


@pytest.mark.parametrize(
    ("targets", "text"),
    [
        ("bob", "handed off to bob"),
        (["bob", "eve"], "handed off to bob, eve"),
        (list("abcdefg"), "handed off to a, b, c, d, e and 2 more"),
        ([], "handed off to its parent graph"),
        (None, "handed off to its parent graph"),
    ],
)
def test_a_handoff_is_described_by_its_targets(host, targets, text):
    assert text == host.handoff_text(Move(targets))


def test_without_a_framework_nothing_tells_where_execution_is():
    assert (None, None) == (Host().locate, Host().place)


SUSPENDS = """
import sys
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt
{imports}

@grace.agent
def agent(question):
    raise GraphInterrupt((Interrupt("sure?"),))

try:
    agent("q")
except GraphInterrupt:
    pass
assert "grace_kp.integrations.langchain" not in sys.modules
print(grace.store.query()[0].grace["status"])
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import grace_kp as gk; grace = gk.Grace(store='memory:', evaluator=None, embedder=None)",
        "from grace_kp.testing import make_grace; grace = make_grace()",
        "from grace_kp.runtime import Grace; grace = Grace(store='memory:', evaluator=None, embedder=None)",
    ],
)
def test_signals_are_known_without_the_adapter(tmp_path, imports):
    """A graph that runs inside decorated functions suspends their run, whichever module of the package was imported first."""
    pytest.importorskip("langgraph", reason="needs the extra langchain")
    code = SUSPENDS.format(imports=imports)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ("suspended", "") == (ran.stdout.strip(), ran.stderr)
