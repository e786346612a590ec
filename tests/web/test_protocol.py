"""HTTP with slow, large and malformed requests, over real connections."""

from __future__ import annotations

import contextlib
import select
import socket

import pytest

from grace_kp import Grace
from grace_kp.web import Right, _protocol
from grace_kp.web._route import route
from grace_kp.web.security import _body, _gatekeeper
from tests.web.listening import PATIENCE, connect, exchange, listening, received


@pytest.fixture
def grace(tmp_path):
    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as opened:
        yield opened


@pytest.fixture
def server(grace):
    with listening(grace) as started:
        yield started


def head(server, line="GET /login HTTP/1.1", *more):
    host, port = server.place[:2]
    return "\r\n".join([line, f"Host: {host}:{port}", *more, "", ""]).encode()


def status(answer):
    return int(answer.split(b" ", 2)[1])


def is_open(connection):
    """Whether the server has not closed a connection, and has sent nothing."""
    return not select.select([connection], [], [], 0)[0]


def test_a_request_is_answered(server):
    """Without the name of the server's software."""
    answer = exchange(server, head(server, "GET /login HTTP/1.1", "Connection: close"))
    assert 200 == status(answer)
    assert b"uvicorn" not in answer.lower()


@pytest.mark.parametrize("sent", [b"", b"GET /login HTTP/1.1\r\n", b"GET /login HTTP/1.1\r\nHost: x\r\nX: y"])
def test_headers_that_do_not_come_end_the_connection(grace, monkeypatch, sent):
    """Whoever sends them byte by byte, or nothing at all, is cut off; the next request is answered."""
    monkeypatch.setattr(_protocol, "HEADER_SECONDS", 0.2)
    with listening(grace) as server, connect(server) as connection:
        connection.sendall(sent)
        assert b"" == received(connection)
        monkeypatch.setattr(_protocol, "HEADER_SECONDS", PATIENCE)
        assert 200 == status(exchange(server, head(server, "GET /login HTTP/1.1", "Connection: close")))


def test_single_bytes_do_not_extend_the_time(grace, monkeypatch):
    """The deadline runs from the beginning of the request."""
    monkeypatch.setattr(_protocol, "HEADER_SECONDS", 0.3)
    with listening(grace) as server, connect(server) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /login HTTP/1.1\r\nX: ")
            while not select.select([connection], [], [], 0.02)[0]:
                connection.sendall(b"y")
        assert b"" == received(connection)


def test_the_second_request_of_a_connection_has_the_same_deadline(grace, monkeypatch):
    """uvicorn has none there once its first byte has come."""
    monkeypatch.setattr(_protocol, "HEADER_SECONDS", PATIENCE)
    with listening(grace) as server, connect(server) as connection:
        connection.sendall(head(server))
        answer = connection.recv(65_536)
        assert 200 == status(answer)
        monkeypatch.setattr(_protocol, "HEADER_SECONDS", 0.3)
        connection.sendall(b"GET /")
        received(connection)
        monkeypatch.setattr(_protocol, "HEADER_SECONDS", PATIENCE)
        assert 200 == status(exchange(server, head(server, "GET /login HTTP/1.1", "Connection: close")))


def half_a_form(server):
    host, port = server.place[:2]
    lines = [f"Origin: http://{host}:{port}", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 9"]
    return head(server, "POST /login HTTP/1.1", *lines) + b"a=b"


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        pytest.param(lambda server: b"GET /login HTTP/1.1\r\n", 0, id="half a head"),
        pytest.param(half_a_form, 0, id="half a body"),
        pytest.param(lambda server: head(server, "HEAD /login HTTP/1.1"), 1, id="one request, and silence"),
    ],
)
def test_slow_clients_do_not_keep_others_out(grace, monkeypatch, sent, answers):
    """When all places are taken by connections that wait for their clients, the oldest of them makes room."""
    monkeypatch.setattr(_protocol, "CONNECTIONS", 5)
    with listening(grace) as server, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(server)) for _ in range(5)]
        for connection in slow:
            connection.sendall(sent(server))
            if answers:
                assert b"HTTP/1.1 200" == connection.recv(65_536)[:12]
        for _ in range(3):
            assert 200 == status(exchange(server, head(server, "GET /login HTTP/1.1", "Connection: close")))


def test_clients_that_read_nothing_do_not_keep_others_out(grace, monkeypatch):
    """A response that nobody reads holds its place only until somebody else needs it."""
    monkeypatch.setattr(_protocol, "CONNECTIONS", 3)
    from starlette.responses import Response

    with listening(grace) as server, contextlib.ExitStack() as stack:
        big = Response(b"x" * 50_000_000)
        server.app.router.routes.insert(0, route("/big", lambda request: big, Right.ANYBODY))
        for _ in range(3):
            connection = stack.enter_context(connect(server))
            connection.sendall(head(server, "GET /big HTTP/1.1"))
            while b"xx" not in connection.recv(4_096):
                pass
        assert 200 == status(exchange(server, head(server, "GET /login HTTP/1.1", "Connection: close")))


