"""The accounts of a store against the entries of its audit trail. `tests/web/security/test_accounts.py` changes real ones."""

from __future__ import annotations

import json
import time
from contextlib import closing

from grace_kp.approvals import ACCOUNT, append, token_mark, verify
from grace_kp.store import open_store


def test_a_mark_opens_nothing():
    """It is neither the token's hash nor its beginning, and tells two tokens apart."""
    first, second = token_mark("a" * 64), token_mark("b" * 64)
    assert first != second
    assert 16 == len(first)
    assert not ("a" * 64).startswith(first)


def test_an_account_that_no_entry_states_is_a_problem():
    """As is one that cannot be read. An entry of another kind states none."""
    with closing(open_store("memory:")) as store:
        tables = store.approvals
        document = json.dumps({"role": "admin", "token_sha256": "a" * 64}).encode()
        facts = {"account": "ana", "change": "added", "role": "admin", "token": token_mark("a" * 64)}
        with tables.transaction() as writes:
            writes.put_document(ACCOUNT, "ana", document)
            writes.put_document(ACCOUNT, "ben", b"[]")
            append(writes, "account_changed", at=1.0, facts=facts)
            append(writes, "refused", at=1.0, facts={**facts, "account": "ben"})
        found = [(problem.seq, problem.kind, problem.message) for problem in verify(tables, at=time.time()).problems]
        assert [(0, "account", "the account ben was added without an entry")] == found
