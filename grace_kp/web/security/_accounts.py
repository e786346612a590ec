"""Accounts: people and programs that may log in, with a role and the hash of a token, in the tables of approvals.

The same transaction writes each change and its entry of the audit trail. A process that can write the store can add an account, but
`grace-kp approvals verify` compares every account with its entries.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from grace_kp.approvals import ACCOUNT, account_mark, append, person, token_mark
from grace_kp.errors import GraceError, StoreError
from grace_kp.pages import printable
from grace_kp.trace import redact_text
from grace_kp.web._site import Person, Role
from grace_kp.web.security._visitor import hash_of, is_same, new_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Actor, Reads, Tables, Writes


SEEN = "account_seen"
"""Kind of the documents with the last use of a token. They are not part of the audit trail."""
SEEN_SECONDS = 600.0
"""The last use of a token is written at most this often."""
NAME_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account. Its token is known to its owner only."""

    name: str
    role: Role
    token_sha256: str
    created: float
    """Seconds since the epoch."""
    changed: float
    """When the role or the token last changed, in seconds since the epoch."""

    @property
    def id(self) -> str:
        """The normalised name, which all its spellings share; unique among accounts."""
        return person(self.name)

    @property
    def person(self) -> Person:
        """Who acts under this account."""
        return Person(name=self.name, role=self.role, account=account_mark(self.created))


class Accounts:
    """The accounts of one store. Several threads and processes may use it.

    Args:
        tables: the tables of approvals in the store.
        clock: the wall clock, in seconds since the epoch.
    """

    def __init__(self, tables: Tables, clock: Callable[[], float] = time.time) -> None:
        self._tables, self._clock = tables, clock
        self._known: tuple[int, Mapping[str, Account]] | None = None

    def all(self) -> Mapping[str, Account]:
        """Return the accounts by id, in alphabetical order.

        Raises:
            StoreError: the store, or an account in it, cannot be read.
        """
        known, now = self._known, self._tables.changes()
        if known is not None and known[0] == now:
            return known[1]
        self._known = now, _read(self._tables)
        return self._known[1]

    def get(self, name: str) -> Account:
        """Return the account of a name in any spelling.

        Raises:
            GraceError: there is none.
        """
        return _existing(self.all(), name)

    def of_token(self, token: str) -> Account | None:
        """Return the account of a token, or None. It takes the same time for every account."""
        wanted = hash_of(token)
        found = [account for account in self.all().values() if is_same(account.token_sha256, wanted)]
        return found[-1] if found else None

    def add(self, name: str, role: Role, *, actor: Actor) -> str:
        """Add an account and return its token, which is not stored.

        Raises:
            GraceError: the name has an account.
            ValueError: the name cannot be used.
        """
        if not name.strip() or len(name) > NAME_LENGTH or not person(name) or not name.strip().isprintable():
            raise ValueError(f"an account needs a name of 1 to {NAME_LENGTH} printable characters, not {name!r:.60}")
        if redact_text(name, identifiers=False) != name:
            raise ValueError("the name of an account must not hold a secret")
        now, token = self._clock(), new_token()
        account = Account(name=name.strip(), role=role, token_sha256=hash_of(token), created=now, changed=now)
        with self._tables.transaction() as writes:
            if other := _read(writes).get(account.id):
                raise GraceError(f"{printable(other.name)} has an account; `rotate` gives it a new token")
            self._put(writes, account, "added", actor)
        return token

    def rotate(self, name: str, *, actor: Actor) -> str:
        """Give an account a new token and return it. The old one and all sessions end.

        Raises:
            GraceError: the account does not exist.
        """
        token = new_token()
        with self._tables.transaction() as writes:
            account = replace(_existing(_read(writes), name), token_sha256=hash_of(token), changed=self._clock())
            self._put(writes, account, "rotated", actor)
        return token

    def set_role(self, name: str, role: Role, *, actor: Actor, force: bool = False) -> None:
        """Change the role of an account. Its sessions end.

        Raises:
            GraceError: the account does not exist, or it is the last admin and `force` is False.
        """
        with self._tables.transaction() as writes:
            accounts = _read(writes)
            account = _existing(accounts, name)
            if account.role is role:
                return
            _check_last_admin(accounts, account, force)
            self._put(writes, replace(account, role=role, changed=self._clock()), "role_changed", actor)

    def remove(self, name: str, *, actor: Actor, force: bool = False) -> None:
        """Remove an account. Its token and its sessions end.

        Raises:
            GraceError: the account does not exist, or it is the last admin and `force` is False.
        """
        with self._tables.transaction() as writes:
            accounts = _read(writes)
            account = _existing(accounts, name)
            _check_last_admin(accounts, account, force)
            self._put(writes, account, "removed", actor)
            writes.put_document(SEEN, account.id, None)

    def seen(self) -> dict[str, float]:
        """Return when the token of each account was last used, in seconds since the epoch, by id."""
        return {name: float(data) for name, data in self._tables.documents(SEEN).items() if data}

    def note_use(self, account: Account) -> None:
        """Store the time at which a token was used, unless a recent time is stored."""
        now, last = self._clock(), self._tables.document(SEEN, account.id)
        if last is None or not 0 <= now - float(last) < SEEN_SECONDS:
            with self._tables.transaction() as writes:
                if writes.document(ACCOUNT, account.id) is not None:
                    writes.put_document(SEEN, account.id, repr(now).encode())

    def _put(self, writes: Writes, account: Account, change: str, actor: Actor) -> None:
        is_removed = change == "removed"
        writes.put_document(ACCOUNT, account.id, None if is_removed else json.dumps(asdict(account)).encode())
        facts = {"account": account.id, "change": change, "role": account.role.value}
        if not is_removed:
            facts["token"] = token_mark(account.token_sha256)
        append(writes, "account_changed", at=self._clock(), actor=actor, facts=facts)


def _read(reads: Reads) -> dict[str, Account]:
    accounts = {}
    for name, data in sorted(reads.documents(ACCOUNT).items()):
        if not data:
            continue
        try:
            fields = json.loads(data)
            accounts[name] = Account(**{**fields, "role": Role(fields["role"])})
            is_readable = accounts[name].id == name and isinstance(accounts[name].token_sha256, str)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            is_readable = False
        if not is_readable:
            raise StoreError(f"the account {printable(name)!r:.80} in the store cannot be read")
    return accounts


def _existing(accounts: Mapping[str, Account], name: str) -> Account:
    found = accounts.get(person(name))
    if found is None:
        known = ", ".join(printable(account.name) for account in list(accounts.values())[:10]) or "none"
        raise GraceError(f"no account is named {printable(name)!r:.80}; accounts: {known}")
    return found


def _check_last_admin(accounts: Mapping[str, Account], account: Account, force: bool) -> None:
    admins = [other for other in accounts.values() if other.role is Role.ADMIN]
    if not force and admins == [account]:
        name = printable(account.name)
        raise GraceError(f"{name} is the last admin; --force removes it or changes its role all the same")
