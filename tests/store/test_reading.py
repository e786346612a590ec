"""Traces read from a SQLite file, with their feedback."""

from __future__ import annotations

from grace_kp.store import FeedbackEntry, open_store, to_bytes
from tests.store.samples import record


def test_more_traces_than_a_page_get_their_own_feedback(tmp_path):
    """Each trace its own, also where their number passes the page in which feedback is looked up."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    count = 1_003
    store.put([record(n) for n in range(count)])
    store.put_feedback([FeedbackEntry(f"kp:trace:{n}", 0.0, "user", to_bytes({"n": n})) for n in range(0, count, 2)])
    found = {trace.id: (trace.grace or {}).get("feedback") for trace in store.query(limit=None)}
    assert {f"kp:trace:{n}": None if n % 2 else [{"n": n}] for n in range(count)} == found
    store.close()
