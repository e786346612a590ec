"""Sending to a registry once each, in the background: retries, failures, closing, forks and exits."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
import respx

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KnowledgePulse
from tests import warm
from tests.integrations.knowledgepulse.conftest import URL, Registry, trace


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
        server = Registry(*["silence"] * 50)
        ran = self.end(server.url, GRACE + REGISTRY + HOOK + RUN * 20, seconds=2.0)
        server.close()
        assert (0, "the program ended before all traces were sent\n") == (ran.returncode, ran.stderr)

    @pytest.mark.parametrize(("code", "sent"), [(RUN + FORK, 4), (FORK, 3)], ids=["busy", "idle"])
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


def waits_of_this_thread(monkeypatch):
    """Seconds that this thread would have slept; threads of other tests go on sleeping for real."""
    waits, sleep, me = [], time.sleep, threading.get_ident()
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda s: waits.append(s) if threading.get_ident() == me else sleep(s)
    )
    return waits


class TestAnswers:
    def test_sent(self, registry):
        with respx.mock:
            route = respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(201))
            done = registry.contribute(trace())
        assert ("sent", 201, 1) == (done.status, done.http_status, done.attempts)
        request = route.calls.last.request
        prepared = registry.prepare(trace())
        assert prepared.body == request.content
        assert ("Bearer top-secret-key", prepared.idempotency_key) == (
            request.headers["authorization"], request.headers["idempotency-key"],
        )  # fmt: skip

    @pytest.mark.parametrize("fault", [408, 425, 429, 500, 502, 503, 504, httpx.ConnectError, httpx.ReadTimeout])
    def test_again_with_the_same_key(self, registry, fault):
        failed = httpx.Response(fault) if isinstance(fault, int) else fault("x")
        with respx.mock:
            route = respx.post(f"{URL}/v1/knowledge").mock(side_effect=[failed, httpx.Response(201)])
            done = registry.contribute(trace())
        assert ("sent", 2) == (done.status, done.attempts)
        assert 1 == len({call.request.headers["idempotency-key"] for call in route.calls})

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
    def test_refused_at_once(self, registry, status):
        said = "no: Bearer top-secret-key of bob@example.com " + "x" * 1_000
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(status, text=said))
            done = registry.contribute(trace())
        assert ("failed", status, 1) == (done.status, done.http_status, done.attempts)
        assert done.reason.startswith(f"HTTP {status}: no")
        assert "top-secret-key" not in done.reason
        assert "bob@" not in done.reason
        assert len(done.reason) <= 300

    @pytest.mark.parametrize("how", ["seconds", "date"])
    def test_more_time_is_asked_for_than_there_is(self, how):
        later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        registry = KnowledgePulse(URL, "k", deadline=60.0)
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(
                return_value=httpx.Response(429, headers={"retry-after": "3600" if how == "seconds" else later})
            )
            done = registry.contribute(trace())
        assert ("failed", 429, 1) == (done.status, done.http_status, done.attempts)

    def test_a_server_that_asks_for_no_wait_is_not_hammered(self, monkeypatch):
        """The waits still grow: with 1, 2, 4, … seconds there are few attempts within any deadline."""
        from grace_kp.integrations.knowledgepulse import _outbox

        waits = waits_of_this_thread(monkeypatch)
        monkeypatch.setattr(_outbox, "FIRST_WAIT", 1.0)
        answers = [httpx.Response(429, headers={"retry-after": "0"})] * 3 + [httpx.Response(201)]
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(side_effect=answers)
            assert "sent" == KnowledgePulse(URL, "k").contribute(trace()).status
        assert [True] * 3 == [wait >= 2.0**number for number, wait in enumerate(waits)]


FAULTS = [("reset",), ("silence",), ("dripping",), ((429, "0"),), (503, "reset")]


@pytest.mark.parametrize("server", FAULTS, indirect=True, ids=str)
def test_a_server_with_faults_gets_the_trace_in_the_end(server):
    done = KnowledgePulse(server.url, "k", timeout=1.0, deadline=30.0).contribute(trace())
    assert ("sent", 201) == (done.status, done.http_status)
    assert 1 == len(set(server.bodies))
    assert 2 <= len(server.bodies) <= done.attempts


@pytest.mark.parametrize(
    ("server", "status", "said"),
    [
        ((401,), 401, "HTTP 401"),
        (("half 401",), 401, "HTTP 401: bad key"),
        (("long 404",), 404, "HTTP 404: xxx"),
        (("gzip 404",), 404, "HTTP 404"),
        (("moved",), 307, "redirects are not followed"),
    ],
    indirect=["server"],
    ids=str,
)
def test_an_answer_that_settles_it_is_not_asked_for_again(server, status, said):
    done = KnowledgePulse(server.url, "top-secret-key", timeout=30.0).contribute(trace())
    assert ("failed", status, 1, 1) == (done.status, done.http_status, done.attempts, len(server.bodies))
    assert said in done.reason


@pytest.mark.parametrize("server", [("half",), ("endless",), ("gzip",)], indirect=True)
def test_the_status_settles_it_whatever_follows(server):
    done = KnowledgePulse(server.url, "k").contribute(trace())
    assert ("sent", 201, 1) == (done.status, done.http_status, len(server.bodies))


def test_a_proxy_is_not_given_what_goes_to_this_machine(server, monkeypatch):
    """It would be given the key in the clear."""
    proxy = Registry(*[500] * 50)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    done = KnowledgePulse(server.url, "k").contribute(trace())
    proxy.close()
    assert ("sent", [], 1) == (done.status, proxy.bodies, len(server.bodies))


@pytest.mark.parametrize("server", [("dripping",) * 50], indirect=True)
def test_the_deadline_holds_for_an_answer_that_never_ends(server):
    """Each line of it comes quickly; all of them would take half a minute."""
    done = KnowledgePulse(server.url, "k", timeout=0.2, deadline=0.5).contribute(trace())
    assert ("failed", None) == (done.status, done.http_status)
    assert 1 <= done.attempts <= 5
