"""A receiver of webhooks: a real server on this machine that answers as a test wants it to."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver:
    """What came in, and how to answer: a status, or a function of the handler."""

    def __init__(self):
        self.messages = []
        self.answers = []
        self.lasting_answer = 204
        self.released = threading.Event()
        self.came = threading.Condition()
        self.url = ""

    def take(self, handler):
        body = handler.rfile.read(int(handler.headers["content-length"]))
        answer = self.answers.pop(0) if self.answers else self.lasting_answer
        with self.came:
            self.messages.append(({name.lower(): value for name, value in handler.headers.items()}, body, handler.path))
            self.came.notify_all()
        if callable(answer):
            answer(handler)
            return
        self.answer(handler, *(answer if isinstance(answer, tuple) else (answer,)))

    def answer(self, handler, status, headers=MappingProxyType({})):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", "0")
        handler.end_headers()

    def wait_for(self, number):
        with self.came:
            assert self.came.wait_for(lambda: len(self.messages) >= number, 30)

    def hang(self, _handler):
        self.released.wait(60)


@contextmanager
def receiver():
    """Run a receiver for as long as the block lasts."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            found.take(self)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}/hook/secret-path"
    try:
        yield found
    finally:
        found.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
