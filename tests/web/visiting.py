"""Ways to visit the pages: the browser of one person at a mounted application, and a server in a thread with raw connections to it."""

from __future__ import annotations

import contextlib
import re
import socket
import threading

from starlette.testclient import TestClient

from grace_kp.web import Person, Role, app, serving

BASE = "http://localhost:8765"
TOKEN = re.compile(r'<meta name="csrf" content="([0-9a-f]+)">')


class Client(TestClient):
    """Sends what a browser sends from these pages: the Host, and for writes the Origin. `post_form` adds the token of the page."""

    def __init__(self, application, url, **options):
        super().__init__(application, base_url=url, follow_redirects=False, headers={"Origin": url}, **options)

    def csrf(self):
        """The token that pages of this person carry. The page of an error carries it, too."""
        return TOKEN.search(self.get("/no-such-page").text)[1]

    def post_form(self, path, fields=None, **more):
        """Send a form of the pages; values may be lists."""
        return self.post(path, data={"csrf": self.csrf(), **(fields or {}), **more})


class Browser(Client):
    """The browser of a person whom the host application has identified."""

    def __init__(self, grace, *, name="ana", role=Role.ADMIN, authenticated=True, **options):
        person = Person(name=name, role=Role(role), authenticated=authenticated)
        super().__init__(app(grace, auth=lambda request: person), BASE, **options)

    def post_json(self, path, body):
        """Send JSON to the API, as the script of a page does."""
        return self.post(path, json=body, headers={"X-CSRF-Token": self.csrf()})


PATIENCE = 60
"""Seconds that something on a busy machine may take."""


@contextlib.contextmanager
def listening(grace, **options):
    """Serve until the block ends."""
    server = serving(grace, port=0, **options)
    server.place = server.listener.getsockname()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        exchange(server, b"OPTIONS * HTTP/1.1\r\n\r\n")  # the first answer means that it has started
        yield server
    finally:
        server.end()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def connect(server):
    """A connection that waits for answers with patience."""
    return socket.create_connection(server.place[:2], timeout=PATIENCE)


def received(connection):
    """All bytes until the server closes the connection."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            data += chunk
    return data


def exchange(server, data):
    """The whole answer to these bytes, on a connection of their own."""
    with connect(server) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
        return received(connection)
