"""Searching an index: pages, their cursors, times that are up, the smallest set of runs that is walked, and expressions for words."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.store import CatalogQuery, open_catalog, open_store
from grace_kp.store._catalog import Follower
from grace_kp.store._catalog_facts import read_figures
from grace_kp.store._catalog_files import place_of
from grace_kp.store._catalog_index import END_OF_TEXT, create_tables, has_trigrams
from grace_kp.store._catalog_search import MOST_TERMS, MOST_TRIGRAMS, Search, expression_of, plan_of
from grace_kp.store._query import searchable
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


@pytest.fixture
def place():
    store = open_store("memory:")
    put(
        store,
        *(
            run(
                number,
                agent="rare" if number == 0 else "frequent",
                user=f"user-{number % 4}",
                tags=["x"] if number < 10 else [],
            )
            for number in range(40)
        ),
    )
    opened = place_of(store)
    follower = Follower(opened)
    while not follower.advance():
        pass
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("conditions", "walked"),
    [
        ({}, 40), ({"agent": "frequent"}, 39), ({"agent": "frequent", "min_score": 0.1}, 40), ({"agent": "rare"}, 1), ({"user": "user-1"}, 10), ({"user": "user-1", "agent": "rare"}, 1),
        ({"tags": ["x"], "agent": "frequent"}, 10), ({"min_score": 0.1}, 40),
    ],
)  # fmt: skip
def test_the_rarest_name_is_walked(place, conditions, walked):
    """Frequent values of a column are compared in passing."""
    with place.reading() as connection:
        assert walked == plan_of(CatalogQuery(**conditions), connection).driver_runs


@pytest.mark.parametrize(
    "conditions", [{"agent": "nobody"}, {"tags": ["x", "y"]}, {"level": "confirm"}, {"feedback": True}]
)
def test_a_name_that_no_run_has_ends_the_search(place, conditions):
    """Without a look at any run."""
    with place.reading() as connection:
        assert plan_of(CatalogQuery(**conditions), connection) is None


def test_a_time_that_is_none_is_refused(place):
    """As `Query` does."""
    with place.reading() as connection, pytest.raises(ValueError, match=r"^since must be a time like"):
        plan_of(CatalogQuery(since="soon"), connection)


def plans(connection, ask):
    """The plans of what SQLite reads for a question."""
    statements = []
    connection.set_trace_callback(statements.append)
    ask(connection)
    connection.set_trace_callback(None)
    explained = [connection.execute(f"EXPLAIN QUERY PLAN {sql}") for sql in statements if sql.startswith("SELECT")]
    return [detail for rows in explained for *_, detail in rows]


@pytest.mark.parametrize(
    ("conditions", "walked"),
    [
        ({}, "SCAN r"),
        ({"since": "2026-01-01"}, "SEARCH r USING INTEGER PRIMARY KEY (rowid>?)"),
        ({"tags": ["x"]}, "SEARCH m USING PRIMARY KEY (value=?)"),
        ({"user": "user-1", "agent": "frequent", "min_score": 0.1}, "SEARCH m USING PRIMARY KEY (value=?)"),
    ],
)
def test_a_page_is_read_in_order(place, conditions, walked):
    """From the newest run on, or from the runs with a name; only as many as fill the page, so nothing is sorted."""
    with place.reading() as connection:
        search = Search(connection, place.source, 1.0)
        found = plans(connection, lambda _: search.page(CatalogQuery(**conditions), None, None, 5))
    assert walked in found
    assert [] == [plan for plan in found if "USE TEMP B-TREE" in plan or (plan.startswith("SCAN r") and conditions)]


def test_figures_are_read_from_sums(place):
    """A period is a range of their key. No run is read."""
    with place.reading() as connection:
        found = plans(connection, lambda opened: read_figures(opened, "2026-01-01", "2026-01-31", None))
    assert "SEARCH rollups USING PRIMARY KEY (agent=? AND day>? AND day<?)" in found
    assert "SEARCH tallies USING PRIMARY KEY (agent=? AND day>? AND day<?)" in found
    assert [] == [plan for plan in found if "runs" in plan.split() or plan.startswith("SCAN r")]


@pytest.fixture(scope="module")
def connection():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    if not has_trigrams(opened):
        pytest.skip("this SQLite has no trigrams")
    create_tables(opened, identity="test", with_words=True)
    yield opened
    opened.close()


@given(before=st.text(max_size=6), text=st.text(min_size=1, max_size=40), after=st.text(max_size=6))
def test_every_text_that_contains_it_matches(connection, before, text, after):
    """Of any length and in any script, quotation marks and operators included, at the end too."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    connection.execute(
        "INSERT INTO words (rowid, text) VALUES (1, ?)", (searchable(before + text + after) + END_OF_TEXT,)
    )
    wanted = searchable(text)
    if wanted not in searchable(before + text + after):
        return
    expression = expression_of(connection, wanted)
    assert [(1,)] == connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


def test_a_short_text_that_no_run_contains_has_no_terms(connection):
    """The search ends at once."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    assert "" == expression_of(connection, "京")


def test_a_short_text_with_many_continuations_has_no_expression(connection):
    """Reading texts finds it sooner."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    texts = [(number, f"a{chr(0x4E00 + number)}{END_OF_TEXT}") for number in range(MOST_TERMS + 1)]
    connection.executemany("INSERT INTO words (rowid, text) VALUES (?,?)", texts)
    assert expression_of(connection, "a") is None


def test_a_long_text_is_looked_up_by_some_of_its_trigrams(connection):
    """A pasted page is no reason for a thousand lookups."""
    assert expression_of(connection, "".join(chr(0x4E00 + n) for n in range(2_000))).count(" AND ") < MOST_TRIGRAMS
