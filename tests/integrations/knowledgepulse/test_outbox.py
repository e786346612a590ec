"""The queue of traces: contributing in the background, failures, closing, forks and exits."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import weakref

import httpx
import pytest
import respx

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KEY, KnowledgePulse
from tests import warm
from tests.integrations.knowledgepulse.registry import URL, Registry, trace


class TestAsAHook:
    def run(self, grace, registry, score=1.0):
        with grace.run("an objective") as run:
            for number in range(4):
                run.thought(f"thought {number}")
            run.outcome(confidence=1.0)

    def test_finished_runs_are_contributed_in_the_background(self, server):
        registry = KnowledgePulse(server.url, "k", threshold=0.0)
        with gk.Grace(store="memory:", evaluator=None, embedder=None, visibility="network") as grace:
            grace.on_complete(registry)
            for _ in range(3):
                self.run(grace, registry)
            grace.flush()
            assert registry.flush()
            stored = {one.id for one in grace.store.query()}
        assert stored == {json.loads(body)["id"] for body in server.bodies}
        assert 3 == registry.status()["sent"]
        registry.close()

    def test_private_runs_are_not(self, server):
        registry = KnowledgePulse(server.url, "k", threshold=0.0)
        with gk.Grace(store="memory:", evaluator=None, embedder=None) as grace:
            grace.on_complete(registry)
            self.run(grace, registry)
            grace.flush()
        assert registry.flush()
        assert ([], 1) == (server.bodies, registry.status()["not_eligible"])

    def test_nobody_waits_for_a_registry_that_hangs(self, caplog):
        server = Registry(*["held"] * 8)
        registry = KnowledgePulse(server.url, "k", threshold=0.0, timeout=60.0, deadline=60.0, max_waiting=2)
        with gk.Grace(store="memory:", evaluator=None, embedder=None, visibility="org") as grace:
            grace.on_complete(registry)
            for _ in range(8):
                self.run(grace, registry)
            grace.flush()
            assert 8 == grace.store.count()
        told = registry.status()
        assert told["dropped"] >= 5
        assert not registry.flush(0.0)
        registry.close(0.0)
        server.released.set()
        assert registry.flush()  # or the request that was held would reach the next test
        server.close()

    def test_without_a_key_it_is_said_once_and_costs_nothing(self, server, caplog):
        registry = KnowledgePulse(server.url, threshold=0.0)
        with gk.Grace(store="memory:", evaluator=None, embedder=None, visibility="org") as grace:
            grace.on_complete(registry)
            for _ in range(3):
                self.run(grace, registry)
            grace.flush()
        assert registry.flush()
        assert 3 == registry.status()["failed"]
        assert 1 == sum(KEY in record.getMessage() for record in caplog.records)

    def test_the_thread_that_stores_traces_only_hands_them_over(self, monkeypatch):
        """Redacting a long trace takes its time; that is the registry's own thread's affair."""
        threads = []
        real = KnowledgePulse.prepare
        monkeypatch.setattr(
            KnowledgePulse,
            "prepare",
            lambda self, one: threads.append(threading.current_thread().name) or real(self, one),
        )
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(201))
            registry = KnowledgePulse(URL, "k")
            registry(trace())
            registry(trace(visibility="private"))
            assert registry.close()
        assert ["grace_kp registry"] == threads
        assert (1, 1) == (registry.status()["sent"], registry.status()["not_eligible"])

    def test_what_goes_wrong_is_logged_once_until_it_goes_well(self, caplog):
        answers = [httpx.Response(403, text=f"request {number}") for number in range(3)]
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(side_effect=[*answers, httpx.Response(201), httpx.Response(403)])
            registry = KnowledgePulse(URL, "k")
            for _ in range(5):
                registry(trace())
            assert registry.flush()
        logged = [record.getMessage() for record in caplog.records if record.name == "grace_kp.registry"]
        assert ["a trace was not sent: HTTP 403: request 0", "a trace was not sent: HTTP 403"] == logged
        assert (4, 1) == (registry.status()["failed"], registry.status()["sent"])

    def test_what_comes_after_closing_is_counted(self, server):
        registry = KnowledgePulse(server.url, "k")
        assert registry.close()
        registry(trace())
        told = registry.status()
        assert ([], 1, 0) == (server.bodies, told["dropped"], told["waiting"])
        assert "after the registry was closed" in told["last_problem"]

    def test_closing_gives_up_what_still_waits(self):
        server = Registry(*["held"] * 4)
        registry = KnowledgePulse(server.url, "k", timeout=60.0, deadline=60.0)
        for _ in range(4):
            registry(trace())
        assert not registry.close(0.0)
        server.released.set()
        assert registry.flush()
        told = registry.status()
        server.close()
        assert 4 == told["dropped"] + told["failed"]
        assert told["dropped"] >= 3

    def test_a_registry_that_nobody_holds_is_gone(self):
        """Neither its worker nor the hooks of the process keep it when there is nothing to send."""
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(201))
            registry = KnowledgePulse(URL, "k")
            registry(trace())
            assert registry.flush()
        registry.close()
        gone = weakref.ref(registry)
        del registry
        ends = time.monotonic() + 30
        while gone() is not None and time.monotonic() < ends:  # its thread may be at its last line
            time.sleep(0.01)
            gc.collect()
        assert gone() is None


PROGRAM = """
import grace_kp as gk
from grace_kp.integrations.knowledgepulse import _outbox
from grace_kp.integrations.knowledgepulse import KnowledgePulse

