"""Who may decide: groups, quorum, accounts, and which names count.

Groups come from the configuration of the process that calls the verb. Whoever can write the store can write a decision: separation of duties
needs the store behind a server that runs under another account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._people import Actor, person, reason_without_account
from grace_kp.errors import NotEntitled
from grace_kp.pages import printable
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.approvals._record import RequestRecord
    from grace_kp.approvals._tables import Reads


def users_of(record: RequestRecord) -> set[str]:
    """Return the people whom the runs act for that ask: the one that asked first, and those that joined it."""
    return {person(user) for user in (record.data["user"], *record.data["users"]) if user}


class Rights:
    """The configured groups of each person.

    Args:
        groups: the groups of each person, by name. Names are compared as they are written.
    """

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[str, Sequence[str]] | None = None) -> None:
        for name, member_of in (groups or {}).items():
            if isinstance(member_of, str) or not all(isinstance(group, str) for group in member_of):
                raise ValueError(f'the groups of {name!r:.60} must be a list of names, such as ["finance"]')
        self._groups = {
            redact_text(name, identifiers=False): frozenset(member_of) for name, member_of in (groups or {}).items()
        }

    def check(self, reads: Reads, record: RequestRecord, actor: Actor) -> None:
        """Refuse a person who may not decide a request."""
        reason = self.reason_against(reads, record, actor)
        if reason:
            raise NotEntitled(f"{printable(actor.name)} may not decide {record.id}: {reason}", approval_id=record.id)

    def counts(self, record: RequestRecord, actor: Actor) -> bool:
        """Return whether a vote counts. A quorum above 1 counts authenticated people only, unless it accepts stated names."""
        return bool(record.data["quorum"] == 1 or record.data["identity"] == "stated" or actor.authenticated)

    def votes_for(self, reads: Reads, record: RequestRecord, votes: Sequence[Mapping[str, Any]], digest: str) -> int:
        """Return how many distinct people have a counting vote for a digest and may still decide."""
        people = {
            person(vote["actor"]["name"])
            for vote in votes
            if vote["digest"] == digest
            and vote["counts"]
            and not self.reason_against(reads, record, Actor.from_dict(vote["actor"]))
        }
        return len(people)

    def reason_against(self, reads: Reads, record: RequestRecord, actor: Actor) -> str:
        """Return why a person may not decide a request; empty where nothing is against it."""
        quorum, groups = record.data["quorum"], record.groups
        if groups and not self._groups.get(actor.name, frozenset()).intersection(groups):
            own = ", ".join(sorted(self._groups.get(actor.name, ()))) or "no group"
            return f"it needs a member of {' or '.join(groups)}, and this name belongs to {own}"
        if (groups or quorum > 1) and person(actor.name) in users_of(record):
            return "the run acts for this person, and somebody else must decide"
        return reason_without_account(reads, actor)

    def awaits(self, reads: Reads, record: RequestRecord, actor: Actor) -> bool:
        """Return whether a person may decide a request and has not consented to it."""
        return not self.reason_against(reads, record, actor) and vote_of(reads, record, actor) is None


def vote_of(reads: Reads, record: RequestRecord, actor: Actor) -> Mapping[str, Any] | None:
    """Return the vote of a person for the arguments that are decided on now; None if there is none, or if it no longer counts."""
    for vote in record.data["votes"]:
        if vote["digest"] == record.row.digest and person(vote["actor"]["name"]) == person(actor.name):
            return None if reason_without_account(reads, Actor.from_dict(vote["actor"])) else vote
    return None
