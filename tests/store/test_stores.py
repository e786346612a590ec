"""What every store does, and what SQLite does beyond it: threads, processes, kills, full disks, locks, foreign files."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.store import JournalEntry, Query, Record, open_store

ROOT = Path(__file__).resolve().parents[2]


def record(number=0, **given):
    values = {
        "id": f"kp:trace:{number}", "created_at": f"2026-01-01T00:00:{number % 60:02d}.000Z", "domain": "default", "score": 0.5,
        "success": True, "status": "completed", "text": f"objective {number}",
    }  # fmt: skip
    values.update(given)
    document = {
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": values["id"],
        "metadata": {"created_at": values["created_at"], "task_domain": values["domain"], "success": values["success"], "quality_score": values["score"]},
        "task": {"objective": "x"}, "steps": [{"step_id": 0, "type": "thought"}], "outcome": {"result_summary": "", "confidence": 0.5},
    }  # fmt: skip
    return Record(**values, data=json.dumps(document).encode())


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = open_store("memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'sub' / 't.db'}")
    yield made
    made.close()


def ids(traces):
    return [int(trace.id.rpartition(":")[2]) for trace in traces]


def test_put_get_query_count_iterate_clear(store):
    """Newest first, replaced by id, oldest first when iterated."""
    store.put([record(n) for n in range(5)])
    store.put([record(2, score=0.9)])
    assert store.get("kp:trace:2").metadata.quality_score == 0.9
    assert store.get("kp:trace:99") is None
    assert ids(store.query()) == [4, 3, 2, 1, 0]
    assert ids(store.query(limit=2, offset=1)) == [3, 2]
    assert ids(store.query(min_score=0.6)) == [2]
    assert ids(store.iterate()) == [0, 1, 2, 3, 4]
    assert (store.count(), store.clear(), store.count()) == (5, 5, 0)


def test_every_condition(store):
    """Domain, scores, success, status, time and text; text ignores case and knows Japanese."""
    store.put([
        record(1, domain="finance", score=0.2, text="Refund Ana"),
        record(2, success=False, status="failed", text="任天堂を分析する"),
        record(3, score=0.8, text="NUL \x00 and half \ud800 ÄÖ"),
    ])  # fmt: skip
    assert ids(store.query(domain="finance")) == [1]
    assert ids(store.query(max_score=0.5, min_score=0.3)) == [2]
    assert ids(store.query(success=False)) == [2]
    assert ids(store.query(status="failed")) == [2]
    assert ids(store.query(text="refund")) == [1]
    assert ids(store.query(text="天堂")) == [2]
    assert ids(store.query(text="äö")) == [3]
    assert ids(store.query(since="2026-01-01T00:00:02Z")) == [3, 2]
    assert ids(store.query(until=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))) == [1]
    assert ids(store.query(since="1h")) == []


@pytest.mark.parametrize(
    "bad",
    [{"min_score": "high"}, {"limit": -1}, {"since": "yesterday"}, {"success": "yes"}, {"text": 5}, {"offset": 1.5}],
)
def test_bad_conditions_are_named(store, bad):
    """The error says which condition cannot be used."""
    with pytest.raises(ValueError, match=next(iter(bad))):
        store.query(**bad)
    with pytest.raises(TypeError):
        store.query(colour="red")


RECORDS = st.lists(
    st.builds(
        lambda n, d, s, ok, t: record(n, domain=d, score=s, success=ok, text=t),
        st.integers(0, 30), st.sampled_from(["a", "b"]), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans(), st.sampled_from(["x", "Xy", "z"]),
    ),
    max_size=12,
)  # fmt: skip
QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "domain": st.sampled_from(["a", "b", "c"]), "min_score": st.sampled_from([0.25, 0.5]), "max_score": st.sampled_from([0.25, 0.5]),
        "success": st.booleans(), "text": st.sampled_from(["x", "XY"]), "limit": st.integers(0, 5), "offset": st.integers(0, 3),
    },
)  # fmt: skip


@given(RECORDS, QUERIES)
def test_both_stores_answer_alike(records, query):
    """Memory and SQLite give the same traces in the same order, and as a plain filter does."""
    memory, lite = open_store("memory:"), None
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        lite = open_store(f"sqlite:///{folder}/t.db")
        for one in records:
            memory.put([one])
            lite.put([one])
        assert ids(memory.query(**query)) == ids(lite.query(**query))
        assert memory.count(**query) == lite.count(**query)
        kept = {one.id: one for one in records}
        expected = [one for one in kept.values() if Query(**query).matches(one)]
        unlimited = {name: value for name, value in query.items() if name not in {"limit", "offset"}}
        assert len(expected) == lite.count(**unlimited)
        lite.close()


def test_memory_is_bounded():
    """The oldest go, and how many went is counted."""
    store = open_store("memory:?max_traces=3")
    store.put([record(n) for n in range(10)])
    assert ids(store.query()) == [9, 8, 7]
    assert store.describe()["evicted"] == 7
    small = open_store("memory:?max_mb=0.001")
    small.put([record(n) for n in range(10)])
    assert 1 <= small.count() < 5


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("mysql://x", "known are"), ("sqlite:///", "names no file"), ("sqlite:///:memory:", "memory:"), ("postgresql://h/db", "PostgreSQL"),
        ("memory:?max=3", "unknown option"), ("memory:?max_traces=no", "max_traces"), (object(), "no store"),
    ],
)  # fmt: skip
def test_unknown_stores_are_refused_with_advice(url, hint):
    """One line that says what is known."""
    with pytest.raises(gk.StoreError, match=hint):
        open_store(url)


def test_foreign_and_newer_files_are_refused(tmp_path):
    """A text file, a newer schema, a folder that is a file."""
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


def test_the_file_is_private(tmp_path):
    """Traces are nobody else's business."""
    store = open_store(f"sqlite:///{tmp_path / 'new' / 't.db'}")
    store.close()
    assert (tmp_path / "new" / "t.db").stat().st_mode & 0o077 == 0


