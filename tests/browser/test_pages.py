"""Every page that links lead to: readable for everybody, at every width, in both schemes, with and without script; and the list of runs in use."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import AXE, Visits, arrival, follow
from tests.browser.shop import JAPANESE

SEEDS = ("/inbox", "/runs", "/figures")
ID = re.compile(r"ap-[0-9a-f]{16}|kp:trace:[0-9a-f-]{36}|(?<=/)[0-9a-f-]{8,}(?=$|/)")
EACH = 3
"""Pages of a kind, such as those of single runs, that are looked at."""
EVERY_RULE = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
CONTRAST = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
"""The only rule that looks at colours."""
OVERFLOWING = """() => {
    const width = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll('body *')]
        .filter(each => each.getBoundingClientRect().right > width + 1)
        .map(each => `${each.tagName}.${each.className} to ${each.getBoundingClientRect().right}`).slice(0, 8);
}"""


@pytest.fixture(scope="session")
def paths(browser, server, signed_in):
    """The addresses of some pages of every kind, found by following links, as a person would."""
    visits = Visits(browser, server.origin, signed_in)
    page, found, ahead, kinds = visits("/inbox", script=False), [], list(SEEDS), {}
    while ahead:
        path = ahead.pop(0)
        of_kind = kinds.setdefault(kind_of(path), [])
        if path in of_kind or len(of_kind) == EACH:
            continue
        of_kind.append(path)
        answer = page.goto(server.origin + path)
        assert (200, path) == (answer.status, path)
        if "text/html" not in answer.headers["content-type"]:
            continue
        found.append(path)
        links = page.eval_on_selector_all("a[href]:not([download])", "all => all.map(each => each.href)")
        own = [urlsplit(link) for link in links if link.startswith(server.origin)]
        ahead += [link.path + (f"?{link.query}" if link.query else "") for link in own]
    visits.close()
    return found


def kind_of(path):
    """The address without the ids of runs and requests, and of its query only the view."""
    parts = urlsplit(path)
    return ID.sub("{id}", parts.path), *parse_qs(parts.query).get("view", ())


@pytest.mark.parametrize("width", [360, 1400])
def test_axe_finds_nothing_to_complain_of(visit, paths, width):
    """On any page in either scheme, and none scrolls sideways; contrast, labels, landmarks, the order of headings and the size of targets are among its rules."""
    page, violations = visit("/inbox", width=width), {}
    for path in paths:
        page.goto(visit.origin + path)
        violations |= {(path, kind): places for kind, places in violations_of(page)}
        assert (path, []) == (path, page.evaluate(OVERFLOWING))
        page.emulate_media(color_scheme="dark")
        violations |= {(path, kind, "dark"): places for kind, places in violations_of(page, CONTRAST)}
        page.emulate_media(color_scheme="light")
    assert {} == violations


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1400, "dark")])
def test_axe_finds_nothing_on_pages_that_follow_a_form(visit, shop, width, scheme):
    """The review of an edit, of several requests and of a standing approval, what came of them, a comparison, and pages of errors."""
    asked = [shop.ask(), shop.ask()]
    page, violations = visit("/inbox", scheme=scheme, width=width), {}

    def look(heading):
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
        violations.update({(heading, kind): places for kind, places in violations_of(page)})
        assert [] == page.evaluate(OVERFLOWING)

    page.goto(visit.origin + f"/approvals/{asked[0].id}")
    page.locator("summary", has_text="Edit the arguments").click()
    visit.expect_message("422")
    page.get_by_label("euros").fill("many")
    follow(page.get_by_role("button", name="Review the changes"))
    look("wants to run")
    page.get_by_label("euros").fill("5")
    follow(page.get_by_role("button", name="Review the changes"))
    look("with these values instead?")
    page.goto(visit.origin + f"/approvals/{asked[1].id}/grant")
    follow(page.get_by_role("button", name="Review"))
    look("Let these calls run without asking?")
    page.goto(visit.origin + "/inbox?action=refund")
    page.get_by_role("checkbox", name=asked[1].id).check()
    follow(page.get_by_role("button", name="Decide selected"))
    look("to decide at once")
    follow(page.get_by_role("button", name="Skip all"))
    look("1 request")
    page.goto(visit.origin + "/runs")
    for box in page.get_by_role("checkbox", name="Compare: ").all()[:2]:
        box.check()
    follow(page.get_by_role("button", name="Compare two runs"))
    look("Two runs side by side")
    visit.expect_message("404")
    page.goto(visit.origin + "/runs/kp:trace:00000000-0000-4000-8000-000000000000")
    look("No such run")
    assert {} == violations


def violations_of(page, options=EVERY_RULE):
    """What axe-core finds on a page. Closed parts are opened, because it looks at what can be seen."""
    page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    for violation in page.evaluate("options => axe.run(document, options)", options)["violations"]:
        yield violation["id"], [node["html"][:200] + node["failureSummary"] for node in violation["nodes"][:3]]


def test_every_page_says_what_it_is_without_script(visit, paths):
    """One heading of the first order, a title of its own, and the way to the other pages."""
    page, titles = visit("/inbox", script=False), {}
    for path in paths:
        page.goto(visit.origin + path)
        assert (path, 1) == (path, page.locator("main h1").count())
        titles.setdefault(page.title(), set()).add(kind_of(path)[0])
        for name in ("Inbox", "Runs", "Figures"):
            assert page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).count()
    assert {} == {title: kinds for title, kinds in titles.items() if len(kinds) > 1}


@pytest.mark.parametrize("script", [True, False])
def test_the_steps_of_a_run_are_searched(visit, shop, script):
    with shop.grace.run("Search in me") as run:
        for thought in ("needle in the hay", *["hay"] * 30):
            shop.grace.thought(thought)
    shop.grace.flush()
    page = visit(f"/runs/{run.id}", script=script)
    page.get_by_role("searchbox").fill("needle")
    page.get_by_role("button", name="Search").click()  # with scripts, the search stays on the page
    expect(page.get_by_role("status")).to_contain_text("1")
    expect(page.get_by_text("needle in the hay").first).to_be_visible()


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
