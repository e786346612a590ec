"""Requests for approval in words, for terminals and pages, and as HTML for notebooks.

A notebook shows the call, the reason for asking, who may decide, and the outcome. Arguments are shown as stored, so that sealed ones stay sealed when
the notebook is passed on.

The sentences hold unescaped strings of people and agents: escape control and bidirectional characters before you display them.

`seconds_of` reads durations as people write them: seconds, or a string such as `90s`, `30m`, `4h`, `2d`, `1w`.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import tag_of
from grace_kp.approvals._digest import secret_parameters
from grace_kp.approvals._request import OPEN
from grace_kp.pages import (
    APPROVAL_STATES,
    badge,
    confidence_html,
    facts,
    fold,
    linked,
    printable,
    safe,
    spaced,
    with_fallbacks,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from grace_kp.approvals._request import Actor, ApprovalRequest


NOT_COVERED = "not covered by the decision: it may be another value when the action runs"
SEALED_REMARK = "sealed: it is kept encrypted"
KEY_FIELD = "identifies the operation: an edit cannot change it"
DELETED = "retention has deleted the contents"


def remarks_of(approval: ApprovalRequest) -> dict[str, str]:
    """Return remarks about arguments, by parameter name."""
    found = [(name, NOT_COVERED) for name in approval.not_covered]
    found += [(name, SEALED_REMARK) for name in approval.sealed]
    found += [(name, KEY_FIELD) for name in approval.key_fields]
    held = approval.arguments.items()
    found += [(name, f"{len(value):,} bytes") for name, value in held if isinstance(value, bytes | bytearray)]
    return {name: "; ".join(remark for each, remark in found if each == name) for name, _ in found}


def unheld_text(approval: ApprovalRequest) -> str:
    """Return why arguments are missing, or an empty string."""
    if approval.deleted:
        return DELETED
    if not approval.unencoded:
        return ""
    return f"{', '.join(approval.unencoded)}: only the waiting process holds the object, which has no form that can be stored or shown"


def consents(approval: ApprovalRequest) -> int:
    """Return the number of votes that count."""
    return sum(vote.counts and vote.digest == approval.digest for vote in approval.votes)


def rule_text(approval: ApprovalRequest) -> str:
    """Return who may decide, how many people are needed, and how many have consented."""
    who = f"members of {' or '.join(approval.groups)}" if approval.groups else "anybody"
    if approval.quorum > 1:
        kind = "authenticated" if approval.identity == "authenticated" else "stated"
        who = f"{approval.quorum} people ({kind} names), {who}; {consents(approval)} of {approval.quorum} so far"
    if approval.user and (approval.groups or approval.quorum > 1):
        who += f"; not {approval.user}, for whom the agent runs"
    return who


_PROCESSES: Mapping[str | bool | None, str] = {
    "raise": "no process waits; the program asks again and then runs the action",
    "hand_over": "no process waits; `grace-kp approvals work` carries out what is approved",
    "interrupt": "no process waits; the agent is resumed with the decision",
    True: "a live process waits for the decision",
    False: "the process that waited is gone; `grace-kp approvals work` carries out what is approved",
    None: "it cannot be known whether the process still waits",
}


def process_text(approval: ApprovalRequest) -> str:
    """Return which process waits for the decision or runs the action."""
    return _PROCESSES.get(approval.waits) or _PROCESSES[approval.is_awaited]


def deadline_text(on_deadline: str) -> str:
    """Return the effect of a deadline that passes without a decision."""
    kind, _, group = on_deadline.partition(":")
    effects = {
        "skip": "the action is skipped and the agent goes on",
        "proceed": "the action runs without an answer",
        "escalate": f"the group {group.strip()} may decide",
    }
    return effects.get(kind, "the request expires and the action does not run")


def actor_text(actor: Actor) -> str:
    """Return the name of an actor and how it is known: `ana (stated, cli, as ana on web-1)`."""
    place = " on ".join(part for part in (actor.os_user, actor.host) if part)
    is_known = "authenticated" if actor.authenticated else "stated"
    return f"{actor.name} ({is_known}, {actor.channel}{', as ' + place if place else ''})"


def event_text(entry: Mapping[str, Any]) -> str:
    """Return the kind of an entry of the chain; for a decision or an outcome, the new state."""
    kind, facts = entry.get("kind", "-"), entry.get("facts") or {}
    has_state = kind in {"decided", "settled", "reconciled"} and isinstance(facts, dict)
    return str(facts.get("state", kind) if has_state else kind)


def fact_text(name: str, value: object) -> str:
    """Return a fact of the policy or of the decision in words."""
    if name == "thresholds" and isinstance(value, Mapping):
        return "thresholds: " + ", ".join(f"{level} from {score}" for level, score in value.items())
    if name == "step":
        count = f"the {value} steps" if value != 1 else "the first step"
        return f"{count} of the run, before the request" if value else "the run before its first step"
    if name == "action_confidence" and isinstance(value, Mapping) and isinstance(value.get("reason"), str):
        return f"confidence in the action: {value['reason']}"
    return f"{name.replace('_', ' ')}: {value if isinstance(value, str) else json_text(value)}"


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return JSON with escapes for control and invisible characters."""
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
        value: seconds, or a string of numbers with the units w, d, h, m or s in this order: `1h30m`.
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
            f"{name} must be a number of seconds above 0, or a string such as 90s, 30m, 4h or 1h30m, of at most ten years; not {value!r:.60}"
        )
    return seconds


