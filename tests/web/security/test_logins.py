"""Accounts, logins of `grace-kp serve`, identities of a host application, and refused attempts."""

from __future__ import annotations

import getpass
import json
import time

import pytest
from starlette.applications import Starlette
from starlette.authentication import SimpleUser
from starlette.routing import Mount
from starlette.testclient import TestClient

from grace_kp.approvals import ACCOUNT, verify
from grace_kp.errors import GraceError, StoreError
from grace_kp.web import Accounts, Person, Right, Role, app
from grace_kp.web._site import route
from grace_kp.web.security import Addresses, Logins
from grace_kp.web.security._logins import AT_MOST, AT_MOST_EACH, Sessions
from grace_kp.web.security._refusals import (
    AT_MOST_ADDRESSES,
    EACH_DAY,
    EACH_DAY_PER_PERSON,
    EVERYWHERE,
    FREE,
    LONGEST_WAIT,
    Attempts,
    Refusals,
)
from grace_kp.web.security._visitor import csrf_of, new_secret
from tests.approvals.shops import asked
from tests.web.inbox.conftest import forms
from tests.web.security.conftest import OPERATOR, code_of, entries
from tests.web.visiting import TOKEN


def test_a_code_is_exchanged_for_a_session(server, visit):
    """By POST, with a button that works without script. Looking at the printed address, as previews of links do, uses nothing up."""
    address = server.address()
    browser = visit()
    assert 200 == browser.get(address).status_code
    page = browser.get(address).text
    assert f'<input type="hidden" name="credential" value="{code_of(address)}">' in page
    assert '<form class="login" method="post" action="/login">' in page
    assert not browser.is_known()
    entered = browser.log_in(code_of(address))
    assert (303, "/") == (entered.status_code, entered.headers["location"])
    replayed = visit()
    assert [403, 403] == [each.log_in(code_of(address)).status_code for each in (replayed, browser)]
    assert (False, True) == (replayed.is_known(), browser.is_known())


def test_an_expired_code_is_refused(tables):
    now = [0.0]
    logins = Logins(tables, Addresses(port=1), clock=lambda: now[0])
    early, late = logins.code(), logins.code()
    assert logins.enter("another") is None
    now[0] = 599.0
    assert logins.enter(early) is not None
    now[0] = 601.0
    assert logins.enter(late) is None


def test_without_accounts_the_operating_systems_user_acts(server, visit):
    """As an admin whose name is only stated; the page of accounts says how to add one."""
    page = visit(code_of(server.address())).get("/accounts")
    assert 200 == page.status_code
    assert getpass.getuser() in page.text
    assert "grace-kp serve users add NAME --role admin" in page.text


def test_accounts_make_a_login_necessary(server, visit, add, accounts):
    """No code is printed, a code from before works no more, and the session of the operating system's user has ended."""
    code, spare = code_of(server.address()), code_of(server.address())
    before = visit(code)
    assert before.is_known()
    token = add("ana", Role.ADMIN)
    assert f"{server.url}/" == server.address()
    assert not before.is_known()
    assert 403 == visit().log_in(spare).status_code
    ana = visit(token)
    assert ana.is_known()
    accounts.remove("ana", actor=OPERATOR, force=True)
    assert not ana.is_known()
    assert visit(code_of(server.address())).is_known()


@pytest.mark.parametrize("headers", [{"X-Background": "1"}, {"Accept": "text/event-stream"}])
def test_what_a_page_reads_by_itself_does_not_prolong_a_session(server, visit, add, headers):
    """An unattended page would stay logged in for ever."""
    browser = visit(add("ana", Role.ADMIN))
    (session,) = server.logins.sessions._sessions.values()
    session.used -= 1_000
    before = session.used
    assert 200 == browser.get("/runs", headers=headers).status_code
    assert before == session.used
    assert 200 == browser.get("/runs").status_code
    assert before < session.used


