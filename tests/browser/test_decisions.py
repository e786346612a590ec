"""Every verb, in every way that people use pages. The store says afterwards what was decided, by whom and with which words."""

from __future__ import annotations

import datetime as dt
import getpass

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WAYS

by_all_ways = pytest.mark.parametrize("way", WAYS, ids=str)
WORDS = "確認しました, thanks"


@by_all_ways
def test_a_request_is_approved(visit, shop, way):
    """With a note. The page then says what was decided, and offers no further approval."""
    approval = shop.ask()
    hand = way.open(visit, f"/approvals/{approval.id}")
    hand.write(hand.page.get_by_label("Note (optional)").first, WORDS)
    hand.follow(hand.page.get_by_role("button", name="Approve", exact=True))
    expect(hand.page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    expect(hand.page.get_by_role("main")).to_contain_text(WORDS)
    decided(shop, approval, "approved", WORDS)


@pytest.mark.parametrize(
    ("way", "summary", "button", "state"),
    [
        (WAYS[0], "Reject…", "Reject", "rejected"),
        (WAYS[1], "Answer with words…", "Send the answer", "responded"),
        (WAYS[1], "Skip…", "Skip", "skipped"),
        (WAYS[2], "Send back…", "Send back for a retry", "retried"),
        (WAYS[3], "Withdraw…", "Withdraw", "cancelled"),
    ],
    ids=str,
)
def test_a_request_is_refused(visit, shop, way, summary, button, state):
    """With a reason, by each verb that does not let the action run as it was asked."""
    approval = shop.ask()
    hand = way.open(visit, f"/approvals/{approval.id}")
    verb = hand.page.locator("details", has=hand.page.get_by_text(summary, exact=True))
    hand.press(verb.locator("summary"))
    hand.write(verb.get_by_role("textbox"), WORDS)
    hand.follow(verb.get_by_role("button", name=button, exact=True))
    expect(hand.page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    expect(hand.page.get_by_role("main")).to_contain_text(WORDS)
    decided(shop, approval, state, WORDS)


@by_all_ways
def test_arguments_are_edited(visit, shop, way):
    """By a form with the types of the action; old and new stand side by side before anything is decided."""
    approval = shop.ask()
    hand = way.open(visit, f"/approvals/{approval.id}")
    page = hand.page
    hand.press(page.locator("summary", has_text="Edit the arguments"))
    form = page.locator("form", has=page.get_by_role("button", name="Review the changes"))
    hand.write(form.get_by_label("euros"), "20")
    hand.choose(form.get_by_label("channel"), "card")
    hand.write(form.get_by_label("message"), WORDS)
    form.get_by_label("due").fill("2026-04-05")
    hand.follow(form.get_by_role("button", name="Review the changes"))
    expect(page.locator(".difference", has_text="40")).to_contain_text("20")
    assert "pending" == shop.read(approval).state
    hand.follow(page.get_by_role("button", name="Approve with these values"))
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    after = {"euros": 20, "channel": "card", "message": WORDS, "due": dt.date(2026, 4, 5), "urgent": False}
    assert {**approval.arguments, **after} == dict(shop.read(approval).arguments)
    decided(shop, approval, "edited", "")


@by_all_ways
def test_several_requests_are_decided_at_once(visit, shop, way):
    """Selected in the inbox; each is shown in full before, and each is named with what came of it."""
    action = shop.action(f"several_{way}".replace(" ", "_"))
    asked = [shop.ask(action=action, customer=f"customer {number}") for number in range(3)]
    hand = way.open(visit, f"/inbox?action={asked[0].action}")
    page = hand.page
    for approval in asked[:2]:
        hand.tick(page.get_by_role("checkbox", name=approval.id))
    hand.follow(page.get_by_role("button", name="Decide selected…"))
    expect(page.get_by_role("main")).to_contain_text("customer 0")
    expect(page.get_by_role("main")).to_contain_text("customer 1")
    assert ["pending"] * 3 == [shop.read(approval).state for approval in asked]
    hand.write(page.get_by_role("textbox"), WORDS)
    hand.follow(page.get_by_role("button", name="Reject all"))
    expect(page.locator("[data-row]")).to_have_count(2)
    for approval in asked[:2]:
        expect(page.locator(f"a[href$='{approval.id}']")).to_be_visible()
        decided(shop, approval, "rejected", WORDS)
    assert "pending" == shop.read(asked[2]).state


def decided(shop, approval, state, note):
    """The decision as the store has it: by the operating system's user, whose name nobody has checked, on the web."""
    after = shop.read(approval)
    assert (state, note) == (after.state, after.decision.note)
    actor = after.decision.actor
    assert (getpass.getuser(), "web", False) == (actor.name, actor.channel, actor.authenticated)
