"""The decision of a gate in the timeline: the action, the level, the reviewer with the answer, what ran and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.levels import UNSETTLED
from grace_kp.pages import badge, duration_text, facts, fold, linked, meter, outcome_text, safe, spaced
from grace_kp.trace.html._document import as_json, items, mapping, number, share, text
from grace_kp.trace.html._links import ALONE, anchor
from grace_kp.trace.html._step import arguments_of, entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.trace.html._links import Links

_SHOWN = frozenset(
    {"action", "outcome", "level", "score", "reason", "arguments", "response", "executed_arguments", "step", "waited_ms", "hidden", "error",
     "problem", "evidence_gaps", "notice", "mismatches", "approval", "evaluation", "fallback"}
)  # fmt: skip


def gate_of(decision: dict[str, Any], links: Links = ALONE) -> str:
    """Return a decision as an entry of the timeline."""
    outcome, level = text(decision.get("outcome")), text(decision.get("level"))
    head = [
        '<span class="kind">gate</span>',
        f'<span class="name mono">{safe(text(decision.get("action")) or "an action")}</span>',
    ]
    head += [badge(word) for word in (level, outcome) if word]
    waited = number(decision.get("waited_ms"))
    body = arguments_of(decision["arguments"]) if decision.get("arguments") else ""
    body += facts(_facts(decision, links))
    rest = {name: value for name, value in decision.items() if name not in _SHOWN and value not in (None, "", [], {})}
    if rest:
        lines = "\n".join(f"{spaced(name)}: {text(value)}" for name, value in rest.items())
        body += f"<details><summary>details</summary><pre>{safe(lines, lines=True)}</pre></details>"
    return entry(
        None,
        head,
        safe(f"waited {duration_text(waited)}") if waited else "",
        body,
        ["step", "gate", "waits" if outcome in UNSETTLED else ""],
    )


def _facts(decision: dict[str, Any], links: Links) -> Iterator[tuple[str, str]]:
    score = share(decision.get("score"))
    if score is not None:
        note = (
            ' <span class="soft">a formula stands in for the learned profile, which failed</span>'
            if decision.get("fallback") is True
            else ""
        )
        yield "confidence", f"{score:.3f}{note}{meter(score)}"
    if text(decision.get("reason")):
        yield "reason", linked(text(decision["reason"]))
    for gap in items(decision.get("evidence_gaps")):
        yield "missing evidence", safe(text(gap))
    for mismatch in items(decision.get("mismatches")):
        yield "does not fit", safe(text(mismatch))
    for name, count in mapping(decision.get("hidden")).items():
        yield "hidden", safe(f"{name}: {text(count)} characters")
    yield from _answer(mapping(decision.get("response")), mapping(decision.get("arguments")))
    if mapping(decision.get("executed_arguments")):
        yield "ran with", arguments_of(decision["executed_arguments"])
    approval = mapping(decision.get("approval"))
    if approval:
        by = f" by {text(approval['by'])}" if approval.get("by") else ""
        name = text(approval.get("id"))
        named = anchor(links.approval(name) if name else None, safe(name[:200]))
        yield "approval", named + safe(f", {spaced(text(approval.get('state')) or 'of unknown state')}{by}")
        if outcome := outcome_text(approval):
            yield "since then", safe(outcome)
    notice = mapping(decision.get("notice"))
    if notice:
        yield "notice", safe(f"{text(notice.get('to')) or 'not delivered'}: {text(notice.get('text'))}")
    for name in ("problem", "error"):
        if decision.get(name):
            yield name, f'<span class="bad">{linked(text(decision[name]))}</span>'


def _answer(response: dict[str, Any], arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the answer, or why there is none, and the edits as a difference."""
    if not response:
        return
    action, reviewer = text(response.get("action")), text(response.get("reviewer"))
    if response.get("timeout_reached") is True:
        yield "answer", f"nobody answered in time; {safe(spaced(action))}"
    elif not reviewer and action == "cancel":
        yield "answer", "there was nobody to ask"
    else:
        took = number(response.get("response_time_ms"))
        after = f" after {duration_text(took)}" if took else ""
        yield "answer", safe(f"{spaced(action)} by {reviewer or 'an unknown reviewer'}{after}")
    for name in ("user_input", "selected_option"):
        if response.get(name) is not None:
            yield spaced(name), fold(text(response[name]))
    for name, value in mapping(response.get("modified")).items():
        before = f"<del>{safe(as_json(arguments[name]))}</del> " if name in arguments else ""
        yield f"edited {name}", f"{before}<ins>{safe(as_json(value))}</ins>"
