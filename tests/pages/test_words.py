"""Records in words."""

from __future__ import annotations

import pytest

from grace_kp.pages import count_text, duration_text, penalty_text, spaced, span_text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"), (0.000_2, "1 µs"), (0.04, "40 µs"), (0.0994, "99 µs"), (0.0996, "0.1 ms"), (3.26, "3.3 ms"), (36.4, "36 ms"), (999.4, "999 ms"), (999.5, "1.0 s"), (59_940, "59.9 s"),
        (59_960, "1 min"), (61_000, "1 min 1 s"), (3_599_400, "59 min 59 s"), (3_600_000, "1 h"), (7_500_000, "2 h 5 min"), (-1, ""),
        (float("nan"), ""), (float("inf"), ""),
    ],
)  # fmt: skip
def test_durations_have_the_unit_that_people_use(milliseconds, text):
    """And no number that is none."""
    assert text == duration_text(milliseconds)


def test_counts_and_names_are_words():
    """With separators for thousands."""
    assert ("1 step", "2,000 steps") == (count_text(1, "step"), count_text(2000, "step"))
    assert "not approved" == spaced("not_approved")


def test_unknown_penalties_stay():
    """Known ones are phrases."""
    assert ("no sources", "tools succeeded: 50 %", "odd") == tuple(
        map(penalty_text, ("no_sources", "tool_failures(rate=0.50)", "odd"))
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 m"), (3_600, "1 h"), (12_000, "3 h 20 m"), (86_400 * 12 + 7_200, "12 d"), (-90, "1 m")],
)  # fmt: skip
def test_spans_have_at_most_two_units(seconds, text):
    """Enough to decide what is urgent."""
    assert text == span_text(seconds)
