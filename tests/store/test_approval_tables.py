"""Tables of approvals in a file: other processes, locks, forks, disks that fail, and another file at the path, which is refused."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import sys
import threading

import pytest

from grace_kp.approvals import RowQuery
from grace_kp.errors import StoreError
from grace_kp.store import open_store
from grace_kp.store._approvals import SqliteTables
from grace_kp.store._schema import APPROVALS, MIGRATIONS
from tests import warm
from tests.contracts.test_approval_tables import entry, put, row


@pytest.fixture
def hasty(store):
    tables = SqliteTables(store.path, busy_seconds=0.05)
    yield tables
    tables.close()


def test_a_file_that_stays_locked_is_an_error(store, hasty):
    put(hasty, row(1))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        StoreError, match=r"t\.db: its approvals cannot be written: another process has locked it for 0\.05 s"
    ):
        put(hasty, row(2))
    assert [row(1)] == [hasty.row("ap-1")]
    other.execute("COMMIT")
    other.close()
    assert [True] == put(hasty, row(2))


def test_threads_wait_for_each_other_no_longer_than_for_processes(hasty):
    """A transaction that hangs does not stop the others for ever, and listings go on."""
    is_open, may_end = threading.Event(), threading.Event()

    def hang():
        with hasty.transaction() as writes:
            writes.put(row(1))
            is_open.set()
            may_end.wait()

    thread = threading.Thread(target=hang)
    thread.start()
    is_open.wait()
    with pytest.raises(StoreError, match=r"another thread of this process has used it for 0\.05 s"):
        put(hasty, row(2))
    assert None is hasty.row("ap-1")
    may_end.set()
    thread.join()
    assert row(1) == hasty.row("ap-1")


def test_threads_that_open_it_at_once_open_one_store(tmp_path):
    for number in range(40):
        with contextlib.closing(open_store(f"sqlite:///{tmp_path}/{number}.db")) as store:
            tables, both, failures = store.approvals, threading.Barrier(2), []

            def write(tables=tables, both=both, failures=failures):
                both.wait(30)
                try:
                    put(tables, row("a"))
                except StoreError as error:
                    failures.append(error)

            thread = threading.Thread(target=write)
            thread.start()
            both.wait(30)
            tables.rows(RowQuery())
            thread.join(30)
            assert [] == failures


def test_values_that_a_file_cannot_hold_are_refused(store):
    for wrong in (row(1, action="\ud800"), row(1, level=2**70), row(1, created=float("nan"))):
        with pytest.raises(StoreError, match="'ap-1' holds a value that SQLite cannot"):
            put(store.approvals, wrong)
    assert 0 == store.approvals.count(RowQuery())


def test_a_forked_child_uses_the_file_by_itself(store):
    put(store.approvals, row(1))
    process, identity = store.approvals.hold(), store.approvals.identity
    child = os.fork()
    if child == 0:
        tables = store.approvals
        is_same = tables.identity == identity and tables.row("ap-1") == row(1)
        is_own = tables.hold() != process and tables.is_alive(process)
        os._exit(0 if is_same and is_own and [True] == put(tables, row(2)) else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert [True] == put(store.approvals, row(3))
    assert row(2) == store.approvals.row("ap-2")


LEFT_ALONE = """
import os, sys
from grace_kp.store import open_store
from tests.contracts.test_approval_tables import put, row

store = open_store(f"sqlite:///{sys.argv[1]}")
put(store.approvals, row(1))
reading, writing = os.pipe()
if os.fork() == 0:
    if "early" in sys.argv:
        put(store.approvals, row(2))
    os.close(writing)
    os.read(reading, 1)  # until the parent has closed the store
    stored = put(store.approvals, row(3))
    os.write(1, f"{stored} {sorted(os.listdir(os.path.dirname(sys.argv[1])))}".encode())
    os._exit(0)