# For a notebook


MAX_LISTED = 50
"""Maximum number of votes and earlier requests; a note gives the number of the others."""
MAX_ARGUMENTS = 40
"""Maximum number of arguments; a note gives the number of the others."""
MAX_HTML = 400_000
"""Maximum characters of HTML of the arguments; a note replaces more."""
SHORT = 120
"""Maximum characters of a string that is shown in quotes on its line."""
_SEALED = '<span class="badge warn">sealed</span>'
_HIDDEN = '<span class="badge warn">hidden</span> <span class="small soft">it looks like a secret</span>'
_SHOW_WHOLE = "`grace-kp approvals show ID` shows the whole request."
_KINDS = {
    "pending": "warn", "approved": "good", "edited": "good", "done": "good", "rejected": "bad", "failed": "bad", "unknown": "bad",
}  # fmt: skip
_TEXTS = {
    "$int": "", "$float": "", "$decimal": "decimal number", "$date": "date", "$datetime": "date with time", "$time": "time",
    "$timedelta": "duration", "$uuid": "UUID", "$path": "path", "$bytes": "bytes in base64", "$bytearray": "bytes in base64",
}  # fmt: skip


def approval_html(approval: ApprovalRequest) -> str:
    """Return a request for approval as HTML. Nothing is cut without a note, and sealed arguments stay sealed."""
    from grace_kp.trace.html import items, steps_excerpt

    secret = _secrets(approval.encoded) | _secrets(approval.asked_encoded or {})
    word = badge(_state(approval.state), _KINDS.get(str(approval.state), ""))
    confidence = steps = ""
    if approval.score is not None or approval.breakdown or approval.reason:
        breakdown = with_fallbacks(approval.breakdown, approval.facts.get("fallbacks"))
        whole = confidence_html(
            approval.score, breakdown=breakdown, penalties=approval.penalties, reason=approval.reason
        )
        confidence = f'<p class="kind">confidence</p>{whole}'
    if isinstance(approval.run, Mapping) and items(approval.run.get("steps")):
        excerpt = steps_excerpt(approval.run, whole=_SHOW_WHOLE)
        steps = f"<details><summary>the run so far</summary>{excerpt}</details>"
    return (
        f'<p><span class="name mono">{safe(approval.action)}</span> {badge(approval.level)} {word}</p>'
        f"{_arguments(approval, secret)}{_edits(approval, secret)}{facts(_facts(approval))}"
        f"{confidence}{steps}{_details(approval)}"
    )


def _secrets(encoded: Mapping[str, Any]) -> set[str]:
    try:
        return set(secret_parameters(encoded))
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return set(encoded)  # damaged: all may be secrets


def _arguments(approval: ApprovalRequest, secret: Collection[str]) -> str:
    remarks = remarks_of(approval)
    rows = []
    for name, value in list(approval.encoded.items())[:MAX_ARGUMENTS]:
        remark = f'<div class="small soft">{safe(remarks[name])}</div>' if remarks.get(name) else ""
        rows.append((name, _show_argument(name, value, approval, secret) + remark))
    unheld = unheld_text(approval)
    if sum(len(row) for _, row in rows) > MAX_HTML:
        return f'<p class="note">The arguments are too long for a notebook. {safe(_SHOW_WHOLE)}</p>'
    left_out = len(approval.encoded) - MAX_ARGUMENTS
    notes = [unheld] if unheld else []
    notes += [f"{left_out:,} more arguments are not shown. {_SHOW_WHOLE}"] if left_out > 0 else []
    if not rows and not unheld:
        notes.append("It has no arguments.")
    return facts(rows) + "".join(f'<p class="note small">{safe(note)}</p>' for note in notes)


def _show_argument(name: str, value: Any, approval: ApprovalRequest, secret: Collection[str]) -> str:
    if name in approval.sealed or tag_of(value) == "$sealed":
        return _SEALED
    return _HIDDEN if name in secret else _value(value)


def _value(value: Any) -> str:
    """Return an encoded value as HTML: plain if that is exact, else as JSON with its type tags."""
    if isinstance(value, str):
        is_short = len(value) <= SHORT and "\n" not in value
        return f'<span class="mono">{linked(json_text(value), lines=False)}</span>' if is_short else fold(value)
    tag, content = tag_of(value), value.get(tag_of(value)) if isinstance(value, dict) else None
    if tag == "$text" and isinstance(content, str):
        try:
            return _value(base64.b64decode(content).decode("utf-8", "surrogatepass"))
        except ValueError:
            return fold(json_text(value), code=True)
    if tag in _TEXTS and len(value) == 1 and isinstance(content, str):
        kind = f' <span class="small soft">{_TEXTS[tag]}</span>' if _TEXTS[tag] else ""
        return (
            f'<span class="mono">{safe(content)}</span>' if len(content) <= SHORT else fold(content, code=True)
        ) + kind
    text = json_text(value)
    return (
        f'<span class="mono">{linked(text)}</span>'
        if len(text) <= SHORT
        else fold(json_text(value, indent=2), code=True)
    )


