"""The inbox of a runtime is opened once, when it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime


def test_there_is_one():
    """Gates and verbs share it."""
    grace = runtime()
    assert grace._gates().inbox is grace._gates().inbox


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
    """A keyring without a key, whose code the test sets."""
    keyring, backends = pytest.importorskip("keyring"), pytest.importorskip("keyring.backends.null")
    backend = backends.Keyring()
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    monkeypatch.delenv("GRACE_KP_KEY", raising=False)
    return backend


def test_no_fork_waits_for_the_keyring(monkeypatch, keyring):
    """A keyring may fork: to start a program, or because gevent forks for every program."""
    grace = runtime()
    inbox = grace._gates()._inbox
    taken = []

    def read(service, user):
        for lock in inbox.fork_locks():
            taken.append(lock.acquire(blocking=False))
            lock.release()

    monkeypatch.setattr(keyring, "get_password", read)
    assert [] == grace.approvals.pending()
    assert [True] == taken


def test_threads_that_open_it_at_once_share_it(monkeypatch, keyring):
    """Each may read the keyring; one of them opens the inbox."""
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
