"""A lock whose holder lets others go first."""

from __future__ import annotations

import threading

from grace_kp.background import Latch, PoliteLock, is_mine


def test_it_can_be_taken_again_by_its_holder_only():
    """It is reentrant, and it knows whose it is."""
    lock, answers = PoliteLock(), []
    with lock, lock:
        assert lock.is_mine
        thread = threading.Thread(
            target=lambda: answers.extend([lock.is_mine, lock.acquire(blocking=False), lock.acquire(timeout=0.01)])
        )
        thread.start()
        thread.join(60)
    assert ([False, False, False], False) == (answers, lock.is_mine)


def test_whoever_waits_gets_the_lock_from_a_thread_that_takes_it_again_and_again():
    """Without stepping back, a thread that works in small pieces would keep the others out."""
    lock, has_begun, is_over = PoliteLock(), threading.Event(), threading.Event()

    def works():
        while not is_over.is_set():
            with lock:
                has_begun.set()
                sum(range(1_000))
            lock.step_back()

    thread = threading.Thread(target=works)
    thread.start()
    has_begun.wait(60)
    for _ in range(20):
        assert lock.acquire(timeout=60)
        lock.release()
    is_over.set()
    thread.join(60)


def test_an_interrupted_thread_lets_go_of_all_that_it_holds():
    """An interrupt may come right after the lock was taken, where nothing gives it back."""
    lock = PoliteLock()
    assert lock.acquire()
    assert lock.acquire()
    lock.let_go()
    lock.let_go()
    assert not lock.is_mine


def test_a_latch_that_is_opened_twice_lets_one_wait_through():
    """It closes behind whoever waited."""
    latch = Latch()
    assert not latch.wait(0.0)
    latch.open()
    latch.open()
    assert (True, False) == (latch.wait(60.0), latch.wait(0.001))


def test_whose_a_reentrant_lock_is_can_be_asked_of_any_object():
    """A store of a user's own may have any lock, or none."""
    locks = [threading.RLock(), threading.Condition(), PoliteLock()]
    for lock in locks:
        lock.acquire()
    assert [True, True, True, False, False] == [is_mine(lock) for lock in [*locks, threading.Lock(), None]]
    for lock in locks:
        lock.release()
    assert [False] * 3 == [is_mine(lock) for lock in locks]