@pytest.mark.parametrize("change", ["remove", "set_role", "rotate"])
def test_a_session_ends_with_a_change_of_its_account(visit, add, accounts, change):
    """At the next request, whatever the session did before; sessions of others go on."""
    add("root", Role.ADMIN)
    ana, ben = visit(add("ana", Role.APPROVER)), visit(add("ben", Role.VIEWER))
    assert ana.is_known()
    getattr(accounts, change)("ana", *([Role.VIEWER] if change == "set_role" else []), actor=OPERATOR)
    assert not ana.is_known()
    if change == "remove":  # added again, it is another account
        add("ana", Role.APPROVER)
        assert not ana.is_known()
    assert ben.is_known()


def test_a_session_cannot_be_chosen_from_outside(server, visit, add):
    """What a cookie holds before the login is not the session after it (fixation), and never becomes one."""
    token = add("ana", Role.ADMIN)
    browser = visit()
    name = server.logins.cookie
    browser.cookies.set(name, "chosen-by-an-attacker", domain="127.0.0.1")
    browser.log_in(token)
    assert "chosen-by-an-attacker" != browser.cookies[name]
    intruder = visit()
    intruder.cookies.set(name, "chosen-by-an-attacker")
    assert not intruder.is_known()


@pytest.mark.parametrize("ends", ["logout", "login"])
def test_a_session_ends_with_a_logout_or_another_login(server, visit, add, ends):
    """Not only in the browser: a copy of the cookie is worthless afterwards."""
    token = add("ana", Role.ADMIN)
    browser = visit(token)
    old = browser.cookies[server.logins.cookie]
    left = browser.post_form("/logout") if ends == "logout" else browser.log_in(token)
    assert (303, "/login" if ends == "logout" else "/") == (left.status_code, left.headers["location"])
    copy = visit()
    copy.cookies.set(server.logins.cookie, old)
    assert not copy.is_known()
    assert browser.is_known() is (ends == "login")


def test_a_program_has_no_session(visit, add):
    token = add("robot", Role.AGENT)
    assert 403 == visit().log_in(token).status_code
    assert 401 != visit(Authorization=f"Bearer {token}").get("/api/v1/runs").status_code


def test_the_api_takes_tokens_by_header_and_nothing_else(server, visit, add):
    """A wrong token is refused although the session of the cookie is valid, and the header means nothing to pages."""
    token = add("ana", Role.ADMIN)
    browser = visit(token)
    assert 200 == browser.get("/api/v1/runs").status_code
    for wrong in ("Bearer wrong", "Basic YTpi", "Bearer"):
        refused = browser.get("/api/v1/runs", headers={"Authorization": wrong})
        assert 401 == refused.status_code
        assert 'Bearer realm="grace_kp"' == refused.headers["www-authenticate"]
    assert not visit(Authorization=f"Bearer {token}").is_known()


@pytest.mark.parametrize(
    ("addresses", "root", "name", "secure", "path"),
    [
        (Addresses(port=8765), "", "grace_kp_8765", False, "/"),
        (Addresses(public_url="https://g.example"), "", "__Host-grace_kp", True, "/"),
        (Addresses(public_url="https://g.example"), "/grace", "__Secure-grace_kp", True, "/grace"),
    ],
)
def test_cookies_are_kept_to_their_place(tables, addresses, root, name, secure, path):
    """HttpOnly and SameSite always, Secure off loopback; the port is part of the name, because all ports of a host share cookies."""
    from starlette.responses import Response

    response = Response()
    Logins(tables, addresses, root=root).set_cookie(response, "secret")
    first, *rest = [part.strip() for part in response.headers["set-cookie"].split(";")]
    assert f"{name}=secret" == first
    assert {"HttpOnly", "SameSite=lax", f"Path={path}", "Max-Age=604800"} | ({"Secure"} if secure else set()) == set(
        rest
    )


def test_a_cookie_of_another_application_does_not_lock_anybody_out(server, visit, add):
    browser = visit(add("ana", Role.ADMIN))
    name, secret = server.logins.cookie, browser.cookies[server.logins.cookie]
    browser.cookies.clear()
    for header in (f"{name}=tossed; {name}={secret}", f"{name}={secret}; {name}=tossed", f"x; =; {name}={secret}"):
        assert 404 == browser.get("/no-such-page", headers={"Cookie": header}).status_code


HOUR = 3_600.0


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


