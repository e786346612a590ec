"""Whether the accounts of a store are those that the chain records: added, with this role, and with this token."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._account import ACCOUNT
from grace_kp.approvals._checks import at_one_head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._checks import Problems
    from grace_kp.approvals._tables import Reads


def token_mark(token_sha256: str) -> str:
    """Return what entries of the chain state about a token: it tells two tokens apart, and nobody can log in with it."""
    return hashlib.sha256(token_sha256.encode()).hexdigest()[:16]


class AccountCheck:
    """Compares the documents of accounts with their entries. It keeps one record per account."""

    def __init__(self, found: Problems, reads: Reads) -> None:
        self._found = found
        found_at = at_one_head(reads, lambda: {name: data for name, data in reads.documents(ACCOUNT).items() if data})
        self._head = found_at[0] if found_at else 0
        self._documents = found_at[1] if found_at else None
        self._last: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self.unchecked = (
            ()
            if self._documents is not None
            else ("Accounts were not compared, because the store was written all the time.",)
        )

    def add(self, seq: int, entry: Mapping[str, Any]) -> None:
        """Note what an entry says of an account."""
        name = entry["facts"].get("account")
        if entry["kind"] == "account_changed" and isinstance(name, str) and seq <= self._head:
            self._last[name] = seq, entry["facts"]

    def end(self) -> None:
        """Compare the documents."""
        if self._documents is None:
            return
        for name, data in self._documents.items():
            seq, facts = self._last.get(name, (0, {}))
            if not seq or _facts(data) != (facts.get("role"), facts.get("token")) or facts.get("change") == "removed":
                wrong = f"is not as entry {seq} has left it" if seq else "was added without an entry"
                self._found.add(seq, "account", f"the account {name} {wrong}")
        for name, (seq, facts) in self._last.items():
            if facts.get("change") != "removed" and name not in self._documents:
                self._found.add(seq, "account", f"the account {name} was removed without an entry")


def _facts(data: bytes) -> tuple[object, object]:
    try:
        account = json.loads(data)
        return account["role"], token_mark(account["token_sha256"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, None
