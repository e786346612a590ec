"""The ledger of actions in a SQLite file."""

from __future__ import annotations

import pytest

from grace_kp.store import open_store


@pytest.mark.parametrize("before", [None, b"1"])
def test_an_entry_is_replaced_only_from_what_it_was(tmp_path, before):
    """Another connection to the same file has been faster."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    first, second = open_store(url), open_store(url)
    if before is not None:
        assert first.put_action("key", before, only_if=None)
    assert first.put_action("key", b"2", only_if=before)
    assert not second.put_action("key", b"3", only_if=before)
    assert b"2" == second.action("key")
    first.close()
    second.close()
