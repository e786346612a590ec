"""Values that are computed in the background and kept for a minute."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from grace_kp.web._kept import Kept

from grace_kp.errors import StoreError
from grace_kp.web import _kept

PATIENT = 60.0


def test_a_value_is_computed_once_a_minute():
    """Those who ask within the minute get the same; a clock that was set back asks again."""
    kept, computed = Kept(patience=PATIENT), []

    def get(now):
        return kept.get("key", now, lambda: computed.append(now) or len(computed))

    assert (1, 0.0) == (get(0.0).value, get(0.0).at)
    assert 1 == get(59.0).value
    assert [0.0] == computed


def test_the_value_before_is_shown_while_another_is_computed():
    """Nobody waits for the second one."""
    kept, go, done = Kept(patience=PATIENT), threading.Event(), threading.Event()
    assert 1 == kept.get("key", 0.0, lambda: 1).value

    def slow():
        go.wait(PATIENT)
        done.set()
        return 2

    assert 1 == kept.get("key", 61.0, slow).value
    assert 1 == kept.get("key", 62.0, slow).value
    go.set()
    assert done.wait(PATIENT)


def test_nobody_waits_long_for_the_first_value():
    """The page is shown without it."""
    kept, go = Kept(patience=0.0), threading.Event()
    assert kept.get("key", 0.0, lambda: go.wait(PATIENT)) is None
    go.set()


def test_a_store_that_cannot_be_read_is_a_problem(caplog):
    """Of the result, and not of the page. Only the log names the file."""

    def fail():
        raise StoreError("no such file: /secret/place.db")

    result = Kept(patience=PATIENT).get("key", 0.0, fail)
    assert (None, "the store cannot be read or written at the moment") == (result.value, result.problem)
    assert "place.db" in caplog.text


def test_what_is_kept_is_bounded():
    """What was asked for longest ago is forgotten first."""
    kept, computed = Kept(patience=PATIENT, limit=2), []
    for key in ("a", "b", "a", "c", "a", "b"):
        kept.get(key, 0.0, lambda key=key: computed.append(key))
    assert ["a", "b", "c", "b"] == computed


def started(kept, name="first"):
    """Begin to compute a value, and return what lets it end."""
    begun, go = threading.Event(), threading.Event()
    kept.get(name, 0.0, lambda: (begun.set(), go.wait(PATIENT)))
    assert begun.wait(PATIENT)
    return go


def test_values_wait_in_one_thread():
    """Each address with another period asks for one, and a program can ask for many."""
    kept, before = Kept(patience=0.0, waiting=5), set(threading.enumerate())
    go = started(kept)
    for key in range(5):
        assert kept.get(key, 0.0, threading.get_ident) is None
    assert 1 == sum(thread.name == "grace_kp figures" for thread in set(threading.enumerate()) - before)
    go.set()


def test_a_queue_that_is_full_is_a_problem_of_the_result():
    """The reader learns that others come first, and what was computed before is shown all the same."""
    kept, done = Kept(patience=0.0, waiting=1), threading.Event()
    kept.get("old", 0.0, done.set)
    assert done.wait(PATIENT)
    go = started(kept)
    assert kept.get("second", 0.0, lambda: 2) is None
    full = kept.get("third", 5.0, lambda: 3)
    assert (None, 5.0) == (full.value, full.at)
    assert "too many other periods" in full.problem
    assert kept.get("old", 61.0, lambda: 4).problem == ""
    go.set()


def test_what_is_forgotten_is_not_computed():
    """Nobody can get its value."""
    kept, computed, done = Kept(patience=0.0, limit=2), [], threading.Event()
    go = started(kept)
    for key in ("a", "b", "c"):
        kept.get(key, 0.0, lambda key=key: computed.append(key))
    kept.get("last", 0.0, done.set)
    go.set()
    assert done.wait(PATIENT)
    assert ["c"] == computed


def test_an_error_that_nobody_expected_ends_nothing(caplog):
    """It is in the log, and other values are computed."""
    kept = Kept(patience=PATIENT)
    assert "something went wrong here" in kept.get("bad", 0.0, lambda: 1 / 0).problem
    assert "ZeroDivisionError" in caplog.text
    assert 2 == kept.get("good", 0.0, lambda: 2).value


def test_a_slow_value_is_kept_for_longer(monkeypatch):
    """So that at most a twentieth of the time goes into computing it."""
    clock = [0.0]
    monkeypatch.setattr(_kept, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    kept, again = Kept(patience=PATIENT), threading.Event()

    def slow():
        clock[0] += 10.0
        return 1

    assert 1 == kept.get("key", 0.0, slow).value
    kept.get("key", 199.0, again.set)
    assert not again.is_set()
    kept.get("key", 201.0, again.set)
    assert again.wait(PATIENT)
