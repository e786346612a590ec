"""A request for approval for people at a terminal: as a page, and in a few words for lists and single lines.

The page begins with the layout of the code that asks at the console, so that both state the same facts in the same words. Its strings may be
hostile: characters that a terminal would obey or hide are escaped in everything returned or written here.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.cli._lookup import PREFIX
from grace_kp.cli._output import clean, shorten, visible, visible_json
from grace_kp.cli._page import put, put_field, put_text
from grace_kp.cli._trace_page import items, mapping
from grace_kp.pages import APPROVAL_STATES, span_text, with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from grace_kp.approvals import Approval, Earlier
    from grace_kp.gating.reviewers import Question

LABEL = 14
"""Columns of the names of facts."""
FOLD = 30, 5
"""Lines that a long argument keeps at its beginning and end without --full."""
STEPS = 8
"""Newest steps of the run that are shown without --full."""
ENTRIES = 50
"""Entries of the chain that are shown without --full."""


def question_of(approval: Approval) -> Question:
    """Return the request as the console lays it out."""
    from grace_kp.approvals import remarks_of, unheld_text
    from grace_kp.gating import changed_arguments
    from grace_kp.gating.reviewers import Facts, Question

    now = time.time()
    asked = approval.asked or {}
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
        earlier=tuple(_earlier(before, now) for before in approval.earlier),
        time=_time(approval, now),
    )
    return Question(facts)


def _time(approval: Approval, now: float) -> str:
    from grace_kp.approvals import deadline_text

    if approval.state != "pending":
        return ""
    if approval.deadline is None:
        return "no deadline"
    return f"{when_text(approval.deadline, now)}; then {clean(deadline_text(approval))}"


def _earlier(before: Earlier, now: float) -> str:
    by = f" by {before.by}" if before.by else ""
    note = f": {before.note}" if before.note else ""
    return f"{APPROVAL_STATES[before.state]}{by}, {when_text(before.at, now)} ({id_text(before.id)}){note}"


def opaque(approval: Approval) -> list[str]:
    """Return the arguments that cannot be shown in full, so that a plain consent to them does not count."""
    return [*question_of(approval).opaque, *approval.unencoded]


def put_question(out: Console, approval: Approval, *, full: bool) -> None:
    """Write what would run and why a person is asked."""
    from grace_kp.gating.reviewers import Page

    page = Page(max(out.width, 20), getattr(out.file, "encoding", None) or "utf-8")
    question = question_of(approval)
    lines = question.in_full(page) if full else question.in_short(page, *FOLD, "--full or --json shows them")
    for line in lines:
        put(out, line)


class ApprovalPage:
    """Writes requests for approval to a console.

    Args:
        out: the console.
        full: fold and shorten nothing.
    """

    def __init__(self, out: Console, *, full: bool = False) -> None:
        self._out = out
        self._full = full
        self._now = time.time()

    def print(self, approval: Approval, entries: Iterable[Mapping[str, Any]] = ()) -> None:
        """Write one request, and the entries of the chain that concern it."""
        put_question(self._out, approval, full=self._full)
        self._state(approval)
        self._evidence(approval)
        self._people(approval)
        self._outcome(approval)
        self._run(approval)
        self._chain(list(entries))
        self._next(approval)

    def _state(self, approval: Approval) -> None:
        from grace_kp.approvals import process_text

        self._field("id", approval.id)
        same = f"; {approval.same:,} pending requests have this digest" if approval.same > 1 else ""
        self._field("state", f"{APPROVAL_STATES[approval.state]}, revision {approval.revision}{same}", "bold")
        if approval.deleted:
            self._field("contents", "deleted by retention; the chain keeps commitments to them", "yellow")
        self._field("asked", when_text(approval.created_at, self._now))
        if approval.state.is_open:
            self._field("process", process_text(approval))
        if approval.use_by is not None and approval.state in TO_BE_USED:
            self._field("use by", when_text(approval.use_by, self._now))
        self._field("digest", approval.digest)
        if approval.asked_digest and approval.asked_digest != approval.digest:
            self._field("asked digest", approval.asked_digest)
        if approval.key:
            self._field("key", approval.key)
        self._field("version", f"{approval.version}, domain {approval.domain}, origin {approval.origin}")

    def _evidence(self, approval: Approval) -> None:
        from grace_kp.approvals import fact_text

        for name, value in approval.policy.items():
            self._field("policy", fact_text(name, value))
        for name, value in approval.facts.items():
            self._field("rests on", fact_text(name, value))

    def _people(self, approval: Approval) -> None:
        from grace_kp.approvals import actor_text, rule_text

        self._field("may decide", rule_text(approval))
        if approval.standing:
            self._field("standing", f"approved by the standing approval {approval.standing}")
        for vote in approval.votes:
            stale = "" if vote.digest == approval.digest else ", for the arguments before the edit"
            counts = "" if vote.counts else ", does not count: the name is only stated"
            note = f": {vote.note}" if vote.note else ""
            self._field("vote", f"{actor_text(vote.actor)}, {when_text(vote.at, self._now)}{counts}{stale}{note}")
        decision = approval.decision
        if decision is not None:
            note = f": {decision.note}" if decision.note else ""
            by = actor_text(decision.actor)
            self._field(
                "decision", f"{APPROVAL_STATES[decision.state]} by {by}, {when_text(decision.at, self._now)}{note}"
            )

    def _outcome(self, approval: Approval) -> None:
        from grace_kp.approvals import actor_text

        claim, outcome = approval.claim, approval.outcome
        if claim is not None:
            self._field(
                "started", f"{when_text(claim.at, self._now)}, by {actor_text(claim.actor)}, process {claim.process}"
            )
        if outcome is None:
            return
        facts = [APPROVAL_STATES[outcome.state], when_text(outcome.at, self._now), f"by {actor_text(outcome.actor)}"]
        facts += [f"raised {outcome.error}"] if outcome.error else []
        self._field("outcome", ", ".join(facts) + (f": {outcome.note}" if outcome.note else ""))
        if outcome.has_result:
            put_field(self._out, "result", self._cut(visible_json(outcome.result)), label=LABEL)

    def _run(self, approval: Approval) -> None:
        if approval.user:
            self._field("user", f"{approval.user}, for whom the agent runs")
        if approval.run_id:
            self._field("run", approval.run_id)
        steps = items(mapping(approval.run).get("steps"))
        if not steps:
            return
        hidden = 0 if self._full else max(0, len(steps) - STEPS)
        put(self._out, "")
        put_text(self._out, "the run so far", style="bold")
        if hidden:
            put_text(self._out, f"… {hidden:,} earlier steps; --full or --json shows them")
        for step in map(mapping, steps[hidden:]):
            self._step(step)

    def _step(self, step: dict[str, Any]) -> None:
        tool = mapping(step.get("tool")).get("name")
        head = [str(step.get("step_id", "-")), str(step.get("type", "-")), *([str(tool)] if tool else [])]
        put_text(self._out, "  ".join(clean(part, 60) for part in head), style="cyan")
        content = step.get("content") or step.get("input")
        if content:
            text = content if isinstance(content, str) else visible_json(content)
            put_text(self._out, self._cut(clean(text)), indent=4)

    def _chain(self, entries: list[Mapping[str, Any]]) -> None:
        from grace_kp.approvals import event_text

        if not entries:
            return
        put(self._out, "")
        put_text(self._out, "the chain", style="bold")
        hidden = 0 if self._full else max(0, len(entries) - ENTRIES)
        if hidden:
            put_text(self._out, f"… {hidden:,} earlier entries; --full or --json shows them")
        for entry in entries[hidden:]:
            by = mapping(entry.get("actor")).get("name")
            at = entry.get("at")
            moment = moment_text(at) if isinstance(at, int | float) else clean(str(at))
            kind = event_text(entry).replace("_", " ")
            put_text(self._out, clean(f"{entry.get('seq', '-'):>6}  {moment}  {kind}{f' by {by}' if by else ''}"))

    def _next(self, approval: Approval) -> None:
        """Write what can be done now."""
        name = id_text(approval.id)
        match str(approval.state):
            case "pending":
                text = f"grace-kp approvals approve {name}   or reject, edit, respond, skip, retry"
            case "approved" | "edited":
                text = (
                    f"grace-kp approvals withdraw {name}   takes the approval back while nobody has started the action"
                )
            case "unknown":
                text = f"grace-kp approvals reconcile {name} --happened   or --not-happened, once you have looked"
            case _:
                return
        put(self._out, "")
        put_text(self._out, text, style="dim")

    def _field(self, name: str, value: str, style: str = "") -> None:
        put_field(self._out, name, self._cut(clean(value)), label=LABEL, style=style)

    def _cut(self, text: str) -> str:
        limit = 2_000
        if self._full or len(text) <= limit:
            return text
        return f"{text[:limit]}… {len(text) - limit:,} more characters; --full or --json shows them"


VALUE = 40
"""Columns of one argument within a sentence."""
SHORT = 8
"""Characters of an id in lists."""
_LATER = {"raise": "asks again", "hand_over": "handed over", "interrupt": "interrupted"}
TO_BE_USED = ("approved", "edited")
"""States in which the action may be started. Literals, because the room `approvals` is slow to import: only commands that need it do so."""


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
    """Return the first characters of an id, without the common prefix."""
    return clean(name.removeprefix(PREFIX)[:SHORT])


def names_text(names: Iterable[str]) -> str:
    """Return several names on one line."""
    return ", ".join(clean(name) for name in names)


def time_left_text(approval: Approval, now: float) -> str:
    """Return how long the request can be decided, or the decision be used; `-` without a limit."""
    until = approval.deadline if approval.state == "pending" else approval.use_by
    if until is None or not approval.state.is_open or approval.state == "claimed":
        return "-"
    return span_text(until - now) if until > now else "over"


def moment_text(at: float) -> str:
    """Return a point in time for people, UTC to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at:g} seconds since 1970"


def when_text(at: float, now: float) -> str:
    """Return a point in time with its distance from now."""
    distance = f"in {span_text(at - now)}" if at > now else f"{span_text(now - at)} ago"
    return f"{moment_text(at)}, {distance}"


def deciders_text(approval: Approval) -> str:
    """Return who may decide, and how many of how many have consented."""
    who = ", ".join(clean(group) for group in approval.groups) or "anybody"
    if approval.quorum <= 1:
        return who
    from grace_kp.approvals import consents

    return f"{who}: {consents(approval)} of {approval.quorum}"


def process_word(approval: Approval) -> str:
    """Return in a word or two whether a process waits for the decision."""
    if approval.waits in _LATER:
        return _LATER[approval.waits]
    return {True: "waits", False: "gone", None: "unknown"}[approval.is_awaited]
