"""The steps of a run under each other, with the decisions of its gates where they were made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.levels import waits
from grace_kp.pages import badge, count_text, duration_text, fold, linked, safe
from grace_kp.trace.html._document import by_step, document_of, items, mapping, number, text, tokens
from grace_kp.trace.html._gate import gate_of
from grace_kp.trace.html._links import ALONE
from grace_kp.trace.html._step import entry, step_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from grace_kp.trace.html._document import HasDocument
    from grace_kp.trace.html._links import Links

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
    """Return the steps of a run as an ordered list of HTML, each with the id `step-N`.

    Args:
        run: a trace, or its document, which another program may have written.
        limit: steps that are shown: three quarters from the beginning and the rest from the end.
        places: the numbers of the steps that are shown, in order, instead.
        links: addresses of nested runs and of requests for approval.
    """
    document = document_of(run)
    grace = mapping(document.get("grace"))
    steps = items(document.get("steps"))
    decisions = decisions_by_place(items(grace.get("decisions")), len(steps))
    models, calls = by_step(grace.get("model_calls"), "step"), by_step(grace.get("calls"), "tool_call")
    results = by_step(grace.get("calls"), "observation")
    parts, expected = [], 0
    for place in _cut(len(steps), limit) if places is None else places:
        if place >= len(steps):
            break
        if place > expected:
            rest = "." if places is not None else "; the JSON of the run has them."
            parts.append(_note(f"{count_text(place - expected, 'step')} are not shown here{rest}"))
        expected = place + 1
        parts += [gate_of(decision, links) for decision in decisions.get(place, ())]
        step = mapping(steps[place])
        stated = step.get("step_id")
        position = stated if type(stated) is int else place
        records = (models.get(position, {}), calls.get(position, {}), results.get(position, {}))
        parts.append(step_of(step, place, records, links))
    if expected >= len(steps):
        parts += [gate_of(decision, links) for decision in decisions.get(len(steps), ())]
        parts += _without_step(items(grace.get("model_calls")))
        parts.append(_end(document, grace))
    return f'<ol class="steps">{"".join(parts)}</ol>'


def _cut(count: int, limit: int) -> Iterator[int]:
    """Yield the numbers of the first and last steps of a long run, and all of a short one."""
    last = limit // 4 if count > limit else 0
    yield from range(min(count, limit - last))
    yield from range(count - last, count)


def decisions_by_place(decisions: list[Any], count: int) -> dict[int, list[dict[str, Any]]]:
    """Return the decisions by the number of steps before them; those that do not state it stand at the end."""
    found: dict[int, list[dict[str, Any]]] = {}
    for decision in map(mapping, decisions):
        place = decision.get("step")
        known = type(place) is int and 0 <= place <= count
        found.setdefault(place if known and type(place) is int else count, []).append(decision)
    return found


def _without_step(calls: list[Any]) -> list[str]:
    """Return the model calls that produced no text, folded into an entry."""
    silent = [call for call in map(mapping, calls) if type(call.get("step")) is not int]
    if not silent:
        return []
    rows = []
    for call in silent[:MAX_CALLS]:
        took = number(call.get("latency_ms"))
        words = [text(call.get("model")) or "a model", text(call.get("status")), *tokens(call)]
        words += [duration_text(took)] if took is not None else []
        error = mapping(call.get("error"))
        words += [f"{text(error.get('type'))}: {text(error.get('message'))}"] if error else []
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
    took = number(grace.get("duration_ms"))
    head = ['<span class="kind">end</span>']
    head += [badge(status)] if status else []
    body = (
        f'<p class="text{"" if waits(status) else " bad"}">{safe(text(error.get("type")))}: {linked(text(error.get("message")))}</p>'
        if error
        else ""
    )
    if result and not error:
        body += fold(result)
    dropped = number(grace.get("dropped_steps"))
    if dropped:
        body += f'<p class="note small">{count_text(int(dropped), "step")} were not recorded.</p>'
    kind = "waits" if waits(status) else "failed" if error else "end"
    return entry(None, head, safe(duration_text(took)) if took is not None else "", body, ["step", kind])
