"""Approvals in a runtime: its inbox, its gated actions by name, and carrying out approved actions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime

LATER = gk.InboxReviewer(wait="hand_over")


def test_it_is_a_run_that_names_the_approval():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=LATER)
    @grace.tool
    def pay(n: int) -> int:
        return n

    with grace.run("Pay") as run:
        approval = pay(5).approval
    grace.approvals.approve(approval.id, by="ana")
    with grace.collect() as traces:
        assert [5, 5] == [grace.approvals.execute(approval.id) for _ in range(2)]
    first, again = traces
    assert {"approval": approval.id, "requested_by_run": run.id} == first.grace["metadata"]
    assert ["executed", "executed_before"] == [trace.grace["decisions"][0]["outcome"] for trace in (first, again)]


async def test_a_coroutine_function():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=LATER)
    async def pay(n: int, *more: int, **named: str) -> object:
        return n, more, named

    approval = (await pay(5, 6, to="bo")).approval
    await grace.approvals.aapprove(approval.id, by="ana")
    assert await grace.approvals.aexecute(approval.id) == (5, (6,), {"to": "bo"})


def test_an_ignored_parameter_is_passed():
    grace = runtime()

    @grace.gate(floor="confirm", ignore=("token",), reviewer=LATER)
    def pay(n: int, token: str) -> str:
        return f"{n} {token}"

    grace.approvals.approve(name := pay(5, "first").approval.id, by="ana")
    with pytest.raises(gk.ApprovalError, match="token"):
        grace.approvals.execute(name)
    with pytest.raises(gk.ApprovalError, match="'n' is not an ignored parameter"):
        grace.approvals.execute(name, {"n": 6, "token": "second"})
    assert grace.approvals.execute(name, {"token": "second"}) == "5 second"


def test_the_default_runtime_knows_the_actions_of_the_module_verbs():

    @gk.gate(floor="confirm", name="early")
    def early(n: int) -> int:
        return n

    grace = gk.configure(store="memory:", reviewer=LATER, evaluator=None, embedder=None)
    grace.approvals.approve(name := early(7).approval.id, by="ana")
    assert grace.approvals.execute(name) == 7


def test_what_only_its_process_can_carry_out():
    grace = runtime()

    class Shop:
        @grace.gate(floor="confirm", reviewer=LATER, identity=lambda shop: "shop 1")
        def pay(self, n: int) -> int:
            return n

    grace.approvals.approve(name := Shop().pay(1).approval.id, by="ana")
    with pytest.raises(gk.ApprovalError, match="is a method"):
        grace.approvals.execute(name)


@pytest.mark.parametrize(
    ("decide", "error"),
    [
        (lambda a, name: None, gk.ActionPending),
        (lambda a, name: a.reject(name, by="ana"), gk.AlreadyDecided),
        (lambda a, name: a.withdraw(name, by="ana"), gk.AlreadyDecided),
    ],
)
def test_what_is_not_approved_does_not_run(decide, error):
    grace = runtime()
    ran = []

    @grace.gate(floor="confirm", reviewer=LATER)
    def pay(n: int) -> None:
        ran.append(n)

    decide(grace.approvals, name := pay(1).approval.id)
    with pytest.raises(error):
        grace.approvals.execute(name)
    assert [] == ran


def defined(grace, **settings):
    @grace.gate(**{"floor": "confirm", "reviewer": LATER, "name": "pay", **settings})
    def pay(n: int) -> str:
        return settings.get("version", "")

    return pay


def test_an_action_is_found_by_its_version_and_its_function():
    grace = runtime()

    @grace.gate(floor="confirm", name="pay", reviewer=LATER, version="2")
    def other(n: int) -> str:
        return "other"

    actions = [defined(grace, version="1"), defined(grace, version="2"), other]
    names = [action(1).approval.id for action in actions]
    for name in names:
        grace.approvals.approve(name, by="ana")
    assert ["1", "2", "other"] == [grace.approvals.execute(name) for name in names]


def test_an_older_version_is_not_replaced_by_a_newer():
    grace = runtime()
    old = defined(grace, version="1")
    grace.approvals.approve(name := old(1).approval.id, by="ana")
    del old
    gc.collect()
    new = defined(grace, version="2")
    with pytest.raises(gk.ApprovalError, match="is about version 1 of pay, and this runtime defines 2"):
        grace.approvals.execute(name)
    assert callable(new)


def test_a_function_that_was_defined_for_another_account_does_not_run():
    """The approval does not say which of them is meant. Functions that differ in nothing are one."""
    grace, ran = runtime(reviewer=LATER), []

    def pays(account, **name):
        @grace.gate(floor="confirm", **name)
        def pay(n: int) -> str:
            ran.append(account)
            return account

        return pay

    first, _second = pays("A"), pays("B")
    grace.approvals.approve(name := first(1).approval.id, by="ana")
    with pytest.raises(gk.ApprovalError, match=r"several times.*a different name"):
        grace.approvals.execute(name)
    assert [] == ran
    one, _same = pays("C", name="pay C"), pays("C", name="pay C")
    grace.approvals.approve(name := one(1).approval.id, by="ana")
    assert "C" == grace.approvals.execute(name)


def test_groups_come_from_the_settings():
    """Who is in no group of the request may not decide it."""
    grace = runtime(reviewers={"ana": ["finance"], "bo": ["legal"]})

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over", group="finance"))
    def pay(n: int) -> int:
        return n

    name = pay(1).approval.id
    with pytest.raises(gk.NotEntitled):
        grace.approvals.approve(name, by="bo")
    assert grace.approvals.approve(name, by="ana").state == "approved"


@pytest.fixture
def keyring(monkeypatch):
    keyring, backends = pytest.importorskip("keyring"), pytest.importorskip("keyring.backends.null")
    backend = backends.Keyring()
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    monkeypatch.delenv("GRACE_KP_KEY", raising=False)
    return backend


def test_no_fork_waits_for_the_keyring(monkeypatch, keyring):
    """A keyring may fork: to start a program, or because gevent forks for every program."""
    grace = runtime()
    inbox = grace._gates().lazy_inbox
    taken = []

    def read(service, user):
        for lock in inbox.fork_locks():
            taken.append(lock.acquire(blocking=False))
            lock.release()

    monkeypatch.setattr(keyring, "get_password", read)
    assert [] == grace.approvals.pending()
    assert [True] == taken


def test_threads_that_open_it_at_once_share_it(monkeypatch, keyring):
    grace, meet = runtime(), threading.Barrier(4)
    monkeypatch.setattr(keyring, "get_password", lambda service, user: (meet.wait(60), None)[1])
    with ThreadPoolExecutor(4) as pool:
        inboxes = list(pool.map(lambda _: grace._gates().inbox, range(4)))
    assert 1 == len({id(inbox) for inbox in inboxes})


GEVENT = """
from gevent import monkey
monkey.patch_all()
import gevent, os, keyring, subprocess, sys
from keyring.backends.null import Keyring
import grace_kp as gk

