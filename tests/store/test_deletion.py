"""Deletion: what is selected, which rows go, that no byte of them is left in any file, and the retention of old runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.runtime import record_of
from grace_kp.store import JournalEntry, Selection, open_store
from grace_kp.store._deletion import delete_rows
from grace_kp.store._schema import overwrite
from tests.store.samples import MARK, document, holding, left, put


def test_retention_deletes_old_runs_when_new_ones_are_written(tmp_path):
    url = f"sqlite:///{tmp_path}/t.db"
    then = f"{datetime.now(UTC) - timedelta(days=31):%Y-%m-%dT%H:%M:%SZ}"
    store = open_store(url)
    put(store, document("old", created_at=then, text=MARK))
    for days, expected in ((0, 2), (30, 2)):
        with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None, retention_days=days) as grace:
            with grace.run("new"):
                pass
            assert grace.flush()
        assert expected == store.count()
    assert [] == holding(tmp_path)
    put(store, document("old", created_at=then))
    assert 0 == store.retain(30)
    store.close()


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "delete needs a condition: id, session, user or older_than; use clear() to delete everything"),
        ({"id": ""}, "id must be a non-empty string, not ''"),
        ({"user": 3}, "user must be a non-empty string, not 3"),
        ({"older_than": "soon"}, "older_than must be a time like 2026-01-02T03:04:05Z or 2h, not 'soon'"),
    ],
)
def test_a_selection_names_what_it_cannot_use(conditions, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Selection(**conditions)


@pytest.mark.parametrize(
    ("age", "day"), [(timedelta.max, "0001-01-01"), (timedelta.min, "9999-12-31"), ("2026-01-02", "2026-01-02")]
)
def test_an_age_beyond_all_dates_means_none_or_all(age, day):
    assert f"{day}T00:00:00.000Z" == Selection(older_than=age).query.until


ROOT = Path(__file__).resolve().parents[2]


def mark_of(name):
    """Return a text that is too long to be found by chance among the checksums and salts of a write-ahead log."""
    return f"<run-number-{name}>"


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 40, 400, 2_000, 30_000]), st.booleans()), max_size=25),
    st.integers(0, 12),
)
def test_no_byte_of_a_deleted_run_is_left(changes, victim):
    """Whatever was written, replaced and deleted before, in the database and beside it."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/t.db")
        for name, size, journaled in changes:
            text = mark_of(name) * size
            if journaled:
                store.journal([JournalEntry(f"kp:trace:{name}", 0, json.dumps({"text": text}).encode())])
            ended = [f"kp:trace:{name}"]
            store.put(
                [
                    record_of(
                        document(name, text=text, user=f"u{mark_of(name)}", metadata={f"k{mark_of(name)}": text[:50]})
                    )
                ],
                ended=ended,
            )
        report = store.delete(id=f"kp:trace:{victim}")
        assert (victim in {name for name, *_ in changes}, True) == (bool(report), report.clean)
        assert [] == holding(folder, mark_of(victim))
        kept = {name for name, *_ in changes} - {victim}
        assert sorted(map(str, kept)) == left(store)
        store.close()


def marked_run(grace):
    @grace.tool
    def search(text):
        return text * 100

    with grace.run(MARK, user="ana", tags=[MARK], metadata={"k": MARK}) as run:
        grace.thought(MARK * 500)
        search(MARK)
        grace._writer._write_journal()
    return run.id


def test_a_recorded_run_leaves_nothing_in_any_file(tmp_path):
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        grace.store.report("1", json.dumps({"troubles": {"x": 1}, "last_trouble": MARK, "dropped": 0}).encode())
        run = marked_run(grace)
        with grace.run("kept"):
            pass
        report = grace.store.delete(id=run)
        assert (1, True, "") == (report, report.clean, report.remains)
        assert [] == holding(tmp_path)
        assert ["kept"] == [trace.task.objective for trace in grace.store.query()]
        reports = [json.loads(data) for data in grace.store.reports()]  # also this process's own, after other tests
        assert {"troubles": {"x": 1}, "last_trouble": None, "dropped": 0} in reports


