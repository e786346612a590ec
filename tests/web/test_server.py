"""The server: its address, its start and end, and large, slow and malformed requests over real connections."""

from __future__ import annotations

import re

import httpx
import pytest

from grace_kp.approvals import Actor
from grace_kp.errors import GraceError, SettingsError
from grace_kp.web import Accounts, Role, serving
from tests.web.visiting import exchange, listening

PUBLIC = "https://grace.example.com"


@pytest.fixture
def bind(grace):
    """Binds servers, and closes them at the end."""
    bound = []

    def server(**options):
        bound.append(serving(grace, port=0, **options))
        return bound[-1]

    yield server
    for each in bound:
        each.listener.close()
        each.app.state.site.catalog.close()


@pytest.fixture
def add(grace):
    return lambda: Accounts(grace.approvals.inbox.tables).add("ana", Role.ADMIN, actor=Actor(name="operator"))


def test_it_listens_on_this_machine_only(bind):
    server = bind()
    host, port = server.listener.getsockname()
    assert ("127.0.0.1", f"http://127.0.0.1:{port}") == (host, server.url)
    assert f"http://127.0.0.1:{port}/login?code=" == server.address()[: len(server.url) + 12]


def test_a_public_url_needs_tls(bind, add):
    add()
    with pytest.raises(GraceError, match="must begin with https://, because logins"):
        bind(host="0.0.0.0", public_url="http://grace.example.com")


def test_other_addresses_answer_to_local_names_without_a_public_url(bind, add):
    """As in a container whose port is published on its host. Before there are accounts, they are refused."""
    for options in ({"host": "0.0.0.0"}, {"host": "0.0.0.0", "public_url": PUBLIC}, {"public_url": PUBLIC}):
        with pytest.raises(GraceError, match="so it needs an account"):
            bind(**options)
    add()
    assert PUBLIC == bind(public_url=PUBLIC).url
    server = bind(host="0.0.0.0")
    port = server.listener.getsockname()[1]
    assert f"http://127.0.0.1:{port}" == server.url
    assert "answers requests for 127.0.0.1 and localhost only" in server.hint
    assert "no protection against slow clients" in server.hint
    accepts = server.app.state.addresses.accepts
    assert [True, True, False, False] == [
        accepts(f"{name}:{port}") for name in ("127.0.0.1", "localhost", "192.0.2.1", "grace.example.com")
    ]
    assert "" == bind().hint
    with pytest.raises(GraceError, match=r"192\.0\.2\.1:0 cannot be used \(.*\); use --host 127\.0\.0\.1 for"):
        bind(host="192.0.2.1")


@pytest.mark.parametrize("root", ["/../x", "/a b", "/a//b", "/é"])
def test_a_path_that_is_none_is_refused(bind, root):
    with pytest.raises(
        SettingsError,
        match=r"the root path must be like /grace, of letters, digits, dots.*got " + re.escape(repr(root)),
    ):
        bind(root=root)


def test_a_taken_port_is_named(grace, bind):
    port = bind().listener.getsockname()[1]
    with pytest.raises(GraceError, match=f"port {port} of 127.0.0.1 is taken; --port names another"):
        serving(grace, port=port)


def test_links_and_redirects_begin_with_the_path(grace):
    with listening(grace, root="/grace") as server:
        browser = httpx.Client(
            base_url=server.url.removesuffix("/grace"), headers={"Origin": server.url[: -len("/grace")]}
        )
        with browser:
            assert "/grace/login?next=/inbox%3Fa%3Db" == browser.get("/inbox?a=b").headers["location"]
            assert 'action="/grace/login"' in browser.get("/login").text
            code = server.address().partition("code=")[2]
            entered = browser.post("/login", data={"credential": code, "next": "/runs"})
            assert "/grace/runs" == entered.headers["location"]
            assert "Path=/grace;" in entered.headers["set-cookie"]


@pytest.fixture
def server(grace):
    with listening(grace) as started:
        yield started


def head(server, line="GET /login HTTP/1.1", *more):
    host, port = server.place[:2]
    return "\r\n".join([line, f"Host: {host}:{port}", *more, "", ""]).encode()


def status(answer):
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("line", ["GET /login HTTP/1.1", "POST /inbox HTTP/1.1", "POST /login HTTP/1.1"])
def test_a_body_that_nobody_reads_ends_the_connection(server, line):
    """A refused request is answered before its body, and a client cannot go on sending the body for ever."""
    answer = exchange(server, head(server, line, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n")
    assert status(answer) in {200, 401, 403}
    assert b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Content-Length: 99999999999"], 413),
        (["Content-Length: 5", "Content-Length: 6"], 400),
        (["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
        (["X: " + "y" * 100_000], 431),
        (["Host: second.example"], 400),
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
    "path", ["/login?next=/%0d%0aSet-Cookie:%20a=b", "/%0d%0aSet-Cookie:%20a=b", "/inbox?a=%0d%0aX:%20y"]
)
def test_line_breaks_in_an_address_split_no_response(server, path):
    answer = exchange(server, head(server, f"GET {path} HTTP/1.1", "Connection: close"))
    names = [line.partition(b":")[0].lower() for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
    assert b"set-cookie" not in names
    assert b"x" not in names
    assert b"uvicorn" not in answer.lower()
