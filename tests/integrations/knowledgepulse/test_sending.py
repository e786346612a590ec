"""Requests to a registry: which answers are final, which are tried again, and bounds in time and size."""

from __future__ import annotations

import socket
import threading
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
import respx

from grace_kp.integrations.knowledgepulse import KnowledgePulse
from tests.integrations.knowledgepulse.registry import URL, Registry, trace


def waits_of_this_thread(monkeypatch):
    """Seconds that this thread would have slept; threads of other tests go on sleeping for real."""
    waits, sleep, me = [], time.sleep, threading.get_ident()
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda s: waits.append(s) if threading.get_ident() == me else sleep(s)
    )
    return waits


class TestAnswers:
    """Through the real client, with answers in place of a network."""

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

    async def test_sent_from_a_coroutine(self, registry):
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(200))
            assert "sent" == (await registry.acontribute(trace())).status

    def test_there_already(self, registry):
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(409))
            assert "already_there" == registry.contribute(trace()).status

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
    def test_again_with_the_same_key(self, registry, status):
        with respx.mock:
            route = respx.post(f"{URL}/v1/knowledge").mock(side_effect=[httpx.Response(status), httpx.Response(201)])
            done = registry.contribute(trace())
        assert ("sent", 2) == (done.status, done.attempts)
        assert 1 == len({call.request.headers["idempotency-key"] for call in route.calls})

    @pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError])
    def test_again_after_a_broken_connection(self, registry, error):
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(side_effect=[error("x"), httpx.Response(201)])
            assert ("sent", 2) == ((done := registry.contribute(trace())).status, done.attempts)

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

    def test_a_redirect_is_not_followed(self, registry):
        """The key would go to wherever it leads."""
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(
                return_value=httpx.Response(307, headers={"location": "https://evil.example/"})
            )
            done = registry.contribute(trace())
        assert ("failed", "HTTP 307: redirects are not followed") == (done.status, done.reason)

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

    @pytest.mark.parametrize("header", ["soon", "", "-5", "nan", "Fri, 99 Foo 2026"])
    def test_a_header_that_says_nothing(self, registry, header):
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(
                side_effect=[httpx.Response(503, headers={"retry-after": header}), httpx.Response(201)]
            )
            assert "sent" == registry.contribute(trace()).status

    def test_a_server_that_asks_for_no_wait_is_not_hammered(self, monkeypatch):
        """The waits still grow: with 1, 2, 4, … seconds there are few attempts within any deadline."""
        from grace_kp.integrations.knowledgepulse import _sending

        waits = waits_of_this_thread(monkeypatch)
        monkeypatch.setattr(_sending, "FIRST_WAIT", 1.0)
        answers = [httpx.Response(429, headers={"retry-after": "0"})] * 3 + [httpx.Response(201)]
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(side_effect=answers)
            assert "sent" == KnowledgePulse(URL, "k").contribute(trace()).status
        assert [True] * 3 == [wait >= 2.0**number for number, wait in enumerate(waits)]

    def test_a_longer_wait_that_is_asked_for_is_kept(self, registry, monkeypatch):
        waits = waits_of_this_thread(monkeypatch)
        with respx.mock:
            respx.post(f"{URL}/v1/knowledge").mock(
                side_effect=[httpx.Response(503, headers={"retry-after": "3"}), httpx.Response(201)]
            )
            assert "sent" == registry.contribute(trace()).status
        assert [3.0] == waits


@pytest.mark.parametrize(
    "server",
    [
        ("reset",),
        ("silence",),
        ("dripping",),
        ("half",),
        ("bad gzip",),
        ("endless",),
        ("bomb",),
        ("br",),
        (500,),
        (429,),
        ((429, "0"),),
        (503, "reset", "half"),
    ],
    indirect=True,
    ids=str,
)
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
        (("bomb 404",), 404, "HTTP 404"),
        (("moved",), 307, "redirects are not followed"),
    ],
    indirect=["server"],
    ids=str,
)
def test_an_answer_that_settles_it_is_not_asked_for_again(server, status, said):
    """Whatever the rest of it is like: cut off, or longer than anybody reads."""
    done = KnowledgePulse(server.url, "top-secret-key", timeout=30.0).contribute(trace())
    assert ("failed", status, 1, 1) == (done.status, done.http_status, done.attempts, len(server.bodies))
    assert said in done.reason


@pytest.mark.parametrize("server", [("gzip",)], indirect=True)
def test_an_answer_that_is_compressed_unasked_is_read(server):
    assert "sent" == KnowledgePulse(server.url, "k").contribute(trace()).status


@pytest.mark.parametrize("server", [("gzip", *("bomb",) * 50)], indirect=True)
def test_a_compressed_answer_is_unpacked_up_to_the_bound(server, monkeypatch):
    """200 kB that hold 200 MB cost a few hundred kB; the reason names the bound."""
    from grace_kp.integrations.knowledgepulse import _sending

    monkeypatch.setattr(_sending, "FIRST_WAIT", 1_000.0)  # one attempt
    monkeypatch.setattr(_sending, "LONGEST_WAIT", 1_000.0)
    sender = KnowledgePulse(server.url, "k", timeout=60.0, deadline=60.0)
    sender.contribute(trace())
    tracemalloc.start()
    done = sender.contribute(trace())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ("failed", True) == (done.status, "longer than 65,536 bytes" in done.reason)
    assert most < 20 << 20


@pytest.mark.parametrize("server", [(409,)], indirect=True)
def test_a_server_that_has_it_already(server):
    assert "already_there" == KnowledgePulse(server.url, "k").contribute(trace()).status


def test_a_proxy_is_not_given_what_goes_to_this_machine(server, monkeypatch):
    """It would be given the key in the clear."""
    proxy = Registry(*[500] * 50)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    done = KnowledgePulse(server.url, "k").contribute(trace())
    proxy.close()
    assert ("sent", [], 1) == (done.status, proxy.bodies, len(server.bodies))


def test_a_server_that_is_not_there():
    with socket.socket() as taken:  # so that no other server of a test gets the port
        taken.bind(("127.0.0.1", 0))
        done = KnowledgePulse(f"http://127.0.0.1:{taken.getsockname()[1]}", "k", deadline=0.3).contribute(trace())
    assert ("failed", None) == (done.status, done.http_status)
    assert done.attempts >= 1


@pytest.mark.parametrize("server", [("dripping",) * 50], indirect=True)
def test_the_deadline_holds_for_an_answer_that_never_ends(server):
    """Each line of it comes quickly; all of them would take half a minute."""
    done = KnowledgePulse(server.url, "k", timeout=0.2, deadline=0.5).contribute(trace())
    assert ("failed", None) == (done.status, done.http_status)
    assert 1 <= done.attempts <= 5
