"""A request for approval in words: its state, who may decide, what follows, how long there is. Terminals and web pages state the same.

Texts of people and agents stand in these sentences as they are. Whoever displays them makes control and bidirectional characters visible.

`seconds_of` reads durations as people write them: seconds, or a string such as `90s`, `30m`, `4h`, `2d`, `1w`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.pages import printable

if TYPE_CHECKING:
    from grace_kp.approvals._people import Actor
    from grace_kp.approvals._request import ApprovalRequest
    from grace_kp.approvals._standing import Standing
    from grace_kp.approvals._verify import Verification


NOT_COVERED = "not covered by the decision: it may be another value when the action runs"
SEALED_REMARK = "sealed: it is kept encrypted"
KEY_FIELD = "identifies the operation: an edit cannot change it"
DELETED = "retention has deleted the contents"


def remarks_of(approval: ApprovalRequest) -> dict[str, str]:
    """Return what else is to be known of an argument, by parameter name."""
    remarks: dict[str, list[str]] = {}
    for names, remark in (
        (approval.not_covered, NOT_COVERED),
        (approval.sealed, SEALED_REMARK),
        (approval.key_fields, KEY_FIELD),
    ):
        for name in names:
            remarks.setdefault(name, []).append(remark)
    for name, value in approval.arguments.items():
        if isinstance(value, bytes | bytearray):
            remarks.setdefault(name, []).append(f"{len(value):,} bytes")
    return {name: "; ".join(found) for name, found in remarks.items()}


def unheld_text(approval: ApprovalRequest) -> str:
    """Return why arguments are not shown at all; empty where all are."""
    if approval.deleted:
        return DELETED
    if not approval.unencoded:
        return ""
    return f"{', '.join(approval.unencoded)}: only the waiting process holds the object, which has no form that can be stored or shown"


def consents(approval: ApprovalRequest) -> int:
    """Return the number of votes that count."""
    return sum(vote.counts and vote.digest == approval.digest for vote in approval.votes)


def rule_text(approval: ApprovalRequest) -> str:
    """Return who may decide, how many must, and how many have."""
    who = f"members of {' or '.join(approval.groups)}" if approval.groups else "anybody"
    if approval.quorum > 1:
        kind = "authenticated" if approval.identity == "authenticated" else "stated"
        who = f"{approval.quorum} people ({kind} names), {who}; {consents(approval)} of {approval.quorum} so far"
    if approval.user and (approval.groups or approval.quorum > 1):
        who += f"; not {approval.user}, for whom the agent runs"
    return who


def process_text(approval: ApprovalRequest) -> str:
    """Return in a sentence what happens with a decision, as far as the process that asked is concerned."""
    match approval.waits:
        case "raise":
            return "no process waits; the program asks again and then runs the action"
        case "hand_over":
            return "no process waits; `grace-kp approvals work` carries out what is approved"
        case "interrupt":
            return "no process waits; the graph is resumed with the decision"
        case _:
            return {
                True: "a live process waits for the decision",
                False: "the process that waited is gone; `grace-kp approvals work` carries out what is approved",
                None: "it cannot be known whether the process still waits",
            }[approval.is_awaited]


def deadline_text(approval: ApprovalRequest) -> str:
    """Return what happens when nobody decides in time."""
    kind, _, group = approval.on_deadline.partition(":")
    match kind:
        case "skip":
            return "the action is skipped and the agent goes on"
        case "escalate":
            return f"the group {group} may decide"
        case _:
            return "the request expires and the action does not run"


def actor_text(actor: Actor) -> str:
    """Return who did something, and how far that is established: `ana (stated, cli, as ana on web-1)`."""
    facts = ["authenticated" if actor.authenticated else "stated", actor.channel]
    place = " on ".join(part for part in (actor.os_user, actor.host) if part)
    return f"{actor.name} ({', '.join(facts)}{', as ' + place if place else ''})"


def event_text(entry: Mapping[str, Any]) -> str:
    """Return what an entry of the chain records, in a word: a decision and an outcome as the state that they led to."""
    kind, facts = entry.get("kind", "-"), entry.get("facts")
    is_state = kind in {"decided", "settled", "reconciled"} and isinstance(facts, dict)
    return str(facts.get("state", kind) if is_state and isinstance(facts, dict) else kind)


def fact_text(name: str, value: object) -> str:
    """Return a fact of the policy or of the decision in words."""
    if name == "thresholds" and isinstance(value, Mapping):
        return "thresholds: " + ", ".join(f"{level} from {score}" for level, score in value.items())
    if name == "step":
        count = f"the {value} steps" if value != 1 else "the first step"
        return f"{count} of the run, before the request" if value else "the run before its first step"
    return f"{name.replace('_', ' ')}: {value if isinstance(value, str) else json_text(value)}"


def constraint_texts(standing: Standing) -> list[tuple[str, str]]:
    """Return each parameter of a standing approval with its constraint in words."""
    found = []
    for name, constraint in standing.parameters.items():
        if constraint.get("any"):
            words = "any value"
        elif "is" in constraint:
            words = json_text(constraint["is"])
        elif "in" in constraint:
            words = f"one of {json_text(constraint['in'])}"
        else:
            bounds = [f"{bound} {json_text(constraint[bound])}" for bound in ("from", "to") if bound in constraint]
            words = " ".join(bounds)
        found.append((name, words))
    return found


def verdict_text(found: Verification) -> str:
    """Return in a sentence what a verification has found."""
    has_checkpoint = found.against == "checkpoint"
    read = (
        f"{found.entries:,} entries verified {'against the checkpoint' if has_checkpoint else 'without a checkpoint'}"
    )
    if not found.ok:
        return f"{read}: {found.problem_count:,} problem{'' if found.problem_count == 1 else 's'}"
    # Without a checkpoint, a chain that was written anew looks whole.
    return (
        f"{read}: {'no problem found' if has_checkpoint else 'no accident found; a deliberate change would not show'}"
    )


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return JSON in which characters that are obeyed or hidden are written as escapes of JSON, so that nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return printable(text, keep="\n", replace=lambda character: json.dumps(character)[1:-1])


LONGEST = 366 * 86_400 * 10
"""Seconds in ten years, the longest duration."""
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+", re.ASCII)


def seconds_of(name: str, value: object) -> float:
    """Return a duration in seconds.

    Args:
        value: seconds, or a text of numbers with the units s, m, h, d or w, from the largest to the smallest: `1h30m`.
    """
    seconds = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) if abs(value) < LONGEST * 2 else math.inf
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        parts = _PART.findall(value)
        sizes = [_UNITS[unit] for _, unit in parts]
        if sizes == sorted(set(sizes), reverse=True):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds <= LONGEST:
        raise ValueError(
            f"{name} must be a number of seconds above 0, or a text such as 90s, 30m, 4h or 1h30m, of at most ten years; not {value!r:.60}"
        )
    return seconds
