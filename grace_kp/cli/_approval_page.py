"""A request for approval at a terminal: as a page, and in short forms for lists and lines.

The page begins with the question of the console reviewer, so that both state the same facts. Its strings may be hostile: all functions here
escape control and invisible characters.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.cli._lookup import PREFIX
from grace_kp.cli._output import clean, shorten, visible, visible_json
from grace_kp.cli._page import put, put_field, put_text
from grace_kp.pages import APPROVAL_STATES, span_text, with_fallbacks
from grace_kp.trace.html import items, mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from grace_kp.approvals import Approval
    from grace_kp.gating.reviewers import Question

LABEL = 14
"""Columns of the names of facts."""
FOLD = 30, 5
"""Lines shown from the beginning and the end of a long argument without --full."""
STEPS = 8
"""Maximum of steps shown without --full."""
ENTRIES = 50
"""Maximum of chain entries shown without --full."""
CHARACTERS = 2_000
"""Maximum length of a value without --full."""
_WITHDRAW = "withdraw {}   takes the approval back before the action has started"
NEXT = {
    "pending": "approve {}   or reject, edit, respond, skip, retry",
    "approved": _WITHDRAW,
    "edited": _WITHDRAW,
    "unknown": "reconcile {} --happened   or --not-happened, once you have looked",
}
"""The next command, by state."""


def question_of(approval: Approval) -> Question:
    """Return the question of the console reviewer for this request."""
    from grace_kp.approvals import deadline_text, remarks_of, unheld_text
    from grace_kp.gating import approval_alarms, changed_arguments
    from grace_kp.gating.reviewers import Facts, Question

    now = time.time()
    asked = approval.asked or {}
    time_text = "" if approval.state != "pending" else "no deadline"
    if time_text and approval.deadline is not None:
        time_text = f"{when_text(approval.deadline, now)}; then {clean(deadline_text(approval.on_deadline))}"
    facts = Facts(
        action=approval.action,
        level=approval.level,
        arguments=approval.arguments,
        before={name: asked.get(name) for name in changed_arguments(approval)},
        remarks=remarks_of(approval),
        objective=approval.objective or "",
        hidden=unheld_text(approval),
        score=approval.score,
        parts=with_fallbacks(approval.breakdown, approval.facts.get("fallbacks")),
        penalties=tuple(approval.penalties),
        reason=approval.reason,
        gaps=tuple(gap for gap in approval.gaps if gap not in approval.reason),
        alarms=approval_alarms(approval),
        earlier=tuple(
            f"{APPROVAL_STATES[before.state]}{f' by {before.by}' if before.by else ''}, {when_text(before.at, now)} "
            f"({id_text(before.id)}){_after_colon(before.note)}"
            for before in approval.earlier
        ),
        time=time_text,
    )
    return Question(facts)


def opaque(approval: Approval) -> list[str]:
    """Return the arguments that cannot be shown in full, so that a plain yes does not approve them."""
    return [*question_of(approval).opaque, *approval.unencoded]


def put_question(out: Console, approval: Approval, *, full: bool, places: bool = False) -> None:
    from grace_kp.gating import approval_alarms, approval_places
    from grace_kp.gating.reviewers import Page, place_lines

    page = Page(max(out.width, 20), getattr(out.file, "encoding", None) or "utf-8")
    question = question_of(approval)
    lines = question.in_full(page) if full else question.in_short(page, *FOLD, "--full or --json shows them")
    if places:
        quoted = [line for place in approval_places(approval) for line in place_lines(place, page)]
        if not quoted and list(approval_alarms(approval)) != [""]:  # a repeated call is about no value
            quoted = [" places:     no result of a tool that the run holds contains a value with an alarm"]
        lines += quoted
    for line in lines:
        put(out, line)


STYLES = {"state": "bold", "contents": "yellow"}


def put_approval(
    out: Console,
    approval: Approval,
    entries: Sequence[Mapping[str, Any]] = (),
    *,
    full: bool = False,
    places: bool = False,
) -> None:
    """Write a request and its entries of the chain; with `full`, without folding or shortening."""

    def cut(text: str) -> str:
        if full or len(text) <= CHARACTERS:
            return text
        return f"{text[:CHARACTERS]}… {len(text) - CHARACTERS:,} more characters; --full or --json shows them"

    put_question(out, approval, full=full, places=places)
    for name, value in _facts(approval, time.time()):
        text = value if name == "result" else clean(value)
        put_field(out, name, cut(text), label=LABEL, style=STYLES.get(name, ""))
    for title, unit, listed, most in (
        ("the run so far", "steps", items(mapping(approval.run).get("steps")), STEPS),
        ("the chain", "entries", entries, ENTRIES),
    ):
        if not listed:
            continue
        put(out, "")
        put_text(out, title, style="bold")
        hidden = 0 if full else max(0, len(listed) - most)
        if hidden:
            put_text(out, f"… {hidden:,} earlier {unit}; --full or --json shows them")
        for item in map(mapping, listed[hidden:]):
            head, text = _step(item) if unit == "steps" else (_entry(item), "")
            put_text(out, head, style="cyan" if unit == "steps" else "")
            if text:
                put_text(out, cut(clean(text)), indent=4)
    hint = NEXT.get(approval.state.value)
    if hint is not None:
        put(out, "")
        put_text(out, f"grace-kp approvals {hint.format(id_text(approval.id))}", style="dim")


def _facts(approval: Approval, now: float) -> Iterator[tuple[str, str]]:
    from grace_kp.approvals import actor_text, fact_text, process_text, rule_text

    yield "id", approval.id
    same = f"; {approval.same:,} pending requests have this digest" if approval.same > 1 else ""
    yield "state", f"{APPROVAL_STATES[approval.state]}, revision {approval.revision}{same}"
    if approval.deleted:
        yield "contents", "deleted by retention; the chain keeps commitments to them"
    yield "asked", when_text(approval.created_at, now)
    if approval.state.is_open:
        yield "process", process_text(approval)
    if approval.use_by is not None and approval.state in TO_BE_USED:
        yield "use by", when_text(approval.use_by, now)
    yield "digest", approval.digest
    if approval.asked_digest and approval.asked_digest != approval.digest:
        yield "asked digest", approval.asked_digest
    if approval.key:
        yield "key", approval.key
    yield "version", f"{approval.version}, domain {approval.domain}, origin {approval.origin}"
    yield from (("policy", fact_text(name, value)) for name, value in approval.policy.items())
    yield from (("rests on", fact_text(name, value)) for name, value in approval.facts.items() if name != "alarms")
    yield "may decide", rule_text(approval)
    if approval.standing:
        yield "standing", f"approved by the standing approval {approval.standing}"
    for vote in approval.votes:
        stale = "" if vote.digest == approval.digest else ", for the arguments before the edit"
        counts = "" if vote.counts else ", does not count: the name is only stated"
        yield "vote", f"{actor_text(vote.actor)}, {when_text(vote.at, now)}{counts}{stale}{_after_colon(vote.note)}"
    if (decision := approval.decision) is not None:
        by = f"{APPROVAL_STATES[decision.state]} by {actor_text(decision.actor)}"
        yield "decision", f"{by}, {when_text(decision.at, now)}{_after_colon(decision.note)}"
    if (claim := approval.claim) is not None:
        yield "started", f"{when_text(claim.at, now)}, by {actor_text(claim.actor)}, process {claim.process}"
    if (outcome := approval.outcome) is not None:
        by = f"{APPROVAL_STATES[outcome.state]}, {when_text(outcome.at, now)}, by {actor_text(outcome.actor)}"
        raised = f", raised {outcome.error}" if outcome.error else ""
        yield "outcome", f"{by}{raised}{_after_colon(outcome.note)}"
        if outcome.has_result:
            yield "result", visible_json(outcome.result)
    if approval.user:
        yield "user", f"{approval.user}, for whom the agent runs"
    if approval.run_id:
        yield "run", approval.run_id


def _after_colon(note: str | None) -> str:
    return f": {note}" if note else ""


def _step(step: dict[str, Any]) -> tuple[str, str]:
    tool = mapping(step.get("tool")).get("name")
    head = [str(step.get("step_id", "-")), str(step.get("type", "-")), *([str(tool)] if tool else [])]
    content = step.get("content") or step.get("input") or ""
    return "  ".join(clean(part, 60) for part in head), content if isinstance(content, str) else visible_json(content)


def _entry(entry: dict[str, Any]) -> str:
    from grace_kp.approvals import event_text

    by, at = mapping(entry.get("actor")).get("name"), entry.get("at")
    moment = moment_text(at) if isinstance(at, int | float) else clean(str(at))
    kind = event_text(entry).replace("_", " ")
    return clean(f"{entry.get('seq', '-'):>6}  {moment}  {kind}{f' by {by}' if by else ''}")


VALUE = 40
"""Maximum width of an argument in `call_text`."""
SHORT = 8
"""Length of an id in lists."""
_LATER = {"raise": "asks again", "hand_over": "handed over", "interrupt": "paused"}
TO_BE_USED = ("approved", "edited")
"""States in which the action may be started. They are literals, because importing `approvals` is slow."""


def call_text(approval: Approval, value: int = VALUE) -> str:
    """Return the call on one line: `refund(invoice="A-17", euros=40)`; key fields first, long values cut visibly."""
    names = [*(name for name in approval.key_fields if name in approval.arguments)]
    names += [name for name in approval.arguments if name not in names]
    listed = [f"{clean(name)}={shorten(_flat(approval.arguments[name]), value)}" for name in names]
    listed += [f"{clean(name)}=…" for name in approval.unencoded if name not in approval.arguments]
    return f"{clean(approval.action)}({', '.join(listed)})"


def _flat(value: object) -> str:
    from grace_kp.gating import flat, view

    return visible(flat(view(value, 1_000, 10_000).root)).replace("\n", "\\n")


def id_text(name: str) -> str:
    return clean(name.removeprefix(PREFIX)[:SHORT])


def time_left_text(approval: Approval, now: float) -> str:
    """Return the time left for deciding the request or using the decision; `-` without a limit."""
    until = approval.deadline if approval.state == "pending" else approval.use_by
    if until is None or not approval.state.is_open or approval.state == "claimed":
        return "-"
    return span_text(until - now) if until > now else "over"


def moment_text(at: float) -> str:
    """Format a point in time, in UTC to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at:g} seconds since 1970"


def when_text(at: float, now: float) -> str:
    """Format a point in time with its distance from now."""
    distance = f"in {span_text(at - now)}" if at > now else f"{span_text(now - at)} ago"
    return f"{moment_text(at)}, {distance}"


def deciders_text(approval: Approval) -> str:
    """Return who may decide, with the number of consents if there is a quorum."""
    who = ", ".join(clean(group) for group in approval.groups) or "anybody"
    if approval.quorum <= 1:
        return who
    from grace_kp.approvals import consents

    return f"{who}: {consents(approval)} of {approval.quorum}"


def process_word(approval: Approval) -> str:
    """Return whether a process waits for the decision, in a word or two."""
    if approval.waits in _LATER:
        return _LATER[approval.waits]
    return {True: "waits", False: "gone", None: "unknown"}[approval.is_awaited]
