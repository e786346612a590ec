"""Every verb, in every way that people use pages, and what happens elsewhere while a page is open: other people, their logins, and a server that goes away."""

from __future__ import annotations

import datetime as dt
import getpass

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WAYS, Visits, arrival, follow
from tests.browser.serving import Server

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


BOXES = """() => [...document.querySelectorAll('main button, main summary, main textarea, main input:not([type=hidden]), main h1')]
    .map(each => { const box = each.getBoundingClientRect(); return [each.tagName, box.x, box.y, box.width, box.height]; })"""


def live(page):
    """The line that tells news."""
    return page.locator("[data-live]")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (360, "dark")])
def test_news_move_nothing_and_lose_no_words(visit, shop, width, scheme):
    """A request arrives and this one is decided elsewhere, while a person types: the controls stay where they are, and the words too."""
    approval = shop.ask()
    page = visit(f"/approvals/{approval.id}", width=width, scheme=scheme)
    page.locator("summary", has_text="Reject…").click()
    page.get_by_label("Reason, for the agent").fill("half a sent")
    before = page.evaluate(BOXES)
    shop.ask("Another one")
    shop.grace.approvals.respond(approval.id, "ask for the receipt", by="bo")
    expect(live(page)).to_contain_text("bo")
    assert before == page.evaluate(BOXES)
    assert "half a sent" == page.get_by_label("Reason, for the agent").input_value()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_disabled()


def test_the_distance_to_the_deadline_moves_nothing(visit, shop):
    """It changes every second, and the button must not leave the pointer, however wide the page is."""
    page = visit(f"/approvals/{shop.ask().id}")
    moved = []
    for width in range(320, 1_000, 5):
        page.set_viewport_size({"width": width, "height": 900})
        places = page.evaluate("""() => ["in 10 m", "in 9 m 59 s", "in 59 s", "in 9 s", "9 m 59 s ago", "in 365 d"].map(words => {
            document.querySelector(".deadline .distance").textContent = words;
            return document.querySelector("form.approve button").getBoundingClientRect().top;
        })""")
        if len(set(places)) > 1:
            moved.append(width)
    assert [] == moved


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (360, "light")])
def test_news_move_no_row_of_the_inbox(visit, shop, width, scheme):
    """New requests are counted, and shown when the person asks for them; what was ticked stays ticked."""
    first = shop.ask()
    page = visit("/inbox?action=refund", width=width, scheme=scheme)
    page.get_by_role("checkbox", name=first.id).check()
    before = page.evaluate(BOXES)
    second = shop.ask("A second one")
    expect(live(page)).to_contain_text("1 new request")
    assert before == page.evaluate(BOXES)
    expect(page.get_by_role("checkbox", name=first.id)).to_be_checked()
    follow(live(page).get_by_role("link", name="Show"))
    expect(page.get_by_role("checkbox", name=second.id)).to_be_visible()


def test_the_back_button_leads_to_what_is_true_now(visit, shop):
    approval = shop.ask()
    page = visit("/inbox?action=refund")
    page.goto(visit.origin + f"/approvals/{approval.id}")
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("main")).to_contain_text("approved")
    page.go_back()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    page.reload()
    assert ("approved", 2) == (shop.read(approval).state, shop.read(approval).revision)


def test_a_page_that_is_restored_as_it_was_left_asks_for_news(visit, shop):
    """Browsers keep pages when somebody follows a link, and show them again without loading them."""
    approval = shop.ask()
    page = visit(f"/approvals/{approval.id}")
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    shop.grace.approvals.reject(approval.id, by="bo")
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(live(page)).to_contain_text("rejected")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_disabled()


@pytest.mark.parametrize("field", ["Note (optional)", "Reason, for the agent", "Instructions for the agent"])
def test_enter_in_a_text_decides_nothing(visit, shop, field):
    approval = shop.ask()
    page = visit(f"/approvals/{approval.id}")
    page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
    target = page.get_by_label(field).first
    target.click()
    page.keyboard.type("one")
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    assert "one\ntwo" == target.input_value()
    assert "pending" == shop.read(approval).state


def test_no_key_decides(visit, shop):
    """Keys move, open and focus: whoever holds a key down by accident approves nothing."""
    approval = shop.ask()
    page = visit(f"/approvals/{approval.id}")
    for key in "abcdefghijklmnopqrstuvwxyz/.-0123456789":
        page.keyboard.press(key)
        page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    assert page.url == f"{visit.origin}/approvals/{approval.id}"
    assert "pending" == shop.read(approval).state


@pytest.fixture
def team(tmp_path, browser):
    """A server with accounts, and pages for people who are not logged in yet."""
    served = Server(tmp_path)
    served.fill()
    visits = Visits(browser, served.origin)
    yield served, visits
    visits.close()
    served.kill()
    assert [] == visits.complaints


def logged_in(served, visits, token, path, **window):
    page = visits(path, **window)
    page.get_by_label("Your token").fill(token)
    with arrival(page):
        page.keyboard.press("Enter")
    page.wait_for_url(served.origin + path)
    return page


def test_of_two_people_one_is_first(team):
    served, visits = team
    tokens = {name: served.add_user(name, "approver") for name in ("ana", "bo")}
    served.start()
    with_shop = served.shop()
    path = f"/approvals/{(approval := with_shop.ask()).id}"
    ana, bo = (logged_in(served, visits, token, path, script=name == "ana") for name, token in tokens.items())
    ana.locator("summary", has_text="Reject…").click()
    ana.get_by_label("Reason, for the agent").fill("paid last week")
    follow(ana.get_by_role("button", name="Reject", exact=True))
    expect(ana.get_by_role("main")).to_contain_text("paid last week")
    visits.expect_message("409")
    follow(bo.get_by_role("button", name="Approve", exact=True))
    expect(bo.get_by_role("alert")).to_contain_text("ana")
    after = with_shop.read(approval)
    assert ("rejected", "ana", True) == (after.state, after.decision.actor.name, after.decision.actor.authenticated)
    with_shop.grace.close()


def test_the_server_goes_away_and_comes_back(team):
    """The page says so, keeps what was typed, and works again after the next login."""
    served, visits = team
    token = served.add_user("ana", "approver")
    served.start()
    with_shop = served.shop()
    approval = with_shop.ask()
    page = logged_in(served, visits, token, f"/approvals/{approval.id}")
    page.get_by_label("Note (optional)").first.fill("half a sent")
    for message in ("net::ERR_", "MIME type", "401"):
        visits.expect_message(message)
    served.kill()
    expect(live(page)).to_contain_text("cannot be reached")
    served.start()
    expect(live(page)).to_contain_text("log in")
    assert "half a sent" == page.get_by_label("Note (optional)").first.input_value()
    follow(live(page).get_by_role("link", name="Reload"))
    page.get_by_label("Your token").fill(token)
    with arrival(page):
        page.keyboard.press("Enter")
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("main")).to_contain_text("approved")
    assert "approved" == with_shop.read(approval).state
    with_shop.grace.close()


def test_who_logs_out_is_out(team):
    own, strangers = team
    token = own.add_user("ana", "approver")
    own.start()
    page = logged_in(own, strangers, token, "/figures")
    expect(page.get_by_role("banner")).to_contain_text("ana")
    other = page.context.new_page()
    other.goto(f"{own.origin}/runs")
    follow(page.get_by_role("button", name="Log out"))
    expect(page).to_have_url(f"{own.origin}/login")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    other.reload()
    expect(other.get_by_role("heading", level=1)).to_have_text("Log in")
