"""Logins of `grace-kp serve`: codes, tokens, sessions, cookies and their pages."""

from __future__ import annotations

import getpass

import pytest

from grace_kp.web import Role
from grace_kp.web.security import Addresses, Logins
from grace_kp.web.security._logins import AT_MOST, AT_MOST_EACH, Sessions
from grace_kp.web.security._refusals import FREE
from tests.web.security.conftest import OPERATOR, code_of


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
    assert browser.is_known()


def test_a_replayed_code_is_refused(server, visit):
    """Also in the browser that has used it."""
    code = code_of(server.address())
    first, second = visit(code), visit()
    assert 403 == second.log_in(code).status_code
    assert not second.is_known()
    assert 403 == first.log_in(code).status_code
    assert first.is_known()


def test_an_expired_code_is_refused(tables):
    """Ten minutes after it was printed."""
    now = [0.0]
    logins = Logins(tables, Addresses(port=1), clock=lambda: now[0])
    early, late = logins.code(), logins.code()
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
    assert ben.is_known()


def test_a_new_account_of_an_old_name_does_not_revive_sessions(visit, add, accounts):
    """Removed and added again, it is another account."""
    add("root", Role.ADMIN)
    ana = visit(add("ana", Role.VIEWER))
    accounts.remove("ana", actor=OPERATOR)
    add("ana", Role.VIEWER)
    assert not ana.is_known()


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
    """Its token is for the API only."""
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
    """Other ports of this host can set a cookie of our name beside ours."""
    browser = visit(add("ana", Role.ADMIN))
    name, secret = server.logins.cookie, browser.cookies[server.logins.cookie]
    browser.cookies.clear()
    for header in (f"{name}=tossed; {name}={secret}", f"{name}={secret}; {name}=tossed", f"x; =; {name}={secret}"):
        assert 404 == browser.get("/no-such-page", headers={"Cookie": header}).status_code


HOUR = 3_600.0


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


def test_each_login_begins_a_session_of_its_own(sessions):
    """Two logins of one owner have different secrets, and ending one leaves the other."""
    first, second = sessions.begin("ana", "m"), sessions.begin("ana", "m")
    assert first != second
    sessions.end(first)
    assert sessions.find(first) is None
    assert "ana" == sessions.find(second).owner
    assert {"ana": 1} == sessions.count()


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
    """However often it is used."""
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


def test_with_accounts_a_token_is_asked_for(visit, add):
    """A code in the address is not taken over."""
    add("ana", Role.ADMIN)
    page = visit().get("/login?code=a-code-in-the-address").text
    assert "Your token" in page
    assert "a-code-in-the-address" not in page


@pytest.mark.parametrize("value", ['"><script>alert(1)</script>', "a\u202eb", "x" * 5_000])
def test_what_the_address_holds_is_shown_escaped(visit, value):
    """Also what somebody else has put there."""
    page = visit().get("/login", params={"code": value, "next": f"/{value}"}).text
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "x" * 2_001 not in page


@pytest.mark.parametrize(
    ("to", "expected"),
    [("/runs?status=x", "/runs?status=x"), ("//evil.example", "/"), ("/a\r\nX-Injected: 1", "/"), ("", "/")],
)
def test_a_login_leads_to_where_the_link_pointed(visit, add, to, expected):
    """Inside of this application only, and it sets no other header."""
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
