"""The store in memory: its bounds, its threads, its forks, and what it does where others write to disk."""

from __future__ import annotations

import os
import threading

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import FeedbackEntry, JournalEntry, Progress, open_catalog, open_store
from grace_kp.store._approvals import MemoryTables
from tests.contracts.test_approval_tables import put as put_rows
from tests.contracts.test_approval_tables import row
from tests.store.listed import found, run
from tests.store.samples import document, ids, left, put, record


def test_memory_is_bounded():
    store = open_store("memory:?max_traces=3")
    store.put([record(n) for n in range(10)])
    assert ids(store.query()) == [9, 8, 7]
    assert store.describe()["evicted"] == 7
    small = open_store("memory:?max_mb=0.001")
    small.put([record(n) for n in range(10)])
    assert 1 <= small.count() < 5


def test_the_run_that_was_not_stored_for_longest_goes_first():
    """Storing a run again makes it the newest, whenever it began; labelling it does not."""
    store = open_store("memory:?max_traces=3")
    store.put([record(n) for n in range(3)])
    store.put([record(0, score=0.9)])
    store.put_feedback([FeedbackEntry("kp:trace:1", 1.0, "user", b"{}")])
    store.put([record(3)])
    assert [0, 2, 3] == sorted(ids(store.query()))


def test_nothing_but_what_is_stored_counts_towards_the_bound():
    store = open_store("memory:")
    store.put([record(1), record(2)])
    size = store.describe()["bytes"]
    store.put([record(1), record(2)])
    store.put_feedback([FeedbackEntry("kp:trace:1", 1.0, "user", b"{}")])
    assert size + 2 == store.describe()["bytes"]
    store.delete(id="kp:trace:1")
    assert (1, size // 2) == (store.describe()["traces"], store.describe()["bytes"])
    store.clear()
    assert (0, 0) == (store.describe()["traces"], store.describe()["bytes"])


def test_a_journal_is_not_kept():
    store = open_store("memory:")
    store.journal([JournalEntry("kp:trace:1", 0, b"{}")])
    assert [] == store.recover()


def test_no_thread_sees_half_of_what_another_writes():
    store, done, seen = open_store("memory:"), threading.Event(), set()
    tables = store.approvals

    def read():
        while not done.is_set():
            seen.add((store.count() % 3, len(tables.ids("ap-", limit=100)) % 2))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for first in range(0, 60, 3):
        store.put([record(first + number) for number in range(3)])
        with tables.transaction() as writes:
            writes.put(row(f"{first}a"))
            writes.put(row(f"{first}b"))
    done.set()
    for reader in readers:
        reader.join()
    assert {(0, 0)} >= seen
    assert (60, 40) == (store.count(), len(tables.ids("ap-", limit=100)))


def in_child(check):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_begins_with_an_empty_store():
    """It stores its own runs, and its parent's stay. Its approvals are its own too: what its parent may run, it cannot run."""
    store = open_store("memory:?max_traces=2")
    store.put([record(n) for n in range(3)])
    tables = store.approvals
    put_rows(tables, row(1, state="approved"))
    before = tables.identity, tables.hold()

    def check():
        is_new = (0, 0, None) == (store.count(), store.describe()["evicted"], tables.row("ap-1"))
        put(store, document("child"))
        is_other = tables.identity != before[0] and tables.hold() != before[1]
        return is_new and is_other and ["child"] == left(store) and [True] == put_rows(tables, row(1))

    assert 0 == in_child(check)
    assert ([2, 1], "approved") == (ids(store.query()), tables.row("ap-1").state)
    assert not tables.lasting


def test_forks_while_other_threads_use_the_store():
    store, done = open_store("memory:"), threading.Event()

    def work(base):
        number = base
        while not done.is_set():
            store.put([record(number)])
            store.query(limit=3)
            number += 1

    threads = [threading.Thread(target=work, args=(base,)) for base in (0, 10_000, 20_000)]
    for thread in threads:
        thread.start()

    def check():
        put(store, document("child"))
        return ["child"] == left(store)

    codes = [in_child(check) for _ in range(20)]
    done.set()
    for thread in threads:
        thread.join()
    assert [0] * 20 == codes


def test_a_full_store_refuses_new_requests_for_approval():
    store = open_store("memory:")
    tables = MemoryTables(store.use, max_rows=2)
    put_rows(tables, row(1), row(2))
    with pytest.raises(StoreError, match=r"holds 2 requests for approval.*sqlite:///path.db"):
        put_rows(tables, row(3))
    assert [False] == put_rows(tables, row(1))
    assert [True] == put_rows(tables, row(1, revision=2, state="approved"))


def test_a_catalog_drops_runs_that_were_evicted():
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


def test_a_catalog_in_a_forked_child_has_the_runs_of_the_child():
    store = open_store("memory:")
    catalog = open_catalog(store)
    put(store, run("parent"))
    catalog.refresh()

    def check():
        put(store, run("child"))
        catalog.refresh()
        return ["child"] == found(catalog)

    assert 0 == in_child(check)
    assert ["parent"] == found(catalog)
