"""A request for approval as HTML for a notebook: exactly what would run, why a person is asked, who may decide, and what came of it.

Arguments are shown in the form in which they are kept, so that sealed ones stay sealed: a notebook is a file, and files are passed on.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import tag_of
from grace_kp.approvals._request import OPEN
from grace_kp.approvals._seal import secret_parameters
from grace_kp.approvals._words import (
    actor_text,
    deadline_text,
    json_text,
    process_text,
    remarks_of,
    rule_text,
    unheld_text,
)
from grace_kp.pages import APPROVAL_STATES, badge, confidence_html, facts, fold, linked, safe, spaced, with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Collection

    from grace_kp.approvals._request import ApprovalRequest

MAX_LISTED = 50
"""Votes and earlier requests that are shown; a note gives the number of the others."""
MAX_ARGUMENTS = 40
"""Arguments that are shown; a note gives the number of the others."""
MAX_HTML = 400_000
"""Characters of HTML that the arguments may have; a note replaces more."""
SHORT = 120
"""Characters of a text up to which it stands in quotes on its line."""
_SEALED = '<span class="badge warn">sealed</span>'
_HIDDEN = '<span class="badge warn">hidden</span> <span class="small soft">it looks like a secret</span>'
_WHOLE = "`grace-kp approvals show ID` shows the whole request."
_KINDS = {
    "pending": "warn", "approved": "good", "edited": "good", "done": "good", "rejected": "bad", "failed": "bad", "unknown": "bad",
}  # fmt: skip
_TEXTS = {
    "$int": "", "$float": "", "$decimal": "decimal number", "$date": "date", "$datetime": "date with time", "$time": "time",
    "$timedelta": "duration", "$uuid": "UUID", "$path": "path", "$bytes": "bytes in base64", "$bytearray": "bytes in base64",
}  # fmt: skip


def approval_html(approval: ApprovalRequest) -> str:
    """Return a request for approval as HTML. Nothing is cut without a note, and no sealed argument is opened."""
    secret = _secrets(approval.encoded) | _secrets(approval.asked_encoded or {})
    state = str(approval.state)
    word = badge(APPROVAL_STATES.get(state, state), _KINDS.get(state, ""))
    return (
        f'<p><span class="name mono">{safe(approval.action)}</span> {badge(approval.level)} {word}</p>'
        f"{_arguments(approval, secret)}{_edits(approval, secret)}{facts(_facts(approval))}"
        f"{_confidence(approval)}{_run(approval)}{_details(approval)}"
    )


def _secrets(encoded: Mapping[str, Any]) -> set[str]:
    """Return the arguments in which redaction recognises a secret; all of them if they cannot be read."""
    try:
        return set(secret_parameters(encoded))
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return set(encoded)


def _arguments(approval: ApprovalRequest, secret: Collection[str]) -> str:
    remarks = remarks_of(approval)
    rows = []
    for name, value in list(approval.encoded.items())[:MAX_ARGUMENTS]:
        remark = f'<div class="small soft">{safe(remarks[name])}</div>' if remarks.get(name) else ""
        rows.append((name, _shown(name, value, approval, secret) + remark))
    unheld = unheld_text(approval)
    if sum(len(row) for _, row in rows) > MAX_HTML:
        return f'<p class="note">The arguments are too long for a notebook. {safe(_WHOLE)}</p>'
    left_out = len(approval.encoded) - MAX_ARGUMENTS
    notes = [unheld] if unheld else []
    notes += [f"{left_out:,} more arguments are not shown. {_WHOLE}"] if left_out > 0 else []
    if not rows and not unheld:
        notes.append("It has no arguments.")
    return facts(rows) + "".join(f'<p class="note small">{safe(note)}</p>' for note in notes)


def _shown(name: str, value: Any, approval: ApprovalRequest, secret: Collection[str]) -> str:
    if name in approval.sealed or tag_of(value) == "$sealed":
        return _SEALED
    return _HIDDEN if name in secret else _value(value)


def _value(value: Any) -> str:
    """Return an encoded value: plain where that is exact, else as JSON with its type tags."""
    if isinstance(value, str):
        is_short = len(value) <= SHORT and "\n" not in value
        return f'<span class="mono">{linked(_json(value), lines=False)}</span>' if is_short else fold(value)
    tag, content = tag_of(value), value.get(tag_of(value)) if isinstance(value, dict) else None
    if tag == "$text" and isinstance(content, str):
        try:
            return _value(base64.b64decode(content).decode("utf-8", "surrogatepass"))
        except (binascii.Error, UnicodeDecodeError):
            return fold(_json(value), code=True)
    if tag in _TEXTS and len(value) == 1 and isinstance(content, str):
        kind = f' <span class="small soft">{_TEXTS[tag]}</span>' if _TEXTS[tag] else ""
        return (
            f'<span class="mono">{safe(content)}</span>' if len(content) <= SHORT else fold(content, code=True)
        ) + kind
    text = _json(value)
    return f'<span class="mono">{linked(text)}</span>' if len(text) <= SHORT else fold(_json(value, 2), code=True)


def _edits(approval: ApprovalRequest, secret: Collection[str]) -> str:
    """Return what an edit has changed, before and after."""
    asked = approval.asked_encoded
    if asked is None:
        return ""
    rows = []
    for name in list(dict.fromkeys([*asked, *approval.encoded]))[:MAX_ARGUMENTS]:
        if asked.get(name) == approval.encoded.get(name):
            continue
        before = f"<del>{_shown(name, asked[name], approval, secret)}</del> " if name in asked else ""
        after = (
            f"<ins>{_shown(name, approval.encoded[name], approval, secret)}</ins>" if name in approval.encoded else ""
        )
        rows.append((name, f"{before}{after}"))
    return f'<p class="small soft">changed by an edit</p>{facts(rows)}' if rows else ""


def _facts(approval: ApprovalRequest) -> Iterator[tuple[str, str]]:
    if approval.objective:
        yield "objective", fold(approval.objective)
    for gap in approval.gaps[:MAX_LISTED]:
        yield "missing evidence", linked(gap)
    yield "asked", _moment(approval.created_at)
    if str(approval.state) == "pending":
        due = "no deadline" if approval.deadline is None else _moment(approval.deadline)
        then = "" if approval.deadline is None else safe(f"; then {deadline_text(approval)}")
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
        words = APPROVAL_STATES.get(str(decision.state), str(decision.state))
        yield (
            "decision",
            f"{safe(words)} by {safe(actor_text(decision.actor))}, {_moment(decision.at)}{_note(decision.note)}",
        )
    if claim is not None:
        yield "started", f"{_moment(claim.at)} by {safe(actor_text(claim.actor))}, process {safe(claim.process)}"
    if outcome is not None:
        raised = f", raised {safe(outcome.error)}" if outcome.error else ""
        words = APPROVAL_STATES.get(str(outcome.state), str(outcome.state))
        yield (
            "outcome",
            f"{safe(words)}, {_moment(outcome.at)}, by {safe(actor_text(outcome.actor))}{raised}{_note(outcome.note)}",
        )
        if outcome.has_result:
            yield "result", fold(_json(outcome.result, 2), code=True)
    for before in approval.earlier[:MAX_LISTED]:
        by = f" by {safe(before.by)}" if before.by else ""
        words = APPROVAL_STATES.get(str(before.state), str(before.state))
        yield (
            "earlier",
            f'{safe(words)}{by}, {_moment(before.at)} <span class="mono small">{safe(before.id)}</span>{_note(before.note)}',
        )
    left_out = max(0, len(approval.votes) - MAX_LISTED) + max(0, len(approval.earlier) - MAX_LISTED)
    if left_out:
        yield "not shown", safe(f"{left_out:,} more votes and earlier requests. {_WHOLE}")


def _confidence(approval: ApprovalRequest) -> str:
    if approval.score is None and not approval.breakdown and not approval.reason:
        return ""
    whole = confidence_html(
        approval.score,
        breakdown=with_fallbacks(approval.breakdown, approval.facts.get("fallbacks")),
        penalties=approval.penalties,
        reason=approval.reason,
    )
    return f'<p class="kind">confidence</p>{whole}'


def _run(approval: ApprovalRequest) -> str:
    from grace_kp.trace.html import items, steps_excerpt

    if not isinstance(approval.run, Mapping) or not items(approval.run.get("steps")):
        return ""
    steps = steps_excerpt(approval.run, whole=_WHOLE)
    return f"<details><summary>the run so far</summary>{steps}</details>"


def _details(approval: ApprovalRequest) -> str:
    pairs = [
        ("id", approval.id), ("revision", str(approval.revision)), ("digest", approval.digest), ("key", approval.key or ""), ("run", approval.run_id or ""),
        ("user", approval.user or ""), ("domain", approval.domain), ("version", approval.version), ("origin", approval.origin),
        ("same", f"{approval.same:,} pending requests have this digest" if approval.same > 1 else ""),
    ]  # fmt: skip
    rows = [(label, f'<span class="mono">{linked(text[:2_000])}</span>') for label, text in pairs if text]
    rows += [(spaced(name)[:80], fold(value if isinstance(value, str) else _json(value))) for name, value in [*approval.policy.items(), *approval.facts.items()][:MAX_LISTED]]  # fmt: skip
    return f"<details><summary>details</summary>{facts(rows)}</details>"


def _note(text: str) -> str:
    return f": {linked(text)}" if text else ""


def _moment(at: float) -> str:
    """Return a point in time as HTML, UTC to the second."""
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at:g} seconds since 1970"
    return f'<time datetime="{moment.isoformat(timespec="seconds")}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'


def _json(value: object, indent: int | None = None) -> str:
    try:
        return json_text(value, indent=indent)
    except (ValueError, RecursionError):
        return "<a value that JSON cannot hold>"
