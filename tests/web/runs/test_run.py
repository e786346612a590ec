"""One run as a page."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings

import grace_kp as gk
from grace_kp.trace import ReasoningTrace
from tests.pages.reading import Elements
from tests.trace.html.hostile import attacked, check, documents
from tests.trace.html.traces import full
from tests.web.runs.house import thoughts

VIEWS = ("timeline", "tree", "waterfall", "json")


def test_a_run_has_four_views(house):
    """Each with the head; another word shows the timeline."""
    name = house.add("a")
    browser = house.visit()
    for view, words in zip(VIEWS, ("Recovered from lookup", "result ", "began after", "@context"), strict=True):
        text = Elements(browser.get(f"/runs/{name}?view={view}").text).text
        assert words in text
        assert "0.620" in text
    assert "Recovered from lookup" in browser.get(f"/runs/{name}?view=none").text


def test_pages_of_runs_are_linked(house):
    """Parent, nested runs, and the requests of gates."""
    house.add("2", thoughts(1, status="completed", parent={"trace_id": "kp:trace:1"}))
    run = full()
    run["grace"]["decisions"][0]["approval"] = {"id": "kp:approval:7", "state": "executed"}
    house.add("1", run)
    browser = house.visit()
    assert {"/runs/kp:trace:2", "/approvals/kp:approval:7"} <= set(Elements(browser.get("/runs/kp:trace:1").text).links)
    assert "/runs/kp:trace:1" in Elements(browser.get("/runs/kp:trace:2").text).links
    assert "thought 0." in browser.get("/runs/kp:trace:1?view=tree").text


def test_a_download_holds_the_trace(house):
    """Byte for byte, under a name that is safe."""
    name = house.add('a"b;c')
    answer = house.visit().get(f"/runs/{name}/json")
    assert 'attachment; filename="run-a-b-c.json"' == answer.headers["content-disposition"]
    assert house.grace.store.get(name).to_json() == answer.text
    assert name == ReasoningTrace.model_validate(json.loads(answer.content)).id


def test_an_id_may_hold_anything(house):
    """Slashes, spaces, dots and percent signs are quoted in links and found again."""
    names = [house.add(name) for name in ("a/b", "a b", "../x", "50%", "日本", "json")]
    browser = house.visit()
    listed = [link for link in Elements(browser.get("/runs").text).links if link.startswith("/runs/kp")]
    for link in listed:
        if not link.endswith("/feedback"):
            assert 200 == browser.get(link).status_code
    assert len(names) * 2 == len(listed)


@pytest.mark.parametrize("name", ["kp:trace:none", "none", "kp:trace:%00", "x" * 3_000, "none/json", "%ff"])
def test_an_unknown_run_says_what_may_have_happened(house, name):
    """It is no error of the server."""
    answer = house.visit().get(f"/runs/{name}")
    assert 404 == answer.status_code
    assert "It was deleted" in answer.text


def test_a_run_that_awaits_a_judgement_says_so(house):
    """Above its figures."""
    name = house.add("a", awaits=["judgement"])
    assert "Still awaited: judgement" in house.visit().get(f"/runs/{name}").text


def test_a_long_run_has_pages(house):
    """Of 2,000 steps; the address of a step leads to the page that holds it."""
    name = house.add("long", thoughts(4_500))
    browser = house.visit()
    page = browser.get(f"/runs/{name}").text
    assert ("thought 1999." in page, "thought 2000." in page) == (True, False)
    assert f"/runs/{name}?from=2000" in Elements(page).links
    page = browser.get(f"/runs/{name}?from=4100").text
    assert ("thought 3999." in page, 'id="step-4100"' in page, "thought 4499." in page) == (False, True, True)
    assert "thought 4499." in browser.get(f"/runs/{name}?from=999999").text


def test_a_search_without_script_shows_the_matches(house):
    """With the steps around them, and how many there are."""
    run = thoughts(2_000)
    run["steps"][700]["content"] = "The Needle & thread <b>"
    name = house.add("long", run)
    browser = house.visit()
    page = browser.get(f"/runs/{name}?q=needle+%26").text
    assert "<mark>Needle &amp;</mark> thread &lt;b&gt;" in page
    assert "1 step of 2,000 contains “needle &amp;”" in page
    assert [f"step-{place}" for place in (699, 700, 701)] == [
        item for item in Elements(page).ids if item.startswith("step-")
    ]
    assert "No step contains this text" in browser.get(f"/runs/{name}?q=nothing").text


def test_a_timeline_brings_the_script_of_its_search(house):
    """Other views need none."""
    name = house.add("a")
    browser = house.visit()
    assert "/static/runs.js" in Elements(browser.get(f"/runs/{name}").text).links
    assert "/static/runs.js" not in Elements(browser.get(f"/runs/{name}?view=tree").text).links
    assert 200 == browser.get("/static/runs.js").status_code


def test_a_search_with_many_matches_has_pages(house):
    """Every match is reached."""
    name = house.add("long", thoughts(450))
    browser = house.visit()
    page = browser.get(f"/runs/{name}?q=thought").text
    assert "450 steps of 450 contain" in page
    more = f"/runs/{name}?q=thought&from=200"
    assert more in Elements(page).links
    assert "450 steps of 450 contain" in browser.get(more).text
    assert "<mark>thought</mark> 399." in browser.get(more).text


def test_large_json_is_cut(house):
    """A note says how much is missing; the download has it."""
    name = house.add("long", thoughts(4_000))
    page = house.visit().get(f"/runs/{name}?view=json").text
    assert "more characters are not shown here" in page
    assert len(page) < 400_000


def test_markup_in_every_field_stays_text(house):
    """In every view, also where a search marks it."""
    name = house.add("hostile", attacked())
    browser = house.visit()
    for query in (*(f"view={view}" for view in VIEWS), "q=script", "q=%3Cscript%3E", "q=%22onerror%3D"):
        check(browser.get(f"/runs/{name}?{query}").text.replace("<!doctype html>", ""))


@given(documents())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_another_program_stored_is_shown(house, run):
    """A document that is a trace has a page in every view, whatever its fields hold."""
    run["id"] = "kp:trace:any"
    try:
        trace = ReasoningTrace.model_validate(run)
    except ValueError:
        return
    browser = house.browsers[0] if house.browsers else house.visit()
    house.grace.store.get = lambda name: trace
    for view in VIEWS:
        answer = browser.get(f"/runs/kp:trace:any?view={view}")
        assert 200 == answer.status_code
        check(answer.text.replace("<!doctype html>", ""))


def test_a_run_that_asks_is_a_page_before_it_is_stored(house):
    """A request links its run: while that goes on, its page names the request, and later what has become of it."""
    browser, ask = house.visit(), gk.InboxReviewer(wait="raise")
    refund = house.grace.gate(name="refund", key="one", floor="confirm", reviewer=ask)(print)
    with house.grace.run("refund", name="job") as run:
        with contextlib.suppress(gk.ActionPending):
            refund()
        (asked,) = house.grace.approvals.pending()
        assert f"/runs/{run.id}" in Elements(browser.get(f"/approvals/{asked.id}").text).links
        page = browser.get(f"/runs/{run.id}")
        assert (200, True) == (page.status_code, "Run not stored yet" in page.text)
        assert f"/approvals/{asked.id}" in Elements(page.text).links
    house.grace.approvals.reject(asked.id, by="ana")
    house.grace.flush()
    assert "rejected by ana" in Elements(browser.get(f"/runs/{run.id}").text).text
    assert 404 == browser.get("/runs/kp:trace:nothing").status_code
