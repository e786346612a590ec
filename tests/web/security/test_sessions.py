"""Sessions in memory, and one-time codes."""

from __future__ import annotations

import pytest

from grace_kp.web.security._sessions import AT_MOST, AT_MOST_CODES, AT_MOST_EACH, Codes, Sessions

HOUR = 3_600.0


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


@pytest.fixture
def codes(clock):
    return Codes(clock)


def test_each_login_begins_a_session_of_its_own(sessions):
    """Two logins of one owner have different secrets, and ending one leaves the other."""
    first, second = sessions.begin("ana", "m"), sessions.begin("ana", "m")
    assert first != second
    sessions.end(first)
    assert sessions.find(first) is None
    assert "ana" == sessions.find(second).owner
    assert {"ana": 1} == sessions.count()


def test_a_secret_that_nobody_was_given_is_no_session(sessions):
    """Also not the hash under which a session is kept."""
    sessions.begin("ana", "m")
    for wrong in ["", "x", *sessions._sessions]:
        assert sessions.find(wrong) is None


def test_a_session_ends_without_requests(sessions, clock):
    """After twelve hours without one; each request begins them anew."""
    secret = sessions.begin("ana", "m")
    clock.advance(11 * HOUR)
    assert sessions.find(secret) is not None
    clock.advance(11 * HOUR)
    assert sessions.find(secret) is not None
    clock.advance(13 * HOUR)
    assert sessions.find(secret) is None


def test_an_open_stream_does_not_keep_a_session(sessions, clock):
    """A look without use leaves the twelve hours running."""
    secret = sessions.begin("ana", "m")
    clock.advance(11 * HOUR)
    assert sessions.find(secret, touch=False) is not None
    clock.advance(2 * HOUR)
    assert sessions.find(secret, touch=False) is None


def test_a_session_ends_at_seven_days(sessions, clock):
    """However often it is used."""
    secret = sessions.begin("ana", "m")
    for _ in range(16):
        clock.advance(10 * HOUR)
        assert sessions.find(secret) is not None
    clock.advance(10 * HOUR)
    assert sessions.find(secret) is None


def test_the_number_of_sessions_is_bounded(sessions):
    """A further login of an owner ends the one used least recently, and never those of others."""
    other = sessions.begin("ben", "m")
    own = [sessions.begin("ana", "m") for _ in range(AT_MOST_EACH)]
    assert sessions.find(own[0]) is not None
    newest = sessions.begin("ana", "m")
    assert [False, True, True, True] == [
        sessions.find(secret) is not None for secret in (own[1], own[0], other, newest)
    ]
    for number in range(AT_MOST):
        sessions.begin(f"person {number}", "m")
    assert AT_MOST == sum(sessions.count().values())


def test_a_code_works_once(codes):
    """A second use is refused, as is anything else."""
    code = codes.issue()
    assert [False, True, False] == [codes.redeem("wrong"), codes.redeem(code), codes.redeem(code)]


def test_a_code_expires(codes, clock):
    """After ten minutes."""
    early, late = codes.issue(), codes.issue()
    clock.advance(599)
    assert codes.redeem(early)
    clock.advance(2)
    assert not codes.redeem(late)


def test_the_number_of_codes_is_bounded(codes):
    """The oldest go."""
    issued = [codes.issue() for _ in range(AT_MOST_CODES + 1)]
    assert not codes.redeem(issued[0])
    assert codes.redeem(issued[1])
