"""What leaves for a registry, to the byte, and what does not; sending it through a real client, to real and faulty servers."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import gzip
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KEY, KnowledgePulse
from tests import warm
from tests.trace.redaction.forms import IDENTIFIER_FORMS, SECRET_FORMS

URL = "https://registry.example"


@functools.cache
def bomb():
    """200 kB of gzip that hold 200 MB."""
    packing = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join(packing.compress(b"x" * (1 << 20)) for _ in range(200)) + packing.flush()


def waits_of_this_thread(monkeypatch):
    """Seconds that this thread would have slept; threads of other tests go on sleeping for real."""
    waits, sleep, me = [], time.sleep, threading.get_ident()
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda s: waits.append(s) if threading.get_ident() == me else sleep(s)
    )
    return waits


def trace(score=0.9, visibility="network", **more):
    document = {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": "kp:trace:00000000-0000-4000-8000-000000000001",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "task_domain": "finance", "success": True, "quality_score": score,
            "visibility": visibility, "privacy_level": "private",
        },
        "task": {"objective": "Ask bob@example.com"},
        "steps": [{"step_id": 0, "type": "thought", "content": "from 10.1.2.3 with sk-abcdefghijklmnopqrstuvwxyz123456"}],
        "outcome": {"result_summary": "done", "confidence": 0.9},
        "grace": {"status": "completed", "name": "own"},
    }  # fmt: skip
    document.update(more)
    return gk.ReasoningTrace.model_validate(document)


FULL = {
    "@context": "https://openknowledgepulse.org/schema/v1",
    "@type": "ReasoningTrace",
    "id": "kp:trace:x",
    "source_skill": "kp:skill:s",
    "metadata": {
        "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:x", "framework": "f", "task_domain": "d", "success": True,
        "quality_score": 0.9, "visibility": "network", "privacy_level": "private", "validated_by": ["kp:agent:v"], "own": "x",
    },
    "task": {"objective": "o", "input_schema": {"a": "b"}},
    "steps": [
        {
            "step_id": 0, "type": "tool_call", "content": "c", "tool": {"name": "t", "mcp_server": "m"},
            "input": {"q": ["r", {"s": "t"}]}, "output_summary": "u", "own": {"k": "v"},
        },
    ],
    "outcome": {"result_summary": "r", "confidence": 0.9},
    "knowledge_graph_delta": {"entities": [{"name": "n", "type": "t"}], "relationships": [{"fact": "f", "valid_from": "v"}]},
    "grace": {"status": "completed", "k": {"l": "m"}},
}  # fmt: skip
# Their values are given by the schema.
FIXED = {
    ("@context",), ("@type",), ("metadata", "created_at"), ("metadata", "visibility"), ("metadata", "privacy_level"),
    ("steps", 0, "type"), ("grace", "status"),
}  # fmt: skip
KEYS = [("task", "input_schema", "a"), ("steps", 0, "input", "q"), ("steps", 0, "input", "q", 1, "s"), ("steps", 0, "own", "k"), ("metadata", "own"), ("grace", "k", "l")]  # fmt: skip
AROUND = st.sampled_from(["{}", "before {} after", "({})", "前 {} 後", "x\n{}\ny", '"{}"'])


# What must be found, as the tests of the redaction have it: a text, and the part of it that must not be left.
FORMS = [*SECRET_FORMS, *((text, text) for text, _ in IDENTIFIER_FORMS)]


def places(value, path=()):
    """Where a document has texts."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))
    elif isinstance(value, str) and path not in FIXED:
        yield path


PLACES = [*((path, False) for path in places(FULL)), *((path, True) for path in KEYS)]


def put(document, place, text):
    """A copy of the document with the text as a value, or as a key."""
    (*path, last), as_key = place
    whole = inner = copy.deepcopy(document)
    for key in path:
        inner = inner[key]
    if as_key:
        inner[text] = inner.pop(last)
    else:
        begins = re.match(r"kp:\w+:", str(inner[last]))
        inner[last] = (begins[0] if begins else "") + text
    return whole


