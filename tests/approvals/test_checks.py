"""Entries that no version of this library has written."""

from __future__ import annotations

import json

import pytest

from grace_kp.approvals import append, entry_of, verify
from grace_kp.approvals._chain import entry_hash
from tests.approvals.chains import chain_of, damage, found
from tests.approvals.tables import DictTables

STEPS = (1, 1, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: json.dumps(entry),  # not canonical
        lambda entry: json.dumps({**entry, "extra": 1}, sort_keys=True, separators=(",", ":")),
        lambda entry: json.dumps({**entry, "v": 2}, sort_keys=True, separators=(",", ":")),
        lambda entry: json.dumps({**entry, "revision": "3"}, sort_keys=True, separators=(",", ":")),
        lambda entry: json.dumps({**entry, "revision": None}, sort_keys=True, separators=(",", ":")),
        lambda _: "[1]",
        lambda _: "[" * 100_000,
        lambda _: "\udcff",
        lambda _: "",
    ],
)
def test_a_newest_entry_in_another_form(change):
    """Its hash was computed for it, and it is found all the same."""
    tables = chain_of(STEPS)
    data = change(entry_of(tables.chain[2])).encode("utf-8", "surrogateescape")
    damage(tables, 3, data=data, hash=entry_hash(data))
    assert [(3, "changed")] == found(verify(tables, at=1.0))


def test_an_entry_under_another_approval():
    """The column that entries are found by is part of what is checked."""
    tables = chain_of(STEPS)
    damage(tables, 3, approval="ap-1")
    verification = verify(tables, at=1.0)
    assert (3, "changed") == found(verification)[0]
    assert "it stands under approval ap-1 and is of ap-2" in verification.problems[0].message


@pytest.mark.parametrize("ranges", [None, "1", [1], [[1]], [["1", 2]], [[0, 1]], [[2, 1]], [[1, 99]], [[True, 1]]])
def test_an_entry_about_a_deletion_that_names_no_entries(ranges):
    """It excuses nothing."""
    tables = chain_of(STEPS)
    tables.forget([1])
    append(tables, "forgotten", at=1.0, facts={"count": 1, "ranges": ranges})
    assert [(4, "contents"), (1, "contents")] == found(verify(tables, at=1.0))


def test_an_entry_about_a_deletion_that_did_not_take_place():
    """Contents that are there, and a number that is not theirs, are named."""
    tables = chain_of(STEPS)
    append(tables, "forgotten", at=1.0, facts={"count": 2, "ranges": [[1, 2]]})
    assert [(1, "contents"), (2, "contents"), (4, "contents")] == found(verify(tables, at=1.0))


def test_contents_that_disappeared_before_retention_came_by():
    """Retention does not excuse them: the number of deleted contents is not theirs."""
    tables = chain_of((1, 1, 1))
    tables.forget([1])
    tables.forget([2])
    append(tables, "forgotten", at=1.0, facts={"count": 1, "ranges": [[1, 2]]})
    verification = verify(tables, at=1.0)
    assert [(4, "contents")] == found(verification)
    assert "the contents of 1 entries were deleted, and those of 2 are missing" in verification.problems[0].message


def test_a_store_without_tables_is_sound():
    """There is nothing to check."""
    assert verify(DictTables(), at=1.0).ok
