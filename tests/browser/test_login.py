"""Logging in as a person does: with the printed address, with a token, and what is shown to whom is not logged in."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visits
from tests.browser.keys import arrival, follow
from tests.browser.serving import Server


@pytest.fixture
def own(tmp_path, _homes):
    """A server of the test's own, that is not started yet."""
    served = Server(tmp_path)
    served.fill()
    yield served
    if served.process is not None:
        served.kill()


@pytest.fixture
def strangers(browser, own):
    """Pages of people who are not logged in."""
    visits = Visits(browser, own.origin)
    yield visits
    visits.close()
    assert [] == visits.complaints


@pytest.mark.parametrize("script", [True, False])
def test_the_printed_address_opens_the_pages_once(own, strangers, script):
    """Opening it takes a button, so that a preview of the link in a chat does not use the code up. A second person cannot use it."""
    path = own.start().removeprefix(own.origin)
    first = strangers(path, script=script)
    first.reload()
    follow(first.get_by_role("button", name="Open the pages"))
    expect(first).to_have_url(f"{own.origin}/inbox")
    strangers.expect_message("403")
    second = strangers(path, script=script)
    follow(second.get_by_role("button", name="Open the pages"))
    expect(second.get_by_role("alert")).to_contain_text("not valid")


def test_a_link_is_followed_after_the_login(own, strangers):
    """Who opens a link to a run first logs in, and then sees that run."""
    token = own.add_user("ana", "approver")
    own.start()
    page = strangers("/runs?status=failed")
    page.get_by_label("Your token").fill(token)
    with arrival(page):
        page.keyboard.press("Enter")
    expect(page).to_have_url(f"{own.origin}/runs?status=failed")
    expect(page.get_by_role("banner")).to_contain_text("ana")


def test_who_logs_out_is_out(own, strangers):
    """Also by the back button and in another tab."""
    token = own.add_user("ana", "approver")
    own.start()
    page = strangers("/figures")
    page.get_by_label("Your token").fill(token)
    with arrival(page):
        page.keyboard.press("Enter")
    expect(page).to_have_url(f"{own.origin}/figures")
    other = page.context.new_page()
    other.goto(f"{own.origin}/runs")
    follow(page.get_by_role("button", name="Log out"))
    expect(page).to_have_url(f"{own.origin}/login")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    other.reload()
    expect(other.get_by_role("heading", level=1)).to_have_text("Log in")


def test_a_viewer_is_offered_no_decision(own, strangers):
    """The role of an account decides what its pages offer."""
    token = own.add_user("vic", "viewer")
    own.start()
    page = strangers("/runs")
    page.get_by_label("Your token").fill(token)
    with arrival(page):
        page.keyboard.press("Enter")
    expect(page.get_by_role("banner")).to_contain_text("viewer")
    expect(page.get_by_role("link", name="Accounts")).to_have_count(0)
