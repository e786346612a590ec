"""The schema of the SQLite store, as it grew."""

from __future__ import annotations

import json
import sqlite3

from grace_kp.store import open_store
from tests.store.samples import MARK, document, holding, record


def test_a_file_written_before_this_version_is_opened_and_cleaned(tmp_path):
    """Rows that an older version deleted or replaced are gone from the file after the first deletion."""
    from grace_kp.store._schema import MIGRATIONS

    path = tmp_path / "t.db"
    old = sqlite3.connect(path, isolation_level=None)
    old.execute("PRAGMA journal_mode = WAL")
    old.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite switch it on
    old.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)")
    for number, statements in enumerate(MIGRATIONS[:3], 1):
        for statement in statements:
            old.execute(statement)
        old.execute("INSERT INTO schema_migrations VALUES (?, 'then')", (number,))
    row = "INSERT OR REPLACE INTO traces (id, created_at, domain, score, success, status, text, data) VALUES (?, '2026-01-01', 'd', 0.5, 1, 'completed', ?, ?)"
    for name in ("a", "b"):
        for text in (MARK * 300, "replaced"):
            children = ["kp:trace:b"] if name == "a" else []
            data = json.dumps(document(name, text=text, children=children)).encode()
            old.execute(row, (f"kp:trace:{name}", text, data))
    old.close()
    assert ["t.db"] == holding(tmp_path)
    store = open_store(f"sqlite:///{path}")
    assert (2, 0) == (store.count(), store.count(user="ana"))
    assert 2 == store.delete(id="kp:trace:a")
    assert [] == holding(tmp_path)
    store.close()


def test_a_text_that_sqlite_cannot_hold_is_found_all_the_same(tmp_path):
    """Half a surrogate pair and a zero byte neither break writing nor end the text."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    store.put([record(1, text="half \ud800 and zero \0 End")])
    assert 1 == store.count(text="END")
    store.close()
