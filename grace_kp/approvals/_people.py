"""People and processes that act on approvals, and whether their accounts still let them decide.

Votes that wait for others, and standing approvals, count only while their author may decide. A person who has lost an account of `grace-kp serve`, or
its right to decide, may not. Complete decisions stay.
"""

from __future__ import annotations

import getpass
import json
import re
import socket
import unicodedata
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from grace_kp.pages import printable
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from grace_kp.approvals._tables import Reads


_HIDDEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Invisible characters outside of the category Cf."""


def person(name: str) -> str:
    """Normalise a name so that spelling variants count as one person in a quorum: case, width, spaces, invisible characters, and secrets, which are redacted."""
    name = redact_text(name, identifiers=False)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    shown = (each for each in folded if unicodedata.category(each) != "Cf" and not _HIDDEN.match(each))
    return " ".join("".join(shown).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person or a process. A name is *stated* unless a login has established it. Secrets in names are redacted, and such a name is only stated."""

    name: str
    channel: str = "python"
    """Where the verb was called: `python`, `cli`, `web`, `console`, `gate`, `standing`."""
    authenticated: bool = False
    """Whether a login has established the name; `by=` only states it."""
    os_user: str = ""
    host: str = ""
    account: str = ""
    """Mark of the account of `grace-kp serve` under which the person was logged in; empty without one."""

    def __post_init__(self) -> None:
        if isinstance(self.name, str) and (name := redact_text(self.name, identifiers=False)) != self.name:
            object.__setattr__(self, "name", name)
            object.__setattr__(self, "authenticated", False)  # other secrets give the same name

    @classmethod
    def of(cls, by: str | Actor) -> Actor:
        """Return the actor, or an actor in this process with this name."""
        return by if isinstance(by, Actor) else cls.here(by)

    @classmethod
    def here(cls, name: str, *, channel: str = "python", authenticated: bool = False, account: str = "") -> Actor:
        """Return the actor with this name, in this process."""
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            raise ValueError(f"by must be a name of 1 to 200 characters, not {name!r:.60}")
        return cls(
            name=name.strip(),
            channel=channel,
            authenticated=authenticated,
            os_user=_os_user(),
            host=socket.gethostname(),
            account=account,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the actor as JSON without empty fields."""
        return {name: value for name in _NAMES if (value := getattr(self, name)) != ""}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Actor:
        """Return an actor from its JSON."""
        return cls(**data)


_NAMES = tuple(item.name for item in fields(Actor))


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry for the user id, as in some containers
        return ""


ACCOUNT = "account"
"""Kind of the documents that hold the accounts of `grace-kp serve`, by id."""
DECIDING_ROLES = frozenset({"approver", "admin"})
"""The roles of accounts that may decide."""


def account_mark(created: float) -> str:
    """Return the mark of an account by its time of creation, which tells it from a later account of the same name."""
    return f"{created:.6f}"


def reason_without_account(reads: Reads, actor: Actor) -> str:
    """Return why the account of an actor may no longer decide; an empty string if it may, or without an account."""
    if not actor.account:
        return ""
    name, data = printable(actor.name, replace="?"), reads.document(ACCOUNT, person(actor.name))
    try:
        account = json.loads(data) if data else None
        if account is None or account_mark(account["created"]) != actor.account:
            return f"the account of {name} was removed"
        if account["role"] not in DECIDING_ROLES:
            return f"the role of {name} no longer includes decisions"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"the account of {name} cannot be read"
    return ""
