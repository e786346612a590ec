"""What the verbs have in common: who decided first, whether a call repeats an earlier one, and how a request is closed."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from grace_kp.approvals._actor import person
from grace_kp.approvals._due import DEADLINE
from grace_kp.approvals._states import ApprovalState
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown
from grace_kp.pages import printable

if TYPE_CHECKING:
    from grace_kp.approvals._actor import Actor
    from grace_kp.approvals._record import Record
    from grace_kp.approvals._turn import Turn

_PAST = {
    ApprovalState.CLAIMED: "is being carried out, claimed",
    ApprovalState.DONE: "was carried out, claimed",
    ApprovalState.FAILED: "was carried out and failed, claimed",
    ApprovalState.UNKNOWN: "was begun and its outcome is unknown, claimed",
    ApprovalState.NOT_DONE: "did not happen, as reconciled",
}


def already(record: Record) -> AlreadyDecided:
    """Return the error that names what came first, its author and its time."""
    data, state = record.data, record.state
    outcome, claim, decision = data["outcome"], data["claim"], data["decision"]
    source = (claim if state in _PAST else decision) or outcome or decision
    if state is ApprovalState.NOT_DONE:
        source = outcome
    name = "" if source is None or source["actor"]["channel"] == DEADLINE else source["actor"]["name"]
    at = record.row.changed if source is None else source["at"]
    decided = f"; {decision['state']} by {_shown(decision['actor']['name'])}" if state in _PAST and decision else ""
    by = f" by {_shown(name)}" if name else ""
    return AlreadyDecided(
        f"{record.id} {_PAST.get(state, f'was {state.value}')}{by} at {moment(at)}{decided}; nothing was changed",
        approval_id=record.id,
        state=state.value,
        by=name,
        at=at,
    )


def moment(at: float) -> str:
    """Return a time as text, in UTC to the second."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def check_actor(actor: Actor) -> None:
    """Refuse an actor without a usable name.

    Raises:
        ApprovalError: with what is allowed.
    """
    if not isinstance(actor.name, str) or not person(actor.name) or len(actor.name) > 200:
        raise ApprovalError("whoever decides needs a name of 1 to 200 characters")


def check_digest(record: Record, digest: str | None) -> None:
    """Refuse a digest that is not that of the arguments which are decided on now.

    Raises:
        ChangedSinceShown: naming both.
    """
    if digest is not None and digest != record.row.digest:
        edited = record.data["editor"]
        by = f" by {_shown(edited['name'])}" if edited else ""
        raise ChangedSinceShown(
            f"the arguments of {record.id} are not those that were shown: they were changed{by}; look at them again and decide with the "
            f"digest {record.row.digest}",
            approval_id=record.id,
        )


def is_same_person(first: Actor | None, second: Actor) -> bool:
    """Return whether two actors have one name, however it is spelt."""
    return first is not None and person(first.name) == person(second.name)


def close(turn: Turn, record: Record, state: ApprovalState, kind: str, *, actor: Actor, verb: str, note: str) -> Record:
    """Write the state that a person has closed a request with."""
    closed = {"state": state.value, "actor": actor.to_dict(), "at": record.at(turn.now), "seq": turn.next_seq}
    after = record.changed(state, decision=closed)
    return turn.write(record, after, kind, actor=actor, facts={"verb": verb}, contents={"note": note})


def _shown(name: str) -> str:
    return printable(name, replace="?")