store.close()
other = open_store(f"sqlite:///{sys.argv[1]}")
other.close()  # as the last one that has it open, it would remove the log
os.close(writing)
os.wait()
"""


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_forked_child_outlives_its_parent(tmp_path, when):
    """What it writes after its parent has closed the file is found: the log is not removed under it."""
    file = tmp_path / "t.db"
    ran = warm.run([sys.executable, "-c", LEFT_ALONE, str(file), when], text=True)
    assert (0, "", "[True] ['t.db', 't.db-shm', 't.db-wal']") == (ran.returncode, ran.stderr, ran.stdout)
    store = open_store(f"sqlite:///{file}")
    assert row(3) == store.approvals.row("ap-3")
    store.close()


def test_a_child_of_a_busy_parent_refuses(store, hasty):
    """It was forked inside of a transaction, so it holds locks that are not its own."""
    with hasty.transaction() as writes:
        writes.put(row(1))
        child = os.fork()
        if child == 0:
            try:
                put(hasty, row(2))
            except StoreError as error:
                os._exit(0 if "restart it" in str(error) else 2)
            os._exit(1)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert row(1) == hasty.row("ap-1")


def test_a_reader_writes_nothing(store):
    reader = open_store(f"sqlite:///{store.path}", create=False)
    put(store.approvals, row(1))
    assert (row(1), store.approvals.identity) == (reader.approvals.row("ap-1"), reader.approvals.identity)
    with pytest.raises(StoreError, match="opened to be read only"):
        put(reader.approvals, row(2))
    before = reader.approvals.changes()
    put(store.approvals, row(3))
    assert before != reader.approvals.changes()
    reader.close()


def test_a_file_of_an_earlier_version_reads_as_without_approvals(tmp_path):
    """Reading does not change the file."""
    path = tmp_path / "t.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)")
        for version, statements in enumerate(MIGRATIONS[: APPROVALS - 1], 1):
            file.executescript(";".join(statements))
            file.execute("INSERT INTO schema_migrations VALUES (?, '')", (version,))
    before = path.read_bytes()
    with contextlib.closing(open_store(f"sqlite:///{path}", create=False)) as reader:
        tables = reader.approvals
        assert (0, [], (0, ""), "") == (tables.count(RowQuery()), tables.links(), tables.head(), tables.identity)
        assert [] == tables.rows(RowQuery(states=["pending"], action="x*"))
        with pytest.raises(StoreError, match="opened to be read only"):
            put(tables, row(1))
    assert before == path.read_bytes()


def test_every_write_waits_for_the_disk(store):
    with store.approvals.transaction():
        assert (2,) == store.approvals._writing._connection.execute("PRAGMA synchronous").fetchone()


FULL_DISK = """
import resource, signal, sys
from grace_kp.approvals import RowQuery
from grace_kp.errors import StoreError
from grace_kp.store import open_store
from tests.contracts.test_approval_tables import entry, put, row

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_store(f"sqlite:///{sys.argv[1]}")
put(store.approvals, row(0))
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
stored = []
for number in range(1, 1_000):
    try:
        with store.approvals.transaction() as writes:
            writes.put(row(number))
            writes.append(entry(writes.head()[0] + 1, contents=b"x" * 20_000))
        stored.append(number)
    except StoreError as error:
        found = store.approvals.row(f"ap-{number}"), store.approvals.head()[0] == len(stored)
        print(type(error).__name__, error, found)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = put(store.approvals, row(number))
print(len(stored) > 5, again, store.approvals.count(RowQuery()) == len(stored) + 2)
store.close()
"""


def test_a_full_disk_is_an_error_and_leaves_nothing_half_written(tmp_path):
    ran = warm.run([sys.executable, "-c", FULL_DISK, str(tmp_path / "t.db")], text=True)
    failed, after = ran.stdout.splitlines()
    assert failed.startswith("StoreError store ")
    assert failed.endswith("(None, True)")
    assert ("True [True] True", "") == (after, ran.stderr)


@pytest.fixture
def tables(store):
    with store.approvals.transaction() as writes:
        writes.put(row(1))
        writes.append(entry(1))
    return store.approvals


@pytest.mark.parametrize("has_copy", [False, True])
def test_another_file_at_the_path_is_refused(store, tables, tmp_path, has_copy):
    """Even a copy, which has the same id. A deleted file is not created again, where other processes would not find what is stored."""
    shutil.copy(store.path, tmp_path / "copy.db")
    store.path.unlink()
    if has_copy:
        (tmp_path / "copy.db").rename(store.path)
    for use in (lambda: put(tables, row(2)), tables.head, tables.changes, lambda: tables.identity):
        with pytest.raises(StoreError, match=r"deleted, moved or replaced.*then restart this program"):
            use()
    assert has_copy == store.path.exists()


def test_an_earlier_state_in_the_same_file_is_refused(store, tables):
    other = open_store(f"sqlite:///{store.path}")
    with other.approvals.transaction() as writes:
        writes.append(entry(2))
    put(tables, row(2))  # it has seen entry 2
    with other.use(write=True) as connection:
        connection.execute("DELETE FROM approval_chain WHERE seq = 2")
    with pytest.raises(StoreError, match="lacks entry 2 of its audit trail"):
        put(tables, row(3))
    with other.use() as connection:
        assert (2,) == connection.execute("SELECT COUNT(*) FROM approvals").fetchone()
    other.close()


def test_another_store_in_the_same_file_is_refused(store, tables):
    other = open_store(f"sqlite:///{store.path}")
    with other.use(write=True) as connection:
        connection.execute("UPDATE approval_identity SET id = 'x'")
    with pytest.raises(StoreError, match="holds another store"):
        put(tables, row(3))
    other.close()
