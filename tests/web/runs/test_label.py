"""Feedback by a button."""

from __future__ import annotations

import pytest

from grace_kp.errors import StoreError
from tests.pages.reading import Elements
from tests.web.runs.house import thoughts


def labels(house, name):
    found = (house.grace.store.get(name).grace or {}).get("feedback", [])
    return [(entry["correct"], entry["by"], entry["source"], entry.get("note")) for entry in found]


@pytest.mark.parametrize(
    ("value", "stored", "word"), [("1", True, "right"), ("0.5", 0.5, "partly"), ("0", False, "wrong")]
)
def test_a_button_stores_a_label(house, value, stored, word):
    """Under the name of the person; the page shows it."""
    name = house.add("a", thoughts(1))
    browser = house.visit(name="ben")
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": value, "note": " a remark "})
    assert (303, f"/runs/{name}#labels") == (answer.status_code, answer.headers["location"])
    assert [(stored, "ben", "user", "a remark")] == labels(house, name)
    text = " ".join(Elements(browser.get(f"/runs/{name}").text).text.split())
    assert f"{word} ben user" in text
    assert "a remark" in text


def test_a_program_that_an_application_lets_onto_the_pages_stays_a_program(house):
    """Its label is marked, and the page says so."""
    name = house.add("a", thoughts(1))
    browser = house.visit(name="bot", role="agent")
    browser.post_form(f"/runs/{name}/feedback", {"correct": "1"})
    (entry,) = house.grace.store.get(name).grace["feedback"]
    assert ("bot", True) == (entry["by"], entry["program"])
    assert "bot (program)" in browser.get(f"/runs/{name}").text


def test_a_second_label_stays_beside_the_first(house):
    """Both are seen."""
    name = house.add("a", thoughts(1))
    browser = house.visit()
    for value in ("1", "0"):
        browser.post_form(f"/runs/{name}/feedback", {"correct": value})
    assert [True, False] == [label[0] for label in labels(house, name)]
    assert 2 == browser.get(f"/runs/{name}").text.count("<span>ana</span>") - browser.get(f"/runs/{name}").text.count(
        'class="who"'
    )


def test_a_button_in_the_list_leads_back_to_it(house):
    """With the filters and the page; never to another site."""
    name = house.add("a", thoughts(1, status="completed"))
    browser = house.visit()
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": "1", "list": "status=completed&labelled=old"})
    assert "/runs?status=completed&labelled=kp%3Atrace%3Aa" == answer.headers["location"]
    assert "The label was stored" in browser.get(answer.headers["location"]).text
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": "1", "list": "//evil.example/\r\nX: y"})
    assert answer.headers["location"].startswith("/runs?")
    assert "x" not in answer.headers


@pytest.mark.parametrize("value", ["", "2", "nan", "0.7", "right"])
def test_other_values_are_refused(house, value):
    """Nothing is stored."""
    name = house.add("a", thoughts(1))
    assert 422 == house.visit().post_form(f"/runs/{name}/feedback", {"correct": value}).status_code
    assert [] == labels(house, name)


def test_a_label_needs_a_run_and_the_right(house):
    """An unknown run is not found; a viewer is refused."""
    name = house.add("a", thoughts(1))
    assert 404 == house.visit().post_form("/runs/kp:trace:none/feedback", {"correct": "1"}).status_code
    assert 403 == house.visit(role="viewer").post_form(f"/runs/{name}/feedback", {"correct": "1"}).status_code
    assert [] == labels(house, name)


@pytest.mark.parametrize("path", ["/runs/kp:trace:a/feedback", "/api/v1/runs/kp:trace:a/feedback"])
def test_a_store_that_cannot_be_written_does_not_tell_where_it_is(house, monkeypatch, caplog, path):
    """Its message is in the log."""

    def fail(*_, **__):
        raise StoreError("cannot write /secret/place.db: disk full")

    house.add("a", thoughts(1))
    browser = house.visit()
    monkeypatch.setattr(house.grace, "feedback", fail)
    send = browser.post_json if path.startswith("/api") else browser.post_form
    answer = send(path, {"correct": True} if path.startswith("/api") else {"correct": "1"})
    assert 503 == answer.status_code
    assert "the store cannot be read or written at the moment" in answer.text
    assert "place" not in answer.text
    assert "place.db: disk full" in caplog.text
