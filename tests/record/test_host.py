"""Frameworks register their signals and their location; recording names none of them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import subprocess
import sys

import pytest

from grace_kp.errors import ActionCancelled, ActionPending
from grace_kp.record import CANCELLED, COMPLETED, FAILED, SUSPENDED, Framework, Signal
from grace_kp.record._host import Host


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


@pytest.mark.parametrize(
    ("error", "status", "pauses", "hands_off"),
    [
        (Ask("?"), SUSPENDED, True, False),
        (AskAgain("?"), SUSPENDED, True, False),
        (Move("there"), COMPLETED, False, True),
        (Other("no"), FAILED, False, False),
        (KeyboardInterrupt(), CANCELLED, False, False),
        (type("CancelledError", (BaseException,), {})(), CANCELLED, False, False),
        (SystemExit(), "exited", False, False),
        (GeneratorExit(), "closed", False, False),
        (type("ActionNotApproved", (Exception,), {})(), "not_approved", False, False),
    ],
)
def test_the_class_of_an_exception_decides_what_it_means(host, error, status, pauses, hands_off):
    """A signal counts for its subclasses, too; any other exception is a failure."""
    assert (status, pauses, hands_off) == (host.status_after(error), host.pauses(error), host.hands_off(error))


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
    """At most five targets are named."""
    assert text == host.handoff_text(Move(targets))


def cancelled(name, base=BaseException):
    return type(name, (base,), {})()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (cancelled("Cancelled"), CANCELLED),
        (cancelled("GreenletExit"), CANCELLED),
        (cancelled("Own", type(cancelled("GreenletExit"))), CANCELLED),
        (KeyboardInterrupt(), CANCELLED),
        (asyncio.CancelledError(), CANCELLED),
        (concurrent.futures.CancelledError(), CANCELLED),
        (BaseExceptionGroup("", [cancelled("Cancelled"), BaseExceptionGroup("", [asyncio.CancelledError()])]), CANCELLED),
        (BaseExceptionGroup("", [cancelled("Cancelled"), ValueError()]), FAILED),
        (ExceptionGroup("", [ValueError()]), FAILED),
        (cancelled("Cancelled", Exception), FAILED),
        (cancelled("Timeout"), FAILED),
    ],
)  # fmt: skip
def test_a_cancellation_is_no_failure(host, error, status):
    """That of any library, alone or in a group; an Exception of the same name is the error of a service."""
    assert status == host.status_after(error)


def test_without_a_framework_nothing_tells_where_execution_is():
    """The hot path asks nobody."""
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


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        ([ActionPending("later"), ActionPending("later")], "waiting"),
        ([ActionPending("later"), ActionCancelled("no")], FAILED),
        ([ExceptionGroup("inner", [ActionPending("later")])], "waiting"),
        ([Other("no"), ActionPending("later")], FAILED),
    ],
)
def test_a_group_of_exceptions_has_the_status_of_its_members(host, errors, status):
    """Parallel calls that all wait for approvals have not failed; other groups have."""
    assert status == host.status_after(ExceptionGroup("parallel calls", errors))
