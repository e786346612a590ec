"""A real browser, a real `grace-kp serve`, a store that real agents have filled, and the ways in which people use pages.

Whatever a test does: a script that fails, a message of the Content-Security-Policy, a dialog and a foreign request fail it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.serving import PATIENCE, Server, executable, flags

ROOT = Path(__file__).resolve().parents[2]
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"

expect.set_options(timeout=PATIENCE * 1_000)


STEPS = 300
"""More presses of Tab than any page of the tests needs."""


@dataclass(frozen=True)
class Way:
    """How a person uses a page."""

    name: str
    scheme: str = "light"
    width: int = 1400
    script: bool = True

    def __str__(self):
        return self.name

    def open(self, visit, path):
        return Hand(visit(path, scheme=self.scheme, width=self.width, script=self.script), self)


WAYS = [
    Way("mouse"),
    Way("keyboard", scheme="dark"),
    Way("phone", scheme="dark", width=360),
    Way("phone without script", width=360, script=False),
]


class Hand:
    """Uses the controls of a page in one way."""

    def __init__(self, page, way):
        self.page, self.way = page, way

    def press(self, target):
        """Use a button, a link or a summary."""
        if self.way.name == "keyboard":
            press_on(self.page, target)
        elif self.way.width < 500:
            target.tap()
        else:
            target.click()

    def follow(self, target):
        """Use a button or a link that leads to another page, and return when that is loaded."""
        with arrival(self.page):
            self.press(target)

    def tick(self, target):
        """Use a check box."""
        if self.way.name == "keyboard":
            press_on(self.page, target, "Space")
        else:
            self.press(target)

    def write(self, target, text):
        """Replace what stands in a field."""
        if self.way.name == "keyboard":
            press_on(self.page, target, None)
            self.page.keyboard.press("Control+a")
        else:
            self.press(target)
            target.select_text()
        self.page.keyboard.type(text)

    def choose(self, target, label):
        """Choose an option of a select field. A keyboard chooses it by its first letters."""
        if self.way.name == "keyboard":
            press_on(self.page, target, None)
            self.page.keyboard.type(label)
        else:
            target.select_option(label=label)


def arrival(page):
    """Return a context manager that waits at its end until the next page is loaded, with its styles and scripts.

    Without it, the next line of a test may still act on the old page, or on a page that is only partly loaded.
    """
    return page.expect_navigation()


def follow(target):
    """Click on a button or a link that leads to another page, and return when that is loaded."""
    with arrival(target.page):
        target.click()


def press_on(page, target, key="Enter"):
    """Move the focus to a control with Tab, and press a key there; None only moves the focus.

    Where the focus arrives it must be seen: the control has an outline.
    """
    for _ in range(STEPS):
        if target.evaluate("each => each === document.activeElement || each.parentElement === document.activeElement"):
            break
        page.keyboard.press("Tab")
    else:
        raise AssertionError(f"Tab does not lead to {target}")
    style = page.locator(":focus").evaluate("each => getComputedStyle(each).outlineStyle")
    assert style != "none", f"nothing shows that the focus is on {target}"
    if key is not None:
        page.keyboard.press(key)


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of a worker. Each page has a context of its own, as if it were a browser of its own."""
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=executable(), args=flags())


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests of a worker. Each test files requests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        served = Server(tmp_path_factory.mktemp("served"))
        _settle(patch, served.folder)
        served.fill()
        served.login = served.start()
        yield served
        served.kill()


@pytest.fixture(scope="session")
def signed_in(browser, server):
    """The cookies of somebody who followed the printed address."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.login)
    follow(page.get_by_role("button", name="Open the pages"))
    expect(page).to_have_url(f"{server.origin}/inbox")
    yield context.storage_state()
    context.close()


@pytest.fixture
def visit(browser, server, signed_in):
    """Opens pages: `visit(path, scheme="dark", width=360, script=False)`."""
    visits = Visits(browser, server.origin, signed_in)
    yield visits
    visits.close()
    assert [] == visits.complaints


@pytest.fixture
def shop(server):
    """The shop whose runs and requests the server shows, in another process than the server."""
    opened = server.shop()
    yield opened
    opened.grace.close()


class Visits:
    """Pages in one browser, each in a context of its own, and what went wrong in them."""

    def __init__(self, browser, origin, state=None):
        self.browser, self.origin, self.state = browser, origin, state
        self.contexts, self.complaints, self.expected = [], [], []

    def __call__(self, path, *, scheme="light", width=1400, script=True, state=None):
        page = self.context(scheme=scheme, width=width, script=script, state=state).new_page()
        page.goto(self.origin + path)
        return page

    def context(self, *, scheme="light", width=1400, script=True, state=None):
        context = self.browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            has_touch=width < 500,
            java_script_enabled=script,
            storage_state=state or self.state,
            timezone_id="Asia/Tokyo",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE * 1_000)
        context.on("console", self._logged)
        context.on("dialog", self._asked)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("request", self._requested)
        self.contexts.append(context)
        return context

    def expect_message(self, text):
        """State a message of the console that a test causes on purpose."""
        self.expected.append(text)

    def close(self):
        for context in self.contexts:
            context.close()

    def _logged(self, message):
        if message.type in {"error", "warning"} and not any(text in message.text for text in self.expected):
            self.complaints.append(f"{message.text} ({message.location.get('url')})")

    def _asked(self, dialog):
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request):
        if urlsplit(request.url).scheme in {"http", "https"} and not request.url.startswith("http://127.0.0.1:"):
            self.complaints.append(f"foreign request: {request.url}")


def _settle(patch, home):
    """The surroundings of processes that live longer than one test: as those that every test has."""
    for name in list(os.environ):
        if name.upper().startswith("GRACE_KP_"):
            patch.delenv(name)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        patch.setenv(name, str(home))
    patch.setenv("PYTHONPATH", str(ROOT))
