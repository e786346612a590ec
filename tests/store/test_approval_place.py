"""Approvals stay with the file that was opened; what takes its place is refused."""

from __future__ import annotations

import shutil

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import open_store
from tests.contracts.test_approval_tables import entry, put, row


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t.db"


@pytest.fixture
def tables(file):
    """Tables with one row and one entry."""
    store = open_store(f"sqlite:///{file}")
    with store.approvals.transaction() as writes:
        writes.put(row(1))
        writes.append(entry(1))
    yield store.approvals
    store.close()


def refused(tables, problem):
    """Whether every use raises an error that says what to do."""
    for use in (lambda: put(tables, row(2)), tables.head, tables.changes, lambda: tables.identity):
        with pytest.raises(StoreError, match=f"{problem}.*then restart this program"):
            use()


def test_a_deleted_file_is_not_created_anew(tables, file):
    """Nothing is stored in it that nobody would find."""
    file.unlink()
    refused(tables, "deleted, moved or replaced")
    assert not file.exists()


def test_a_file_in_its_place_is_refused(tables, file, tmp_path):
    """Even a copy, which has the same id."""
    shutil.copy(file, tmp_path / "copy.db")
    (tmp_path / "copy.db").rename(file)
    refused(tables, "deleted, moved or replaced")


def test_an_earlier_state_in_the_same_file_is_refused(tables, file):
    """It lacks the newest entry of the chain that this process has seen."""
    other = open_store(f"sqlite:///{file}")
    with other.approvals.transaction() as writes:
        writes.append(entry(2))
    put(tables, row(2))  # it has seen entry 2
    with other._use(write=True) as connection:
        connection.execute("DELETE FROM approval_chain WHERE seq = 2")
    with pytest.raises(StoreError, match="lacks entry 2 of its audit trail"):
        put(tables, row(3))
    with other._use() as connection:
        assert (2,) == connection.execute("SELECT COUNT(*) FROM approvals").fetchone()
    other.close()


def test_another_store_in_the_same_file_is_refused(tables, file):
    """It has another id."""
    other = open_store(f"sqlite:///{file}")
    with other._use(write=True) as connection:
        connection.execute("UPDATE approval_identity SET id = 'x'")
    with pytest.raises(StoreError, match="holds another store"):
        put(tables, row(3))
    other.close()


def test_the_store_can_be_closed_and_opened_again(file):
    """Then the file at the path is the right one."""
    store = open_store(f"sqlite:///{file}")
    put(store.approvals, row(1))
    store.close()
    file.unlink()
    store.close()
    assert 0 == store.count()
    assert None is store.approvals.row("ap-1")
    store.close()
