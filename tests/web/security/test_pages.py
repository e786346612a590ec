"""The pages of logins and accounts."""

from __future__ import annotations

import pytest

from grace_kp.web import Role
from grace_kp.web.security._attempts import FREE
from tests.web.security.conftest import code_of


def test_the_printed_address_shows_a_button(server, visit):
    """Its form holds the code, so that the page works without script."""
    address = server.address()
    page = visit().get(address).text
    assert f'<input type="hidden" name="credential" value="{code_of(address)}">' in page
    assert '<form class="login" method="post" action="/login">' in page
    assert "<script>" not in page


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
    [
        ("/approvals/kp:approval:1", "/approvals/kp:approval:1"),
        ("/runs?status=x", "/runs?status=x"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nX-Injected: 1", "/"),
        ("", "/"),
    ],
)
def test_a_login_leads_to_where_the_link_pointed(visit, add, to, expected):
    """Inside of this application only, and it sets no other header."""
    token = add("ana", Role.ADMIN)
    entered = visit().log_in(token, next=to)
    assert (303, expected) == (entered.status_code, entered.headers["location"])
    assert "x-injected" not in entered.headers


def test_a_link_of_a_notification_survives_the_login(visit, add):
    """Who opens it without a session lands on the request after the login."""
    token = add("ana", Role.ADMIN)
    browser = visit()
    redirected = browser.get("/approvals/kp:approval:1?from=mail")
    page = browser.get(redirected.headers["location"])
    assert '<input type="hidden" name="next" value="/approvals/kp:approval:1?from=mail">' in page.text
    assert (
        "/approvals/kp:approval:1?from=mail"
        == browser.log_in(token, next="/approvals/kp:approval:1?from=mail").headers["location"]
    )


def test_wrong_logins_are_slowed_down(visit, add, caplog):
    """After five, for waits that grow; what was tried is never logged. The right token is not refused, so that nobody can be locked out."""
    token = add("ana", Role.ADMIN)
    statuses = [visit().log_in(f"gkp_wrong{number}").status_code for number in range(FREE + 2)]
    assert [403] * FREE + [429] * 2 == statuses
    assert "4" == visit().log_in("gkp_wrong").headers["retry-after"]
    assert 303 == visit().log_in(token).status_code
    assert ["a login from testclient was refused"] * FREE == caplog.messages


def test_the_accounts_page_lists_them(visit, add):
    """Names, roles and what was refused, for admins only."""
    add("Ben <b>", Role.VIEWER)
    browser = visit(add("ana", Role.ADMIN))
    browser.post("/logout", data={"csrf": "wrong"})
    page = browser.get("/accounts").text
    assert "Ben &lt;b&gt;" in page
    assert "<dt>wrong csrf</dt><dd>1</dd>" in page
    assert "gkp_" not in page


def test_without_accounts_the_page_says_how_to_add_one(server, visit):
    """By the command."""
    page = visit(code_of(server.address())).get("/accounts").text
    assert "There are no accounts" in page
    assert "grace-kp serve users add NAME --role admin" in page


def test_who_is_logged_in_stands_on_every_page(visit, add):
    """With the role, and a button that ends it."""
    page = visit(add("ana", Role.ADMIN)).get("/accounts").text
    assert "<span>ana</span>" in page
    assert 'action="/logout"' in page
