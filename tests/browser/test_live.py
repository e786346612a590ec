"""What happens elsewhere while a page is open: other people, processes that wait and die, and a server that goes away."""

from __future__ import annotations

import signal

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visits
from tests.browser.keys import arrival, follow
from tests.browser.serving import PATIENCE, Server, until

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


def test_a_waiting_process_goes_on_when_the_button_is_pressed(visit, shop, start):
    """And prints what it was approved to do; the page of the request then says that it is done."""
    process = start("wait", "W-1")
    approval = pending(shop, "W-1")
    page = visit(f"/approvals/{approval.id}")
    expect(page.get_by_role("main")).to_contain_text("a live process waits")
    follow(page.get_by_role("button", name="Approve", exact=True))
    assert "paid back 40 euros for W-1 by bank\n" == process.stdout.readline()
    until(lambda: shop.read(approval).state == "done")
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("paid back 40 euros for W-1 by bank")


def test_the_page_says_that_the_process_died(visit, shop, start):
    """While it is open. The decision stays possible, and is kept."""
    process = start("wait", "W-2")
    approval = pending(shop, "W-2")
    page = visit(f"/approvals/{approval.id}")
    page.get_by_label("Note (optional)").first.fill("half a sent")
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    expect(live(page)).to_contain_text("has ended")
    assert "half a sent" == page.get_by_label("Note (optional)").first.input_value()
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("main")).to_contain_text("the process that waited is gone")
    assert "approved" == shop.read(approval).state


def test_a_decision_in_another_tab_disables_this_one(visit, shop):
    """The same person with two tabs open."""
    approval = shop.ask()
    first = visit(f"/approvals/{approval.id}")
    second = first.context.new_page()
    second.goto(first.url)
    second.locator("summary", has_text="Skip…").click()
    follow(second.get_by_role("button", name="Skip", exact=True))
    expect(first.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
    expect(live(first)).to_contain_text("skipped")


def test_the_back_button_leads_to_what_is_true_now(visit, shop):
    """After a decision, it offers no second one. Nothing is sent again."""
    approval = shop.ask()
    page = visit("/inbox?action=refund")
    page.goto(visit.origin + f"/approvals/{approval.id}")
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("main")).to_contain_text("approved")
    page.go_back()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    page.reload()
    assert 1 == len([entry for entry in entries(shop, approval) if entry["kind"] == "decided"])


def test_a_page_that_was_refused_reloads_to_the_request(visit, shop):
    """Its address is that of the form, which shows nothing when it is asked for."""
    approval = shop.ask()
    page = visit(f"/approvals/{approval.id}")
    visit.expect_message("409")
    page.eval_on_selector("form.approve input[name=digest]", "field => { field.value = 'sha256:00'; }")
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("main")).to_contain_text("Nothing was decided")
    shop.grace.approvals.reject(approval.id, by="bo")
    follow(live(page).get_by_role("link", name="Reload"))
    expect(page.get_by_role("main")).to_contain_text("rejected")
    assert page.url.endswith(f"/approvals/{approval.id}")


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
    """It is a line break."""
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


def test_enter_in_a_number_shows_the_edit_and_decides_nothing(visit, shop):
    """The page after it asks."""
    approval = shop.ask()
    page = visit(f"/approvals/{approval.id}")
    page.locator("summary", has_text="Edit the arguments").click()
    page.get_by_label("euros").fill("5")
    with arrival(page):
        page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve with these values")).to_be_visible()
    page.keyboard.press("Enter")
    page.reload()
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


@pytest.mark.parametrize("script", [True, False])
def test_of_two_people_one_is_first(team, script):
    """The other one is told who decided what, and nothing is decided twice."""
    served, visits = team
    tokens = {name: served.add_user(name, "approver") for name in ("ana", "bo")}
    served.start()
    with_shop = served.shop()
    approval = with_shop.ask()
    pages = {
        name: logged_in(
            served, visits, token, f"/approvals/{approval.id}", script=False if not script else name == "ana"
        )
        for name, token in tokens.items()
    }
    pages["ana"].locator("summary", has_text="Reject…").click()
    pages["ana"].get_by_label("Reason, for the agent").fill("paid last week")
    follow(pages["ana"].get_by_role("button", name="Reject", exact=True))
    expect(pages["ana"].get_by_role("main")).to_contain_text("paid last week")
    visits.expect_message("409")
    follow(pages["bo"].get_by_role("button", name="Approve", exact=True))
    expect(pages["bo"].get_by_role("alert")).to_contain_text("ana")
    after = with_shop.read(approval)
    assert ("rejected", "ana", True) == (after.state, after.decision.actor.name, after.decision.actor.authenticated)
    with_shop.grace.close()


def test_an_edit_by_somebody_else_is_not_approved_unseen(team):
    """Who saw other arguments decides nothing, and sees those of now."""
    served, visits = team
    token = served.add_user("ana", "approver")
    served.start()
    with_shop = served.shop(quorum=2)
    approval = with_shop.ask()
    page = logged_in(served, visits, token, f"/approvals/{approval.id}", script=False)
    with_shop.grace.approvals.edit(approval.id, {"euros": 39}, by="bo")
    visits.expect_message("409")
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("alert")).to_contain_text("changed")
    expect(page.locator(".difference").first).to_contain_text("39")
    assert "pending" == with_shop.read(approval).state
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


def test_a_removed_account_hears_and_decides_nothing_more(team):
    """From the next event or request on."""
    served, visits = team
    token = served.add_user("ana", "approver")
    served.add_user("root", "admin")
    served.start()
    with_shop = served.shop()
    approval = with_shop.ask()
    page = logged_in(served, visits, token, f"/approvals/{approval.id}")
    for message in ("401", "403", "MIME type", "ERR_INCOMPLETE"):
        visits.expect_message(message)
    served.remove_user("ana")
    follow(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    assert "pending" == with_shop.read(approval).state
    with_shop.grace.close()


def pending(shop, invoice):
    """The request of a process for this invoice, once it is filed and awaited."""
    return until(
        lambda: next(
            (
                each
                for each in shop.grace.approvals.pending("refund")
                if each.arguments["invoice"] == invoice and each.is_awaited
            ),
            None,
        )
    )


def entries(shop, approval):
    return [
        change["entry"] for change in shop.grace.approvals.export() if change["entry"].get("approval") == approval.id
    ]
