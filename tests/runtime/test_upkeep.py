"""What the writer does for its store: outages, leases, reports, and its file in its place. A store that offers none of it is left alone."""

from __future__ import annotations

import logging
import sqlite3
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.runtime._backlog import Backlog
from grace_kp.runtime._upkeep import Outage, Upkeep
from tests.runtime.scripted import Pipeline


class Store:
    """A store that notes what is asked of it."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name not in {"recover", "incomplete", "renew_lease", "retain", "report"}:
            raise AttributeError(name)
        return lambda *values: self.calls.append((name, *values)) or []


@pytest.fixture
def lost():
    return []


def upkeep_of(store, pipeline, lost, **options):
    return Upkeep(
        store,
        pipeline,
        options.get("retention_days", 0),
        lambda: None,
        lambda: SimpleNamespace(lose=lambda *loss: lost.append(loss)),
    )


def test_everything_is_done_when_it_is_due(lost):
    """The lease only while something is open, the rest at first and then from time to time."""
    store, pipeline = Store(), Pipeline()
    upkeep = upkeep_of(store, pipeline, lost, retention_days=3)
    upkeep.do_what_is_due()
    assert [("recover",), ("retain", 3)] == store.calls
    pipeline.is_busy, pipeline.parts = True, frozenset({"scores"})
    upkeep.do_what_is_due()
    assert [("renew_lease",), ("recover",), ("incomplete", {"scores"})] == store.calls[
        2:
    ]  # models were chosen meanwhile
    upkeep.do_what_is_due()
    assert ("renew_lease",) == store.calls[-1]


def test_a_report_is_stored_when_there_is_one(lost):
    """No losses are no news."""
    store = Store()
    upkeep = upkeep_of(store, Pipeline(), lost)
    backlog = Backlog(1)
    upkeep.report(backlog)
    backlog.lose(2, "the file is gone")
    upkeep.report(backlog)
    assert [("report", "process", b"{}")] == store.calls


def test_a_plain_store_is_left_alone(lost):
    """Three methods are all that a store must have."""
    upkeep = upkeep_of(object(), Pipeline(), lost, retention_days=3)
    upkeep.recover()
    upkeep.do_what_is_due()
    backlog = Backlog(1)
    backlog.lose(1, "the file is gone")
    upkeep.report(backlog)


def test_a_report_that_could_not_be_stored_is_stored_later(lost):
    """The pipeline has it only once."""
    store, pipeline, backlog = Store(), Pipeline(), Backlog(1)
    upkeep = upkeep_of(store, pipeline, lost)
    backlog.lose(1, "the file is gone")
    store.report = lambda *report: (_ for _ in ()).throw(OSError("busy"))
    with pytest.raises(OSError, match="busy"):
        upkeep.report(backlog)
    del store.report
    pipeline.report = lambda dropped, lost: None
    upkeep.report(backlog)
    upkeep.report(backlog)
    assert [("report", "process", b"{}")] == store.calls


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
    monkeypatch.setattr("grace_kp.runtime._upkeep.RETRY_SECONDS", (60.0, 60.0))
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
