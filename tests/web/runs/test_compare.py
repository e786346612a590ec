"""Two runs side by side."""

from __future__ import annotations

import re

from tests.pages.reading import Elements
from tests.trace.html.hostile import attacked, check
from tests.trace.html.traces import full
from tests.web.runs.house import thoughts


def compared(house, one, two):
    a, b = house.add("a", one), house.add("b", two)
    return house.visit().get(f"/runs/compare?a={a}&b={b}").text


def text_of(page):
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_the_first_difference_is_named_and_linked(house):
    """With the number of the step."""
    other = full()
    other["steps"][4]["content"] = "ok"
    page = compared(house, full(), other)
    assert "First difference: step 4 . 9 steps equal, 1 changed, 0 only in A, 0 only in B." in text_of(page)
    found = Elements(page)
    assert "#difference" in found.links
    assert 1 == found.ids.count("difference")


def test_equal_runs_say_so(house):
    """And a run beside itself, too."""
    assert "No difference: all steps are equal" in text_of(compared(house, thoughts(3), thoughts(3)))
    page = house.visit().get("/runs/compare?a=kp:trace:a&b=kp:trace:a").text
    assert "Both sides are the same run." in page


def test_a_run_that_goes_on_is_named(house):
    """The first difference is a step that only one has."""
    assert "First difference: step 3, which only B has" in text_of(compared(house, thoughts(3), thoughts(5)))


def test_two_ticked_runs_are_compared(house):
    """Another number of runs is not: the page asks for two."""
    house.add("a", thoughts(1))
    browser = house.visit()
    answer = browser.get("/runs/compare?id=kp:trace:a&id=kp:trace:b")
    assert "/runs/compare?a=kp%3Atrace%3Aa&b=kp%3Atrace%3Ab" == answer.headers["location"]
    answer = browser.get("/runs/compare?id=a&id=b&id=c")
    assert 422 == answer.status_code
    assert "3 runs selected: select exactly two" in text_of(answer.text)
    assert 200 == browser.get("/runs/compare?a=kp:trace:a").status_code


def test_an_unknown_run_is_not_found(house):
    """On either side."""
    house.add("a", thoughts(1))
    assert 404 == house.visit().get("/runs/compare?a=kp:trace:a&b=kp:trace:none").status_code


def test_long_runs_are_bounded(house):
    """Steps beyond 2,000 are named."""
    page = compared(house, thoughts(2_500), thoughts(2_100))
    assert "500 steps of one run beyond the first 2,000 are not compared" in page


def test_markup_stays_text(house):
    """In titles and steps."""
    check(compared(house, full(), attacked()).replace("<!doctype html>", ""))