@pytest.fixture
def registry():
    made = KnowledgePulse(URL, "top-secret-key", deadline=5.0)
    yield made
    made.close(0.0)


class TestWhatLeaves:
    def test_a_trace_without_secrets_and_identifiers(self, registry):
        prepared = registry.prepare(trace())
        body = json.loads(prepared.body)
        assert prepared.eligible
        assert ("POST", f"{URL}/v1/knowledge") == (prepared.method, prepared.url)
        assert "Ask [REDACTED:email]" == body["task"]["objective"]
        assert "from [REDACTED:ip] with [REDACTED:api_key]" == body["steps"][0]["content"]
        assert "aggregated" == body["metadata"]["privacy_level"]
        assert "grace" not in body
        assert gk.ReasoningTrace.model_validate(body).id == trace().id
        assert "Bearer ***" == prepared.headers["Authorization"]
        assert (
            hashlib.sha256(prepared.body).hexdigest() == prepared.idempotency_key == prepared.headers["Idempotency-Key"]
        )
        assert "top-secret-key" not in str(prepared)

    def test_the_same_trace_is_the_same_bytes(self, registry):
        shuffled = dict(reversed(trace().to_dict().items()))
        assert registry.prepare(trace()) == registry.prepare(shuffled) == KnowledgePulse(URL, "other").prepare(trace())

    def test_what_is_ours_leaves_only_when_asked_to(self):
        own = trace(grace={"status": "completed", "name": "mail bob@example.com"}, other={"a": 1})
        body = json.loads(KnowledgePulse(URL, "k", include_grace=True).prepare(own).body)
        assert "mail [REDACTED:email]" == body["grace"]["name"]
        assert "other" not in body

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"visibility": "private"}, "visibility is private"),
            ({"score": 0.7499}, "below 0.75"),
            ({"grace": {"status": "suspended"}}, "suspended"),
            ({"grace": {"status": "interrupted"}}, "interrupted"),
        ],
    )
    def test_what_stays(self, registry, given, why):
        prepared = registry.prepare(trace(**given))
        assert (False, b"") == (prepared.eligible, prepared.body)
        assert why in prepared.reason
        with respx.mock:  # which fails at any request
            assert "not_eligible" == registry.contribute(trace(**given)).status

    @pytest.mark.parametrize("visibility", ["org", "network"])
    def test_the_threshold_is_met_exactly(self, registry, visibility):
        assert registry.prepare(trace(0.75, visibility)).eligible

    @given(form=st.sampled_from(FORMS), place=st.sampled_from(PLACES), around=AROUND)
    def test_no_secret_and_no_identifier_leaves_wherever_it_stands(self, form, place, around):
        """Every text and every key of a full trace, what is beyond the schema included; the rest of the body stays as it is."""
        text, secret = form
        registry = KnowledgePulse(URL, "k", include_grace=True)
        body = registry.prepare(put(FULL, place, around.format(text))).body.decode()
        assert secret not in body
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in body
        assert gk.ReasoningTrace.model_validate_json(body).outcome.confidence == 0.9

    def test_what_json_cannot_hold_is_an_invalid_trace(self, registry):
        given = trace()
        given.steps[0].input = {"x": float("nan")}
        with pytest.raises(gk.InvalidTrace, match="x"):
            registry.prepare(given)

    def test_a_score_that_is_no_number_stays(self, registry):
        given = trace()
        given.metadata.quality_score = float("nan")
        assert not registry.prepare(given).eligible


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("http://registry.example", "in the clear"),
            ("ftp://registry.example", "must be an address"),
            ("registry.example", "must be an address"),
            ("https://user:pass@registry.example", "no user and no password"),
            ("https://registry.example/?a=1", "must be an address"),
            ("https://registry.example/#a", "must be an address"),
            ("https://registry.example:99999", "must be an address"),
            ("https://registry.example:port", "must be an address"),
            ("https://[::1", "must be an address"),
            ("https://registry.example/\n", "must be an address"),
            ("https://registry example", "must be an address"),
            ("", "no registry"),
        ],
    )
    def test_one_that_cannot_be_used(self, url, problem):
        with pytest.raises(gk.SettingsError, match=problem):
            KnowledgePulse(url, "k")

    @pytest.mark.parametrize(
        "url",
        [
            "https://user:hunter2hunter2@registry.example/?a=1",
            "user:hunter2hunter2@registry.example",
            "https://registry.example/?key=hunter2hunter2",
            "https://registry.example/#hunter2hunter2",
        ],
    )
    def test_a_secret_in_one_is_not_shown(self, url):
        with pytest.raises(gk.SettingsError) as caught:
            KnowledgePulse(url, "k")
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize("key", ["two words", "a\nb", "schlüssel", "…"])
    def test_a_key_that_cannot_be_sent_is_not_shown(self, key):
        registry = KnowledgePulse(URL, key)
        for ask in (registry.check, lambda: registry.contribute(trace())):
            with respx.mock, pytest.raises(gk.SettingsError, match="must be ASCII without blanks") as caught:
                ask()
            assert key not in str(caught.value)

    def test_blanks_around_a_key_do_not_count(self):
        with respx.mock:
            route = respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(201))
            assert "sent" == KnowledgePulse(URL, " secret\n").contribute(trace()).status
        assert "Bearer secret" == route.calls.last.request.headers["authorization"]

    @pytest.mark.parametrize(
        "url", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://r.example/base/"]
    )
    def test_one_that_can(self, url):
        assert not KnowledgePulse(url, "k").url.endswith("/")

    def test_the_settings_name_it(self, monkeypatch):
        monkeypatch.setenv("GRACE_KP_REGISTRY_URL", URL)
        assert URL == KnowledgePulse(key="k").url

    def test_without_a_key_nothing_is_sent(self, monkeypatch):
        with respx.mock, pytest.raises(gk.SettingsError, match=KEY):
            KnowledgePulse(URL).contribute(trace())

    def test_the_key_is_not_shown(self, registry):
        assert "top-secret-key" not in repr(registry) + str(registry.status())

    @pytest.mark.parametrize(
        "given",
        [
            {"threshold": 2},
            {"timeout": "x"},
            {"deadline": -1},
            {"threshold": float("nan")},
            {"timeout": 0},
            {"deadline": 0.0},
            {"max_waiting": 0},
            {"max_waiting": True},
        ],
    )
    def test_numbers_are_checked(self, given):
        with pytest.raises(gk.SettingsError, match=next(iter(given))):
            KnowledgePulse(URL, "k", **given)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Attempts follow each other at once, except where the server asks for time."""
    from grace_kp.integrations.knowledgepulse import _sending

    monkeypatch.setattr(_sending, "FIRST_WAIT", 0.001)


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
        registry = KnowledgePulse(URL, "k", deadline=5.0)
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


class Registry:
    """A real server that answers as it is told, one fault after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.bodies = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                answer = outer.answers.pop(0) if outer.answers else 201
                self.close_connection = True
                if answer == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    self.connection.close()
                elif answer == "silence":
                    time.sleep(2.0)
                elif answer == "half":
                    self.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf")
                elif answer == "endless":
                    self.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 10000000\r\n\r\n")
                    try:
                        for _ in range(1_000):
                            self.wfile.write(b"x" * 1_000)
                    except OSError:
                        return
                elif answer == "dripping":
                    self.wfile.write(b"HTTP/1.1 201 Created\r\n")
                    try:
                        for number in range(600):
                            self.wfile.write(b"X-%d: 1\r\n" % number)
                            time.sleep(0.05)
                    except OSError:
                        return
                elif answer == "bad gzip":
                    self.wfile.write(
                        b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain"
                    )
                elif answer in {"gzip", "bomb", "bomb 404", "br"}:
                    body = gzip.compress(b"thanks") if answer == "gzip" else bomb()
                    status = b"404 Not Found" if answer == "bomb 404" else b"201 Created"
                    encoding = b"br" if answer == "br" else b"gzip"
                    head = b"HTTP/1.1 %b\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
                    self.wfile.write(head % (status, encoding, len(body)) + body)
                elif answer == "half 401":
                    self.wfile.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\nbad key")
                elif answer == "long 404":
                    self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000)
                elif answer == "moved":
                    self.wfile.write(
                        b"HTTP/1.1 307 Moved\r\nLocation: "
                        + outer.url.encode()
                        + b"/other\r\nContent-Length: 0\r\n\r\n"
                    )
                elif isinstance(answer, tuple):
                    self.send_response(answer[0])
                    self.send_header("retry-after", answer[1])
                    self.send_header("content-length", "0")
                    self.end_headers()
                else:
                    self.send_response(answer)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, *args):
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server(request):
    made = Registry(*getattr(request, "param", ()))
    yield made
    made.close()


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