def test_a_session_ends_without_requests(sessions, clock):
    """After twelve hours without one; each request begins them anew, and a look without use does not."""
    secret = sessions.begin("ana", "m")
    clock.advance(11 * HOUR)
    assert sessions.find(secret) is not None
    clock.advance(11 * HOUR)
    assert sessions.find(secret, touch=False) is not None
    clock.advance(2 * HOUR)
    assert sessions.find(secret, touch=False) is None


def test_a_session_ends_at_seven_days(sessions, clock):
    secret = sessions.begin("ana", "m")
    for _ in range(16):
        clock.advance(10 * HOUR)
        assert sessions.find(secret) is not None
    clock.advance(10 * HOUR)
    assert sessions.find(secret) is None


def test_the_number_of_sessions_is_bounded(sessions):
    """A further login of an owner ends the one used least recently, and never those of others."""
    other = sessions.begin("ben", "m")
    own = [sessions.begin("ana", "m") for _ in range(AT_MOST_EACH)]
    assert sessions.find(own[0]) is not None
    newest = sessions.begin("ana", "m")
    assert [False, True, True, True] == [
        sessions.find(secret) is not None for secret in (own[1], own[0], other, newest)
    ]
    for number in range(AT_MOST):
        sessions.begin(f"person {number}", "m")
    assert AT_MOST == sum(sessions.count().values())


@pytest.mark.parametrize("value", ["a-code-in-the-address", '"><script>alert(1)</script>', "a\u202eb", "x" * 5_000])
def test_with_accounts_a_token_is_asked_for(visit, add, value):
    """A code in the address is not taken over, and what the address holds is escaped."""
    add("ana", Role.ADMIN)
    page = visit().get("/login", params={"code": value, "next": f"/{value[:3]}"}).text
    assert "Your token" in page
    assert value not in page
    assert "\u202e" not in page


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("/runs?text=a%20b&status=x", "/runs?text=a%20b&status=x"), ("//evil.example", "/"), ("/\\evil.example", "/"), ("\\\\evil.example", "/"),
        ("https://evil.example", "/"), ("javascript:alert(1)", "/"), ("/\t/evil.example", "/"), ("/a\r\nX-Injected: 1", "/"), ("inbox", "/"),
        ("/" + "a" * 3_000, "/"), ("", "/"),
    ],
)  # fmt: skip
def test_a_login_leads_to_where_the_link_pointed(visit, add, to, expected):
    token = add("ana", Role.ADMIN)
    browser = visit()
    redirected = browser.get("/approvals/kp:approval:1?from=mail").headers["location"]
    assert 'name="next" value="/approvals/kp:approval:1?from=mail">' in browser.get(redirected).text
    entered = browser.log_in(token, next=to)
    assert (303, expected) == (entered.status_code, entered.headers["location"])
    assert "x-injected" not in entered.headers


def test_wrong_logins_are_slowed_down(visit, add, caplog):
    """After five, for waits that grow; what was tried is never logged. The right token is not refused, so that nobody can be locked out."""
    token = add("ana", Role.ADMIN)
    statuses = [visit().log_in(f"gkp_wrong{number}").status_code for number in range(FREE + 2)]
    assert [403] * FREE + [429] * 2 == statuses
    assert "4" == visit().log_in("gkp_wrong").headers["retry-after"]
    assert 303 == visit().log_in(token).status_code
    assert ["a login from testclient was refused"] * FREE == caplog.messages


def test_the_accounts_page_lists_them(visit, add):
    """Names, roles and what was refused. Who is logged in stands on every page, with a button that ends it."""
    add("Ben <b>", Role.VIEWER)
    browser = visit(add("ana", Role.ADMIN))
    browser.post("/logout", data={"csrf": "wrong"})
    page = browser.get("/accounts").text
    for part in ("Ben &lt;b&gt;", "<dt>wrong csrf</dt><dd>1</dd>", "<span>ana</span>", 'action="/logout"'):
        assert part in page
    assert "gkp_" not in page


def problems(tables):
    return [problem.message for problem in verify(tables, at=time.time()).problems]


