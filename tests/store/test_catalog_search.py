"""Searching an index: pages, their cursors, and times that are up."""

from __future__ import annotations

import pytest

from grace_kp.store import CatalogQuery, open_catalog, open_store
from tests.store.listed import run
from tests.store.samples import put


def at(number):
    return f"2026-01-01T00:00:{number:02d}.000Z"


@pytest.fixture
def catalog(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    put(store, *(run(number, created_at=at(number), text="even" if number % 2 == 0 else "odd") for number in range(10)))
    opened = open_catalog(store)
    opened.refresh()
    yield opened
    opened.close()
    store.close()


def names(page):
    return [int(row.id.rpartition(":")[2]) for row in page.rows]


@pytest.mark.parametrize("few", [0, 2_000])
def test_pages_lead_to_each_other(catalog, monkeypatch, few):
    """Older, newer and back; the cursors are None where nothing follows."""
    monkeypatch.setattr("grace_kp.store._catalog_search.FEW", few)
    query = CatalogQuery(text="EVEN")
    first = catalog.find(query, limit=2)
    assert ([8, 6], None) == (names(first), first.newer)
    second = catalog.find(query, limit=2, before=first.older)
    third = catalog.find(query, limit=2, before=second.older)
    assert ([4, 2], [0], None) == (names(second), names(third), third.older)
    back = catalog.find(query, limit=2, after=third.newer)
    assert ([4, 2], True) == (names(back), back.older is not None)
    newest = catalog.find(query, limit=2, after=back.newer)
    assert ([8, 6], None, True) == (names(newest), newest.newer, newest.older is not None)


def test_a_page_beyond_the_end_leads_back(catalog):
    """For example the link of a page whose last run was deleted."""
    (oldest,) = catalog.find(CatalogQuery(until=at(0))).rows
    page = catalog.find(CatalogQuery(), before=oldest.position)
    assert ((), None) == (page.rows, page.older)
    assert 0 in names(catalog.find(CatalogQuery(), after=page.newer))


def test_a_page_between_two_positions_is_the_newer_part(catalog):
    """Both bounds hold."""
    rows = catalog.find(CatalogQuery()).rows
    page = catalog.find(CatalogQuery(), before=rows[2].position, after=rows[6].position)
    assert [6, 5, 4] == names(page)


def test_an_empty_text_is_no_condition(catalog):
    """A search field that was left empty."""
    assert 10 == len(catalog.find(CatalogQuery(text="")).rows)


def test_no_rows_are_no_page(catalog):
    """A limit of 0 asks for nothing."""
    assert () == catalog.find(CatalogQuery(), limit=0).rows


def test_a_search_upwards_whose_time_is_up_goes_on_upwards(catalog, monkeypatch):
    """The cursor for newer runs then leads on."""
    monkeypatch.setattr("grace_kp.store._catalog_search.FIRST_WINDOW", 2)
    rows = catalog.find(CatalogQuery()).rows
    after, found = rows[-1].position, []
    for _ in range(10):
        page = catalog.find(CatalogQuery(text="objective 9"), after=after, seconds=0)
        found += names(page)
        if page.newer is None:
            break
        after = page.newer
    assert [9] == found
