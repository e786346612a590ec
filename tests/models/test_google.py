"""Calls of the Gemini service: what is tried again and for how long, and that every failure ends in time and shows no key."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("google.genai")
anyio = pytest.importorskip("anyio")
httpx = pytest.importorskip("httpx")
import grace_kp as gk  # noqa: E402
from grace_kp.models import _gemini  # noqa: E402
from tests.models.gemini import BOTH, KEY, answer, judged, refusal  # noqa: E402


@BOTH
@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(wire, code, sync):
    wire.mock(side_effect=[refusal(code), refusal(code), httpx.Response(200, json=answer())])
    made = judged(sync=sync)
    assert (0.8, 3) == (made.score, made.attempts)


@BOTH
@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_what_cannot_pass_fails_at_once(wire, code, sync):
    wire.mock(return_value=refusal(code, "NO", "never"))
    made = judged(sync=sync)
    assert (0.5, True, 1) == (made.score, made.fallback, made.attempts)
    assert f"HTTP {code} NO: never" == made.error
    assert 1 == wire.call_count


@BOTH
@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("gone"),
        httpx.ConnectTimeout("slow"),
    ],
)
def test_connections_that_fail_are_tried_again(wire, error, sync):
    wire.mock(side_effect=[error, httpx.Response(200, json=answer())])
    assert (0.8, 2) == ((made := judged(sync=sync)).score, made.attempts)


@BOTH
def test_the_number_of_attempts_is_bounded(wire, sync):
    wire.mock(return_value=refusal(503))
    made = judged(sync=sync, attempts=3)
    assert (True, 3) == (made.fallback, made.attempts)
    assert 3 == wire.call_count
    with pytest.raises(gk.JudgeError) as caught:
        gk.GeminiJudge(api_key=KEY, attempts=2)("prompt")
    assert (2, 503) == (caught.value.attempts, caught.value.status)


def asks_to_wait(how, seconds):
    """A refusal that asks for a wait: by a header in seconds or as a date, or in the body."""
    if how == "body":
        return refusal(
            429, details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}]
        )
    value = str(seconds) if how == "seconds" else formatdate(time.time() + seconds, usegmt=True)
    return refusal(429, headers={"Retry-After": value})


WAITS = pytest.mark.parametrize("how", ["seconds", "date", "body"])


@BOTH
@WAITS
def test_the_service_says_how_long_to_wait(wire, how, sync):
    wire.mock(side_effect=[asks_to_wait(how, 1), httpx.Response(200, json=answer())])
    assert 0.8 == judged(sync=sync).score
    assert 2 == wire.call_count


@BOTH
@WAITS
def test_a_wait_beyond_the_deadline_is_not_begun(wire, how, sync):
    """It would be for nothing; a judge that began it would keep this test for most of an hour, and one that ignored it would succeed."""
    wire.mock(side_effect=[asks_to_wait(how, 3_600), httpx.Response(200, json=answer())])
    made = judged(sync=sync, timeout=3_000)
    assert (True, 1) == (made.fallback, made.attempts)


@BOTH
def test_the_key_shows_nowhere(wire, caplog, sync):
    """Not in errors, not in logs, not in a repr; also when the service repeats it."""
    caplog.set_level(logging.DEBUG)
    wire.mock(return_value=refusal(400, message=f"the key {KEY} is not valid"))
    made = judged(sync=sync)
    assert "the key [REDACTED:api_key] is not valid" in made.error
    assert KEY not in caplog.text
    assert KEY not in repr(gk.GeminiJudge(api_key=KEY)) + repr(gk.GeminiEmbedder(api_key=KEY))


def test_keys_in_the_environment(wire, monkeypatch):
    """GEMINI_API_KEY, else GOOGLE_API_KEY; without one nothing is sent."""
    made = gk.LLMSelfEvaluator(gk.GeminiJudge()).evaluate_detailed("q", "a")
    assert (True, 0, 0) == (made.fallback, made.attempts, wire.call_count)
    assert "no API key: set GEMINI_API_KEY or GOOGLE_API_KEY" in made.error
    monkeypatch.setenv("GOOGLE_API_KEY", "of google")
    assert 0.8 == gk.LLMSelfEvaluator(gk.GeminiJudge()).evaluate("q", "a")
    monkeypatch.setenv("GEMINI_API_KEY", "of gemini")
    assert 0.8 == gk.LLMSelfEvaluator(gk.GeminiJudge()).evaluate("q", "a")
    assert ["of google", "of gemini"] == [call.request.headers["x-goog-api-key"] for call in wire.calls]


def test_one_judge_in_many_threads_and_loops(wire):
    evaluator = gk.LLMSelfEvaluator(gk.GeminiJudge(api_key=KEY))
    with ThreadPoolExecutor(16) as pool:
        assert {0.8} == set(pool.map(lambda number: evaluator.evaluate("q", str(number)), range(32)))

    async def many(start):
        return await asyncio.gather(*(evaluator.aevaluate("q", str(start + number)) for number in range(20)))

    for start in (100, 200):
        assert {0.8} == set(asyncio.run(many(start)))
    assert 72 == wire.call_count


class Faulty(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append(self.path)
        way = self.path.split("/")[1]
        body = json.dumps(answer()).encode()
        if way == "hangs":
            self.server.over.wait(8)
            self.close_connection = True
            return
        if way == "resets":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if way == "garbage":
            self.wfile.write(b"\x00\x01\x02 what is this\r\n\r\n")
            self.close_connection = True
            return
        self.send_response(302 if way == "redirects" else 200)
        if way == "redirects":
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/other/models/x:generateContent")
            body = b""
        self.send_header("Content-Type", "application/json")
        if way != "drips":
            self.send_header("Content-Length", str(len(body) + (1_000 if way == "stops" else 0)))
        self.end_headers()
        try:
            if way == "drips":
                while not self.server.over.wait(0.1):
                    self.wfile.write(b" ")
                    self.wfile.flush()
            elif way == "stops":
                self.wfile.write(body[:20])
                self.wfile.flush()
                self.close_connection = True
            else:
                self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


@pytest.fixture
def server():
    made = Server(("127.0.0.1", 0), Faulty)
    made.asked, made.over = [], threading.Event()
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield made
    made.over.set()
    made.shutdown()
    made.server_close()


def at(server, way, **options):
    return {"base_url": f"http://127.0.0.1:{server.server_port}/{way}", "timeout": 1.0, "attempts": 2, **options}


@BOTH
@pytest.mark.parametrize("way", ["hangs", "drips", "stops", "garbage", "resets", "redirects"])
@pytest.mark.parametrize("kind", [gk.GeminiJudge, gk.OpenAIJudge])
def test_a_faulty_service_costs_no_more_than_the_deadline(server, way, sync, kind):
    made = judged(sync=sync, kind=kind, **at(server, way))
    assert made.fallback
    assert made.error
    assert not any(path.startswith("/other") for path in server.asked)  # the key is sent nowhere else


@BOTH
def test_a_first_attempt_that_hangs_leaves_time_for_another(wire, sync):
    wire.mock(side_effect=[httpx.ReadTimeout("slow"), httpx.Response(200, json=answer())])
    made = judged(sync=sync, timeout=60.0)
    assert (0.8, 2) == (made.score, made.attempts)
    assert all(call.request.extensions["timeout"]["read"] <= 30.0 for call in wire.calls)


async def test_a_connection_that_is_being_closed_is_closed_also_when_the_deadline_passes(wire):
    """Else it would stay open until somebody collects it."""
    closed = []

    async def work(client, options):
        with anyio.CancelScope(shield=True):  # as httpcore does while it closes a connection
            await asyncio.sleep(0.2)
            closed.append(True)
        await asyncio.sleep(60)

    caller = _gemini.GoogleCaller(api_key=KEY, base_url=None, timeout=0.01, attempts=1)
    with pytest.raises(gk.JudgeError, match=r"did not answer within 0\.01 s"):
        await caller.acall(work, str)
    assert [True] == closed


@BOTH
def test_a_reply_that_is_too_large_is_not_read_to_its_end(wire, monkeypatch, sync):
    monkeypatch.setattr(_gemini, "MAX_REPLY_BYTES", 100)
    wire.mock(return_value=httpx.Response(200, content=json.dumps(answer()).encode()))
    made = judged(sync=sync)
    assert made.fallback
    assert "the reply is larger than" in made.error
