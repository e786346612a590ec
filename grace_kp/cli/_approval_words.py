"""A request for approval in a few words for lists and single lines: what would run, how old it is, who may decide, whether anybody waits.

Texts may be hostile: characters that a terminal would obey or hide are escaped in everything returned here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.cli._output import clean, shorten, visible
from grace_kp.pages import APPROVAL_STATES, span_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grace_kp.approvals import Actor, Approval

VALUE = 40
"""Columns of one argument within a sentence."""
PREFIX = "ap-"
"""The beginning of every id. The library of approvals takes long to import, so that only commands that need it do."""
SHORT = 8
"""Characters of an id in lists."""
_LATER = {
    "raise": "asks again",
    "hand_over": "handed over",
    "interrupt": "interrupted",
}
PENDING, UNKNOWN = "pending", "unknown"
TO_BE_USED = ("approved", "edited")
"""States in which the action may be started."""


def sentence(approval: Approval, value: int = VALUE) -> str:
    """Return the call on one line: `refund(invoice="A-17", euros=40)`; key fields first, long values cut visibly.

    Args:
        approval: the request.
        value: columns of one argument.
    """
    names = [*(name for name in approval.key_fields if name in approval.arguments)]
    names += [name for name in approval.arguments if name not in names]
    listed = [f"{clean(name)}={shorten(_flat(approval.arguments[name]), value)}" for name in names]
    listed += [f"{clean(name)}=…" for name in approval.unencoded if name not in approval.arguments]
    return f"{clean(approval.action)}({', '.join(listed)})"


def _flat(value: object) -> str:
    from grace_kp.gating import flat, view

    return visible(flat(view(value, 1_000, 10_000).root)).replace("\n", "\\n")


def short_id(name: str) -> str:
    """Return the first characters of an id, without the common prefix."""
    return clean(name.removeprefix(PREFIX)[:SHORT])


def listed(names: Iterable[str]) -> str:
    """Return several names on one line."""
    return ", ".join(clean(name) for name in names)


def in_state(state: str) -> str:
    """Return a state in words."""
    return APPROVAL_STATES[state]


def duration(seconds: float) -> str:
    """Return a duration in at most two units, such as `3 h 20 m`; less than a minute in seconds."""
    return span_text(seconds)


def time_left(approval: Approval, now: float) -> str:
    """Return how long the request can be decided, or the decision be used; `-` without a limit."""
    until = approval.deadline if approval.state == PENDING else approval.use_by
    if until is None or not approval.state.is_open or approval.state == "claimed":
        return "-"
    return duration(until - now) if until > now else "over"


def moment_text(at: float) -> str:
    """Return a point in time for people, UTC to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at:g} seconds since 1970"


def when(at: float, now: float) -> str:
    """Return a point in time with its distance from now."""
    distance = f"in {duration(at - now)}" if at > now else f"{duration(now - at)} ago"
    return f"{moment_text(at)}, {distance}"


def deciders(approval: Approval) -> str:
    """Return who may decide, and how many of how many have consented."""
    who = ", ".join(clean(group) for group in approval.groups) or "anybody"
    if approval.quorum <= 1:
        return who
    return f"{who}: {consents(approval)} of {approval.quorum}"


def consents(approval: Approval) -> int:
    """Return the number of votes that count."""
    from grace_kp.approvals import consents as count

    return count(approval)


def process(approval: Approval) -> str:
    """Return in a word or two whether a process waits for the decision."""
    if approval.waits in _LATER:
        return _LATER[approval.waits]
    return {True: "waits", False: "gone", None: "unknown"}[approval.is_awaited]


def process_sentence(approval: Approval) -> str:
    """Return in a sentence what happens with a decision, as far as the process that asked is concerned."""
    from grace_kp.approvals import process_text

    return process_text(approval)


def at_deadline(approval: Approval) -> str:
    """Return what happens when nobody decides in time."""
    from grace_kp.approvals import deadline_text

    return clean(deadline_text(approval))


def person(actor: Actor) -> str:
    """Return who did something, and how far that is established: `ana (stated, cli, as ana on web-1)`."""
    from grace_kp.approvals import actor_text

    return clean(actor_text(actor))


def short_digest(digest: str) -> str:
    """Return the scheme and the first characters of a digest."""
    scheme, _, value = digest.rpartition(":")
    return clean(f"{scheme.partition(':')[0]}:{value[:12]}" if scheme else value[:12])


def event(entry: Mapping[str, Any]) -> str:
    """Return what an entry of the chain records, in a word: a decision and an outcome as the state that they led to."""
    from grace_kp.approvals import event_text

    return event_text(entry)
