"""The durations of a run as a table with bars: when each call began, and how long calls, model calls and answers of people took.

A trace holds the beginning of each call of a tool, but not of a model call, and not of the wait for an answer. These are listed below
with bars that compare durations and say nothing about when. A run that was continued has several beginnings, so its calls are listed so, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.pages import badge, count_text, duration_text, safe
from grace_kp.trace.html._document import ALONE, anchor, document_of, items, mapping, number, text, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grace_kp.trace.html._document import HasDocument, Links

MAX_BARS = 1_000
"""Rows on a page; a note gives the number of those left out."""
DEPTH = 6
"""Levels of nested calls that are indented."""
_TICKS = 4
_CONTINUED = '<p class="note">This run was suspended and continued. Each part counts its time anew, so only durations are shown.</p>'
_THIN = 0.6
"""Smallest width of a bar in percent, so that it is seen."""


@dataclass(frozen=True, slots=True)
class _Bar:
    name: str
    kind: str
    status: str
    begins: float | None
    """Milliseconds after the run began; None if it is not recorded."""
    took: float | None
    """Milliseconds; None for what has not ended."""
    step: int | None = None
    depth: int = 0
    words: str = ""


def run_waterfall(run: HasDocument | Mapping[str, Any], *, links: Links = ALONE) -> str:
    """Return the durations of a run as HTML."""
    document = document_of(run)
    grace = mapping(document.get("grace"))
    parts = bool(number(grace.get("resumed")))
    calls = list(_calls(items(grace.get("calls"))))
    placed = [] if parts else [bar for bar in calls if bar.begins is not None and bar.took is not None]
    rest = [bar for bar in calls if bar not in placed] if len(placed) < len(calls) else []
    rest += _unplaced(grace)
    whole = max([number(grace.get("duration_ms")) or 0.0, *((bar.begins or 0) + (bar.took or 0) for bar in placed)])
    name = text(document.get("id"))
    shown = _CONTINUED if parts else ""
    if placed:
        shown += _table("Calls, by the time when they began", placed, whole, name, links, starts=True)
    if rest:
        longest = max((bar.took or 0 for bar in rest), default=0.0)
        shown += _table("Without a recorded beginning: durations only", rest, longest, name, links, starts=False)
    return shown or '<p class="soft">This run recorded no call and no duration.</p>'


def _calls(entries: Sequence[Any]) -> Iterator[_Bar]:
    depths: dict[str, int] = {}
    for entry in map(mapping, entries):
        depth = min(DEPTH, depths.get(text(entry.get("parent")), -1) + 1)
        depths[text(entry.get("call_id"))] = depth
        kind = "run" if text(entry.get("child")) else "call"
        times = _positive(entry.get("started_ms")), _positive(entry.get("latency_ms"))
        step = _whole(entry.get("tool_call"))
        yield _Bar(text(entry.get("name")) or "a call", kind, text(entry.get("status")), *times, step, depth)


def _unplaced(grace: Mapping[str, Any]) -> Iterator[_Bar]:
    """Yield the calls of models and the waits for answers, whose beginnings are not recorded."""
    for entry in map(mapping, items(grace.get("model_calls"))):
        name, step, took = text(entry.get("model")), _whole(entry.get("step")), _positive(entry.get("latency_ms"))
        words = ", ".join(tokens(entry))
        yield _Bar(name or "a model", "model", text(entry.get("status")), None, took, step, words=words)
    for entry in map(mapping, items(grace.get("decisions"))):
        waited = _positive(entry.get("waited_ms"))
        if waited:
            by = text(mapping(entry.get("response")).get("reviewer"))
            name = text(entry.get("action")) or "an action"
            yield _Bar(name, "gate", text(entry.get("outcome")), None, waited, words=f"waited for {by or 'an answer'}")


def _table(caption: str, bars: Sequence[_Bar], whole: float, name: str, links: Links, *, starts: bool) -> str:
    head = '<th role="columnheader" scope="col">call</th>'
    head += '<th role="columnheader" scope="col" class="n">began after</th>' if starts else ""
    head += '<th role="columnheader" scope="col" class="n">took</th>'
    head += f'<th role="columnheader" scope="col" class="time">{_axis(whole)}</th>'
    rows = "".join(_row(bar, whole, name, links, starts=starts) for bar in bars[:MAX_BARS])
    more = len(bars) - MAX_BARS
    note = f'<p class="note small">{count_text(more, "more row")} are not shown here; the JSON of the run has them.</p>'
    return (
        f'<table role="table" class="waterfall"><caption>{safe(caption)}</caption><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table>{note if more > 0 else ""}'
    )


def _row(bar: _Bar, whole: float, name: str, links: Links, *, starts: bool) -> str:
    title = f'<span class="name mono">{safe(bar.name[:200])}</span>'
    if bar.step is not None:
        title = anchor(links.step(name, bar.step) or f"#step-{bar.step}", title)
    parts = [f'<span class="kind">{bar.kind}</span>', title]
    if bar.status not in {"", "ok"}:
        parts.append(badge(bar.status[:100]))
    if bar.words:
        parts.append(f'<span class="kind">{safe(bar.words[:300])}</span>')
    took = "" if bar.took is None else duration_text(bar.took)
    begins = "" if bar.begins is None else duration_text(bar.begins) or "0 ms"
    cells = f'<th role="rowheader" scope="row" class="d{bar.depth}"><span class="line">{" ".join(parts)}</span></th>'
    cells += f'<td role="cell" class="n begins">{safe(begins)}</td>' if starts else ""
    cells += f'<td role="cell" class="n">{safe(took)}</td><td role="cell" class="time">{_draw_bar(bar, whole)}</td>'
    return f'<tr role="row">{cells}</tr>'


def _draw_bar(bar: _Bar, whole: float) -> str:
    """Return the bar of a row: decoration beside the numbers. Nothing for what has no duration."""
    if bar.took is None or whole <= 0:
        return ""
    left = min(100.0, 100 * (bar.begins or 0) / whole)
    width = max(_THIN, min(100 - left, 100 * bar.took / whole))
    left = min(left, 100 - width)
    failed = " bad" if bar.status in {"error", "failed"} else ""
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="track" y="4.5" width="100" height="1"/>'
        f'<rect class="fill {bar.kind}{failed}" x="{left:.5g}" width="{width:.5g}" height="10"/></svg>'
    )


def _axis(whole: float) -> str:
    """Return the ends and quarters of the time that the bars stand for."""
    marks = ["0", *(duration_text(whole * place / _TICKS) for place in range(1, _TICKS + 1))]
    return f'<span class="axis">{"".join(f"<span>{safe(mark)}</span>" for mark in marks)}</span>'


def _positive(value: object) -> float | None:
    found = number(value)
    return found if found is not None and found >= 0 else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None
