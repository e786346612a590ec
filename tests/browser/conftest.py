"""A real browser, a real `grace-kp serve`, and a store that real agents have filled.

Whatever a test does: a script that fails, a message of the Content-Security-Policy, a dialog and a foreign request fail it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.keys import follow
from tests.browser.serving import PATIENCE, PROGRAM, Server, executable, flags

ROOT = Path(__file__).resolve().parents[2]
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"

expect.set_options(timeout=PATIENCE * 1_000)


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


@pytest.fixture
def start(server):
    """Starts the shop as a process of its own, which a test may kill."""
    started = []

    def run(task, *arguments):
        command = [sys.executable, PROGRAM, task, server.store, *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


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
