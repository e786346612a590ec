"""A registry for tests without waits between attempts, a trace to contribute, and a real server whose answers have faults."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KnowledgePulse

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


REPLIES = {
    "held": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
    "half": b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf",
    "half 401": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\nbad key",
    "long 404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000,
    "gzip": b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"thanks"),
    "gzip 404": b"HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"no"),
    "moved": b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1/other\r\nContent-Length: 0\r\n\r\n",
}


class Registry:
    """A real server that answers as it is told, one fault after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.bodies = []
        self.released = threading.Event()
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
                    outer.released.wait(2.0)
                elif answer in {"endless", "dripping"}:
                    self.wfile.write(b"HTTP/1.1 201 Created\r\n")
                    if answer == "endless":
                        self.wfile.write(b"Content-Length: 10000000\r\n\r\n")
                    with contextlib.suppress(OSError):
                        for number in range(600):
                            self.wfile.write(b"X-%d: 1\r\n" % number)
                            if answer == "dripping":
                                time.sleep(0.05)
                elif answer in REPLIES:
                    if answer == "held":
                        outer.released.wait(60)
                    self.wfile.write(REPLIES[answer])
                else:
                    status, later = answer if isinstance(answer, tuple) else (answer, None)
                    self.send_response(status)
                    if later is not None:
                        self.send_header("retry-after", later)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, *args):
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def registry():
    made = KnowledgePulse(URL, "top-secret-key", timeout=60.0, deadline=60.0)
    yield made
    made.close(0.0)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Attempts follow each other at once, except where the server asks for time."""
    from grace_kp.integrations.knowledgepulse import _outbox

    monkeypatch.setattr(_outbox, "FIRST_WAIT", 0.001)


@pytest.fixture
def server(request):
    made = Registry(*getattr(request, "param", ()))
    yield made
    made.close()
