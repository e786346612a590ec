"""HTTP with large and malformed requests and slow bodies, over real connections."""

from __future__ import annotations

import contextlib
import select

import pytest

from grace_kp import Grace
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
