"""What leaves for a registry, to the byte, and what does not; sending it through a real client, to real and faulty servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
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

URL = "https://registry.example"


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

    @given(
        secret=st.sampled_from(
            [
                "password: hunter2hunter2",
                "ghp_" + "a" * 36,
                "alice@example.com",
                "192.168.10.20",
                "/home/alice/notes",
                "090-1234-5678",
            ]
        ),
        place=st.sampled_from(["objective", "step", "input", "key", "summary", "agent", "domain", "delta", "tool"]),
        around=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20).map(
            lambda text: f" {text} "
        ),
    )
    def test_no_secret_leaves_wherever_it_stands(self, secret, place, around):
        text = f"a{around}{secret} b"
        document = trace().to_dict()
        step = {"step_id": 1, "type": "tool_call", "tool": {"name": "t"}, "input": {"x": 1}}
        if place == "objective":
            document["task"]["objective"] = text
        elif place == "step":
            document["steps"][0]["content"] = text
        elif place == "summary":
            document["outcome"]["result_summary"] = text
        elif place == "agent":
            document["metadata"]["agent_id"] = f"kp:agent:{text}"
        elif place == "domain":
            document["metadata"]["task_domain"] = text
        elif place == "delta":
            document["knowledge_graph_delta"] = {"entities": [{"name": text, "type": "x"}], "relationships": []}
        else:
            step["input"] = {"deep": [{"x": text}]} if place == "input" else {text: 1} if place == "key" else {}
            step["tool"] = {"name": text if place == "tool" else "t"}
            document["steps"].append(step)
        body = KnowledgePulse(URL, "k").prepare(document).body.decode()
        assert secret not in body
        assert secret.split()[-1] not in body


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("http://registry.example", "in the clear"),
            ("ftp://registry.example", "must be an address"),
            ("registry.example", "must be an address"),
            ("https://user:pass@registry.example", "no user and no password"),
            ("https://registry.example/?a=1", "must be an address"),
            ("", "no registry"),
        ],
    )
    def test_one_that_cannot_be_used(self, url, problem):
        with pytest.raises(gk.SettingsError, match=problem):
            KnowledgePulse(url, "k")

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
        "given", [{"threshold": 2}, {"timeout": "x"}, {"deadline": -1}, {"threshold": float("nan")}]
    )
    def test_numbers_are_checked(self, given):
        with pytest.raises(gk.SettingsError, match=next(iter(given))):
            KnowledgePulse(URL, "k", **given)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Attempts follow each other at once, except where the server asks for time."""
    from grace_kp.integrations import _sending

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
    [("reset",), ("silence",), ("half",), ("endless",), (500,), (429,), ((429, "0"),), (503, "reset", "half")],
    indirect=True,
    ids=str,
)
def test_a_server_with_faults_gets_the_trace_in_the_end(server):
    done = KnowledgePulse(server.url, "k", timeout=1.0, deadline=30.0).contribute(trace())
    assert ("sent", 201) == (done.status, done.http_status)
    assert 1 == len(set(server.bodies))
    assert 2 <= len(server.bodies) <= done.attempts


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

    def test_a_program_that_ends_sends_what_it_has(self, server):
        code = f"""
import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KnowledgePulse
grace = gk.Grace(store="memory:", evaluator=None, embedder=None, visibility="network")
grace.on_complete(KnowledgePulse({server.url!r}, "k", threshold=0.0))
with grace.run("an objective") as run:
    run.thought("x")
grace.flush()
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
        assert (0, "", 1) == (ran.returncode, ran.stderr, len(server.bodies))


def test_coroutines_do_not_wait_for_each_other(server):
    registry = KnowledgePulse(server.url, "k")

    async def many():
        return await asyncio.gather(*(registry.acontribute(trace()) for _ in range(5)))

    assert ["sent"] * 5 == [done.status for done in asyncio.run(many())]


def test_without_httpx_the_error_names_the_command(tmp_path):
    code = "import sys; sys.modules['httpx'] = None\nfrom grace_kp.integrations.knowledgepulse import KnowledgePulse\nKnowledgePulse('https://r.example', 'k')._send(None)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "pip install 'grace-kp[knowledgepulse]'" in ran.stderr.splitlines()[-1]
