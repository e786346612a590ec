"""Logins of `grace-kp serve`: one-time codes, tokens, and sessions that end when an account changes."""

from __future__ import annotations

import getpass

import pytest

from grace_kp.web import Role
from grace_kp.web.security import Addresses, Logins
from tests.web.security.conftest import OPERATOR, code_of


def test_a_code_is_exchanged_for_a_session(server, visit):
    """By POST. Looking at the printed address, as previews of links do, uses nothing up."""
    address = server.address()
    browser = visit()
    assert 200 == browser.get(address).status_code
    assert 200 == browser.get(address).status_code
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
    """As an admin whose name is only stated."""
    page = visit(code_of(server.address())).get("/accounts")
    assert 200 == page.status_code
    assert getpass.getuser() in page.text


def test_accounts_make_a_login_necessary(server, visit, add):
    """No code is printed, a code from before works no more, and the session of the operating system's user has ended."""
    code, spare = code_of(server.address()), code_of(server.address())
    before = visit(code)
    assert before.is_known()
    token = add("ana", Role.ADMIN)
    assert f"{server.url}/" == server.address()
    assert not before.is_known()
    assert 403 == visit().log_in(spare).status_code
    assert visit(token).is_known()


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


def test_a_removed_last_account_opens_nothing(server, visit, add, accounts):
    """Its session has ended, and a new code is needed."""
    browser = visit(add("ana", Role.ADMIN))
    accounts.remove("ana", actor=OPERATOR, force=True)
    assert not browser.is_known()
    assert visit(code_of(server.address())).is_known()


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


def test_a_second_login_ends_the_first_session(server, visit, add):
    """Of the same browser: its old secret works no more."""
    token = add("ana", Role.ADMIN)
    browser = visit(token)
    old = browser.cookies[server.logins.cookie]
    browser.log_in(token)
    copy = visit()
    copy.cookies.set(server.logins.cookie, old)
    assert not copy.is_known()
    assert browser.is_known()


def test_logging_out_ends_the_session(server, visit, add):
    """Not only in the browser: a copy of the cookie is worthless afterwards."""
    browser = visit(add("ana", Role.ADMIN))
    old = browser.cookies[server.logins.cookie]
    left = browser.post_form("/logout")
    assert (303, "/login") == (left.status_code, left.headers["location"])
    copy = visit()
    copy.cookies.set(server.logins.cookie, old)
    assert not copy.is_known()


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