def test_beside_a_reader_the_report_says_what_remains(tmp_path, store):
    store._connection.execute("PRAGMA busy_timeout = 1")
    put(store, document("a", text=MARK), document("b"))
    reader = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM traces").fetchall()
    report = store.delete(id="kp:trace:a")
    assert (1, False) == (report, report.clean)
    assert "another connection reads" in report.remains
    assert [] != holding(tmp_path)
    reader.execute("COMMIT")
    reader.close()
    again = store.delete(id="kp:trace:a")
    assert (0, True) == (again, again.clean)
    assert [] == holding(tmp_path)


class Interrupted:
    """A connection that calls a function after it has emptied the write-ahead log."""

    def __init__(self, connection, interrupt):
        self.connection, self.interrupt = connection, interrupt

    def execute(self, statement, *values):
        row = self.connection.execute(statement, *values).fetchone()
        if "wal_checkpoint" in statement:
            self.interrupt()
        return SimpleNamespace(fetchone=lambda: row)


def test_a_delete_by_another_process_meanwhile_is_cleaned_up_too(tmp_path):
    """A process that has rewritten the file does not report the other's deleted contents as gone."""
    url = f"sqlite:///{tmp_path}/t.db"
    first, second = open_store(url), open_store(url)
    put(first, document("a"), document("b", text=MARK * 500))

    def delete(store, name):
        with store.use(write=True) as connection:
            delete_rows(connection, Selection(id=f"kp:trace:{name}"))

    delete(first, "a")
    assert "" == overwrite(Interrupted(first._connection, lambda: delete(second, "b")), first.path)
    assert [] != holding(tmp_path)
    assert second.delete(id="kp:trace:b").clean
    assert [] == holding(tmp_path)
    first.close()
    second.close()


def test_a_log_that_cannot_be_emptied_is_reported(tmp_path, store):
    """The runs are deleted, so the failure is part of the report and no exception."""
    put(store, document("a", text=MARK))
    with store.use(write=True) as connection:
        delete_rows(connection, Selection(id="kp:trace:a"))

    def fail():
        raise sqlite3.OperationalError("disk I/O error")

    assert "could not be rewritten (disk I/O error)" in overwrite(Interrupted(store._connection, fail), store.path)
    again = store.delete(id="kp:trace:a")
    assert (0, True, []) == (again, again.clean, holding(tmp_path))


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_file_that_a_newer_version_migrates_while_it_is_open_keeps_nothing(tmp_path, store, catalog, is_indexed):
    put(store, document("a", text=MARK * 500), document("b"))
    if is_indexed:
        catalog.refresh()
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as newer:
        newer.execute("INSERT INTO schema_migrations SELECT 99, MAX(applied_at) FROM schema_migrations")
    report = store.delete(id="kp:trace:a")
    assert (1, "", ["b"], []) == (report, report.remains, left(store), holding(tmp_path))


def test_an_open_run_is_not_deleted(tmp_path):
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        with grace.run("open", session="s", user="ana") as run:
            grace._writer._write_journal()
            while grace.store._connection.execute("SELECT COUNT(*) FROM journal").fetchone() == (0,):
                grace._writer._write_journal()
            with pytest.raises(gk.StoreError, match="still open"):
                grace.store.delete(id=run.id)
            report = grace.store.delete(session="s")
            assert (0, (run.id,)) == (report, report.open)
            assert () == grace.store.delete(session="another").open
        assert 1 == grace.store.delete(id=run.id)


def test_a_run_of_a_dead_process_is_deleted_from_the_journal(tmp_path):
    path = tmp_path / "t.db"
    code = textwrap.dedent(f"""
        import sys, time
        import grace_kp as gk
        grace = gk.Grace(store=sys.argv[1], evaluator=None, embedder=None, reviewer=None)
        with grace.run({MARK!r}, user="ana"):
            while grace.store._connection.execute("SELECT COUNT(*) FROM journal").fetchone() == (0,):
                time.sleep(0.01)
            print("ready", flush=True)
            sys.stdin.read()
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", code, f"sqlite:///{path}"], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )  # fmt: skip
    with child:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
    store = open_store(f"sqlite:///{path}")
    assert [] != holding(tmp_path)
    assert 0 == store.delete(user="ben")
    assert 1 == store.delete(user="ana")
    assert ([], []) == (holding(tmp_path), store.recover())
    store.close()
