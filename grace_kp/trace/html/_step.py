"""One step of the timeline: its number and kind, the tool, arguments and results, the model's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.pages import badge, count_text, duration_text, fold, linked, safe, spaced
from grace_kp.trace.html._document import as_json, items, mapping, number, share, text, tokens
from grace_kp.trace.html._links import ALONE, anchor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.trace.html._links import Links

KINDS = {
    "thought": "thought",
    "tool_call": "call",
    "observation": "result",
    "error_recovery": "recovered",
    "human_input": "person",
}
_CLASSES = {"tool_call": "call", "error_recovery": "recovery"}
_BAD = frozenset({"error", "failed"})
_WAITS = frozenset({"suspended", "unfinished", "waiting"})
MAX_SOURCES = 20
INLINE = 120
"""Characters of the arguments of a call that stand on its line."""


def step_of(step: dict[str, Any], place: int, records: tuple[dict[str, Any], ...], links: Links = ALONE) -> str:
    """Return a step as an entry of the timeline.

    Args:
        step: the step.
        place: its number.
        records: the model call that produced it, the call of a tool that it begins, and the one that it ends; each may be empty.
        links: addresses of nested runs.
    """
    model, call, result = records
    kind = text(step.get("type"))
    status = text((call or result or model).get("status"))
    classes = ["step", _CLASSES.get(kind, "")]
    classes += ["model"] if model else []
    if status in _BAD and not call:
        classes.append("failed")
    if status in _WAITS:
        classes.append("waits")
    head = [f'<span class="kind">{safe("model" if model else KINDS.get(kind, spaced(kind) or "step"))}</span>']
    name = text(mapping(step.get("tool")).get("name")) or text(result.get("name")) or text(model.get("model"))
    if name:
        head.append(f'<span class="name mono">{safe(name)}</span>')
    if status not in {"", "ok"} and not call:
        head.append(badge(status))
    body = _contents(step, kind) + _found(mapping(result.get("search"))) + _error(model)
    if call.get("child") and isinstance(call["child"], str):
        child = anchor(links.run(call["child"]), f'<span class="mono">{safe(call["child"][:200])}</span>')
        head.append(f'<span class="kind">opens the nested run</span> {child}')
    return entry(place, head, _measures(step, model, kind), body, classes)


def entry(place: int | None, head: Iterable[str], measures: str, body: str, classes: Iterable[str]) -> str:
    """Return an entry of the timeline; `place` is None for what is no step. All but the classes are HTML."""
    identity = "" if place is None else f' id="step-{place}"'
    mark = '<span class="number"></span>' if place is None else f'<a class="number" href="#step-{place}">{place}</a>'
    meta = f' <span class="meta">{measures}</span>' if measures else ""
    names = " ".join(filter(None, classes))
    return f'<li class="{names}"{identity}>{mark}<div class="body"><div class="line">{" ".join(head)}{meta}</div>{body}</div></li>'


def _measures(step: dict[str, Any], model: dict[str, Any], kind: str) -> str:
    """Return tokens and duration; a call and its result have the same duration, which stands at the call."""
    words = tokens(model)
    took = number(step.get("latency_ms"))
    if took is not None and kind != "observation":
        words.append(duration_text(took))
    return safe(" · ".join(filter(None, words)))


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


def _found(search: dict[str, Any]) -> str:
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


def _error(model: dict[str, Any]) -> str:
    error = mapping(model.get("error"))
    return (
        f'<p class="text bad">{safe(text(error.get("type")))}: {linked(text(error.get("message")))}</p>'
        if error
        else ""
    )
