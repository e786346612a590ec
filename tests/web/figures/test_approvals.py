"""Figures of approvals as plots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import ApprovalFigures
from grace_kp.web.figures._approvals import approved_share, outcome_plot, quantile, wait_plot, waits_of
from tests.pages.drawing import cells


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_a_value_that_enough_do_not_exceed(values, share):
    """And no smaller value would do."""
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    smaller = [value for value in ordered if value < found]
    assert all(sum(value <= other for value in ordered) < share * len(ordered) for other in smaller[-1:])


def test_waits_are_summed_up():
    """In seconds; nothing where nobody decided."""
    found = waits_of(ApprovalFigures(pending=0, waits=tuple(map(float, range(1, 11)))))
    assert (10, 5.0, 9.0, 10.0) == (found.count, found.median, found.most, found.longest)
    assert waits_of(ApprovalFigures(pending=3)) is None


def test_waits_are_shown_in_times_that_people_name():
    """Each wait is in one bin; a wait beyond a week makes a bin of its own."""
    waits = (0.0, 9.9, 10.0, 3_599.0, 86_400.0, 604_800.0)
    rows = {row[0]: row[1] for row in cells(wait_plot(ApprovalFigures(pending=0, waits=waits)))}
    assert {"0 to 10s": "2", "10s to 1m": "1", "10m to 1h": "1", "1d to 7d": "2"} == {
        name: count for name, count in rows.items() if count != "0"
    }
    longer = ApprovalFigures(pending=0, waits=(*waits, 10_000_000.0))
    rows = [row[1] for row in cells(wait_plot(longer))]
    assert (8, "2") == (len(rows), rows[-1])
    assert 7 == sum(map(int, rows))


def test_outcomes_are_words():
    """A standing approval is no person."""
    rows = cells(outcome_plot(ApprovalFigures(pending=0, outcomes={"approved": 3, "standing": 1})))
    assert [["approved", "3", "75.0%"], ["by a standing approval", "1", "25.0%"]] == rows


@pytest.mark.parametrize(
    ("outcomes", "share"),
    [({"approved": 2, "edited": 1, "rejected": 1}, 0.75), ({"expired": 3, "standing": 2}, None), ({"skipped": 1}, 0.0)],
)
def test_the_share_of_consent_is_of_what_people_decided(outcomes, share):
    """Expired and withdrawn requests, and standing approvals, are none of it."""
    assert share == approved_share(ApprovalFigures(pending=0, outcomes=outcomes))