def test_a_body_that_does_not_come_is_refused(grace, monkeypatch):
    """With 408, although its length was stated; the connection ends."""
    monkeypatch.setattr(_gatekeeper, "read_body", lambda receive, limit: _body.read_body(receive, limit, 0.2))
    with listening(grace) as server:
        host, port = server.place[:2]
        lines = [
            f"Origin: http://{host}:{port}",
            "Content-Type: application/x-www-form-urlencoded",
            "Content-Length: 100",
        ]
        answer = exchange(server, head(server, "POST /login HTTP/1.1", *lines) + b"credential=")
        assert 408 == status(answer)
        assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("line", ["GET /login HTTP/1.1", "POST /inbox HTTP/1.1", "POST /login HTTP/1.1"])
def test_a_body_that_nobody_reads_ends_the_connection(server, line):
    """A refused request is answered before its body, and a client cannot go on sending the body for ever."""
    answer = exchange(server, head(server, line, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n")
    assert status(answer) in {200, 401, 403}
    assert b"\r\nconnection: close\r\n" in answer.lower()


def test_an_endless_body_is_refused_while_it_comes(server):
    """In chunks, without a length: the rest is not read, and the connection ends."""
    host, port = server.place[:2]
    lines = [
        f"Origin: http://{host}:{port}",
        "Content-Type: application/x-www-form-urlencoded",
        "Transfer-Encoding: chunked",
    ]
    with connect(server) as connection:
        connection.sendall(head(server, "POST /login HTTP/1.1", *lines))
        chunk = b"4000\r\n" + b"a" * 0x4000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(10_000):
                connection.sendall(chunk)
                if not is_open(connection):
                    break
            else:
                pytest.fail("160 MB were taken in")
        connection.settimeout(PATIENCE)
        assert received(connection)[:12] in {b"HTTP/1.1 413", b""}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Content-Length: 99999999999"], 413),
        (["Content-Length: 5", "Content-Length: 6"], 400),
        (["Content-Length: -1"], 400),
        (["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: gzip, chunked"], 501),
        (["X: " + "y" * 100_000], 431),
        (["Host: second.example"], 400),
        (["X : y"], 400),
        ([" folded: y"], 415),
        (["X: a\x00b"], 400),
    ],
)
def test_malformed_and_ambiguous_requests_are_refused(server, lines, expected):
    """Two lengths, two hosts, headers beyond all bounds, names that two servers could read differently."""
    host, port = server.place[:2]
    kind = "Content-Type: application/x-www-form-urlencoded"
    sent = head(server, "POST /login HTTP/1.1", f"Origin: http://{host}:{port}", "Connection: close", kind, *lines)
    answer = exchange(server, sent + b"hello")
    assert status(answer) in {expected, 400}
    assert 200 == status(exchange(server, head(server, "GET /login HTTP/1.1", "Connection: close")))


@pytest.mark.parametrize(
    "line",
    [
        "GET http://evil.example/login HTTP/1.1",
        "CONNECT evil.example:443 HTTP/1.1",
        "GET * HTTP/1.1",
        "OPTIONS * HTTP/1.1",
    ],
)
def test_it_is_no_proxy(server, line):
    """Other forms of an address are no page of this server."""
    assert status(exchange(server, head(server, line, "Connection: close"))) in {303, 400, 401, 403, 404}


@pytest.mark.parametrize(
    "path", ["/login?next=/%0d%0aSet-Cookie:%20a=b", "/%0d%0aSet-Cookie:%20a=b", "/inbox?a=%0d%0aX:%20y"]
)
def test_line_breaks_in_an_address_split_no_response(server, path):
    """They stay escaped wherever the address is repeated."""
    answer = exchange(server, head(server, f"GET {path} HTTP/1.1", "Connection: close"))
    names = [line.partition(b":")[0].lower() for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
    assert b"set-cookie" not in names
    assert b"x" not in names


def test_an_upgrade_is_not_followed(server):
    """To a web socket or to HTTP/2: the request is answered as it is, or refused."""
    lines = [
        "Upgrade: websocket",
        "Connection: Upgrade, close",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    assert 200 == status(exchange(server, head(server, "GET /login HTTP/1.1", *lines)))


def test_a_client_that_reads_nothing_is_cut_off(grace, monkeypatch):
    """Its connection is free again, however large the response is."""
    monkeypatch.setattr(_protocol, "UNREAD_SECONDS", 0.2)
    from starlette.responses import Response

    with listening(grace) as server:
        big = Response(b"x" * 50_000_000)
        server.app.router.routes.insert(0, route("/big", lambda request: big, Right.ANYBODY))
        with connect(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(head(server, "GET /big HTTP/1.1"))
            state = server._uvicorn.server_state
            watched = connection.recv(1)
            assert b"H" == watched
            deadline = PATIENCE * 50
            while state.connections and deadline:
                select.select([], [], [], 0.02)
                deadline -= 1
            assert set() == state.connections
