"""Workers that do the work of an object, and locks whose holder lets others go first."""

from __future__ import annotations

import contextvars
import gc
import queue
import threading
import weakref

from grace_kp.background import Latch, PoliteLock, Worker, is_mine
from grace_kp.background._calls import BackgroundThread

PATIENCE = 60.0
PLACE = contextvars.ContextVar("place", default="nowhere")


class Owner:
    def __init__(self, **options):
        self.waiting = queue.SimpleQueue()
        self.done = queue.SimpleQueue()
        self.worker = Worker(self.work, name="probe", **{"idle_seconds": PATIENCE, **options})

    def put(self, item):
        self.waiting.put(item)
        return self.worker.wake()

    def work(self):
        if self.waiting.empty():
            return None
        item = self.waiting.get()
        found = item() if callable(item) else item
        self.done.put((found, threading.current_thread()))
        return 0

    def next(self):
        return self.done.get(timeout=PATIENCE)


def block(owner):
    inside, release = threading.Event(), threading.Event()
    owner.put(lambda: (inside.set(), release.wait(PATIENCE))[0])
    assert inside.wait(PATIENCE)
    return release


def ended(thread):
    thread.join(PATIENCE)
    return not thread.is_alive()


def test_the_first_wake_starts_the_thread():
    owner = Owner()
    assert set() == owner.worker._threads
    assert owner.put(1)
    owner.put(2)
    (one, thread), (two, same) = owner.next(), owner.next()
    assert ((1, 2), True) == ((one, two), thread is same)
    assert ("grace_kp probe", True) == (thread.name, thread.daemon)


def test_an_idle_thread_ends_and_the_next_wake_starts_another():
    owner = Owner(idle_seconds=0.01)
    owner.put(1)
    _, thread = owner.next()
    assert ended(thread)
    owner.put(2)
    found, other = owner.next()
    assert (2, True) == (found, other is not thread)


def test_a_call_that_is_asked_for_begins_afterwards():
    owner = Owner()
    release = block(owner)
    assert not owner.worker.finish_call(0.01)
    owner.waiting.put("next")
    release.set()
    assert owner.worker.finish_call(PATIENCE)
    _, (found, thread) = owner.next(), owner.next()
    owner.worker.stop(PATIENCE)
    assert ("next", False, False) == (found, thread.is_alive(), owner.put("later"))
    assert not owner.worker.finish_call(PATIENCE)


def test_an_idle_thread_does_not_keep_its_owner():
    owner = Owner(idle_seconds=0.01)
    owner.put(1)
    _, thread = owner.next()
    reference = weakref.ref(owner)
    del owner
    assert ended(thread)
    gc.collect()
    assert reference() is None


def test_work_that_waits_keeps_its_owner():
    owner = Owner(idle_seconds=0.01)
    done, release = owner.done, block(owner)
    owner.put("last")
    del owner
    gc.collect()
    release.set()
    assert [None, "last"] == [done.get(timeout=PATIENCE)[0] for _ in range(2)]


class Pausing:
    def __init__(self):
        self.pauses, self.calls = iter([0.001] * 3), queue.SimpleQueue()
        self.worker = Worker(self.work, name="probe", idle_seconds=PATIENCE)

    def work(self):
        self.calls.put("called")
        return next(self.pauses, None)


def test_a_pause_calls_again_without_a_wake():
    owner = Pausing()
    owner.worker.wake()
    assert ["called"] * 4 == [owner.calls.get(timeout=PATIENCE) for _ in range(4)]


def test_several_threads_work_at_a_time_up_to_the_bound():
    owner = Owner(threads=2)
    barrier = threading.Barrier(2)
    for _ in range(2):
        owner.put(lambda: barrier.wait(PATIENCE))
    owner.put(3)
    threads = {owner.next()[1] for _ in range(3)}
    assert 2 == len(threads)


def test_work_that_raises_costs_its_thread_only(monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda report: reported.append((report.exc_type, report.thread)))
    owner = Owner()
    threads = queue.SimpleQueue()

    def fail():
        threads.put(threading.current_thread())
        raise ValueError("no")

    owner.put(fail)
    thread = threads.get(timeout=PATIENCE)
    assert ended(thread)
    assert [(ValueError, thread)] == reported
    owner.put(2)
    assert 2 == owner.next()[0]


def test_at_exit_no_thread_starts(monkeypatch):
    def start(_thread):
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(BackgroundThread, "start", start)
    owner = Owner()
    assert not owner.put(1)


def test_it_can_be_taken_again_by_its_holder_only():
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


def test_a_latch_that_is_opened_twice_lets_one_wait_through():
    latch = Latch()
    assert not latch.wait(0.0)
    latch.open()
    latch.open()
    assert (True, False) == (latch.wait(60.0), latch.wait(0.001))


def test_whose_a_reentrant_lock_is_can_be_asked_of_any_object():
    locks = [threading.RLock(), threading.Condition(), PoliteLock()]
    for lock in locks:
        lock.acquire()
    assert [True, True, True, False, False] == [is_mine(lock) for lock in [*locks, threading.Lock(), None]]
    for lock in locks:
        lock.release()
    assert [False] * 3 == [is_mine(lock) for lock in locks]


def test_the_work_sees_no_context_of_whoever_wakes_it():
    """A thread outlives the call that starts it, and must not carry its context variables."""
    owner = Owner()
    token = PLACE.set("a run")
    try:
        owner.put(PLACE.get)
    finally:
        PLACE.reset(token)
    assert "nowhere" == owner.next()[0]
