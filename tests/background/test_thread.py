"""The threads of the library."""

from __future__ import annotations

import contextvars
import threading

import pytest

from grace_kp.background import may_wait
from grace_kp.background._thread import BackgroundThread


@pytest.mark.parametrize("allowed", [True, False])
def test_a_thread_knows_whether_it_may_wait(allowed):
    """It is a daemon with a name that tells whose it is, and it runs in the context that it gets."""
    place = contextvars.ContextVar("place")
    context = contextvars.Context()
    context.run(place.set, "here")
    found = []

    def work():
        found.append((may_wait(), place.get(), threading.current_thread().name, threading.current_thread().daemon))

    thread = BackgroundThread(work, name="probe", context=context, may_wait=allowed)
    thread.start()
    thread.join(60)
    assert [(allowed, "here", "grace_kp probe", True)] == found


def test_threads_of_others_may_wait():
    """An agent's thread that wants its trace waits for it."""
    assert may_wait()
