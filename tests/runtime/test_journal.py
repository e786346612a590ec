"""Rows of the journal on their way to the store."""

from __future__ import annotations

import grace_kp as gk


def test_rows_of_the_journal_survive_a_failed_write(tmp_path):
    """What could not be journaled is written with the next attempt, and an ended run leaves no rows."""
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        writer = grace._writer
        with writer._settling, grace.run("x") as run:
            store = writer.store()
            real, store.journal = store.journal, fails
            writer._write_journal()
            store.journal = real
            writer._outage._retry_at = 0.0
            writer._write_journal()
            rows = store._connection.execute("SELECT run_id, seq FROM journal ORDER BY seq").fetchall()
            assert (run.id, 0) == rows[0]
        assert grace.flush()
        assert [] == store._connection.execute("SELECT * FROM journal").fetchall()


def fails(entries):
    raise gk.StoreError("the disk is full")
