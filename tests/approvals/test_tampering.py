"""Verification of a SQLite file that somebody has changed with a SQL client."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from grace_kp.approvals import checkpoint, export, verify
from grace_kp.store import open_store
from tests.approvals.chains import chain_of, found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def opened(path):
    return contextlib.closing(open_store(f"sqlite:///{path}"))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE approval_chain SET data = X'7B7D' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET data = 5 WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET data = 'é' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET hash = X'00' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET hash = 7 WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET approval = 5 WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET approval = NULL WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET seq = -5 WHERE seq = 3", (3, "missing")),
        ("UPDATE approval_chain SET seq = 9223372036854775807 WHERE seq = 3", (3, "missing")),
        ("UPDATE approval_chain SET seq = 50000000000 WHERE seq = 8", (8, "missing")),
        ("DELETE FROM approval_chain WHERE seq = 8", (8, "missing")),
        ("DELETE FROM approval_chain", (1, "missing")),
        ("UPDATE approval_contents SET salt = 'abc' WHERE seq = 3", (3, "contents")),
        ("UPDATE approval_contents SET salt = 5 WHERE seq = 3", (3, "contents")),
        ("UPDATE approval_contents SET contents = '{}' WHERE seq = 3", (3, "contents")),
        ("DELETE FROM approval_contents WHERE seq = 3", (3, "contents")),
        ("UPDATE approvals SET state = 'nonsense' WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET changed = 'x' WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET changed = 9e999 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET deadline = 9e999 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET level = 9007199254740993 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET revision = 'x' WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET revision = 0 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET revision = 1.5 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET data = 'x' WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET id = 'ap-4' WHERE id = 'ap-3'", (7, "row")),
        ("DELETE FROM approvals WHERE id = 'ap-3'", (7, "row")),
        (("INSERT INTO approvals SELECT 9, 'ap-9', state, action, domain, key, digest, run_id, level, deadline, created, changed, "
         "revision, waiter, data FROM approvals WHERE id = 'ap-3'"), (0, "row")),
        ("UPDATE approval_identity SET id = 'other'", (0, "checkpoint")),
    ],
)  # fmt: skip
def test_a_changed_file(path, statement, problem):
    """Whatever stands in a column, the place is named and the rest is read and exported."""
    with opened(path) as store:
        chain_of((1, 1, 2, 1, 2, 1, 3, 2), store.approvals)
        point = checkpoint(store.approvals, at=1.0)
        assert verify(store.approvals, at=1.0, checkpoint=point).ok
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount
    with opened(path) as store:
        verification = verify(store.approvals, at=1.0, checkpoint=point)
        assert problem in found(verification)
        assert len(list(export(store.approvals))) == verification.entries
