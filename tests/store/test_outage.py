"""A store that cannot write."""

from __future__ import annotations

import logging
import sqlite3

import grace_kp as gk
from grace_kp.store._outage import Outage


def test_a_failure_is_reported_once_until_it_is_another(caplog):
    """So is its end, and each attempt is counted."""
    outage = Outage()
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        for error in (gk.StoreError("full"), gk.StoreError("full"), OSError("gone")):
            outage.begin(error)
        outage.end()
        outage.end()
        outage.begin(OSError("gone"))
    assert caplog.messages == [
        "the store cannot write: full",
        "the store cannot write: OSError: gone",
        "the store writes again",
        "the store cannot write: OSError: gone",
    ]
    assert (4, True) == (outage.errors, outage.is_on)


def test_a_secret_in_an_error_is_removed():
    """The message of a database may quote a value."""
    outage = Outage()
    outage.begin(OSError("password=hunter2secret"))
    assert "hunter2secret" not in outage.last_error


def test_the_store_is_left_alone_for_a_moment(monkeypatch):
    """Until it writes again."""
    monkeypatch.setattr("grace_kp.store._outage.RETRY_SECONDS", (60.0, 60.0))
    outage = Outage()
    assert not outage.is_pausing
    outage.begin(OSError("gone"))
    assert outage.is_pausing
    outage.end()
    assert not outage.is_pausing


def test_a_lock_of_another_process_is_told_apart(tmp_path):
    """It ends by itself, so it is worth waiting for."""
    outage = Outage()
    outage.begin(OSError("gone"))
    assert not outage.is_busy
    holder = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(tmp_path / "t.db", timeout=0)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        outage.begin(error)
    assert outage.is_busy
    holder.close()
    other.close()
