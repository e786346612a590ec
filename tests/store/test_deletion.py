"""Deleting runs: by id, session, user and age, from every table and every byte of the files."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.gating import LedgerEntry
from grace_kp.runtime._records import record_of
from grace_kp.store import JournalEntry, open_store

ROOT = Path(__file__).resolve().parents[2]
MARK = "MARKER-OF-WHAT-IS-DELETED"


def document(name, *, created_at="2026-01-01T00:00:00.000Z", text="", **grace):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": f"kp:trace:{name}",
        "metadata": {"created_at": created_at, "task_domain": "default", "success": True, "quality_score": 0.5},
        "task": {"objective": f"objective {name} {text}"}, "steps": [{"step_id": 0, "type": "thought", "content": text}],
        "outcome": {"result_summary": text, "confidence": 0.5}, "grace": {"status": "completed", **grace},
    }  # fmt: skip


def put(store, *documents):
    store.put([record_of(one) for one in documents])


def left(store):
    return sorted(trace.id.removeprefix("kp:trace:") for trace in store.iterate())


def holding(folder, mark=MARK):
    """The files below a folder that hold the mark, byte by byte."""
    return sorted(
        path.name for path in Path(folder).rglob("*") if path.is_file() and mark.encode() in path.read_bytes()
    )


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = open_store("memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 't.db'}")
    yield made
    made.close()


def test_by_id_session_user_and_age(store):
    """Conditions hold together; the number of runs is returned."""
    old = "2020-01-01T00:00:00.000Z"
    put(
        store,
        document("a", user="ana", session="s1"), document("b", user="ana", session="s2"), document("c", user="ben", session="s1"),
        document("d", created_at=old), document("e", created_at=old, user="ben"), document("f"),
    )  # fmt: skip
    assert (1, 0) == (store.delete(id="kp:trace:f"), store.delete(id="kp:trace:f"))
    assert 1 == store.delete(user="ana", session="s1")
    assert 1 == store.delete(older_than=datetime(2021, 1, 1, tzinfo=UTC), user="ben")
    assert ["b", "c", "d"] == left(store)
    assert 0 == store.delete(older_than=timedelta(days=365 * 5_000))
    assert 1 == store.delete(session="s1")
    assert 2 == store.delete(older_than="0s")
    assert [] == left(store)


def test_nested_runs_go_with_their_run(store):
    """Whichever of the two names the other; the run around a deleted one stays."""
    put(
        store,
        document("root", children=["kp:trace:child"], session="s"),
        document("child", parent={"trace_id": "kp:trace:root", "call_id": "c0"}, children=["kp:trace:grandchild"]),
        document("grandchild"), document("late", parent={"trace_id": "kp:trace:child", "late": True}), document("other"),
    )  # fmt: skip
    assert 1 == store.delete(id="kp:trace:late")
    put(store, document("late", parent={"trace_id": "kp:trace:child", "late": True}))
    report = store.delete(session="s")
    assert (4, True, ()) == (report, report.clean, report.open)
    assert ["other"] == left(store)
    assert {"deleted": 4, "actions": 0, "open": [], "clean": True, "remains": ""} == report.to_dict()


@pytest.mark.parametrize("bad", [{"id": ""}, {"user": 5}, {"session": ""}, {"older_than": "old"}, {"older_than": 30}])
def test_conditions_that_cannot_be_used_are_named(store, bad):
    """Nothing is deleted by a mistake."""
    put(store, document("a"))
    with pytest.raises(ValueError, match=next(iter(bad))):
        store.delete(**bad)
    with pytest.raises(ValueError, match="needs a condition"):
        store.delete()
    assert ["a"] == left(store)


CONDITIONS = st.fixed_dictionaries(
    {}, optional={"user": st.sampled_from("ab"), "session": st.sampled_from("st"), "older_than": st.sampled_from(["2026-01-02", "2026-01-04"])}
).filter(bool)  # fmt: skip
DOCUMENTS = st.lists(
    st.builds(
        lambda n, day, grace: document(n, created_at=f"2026-01-0{day}T00:00:00Z", **grace),
        st.integers(0, 20), st.integers(1, 5),
        st.fixed_dictionaries({}, optional={
            "user": st.sampled_from("ab"), "session": st.sampled_from("st"), "tags": st.lists(st.sampled_from("xyz")),
            "children": st.lists(st.integers(0, 20).map("kp:trace:{}".format), max_size=2),
            "parent": st.integers(0, 20).map(lambda n: {"trace_id": f"kp:trace:{n}"}),
        }),
    ), max_size=12,
)  # fmt: skip


@given(DOCUMENTS, CONDITIONS)
def test_both_stores_delete_alike(documents, conditions):
    """Memory and SQLite keep the same runs, also where runs are nested in circles."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        memory, lite = open_store("memory:"), open_store(f"sqlite:///{folder}/t.db")
        for one in documents:
            put(memory, one)
            put(lite, one)
        before = memory.count()
        assert memory.delete(**conditions) == lite.delete(**conditions) == before - memory.count()
        assert left(memory) == left(lite)
        lite.close()


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 40, 400, 2_000, 30_000]), st.booleans()), max_size=25),
    st.integers(0, 12),
)
def test_no_byte_of_a_deleted_run_is_left(changes, victim):
    """Whatever was written, replaced and deleted before, in the database and beside it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/t.db")
        for name, size, journaled in changes:
            text = f"<{name}>" * size
            if journaled:
                store.journal([JournalEntry(f"kp:trace:{name}", 0, json.dumps({"text": text}).encode())])
            ended = [f"kp:trace:{name}"]
            store.put(
                [record_of(document(name, text=text, user=f"u<{name}>", metadata={f"k<{name}>": text[:50]}))],
                ended=ended,
            )
        report = store.delete(id=f"kp:trace:{victim}")
        assert (victim in {name for name, *_ in changes}, True) == (bool(report), report.clean)
        assert [] == holding(folder, f"<{victim}>")
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
    """Table, journal, search text, index, scores, reports, write-ahead log; what was pending is written first."""
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


def test_clear_leaves_nothing_either(tmp_path):
    """All traces, all bytes."""
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        marked_run(grace)
        assert 1 == grace.store.clear()
        assert [] == holding(tmp_path)
        assert 0 == grace.store.count(user="ana")


def test_beside_an_idle_process_the_files_are_clean(tmp_path):
    """A connection that is open and reads nothing is in nobody's way."""
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        run = marked_run(grace)
        assert grace.flush()
        other = open_store(f"sqlite:///{tmp_path}/t.db")
        assert 1 == other.count()
        assert grace.store.delete(id=run).clean
        assert [] == holding(tmp_path)
        other.close()


