"""The head of a run: its status, its figures, its user, session and nested runs, and the parts of its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.levels import waits
from grace_kp.pages import badge, count_text, duration_text, facts, fold, linked, meter, outcome_text, safe, spaced
from grace_kp.trace.html._document import (
    document_of,
    instant_of,
    items,
    mapping,
    number,
    share,
    text,
    tokens,
)
from grace_kp.trace.html._links import ALONE, anchor
from grace_kp.trace.html._scores import confidence_of, evaluation_of, labels_of, scorers_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grace_kp.trace.html._document import HasDocument
    from grace_kp.trace.html._links import Links

TITLE = 160
"""Characters of the objective in a heading."""
MAX_LISTED = 50
"""Tags, nested runs and entries of the metadata on a page."""
_LEVELS = ("silent", "notify", "confirm", "escalate")


def run_title(run: HasDocument | Mapping[str, Any]) -> str:
    """Return the objective of a run as plain text for a heading, at most 160 characters; without one, the name of the agent."""
    document = document_of(run)
    words = " ".join(text(mapping(document.get("task")).get("objective"))[: 4 * TITLE].split())
    words = words or agent_name(document) or "A run"
    return words if len(words) <= TITLE else words[: TITLE - 1].rstrip() + "…"


def agent_name(document: Mapping[str, Any]) -> str:
    """Return the name of the agent of a run; empty without one."""
    name = text(mapping(document.get("grace")).get("name"))
    return name or text(mapping(document.get("metadata")).get("agent_id")).removeprefix("kp:agent:")


def run_head(run: HasDocument | Mapping[str, Any], *, links: Links = ALONE) -> str:
    """Return the head of a run as HTML, without its objective, which `run_title` has for the heading.

    Args:
        run: a trace, or its document, which another program may have written.
        links: addresses of other runs.
    """
    return run_summary(run) + run_details(run, links=links)


def run_summary(run: HasDocument | Mapping[str, Any]) -> str:
    """Return how a run ended and its key figures as HTML."""
    document = document_of(run)
    grace = mapping(document.get("grace"))
    return f'<div class="run-head">{"".join(_notes(grace))}{_figures(document, grace)}</div>'


def run_details(run: HasDocument | Mapping[str, Any], *, links: Links = ALONE, labels: bool = True) -> str:
    """Return the facts about a run and the parts of its scores as HTML.

    Args:
        run: a trace, or its document, which another program may have written.
        links: addresses of other runs.
        labels: whether to list the labels, too.
    """
    document = document_of(run)
    grace = mapping(document.get("grace"))
    parts = [
        confidence_of(document, grace),
        value_of(grace),
        evaluation_of(grace),
        scorers_of(grace),
        labels_of(grace) if labels else "",
    ]
    return f'<div class="run-facts">{facts(_facts(document, grace, links))}</div><div class="run-parts">{"".join(parts)}</div>'


def strictest(grace: Mapping[str, Any]) -> str:
    """Return the strictest level of the gates of a run; empty without a gate."""
    found = {text(mapping(item).get("level")) for item in items(grace.get("decisions"))}
    return next((level for level in reversed(_LEVELS) if level in found), "")


def _notes(grace: dict[str, Any]) -> Iterator[str]:
    awaited = [spaced(item) for item in items(grace.get("awaits")) if isinstance(item, str)]
    if awaited:
        yield (
            f'<p class="note warn">Still awaited: {safe(", ".join(awaited[:MAX_LISTED]))}. Confidence and score may '
            "change.</p>"
        )
    error = mapping(grace.get("error"))
    if error:
        words = ": ".join(filter(None, (text(error.get("type")), text(error.get("message")))))
        yield f'<div class="note {"warn" if waits(grace.get("status")) else "bad"}">{fold(words, label="ended by")}</div>'
    pending = mapping(grace.get("pending"))
    if outcome := outcome_text(mapping(pending.get("approval"))):
        yield f'<p class="note">Since then, {safe(text(pending.get("action")))}: {safe(outcome)}.</p>'
    dropped = number(grace.get("dropped_steps"))
    if dropped:
        yield f'<p class="note warn">{count_text(int(dropped), "step")} were not recorded.</p>'


def _figures(document: Mapping[str, Any], grace: dict[str, Any]) -> str:
    rows = "".join(
        f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in _figures_of(document, grace) if value
    )
    return f'<dl class="key-figures">{rows}</dl>'


def _figures_of(document: Mapping[str, Any], grace: dict[str, Any]) -> Iterator[tuple[str, str]]:
    metadata, steps = mapping(document.get("metadata")), items(document.get("steps"))
    status = text(grace.get("status"))
    outcome = metadata.get("success")
    words = [badge(status)] if status else []
    if isinstance(outcome, bool) and not waits(status):
        words.append(f'<span class="small {"good" if outcome else "bad"}">{"" if outcome else "not "}successful</span>')
    yield "status", " ".join(words)
    confidence = share(mapping(document.get("outcome")).get("confidence"))
    if confidence is not None:
        yield "confidence", f"{confidence:.2f}{meter(confidence)}"
    score = share(metadata.get("quality_score"))
    if score is not None:
        yield "value score", f"{score:.2f}{meter(score)}"
    took = number(grace.get("duration_ms"))
    yield "duration", safe(duration_text(took)) if took is not None else ""
    yield "steps", f"{len(steps):,}"
    calls, gates = items(grace.get("model_calls")), items(grace.get("decisions"))
    yield "model calls", f"{len(calls):,}" if calls else ""
    used = sum(
        count
        for name, count in mapping(grace.get("usage")).items()
        if name in {"input_tokens", "output_tokens"} and type(count) is int
    )
    yield "tokens", safe(f"{number(used) or 0:,.0f}") if used else ""
    level = strictest(grace)
    yield "gates", f"{len(gates):,}{' ' + badge(level) if level else ''}" if gates else ""


def _facts(document: Mapping[str, Any], grace: dict[str, Any], links: Links) -> Iterator[tuple[str, str]]:
    metadata = mapping(document.get("metadata"))
    objective = text(mapping(document.get("task")).get("objective"))
    if len(" ".join(objective.split())) > TITLE:
        yield "objective", fold(objective)
    yield "id", f'<span class="mono">{safe(text(document.get("id"))[:200])}</span>'
    if text(metadata.get("created_at")):
        yield "began", instant_of(metadata["created_at"])
    named = (
        ("agent", agent_name(document)),
        ("domain", text(metadata.get("task_domain"))),
        ("user", text(grace.get("user"))),
        ("session", text(grace.get("session"))),
        ("framework", text(metadata.get("framework"))),
    )
    for label, value in named:
        if value:
            yield label, linked(value[:2_000], lines=False)
    tags = items(grace.get("tags"))
    if tags:
        more = f" and {len(tags) - MAX_LISTED:,} more" if len(tags) > MAX_LISTED else ""
        yield "tags", " ".join(badge(text(tag)[:200], "") for tag in tags[:MAX_LISTED]) + more
    for name, value in list(mapping(grace.get("metadata")).items())[:MAX_LISTED]:
        yield name[:200], fold(text(value))
    for name, usage in (("tokens", grace.get("usage")), ("without nested runs", grace.get("own_usage"))):
        words = tokens(mapping(usage))
        if words:
            yield name, safe(" · ".join(words))
    yield from _family(grace, links)
    resumed = number(grace.get("resumed"))
    if resumed:
        yield "continued", safe(f"{count_text(int(resumed), 'time')} after it was suspended")


def _family(grace: dict[str, Any], links: Links) -> Iterator[tuple[str, str]]:
    parent = text(mapping(grace.get("parent")).get("trace_id"))
    if parent:
        yield "nested in", _run(parent, links)
    children = [item for item in items(grace.get("children")) if isinstance(item, str)]
    if children:
        listed = "".join(f"<li>{_run(child, links)}</li>" for child in children[:MAX_LISTED])
        more = f"<li>and {len(children) - MAX_LISTED:,} more</li>" if len(children) > MAX_LISTED else ""
        yield "nested runs", f'<ul class="bare">{listed}{more}</ul>'


def _run(name: str, links: Links) -> str:
    return anchor(links.run(name), f'<span class="mono">{safe(name[:200])}</span>')
