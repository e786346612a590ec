"""The catalog of a store: what it finds, in which order, and its figures, beside straightforward answers over the same runs."""

from __future__ import annotations

import itertools
import logging
import sqlite3
import subprocess
import sys
import tempfile
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.errors import StoreError
from grace_kp.runtime import record_of
from grace_kp.store import Catalog, CatalogQuery, FeedbackEntry, Progress, open_catalog, open_store
from tests.store.listed import ORDINARY, at, figures, found, meets, pages, plain, queries, run, runs
from tests.store.samples import put, set_back

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(runs(), min_size=1, max_size=6)),
        st.tuples(st.just("label"), st.integers(0, 11)),
        st.tuples(st.just("delete"), st.integers(0, 11)),
        st.tuples(st.just("refresh"), st.none()),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(params=["memory", "sqlite"])
def opened(request):
    with tempfile.TemporaryDirectory() as folder:
        made, numbers = [], itertools.count()

        def close_all():
            while made:
                made.pop().close()

        def open_both():
            close_all()  # an earlier example's
            made.append(
                open_store("memory:" if request.param == "memory" else f"sqlite:///{folder}/{next(numbers)}.db")
            )
            made.append(open_catalog(made[0]))
            return made[0], made[1]

        yield open_both
        close_all()


def follow_steps(store, catalog, steps):
    """Do what the steps say; return the runs that the store then holds, by id, and the ids of those with feedback."""
    held, labelled = {}, set()
    for verb, what in steps:
        if verb == "put":
            put(store, *what)
            held.update({made["id"]: made for made in what})
        elif verb == "refresh":
            catalog.refresh()
        elif f"kp:trace:{what}" in held:
            name = f"kp:trace:{what}"
            if verb == "label":
                store.put_feedback([FeedbackEntry(name, 1.0, "user", b'{"label":1}')])
                labelled.add(name)
            else:
                store.delete(id=name)
                gone = {name} | ({other for other in held if "parent" in held[other]["grace"]} if what == 0 else set())
                for other in gone & set(held):
                    # Deleting a run deletes the runs nested in it. All nested runs here name the run 0 as theirs.
                    del held[other]
                    labelled.discard(other)
    return held, labelled


@ORDINARY
@given(steps=STEPS, asked=st.lists(queries, min_size=1, max_size=6))
def test_it_finds_what_a_straightforward_filter_finds(opened, small_windows, steps, asked):
    """Any combination of conditions, by pages in both directions, after runs were replaced, labelled and deleted."""
    store, catalog = opened()
    held, labelled = follow_steps(store, catalog, steps)
    assert Progress(done=len(held), total=len(held)) == catalog.refresh()
    for query in [CatalogQuery(), *asked]:
        rows = pages(catalog, query)
        assert {name for name, made in held.items() if meets(made, labelled, query)} == {row.id for row in rows}
        assert sorted((row.created_at for row in rows), reverse=True) == [row.created_at for row in rows]
        assert len(rows) == len({row.id for row in rows})


@ORDINARY
@given(steps=STEPS)
def test_figures_are_sums_over_the_runs(opened, small_windows, steps):
    """By day, agent, status, level, model and bin; what was replaced or deleted leaves nothing behind."""
    store, catalog = opened()
    held, _ = follow_steps(store, catalog, steps)
    catalog.refresh()
    for first, last in (("1969-01-01", "1970-01-01"), ("2026-01-01", "2026-12-31"), ("2026-01-01", "2026-01-01")):
        assert figures(held.values(), first, last) == plain(catalog.figures(first, last))
    bots = [made for made in held.values() if made["grace"].get("name") == "bot"]
    assert figures(bots, "2026-01-01", "2026-12-31") == plain(catalog.figures("2026-01-01", "2026-12-31", agent="bot"))