def test_beside_a_reader_the_report_says_what_remains(tmp_path):
    """While somebody reads an old state, its bytes stay; when the reader has ended, any further delete removes them."""
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    store._connection.execute("PRAGMA busy_timeout = 1")
    put(store, document("a", text=MARK), document("b"))
    reader = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM traces").fetchall()
    report = store.delete(id="kp:trace:a")
    assert (1, False) == (report, report.clean)
    assert "somebody is reading" in report.remains
    assert [] != holding(tmp_path)
    reader.execute("COMMIT")
    reader.close()
    again = store.delete(id="kp:trace:a")
    assert (0, True) == (again, again.clean)
    assert [] == holding(tmp_path)
    store.close()


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


def test_an_open_run_is_not_deleted(tmp_path):
    """By id it is an error; by session it is reported; when it has ended it can be deleted."""
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
    """Also where nobody has found it again yet."""
    path = tmp_path / "t.db"
    code = textwrap.dedent(f"""
        import sys, time
        import grace_kp as gk
        grace = gk.Grace(store=sys.argv[1], evaluator=None, embedder=None, reviewer=None)
        with grace.run({MARK!r}, user="ana"):
            while grace.store._connection.execute("SELECT COUNT(*) FROM journal").fetchone() == (0,):
                time.sleep(0.01)
            print("ready", flush=True)
            time.sleep(60)
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", code, f"sqlite:///{path}"], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
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


def test_an_action_that_ran_stays_known_but_not_what_it_returned(store, tmp_path):
    """The ledger never forgets that an action ran, whichever way its decision is named."""
    keys = [f"langgraph|{MARK}|node|0|pay", "langchain|thread|message|decision-1|call", "langgraph|other|node|0|pay"]
    entries = [LedgerEntry(lambda: store, key) for key in keys]
    for entry in entries:
        entry.decide({"level": "confirm", "score": 0.5, "reason": MARK, "digest": "d"})
        assert entry.claim() is None
        entry.done({"paid": MARK}, keep=True)
    decisions = [{"id": entries[0].id}, {"id": "decision-1"}]
    put(store, document("a", decisions=decisions), document("b"))
    report = store.delete(id="kp:trace:a")
    assert (1, 2) == (report, report.actions)
    for number, (key, kept) in enumerate(zip(keys, (False, False, True), strict=True)):
        ran = LedgerEntry(lambda: store, key).claim()
        assert (number, "done", kept) == (number, ran.state, ran.has_result)
        assert "d" == LedgerEntry(lambda: store, key).decision()["digest"]
        assert not store.put_action(key, b"{}", only_if=None)
    assert b"other" in (tmp_path / "t.db").read_bytes() if (tmp_path / "t.db").exists() else True
    if (tmp_path / "t.db").exists():
        assert 0 == (tmp_path / "t.db").read_bytes().count(f"langgraph|{MARK}".encode())


def test_an_emptied_entry_goes_on_changing_state(store):
    """An action that was decided on before the deletion can still be claimed once."""
    key = "langgraph|t|n|0|pay"
    LedgerEntry(lambda: store, key).decide({"level": "confirm", "score": 0.5, "reason": "r"})
    put(store, document("a", decisions=[{"id": LedgerEntry(lambda: store, key).id}]))
    assert 1 == store.delete(id="kp:trace:a").actions
    assert LedgerEntry(lambda: store, key).claim() is None
    assert "running" == LedgerEntry(lambda: store, key).claim().state


def test_retention_deletes_old_runs_when_new_ones_are_written(tmp_path):
    """At most once a day, and nothing without the setting."""
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


def test_retention_in_memory():
    """The same in a store that keeps nothing on disk."""
    store = open_store("memory:")
    put(store, document("old", created_at="2020-01-01T00:00:00Z"))
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None, retention_days=1.5) as grace:
        with grace.run("new"):
            pass
        assert ["new"] == [trace.task.objective for trace in grace.store.query()]


def test_rows_of_the_journal_survive_a_failed_write(tmp_path):
    """What could not be journaled is written with the next attempt, and an ended run leaves no rows."""
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        writer = grace._writer
        with writer._settling, grace.run("x") as run:
            store = writer.store()
            real, store.journal = store.journal, fails
            writer._write_journal()
            store.journal = real
            writer._retry_at = 0.0
            writer._write_journal()
            rows = store._connection.execute("SELECT run_id, seq FROM journal ORDER BY seq").fetchall()
            assert (run.id, 0) == rows[0]
        assert grace.flush()
        assert [] == store._connection.execute("SELECT * FROM journal").fetchall()


def fails(entries):
    raise gk.StoreError("the disk is full")
