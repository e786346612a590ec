"""A SQLite file: threads, processes, kills, full disks, locks, foreign files, readers, and the steps of its schema."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.store import open_store
from tests.store.samples import MARK, document, holding, ids, record

ROOT = Path(__file__).resolve().parents[2]


def test_foreign_and_newer_files_are_refused(tmp_path):
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be looked at " * 10)
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{text}")
    newer = tmp_path / "newer.db"
    store = open_store(f"sqlite:///{newer}")
    store.close()
    connection = sqlite3.connect(newer)
    connection.execute("INSERT INTO schema_migrations VALUES (999, 'later')")
    connection.commit()
    connection.close()
    with pytest.raises(gk.StoreError, match="newer"):
        open_store(f"sqlite:///{newer}")


def test_a_store_that_is_dropped_closes_its_file(tmp_path):
    """Python from 3.13 on warns about a connection that is left to be collected."""
    gc.collect()  # what earlier tests left
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        open_store(f"sqlite:///{tmp_path / 't.db'}")
        gc.collect()
    assert [] == heard


def test_many_threads_and_processes_write_one_file(tmp_path):
    url = f"sqlite:///{tmp_path / 't.db'}"
    code = textwrap.dedent("""
        import sys
        import grace_kp as gk
        grace = gk.Grace(store=sys.argv[1], reviewer=None)
        for n in range(100):
            with grace.run(f"{sys.argv[2]} {n}"): pass
        assert grace.flush()
    """)
    children = [
        subprocess.Popen([sys.executable, "-c", code, url, name], env={**os.environ, "PYTHONPATH": str(ROOT)})
        for name in "abc"
    ]
    assert [child.wait(300) for child in children] == [0, 0, 0]
    store = open_store(url)
    errors = []

    def work(base):
        try:
            for n in range(20):
                store.put([record(base + n)])
                store.query(limit=3)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1_000 * n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.count() == 300 + 320
    store.close()


def test_a_full_disk_is_reported_and_counted(tmp_path):
    code = textwrap.dedent("""
        import resource, signal, sys
        import grace_kp as gk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        grace = gk.Grace(store=sys.argv[1], reviewer=None, max_pending_mb=1)
        with grace.run("before"): pass
        assert grace.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        @grace.agent
        def agent(text): return text
        for n in range(2_000):
            assert agent(f"{n} " + "x" * 6_000).startswith(str(n))
        assert grace.flush(timeout=1) is False
        full = grace.status()["writer"]
        assert full["dropped"] > 0 and full["pending"] > 0 and full["errors"] > 0, full
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert grace.flush(timeout=60) is False  # runs were dropped
        after = grace.status()["writer"]
        assert after["written"] + after["dropped"] == 2_001 and not after["pending"], after
        assert grace.store.count() == after["written"]
    """)
    ran = subprocess.run(
        [sys.executable, "-c", code, f"sqlite:///{tmp_path / 't.db'}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "cannot write" in ran.stderr


def test_reports_are_read_newest_first_and_replaced_by_process(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    store.report("a", b"1")
    store.report("b", b"2")
    store.report("a", b"3")
    assert [b"3", b"2"] == store.reports()
    store.close()


@pytest.fixture
def url(tmp_path):
    path = f"sqlite:///{tmp_path / 't.db'}"
    store = open_store(path)
    store.put([record(n) for n in range(3)])
    store.close()
    return path


def test_it_reads_and_leaves_nothing(url, tmp_path):
    reader = open_store(url, create=False)
    assert [2, 1, 0] == ids(reader.query())
    reader.close()
    assert ["t.db"] == [path.name for path in tmp_path.iterdir()]


def test_ids_by_their_beginning(url):
    reader = open_store(url, create=False)
    assert ["kp:trace:0", "kp:trace:1", "kp:trace:2"] == reader.ids("kp:trace:")
    assert [] == reader.ids("kp%")
    reader.close()


def test_a_file_written_before_this_version_is_opened_and_cleaned(tmp_path):
    """Rows that an older version deleted or replaced are gone from the file after the first deletion."""
    from grace_kp.store._schema import MIGRATIONS

    path = tmp_path / "t.db"
    old = sqlite3.connect(path, isolation_level=None)
    old.execute("PRAGMA journal_mode = WAL")
    old.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite switch it on
    old.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)")
    for number, statements in enumerate(MIGRATIONS[:3], 1):
        for statement in statements:
            old.execute(statement)
        old.execute("INSERT INTO schema_migrations VALUES (?, 'then')", (number,))
    row = "INSERT OR REPLACE INTO traces (id, created_at, domain, score, success, status, text, data) VALUES (?, '2026-01-01', 'd', 0.5, 1, 'completed', ?, ?)"
    for name in ("a", "b"):
        for text in (MARK * 300, "replaced"):
            children = ["kp:trace:b"] if name == "a" else []
            data = json.dumps(document(name, text=text, children=children)).encode()
            old.execute(row, (f"kp:trace:{name}", text, data))
    old.close()
    assert ["t.db"] == holding(tmp_path)
    store = open_store(f"sqlite:///{path}")
    assert (2, 0) == (store.count(), store.count(user="ana"))
    assert 2 == store.delete(id="kp:trace:a")
    assert [] == holding(tmp_path)
    store.close()