def test_a_token_leads_to_its_account(accounts, tmp_path):
    token = accounts.add("ana", Role.APPROVER, actor=OPERATOR)
    found = accounts.of_token(token)
    assert ("ana", Role.APPROVER) == (found.name, found.role)
    for wrong in ("", "gkp_", token[:-1], token + "x", token.upper(), found.token_sha256, "é", "\ud800"):
        assert accounts.of_token(wrong) is None
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"approver" in stored
    assert token.removeprefix("gkp_").encode() not in stored


def test_spellings_of_a_name_are_one_account(accounts):
    accounts.add("Ana", Role.VIEWER, actor=OPERATOR)
    for spelling in ("ana", " ANA ", "ａｎａ"):
        with pytest.raises(GraceError, match="Ana has an account"):
            accounts.add(spelling, Role.ADMIN, actor=OPERATOR)
        assert "Ana" == accounts.get(spelling).name


@pytest.mark.parametrize("name", ["", "  ", "a" * 201, "a\nb", "a\x1b[31m", "a\u202eb", "\u200b"])
def test_a_name_that_cannot_be_shown_is_refused(accounts, name):
    with pytest.raises(ValueError, match="an account needs a name of 1 to 200 printable characters"):
        accounts.add(name, Role.VIEWER, actor=OPERATOR)


def test_a_new_token_ends_the_old_one(accounts):
    """At once, also for whoever reads the accounts in another process; a removed name is free for another account."""
    other = Accounts(accounts._tables)
    old = accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    assert other.of_token(old) is not None
    new = accounts.rotate("ANA", actor=OPERATOR)
    assert (None, "ana") == (other.of_token(old), other.of_token(new).name)
    accounts.remove("ana", actor=OPERATOR)
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    assert other.of_token(new) is None


@pytest.mark.parametrize("verb", ["rotate", "remove", "set_role"])
def test_an_unknown_name_is_refused(accounts, verb):
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    arguments = (Role.ADMIN,) if verb == "set_role" else ()
    with pytest.raises(GraceError, match="no account is named 'ben'; accounts: ana"):
        getattr(accounts, verb)("ben", *arguments, actor=OPERATOR)


def test_the_last_admin_stays(accounts):
    accounts.add("ana", Role.ADMIN, actor=OPERATOR)
    accounts.add("ben", Role.VIEWER, actor=OPERATOR)
    with pytest.raises(GraceError, match="ana is the last admin; --force"):
        accounts.remove("ana", actor=OPERATOR)
    with pytest.raises(GraceError, match="ana is the last admin; --force"):
        accounts.set_role("ana", Role.VIEWER, actor=OPERATOR)
    accounts.set_role("ben", Role.ADMIN, actor=OPERATOR)
    accounts.remove("ana", actor=OPERATOR)
    accounts.remove("ben", actor=OPERATOR, force=True)
    assert {} == dict(accounts.all())


def test_each_change_is_in_the_audit_trail(accounts, tables):
    """With its author, the role, and a mark of the token that is not its hash. The chain still holds."""
    accounts.add("Ana", Role.VIEWER, actor=OPERATOR)
    accounts.set_role("ana", Role.ADMIN, actor=OPERATOR)
    accounts.set_role("ana", Role.ADMIN, actor=OPERATOR)  # changes nothing
    accounts.rotate("ana", actor=OPERATOR)
    accounts.remove("ana", actor=OPERATOR, force=True)
    found = entries(tables, "account_changed")
    assert ["added", "role_changed", "rotated", "removed"] == [entry["facts"]["change"] for entry in found]
    assert ["viewer", "admin", "admin", "admin"] == [entry["facts"]["role"] for entry in found]
    assert {"ana"} == {entry["facts"]["account"] for entry in found}
    assert {"operator"} == {entry["actor"]["name"] for entry in found}
    marks = [entry["facts"].get("token") for entry in found]
    assert marks[0] == marks[1] != marks[2]
    assert [] == problems(tables)


