"""The list of runs and its filters."""

from __future__ import annotations

import re

from grace_kp.store import Progress, RunPage
from tests.pages.reading import Elements
from tests.trace.html.traces import attacked, check
from tests.web.conftest import thoughts


def objectives(page):
    return re.findall(r'<a class="objective" href="[^"]*">([^<]*)</a>', page)


def fill(house):
    for place in range(3):
        run = thoughts(place + 1)
        run["task"]["objective"] = f"Objective {place}"
        house.add(
            place, run, began=f"2026-01-0{place + 1}T00:00:00.000Z", status="failed" if place == 1 else "completed"
        )


def test_runs_stand_newest_first(house):
    fill(house)
    house.add("full", began="2026-01-09T00:00:00.000Z")
    page = house.visit().get("/runs").text
    assert ["Refund the order", "Objective 2", "Objective 1", "Objective 0"] == objectives(page)
    text = Elements(page).text
    for words in ("support", "completed", "confirm", "0.62", "1 min 10 s", "3,104", "vip", "2026-01-09 00:00:00 UTC"):
        assert words in text
    assert 'value="0.5"' in page
    assert 'value="0.5"' not in house.visit(role="viewer").get("/runs").text
    house.add("hostile", attacked())
    browser = house.visit()
    check(browser.get("/runs").text.replace("<!doctype html>", ""))
    browser.post_form("/runs/kp:trace:0/feedback", {"correct": "1"})
    assert '<span class="badge">labelled</span>' in house.visit().get("/runs").text


def test_a_filter_lives_in_the_address(house):
    fill(house)
    browser = house.visit()
    answer = browser.get("/runs?agent=&status=failed&text=&min_score=")
    assert (303, "/runs?status=failed") == (answer.status_code, answer.headers["location"])
    assert ["Objective 1"] == objectives(browser.get("/runs?status=failed").text)
    assert 303 == browser.get("/runs?status=").status_code
    page = browser.get("/runs?status=gone").text  # a value that occurs no more stays selected
    assert '<option value="gone" selected>gone</option>' in page
    assert '<option value="failed">failed</option>' in page
    links = Elements(browser.get("/runs?tags=x&tags=y%26z&scorer_passed=false").text).links
    assert {"/runs?tags=x&scorer_passed=false", "/runs?tags=x&tags=y%26z"} <= set(links)


def test_a_wrong_value_is_noted_at_its_field(house):
    fill(house)
    answer = house.visit().get("/runs?min_score=3&status=failed")
    assert 422 == answer.status_code
    found = Elements(answer.text)
    assert "should be less than or equal to 1" in found.text
    field = next(attributes for _, attributes in found.elements if attributes.get("id") == "f-min_score")
    assert ("true", "p-min_score") == (field["aria-invalid"], field["aria-describedby"].strip())
    assert ["Objective 1"] == objectives(answer.text)
    assert "/runs?status=failed" not in found.links
    assert "/runs" in found.links


def test_pages_follow_each_other(house):
    for place in range(120):
        house.add(
            f"{place:03}", thoughts(1, status="completed"), began=f"2026-01-02T00:{place // 60:02}:{place % 60:02}.000Z"
        )
    browser = house.visit()
    seen, address = [], "/runs?status=completed"
    while address:
        page = browser.get(address).text
        seen += re.findall(r'name="id" value="([^"]*)"', page)
        address = next(iter(re.findall(r'rel="next" href="([^"]*)"', page)), "").replace("&amp;", "&")
        last = page
    assert [f"kp:trace:{place:03}" for place in reversed(range(120))] == seen
    newer = re.search(r'rel="prev" href="([^"]*)"', last)[1].replace("&amp;", "&")
    assert "status=completed" in newer
    assert seen[50:100] == re.findall(r'name="id" value="([^"]*)"', browser.get(newer).text)
    assert 200 == browser.get("/runs?before=soon").status_code


def test_an_empty_store_says_how_to_record(house):
    page = house.visit().get("/runs").text
    assert "No runs yet" in page
    assert house.grace.settings.store.removeprefix("sqlite:///") not in page
    assert "# the store of this server" in page
    assert "@grace.agent" in page


def test_no_match_says_what_to_remove(house):
    fill(house)
    text = Elements(house.visit().get("/runs?status=failed&text=nothing+like+it").text).text
    assert "No run meets all filters" in text
    assert "without contains nothing like it" in " ".join(text.split())


class Slow:
    """A catalog that ran out of time, and that is still being built."""

    def find(self, query, **options):
        newer = 9 if "after" in options else None
        return RunPage(rows=(), newer=newer, older=7, searched_to="2026-01-02T03:04:05.000Z")

    def progress(self):
        return Progress(done=10, total=1_000)

    def names(self, kind, limit=200):
        return []

    def close(self):
        pass


def test_a_search_that_ran_out_of_time_can_go_on(house):
    browser = house.visit()
    site = browser.app.state.site
    site.catalog.close()
    object.__setattr__(site, "catalog", Slow())
    page = browser.get("/runs?text=needle").text
    text = " ".join(Elements(page).text.split())
    assert "The search stopped at 2026-01-02 03:04:05 UTC" in text
    assert "/runs?text=needle&before=7" in Elements(page).links
    assert "/runs?text=needle&after=9" in Elements(browser.get("/runs?text=needle&after=3").text).links
    assert "it has 10 of 1,000 runs" in text
    assert "No run meets" not in text