def test_a_row_shows_the_run(opened):
    store, catalog = opened()
    put(
        store,
        run(
            "a", agent="京都bot", domain="code", score=0.25, confidence=0.75, success=False, created_at="2026-01-02T03:04:05.678Z", status="failed",
            duration_ms=12.5, decisions=[{"level": "confirm"}, {"level": "notify"}], usage={"input_tokens": 3, "output_tokens": 4}, user="ana",
            session="s", tags=["x", "y"], parent={"trace_id": "kp:trace:p"}, awaits=["judgement"], text="…" * 400,
        ),
    )  # fmt: skip
    catalog.refresh()
    (row,) = catalog.find(CatalogQuery()).rows
    assert ("kp:trace:a", "2026-01-02T03:04:05.678Z", "京都bot", "code", "failed", False) == (
        row.id, row.created_at, row.agent, row.domain, row.status, row.success,
    )  # fmt: skip
    assert (0.25, 0.75, "confirm", 12.5, 1, 2, 7) == (
        row.score, row.confidence, row.level, row.duration_ms, row.steps, row.gates, row.tokens,
    )  # fmt: skip
    assert ("ana", "s", ("x", "y"), "kp:trace:p", True) == (row.user, row.session, row.tags, row.parent, row.awaits)
    assert f"objective a {'…' * 288}" == row.objective


def test_names_are_listed_by_frequency(opened):
    store, catalog = opened()
    put(
        store,
        run("a", agent="bot"),
        run("b", agent="bot", tags=["x"]),
        run("c", agent="ant", scores=[{"name": "q", "score": 1}]),
    )
    catalog.refresh()
    assert (["bot", "ant"], ["default"], ["completed"], ["x"], ["q"]) == tuple(
        catalog.names(kind) for kind in ("agent", "domain", "status", "tag", "scorer")
    )
    assert ["bot"] == catalog.names("agent", 1)
    with pytest.raises(ValueError, match=r"^kind must be one of agent, domain, status, tag, scorer, not 'user'$"):
        catalog.names("user")


def test_more_runs_in_a_millisecond_than_positions(opened):
    """Their order stays total, and times are compared exactly all the same."""
    store, catalog = opened()
    put(store, *(run(number) for number in range(1_100)), run("later", created_at="2026-01-01T00:00:00.001Z"))
    catalog.refresh()
    assert 1_101 == len(pages(catalog, CatalogQuery(), 500))
    assert 1_100 == len(pages(catalog, CatalogQuery(until="2026-01-01T00:00:00.000Z"), 500))
    assert ["kp:trace:later"] == [row.id for row in pages(catalog, CatalogQuery(since="2026-01-01T00:00:00.001Z"), 500)]


def test_a_search_whose_time_is_up_states_how_far_it_got(opened, small_windows):
    store, catalog = opened()
    put(
        store,
        *(run(number, created_at=at(number), text="needle" if number == 3 else "hay") for number in range(40)),
    )
    catalog.refresh()
    query, before, found, calls = CatalogQuery(min_score=0.5, text="needle"), None, [], 0
    while calls == 0 or before is not None:
        page = catalog.find(query, before=before, seconds=0)
        assert (page.searched_to is None) is (page.older is None)
        found += page.rows
        before, calls = page.older, calls + 1
    assert ["kp:trace:3"] == [row.id for row in found]
    assert calls > 1


@pytest.fixture
def has_caught_up(monkeypatch):
    advance, is_done = Catalog._advance, threading.Event()

    def watched(self, **options):
        is_current = advance(self, **options)
        if "last" in found(self):
            is_done.set()
        return is_current

    monkeypatch.setattr(Catalog, "_advance", watched)
    return is_done


def test_it_follows_in_the_background(opened, has_caught_up):
    store, catalog = opened()
    catalog.follow()
    put(store, run("last"))
    assert has_caught_up.wait(60)
    assert ["last"] == found(catalog)


def test_a_file_that_is_gone_is_reported_and_not_created(tmp_path):
    """What was indexed can still be listed, and the file is followed again when it is back."""
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    put(store, run("a"))
    catalog = open_catalog(store)
    catalog.refresh()
    store.close()
    store.path.rename(tmp_path / "away.db")
    with pytest.raises(StoreError, match=r"cannot be brought up to date: unable to open database file$"):
        catalog.refresh()
    assert ["kp:trace:a"] == [row.id for row in catalog.find(CatalogQuery()).rows]
    assert not store.path.exists()
    (tmp_path / "away.db").rename(store.path)
    put(store, run("b"))
    assert Progress(done=2, total=2) == catalog.refresh()
    catalog.close()
    store.close()


def test_a_store_without_changes_is_refused():
    with pytest.raises(
        StoreError, match=r"^object cannot be followed by a catalog; use memory: or sqlite:///path\.db$"
    ):
        open_catalog(object())


