"""Bringing an index up to date: in which order, and what happens beside others who write."""

from __future__ import annotations

import logging
import threading

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import CatalogQuery, FeedbackEntry, Progress, open_catalog, open_store
from grace_kp.store._catalog_files import place_of
from tests.store.listed import run
from tests.store.samples import put


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path}/t.db")
    yield opened
    opened.close()


@pytest.fixture
def catalog(store):
    opened = open_catalog(store)
    yield opened
    opened.close()


def found(catalog, **conditions):
    return [row.id.removeprefix("kp:trace:") for row in catalog.find(CatalogQuery(**conditions)).rows]


def at(number):
    return f"2026-01-01T00:00:{number:02d}.000Z"


def test_the_newest_runs_of_a_store_are_indexed_first(store, catalog, monkeypatch):
    """So that the first page is right at once, and runs that come meanwhile stand before those that are older."""
    monkeypatch.setattr("grace_kp.store._catalog.OLD_BATCH", 2)
    put(store, *(run(number, created_at=at(number)) for number in range(6)))
    assert Progress(done=2, total=6) == catalog.refresh(0)
    assert ["5", "4"] == found(catalog)
    put(store, run(7, created_at=at(7)))
    assert Progress(done=3, total=7) == catalog.refresh(0)
    assert ["7", "5", "4"] == found(catalog)
    catalog.refresh()
    assert ["7", "5", "4", "3", "2", "1", "0"] == found(catalog)


def test_progress_counts_what_is_not_indexed_yet(store, catalog, monkeypatch):
    """Few runs and many."""
    put(store, run("a"))
    catalog.refresh()
    put(store, run("b"), run("c"))
    assert Progress(done=1, total=3) == catalog.progress()
    monkeypatch.setattr("grace_kp.store._catalog.MOST_UNSEEN", 1)
    monkeypatch.setattr("grace_kp.store._catalog.COUNT_SECONDS", -1.0)
    assert Progress(done=1, total=3) == catalog.progress()


def test_a_run_that_is_replaced_before_it_is_indexed_counts_once(store, catalog, monkeypatch):
    """Its new version has a larger number."""
    monkeypatch.setattr("grace_kp.store._catalog.OLD_BATCH", 1)
    put(store, run("a"), run("b", created_at=at(1)))
    catalog.refresh(0)
    put(store, run("a", domain="code"))
    assert Progress(done=2, total=2) == catalog.refresh()
    assert ["a"] == found(catalog, domain="code")


def test_feedback_is_followed(store, catalog):
    """On runs that are indexed already, on new ones, and on later versions of both."""
    put(store, run("a"), run("b"))
    catalog.refresh()
    store.put_feedback(
        [FeedbackEntry("kp:trace:a", 1.0, "user", b"{}"), FeedbackEntry("kp:trace:a", 2.0, "user", b"{}")]
    )
    catalog.refresh()
    assert (["a"], ["b"]) == (found(catalog, feedback=True), found(catalog, feedback=False))
    put(store, run("a", domain="code"))
    catalog.refresh()
    assert ["a"] == found(catalog, feedback=True, domain="code")


def test_one_who_cannot_write_waits_for_the_other(store, catalog):
    """Nothing is raised; the rest is indexed afterwards."""
    put(store, run("a"))
    other = place_of(store)
    with other.writing():
        assert Progress(done=0, total=1) == catalog.refresh(0)
    assert Progress(done=1, total=1) == catalog.refresh()
    other.close()


def test_a_failure_is_logged_once_and_tried_again(store, catalog, monkeypatch, caplog):
    """In the background nobody else would tell."""
    monkeypatch.setattr("grace_kp.store._catalog.FAILED_SECONDS", 0.01)
    failures = []

    def fail(self):
        failures.append(1)
        if len(failures) < 4:
            raise OSError("the disk is gone")
        return (1, 0)

    put(store, run("a"))
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        monkeypatch.setattr("grace_kp.store._catalog_source.Source.changed", fail)
        catalog.follow()
        for _ in range(600):
            if found(catalog):
                break
            threading.Event().wait(0.1)
    assert ["a"] == found(catalog)
    assert 1 == sum("the disk is gone" in message for message in caplog.messages)


def test_refreshing_reports_what_is_wrong(store, catalog, monkeypatch):
    """As an error of the store."""

    def fail(self):
        raise OSError("the disk is gone")

    monkeypatch.setattr("grace_kp.store._catalog_source.Source.changed", fail)
    with pytest.raises(StoreError, match=r"t\.db\.index cannot be brought up to date: the disk is gone$"):
        catalog.refresh()
