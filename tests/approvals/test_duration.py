"""Durations in seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import seconds_of


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5.0), (0.5, 0.5), ("90s", 90.0), ("1.5h", 5_400.0), ("1h30m", 5_400.0), ("2d", 172_800.0), ("1w", 604_800.0)],
)
def test_texts_and_numbers(value, seconds):
    """Units go from the largest to the smallest."""
    assert seconds == seconds_of("deadline", value)


@pytest.mark.parametrize(
    "value",
    [0, -1, "", "5", "5 h", "1m1h", "1h1h", "h", None, True, float("nan"), float("inf"), 10**40, "99999999w", "１h"],
)
def test_anything_else_is_refused(value):
    """The message names the argument and what is allowed."""
    with pytest.raises(ValueError, match="until must be a number of seconds above 0"):
        seconds_of("until", value)


@given(st.integers(0, 9), st.integers(0, 23), st.integers(0, 59), st.integers(1, 59))
def test_parts_add_up(days, hours, minutes, seconds):
    """A text is the sum of its parts."""
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    assert days * 86_400 + hours * 3_600 + minutes * 60 + seconds == seconds_of("x", text)