def _edits(approval: ApprovalRequest, secret: Collection[str]) -> str:
    asked = approval.asked_encoded
    if asked is None:
        return ""
    rows = []
    for name in list(dict.fromkeys([*asked, *approval.encoded]))[:MAX_ARGUMENTS]:
        if asked.get(name) == approval.encoded.get(name):
            continue
        shown = "".join(
            f"<{tag}>{_show_argument(name, held[name], approval, secret)}</{tag}>{space}"
            for tag, held, space in (("del", asked, " "), ("ins", approval.encoded, ""))
            if name in held
        )
        rows.append((name, shown))
    return f'<p class="small soft">changed by an edit</p>{facts(rows)}' if rows else ""


def _facts(approval: ApprovalRequest) -> Iterator[tuple[str, str]]:
    if approval.objective:
        yield "objective", fold(approval.objective)
    for gap in approval.gaps[:MAX_LISTED]:
        yield "missing evidence", linked(gap)
    yield "asked", _moment(approval.created_at)
    if str(approval.state) == "pending":
        due = "no deadline" if approval.deadline is None else _moment(approval.deadline)
        then = "" if approval.deadline is None else safe(f"; then {deadline_text(approval.on_deadline)}")
        yield "decide by", due + then
        yield "may decide", safe(rule_text(approval))
        yield "process", safe(process_text(approval))
    elif approval.state in OPEN and approval.use_by is not None:
        yield "use by", _moment(approval.use_by)
    if approval.standing:
        yield "approved by", f'the standing approval <span class="mono">{safe(approval.standing)}</span>'
    for vote in approval.votes[:MAX_LISTED]:
        stale = "" if vote.digest == approval.digest else ", for the arguments before the edit"
        counts = "" if vote.counts else ", does not count: the name is only stated"
        yield "vote", f"{safe(actor_text(vote.actor))}, {_moment(vote.at)}{counts}{stale}{_note(vote.note)}"
    decision, claim, outcome = approval.decision, approval.claim, approval.outcome
    if decision is not None:
        by = f"{safe(actor_text(decision.actor))}, {_moment(decision.at)}"
        yield "decision", f"{_state(decision.state)} by {by}{_note(decision.note)}"
    if claim is not None:
        yield "started", f"{_moment(claim.at)} by {safe(actor_text(claim.actor))}, process {safe(claim.process)}"
    if outcome is not None:
        raised = f", raised {safe(outcome.error)}" if outcome.error else ""
        by = f"{_moment(outcome.at)}, by {safe(actor_text(outcome.actor))}"
        yield "outcome", f"{_state(outcome.state)}, {by}{raised}{_note(outcome.note)}"
        if outcome.has_result:
            yield "result", fold(json_text(outcome.result, indent=2), code=True)
    for before in approval.earlier[:MAX_LISTED]:
        by = f" by {safe(before.by)}" if before.by else ""
        name = f'<span class="mono small">{safe(before.id)}</span>'
        yield "earlier", f"{_state(before.state)}{by}, {_moment(before.at)} {name}{_note(before.note)}"
    left_out = max(0, len(approval.votes) - MAX_LISTED) + max(0, len(approval.earlier) - MAX_LISTED)
    if left_out:
        yield "not shown", safe(f"{left_out:,} more votes and earlier requests. {_SHOW_WHOLE}")


def _details(approval: ApprovalRequest) -> str:
    pairs = [
        ("id", approval.id), ("revision", str(approval.revision)), ("digest", approval.digest), ("key", approval.key or ""), ("run", approval.run_id or ""),
        ("user", approval.user or ""), ("domain", approval.domain), ("version", approval.version), ("origin", approval.origin),
        ("same", f"{approval.same:,} pending requests have this digest" if approval.same > 1 else ""),
    ]  # fmt: skip
    rows = [(label, f'<span class="mono">{linked(text[:2_000])}</span>') for label, text in pairs if text]
    rows += [(spaced(name)[:80], fold(value if isinstance(value, str) else json_text(value))) for name, value in [*approval.policy.items(), *approval.facts.items()][:MAX_LISTED]]  # fmt: skip
    return f"<details><summary>details</summary>{facts(rows)}</details>"


def _state(state: str) -> str:
    return safe(APPROVAL_STATES.get(str(state), str(state)))


def _note(text: str) -> str:
    return f": {linked(text)}" if text else ""


def _moment(at: float) -> str:
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at:g} seconds since 1970"
    return f'<time datetime="{moment.isoformat(timespec="seconds")}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'
