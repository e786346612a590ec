"""Rows, entries and queries of the tables as values. What a store must do with them is in `tests/contracts`."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.approvals import Link, Row, RowQuery


def test_rows_and_entries_do_not_change():
    """A change is another row."""
    row = Row(
        id="ap-1",
        state="pending",
        action="a",
        domain="d",
        key=None,
        digest="x",
        run_id=None,
        level=2,
        deadline=None,
        created=0.0,
        changed=0.0,
        revision=1,
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.state = "approved"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Link(seq=1, hash="h", approval=None, data=b"{}").seq = 2


def test_a_query_restricts_nothing_by_itself():
    """Except for how much comes back."""
    assert ((), None, "due", 100) == (RowQuery().states, RowQuery().action, RowQuery().order, RowQuery().limit)
