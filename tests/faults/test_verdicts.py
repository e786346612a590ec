"""The fault suite notices what it looks for: a comparison that can find nothing would find nothing."""

from __future__ import annotations

import sqlite3

SECOND = 1_000_000_000


def log_of(folder, *entries):
    """A log with entries of kind and number, a second apart."""
    from fault_suite.agents import ENTRY

    path = folder / "log"
    path.write_bytes(b"".join(ENTRY.pack(kind, number, at * SECOND) for at, (kind, number) in enumerate(entries, 1)))
    return path


def history_of(folder, *entries):
    from fault_suite.agents import History

    return History.read(log_of(folder, *entries))


def test_a_log_is_read_back(tmp_path):
    """Runs count as flushed if they had returned before a flush began that returned True; a torn entry is left out."""
    from fault_suite.agents import BEGUN, FLUSHED, FLUSHING, RETURNED, UNFLUSHED, History

    path = log_of(
        tmp_path,
        (BEGUN, 1),
        (RETURNED, 1),
        (FLUSHING, 0),
        (BEGUN, 2),
        (RETURNED, 2),
        (FLUSHED, 0),
        (FLUSHING, 1),
        (UNFLUSHED, 1),
        (BEGUN, 3),
    )
    with path.open("ab") as file:
        file.write(b"R\0\0")
    history = History.read(path)
    assert ({1, 2, 3}, [1, 2], {1}) == (history.begun, sorted(history.returned), history.flushed)
    assert ([True, False], 9 * SECOND) == (history.flushes, history.last)


def test_a_run_that_is_gone_is_lost(tmp_path):
    """Flushed runs are counted apart, and the age is that of the oldest lost run."""
    from fault_suite.agents import BEGUN, FLUSHED, FLUSHING, RETURNED
    from fault_suite.verdicts import verdict_of

    history = history_of(
        tmp_path, (BEGUN, 1), (RETURNED, 1), (FLUSHING, 0), (FLUSHED, 0), (BEGUN, 2), (RETURNED, 2), (BEGUN, 3)
    )
    found = verdict_of(history, [], 10 * SECOND)
    assert (2, 1, 0, 2, 1) == (found.returned, found.flushed, found.stored, found.lost, found.lost_flushed)
    assert (8_000, 4_000) == (found.oldest_ms, found.span_ms)


def test_a_run_that_is_stored_wrongly_is_a_phantom(tmp_path):
    """Stored twice or never begun. A run that returned and is found as interrupted is lost; one that was open is neither."""
    from fault_suite.agents import BEGUN, RETURNED
    from fault_suite.verdicts import verdict_of

    history = history_of(tmp_path, (BEGUN, 1), (RETURNED, 1), (BEGUN, 2), (RETURNED, 2), (BEGUN, 3))
    stored = [(1, "completed"), (1, "interrupted"), (2, "interrupted"), (3, "interrupted"), (4, "completed")]
    found = verdict_of(history, stored, 0)
    assert (2, 1, 1) == (found.phantoms, found.lost, found.interrupted)
    found = verdict_of(history, [(1, "completed"), (2, "completed"), (3, "interrupted")], 0)
    assert (0, 0, 0) == (found.phantoms, found.lost, found.interrupted)


def test_a_secret_and_a_damaged_file_are_found(tmp_path):
    """A half of the secret counts, because a page of the file may end within it."""
    from fault_suite.agents import SECRET
    from fault_suite.verdicts import exposed, is_intact

    path = tmp_path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (text)")
        connection.executemany("INSERT INTO runs VALUES (?)", [("x" * 500,)] * 200)
    connection.close()
    assert (True, 0) == (is_intact(path), exposed(tmp_path))
    data = bytearray(path.read_bytes())
    data[4_096:6_000] = bytes(1_904)
    path.write_bytes(bytes(data) + SECRET[: len(SECRET) // 2].encode())
    assert (False, 1) == (is_intact(path), exposed(tmp_path))


def test_the_number_of_lost_runs_is_read_from_stderr():
    """The totals of all processes count; without a total the losses that were reported one by one. Other numbers do not."""
    from fault_suite.scenarios import _in_stderr

    single = "grace_kp: 50 runs are not in the store: the file was deleted\n"
    total = "grace_kp: runs of this process that are not in the store: 3,602 dropped, 50 lost; the store cannot write: 7 runs\n"
    assert (0, 50, 3_652, 7_304) == tuple(map(_in_stderr, ("Took 7 s\n", single, single + total, total + total)))
