"""A request for approval in a few words for lists and single lines: what would run, how old it is, who may decide, whether anybody waits.

Texts may be hostile: characters that a terminal would obey or hide are escaped in everything returned here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.cli._output import clean, shorten, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grace_kp.approvals import Actor, Approval

VALUE = 40
"""Columns of one argument within a sentence."""
PREFIX = "ap-"
"""The beginning of every id."""
SHORT = 8
"""Characters of an id in lists."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_LATER = {
    "raise": "asks again",
    "hand_over": "handed over",
    "interrupt": "interrupted",
}
STATES: Mapping[str, str] = {
    "approved": "approved",
    "edited": "approved with edits",
    "rejected": "rejected",
    "responded": "answered with words",
    "skipped": "skipped",
    "retried": "sent back for a retry",
    "expired": "expired",
    "cancelled": "cancelled",
    "claimed": "started, no outcome yet",
    "done": "done",
    "failed": "failed",
    "unknown": "started, outcome unknown",
    "not_done": "not done",
    "pending": "pending",
}
"""The states in words. The library of approvals takes long to import, so that only commands that need it do."""
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
    return STATES[state]


def duration(seconds: float) -> str:
    """Return a duration in at most two units, such as `3 h 20 m`; less than a minute in seconds."""
    left = int(abs(seconds))
    for place, (size, unit) in enumerate(_UNITS):
        if left < size:
            continue
        count, rest = divmod(left, size)
        smaller = rest // _UNITS[place + 1][0] if place + 1 < len(_UNITS) else 0
        return f"{count} {unit}" + (f" {smaller} {_UNITS[place + 1][1]}" if smaller and count < 10 else "")
    return f"{left} s"


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
    return sum(vote.counts and vote.digest == approval.digest for vote in approval.votes)


def process(approval: Approval) -> str:
    """Return in a word or two whether a process waits for the decision."""
    if approval.waits in _LATER:
        return _LATER[approval.waits]
    return {True: "waits", False: "gone", None: "unknown"}[approval.is_awaited]


def process_sentence(approval: Approval) -> str:
    """Return in a sentence what happens with a decision, as far as the process that asked is concerned."""
    match approval.waits:
        case "raise":
            return "none waits; the program asks again and then runs the action"
        case "hand_over":
            return "none waits; `grace-kp approvals work` carries out what is approved"
        case "interrupt":
            return "none waits; the graph is resumed with the decision"
        case _:
            return {
                True: "a live process waits for the decision",
                False: "the process that waited is gone; `grace-kp approvals work` carries out what is approved",
                None: "it cannot be known whether the process still waits",
            }[approval.is_awaited]


def at_deadline(approval: Approval) -> str:
    """Return what happens when nobody decides in time."""
    kind, _, group = approval.on_deadline.partition(":")
    match kind:
        case "skip":
            return "the action is skipped and the agent goes on"
        case "escalate":
            return f"the group {clean(group)} may decide"
        case _:
            return "the request expires and the action does not run"


def person(actor: Actor) -> str:
    """Return who did something, and how far that is established: `ana (stated, cli, uid ana on web-1)`."""
    facts = ["authenticated" if actor.authenticated else "stated", actor.channel]
    place = " on ".join(part for part in (actor.os_user, actor.host) if part)
    return clean(f"{actor.name} ({', '.join(facts)}{', as ' + place if place else ''})")


def short_digest(digest: str) -> str:
    """Return the scheme and the first characters of a digest."""
    scheme, _, value = digest.rpartition(":")
    return clean(f"{scheme.partition(':')[0]}:{value[:12]}" if scheme else value[:12])


def event(entry: Mapping[str, Any]) -> str:
    """Return what an entry of the chain records, in a word: a decision and an outcome as the state that they led to."""
    kind, facts = entry.get("kind", "-"), entry.get("facts")
    is_state = kind in {"decided", "settled", "reconciled"} and isinstance(facts, dict)
    return str(facts.get("state", kind) if is_state and isinstance(facts, dict) else kind)
