"""Texts that agents, models and other people wrote, which pages show as text, and pages of another origin on the same machine.

Whatever texts contain, nothing of them runs. Pages of strangers, in the browser of somebody who is logged in, decide, show and read nothing.

Beside what is asserted here, every visit fails on messages of the console, which a Content-Security-Policy would write, on dialogs and on
requests to other hosts.
"""

from __future__ import annotations

from urllib.parse import urlencode as query

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import follow
from tests.browser.shop import HOSTILE

FOREIGN = r"""() => ({
    pwned: window.__pwned,
    scripts: [...document.scripts].map(each => each.getAttribute('src')).filter(each => !(each || '').startsWith('/static/')),
    elements: document.querySelectorAll('iframe, object, embed, img, base, svg script, svg a, foreignObject').length,
    handlers: [...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames()).filter(each => each.startsWith('on')),
    links: [...document.querySelectorAll('[href], [src], [action], [formaction]')]
        .flatMap(each => ['href', 'src', 'action', 'formaction'].map(name => each.getAttribute(name)))
        .filter(each => each && !/^(https?:\/\/|\/|#|\?|data:,$)/.test(each)),
    forms: [...document.forms].map(each => new URL(each.getAttribute('action') || '', location.href).origin)
        .filter(each => each !== location.origin),
})"""
NOTHING = {"scripts": [], "elements": 0, "handlers": [], "links": [], "forms": []}


def harmless(page):
    """Nothing on the page comes from its texts; invisible characters are written out."""
    page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
    found = page.evaluate(FOREIGN)
    assert NOTHING == {name: value for name, value in found.items() if value is not None}, page.url
    text = page.get_by_role("main").inner_text()
    assert not set("\u202e\u200b\x1b\x00") & set(text), page.url
    return text


@pytest.mark.parametrize("view", ["timeline", "tree", "waterfall", "json"])
def test_a_hostile_run_is_text(visit, shop, view):
    """In its name, domain, tags, user, session, metadata, tools, arguments, results and errors, in every view."""
    trace = hostile_run(shop)
    assert "<script>window.__pwned=1</script>" in harmless(visit(f"/runs/{trace.id}?view={view}"))


def test_hostile_runs_are_text_in_lists_and_searches(visit, shop):
    visit.expect_message("404")
    visit.expect_message("422")
    page = visit("/runs")
    for path in (
        "/runs",
        "/runs?text=%3Cscript%3Ewindow.__pwned",
        f"/runs?{query({'agent': HOSTILE})}",
        "/figures",
        f"/figures?{query({'agent': HOSTILE})}",
    ):
        page.goto(visit.origin + path)
        harmless(page)
    trace = hostile_run(shop)
    page.goto(visit.origin + f"/runs/{trace.id}?{query({'q': HOSTILE})}")
    harmless(page)
    other = next(each for each in shop.grace.store.query(limit=50) if each.id != trace.id)
    page.goto(visit.origin + f"/runs/compare?{query({'a': trace.id, 'b': other.id})}")
    harmless(page)
    page.goto(visit.origin + f"/runs/compare?{query({'a': HOSTILE, 'b': HOSTILE})}")
    harmless(page)


def test_a_hostile_request_is_text_until_it_is_decided(visit, shop):
    """In its action, arguments, objective, group and user, in the edit and its review, in the words of the decision, and in the trail."""
    approval = shop.ask(HOSTILE, message=HOSTILE, invoice=HOSTILE + str(id(shop)))
    page = visit("/inbox")
    harmless(page)
    page.goto(visit.origin + f"/approvals/{approval.id}")
    assert "<script>window.__pwned=1</script>" in harmless(page)
    page.get_by_label("message").fill(HOSTILE.replace("\x00", "") + "!")
    page.get_by_label("Note (optional)").last.fill(HOSTILE.replace("\x00", ""))
    follow(page.get_by_role("button", name="Review the changes"))
    expect(page.get_by_role("button", name="Approve with these values")).to_be_visible()
    harmless(page)
    follow(page.get_by_role("button", name="Approve with these values"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("wanted to run")
    harmless(page)
    for path in (
        "/approvals/history",
        "/approvals/standing",
        "/approvals/audit",
        "/inbox/attention",
        f"/approvals/{approval.id}/grant",
    ):
        page.goto(visit.origin + path)
        harmless(page)


@pytest.mark.parametrize(
    "path", ["/inbox?{}", "/approvals/history?{}", "/approvals/audit?{}", "/runs?{}", "/figures?{}", "/login?{}"]
)
def test_hostile_addresses_are_text(visit, path):
    names = "action level group mine q by since state approval agent domain status user session text tags min_score until days code next from view"
    visit.expect_message("422")
    page = visit(path.format("x=1"))
    for name in names.split():
        page.goto(visit.origin + path.format(query({name: HOSTILE})))
        harmless(page)


def hostile_run(shop):
    (found,) = [trace for trace in shop.grace.store.query(limit=200) if trace.name == HOSTILE] or [None]
    return found


STRANGER = "http://127.0.0.1:9/"
"""A page on another port, which a browser takes for the same site and for another origin."""


@pytest.fixture
def stranger(visit):
    """Opens a page of a stranger in the browser of somebody who is logged in."""

    def open_page(html):
        context = visit.context()
        body = f"<!doctype html><title>stranger</title><link rel=icon href='data:,'>{html}"
        context.route(STRANGER, lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
        page = context.new_page()
        page.goto(STRANGER)
        return page

    return open_page


def test_a_form_of_a_stranger_decides_nothing(visit, server, shop, stranger):
    approval = shop.ask()
    visit.expect_message("403")
    form = f"<form method=post action='{server.origin}/approvals/{approval.id}/approve'>"
    field = f"<input name=digest value='{approval.digest}'><button>Win a prize</button></form>"
    page = stranger(form + field)
    with page.expect_response(lambda answer: answer.request.method == "POST") as caught:
        page.get_by_role("button").click()
    assert 403 == caught.value.status
    assert "pending" == shop.read(approval).state


def test_a_script_of_a_stranger_decides_nothing(visit, server, shop, stranger):
    approval = shop.ask()
    visit.expect_message("403")
    visit.expect_message("CORS")
    visit.expect_message("ERR_FAILED")
    visit.expect_message("ERR_BLOCKED_BY_RESPONSE")
    page = stranger("")
    for path in (f"/approvals/{approval.id}/approve", f"/api/v1/approvals/{approval.id}/approve"):
        for kind in ("application/x-www-form-urlencoded", "text/plain", "application/json"):
            page.evaluate(
                "([url, kind]) => fetch(url, {method: 'POST', body: 'note=x', credentials: 'include', mode: kind.endsWith('json') ? "
                "'cors' : 'no-cors', headers: {'content-type': kind}}).catch(() => 0)",
                [server.origin + path, kind],
            )
    assert "pending" == shop.read(approval).state


def test_a_frame_of_a_stranger_stays_empty(visit, server, shop, stranger):
    approval = shop.ask()
    visit.expect_message("frame-ancestors")
    visit.expect_message("Refused to display")
    visit.expect_message("403")
    page = stranger(f"<iframe src='{server.origin}/approvals/{approval.id}'></iframe>")
    frame = page.frames[1]
    expect(frame.get_by_role("button")).to_have_count(0)
    assert approval.action not in frame.content()
