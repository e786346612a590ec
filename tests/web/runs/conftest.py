"""A store with runs of every kind, and somebody's browser at its pages."""

from __future__ import annotations

import pytest

from grace_kp import Grace
from grace_kp.runtime import record_of
from tests.trace.html.traces import document, full
from tests.web.visiting import Browser


class House:
    """A runtime over a store in a folder. `add` puts the document of a run into the store, `visit` opens the pages."""

    def __init__(self, folder):
        self.grace = Grace(store=f"sqlite:///{folder}/app.db", evaluator=None, embedder=None)
        self.browsers = []

    def add(self, name, run=None, *, began="2026-01-02T03:04:05.000Z", **grace):
        """Store a run under the id `kp:trace:<name>` and return the id."""
        run = full() if run is None else run
        run["id"] = f"kp:trace:{name}"
        run["metadata"]["created_at"] = began
        run["grace"].update(grace)
        self.grace.store.put([record_of(run)])
        return run["id"]

    def visit(self, **options):
        """Return a browser; the list knows all runs that were added before."""
        browser = Browser(self.grace, **options)
        browser.app.state.site.catalog.refresh()
        self.browsers.append(browser)
        return browser

    def close(self):
        for browser in self.browsers:
            browser.app.state.site.catalog.close()
        self.grace.close()


def thoughts(count, **grace):
    """A run of this many thoughts."""
    return document([{"type": "thought", "content": f"thought {place}."} for place in range(count)], **grace)


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    yield made
    made.close()
