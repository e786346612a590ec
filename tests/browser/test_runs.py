"""Runs in a browser: filters, search, comparing and labels; by mouse, by keyboard, on a phone, with and without script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import arrival, follow
from tests.browser.shop import JAPANESE

WAYS = [(1400, True), (360, False)]


@pytest.mark.parametrize(("width", "script"), WAYS)
def test_filters_stand_in_the_address(visit, width, script):
    """So that a list can be kept and sent to somebody; the back button leads to the list before."""
    page = visit("/runs?session=s-1", width=width, script=script)
    found = page.get_by_role("link", name=JAPANESE)
    expect(found).to_have_count(2)
    page.get_by_label("agent").select_option("desk")
    follow(page.get_by_role("button", name="Filter"))
    expect(page).to_have_url(re.compile(r"agent=desk"))
    expect(found).to_have_count(1)
    follow(page.get_by_role("link", name="agent desk"))
    expect(found).to_have_count(2)
    page.go_back()
    expect(found).to_have_count(1)


@pytest.mark.parametrize("script", [True, False])
def test_the_steps_of_a_run_are_searched(visit, shop, script):
    trace = recorded(shop, "Search in me", "needle in the hay", *["hay"] * 30)
    page = visit(f"/runs/{trace.id}", script=script)
    page.get_by_role("searchbox").fill("needle")
    page.get_by_role("button", name="Search").click()  # with scripts, the search stays on the page
    expect(page.get_by_role("status")).to_contain_text("1")
    expect(page.get_by_text("needle in the hay").first).to_be_visible()


def recorded(shop, objective, *thoughts):
    """A run that is in the store."""
    with shop.grace.collect() as traces, shop.grace.run(objective):
        for thought in thoughts or (f"thinking about {objective}",):
            shop.grace.thought(thought)
    shop.grace.flush()
    return traces[0]


def test_keys_move_through_the_list(visit):
    """To rows, into them, and to the search. A page lists the keys that work on it."""
    page = visit("/runs?session=s-1&agent=desk")
    found = page.locator("tbody tr", has=page.get_by_role("link", name=JAPANESE))
    name = found.get_by_role("checkbox").get_attribute("value")
    page.keyboard.press("/")
    expect(page.get_by_label("contains")).to_be_focused()
    page.get_by_label("contains").blur()
    page.keyboard.press("?")
    expect(page.locator("dialog kbd")).to_have_text(["j, k", "Enter, o", "x", "/", "?"])
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(found).to_have_class(re.compile("here"))
    page.keyboard.press("x")
    expect(found.get_by_role("checkbox")).to_be_checked()
    with arrival(page):
        page.keyboard.press("o")
    expect(page).to_have_url(re.compile(re.escape(name.removeprefix("kp:trace:"))))
    page.goto(page.url.partition("/runs")[0] + "/figures")
    page.keyboard.press("?")
    expect(page.locator("dialog kbd")).to_have_text(["?"])
