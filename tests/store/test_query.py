"""Conditions on traces, and the feedback that is read with what they find."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from grace_kp.store import FeedbackEntry, Query, moment, open_store, to_bytes
from tests.store.samples import record


def test_relative_times():
    """2h is two hours ago, as text in UTC."""
    before = datetime.now(UTC)
    then = datetime.fromisoformat(Query(since="2h").since)
    # Texts of instants are cut to milliseconds.
    assert before - timedelta(milliseconds=1) <= then + timedelta(hours=2) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("2026-01-02", "2026-01-02T00:00:00.000Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"),
        (
            datetime(2026, 1, 2, 3, 4, 5, 678_900),  # noqa: DTZ001
            "2026-01-02T03:04:05.678Z",
        ),
        ("0926-01-02", "0926-01-02T00:00:00.000Z"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00.000Z"),
    ],
)
def test_a_moment_has_one_form(value, expected):
    """UTC with milliseconds, so that texts compare as times do; a time without a zone is UTC."""
    assert expected == moment(value, "since")


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "soon", "9999999999999999d", 5, "2026-13-01"])
def test_other_moments_are_refused_by_name(value):
    """The message names the condition."""
    with pytest.raises(ValueError, match=r"^since must be"):
        Query(since=value)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"tags": 3}, "tags must be a list of texts, not 3"),
        ({"metadata": [1]}, "metadata must be a dict with texts as keys, not [1]"),
        ({"min_score": float("nan")}, "min_score must be a number, not nan"),
        ({"scorer_passed": 1}, "scorer_passed must be true or false, not 1"),
        ({"limit": True}, "limit must be a whole number from 0, not True"),
    ],
)
def test_conditions_that_cannot_be_used_are_named(conditions, message):
    """The message holds the value that was found and what is allowed."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Query(**conditions)


def test_more_traces_than_a_page_get_their_own_feedback(tmp_path):
    """Each trace its own, also where their number passes the page in which feedback is looked up."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    count = 1_003
    store.put([record(n) for n in range(count)])
    store.put_feedback([FeedbackEntry(f"kp:trace:{n}", 0.0, "user", to_bytes({"n": n})) for n in range(0, count, 2)])
    found = {trace.id: (trace.grace or {}).get("feedback") for trace in store.query(limit=None)}
    assert {f"kp:trace:{n}": None if n % 2 else [{"n": n}] for n in range(count)} == found
    store.close()
