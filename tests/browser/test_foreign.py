"""Pages of another origin on the same machine, in the browser of somebody who is logged in: they decide nothing, show nothing and read nothing."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from tests.browser.keys import follow


class Stranger:
    """A web server on another port, which a browser takes for the same site and for another origin."""

    def __init__(self):
        self.page = ""
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = stranger.page.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                """Write nothing to the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def open(self, context, page):
        self.page = f"<!doctype html><title>stranger</title><link rel=icon href='data:,'>{page}"
        tab = context.new_page()
        tab.goto(f"http://127.0.0.1:{self.server.server_port}/")
        return tab

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def stranger():
    opened = Stranger()
    yield opened
    opened.close()


def test_a_form_of_a_stranger_decides_nothing(visit, server, shop, stranger):
    """Although the browser sends the cookie along."""
    approval = shop.ask()
    visit.expect_message("403")
    form = f"<form method=post action='{server.origin}/approvals/{approval.id}/approve'>"
    field = f"<input name=digest value='{approval.digest}'><button>Win a prize</button></form>"
    page = stranger.open(visit.context(), form + field)
    with page.expect_response(lambda answer: answer.request.method == "POST") as caught:
        page.get_by_role("button").click()
    assert 403 == caught.value.status
    assert "pending" == shop.read(approval).state


def test_a_script_of_a_stranger_decides_nothing(visit, server, shop, stranger):
    """Neither with a form nor with JSON, and it is not told why."""
    approval = shop.ask()
    visit.expect_message("403")
    visit.expect_message("CORS")
    visit.expect_message("ERR_FAILED")
    visit.expect_message("ERR_BLOCKED_BY_RESPONSE")
    page = stranger.open(visit.context(), "")
    for path in (f"/approvals/{approval.id}/approve", f"/api/v1/approvals/{approval.id}/approve"):
        for kind in ("application/x-www-form-urlencoded", "text/plain", "application/json"):
            page.evaluate(
                "([url, kind]) => fetch(url, {method: 'POST', body: 'note=x', credentials: 'include', mode: kind.endsWith('json') ? "
                "'cors' : 'no-cors', headers: {'content-type': kind}}).catch(() => 0)",
                [server.origin + path, kind],
            )
    assert "pending" == shop.read(approval).state


def test_a_frame_of_a_stranger_stays_empty(visit, server, shop, stranger):
    """So nobody can be made to click a button that they do not see."""
    approval = shop.ask()
    visit.expect_message("frame-ancestors")
    visit.expect_message("Refused to display")
    visit.expect_message("403")
    page = stranger.open(visit.context(), f"<iframe src='{server.origin}/approvals/{approval.id}'></iframe>")
    frame = page.frames[1]
    expect(frame.get_by_role("button")).to_have_count(0)
    assert approval.action not in frame.content()


def test_the_events_are_not_for_strangers(visit, server, stranger):
    """A page of another origin cannot open the stream, and is told nothing by it."""
    visit.expect_message("403")
    visit.expect_message("CORS")
    visit.expect_message("ERR_FAILED")
    page = stranger.open(visit.context(), "")
    heard = page.evaluate(
        """url => new Promise(done => {
            const events = new EventSource(url, {withCredentials: true});
            events.onopen = () => done('opened');
            events.onmessage = () => done('heard');
            events.onerror = () => { if (events.readyState === EventSource.CLOSED) done('refused'); };
        })""",
        f"{server.origin}/events",
    )
    assert "refused" == heard


def test_a_link_of_a_stranger_opens_the_request_and_decides_nothing(visit, server, shop, stranger):
    """Links in notifications are links of strangers: who follows one sees the request."""
    approval = shop.ask()
    page = stranger.open(visit.context(), f"<a href='{server.origin}/approvals/{approval.id}'>open</a>")
    follow(page.get_by_role("link"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(approval.action)
    assert "pending" == shop.read(approval).state