@pytest.mark.parametrize("server", [("bomb",) * 50], indirect=True)
def test_a_compressed_answer_is_unpacked_up_to_the_bound(server):
    """200 kB that hold 200 MB cost a few hundred kB; the reason names the bound."""
    sender = KnowledgePulse(server.url, "k", deadline=30.0)
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


@pytest.mark.parametrize("server", [("dripping",) * 50], indirect=True)
def test_the_deadline_holds_for_an_answer_that_never_ends(server):
    """Each line of it comes quickly; all of them would take half a minute."""
    done = KnowledgePulse(server.url, "k", timeout=0.2, deadline=0.5).contribute(trace())
    assert ("failed", None) == (done.status, done.http_status)
    assert 1 <= done.attempts <= 5


def test_a_proxy_is_not_given_what_goes_to_this_machine(server, monkeypatch):
    """It would be given the key in the clear."""
    proxy = Registry(*[500] * 50)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    done = KnowledgePulse(server.url, "k").contribute(trace())
    proxy.close()
    assert ("sent", [], 1) == (done.status, proxy.bodies, len(server.bodies))


def test_a_server_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = KnowledgePulse(f"http://127.0.0.1:{port}", "k", deadline=0.3).contribute(trace())
    assert ("failed", None) == (done.status, done.http_status)
    assert done.attempts >= 1


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
        server = Registry(*["silence"] * 50)
        registry = KnowledgePulse(server.url, "k", threshold=0.0, timeout=0.2, deadline=0.3, max_waiting=2)
        with gk.Grace(store="memory:", evaluator=None, embedder=None, visibility="org") as grace:
            grace.on_complete(registry)
            for _ in range(8):
                self.run(grace, registry)
            grace.flush()
            assert 8 == grace.store.count()
        told = registry.status()
        assert told["dropped"] >= 1
        assert not registry.flush(0.0)
        registry.close(0.0)
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
        server = Registry(*["silence"] * 50)
        registry = KnowledgePulse(server.url, "k", timeout=0.5, deadline=0.6)
        for _ in range(4):
            registry(trace())
        assert not registry.close(0.0)
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
        registry._outbox._worker.stop(30)
        gone = weakref.ref(registry)
        del registry
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
    "grace = runtime()\n", "registry = KnowledgePulse({url!r}, 'k', threshold=0.0)\n", "grace.on_complete(registry)\n", "ran(grace)\n",
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
        return warm.run([sys.executable, "-c", whole], capture_output=True, text=True, timeout=60)

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


def test_coroutines_do_not_wait_for_each_other(server):
    registry = KnowledgePulse(server.url, "k")

    async def many():
        return await asyncio.gather(*(registry.acontribute(trace()) for _ in range(5)))

    assert ["sent"] * 5 == [done.status for done in asyncio.run(many())]


def test_without_httpx_the_error_names_the_command(tmp_path):
    code = "import sys; sys.modules['httpx'] = None\nfrom grace_kp.integrations.knowledgepulse import KnowledgePulse\nKnowledgePulse('https://r.example', 'k').check()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "pip install 'grace-kp[knowledgepulse]'" in ran.stderr.splitlines()[-1]
