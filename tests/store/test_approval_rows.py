"""What only a file can show: deleted contents leave no bytes, and a listing costs one step per name of an action."""

from __future__ import annotations

from grace_kp.approvals import RowQuery
from grace_kp.store import open_store
from tests.contracts.test_approval_tables import entry, put, row


def test_deleted_contents_leave_no_bytes(tmp_path):
    """Neither in the file nor in its log, also while another process has it open."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    store, other = open_store(url), open_store(url)
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
    store.close()
    other.close()


def test_a_glob_stands_for_the_names_that_are_there(tmp_path):
    """Many names are listed as one part of the table."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    put(store.approvals, *(row(n, action=f"action-{n}", changed=float(n)) for n in range(150)))
    query = RowQuery(action="action-*", order="newest", limit=2)
    assert ["ap-149", "ap-148"] == [found.id for found in store.approvals.rows(query)]
    assert 150 == store.approvals.count(query)
    store.close()
