"""Tables in memory: nothing is dropped to make room, and a forked child has none of its parent's requests."""

from __future__ import annotations

import os

import pytest

from grace_kp.errors import StoreError
from grace_kp.store._approval_memory import MemoryTables
from tests.contracts.test_approval_tables import put, row


def test_a_full_store_refuses_new_rows():
    """Those that it holds can be decided."""
    tables = MemoryTables(max_rows=2)
    put(tables, row(1), row(2))
    with pytest.raises(StoreError, match=r"holds 2 requests for approval.*sqlite:///path.db"):
        put(tables, row(3))
    assert [True] == put(tables, row(1, revision=2, state="approved"))


def test_rows_are_put_in_transactions_only():
    """Whoever keeps the block for later is refused, and nothing is written."""
    tables = MemoryTables()
    with tables.transaction() as writes:
        pass
    with pytest.raises(StoreError, match="inside of `transaction"):
        writes.put(row(1))
    assert None is tables.row("ap-1")


def test_a_forked_child_begins_with_empty_tables():
    """What its parent may run, it cannot run too."""
    tables = MemoryTables()
    put(tables, row(1, state="approved"))
    before = tables.identity, tables.hold()
    child = os.fork()
    if child == 0:
        is_new = tables.row("ap-1") is None and tables.identity != before[0] and tables.hold() != before[1]
        os._exit(0 if is_new and [True] == put(tables, row(1)) else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert "approved" == tables.row("ap-1").state
    assert not tables.lasting