def test_many_threads_and_processes_write_one_file(tmp_path):
    """Nothing is lost and nothing is mixed."""
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
    assert [child.wait(60) for child in children] == [0, 0, 0]
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


def test_a_journal_is_recovered_once_and_only_from_the_dead(tmp_path):
    """A living process keeps its journal; of two that look after a dead one, one gets it."""
    path = tmp_path / "t.db"
    code = textwrap.dedent("""
        import sys, time
        from grace_kp.store import open_store, JournalEntry
        store = open_store(sys.argv[1])
        store.journal([JournalEntry("kp:trace:lost", 0, b"head"), JournalEntry("kp:trace:lost", 1, b"rest")])
        print("ready", flush=True)
        time.sleep(60)
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", code, f"sqlite:///{path}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout.readline() == b"ready\n"
        one, two = open_store(f"sqlite:///{path}"), open_store(f"sqlite:///{path}")
        assert one.recover() == []
        child.send_signal(signal.SIGKILL)
        child.wait()
    found = one.recover() + two.recover()
    assert found == [[JournalEntry("kp:trace:lost", 0, b"head"), JournalEntry("kp:trace:lost", 1, b"rest")]]
    one.put([record(1)], ended=["kp:trace:lost"])
    one.close()
    two.close()


def test_a_locked_file_is_waited_for_and_loses_nothing(tmp_path, caplog):
    """While another process holds the file, traces wait in memory; then they are written."""
    path = tmp_path / "t.db"
    grace = gk.Grace(store=f"sqlite:///{path}", reviewer=None)
    with grace.run("first"):
        pass
    assert grace.flush()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    for n in range(5):
        with grace.run(f"while locked {n}"):
            pass
    assert grace.flush(timeout=3) is False
    assert grace.status()["writer"]["pending"] == 5
    assert any("cannot write" in item.getMessage() for item in caplog.records)
    holder.execute("ROLLBACK")
    holder.close()
    assert grace.flush(timeout=20) is True
    assert grace.store.count() == 6
    grace.close()


def test_a_full_disk_is_reported_and_counted(tmp_path):
    """The agent goes on; what memory holds is written when there is room; what it cannot hold is counted."""
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
        for n in range(400):
            assert agent(f"{n} " + "x" * 6_000).startswith(str(n))
        assert grace.flush(timeout=1) is False
        full = grace.status()["writer"]
        assert full["dropped"] > 0 and full["pending"] > 0 and full["errors"] > 0, full
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert grace.flush(timeout=20)
        after = grace.status()["writer"]
        assert after["written"] + after["dropped"] == 401, after
        assert grace.store.count() == after["written"]
    """)
    assert resource.RLIM_INFINITY == -1
    ran = subprocess.run(
        [sys.executable, "-c", code, f"sqlite:///{tmp_path / 't.db'}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "cannot write" in ran.stderr


def test_relative_times():
    """2h is two hours ago, as text in UTC."""
    before = datetime.now(UTC)
    then = datetime.fromisoformat(Query(since="2h").since)
    # Texts of instants are cut to milliseconds.
    assert before - timedelta(milliseconds=1) <= then + timedelta(hours=2) <= datetime.now(UTC)
