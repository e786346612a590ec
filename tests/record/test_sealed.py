"""Sealed arguments of gated calls: no file ever holds them, at no moment of a run."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import threading

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime

# These calls run in threads of their own, where a missing package would be an error and no skip.
pytest.importorskip("cryptography", reason="needs the extra approvals")

IBAN, PIN = "DE89370400440532013000", "471108151623"
KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("GRACE_KP_KEY", KEY)


def gate(grace, **more):
    return grace.gate(floor="confirm", sealed=("iban", "pin"), **more)


def decorated(*names, fails=False, is_async=False):
    """Return a function that makes an action of a runtime: a call of `pay` with these decorators, the outermost first."""

    def make(grace):
        def pay(iban, pin):
            if fails:
                raise ValueError(f"no such account: {iban}")
            return f"paid {iban}"

        async def pay_later(iban, pin):
            return pay(iban, pin)

        stated = {"objective": "pay {iban}", "tags": "{pin}", "metadata": lambda iban, pin: {"iban": iban}}
        kinds = {
            "tool": grace.tool, "gate": gate(grace), "agent": grace.agent, "stated": grace.agent(**stated),
            "hand over": gate(grace, reviewer=gk.InboxReviewer(wait="hand_over")),
        }  # fmt: skip
        action = pay_later if is_async else pay
        for name in reversed(names):
            action = kinds[name](action)
        return (lambda iban, pin: asyncio.run(action(iban, pin))) if is_async else action

    return make


def nested(grace):
    pay = decorated("gate", "tool", fails=True)(grace)
    inner = grace.agent(lambda: pay(IBAN, PIN), name="inner")
    outer = grace.agent(lambda: inner(), name="outer")
    return lambda iban, pin: outer()


def keywords(grace):
    pay = decorated("tool", "gate")(grace)
    return lambda iban, pin: pay(iban, pin=pin)


def variadic(grace):
    @grace.tool
    @grace.gate(floor="confirm", sealed=("ibans", "more"))
    def pay(*ibans, **more):
        return None

    return lambda iban, pin: pay(iban, number=pin)


def then_another(grace):
    pay = decorated("gate", "tool", fails=True)(grace)
    close = grace.gate(floor="confirm", name="close")(lambda: None)

    def both(iban, pin):
        with grace.run("pay"):
            with contextlib.suppress(ValueError):
                pay(iban, pin)
            close()

    return both


def handed_over(grace):
    pay = decorated("hand over")(grace)

    def later(iban, pin):
        grace.approvals.approve(name := pay(iban, pin).approval.id, by="ana")
        return grace.approvals.execute(name)

    return later


KINDS = {
    "plain": decorated("gate"), "tool above": keywords, "agent above": decorated("stated", "gate", fails=True),
    "tool below": decorated("gate", "tool", fails=True), "agent below": decorated("gate", "agent", fails=True), "nested": nested,
    "coroutine": decorated("tool", "gate", "tool", is_async=True), "variadic": variadic, "then another": then_another, "handed over": handed_over,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_ever_holds_a_sealed_value(kind, tmp_path):
    """The files are searched after everything that the journal writes, while somebody is asked, while it runs and at the end."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(), journal_ms=5)
    leaks = set()

    def search(place):
        grace.flush()
        for path in tmp_path.iterdir():
            data = path.read_bytes()
            leaks.update((place, path.name, secret) for secret in (IBAN, f'"{PIN}"') if secret.encode() in data)

    act = KINDS[kind](grace)
    errors = []

    def call():
        try:
            act(IBAN, PIN)
        except ValueError as error:
            errors.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    while caller.is_alive():
        for approval in grace.approvals.pending():
            caller.join(0.3)
            search("asked")
            grace.approvals.approve(approval.id, by="ana")
        search("running")
        caller.join(0.01)
    search("ended")
    grace.close()
    search("closed")
    assert set() == leaks


def test_a_notice_does_not_show_them(caplog):
    caplog.set_level(logging.INFO, "grace_kp.gate")
    grace = runtime()
    pay = grace.gate(unmeasured="notify", sealed=("pin",))(lambda pin, shop: None)
    with grace.run("pay") as run:
        pay(PIN, "shop 1")
    assert "shop 1" in caplog.text
    assert PIN not in caplog.text
    assert PIN not in str(run.trace.grace["decisions"])


@pytest.mark.parametrize("value", ["2026-11-22", "completed", "private", "observation", "ReasoningTrace"])
def test_a_trace_stays_a_trace_whatever_is_sealed(value):
    grace = runtime()

    @grace.tool
    @grace.gate(unmeasured="silent", sealed=("word",))
    def say(word):
        return word

    with grace.run("say it") as run:
        say(value)
    assert ("completed", "observation") == (run.trace.grace["status"], run.trace.steps[-1].type)
