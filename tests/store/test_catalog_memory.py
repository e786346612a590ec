"""A store in memory that is followed: what it drops is dropped from the index."""

from __future__ import annotations

from grace_kp.store import CatalogQuery, FeedbackEntry, Progress, open_catalog, open_store
from tests.store.listed import run
from tests.store.samples import put


def found(catalog, **conditions):
    return sorted(row.id.removeprefix("kp:trace:") for row in catalog.find(CatalogQuery(**conditions)).rows)


def test_runs_that_were_evicted_are_dropped():
    """With their feedback and figures."""
    store = open_store("memory:?max_traces=3")
    catalog = open_catalog(store)
    put(store, *(run(number) for number in range(3)))
    store.put_feedback([FeedbackEntry("kp:trace:0", 1.0, "user", b"{}")])
    catalog.refresh()
    assert ["0"] == found(catalog, feedback=True)
    put(store, run(3), run(4))
    assert Progress(done=3, total=3) == catalog.refresh()
    assert (["2", "3", "4"], []) == (found(catalog), found(catalog, feedback=True))
    assert 3 == catalog.figures("2026-01-01", "2026-01-01").total.runs


def test_texts_are_searched_whatever_their_case():
    """As in a file."""
    store = open_store("memory:")
    catalog = open_catalog(store)
    put(store, run("a", text="Straße 京都"), run("b", text="other"))
    catalog.refresh()
    assert (["a"], ["a"], []) == (found(catalog, text="STRASSE"), found(catalog, text="京"), found(catalog, text="東"))


def test_texts_are_read_by_number():
    """As from a file."""
    store = open_store("memory:")
    put(store, run("a", text="ß"))
    (text, missing) = store.changes().texts([1, 2])
    assert ("ss" in text, None) == (True, missing)
