"""A server that listens, in a thread of the test, and raw connections to it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from grace_kp.web import serving

PATIENCE = 60
"""Seconds that something on a busy machine may take."""


@contextlib.contextmanager
def listening(grace, **options):
    """Serve until the block ends."""
    server = serving(grace, port=0, **options)
    place = server.listener.getsockname()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + PATIENCE
        while server._uvicorn is None or not server._uvicorn.started:
            if time.monotonic() > end or not thread.is_alive():
                raise TimeoutError("the server does not start")
            time.sleep(0.01)
        server.place = place
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