def test_the_last_use_is_written(accounts):
    now = [1_000.0]
    accounts = Accounts(accounts._tables, lambda: now[0])
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    ana = accounts.get("ana")
    for now[0], expected in ((1_000.0, 1_000.0), (1_500.0, 1_000.0), (1_700.0, 1_700.0)):
        accounts.note_use(ana)
        assert {"ana": expected} == accounts.seen()
    accounts.remove("ana", actor=OPERATOR)
    accounts.note_use(ana)
    assert {} == accounts.seen()


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"name": "ana"}', b'{"name": "ben", "role": "admin"}'])
def test_an_account_that_cannot_be_read_is_an_error(accounts, tables, data):
    """It is not left out, which would open the pages to whoever needs no account."""
    with tables.transaction() as writes:
        writes.put_document(ACCOUNT, "ana", data)
    with pytest.raises(StoreError, match="the account 'ana' in the store cannot be read"):
        accounts.all()


def test_an_account_without_an_entry_is_found(accounts, tables):
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    data = json.loads(tables.document(ACCOUNT, "ana"))
    for change, expected in (
        ({"role": "admin"}, "the account ana is not as entry 1 has left it"),
        ({"token_sha256": "0" * 64}, "the account ana is not as entry 1 has left it"),
        (None, "the account ana was removed without an entry"),
    ):
        with tables.transaction() as writes:
            changed = None if change is None else json.dumps({**data, **change}).encode()
            writes.put_document(ACCOUNT, "ana", changed)
        assert [expected] == problems(tables)
    with tables.transaction() as writes:
        writes.put_document(ACCOUNT, "ana", json.dumps(data).encode())
        writes.put_document(ACCOUNT, "eve", json.dumps(data).encode())
    assert ["the account eve was added without an entry"] == problems(tables)


def test_a_removed_account_takes_its_consent_along(grace, accounts, add, visit):
    desk = grace.approvals.inbox.requests
    bo = visit(add("bo", Role.APPROVER))
    both = desk.file(asked(quorum=2, identity="authenticated"))
    one = desk.file(asked({"invoice": "R-2", "euros": 1}))
    assert 303 == bo.post_form(f"/approvals/{both.id}/approve", digest=both.digest).status_code
    review = bo.post(f"/approvals/{one.id}/grant", data=forms(bo.get(f"/approvals/{one.id}/grant").text)["grant"].submitted(kind0="any", kind1="any"))  # fmt: skip
    assert 303 == bo.post(f"/approvals/{one.id}/grant", data=forms(review.text)["grant"].submitted()).status_code
    assert "approved" == desk.file(asked({"invoice": "R-3", "euros": 9})).state

    cy = visit(add("cy", Role.APPROVER))
    accounts.rotate("bo", actor=OPERATOR)
    assert "approved" == desk.file(asked({"invoice": "R-4", "euros": 9})).state
    accounts.remove("bo", actor=OPERATOR)
    assert "pending" == desk.file(asked({"invoice": "R-5", "euros": 9})).state
    assert "the account of bo was removed" in cy.get("/approvals/standing").text
    assert 303 == cy.post_form(f"/approvals/{both.id}/approve", digest=both.digest).status_code
    assert "pending" == desk.get(both.id).state

    visit(add("bo", Role.APPROVER))
    assert "pending" == desk.file(asked({"invoice": "R-6", "euros": 9})).state


def test_the_token_of_forms_depends_on_the_session_and_the_name():
    secret = new_secret()
    assert csrf_of(secret) == csrf_of(secret)
    assert 4 == len({csrf_of(secret), csrf_of(new_secret()), csrf_of(secret, "ana"), csrf_of(secret, "ben")})


BASE = "http://localhost:9000"
ANA = Person(name="ana", role=Role.ADMIN)


@pytest.fixture
def mounted(grace):
    """Returns a browser at the pages, mounted below a path with these identities."""
    opened = []

    def browser(auth, **options):
        pages = app(grace, auth=auth, **options)
        opened.append(pages.state.site.catalog)
        host = Starlette(routes=[Mount("/grace", app=pages)])
        base = options.get("public_url") or BASE
        return TestClient(host, base_url=base, follow_redirects=False, headers={"Origin": base})

    yield browser
    for catalog in opened:
        catalog.close()


async def coroutine(request):
    return ANA


class Callable:
    async def __call__(self, request):
        return ANA


