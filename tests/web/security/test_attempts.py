"""Failed attempts: counted, and slowed down."""

from __future__ import annotations

import pytest

from grace_kp.web.security._attempts import AT_MOST_ADDRESSES, EVERYWHERE, FREE, LONGEST_WAIT, Attempts


@pytest.fixture
def attempts(clock):
    return Attempts(clock)


def test_kinds_are_counted(attempts):
    """By word, in alphabetical order."""
    attempts.count("no_login")
    attempts.count("foreign_host")
    attempts.failed("no_login", "192.0.2.1")
    assert {"foreign_host": 1, "no_login": 2} == attempts.counts()
    attempts.count("sent_to_login")
    assert {"foreign_host": 1, "no_login": 2, "sent_to_login": 1} == attempts.counts()
    assert {"foreign_host": 1, "no_login": 2} == attempts.refusals()


def test_waits_grow_with_each_failure(attempts):
    """The first five cost nothing; then they double up to five minutes."""
    waits = [attempts.failed("x", "192.0.2.1") for _ in range(20)]
    assert [0.0] * FREE == waits[:FREE]
    assert [1.0, 2.0, 4.0, 8.0] == waits[FREE : FREE + 4]
    assert LONGEST_WAIT == waits[-1]


def test_addresses_do_not_slow_each_other_down(attempts):
    """One that fails all the time makes no other wait."""
    for _ in range(50):
        attempts.failed("x", "192.0.2.1")
    assert 0.0 == attempts.failed("x", "192.0.2.2")


def test_a_success_and_an_hour_forget(attempts, clock):
    """Then failures cost nothing again."""
    for _ in range(FREE):
        attempts.failed("x", "192.0.2.1")
        attempts.failed("x", "192.0.2.2")
    attempts.succeeded("192.0.2.1")
    assert 0.0 == attempts.failed("x", "192.0.2.1")
    clock.advance(3_601)
    assert 0.0 == attempts.failed("x", "192.0.2.2")


def test_many_addresses_together_are_slowed_down(attempts, clock):
    """Beyond a number in a minute every further failure waits, from whichever address; the next minute is a new one."""
    waits = [attempts.failed("x", f"10.0.{number // 256}.{number % 256}") for number in range(EVERYWHERE + 1)]
    assert [0.0] * EVERYWHERE == waits[:-1]
    assert 60.0 == waits[-1]
    clock.advance(60)
    assert 0.0 == attempts.failed("x", "192.0.2.1")


def test_memory_is_bounded(attempts):
    """The addresses that failed longest ago are forgotten."""
    for number in range(AT_MOST_ADDRESSES + 10):
        attempts.failed("x", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert AT_MOST_ADDRESSES == len(attempts._failures)
