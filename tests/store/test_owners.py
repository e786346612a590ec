"""Whether the process that owns a journal is still alive."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from grace_kp.store._owners import STALE_SECONDS, host, is_dead, started


def test_this_process_is_alive():
    """It is known by its number and by when it began."""
    assert not is_dead(os.getpid(), host(), started(os.getpid()), time.time())


def test_a_process_that_has_ended_is_dead():
    """Whatever it last showed of itself."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    began = started(ended.pid)
    ended.wait()
    assert is_dead(ended.pid, host(), began, time.time())


def test_a_number_that_was_used_again_is_another_process():
    """A process that began at another time is not the owner."""
    assert is_dead(os.getpid(), host(), "1", time.time())


def test_another_machine_is_dead_when_it_is_silent():
    """Process numbers mean nothing there, so only its last sign counts."""
    now = time.time()
    assert not is_dead(os.getpid(), "elsewhere", "", now)
    assert is_dead(os.getpid(), "elsewhere", "", now - STALE_SECONDS - 1)
