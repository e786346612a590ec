"""Every verb, in every way that people use pages. The store says afterwards what was decided, by whom and with which words."""

from __future__ import annotations

import datetime as dt
import getpass

import pytest
from playwright.sync_api import expect

from tests.browser.keys import WAYS
from tests.browser.serving import PATIENCE, until

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


@by_all_ways
@pytest.mark.parametrize(
    ("summary", "button", "state"),
    [
        ("Reject…", "Reject", "rejected"),
        ("Answer with words…", "Send the answer", "responded"),
        ("Skip…", "Skip", "skipped"),
        ("Send back…", "Send back for a retry", "retried"),
        ("Withdraw…", "Withdraw", "cancelled"),
    ],
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
@pytest.mark.parametrize(("answer", "state"), [("It has happened", "done"), ("It has not happened", "not_done")])
def test_an_unknown_outcome_is_settled(visit, shop, start, way, answer, state):
    """A person looks at the receiving service and says whether the action happened."""
    approval = shop.ask(action=shop.erase, customer=f"{way} {answer}")
    shop.grace.approvals.approve(approval.id, by="ana")
    start("crash", f"{way} {answer}").wait(PATIENCE)
    hand = way.open(visit, "/inbox/attention")
    hand.follow(hand.page.locator(f"a[href$='{approval.id}']"))
    hand.pick(hand.page.get_by_label(answer, exact=True))
    hand.write(hand.page.get_by_label("How you know"), WORDS)
    hand.follow(hand.page.get_by_role("button", name="State the outcome"))
    expect(hand.page.get_by_role("button", name="State the outcome")).to_have_count(0)
    settled = shop.read(approval)
    assert (state, WORDS) == (settled.state, settled.outcome.note)


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


@by_all_ways
def test_calls_are_approved_in_advance(visit, shop, way):
    """From a request like them; the next call runs without asking, until somebody ends it."""
    action = shop.action(f"standing_{way}".replace(" ", "_"))
    approval = shop.ask(action=action, customer="first")
    hand = way.open(visit, f"/approvals/{approval.id}")
    page = hand.page
    hand.follow(page.get_by_role("link", name="Approve such calls in advance"))
    hand.choose(page.get_by_label("may be"), "any value")
    hand.write(page.get_by_label("valid for"), "8h")
    hand.write(page.get_by_label("at most this many times"), "3")
    hand.follow(page.get_by_role("button", name="Review…"))
    assert [] == [each for each in shop.grace.approvals.standing() if each.action == approval.action]
    hand.follow(page.get_by_role("button", name="Grant it"))
    expect(page.get_by_role("article").first).to_be_visible()
    (standing,) = [each for each in shop.grace.approvals.standing() if each.action == approval.action]
    assert "second" == action("second")
    card = page.get_by_role("article").filter(has_text=standing.id)
    hand.press(card.locator("summary"))
    hand.write(card.get_by_role("textbox"), WORDS)
    hand.follow(card.get_by_role("button", name="End it now"))
    expect(card).to_contain_text(WORDS)
    assert [] == [each for each in shop.grace.approvals.standing() if each.action == approval.action]


@by_all_ways
def test_the_audit_trail_is_verified(visit, shop, way):
    """The page says that no problem was found, and shows the entries of a decision."""
    approval = shop.ask()
    shop.grace.approvals.reject(approval.id, by="ana")
    hand = way.open(visit, f"/approvals/audit?approval={approval.id}")
    expect(hand.page.get_by_role("main")).to_contain_text("rejected")
    hand.follow(hand.page.get_by_role("button", name="Verify the chain"))
    main = hand.page.get_by_role("main")
    if not way.script:  # with script, the page follows the progress by itself
        expect(main.get_by_role("status").or_(main.get_by_text("no problem"))).to_be_visible()
        until(lambda: "no problem" in main.inner_text() or not hand.page.reload())
    expect(main).to_contain_text("no problem")


def decided(shop, approval, state, note):
    """The decision as the store has it: by the operating system's user, whose name nobody has checked, on the web."""
    after = shop.read(approval)
    assert (state, note) == (after.state, after.decision.note)
    actor = after.decision.actor
    assert (getpass.getuser(), "web", False) == (actor.name, actor.channel, actor.authenticated)
