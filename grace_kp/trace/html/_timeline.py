"""The steps of a run under each other, each with its tool, arguments and results, and the decisions of gates where they were made."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from grace_kp.levels import UNSETTLED, waits
from grace_kp.pages import badge, count_text, duration_text, facts, fold, linked, meter, outcome_text, safe, spaced
from grace_kp.trace.html._document import (
    ALONE,
    RecordedSteps,
    anchor,
    as_json,
    document_of,
    duration_of,
    error_words,
    items,
    kind_of,
    mapping,
    measures_of,
    number,
    run_anchor,
    share,
    text,
    tokens,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from grace_kp.trace.html._document import HasDocument, Links


_CLASSES = {"tool_call": "call", "error_recovery": "recovery"}
_BAD = frozenset({"error", "failed"})
_WAITS = frozenset({"suspended", "unfinished", "waiting"})
MAX_SOURCES = 20
INLINE = 120
"""Characters of the arguments of a call that stand on its line."""


def step_of(place: int, records: tuple[dict[str, Any], ...], links: Links = ALONE) -> str:
    """Return a step as an entry of the timeline, from its number and what `RecordedSteps.at` returns for it."""
    step, model, call, result = records
    kind = text(step.get("type"))
    status = text((call or result or model).get("status"))
    classes = ["step", _CLASSES.get(kind, "")]
    classes += ["model"] if model else []
    if status in _BAD and not call:
        classes.append("failed")
    if status in _WAITS:
        classes.append("waits")
    head = [f'<span class="kind">{safe(kind_of(step, model))}</span>']
    name = text(mapping(step.get("tool")).get("name")) or text(result.get("name")) or text(model.get("model"))
    if name:
        head.append(f'<span class="name mono">{safe(name)}</span>')
    if status not in {"", "ok"} and not call:
        head.append(badge(status))
    body = _contents(step, kind) + _show_search(mapping(result.get("search"))) + _error(mapping(model.get("error")))
    if call.get("child") and isinstance(call["child"], str):
        head.append(f'<span class="kind">opens the nested run</span> {run_anchor(call["child"], links)}')
    return entry(place, head, safe(" · ".join(measures_of(step, model))), body, classes)


def entry(place: int | None, head: Iterable[str], measures: str, body: str, classes: Iterable[str]) -> str:
    """Return an entry of the timeline; `place` is None for what is no step. All but the classes are HTML."""
    identity = "" if place is None else f' id="step-{place}"'
    mark = '<span class="number"></span>' if place is None else f'<a class="number" href="#step-{place}">{place}</a>'
    meta = f' <span class="meta">{measures}</span>' if measures else ""
    names = " ".join(filter(None, classes))
    return f'<li class="{names}"{identity}>{mark}<div class="body"><div class="line">{" ".join(head)}{meta}</div>{body}</div></li>'


def _contents(step: dict[str, Any], kind: str) -> str:
    parts = []
    arguments = step.get("input")
    if arguments:
        parts.append(arguments_of(arguments))
    content = text(step.get("content"))
    if content:
        parts.append(fold(content, code=content[:1] in "[{") if kind == "observation" else fold(content))
    summary = text(step.get("output_summary"))
    if summary and summary != content:
        parts.append(fold(summary, label="summary"))
    return "".join(parts)


def arguments_of(arguments: object) -> str:
    """Return the arguments of a call, by name; folded if they are long."""
    if not isinstance(arguments, dict):
        return fold(as_json(arguments, 2), code=True)
    inline = as_json(arguments)
    if len(inline) <= INLINE:
        words = ", ".join(f"{name} = {as_json(value)}" for name, value in arguments.items())
        return f"<pre>{linked(words)}</pre>"
    return fold("\n".join(f"{name} = {as_json(value, 2)}" for name, value in arguments.items()), code=True)


def _show_search(search: dict[str, Any]) -> str:
    """Return what a retriever found: the number of results, their scores and sources."""
    if not search:
        return ""
    count = number(search.get("count"))
    scores = [
        f"{value:.2f}" for item in items(search.get("scores"))[:MAX_SOURCES] if (value := share(item)) is not None
    ]
    sources = [linked(text(source), lines=False) for source in items(search.get("sources"))[:MAX_SOURCES]]
    head = count_text(int(count), "result") if count is not None else "results"
    words = safe(head + (f", scores {', '.join(scores)}" if scores else ""))
    listed = "".join(f"<li>{source}</li>" for source in sources)
    if not listed:
        return f'<p class="small soft">{words}</p>'
    return f'<details><summary>{words}</summary><ol class="small">{listed}</ol></details>'


def _error(error: dict[str, Any], kind: str = " bad") -> str:
    return f'<p class="text{kind}">{linked(error_words(error))}</p>' if error else ""


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
        yield "answer", "no reviewer was available"
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


MAX_STEPS = 2_000
"""Steps on a page; a note gives the number of those left out in the middle."""
MAX_CALLS = 200
"""Model calls without a step on a page."""


def run_timeline(
    run: HasDocument | Mapping[str, Any],
    *,
    limit: int = MAX_STEPS,
    places: Iterable[int] | None = None,
    links: Links = ALONE,
) -> str:
    """Return the steps of a run as an ordered list of HTML, each with the id `step-N`."""
    document = document_of(run)
    grace = mapping(document.get("grace"))
    recorded = RecordedSteps(document)
    count, decisions = len(recorded.steps), recorded.decisions
    parts, expected = [], 0
    last = limit // 4 if count > limit else 0
    for place in chain(range(min(count, limit - last)), range(count - last, count)) if places is None else places:
        if place >= count:
            break
        if place > expected:
            rest = "." if places is not None else "; the JSON of the run has them."
            parts.append(_note(f"{count_text(place - expected, 'step')} are not shown here{rest}"))
        expected = place + 1
        parts += [gate_of(decision, links) for decision in decisions.get(place, ())]
        parts.append(step_of(place, recorded.at(place), links))
    if expected >= count:
        parts += [gate_of(decision, links) for decision in decisions.get(count, ())]
        parts += _without_step(items(grace.get("model_calls")))
        parts.append(_end(document, grace))
    return f'<ol class="steps">{"".join(parts)}</ol>'


def _without_step(calls: list[Any]) -> list[str]:
    """Return the model calls that produced no text, folded into an entry."""
    silent = [call for call in map(mapping, calls) if type(call.get("step")) is not int]
    if not silent:
        return []
    rows = []
    for call in silent[:MAX_CALLS]:
        words = [text(call.get("model")) or "a model", text(call.get("status")), *tokens(call)]
        words += [duration_of(call), error_words(mapping(call.get("error")))]
        rows.append(f"<li>{safe(', '.join(filter(None, words)))}</li>")
    more = f"<li>and {len(silent) - MAX_CALLS:,} more</li>" if len(silent) > MAX_CALLS else ""
    summary = f"{count_text(len(silent), 'model call')} without a text"
    body = f'<details><summary>{summary}</summary><ol class="small">{"".join(rows)}{more}</ol></details>'
    return [entry(None, ['<span class="kind">model</span>'], "", body, ["step", "model"])]


def _note(words: str) -> str:
    return entry(None, [f'<span class="soft">{safe(words)}</span>'], "", "", ["step", "gap"])


def _end(document: Mapping[str, Any], grace: dict[str, Any]) -> str:
    """Return the last entry: how the run ended."""
    status, error = text(grace.get("status")), mapping(grace.get("error"))
    result = text(mapping(document.get("outcome")).get("result_summary"))
    head = ['<span class="kind">end</span>', *([badge(status)] if status else [])]
    body = _error(error, "" if waits(status) else " bad")
    if result and not error:
        body += fold(result)
    dropped = number(grace.get("dropped_steps"))
    if dropped:
        body += f'<p class="note small">{count_text(int(dropped), "step")} were not recorded.</p>'
    kind = "waits" if waits(status) else "failed" if error else "end"
    return entry(None, head, safe(duration_of(grace, "duration_ms")), body, ["step", kind])