@pytest.mark.parametrize("auth", [lambda request: ANA, coroutine, Callable(), lambda request: coroutine(request)])
def test_the_host_says_who_it_is(mounted, auth):
    """By a function or a coroutine function. The host has the logins, and links begin with the path of the mount."""
    browser = mounted(auth)
    page = browser.get("/grace/no-such-page")
    assert 404 == page.status_code
    assert "<span>ana</span>" in page.text
    assert "/logout" not in page.text
    assert 'href="/grace/static/site.css"' in page.text
    assert [404, 404] == [browser.get(path).status_code for path in ("/grace/login", "/grace/accounts")]
    assert "/grace/inbox" == browser.get("/grace/").headers["location"]


def fails(request):
    raise RuntimeError("the session\nis broken")


@pytest.mark.parametrize(
    "auth",
    [
        lambda request: None,
        fails,
        lambda request: "ana",
        lambda request: SimpleUser("ana"),
        lambda request: Person(name="", role=Role.ADMIN),
        lambda request: Person(name="x" * 201, role=Role.ADMIN),
        lambda request: Person(name="ana", role="owner"),
    ],
)
def test_anything_else_refuses(mounted, auth, caplog):
    """Nobody, an exception, and what is no person. There is no login page to be sent to, and the log has the error in one line."""
    browser = mounted(auth)
    assert 401 == browser.get("/grace/inbox").status_code
    failed = "auth failed, and the request was refused: RuntimeError: the session is broken"
    assert (auth is fails) is (failed in caplog.messages)
    assert [401, 401] == [browser.get(path).status_code for path in ("/grace/api/v1/runs", "/grace/no-such-page")]
    assert 401 == browser.post("/grace/logout", data={"a": "b"}).status_code
    assert 200 == browser.get("/grace/static/site.css").status_code


def test_writes_need_origin_and_token(mounted):
    """The same in every process of the host, and another one for every person."""
    current = [ANA]
    browser, second = mounted(lambda request: current[0]), mounted(lambda request: current[0])
    csrf = TOKEN.search(browser.get("/grace/no-such-page").text)[1]
    assert csrf == TOKEN.search(second.get("/grace/no-such-page").text)[1]
    path, headers = "/grace/api/v1/runs/none/feedback", {"X-CSRF-Token": csrf}
    assert 422 == second.post(path, json={}, headers=headers).status_code
    assert 403 == second.post(path, json={}).status_code
    assert 403 == second.post(path, json={}, headers={**headers, "Origin": "http://localhost:9001"}).status_code
    current[0] = Person(name="ben", role=Role.ADMIN)
    assert 403 == second.post(path, json={}, headers=headers).status_code


def test_a_program_with_a_token_in_a_header_needs_neither(mounted):
    def auth(request):
        return ANA if request.headers.get("authorization") == "Bearer host-token" else None

    browser = mounted(auth)
    del browser.headers["origin"]
    browser.headers["authorization"] = "Bearer host-token"
    assert 422 == browser.post("/grace/api/v1/runs/none/feedback", json={}).status_code
    browser.app.routes[0].app.router.routes.insert(
        0, route("/write", lambda request: None, Right.SEE, methods=["POST"])
    )
    assert 403 == browser.post("/grace/write", data={"a": "b"}).status_code


def test_only_names_of_this_machine_unless_the_public_url_is_stated(mounted):
    browser = mounted(lambda request: ANA)
    assert 404 == browser.get("/grace/none", headers={"Host": "127.0.0.1:1"}).status_code
    refused = browser.get("/grace/none", headers={"Host": "shop.example"})
    assert 421 == refused.status_code
    assert (
        "does not answer to shop.example. Open it at the address of the application, or pass another one to app() as public_url=."
        in refused.text
    )
    public = mounted(lambda request: ANA, public_url="https://shop.example")
    assert 404 == public.get("/grace/none").status_code
    assert 421 == public.get("/grace/none", headers={"Host": "localhost:9000"}).status_code


VIEWER, BEN = Person(name="ana", role=Role.VIEWER), Person(name="ben", role=Role.ADMIN)


@pytest.fixture
def refusals(tables, clock):
    return Refusals(tables, clock)


