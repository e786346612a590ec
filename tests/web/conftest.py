"""Stores with runs, and somebody's browser at their pages."""

from __future__ import annotations

import re
import time

import pytest

import grace_kp as gk
from grace_kp import Grace
from grace_kp.runtime import record_of
from grace_kp.web import _site
from tests.pages.reading import Elements
from tests.trace.html.traces import document, full
from tests.web.visiting import PATIENCE, Browser


@pytest.fixture(autouse=True)
def _patient_readers(monkeypatch):
    """On a busy machine a first view of figures may take longer than a reader waits."""
    monkeypatch.setattr(_site, "PATIENCE", PATIENCE)


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


DAY = 86_400


class Office(House):
    """A runtime whose runs begin some days ago, as tests ask for."""

    def __init__(self, folder, **settings):
        self.browsers, self.began = [], time.time()
        usual = {"evaluator": None, "embedder": None, "reviewer": lambda request: gk.InterventionResponse("proceed")}
        self.grace = gk.Grace(
            store=f"sqlite:///{folder}/app.db", wall_clock=lambda: int(self.began * 1e9), **{**usual, **settings}
        )

    def run(
        self, name="refunds", *, days=0, confidence=0.7, success=True, label=None, objective="Refund an order", gates=()
    ):
        """Record a run that began some days ago; return its id."""
        self.began = time.time() - days * DAY
        with self.grace.run(objective, name=name) as run:
            for action in gates:
                self.grace.gate(name=action)(lambda: "done")()
            self.grace.outcome(confidence=confidence, success=success)
        if label is not None:
            self.grace.flush()
            self.grace.feedback(run.id, label, source="test")
        return run.id

    def visit(self, **options):
        """Return a browser; the figures know all runs so far."""
        self.grace.flush()
        return super().visit(**options)

    def page(self, query="", **options):
        """Return the page of figures."""
        return self.visit(**options).get(f"/figures{query}")


def tiles(page):
    """The figures at the beginning of each section, by name."""
    found = re.findall(r'<dt>([^<]*)</dt><dd><span class="value[^"]*">([^<]*)</span>', page.text)
    return dict(found)


def notes(page):
    return re.findall(r'<p class="note[^>]*>(.*?)</p>', page.text, re.DOTALL)


def words(page):
    return " ".join(Elements(page.text).text.split())


@pytest.fixture
def office(tmp_path):
    made = Office(tmp_path)
    yield made
    made.close()


@pytest.fixture
def grace(tmp_path):
    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as opened:
        yield opened
