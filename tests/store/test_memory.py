"""The store in memory: its bounds, and what it does where others write to disk."""

from __future__ import annotations

import grace_kp as gk
from grace_kp.store import JournalEntry, open_store
from tests.store.samples import document, ids, put, record


def test_memory_is_bounded():
    """The oldest go, and how many went is counted."""
    store = open_store("memory:?max_traces=3")
    store.put([record(n) for n in range(10)])
    assert ids(store.query()) == [9, 8, 7]
    assert store.describe()["evicted"] == 7
    small = open_store("memory:?max_mb=0.001")
    small.put([record(n) for n in range(10)])
    assert 1 <= small.count() < 5


def test_retention_in_memory():
    """The same in a store that keeps nothing on disk."""
    store = open_store("memory:")
    put(store, document("old", created_at="2020-01-01T00:00:00Z"))
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None, retention_days=1.5) as grace:
        with grace.run("new"):
            pass
        assert ["new"] == [trace.task.objective for trace in grace.store.query()]


def test_a_journal_is_not_kept():
    """Memory does not outlive the process, so there is nothing to recover."""
    store = open_store("memory:")
    store.journal([JournalEntry("kp:trace:1", 0, b"{}")])
    assert [] == store.recover()