def test_processes_that_index_one_store_take_turns(tmp_path):
    url = f"sqlite:///{tmp_path}/t.db"
    store = open_store(url)
    for start in range(0, 1_500, 500):
        store.put([record_of(run(number, agent="bot")) for number in range(start, start + 500)])
    program = f"""if True:
        from grace_kp.store import open_catalog, open_store
        catalog = open_catalog(open_store({url!r}))
        print(catalog.refresh().done)
        catalog.close()
    """
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert ["1500\n"] * 3 == [process.communicate(timeout=120)[0] for process in started]
    catalog = open_catalog(store)
    assert Progress(done=1_500, total=1_500) == catalog.progress()
    assert 1_500 == catalog.figures("2026-01-01", "2026-01-01").total.runs
    catalog.close()
    store.close()


def test_the_newest_runs_of_a_store_are_indexed_first(store, catalog, monkeypatch):
    """So that the first page is right at once, and runs that come meanwhile stand before those that are older."""
    monkeypatch.setattr("grace_kp.store._catalog.OLD_BATCH", 2)
    put(store, *(run(number, created_at=at(number)) for number in range(6)))
    assert Progress(done=2, total=6) == catalog.refresh(0)
    assert ["4", "5"] == found(catalog)
    put(store, run(7, created_at=at(7)))
    assert Progress(done=3, total=7) == catalog.refresh(0)
    assert ["4", "5", "7"] == found(catalog)
    catalog.refresh()
    assert ["0", "1", "2", "3", "4", "5", "7"] == found(catalog)


def test_progress_counts_what_is_not_indexed_yet(store, catalog, monkeypatch):
    put(store, run("a"))
    catalog.refresh()
    put(store, run("b"), run("c"))
    assert Progress(done=1, total=3) == catalog.progress()
    monkeypatch.setattr("grace_kp.store._catalog.MOST_UNSEEN", 1)
    assert Progress(done=1, total=3) == catalog.progress()


def test_one_who_cannot_write_waits_for_the_other(store, catalog):
    put(store, run("a"))
    other = open_catalog(store)
    with other._writing():
        assert Progress(done=0, total=1) == catalog.refresh(0)
    assert Progress(done=1, total=1) == catalog.refresh()
    other.close()


def test_a_failure_is_logged_once_and_tried_again(store, catalog, monkeypatch, caplog, has_caught_up):
    monkeypatch.setattr("grace_kp.store._catalog.FAILED_SECONDS", 0.01)
    failures = []

    def fail(self):
        failures.append(1)
        if len(failures) < 4:
            raise OSError("the disk is gone")
        return (1, 0)

    put(store, run("last"))
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        monkeypatch.setattr("grace_kp.store._catalog_files.Source.newest_numbers", fail)
        catalog.follow()
        assert has_caught_up.wait(60)
    assert 1 == sum("the disk is gone" in message for message in caplog.messages)


def changes_of(store, above=0):
    return [found.id.removeprefix("kp:trace:") for found in store.changes().after(above, 100)]


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_the_number_of_a_deleted_run_is_not_used_again(url, tmp_path):
    store = open_store(url if url == "memory:" else f"sqlite:///{tmp_path}/t.db")
    put(store, run("a"), run("b"), run("a"))
    newest = store.changes().newest_numbers()[0]
    store.delete(id="kp:trace:a")
    put(store, run("c"))
    assert ["c"] == changes_of(store, newest)
    store.clear()
    put(store, run("d"))
    assert ["d"] == changes_of(store, newest + 1)
    store.close()


def test_runs_of_a_file_of_an_earlier_version_keep_their_numbers(store):
    """So its index stays valid. A process of that version that still writes is followed, too."""
    put(store, *(run(number) for number in range(6)))
    before = [(found.number, found.id) for found in store.changes().after(0, 100)]
    path = store.path
    store.close()
    with sqlite3.connect(path) as connection:
        set_back(connection, 7)
    connection.close()
    reader = open_store(f"sqlite:///{path}", create=False)
    assert before == [(found.number, found.id) for found in reader.changes().after(0, 100)]
    newest = before[-1][0]
    assert (newest, 6, 2) == (*reader.changes().extent(), reader.changes().unseen(newest - 2, 100))
    put(store, run("new"), run("1"))
    columns = "id, created_at, domain, score, success, status, text, data"
    with sqlite3.connect(path) as connection:  # as an earlier version does
        connection.execute(
            f"INSERT OR REPLACE INTO traces ({columns}) SELECT {columns} FROM traces WHERE id = 'kp:trace:2'"
        )
    connection.close()
    assert ["new", "1", "2"] == changes_of(reader, newest)
    reader.close()