def test_an_attempt_is_recorded(refusals, tables):
    assert refusals.record(VIEWER, path="/approvals/x\n/approve", reason="right", approval="x")
    (entry,) = entries(tables, "refused")
    assert "ana" == entry["actor"]["name"]
    assert "web" == entry["actor"]["channel"]
    assert {"path": "/approvals/x /approve", "reason": "right", "role": "viewer"} == entry["facts"]
    assert verify(tables, at=time.time()).ok


def test_all_people_together_are_bounded(refusals, tables, clock):
    for number in range(EACH_DAY + 5):
        refusals.record(Person(name=f"person {number}", role=Role.VIEWER), path="/", reason="csrf")
    assert EACH_DAY == len(entries(tables, "refused"))
    clock.advance(86_400)
    assert refusals.record(VIEWER, path="/", reason="csrf")


def test_nobody_uses_up_the_entries_of_others(refusals, tables, clock):
    """A share in a day for each person; the next entry states how many were left out."""
    for _ in range(EACH_DAY_PER_PERSON + 5):
        refusals.record(VIEWER, path="/", reason="csrf")
    assert EACH_DAY_PER_PERSON == len(entries(tables, "refused"))
    assert refusals.record(BEN, path="/", reason="csrf")
    clock.advance(86_400)
    assert refusals.record(VIEWER, path="/", reason="csrf")
    assert 5 == entries(tables, "refused")[-1]["facts"]["not_recorded"]
    assert {"ana": EACH_DAY_PER_PERSON + 6, "ben": 1} == refusals.counts()


def test_a_store_that_cannot_be_written_refuses_all_the_same(clock, caplog):
    from grace_kp.errors import StoreError

    def transaction():
        raise StoreError("locked\nby others")

    refusals = Refusals(type("Tables", (), {"transaction": staticmethod(transaction)})(), clock)
    assert not refusals.record(VIEWER, path="/", reason="csrf")
    assert ["a refused attempt of ana could not be recorded: locked by others"] == caplog.messages


@pytest.fixture
def attempts(clock):
    return Attempts(clock)


def test_kinds_are_counted(attempts):
    attempts.count("no_login")
    attempts.count("foreign_host")
    attempts.record_failure("no_login", "192.0.2.1")
    assert {"foreign_host": 1, "no_login": 2} == attempts.counts()
    attempts.count("sent_to_login")
    assert {"foreign_host": 1, "no_login": 2, "sent_to_login": 1} == attempts.counts()
    assert {"foreign_host": 1, "no_login": 2} == attempts.refusals()


def test_waits_grow_with_each_failure(attempts):
    """The first five cost nothing; then they double up to five minutes. Another address does not wait."""
    waits = [attempts.record_failure("x", "192.0.2.1") for _ in range(20)]
    assert [0.0] * FREE == waits[:FREE]
    assert [1.0, 2.0, 4.0, 8.0] == waits[FREE : FREE + 4]
    assert LONGEST_WAIT == waits[-1]
    assert 0.0 == attempts.record_failure("x", "192.0.2.2")


def test_a_success_and_an_hour_forget(attempts, clock):
    for _ in range(FREE):
        attempts.record_failure("x", "192.0.2.1")
        attempts.record_failure("x", "192.0.2.2")
    attempts.forget_failures("192.0.2.1")
    assert 0.0 == attempts.record_failure("x", "192.0.2.1")
    clock.advance(3_601)
    assert 0.0 == attempts.record_failure("x", "192.0.2.2")


def test_many_addresses_together_are_slowed_down(attempts, clock):
    """Beyond a number in a minute every further failure waits, from whichever address; the next minute is a new one."""
    waits = [attempts.record_failure("x", f"10.0.{number // 256}.{number % 256}") for number in range(EVERYWHERE + 1)]
    assert [0.0] * EVERYWHERE == waits[:-1]
    assert 60.0 == waits[-1]
    clock.advance(60)
    assert 0.0 == attempts.record_failure("x", "192.0.2.1")


def test_memory_is_bounded(attempts):
    for number in range(AT_MOST_ADDRESSES + 10):
        attempts.record_failure("x", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert AT_MOST_ADDRESSES == len(attempts._failures)
