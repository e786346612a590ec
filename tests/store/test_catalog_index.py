"""The index of a catalog: what it keeps of a run, the figures that it sums, and the plans and pages of a search."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.runtime import record_of
from grace_kp.store import CatalogQuery, Record, open_catalog, open_store
from grace_kp.store._catalog_facts import (
    EARLIEST,
    facts_of,
    instant,
    milliseconds,
    number_of,
    read_figures,
    whole,
)
from grace_kp.store._catalog_files import StoredRun
from grace_kp.store._catalog_index import (
    END_OF_TEXT,
    IndexWriter,
    create_tables,
    has_trigrams,
    is_current,
)
from grace_kp.store._catalog_search import MOST_TERMS, MOST_TRIGRAMS, Search, expression_of
from grace_kp.store._query import searchable
from tests.store.listed import at, judged, run
from tests.store.samples import put

JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.sampled_from(("silent", "\ud800", 10**400))
    ),
    lambda parts: st.one_of(st.lists(parts, max_size=3), st.dictionaries(st.text(max_size=5), parts, max_size=3)),
    max_leaves=5,
)  # fmt: skip
FIELDS = (
    "name",
    "status",
    "tags",
    "user",
    "session",
    "metadata",
    "parent",
    "decisions",
    "scores",
    "usage",
    "evaluation",
    "awaits",
    "duration_ms",
    "confidence",
)


def stored(data, created_at="2026-01-01T00:00:00.000Z"):
    return StoredRun(1, "kp:trace:a", created_at, "default", 0.5, True, "completed", "text", data)


def facts(made):
    return facts_of(stored(json.dumps(made).encode()), json.loads)


@given(
    grace=st.dictionaries(st.sampled_from(FIELDS), JSON),
    parts=st.dictionaries(st.sampled_from(("metadata", "task", "outcome", "steps", "grace")), JSON),
)
def test_a_document_of_any_shape_is_indexed(grace, parts):
    data = json.dumps({"metadata": {}, "task": {}, "outcome": {}, "grace": grace, **parts}).encode()
    found = facts_of(stored(data), json.loads)
    json.dumps(found.shown, ensure_ascii=False).encode()
    assert found.is_readable


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/t.db"])
@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b"\xff", b'{"grace": ' + b"[" * 100_000])
def test_a_document_that_is_none_is_counted_and_found_by_its_columns(tmp_path, url, data):
    store = open_store(url.format(tmp_path))
    store.put([Record("kp:trace:a", "once", "code", 0.5, True, "odd", "TEXT", data), *[]])
    catalog = open_catalog(store)
    assert 1 == catalog.refresh().unreadable
    (row,) = catalog.find(CatalogQuery(domain="code", status="odd", text="text", level="none")).rows
    assert ("once", "", None) == (row.created_at, row.agent, row.confidence)
    store.put([Record("kp:trace:a", "once", "code", 0.5, True, "odd", "TEXT", b"{}")])
    assert 0 == catalog.refresh().unreadable
    catalog.close()
    store.close()


def test_half_a_surrogate_pair_is_stored_as_a_question_mark():
    found = facts(run("a", agent="\ud800", user="\udfff", tags=["\ud800"]))
    assert ("?", "?", ["?"]) == (found.shown[1], found.shown[13], found.shown[15])


def test_judgements_before_gates_count_as_well():
    decisions = [
        {"level": "confirm", "evaluation": judged("large", 7)},
        {"evaluation": {"self_evaluation": {"fallback": True}}},
    ]
    calls, tokens, levels, models, _ = facts(
        run("a", evaluation=judged("small", 5, fallback=True), decisions=decisions)
    ).shown[18:]
    assert (2, 12, {"confirm": 1}) == (calls, tokens, levels)
    assert {"small": [1, 5, 1], "large": [1, 7, 0], "unknown": [0, 0, 1]} == models


def test_decisions_are_counted_by_alarm():
    """Each name once per decision; what is not a name of an alarm does not count."""
    stated = [
        [{"name": "beside"}, {"name": "beside"}, {"name": "nowhere"}],
        [{"name": "beside"}],
        [{"name": []}, 3, {"name": "other"}],
        "beside",
    ]
    assert {"beside": 2, "nowhere": 1} == facts(run("a", decisions=[{"alarms": each} for each in stated])).shown[-1]


def test_a_run_that_was_not_assessed_has_no_confidence():
    made = run("a", confidence=0.5)
    assert 0.5 == facts(made).shown[6]
    del made["grace"]["confidence"]
    assert facts(made).shown[6] is None
    del made["grace"]["status"]
    assert 0.5 == facts(made).shown[6]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:01.002Z", 1_002), ("1969-12-31T23:59:59.999Z", -1), ("1970-01-01T01:00:00+01:00", 0), ("1970-01-01", 0),
        ("0000-01-01T00:00:00Z", EARLIEST), ("soon", EARLIEST),
    ],
)  # fmt: skip
def test_times_are_milliseconds(text, at):
    assert at == milliseconds(text)


@given(at=st.integers(milliseconds("0001-01-01"), milliseconds("9999-12-31")))
def test_milliseconds_become_the_same_time_again(at):
    assert at == milliseconds(instant(at))


@pytest.mark.parametrize(
    ("value", "number", "count"),
    [
        (3, 3.0, 3),
        (-1, -1.0, 0),
        (True, None, 0),
        ("3", None, 0),
        (float("inf"), None, 0),
        (float("nan"), None, 0),
        (10**400, None, 0),
    ],
)
def test_numbers_that_sums_cannot_hold_count_as_absent(value, number, count):
    assert (number, count) == (number_of(value), whole(value))


@pytest.fixture
def store():
    return open_store("memory:")


def figures(store, *period, **conditions):
    catalog = open_catalog(store)
    catalog.refresh()
    return catalog.figures(*period, **conditions)


def test_agents_beyond_fifty_are_summed(store):
    put(
        store,
        *(run(f"{number}-{turn}", agent=f"a{number}") for number in range(60) for turn in range(1 + (number < 50))),
    )
    found = figures(store, "2026-01-01", "2026-01-01")
    assert (51, "…", 10, 110) == (len(found.agents), found.agents[-1].name, found.agents[-1].runs, found.total.runs)
    assert {2} == {group.runs for group in found.agents[:-1]}


def test_a_very_long_period_is_cut_to_its_runs(store):
    put(store, run("a", created_at="2026-01-01T00:00:00.000Z"), run("b", created_at="2026-01-03T00:00:00.000Z"))
    found = figures(store, "0001-01-01", "9999-12-31")
    assert (2, ["2026-01-01", "2026-01-02", "2026-01-03"]) == (found.total.runs, [day.name for day in found.days])


@pytest.mark.parametrize(
    ("period", "message"),
    [
        (("today", "2026-01-01"), "since must be a day like 2026-11-25, not 'today'"),
        (("2026-01-01", "2026-13-01"), "until must be a day like 2026-11-25, not '2026-13-01'"),
    ],
)
def test_a_day_that_is_none_is_refused(store, period, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        figures(store, *period)


def test_runs_that_wait_are_counted_apart(store):
    statuses = (("waiting", True), ("suspended", False), ("failed", False), ("completed", True))
    put(store, *(run(str(n), status=status, success=ok) for n, (status, ok) in enumerate(statuses)))
    total = figures(store, "2026-01-01", "2026-01-01").total
    assert (4, 1, 2) == (total.runs, total.failed, total.waiting)


def numbered(number, name, **fields):
    r = record_of(run(name, **fields))
    return StoredRun(number, r.id, r.created_at, r.domain, r.score, r.success, r.status, r.text, r.data)


@pytest.fixture
def connection(empty):
    create_tables(empty, identity="test", with_words=True)
    return empty


def test_a_run_keeps_its_position_unless_its_time_changes(connection):
    writer = IndexWriter(connection)
    writer.add([numbered(1, "a"), numbered(2, "b")], set())
    before = connection.execute("SELECT id, position FROM shown ORDER BY id").fetchall()
    writer.add([numbered(3, "a", domain="code")], set())
    assert before == connection.execute("SELECT id, position FROM shown ORDER BY id").fetchall()
    writer.add([numbered(4, "a", created_at="2026-01-01T00:00:00.001Z")], set())
    assert ["kp:trace:b", "kp:trace:a"] == [
        name for (name,) in connection.execute("SELECT id FROM shown ORDER BY position")
    ]


@pytest.fixture
def empty():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    yield opened
    opened.close()


def test_an_index_belongs_to_one_store_and_version(empty):
    assert is_current(empty, "a") is False
    create_tables(empty, identity="a", with_words=False)
    assert (True, False) == (is_current(empty, "a"), is_current(empty, "b"))
    empty.execute("UPDATE facts SET value = 0 WHERE name = 'version'")
    assert is_current(empty, "a") is False


def names(page):
    return [int(row.id.rpartition(":")[2]) for row in page.rows]


@pytest.fixture
def catalog(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    put(store, *(run(number, created_at=at(number), text="even" if number % 2 == 0 else "odd") for number in range(10)))
    opened = open_catalog(store)
    opened.refresh()
    yield opened
    opened.close()
    store.close()


def test_a_page_beyond_the_end_leads_back(catalog):
    (oldest,) = catalog.find(CatalogQuery(until=at(0))).rows
    page = catalog.find(CatalogQuery(), before=oldest.position)
    assert ((), None) == (page.rows, page.older)
    assert 0 in names(catalog.find(CatalogQuery(), after=page.newer))


def test_a_page_between_two_positions_is_the_newer_part(catalog):
    rows = catalog.find(CatalogQuery()).rows
    page = catalog.find(CatalogQuery(), before=rows[2].position, after=rows[6].position)
    assert [6, 5, 4] == names(page)


def test_a_search_upwards_whose_time_is_up_goes_on_upwards(catalog, monkeypatch):
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
def filled():
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
    opened = open_catalog(store)
    opened.refresh()
    yield opened
    opened.close()


def plans(connection, ask):
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
def test_a_page_is_read_in_order(filled, conditions, walked):
    """From the newest run on, or from the runs with a name; only as many as fill the page, so nothing is sorted."""
    with filled._reading() as connection:
        search = Search(connection, filled._source, 1.0)
        found = plans(connection, lambda _: search.page(CatalogQuery(**conditions), None, None, 5))
    assert walked in found
    assert [] == [plan for plan in found if "USE TEMP B-TREE" in plan or (plan.startswith("SCAN r") and conditions)]


def test_figures_are_read_from_sums(filled):
    """A period is a range of their key. No run is read."""
    with filled._reading() as connection:
        found = plans(connection, lambda opened: read_figures(opened, "2026-01-01", "2026-01-31", None))
    assert "SEARCH rollups USING PRIMARY KEY (agent=? AND day>? AND day<?)" in found
    assert "SEARCH tallies USING PRIMARY KEY (agent=? AND day>? AND day<?)" in found
    assert [] == [plan for plan in found if "runs" in plan.split() or plan.startswith("SCAN r")]


@pytest.fixture(scope="module")
def words():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    if not has_trigrams(opened):
        pytest.skip("this SQLite has no trigrams")
    create_tables(opened, identity="test", with_words=True)
    yield opened
    opened.close()


@given(before=st.text(max_size=6), text=st.text(min_size=1, max_size=40), after=st.text(max_size=6))
def test_every_text_that_contains_it_matches(words, before, text, after):
    """Of any length and in any script, quotation marks and operators included, at the end too."""
    words.execute("INSERT INTO words (words) VALUES ('delete-all')")
    words.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (searchable(before + text + after) + END_OF_TEXT,))
    wanted = searchable(text)
    if wanted not in searchable(before + text + after):
        return
    expression = expression_of(words, wanted)
    assert [(1,)] == words.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


def test_a_short_text_is_looked_up_by_its_continuations(words):
    words.execute("INSERT INTO words (words) VALUES ('delete-all')")
    texts = [(number, f"a{chr(0x4E00 + number)}{END_OF_TEXT}") for number in range(MOST_TERMS + 1)]
    words.executemany("INSERT INTO words (rowid, text) VALUES (?,?)", texts)
    assert ("", None) == (expression_of(words, "天"), expression_of(words, "a"))


def test_a_long_text_is_looked_up_by_some_of_its_trigrams(words):
    assert expression_of(words, "".join(chr(0x4E00 + n) for n in range(2_000))).count(" AND ") < MOST_TRIGRAMS