def ran(grace):
    with grace.run("an objective") as run:
        run.thought("x")

_outbox.EXIT_SECONDS = {seconds}  # two are too few where a machine is busy

def runtime():
    return gk.Grace(store="memory:", evaluator=None, embedder=None, visibility="network")
"""


GRACE, REGISTRY, HOOK, RUN = (
    "grace = runtime()\n", "registry = KnowledgePulse({url!r}, 'k', threshold=0.0, timeout=60.0, deadline=60.0)\n", "grace.on_complete(registry)\n", "ran(grace)\n",
)  # fmt: skip


FORK = """
import os, sys
for _ in range(3):
    child = os.fork()
    if child == 0:
        ran(grace)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


PROCESSES = """
import multiprocessing
started = [multiprocessing.get_context("fork").Process(target=ran, args=(grace,)) for _ in range(3)]
for one in started:
    one.start()
for one in started:
    one.join()
"""


class TestTheEndOfAProgram:
    def end(self, url, code, seconds=30.0):
        whole = (PROGRAM + code).format(url=url, seconds=seconds)
        return warm.run([sys.executable, "-c", whole], capture_output=True, text=True, timeout=300)

    @pytest.mark.parametrize(
        ("code", "sent"),
        [
            (GRACE + REGISTRY + HOOK + RUN * 5, 5),
            (REGISTRY + GRACE + HOOK + RUN * 5, 5),
            (GRACE + RUN + "grace.flush()\n" + REGISTRY + HOOK + RUN * 5, 5),
        ],
        ids=["runtime first", "registry first", "registry after the first run"],
    )
    def test_what_it_has_is_sent(self, server, code, sent):
        ran = self.end(server.url, code)
        assert (0, "", sent) == (ran.returncode, ran.stderr, len(server.bodies))

    def test_it_does_not_wait_for_a_registry_that_hangs(self):
        """The program ends all the same, and says that traces were lost."""
        server = Registry(*["silence"] * 50)
        ran = self.end(server.url, GRACE + REGISTRY + HOOK + RUN * 20, seconds=2.0)
        server.close()
        assert (0, "the program ended before all traces were sent\n") == (ran.returncode, ran.stderr)

    @pytest.mark.parametrize(
        ("code", "sent"), [(RUN + FORK, 4), (FORK, 3), (PROCESSES, 3)], ids=["busy", "idle", "processes"]
    )
    def test_forked_children_send_what_is_theirs_once(self, server, code, sent):
        ran = self.end(server.url, GRACE + REGISTRY + HOOK + code)
        assert (0, "", sent) == (ran.returncode, ran.stderr, len(server.bodies))

    def test_a_fork_in_the_middle_of_anything_leaves_a_registry_that_works(self):
        """Whatever is locked in the moment of the fork would stay locked in the child for ever."""
        registry = KnowledgePulse(URL, "k")
        with registry._outbox._changed:
            child = os.fork()
            if child == 0:
                told = registry.status()
                os._exit(0 if registry.flush(1.0) and told["waiting"] == 0 else 1)
        assert 0 == os.waitpid(child, 0)[1]