class Starts(Keyring):
    def get_password(self, service, user):
        subprocess.run([sys.executable, "-c", ""], check=True)  # forks, where gevent has patched it

keyring.set_keyring(Starts())
grace = gk.Grace(store=sys.argv[1], evaluator=None, embedder=None, reviewer=gk.InboxReviewer(deadline="1h"))

@grace.gate(floor="confirm")
def pay(amount):
    return amount

paying = gevent.spawn(pay, 3)
while not grace.approvals.pending():
    gevent.sleep(0.01)
(request,) = grace.approvals.pending()
grace.approvals.approve(request.id, by="ana")
assert 3 == paying.get()
sleeping = gevent.spawn(grace.agent(gevent.sleep, name="sleeper"), 3600)
gevent.sleep(0)
sleeping.kill()
grace.flush()
print([str(trace.status) for trace in grace.store.query() if trace.name == "sleeper"])
"""


@pytest.mark.parametrize("store", ["memory:", "sqlite:///{}/runs.db"])
def test_an_inbox_under_gevent(tmp_path, store):
    """Its first use waits for no lock of its own, a gate waits without blocking the others, and a killed greenlet is cancelled."""
    pytest.importorskip("gevent")
    pytest.importorskip("keyring")
    command = [sys.executable, "-c", GEVENT, store.format(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name != "GRACE_KP_KEY"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert (0, "['cancelled']") == (ran.returncode, ran.stdout.strip()), ran.stderr


def test_a_key_that_cannot_be_used(monkeypatch):
    """The action does not run, and the error does not show the key."""
    monkeypatch.setenv("GRACE_KP_KEY", "not a key")

    @runtime().gate(floor="confirm", reviewer=gk.InboxReviewer())
    def pay(n: int) -> int:
        return n

    with pytest.raises(gk.ActionCancelled, match="GRACE_KP_KEY") as error:
        pay(1)
    assert "not a key" not in str(error.value)
