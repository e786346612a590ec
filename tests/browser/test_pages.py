"""Every page that links lead to: readable for everybody, at every width, in both schemes, with and without script."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import AXE

SEEDS = ("/inbox", "/runs", "/figures")
ID = re.compile(r"ap-[0-9a-f]{16}|kp:trace:[0-9a-f-]{36}|(?<=/)[0-9a-f-]{8,}(?=$|/)")
EACH = 4
"""Pages of a kind, such as those of single runs, that are looked at."""
AXE_RUN = "axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})"
OVERFLOWING = """() => {
    const width = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll('body *')]
        .filter(each => each.getBoundingClientRect().right > width + 1)
        .map(each => `${each.tagName}.${each.className} to ${each.getBoundingClientRect().right}`).slice(0, 8);
}"""


@pytest.fixture
def paths(visit, shop):
    """The addresses of some pages of every kind, found by following links, as a person would."""
    shop.ask("Pay back what Ana asks for", message="a long text " * 40)
    page = visit("/inbox")
    found, open_paths, kinds = [], list(SEEDS), {}
    while open_paths:
        path = open_paths.pop(0)
        of_kind = kinds.setdefault(kind_of(path), [])
        if path in of_kind or len(of_kind) == EACH:
            continue
        of_kind.append(path)
        answer = page.goto(visit.origin + path)
        assert (200, path) == (answer.status, path)
        if "text/html" not in answer.headers["content-type"]:
            continue
        found.append(path)
        links = page.eval_on_selector_all("a[href]:not([download])", "all => all.map(each => each.href)")
        own = [urlsplit(link) for link in links if link.startswith(visit.origin)]
        open_paths += [link.path + (f"?{link.query}" if link.query else "") for link in own]
    return found


def kind_of(path):
    """The address without what is of one run, request or filter."""
    parts = urlsplit(path)
    return ID.sub("{id}", parts.path), tuple(sorted({pair.partition("=")[0] for pair in parts.query.split("&")}))


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_of(visit, paths, scheme, width):
    """On any page; contrast, labels, landmarks, the order of headings and the size of targets are among its rules."""
    axe = AXE.read_text("utf-8")
    page, violations = visit("/inbox", scheme=scheme, width=width), {}
    for path in paths:
        page.goto(visit.origin + path)
        page.evaluate(axe)
        for violation in page.evaluate(AXE_RUN)["violations"]:
            places = [node["html"][:200] + node["failureSummary"] for node in violation["nodes"][:3]]
            violations[path, violation["id"]] = places
    assert {} == violations


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_page_scrolls_sideways(visit, paths, width):
    """What is wider than a phone, such as a table, scrolls by itself."""
    page, overflowing = visit("/inbox", width=width), {}
    for path in paths:
        page.goto(visit.origin + path)
        if wide := page.evaluate(OVERFLOWING):
            overflowing[path] = wide
    assert {} == overflowing


def test_every_page_says_what_it_is_without_script(visit, paths):
    """One heading of the first order, a title, and the way to the other pages."""
    page = visit("/inbox", script=False)
    for path in paths:
        page.goto(visit.origin + path)
        assert (path, 1) == (path, page.locator("main h1").count())
        assert page.title().removesuffix("· grace_kp").strip()
        assert 3 == page.get_by_role("navigation", name="Pages").get_by_role("link").count()
