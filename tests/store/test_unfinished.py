"""Runs that their process did not finish, and a process that lives although others have given it up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grace_kp.store import JournalEntry
from grace_kp.store import _leases as owners_module
from grace_kp.store._leases import LEASE_SECONDS, Owners
from grace_kp.store._sqlite import SqliteStore
from tests.store.samples import Clock, ids, record

RUN = "kp:trace:1"
JUDGEMENT = frozenset({"judgement"})


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def process(tmp_path, clock, monkeypatch):
    """Opens the store as a process in a container of its own would."""
    stores = []

    def open_store():
        store = SqliteStore(tmp_path / "t.db", owners=Owners(clock, clock))
        name, used = f"container {len(stores)}", store._use

        def use(**options):
            monkeypatch.setattr(owners_module, "place", lambda: name)
            return used(**options)

        store._use = use
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        store.close()


def head(run=RUN, seq=0):
    return JournalEntry(run, seq, b"{}")


def rows(store, table):
    return store._connection.execute(f"SELECT * FROM {table}").fetchall()


def score(store, run=RUN):
    return store.get(run).metadata.quality_score


def given_up(clock, first, second):
    """Let the lease of one store expire while another watches it; return what the other then takes over."""
    assert [] == second.recover()
    clock.now += LEASE_SECONDS + 1
    return second.recover()


def test_a_lease_that_is_renewed_keeps_a_silent_run(process, clock):
    """A run without any event for an hour belongs to its process, if the process renews its lease."""
    first, second = process(), process()
    first.journal([head()])
    for _ in range(60):
        clock.now += LEASE_SECONDS
        first.renew_lease()
        assert [] == second.recover()
    clock.now += LEASE_SECONDS + 1
    assert [[head()]] == second.recover()
    assert [] == process().recover()


def test_renewing_touches_the_file_only_when_it_is_due(process, clock):
    """Otherwise it would cost a write at every round of the writer."""
    first = process()
    used, real = [], first._use

    def use(**options):
        used.append(options)
        return real(**options)

    first._use = use
    first.renew_lease()
    assert [] == used  # it owns nothing
    first.journal([head()])
    first.renew_lease()
    clock.now += owners_module.RENEW_SECONDS
    first.renew_lease()
    first.renew_lease()
    assert 2 == len(used)


def test_a_process_that_was_given_up_and_lives_has_the_last_word(process, clock):
    """Its finished trace replaces the interrupted one, whichever of them is stored first."""
    first, second = process(), process()
    first.journal([head(), head("kp:trace:2")])
    assert 2 == len(given_up(clock, first, second))
    first.put([record(1, score=0.9)], ended=[RUN])
    second.put([record(1, status="interrupted"), record(2, status="interrupted")], ended=[RUN, "kp:trace:2"])
    first.put([record(2, score=0.9)], ended=["kp:trace:2"])
    assert ([0.9, 0.9], []) == ([score(first), score(first, "kp:trace:2")], rows(first, "journal"))


def test_a_run_that_was_suspended_meanwhile_stays_suspended(process, clock):
    """The interrupted trace of an earlier part does not replace the question that waits for an answer."""
    first, second = process(), process()
    first.put([record(1, status="suspended", score=0.1)])
    first.journal([head()])
    assert [[head()]] == given_up(clock, first, second)
    first.put([record(1, status="suspended", score=0.2)], ended=[RUN])
    first.journal([head()])
    second.put([record(1, status="interrupted")], ended=[RUN])
    assert ("suspended", 0.2) == first._connection.execute("SELECT status, score FROM traces").fetchone()
    assert 1 == len(rows(first, "journal"))  # it has continued since, and its journal stays


def test_late_rows_of_a_journal_bring_no_run_back(process, clock):
    """A process that others gave up goes on with its journal, and dies later."""
    first, second, third = process(), process(), process()
    first.journal([head()])
    assert [[head()]] == given_up(clock, first, second)
    first.journal([head(seq=1)])
    second.put([record(1, status="interrupted")], ended=[RUN])
    first.journal([head(seq=2)])
    assert [] == given_up(clock, first, third)
    assert (0, [1]) == (len(rows(third, "journal")), ids(third.query(status="interrupted")))


def test_rows_without_a_first_row_are_deleted(process, clock):
    """Nothing can be made of them, and nobody else would delete them."""
    first, second = process(), process()
    first.journal([head(seq=3)])
    assert ([], []) == (given_up(clock, first, second), rows(second, "journal"))


def test_rows_of_several_owners_are_joined_in_order(process, clock):
    """A process that was given up went on; both it and its successor died."""
    first, second, third = process(), process(), process()
    first.journal([head(), head(seq=2)])
    assert [[head(), head(seq=2)]] == given_up(clock, first, second)
    first.journal([head(seq=1), head(seq=3)])
    assert [[head(seq=number) for number in range(4)]] == given_up(clock, second, third)


def test_the_documents_that_a_dead_process_did_not_complete_go_to_one_other(process, clock):
    """Those that await a part which the other can add; the rest wait for somebody who can."""
    first, second, third = process(), process(), process()
    first.put([
        record(1, awaits=("judgement", "scores")), record(2, awaits=("value",)), record(3, awaits=("judgement",)), record(4),
        record(5, awaits=("judgement",)),
    ])  # fmt: skip
    first._connection.execute("DELETE FROM traces WHERE id = 'kp:trace:5'")
    assert ([], []) == (second.incomplete(JUDGEMENT), second.recover())
    clock.now += LEASE_SECONDS + 1
    found = second.incomplete(JUDGEMENT, limit=1)
    assert 1 == len(found)
    found += second.incomplete(JUDGEMENT)
    assert ["kp:trace:1", "kp:trace:3"] == [json.loads(data)["id"] for data in found]
    assert [] == second.incomplete(JUDGEMENT) == third.incomplete(JUDGEMENT)
    assert [("kp:trace:1",), ("kp:trace:2",), ("kp:trace:3",)] == second._connection.execute(
        "SELECT run_id FROM completions ORDER BY run_id"
    ).fetchall()
    assert ["kp:trace:2"] == [json.loads(data)["id"] for data in third.incomplete(frozenset({"value", "x"}))]
    clock.now += LEASE_SECONDS + 1
    assert 2 == len(third.incomplete(JUDGEMENT))


def completed(number, **fields):
    return replace(record(number, **fields), completes=True)


def test_a_run_is_completed_once(process, clock):
    """Of a process that lives after all and its successor, the first to complete the run wins."""
    first, second = process(), process()
    first.put([record(1, awaits=("judgement",)), record(2, awaits=("judgement",))])
    clock.now += LEASE_SECONDS + 1
    assert 2 == len(second.incomplete(JUDGEMENT))
    second.put([completed(1, score=0.2)])
    first.put([completed(1, score=0.1), completed(2, score=0.1)])
    second.put([completed(2, score=0.2)])
    assert (0.2, 0.1, []) == (score(first), score(first, "kp:trace:2"), rows(first, "completions"))


def test_what_the_successor_cannot_add_the_living_process_adds(process, clock):
    """A part that was completed elsewhere does not keep its own process from completing the whole."""
    first, second = process(), process()
    first.put([record(1, awaits=("judgement", "scores"))])
    clock.now += LEASE_SECONDS + 1
    assert 1 == len(second.incomplete(JUDGEMENT))
    second.put([completed(1, score=0.2, awaits=("scores",))])
    first.put([completed(1, score=0.1, awaits=("scores",))])
    second.put([completed(1, score=0.3)])
    first.put([completed(1, score=0.4)])
    assert (0.4, []) == (score(first), rows(first, "completions"))


def test_what_the_successor_cannot_add_another_process_takes(process, clock):
    """It does not wait until the successor dies, too."""
    first, second, third = process(), process(), process()
    first.put([record(1, awaits=("judgement", "scores"))])
    clock.now += LEASE_SECONDS + 1
    assert 1 == len(second.incomplete(JUDGEMENT))
    assert [] == third.incomplete(frozenset({"scores"}))
    second.put([completed(1, score=0.2, awaits=("scores",))])
    assert ([], 1) == (second.incomplete(JUDGEMENT), len(third.incomplete(frozenset({"scores"}))))
    third.put([completed(1, score=0.3)])
    assert (0.3, []) == (score(third), rows(third, "completions"))


def test_an_interrupted_run_that_lives_is_not_completed_as_interrupted(process, clock):
    """The judgement of the interrupted trace comes after the finished trace, and is left out."""
    first, second = process(), process()
    first.journal([head()])
    assert [[head()]] == given_up(clock, first, second)
    second.put([record(1, status="interrupted", awaits=("judgement",))], ended=[RUN])
    first.put([record(1, score=0.1, awaits=("judgement",))], ended=[RUN])
    second.put([completed(1, status="interrupted", score=0.2)])
    assert (0.1, 1) == (score(first), len(rows(first, "completions")))
    first.put([completed(1, score=0.3)])
    assert (0.3, []) == (score(first), rows(first, "completions"))


def test_a_closed_store_keeps_its_lease_for_open_runs_only(process):
    """They go on. What it could not complete is free for the next process at once."""
    first, second = process(), process()
    first.journal([head()])
    first.close()
    assert 1 == len(rows(second, "owners"))
    first.put([record(1, awaits=("scores",))], ended=[RUN])
    first.close()
    assert [] == rows(second, "owners")
    assert 1 == len(second.incomplete(frozenset({"scores"})))
