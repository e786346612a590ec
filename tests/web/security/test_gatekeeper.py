"""The gatekeeper: names of the server, what passes, what is refused and why, bodies, and headers of responses."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from grace_kp import ActionPending, InboxReviewer
from grace_kp.approvals import verify
from grace_kp.errors import SettingsError
from grace_kp.web import Right, Role
from grace_kp.web._site import RIGHTS, PageRoute
from grace_kp.web.security import Addresses
from grace_kp.web.security._gatekeeper import protect_response, read_body
from grace_kp.web.security._refusals import network_of
from tests.web.security.conftest import entries

READS = {"GET", "HEAD"}
FORM = "application/x-www-form-urlencoded"


def address(route):
    """A path that the route answers, with values for its parameters."""
    return re.sub(r"\{[^}]*\}", "x", route.path)


def calls(app):
    """Every route with each of its methods."""
    return [(route, method) for route in app.routes for method in sorted(route.methods)]


def send(browser, route, method, **headers):
    """A request that nothing but the right of the person stands against."""
    body = {} if method in READS else {"json": {}} if address(route).startswith("/api/") else {"data": {"a": "b"}}
    return browser.request(method, address(route), headers=headers, **body)


@pytest.fixture
def pending(grace):
    """A request for approval that waits."""

    @grace.gate(floor="confirm", key="refund:{order}", reviewer=InboxReviewer(wait="raise"))
    def refund(order: str, amount: int) -> str:
        return f"{order} {amount}"

    with pytest.raises(ActionPending):
        refund("A1", 5)
    (approval,) = grace.approvals.inbox.requests.pending()
    return approval


@pytest.fixture
def marked(server):
    """A route that needs the right to decide, and notes that it was called."""
    called = []

    def decide(request):
        called.append(request.state.form)
        return PlainTextResponse("done")

    route = PageRoute("/approvals/{id}/test-of-a-verb", decide, methods=["POST"])
    route.right = Right.DECIDE
    server.app.router.routes.insert(0, route)
    return called


# -- who may call what


def test_every_route_states_a_right(server):
    for route in server.app.routes:
        assert isinstance(route, PageRoute), route
        assert isinstance(route.right, Right), route


def test_only_these_need_no_login(server):
    """The login itself, style and script, health and the description of the API."""
    open_to_all = {route.path for route in server.app.routes if route.right is Right.ANYBODY}
    files = {path for path in open_to_all if path.startswith("/static/") and "{" not in path}
    assert {"/login", "/healthz", "/api/openapi.json"} >= open_to_all - files
    assert "/login" in open_to_all


def test_no_route_answers_without_a_session(server, visit, add):
    """Pages lead to the login, everything else is refused. Nobody learns which addresses exist."""
    browser = visit()
    for route, method in calls(server.app):
        if route.right is Right.ANYBODY:
            continue
        response = send(browser, route, method)
        is_page = method in READS and not route.path.startswith("/api/")
        assert (303 if is_page else 401) == response.status_code, (method, route.path)
        if is_page:
            assert response.headers["location"].startswith("/login?next=/"), route.path
    assert "/login?next=/no/such%3Fa%3Db" == browser.get("/no/such?a=b").headers["location"]
    assert 404 == visit(add("ana", Role.VIEWER)).get("/no/such").status_code


@pytest.mark.parametrize("role", list(Role))
def test_no_route_answers_a_role_that_lacks_its_right(server, visit, add, role):
    """By cookie, or by the header for programs; neither the page nor the write is done."""
    token = add("ana", role)
    browser = visit(Authorization=f"Bearer {token}") if role is Role.AGENT else visit(token)
    refused = [(route, method) for route, method in calls(server.app) if route.right not in RIGHTS[role]]
    assert refused or role is Role.ADMIN
    for route, method in refused:
        response = send(browser, route, method)
        expected = 401 if role is Role.AGENT and not route.path.startswith("/api/") else 403
        if role is Role.AGENT and expected == 401 and method in READS:
            expected = 303
        assert expected == response.status_code, (method, route.path)


def test_a_route_without_a_right_is_refused(server, visit, add):
    page = Route("/forgotten", lambda request: PlainTextResponse("open"))
    mounted = Mount("/mounted", app=PlainTextResponse("open"))
    server.app.router.routes[0:0] = [page, mounted]
    browser = visit(add("ana", Role.ADMIN))
    for path in ("/forgotten", "/mounted", "/mounted/x"):
        assert 303 == visit().get(path).status_code
        assert 404 == browser.get(path).status_code


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
def test_other_methods_are_refused(visit, add, method):
    assert 401 == visit().request(method, "/accounts").status_code
    browser = visit(add("ana", Role.ADMIN))
    refused = browser.request(method, "/accounts", headers={"X-CSRF-Token": browser.csrf()})
    assert 405 == refused.status_code
    assert not [name for name in refused.headers if name.startswith("access-control")]


def test_there_are_no_web_sockets(server):
    from starlette.testclient import TestClient, WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), TestClient(server.app).websocket_connect("/inbox"):
        pass


# -- where a request comes from


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "[::ffff:127.0.0.1]", "", "<script>alert(1)"]
)
def test_a_foreign_host_is_refused_on_every_route(server, visit, add, host):
    """A page that has its name lead to this machine (DNS rebinding) gets nothing, whatever proxies state."""
    browser = visit(add("ana", Role.ADMIN))
    headers = {"X-Forwarded-Host": server.url.removeprefix("http://"), "Forwarded": "host=localhost"}
    refused = visit().get("/login", headers={"Host": host, **headers})
    assert 421 == refused.status_code
    assert "<script>alert" not in refused.text
    for route, method in calls(server.app) if host == "evil.example" else ():
        assert 421 == send(browser, route, method, Host=host).status_code, (method, route.path)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Origin": "http://127.0.0.1:{port}/"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_write_from_elsewhere_is_refused(server, visit, add, marked, headers):
    """Another site, another port of this host, another scheme, or nobody who says: with a valid session and token."""
    browser = visit(add("ana", Role.ADMIN))
    csrf = browser.csrf()
    port = server.url.rpartition(":")[2]
    if not headers:  # every browser states one with a write
        del browser.headers["origin"]
    sent = {name: value.format(port=port) for name, value in headers.items()}
    assert 403 == browser.post("/approvals/x/test-of-a-verb", data={"csrf": csrf}, headers=sent).status_code
    assert 403 == browser.post("/logout", data={"csrf": csrf}, headers=sent).status_code
    assert not headers or 403 == visit().post("/login", data={"credential": "x"}, headers=sent).status_code
    assert [] == marked
    assert browser.is_known()


def test_every_write_needs_the_token_of_its_session(server, visit, add, marked):
    """None, a wrong one, two, or that of somebody else is refused; the right one passes, in the form or in a header."""
    ana, ben = visit(add("ana", Role.ADMIN)), visit(add("ben", Role.ADMIN))
    own, other = ana.csrf(), ben.csrf()
    path = "/approvals/x/test-of-a-verb"
    for wrong in ({}, {"csrf": ""}, {"csrf": other}, {"csrf": own[:-1]}, {"csrf": [own, own]}, {"csrf": "é"}):
        assert 403 == ana.post(path, data=wrong).status_code
    assert 403 == ana.post(path, data={"csrf": own}, headers={"X-CSRF-Token": other}).status_code
    assert 403 == ana.post(f"{path}?csrf={own}", data={"a": "b"}).status_code
    assert [] == marked
    assert 200 == ana.post(path, data={"csrf": own}).status_code
    assert 200 == ana.post(path, data={"a": "b"}, headers={"X-CSRF-Token": own}).status_code
    assert [{"csrf": [own]}, {"a": ["b"]}] == marked
    for route, method in calls(server.app):
        if method not in READS and route.right is not Right.ANYBODY:
            assert 403 == send(ana, route, method).status_code, (method, route.path)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200),
    ],
)
def test_other_sites_can_link_and_nothing_else(visit, headers, expected):
    """A link, as in a message about a request, leads here. Frames, images and scripts of other pages get nothing."""
    assert expected == visit().get("/login", headers=headers).status_code


# -- what a request holds


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b"{}", "application/json", 415),
        (b"csrf=x", "", 415),
        (b"--x", "multipart/form-data; boundary=x", 415),
        (b"a=" + b"x" * (1 << 20), FORM, 413),
        (b"&".join(b"a" for _ in range(10_000)), FORM, 400),
        (b"a=%FF", FORM, 400),
    ],
)
def test_bodies_of_other_kinds_and_sizes_are_refused(visit, add, marked, content, kind, expected):
    """Forms only, at most 1 MB, with a bounded number of fields; who is not known may send 16 kB."""
    browser = visit(add("ana", Role.ADMIN))
    headers = {"Content-Type": kind, "X-CSRF-Token": browser.csrf()}
    assert expected == browser.post("/approvals/x/test-of-a-verb", content=content, headers=headers).status_code
    assert [] == marked
    assert 413 == visit().log_in("x" * 20_000).status_code
    assert 414 == visit().get("/login?" + "a" * 9_000).status_code


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../etc/passwd",
        "/static/..%2f..%2f..%2fetc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/site.css%00.txt",
        "//evil.example/",
    ],
)
def test_no_path_leads_to_other_files(visit, add, path):
    """There are two files, by their exact names; nothing is joined to a path of this machine."""
    browser = visit(add("ana", Role.ADMIN))
    response = browser.get(browser.server.url + path)
    assert 404 == response.status_code
    assert "root:" not in response.text


# -- what a response holds


@pytest.mark.parametrize("path", ["/login", "/static/site.css", "/no-such-page", "/", "/accounts", "/api/v1/none"])
def test_every_response_has_the_headers(visit, add, path):
    """Known or not: no script and no frame of others, no guessing of types, no referrer, nothing kept."""
    for browser in (visit(), visit(add("ana", Role.ADMIN))):
        headers = browser.get(path).headers
        policy = dict(part.partition(" ")[::2] for part in headers["content-security-policy"].split("; "))
        assert {"default-src": "'none'", "frame-ancestors": "'none'", "base-uri": "'none'"}.items() <= policy.items()
        assert {"script-src": "'self'", "style-src": "'self'", "form-action": "'self'"}.items() <= policy.items()
        assert "nosniff" == headers["x-content-type-options"]
        assert "no-referrer" == headers["referrer-policy"]
        assert "DENY" == headers["x-frame-options"]
        assert "same-origin" == headers["cross-origin-resource-policy"]
        assert "same-origin" == headers["cross-origin-opener-policy"]
        assert ("no-cache" if path.startswith("/static") else "no-store") == headers["cache-control"]
        assert "access-control-allow-origin" not in headers


# -- what is recorded


@pytest.mark.parametrize("reason", ["right", "csrf", "origin", "body"])
def test_an_attack_on_a_decision_is_in_the_audit_trail(tables, visit, add, pending, marked, reason):
    """By whom, on which request, and why it was refused. The request is as it was, and the chain holds."""
    browser = visit(add("ana", Role.VIEWER if reason == "right" else Role.APPROVER))
    headers = {"Origin": "http://evil.example"} if reason == "origin" else {}
    headers |= {"X-CSRF-Token": browser.csrf()} if reason != "csrf" else {}
    headers |= {"Content-Type": "text/plain" if reason == "body" else FORM}
    refused = browser.post(f"/approvals/{pending.id}/test-of-a-verb", content="note=x", headers=headers)
    assert (415 if reason == "body" else 403) == refused.status_code
    (entry,) = entries(tables, "refused")
    assert "ana" == entry["actor"]["name"]
    assert entry["actor"]["authenticated"] is True
    assert pending.id == entry["approval"]
    assert {"reason": reason, "path": f"/approvals/{pending.id}/test-of-a-verb"}.items() <= entry["facts"].items()
    assert [] == marked
    assert "pending" == tables.row(pending.id).state
    assert verify(tables, at=time.time()).ok


def test_an_unknown_operation_names_the_description(visit, add):
    browser = visit(add("ana", Role.APPROVER))
    operation, page = browser.post("/api/v1/approvals/ap-1/frob", json={}), browser.get("/frob")
    assert (404, 404) == (operation.status_code, page.status_code)
    assert "No operation has this address. /api/openapi.json lists all of them." == operation.json()["message"]
    assert "No page has this address." in page.text


def test_attacks_by_nobody_are_counted_only(tables, server, visit, pending, marked):
    before = tables.head()
    browser = visit()
    assert 401 == browser.post(f"/approvals/{pending.id}/test-of-a-verb", data={"a": "b"}).status_code
    assert 303 == browser.get("/inbox", follow_redirects=False).status_code
    browser.get("/inbox", headers={"Host": "evil.example"})
    browser.get("/api/v1/runs", headers={"Authorization": "Bearer x"})
    assert before == tables.head()
    counts = server.logins.attempts.counts()
    assert {"no_login": 2, "sent_to_login": 1, "foreign_host": 1, "wrong_token": 1} == counts


def test_wrong_tokens_are_slowed_down(visit, add):
    """After five failures programs are asked to wait; the right token is never refused."""
    token = add("ana", Role.ADMIN)
    statuses = [visit(Authorization="Bearer wrong").get("/api/v1/runs").status_code for _ in range(8)]
    assert [401] * 5 + [429] * 3 == statuses
    assert "8" == visit(Authorization="Bearer wrong").get("/api/v1/runs").headers["retry-after"]
    assert 200 == visit(Authorization=f"Bearer {token}").get("/api/v1/runs").status_code


# -- while a response goes on


def channel(*chunks):
    """A channel that delivers these chunks, and then nothing for ever; None is a client that has gone."""
    messages = [
        {"type": "http.disconnect"} if chunk is None else {"type": "http.request", "body": chunk, "more_body": True}
        for chunk in chunks
    ]

    async def receive():
        return messages.pop(0) if messages else await asyncio.Event().wait()

    return receive


@pytest.mark.parametrize(
    ("chunks", "seconds", "status"), [([b"ab", b"cd"], 60, 413), ([b"a"], 0.01, 408), ([None], 60, 400)]
)
async def test_a_body_is_bounded_in_size_and_time(chunks, seconds, status):
    """Whatever length was stated, the rest is never read; a client that stops or goes holds nothing."""
    with pytest.raises(HTTPException) as raised:
        await read_body(channel(*chunks), 3, seconds=seconds)
    assert status == raised.value.status_code


def headers(message):
    return {name.decode(): value.decode() for name, value in message["headers"]}


def start(*pairs):
    return {"type": "http.response.start", "status": 200, "headers": list(pairs)}


def test_a_handler_cannot_loosen_the_policy():
    loose = start((b"Content-Security-Policy", b"default-src *"), (b"x-frame-options", b"ALLOW"), (b"x-other", b"1"))
    found = headers(protect_response(loose, may_keep=False))
    assert "default-src 'none'" == found["content-security-policy"].partition(";")[0]
    assert "DENY" == found["x-frame-options"]
    assert "1" == found["x-other"]
    assert len(found) == len(protect_response(loose, may_keep=False)["headers"])


def test_only_what_needs_no_login_is_kept_by_caches():
    cached = start((b"cache-control", b"max-age=60"))
    found = [headers(protect_response(cached, may_keep=may_keep))["cache-control"] for may_keep in (False, True)]
    assert ["no-store", "max-age=60"] == found


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: x=y", b"a\nb", b"a\0b"])
def test_a_header_with_a_line_break_is_an_error(value):
    with pytest.raises(ValueError, match="line break"):
        protect_response(start((b"location", value)), may_keep=False)


LOOPBACK = Addresses(port=8765)
ANY_PORT = Addresses()
PUBLIC = Addresses(public_url="https://Grace.example.com")


@pytest.mark.parametrize(
    ("addresses", "accepted", "refused"),
    [
        (
            LOOPBACK,
            ["127.0.0.1:8765", "LOCALHOST:8765", "[::1]:8765"],
            ["127.0.0.1", "127.0.0.1:8766", "localhost.:8765", "localhost:8765 ", "localhost:8765.evil.example", "evil.example:8765",
             "127.0.0.1.nip.io:8765", "user@localhost:8765", ""],
        ),
        (Addresses(port=80), ["localhost"], ["localhost:81"]),
        (ANY_PORT, ["localhost", "127.0.0.1:9"], ["localhost:", "localhost:9x", "localhost.evil.example"]),
        (
            PUBLIC,
            ["grace.example.com", "grace.example.com:443"],
            ["grace.example.com:80", "localhost:8765", "127.0.0.1", "evil.example.com"],
        ),
        (Addresses(public_url="https://grace.example.com:8443"), ["grace.example.com:8443"], ["grace.example.com"]),
    ],
)  # fmt: skip
def test_only_own_names_are_accepted(addresses, accepted, refused):
    assert [True] * len(accepted) == [addresses.accepts(host) for host in accepted]
    assert [False] * len(refused) == [addresses.accepts(host) for host in refused]


@pytest.mark.parametrize(
    ("addresses", "host", "scheme", "expected"),
    [
        (LOOPBACK, "127.0.0.1:8765", "http", "http://127.0.0.1:8765"),
        (ANY_PORT, "localhost:443", "https", "https://localhost"),
        (PUBLIC, "grace.example.com:443", "http", "https://grace.example.com"),
        (Addresses(public_url="https://[2001:db8::1]:8443"), "x", "http", "https://[2001:db8::1]:8443"),
    ],
)
def test_the_origin_is_that_of_the_browser(addresses, host, scheme, expected):
    """As browsers write it: without the default port, and behind a proxy that of the public URL."""
    assert expected == addresses.origin(host, scheme)


@pytest.mark.parametrize(
    "url",
    [
        "grace.example.com",
        "https://grace.example.com/path",
        "https://user@grace.example.com",
        "https://grace.example.com:port",
        "https://grace.example.com\r\nX: y",
        "https://gräce.example.com",
    ],
)
def test_a_public_url_that_is_none_is_refused(url):
    with pytest.raises(SettingsError, match="the public URL must be like"):
        Addresses(public_url=url)


def test_a_trusted_proxy_is_no_name():
    """A name could be made to lead elsewhere."""
    with pytest.raises(SettingsError, match="must be an IP address, not 'localhost'"):
        Addresses(trusted_proxies=frozenset({"localhost"}))


def test_headers_of_proxies_are_ignored_unless_configured():
    """Only a trusted proxy says who its client is, and only its own statement counts, not what came from outside."""
    stated = Headers({"x-forwarded-for": "203.0.113.9, 198.51.100.7, 10.0.0.2"})
    assert "192.0.2.1" == LOOPBACK.client("192.0.2.1", stated)
    trusting = Addresses(port=1, trusted_proxies=frozenset({"10.0.0.1", "10.0.0.2"}))
    assert "198.51.100.7" == trusting.client("10.0.0.1", stated)
    assert "192.0.2.1" == trusting.client("192.0.2.1", stated)
    assert "10.0.0.1" == trusting.client("10.0.0.1", Headers())
    assert "10.0.0.1" == trusting.client("10.0.0.1", Headers({"x-forwarded-for": "unknown\n"}))


@pytest.mark.parametrize(
    ("proxy", "peer"),
    [("10.0.0.1", "::ffff:10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:DB8:0::1", "2001:db8::1")],
)
def test_a_proxy_is_known_in_each_form_of_its_address(proxy, peer):
    trusting = Addresses(port=1, trusted_proxies=frozenset({proxy}))
    lines = [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-for", f"::ffff:198.51.100.7, {proxy}".encode())]
    assert "198.51.100.7" == trusting.client(peer, Headers(raw=lines))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "unknown"),
    ],
)
def test_limits_are_by_network(address, expected):
    assert expected == network_of(address)
