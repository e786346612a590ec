"""What an account of `grace-kp serve` means for consent: a person who loses it, or its right to decide, no longer consents to anything.

A decision that was made before stays. Votes that still wait for others, and standing approvals, count only while their author may decide.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from grace_kp.approvals._actor import person
from grace_kp.pages import printable

if TYPE_CHECKING:
    from grace_kp.approvals._actor import Actor
    from grace_kp.approvals._tables import Reads

ACCOUNT = "account"
"""Kind of the documents that hold the accounts of `grace-kp serve`, by id."""
DECIDING_ROLES = frozenset({"approver", "admin"})
"""The roles of accounts that may decide."""


def account_mark(created: float) -> str:
    """Return the mark of an account: a later account of the same name has another.

    Args:
        created: when it was created, in seconds since the epoch.
    """
    return f"{created:.6f}"


def reason_without_account(reads: Reads, actor: Actor) -> str:
    """Return why the consent of an actor no longer counts, because of its account; empty where it counts, or where there was no account."""
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
