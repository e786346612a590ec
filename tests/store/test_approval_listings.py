"""Listings of approvals in a file use an index, so that requests of the past cost nothing; deleted contents leave no bytes."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.approvals import OPEN, ApprovalState, RowQuery
from grace_kp.store import open_store
from grace_kp.store._approvals import ACTIONS, listing
from tests.contracts.test_approval_tables import entry, put, row

PENDING = {"states": ["pending"]}


@pytest.fixture
def plan(store):

    def explain(query, actions=None):
        with store.use() as connection:
            rows = connection.execute(
                *[f"EXPLAIN QUERY PLAN {(found := listing(query, actions))[0]}", found[1]]
            ).fetchall()
        return [detail for *_, detail in rows]

    return explain


@pytest.mark.parametrize(
    ("query", "actions", "index"),
    [
        (RowQuery(**PENDING), None, "approvals_open (state=?)"),
        (RowQuery(**PENDING), ["a", "b"], "approvals_open (state=?)"),
        (RowQuery(**PENDING, due_before=1.0), None, "approvals_open (state=? AND deadline<?)"),
        (RowQuery(states=sorted(OPEN)), None, "approvals_open (state=?)"),
        (RowQuery(order="newest"), None, "approvals_by_change"),
        (RowQuery(order="newest", since=1.0), None, "approvals_by_change (changed>?)"),
        (RowQuery(order="newest", states=["done", "failed"]), None, "approvals_by_state (state=?)"),
        (RowQuery(order="newest", states=["done"], since=1.0), None, "approvals_by_state (state=? AND changed>?)"),
        (RowQuery(order="newest", states=["done"]), ["a"], "approvals_by_action (action=?)"),
        (RowQuery(order="newest"), ["a", "b"], "approvals_by_action (action=?)"),
    ],
)  # fmt: skip
def test_a_listing_reads_an_index_in_order(plan, query, actions, index):
    details = plan(query, actions)
    assert any(detail.endswith(f"approvals USING INDEX {index}") for detail in details)
    assert not any("TEMP B-TREE" in detail or detail == "SCAN approvals" for detail in details)


@pytest.mark.parametrize(
    ("condition", "index"), [("key", "approvals_by_key"), ("digest", "approvals_by_digest"), ("run_id", "approvals_by_run")]
)  # fmt: skip
def test_few_rows_are_found_by_their_index(plan, condition, index):
    (found, *_) = plan(RowQuery(**{condition: "x"}, states=["pending"], order="newest"))
    assert f"SEARCH approvals USING INDEX {index} ({condition}=?)" == found


def test_names_of_actions_are_read_from_an_index(store):
    with store.use() as connection:
        details = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {ACTIONS}")]
    assert 2 == sum("SEARCH approvals USING COVERING INDEX approvals_by_action" in detail for detail in details)


def test_what_is_open_follows_from_the_state(store):
    """No column of its own can hide an open request from the listings, and the table knows the open states."""
    with store.use(write=True) as connection:
        for state in ApprovalState:
            connection.execute(
                "INSERT INTO approvals (id, state, action, domain, digest, level, deadline, created, changed, revision, data) "
                "VALUES (?, ?, 'a', 'd', 'x', 2, 1, 1, 1, 1, '{}')",
                (state, state),
            )
        found = {state for (state,) in connection.execute("SELECT state FROM approvals WHERE is_open = 1")}
        with pytest.raises(sqlite3.OperationalError, match="generated column"):
            connection.execute("UPDATE approvals SET is_open = 0")
    assert OPEN == found


def test_deleted_contents_leave_no_bytes(tmp_path, store, url):
    other = open_store(url)
    with store.approvals.transaction() as writes:
        for number in range(1, 50):
            writes.append(entry(number, salt=b"SALT", contents=b"CONTENTS" * 50))
    assert 49 == other.approvals.head()[0]
    with store.approvals.transaction() as writes:
        assert 49 == writes.forget(range(1, 50))
    for file in tmp_path.iterdir():
        assert b"CONTENTS" not in file.read_bytes()
        assert b"SALT" not in file.read_bytes()
    assert entry(7) == other.approvals.link(7)
    other.close()


def test_a_glob_stands_for_the_names_that_are_there(store):
    put(store.approvals, *(row(n, action=f"action-{n}", changed=float(n)) for n in range(150)))
    query = RowQuery(action="action-*", order="newest", limit=2)
    assert ["ap-149", "ap-148"] == [found.id for found in store.approvals.rows(query)]
    assert 150 == store.approvals.count(query)
