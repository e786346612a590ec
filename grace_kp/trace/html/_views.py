"""A run as HTML: its steps as a timeline, its calls as a tree, its durations as a waterfall, a whole page, and an excerpt for a notebook.

In the tree, nested runs come from the store. Steps during a single open call are below that call; with several open calls only a recorded
parent says where a call belongs.

The waterfall shows when each call of a tool began. A trace does not hold when a model call or the wait for an answer began, so these are
listed below with bars that compare durations only. So are the calls of a run that was continued, because it has several beginnings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from grace_kp.levels import UNSETTLED, waits
from grace_kp.pages import (
    badge,
    count_text,
    duration_text,
    facts,
    fold,
    linked,
    meter,
    outcome_text,
    page,
    safe,
    spaced,
)
from grace_kp.trace._rules import number_of as number
from grace_kp.trace.html._document import (
    ALONE,
    RecordedSteps,
    agent_name,
    anchor,
    as_json,
    document_of,
    duration_of,
    error_words,
    items,
    kind_of,
    mapping,
    measures_of,
    run_anchor,
    run_details,
    run_head,
    run_summary,
    run_title,
    share,
    text,
    tokens,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grace_kp.trace.html._document import HasDocument, Links


_CLASSES = {"tool_call": "call", "error_recovery": "recovery"}
_BAD = frozenset({"error", "failed"})
_WAITS = frozenset({"suspended", "unfinished", "waiting"})
MAX_SOURCES = 20
INLINE = 120
"""Characters of the arguments of a call that are shown on its line."""


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
    name = text(mapping(step.get("tool")).get("name")) or text(result.get("name")) or text(model.get("model"))
    # The result of a call shows its status.
    head = _heading(safe(kind_of(step, model)), safe(name), "" if call or status == "ok" else status)
    body = _contents(step, kind) + _show_search(mapping(result.get("search"))) + _error(mapping(model.get("error")))
    if call.get("child") and isinstance(call["child"], str):
        head.append(f'<span class="kind">opens the nested run</span> {run_anchor(call["child"], links)}')
    return entry(place, head, safe(" · ".join(measures_of(step, model))), body, classes)


def _heading(kind: str, name: str, *badges: str) -> list[str]:
    """Return a kind and a name, both HTML, with badges; empty ones are left out."""
    named = [f'<span class="name mono">{name}</span>'] if name else []
    return [f'<span class="kind">{kind}</span>', *named, *(badge(word[:100]) for word in badges if word)]


def entry(place: int | None, head: Iterable[str], measures: str, body: str, classes: Iterable[str]) -> str:
    """Return an entry of the timeline; `place` is None for an entry that is not a step. All but the classes are HTML."""
    identity = "" if place is None else f' id="step-{place}"'
    mark = '<span class="number"></span>' if place is None else f'<a class="number" href="#step-{place}">{place}</a>'
    meta = f' <span class="meta">{measures}</span>' if measures else ""
    names = " ".join(filter(None, classes))
    return f'<li class="{names}"{identity}>{mark}<div class="body"><div class="line">{" ".join(head)}{meta}</div>{body}</div></li>'


def _contents(step: dict[str, Any], kind: str) -> str:
    parts = [arguments_of(step["input"])] if step.get("input") else []
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
    outcome, level = text(decision.get("outcome")), text(decision.get("level"))
    head = _heading("gate", safe(text(decision.get("action")) or "an action"), level, outcome)
    waited = number(decision.get("waited_ms"))
    body = arguments_of(decision["arguments"]) if decision.get("arguments") else ""
    body += facts(_facts(decision, links))
    rest = {name: value for name, value in decision.items() if name not in _SHOWN and value not in (None, "", [], {})}
    if rest:
        lines = "\n".join(f"{spaced(name)}: {text(value)}" for name, value in rest.items())
        body += f"<details><summary>details</summary><pre>{safe(lines, lines=True)}</pre></details>"
    measures = safe(f"waited {duration_text(waited)}") if waited else ""
    return entry(None, head, measures, body, ["step", "gate", "waits" if outcome in UNSETTLED else ""])


def _facts(decision: dict[str, Any], links: Links) -> Iterator[tuple[str, str]]:
    score = share(decision.get("score"))
    if score is not None:
        failed = ' <span class="soft">computed by a formula, because the learned profile failed</span>'
        yield "confidence", f"{score:.3f}{failed if decision.get('fallback') is True else ''}{meter(score)}"
    if text(decision.get("reason")):
        yield "reason", linked(text(decision["reason"]))
    for gap in items(decision.get("evidence_gaps")):
        yield "missing evidence", safe(text(gap))
    for mismatch in items(decision.get("mismatches")):
        yield "does not fit", safe(text(mismatch))
    for name, count in mapping(decision.get("hidden")).items():
        yield "hidden", safe(f"{name}: {text(count)} characters")
    if response := mapping(decision.get("response")):
        yield "answer", _answer(response)
    for name in ("user_input", "selected_option"):
        if response.get(name) is not None:
            yield spaced(name), fold(text(response[name]))
    arguments = mapping(decision.get("arguments"))
    for name, value in mapping(response.get("modified")).items():
        before = f"<del>{safe(as_json(arguments[name]))}</del> " if name in arguments else ""
        yield f"edited {name}", f"{before}<ins>{safe(as_json(value))}</ins>"
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


def _answer(response: dict[str, Any]) -> str:
    action, reviewer = text(response.get("action")), text(response.get("reviewer"))
    if response.get("timeout_reached") is True:
        return f"no answer in time; {safe(spaced(action))}"
    if not reviewer and action == "cancel":
        return "no reviewer was available"
    took = number(response.get("response_time_ms"))
    after = f" after {duration_text(took)}" if took else ""
    return safe(f"{spaced(action)} by {reviewer or 'an unknown reviewer'}{after}")


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
            words = safe(f"{count_text(place - expected, 'step')} are not shown here{rest}")
            parts.append(entry(None, [f'<span class="soft">{words}</span>'], "", "", ["step", "gap"]))
        expected = place + 1
        parts += [gate_of(decision, links) for decision in decisions.get(place, ())]
        parts.append(step_of(place, recorded.at(place), links))
    if expected >= count:
        parts += [gate_of(decision, links) for decision in decisions.get(count, ())]
        parts += _fold_silent_calls(items(grace.get("model_calls")))
        parts.append(_end(document, grace))
    return f'<ol class="steps">{"".join(parts)}</ol>'


def _fold_silent_calls(calls: list[Any]) -> list[str]:
    silent = [call for call in map(mapping, calls) if type(call.get("step")) is not int]
    rows = []
    for call in silent[:MAX_CALLS]:
        words = [text(call.get("model")) or "a model", text(call.get("status")), *tokens(call)]
        words += [duration_of(call), error_words(mapping(call.get("error")))]
        rows.append(f"<li>{safe(', '.join(filter(None, words)))}</li>")
    more = f"<li>and {len(silent) - MAX_CALLS:,} more</li>" if len(silent) > MAX_CALLS else ""
    summary = f"{count_text(len(silent), 'model call')} without text"
    body = f'<details><summary>{summary}</summary><ol class="small">{"".join(rows)}{more}</ol></details>'
    return [entry(None, ['<span class="kind">model</span>'], "", body, ["step", "model"])] if silent else []


def _end(document: Mapping[str, Any], grace: dict[str, Any]) -> str:
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


MAX_NODES = 2_000
MAX_RUNS = 40
RUN_DEPTH = 5
CALL_DEPTH = 10
"""Levels of calls within a run; deeper calls are shown on the last level."""
SHOWN = 140
"""Characters of arguments, results and texts in a node."""


@dataclass(slots=True)
class _Node:
    line: str
    """HTML."""
    depth: int = 0
    call: str = ""
    """Id of its call; empty for other nodes."""
    parent: str = ""
    child: str = ""
    """Id of the nested run."""
    below: list[_Node] = field(default_factory=list)


def run_tree(
    run: HasDocument | Mapping[str, Any],
    *,
    links: Links = ALONE,
    nested: Callable[[str], HasDocument | Mapping[str, Any] | None] | None = None,
) -> str:
    """Return a run as nested lists of HTML."""
    document = document_of(run)
    return f'<ul class="tree">{_Tree(links, nested).of_run(document, 0)}</ul>'


class _Tree:
    """Builds the tree of a run within the bounds of a page."""

    def __init__(self, links: Links, nested: Callable[[str], HasDocument | Mapping[str, Any] | None] | None) -> None:
        self._links = links
        self._nested = nested
        self._nodes = MAX_NODES
        self._runs = MAX_RUNS
        self._opened: set[str] = set()

    def of_run(self, document: Mapping[str, Any], depth: int) -> str:
        name = text(document.get("id"))
        self._opened.add(name)
        recorded = RecordedSteps(document)
        top, shown = self._build_nodes(recorded, name)
        parts = [self._show_node(node, depth) for node in top]
        if left := len(recorded.steps) - shown:
            address = self._links.step(name, shown) or ("" if depth else f"#step-{shown}")
            rest = safe(f"{count_text(left, 'more step')} are not shown in the tree")
            parts.append(f'<li class="soft">{anchor(address or None, rest)}</li>')
        else:
            parts.append(_end_line(mapping(document.get("grace"))))
        return "".join(parts)

    def _build_nodes(self, recorded: RecordedSteps, name: str) -> tuple[list[_Node], int]:
        """Return the nodes of the first level, and the number of steps that the tree shows."""
        count, decisions = len(recorded.steps), recorded.decisions
        top: list[_Node] = []
        known: dict[str, _Node] = {}
        open_calls: dict[str, _Node] = {}

        def add(node: _Node) -> None:
            self._nodes -= 1
            above = known.get(node.parent) if node.call else None
            if above is None and not node.call:
                # The innermost open call, if each of them was made by the one before it.
                calls = list(open_calls.items())
                nested = all(inner.parent == outer for (outer, _), (_, inner) in pairwise(calls))
                above = calls[-1][1] if calls and nested else None
            node.depth = 0 if above is None else above.depth + 1
            (top if above is None else above.below).append(node)
            if node.call:
                # Deeper calls are shown on the last level, and so are the nodes below them.
                known[node.call] = node if node.depth < CALL_DEPTH or above is None else above
                open_calls[node.call] = node

        for place in range(count):
            if self._nodes <= 0:
                return top, place
            step, model, call, result = recorded.at(place)
            for decision in decisions.get(place, ()):
                add(_Node(self._gate(decision)))
            opened = open_calls.pop(text(result.get("call_id")), None) if result else None
            if result and opened is not None and step.get("type") == "observation":
                opened.line += _brief(text(step.get("content")) or text(step.get("output_summary")), "result ")
                continue
            address = self._links.step(name, place) or (f"#step-{place}" if len(self._opened) == 1 else None)
            number_of = anchor(address, f'<span class="number">{place}</span>')
            line = f"{number_of} {_line(step, model, call)}"
            name_of_call, parent, child = (text(call.get(field)) for field in ("call_id", "parent", "child"))
            add(_Node(line, call=name_of_call, parent=parent, child=child))
        top += [_Node(self._gate(decision)) for decision in decisions.get(count, ())]
        return top, count

    def _show_node(self, node: _Node, depth: int) -> str:
        below = "".join(self._show_node(inner, depth) for inner in node.below)
        run = self._run(node.child, depth) if node.child else ""
        return f'<li><div class="line">{node.line}</div>{f"<ul>{below}</ul>" if below else ""}{run}</li>'

    def _run(self, name: str, depth: int) -> str:
        """Return a nested run, opened as far as the bounds allow."""
        link = run_anchor(name, self._links)
        if self._nested is None or name in self._opened:
            return f'<ul><li><span class="kind">nested run</span> {link}</li></ul>'
        if depth >= RUN_DEPTH or self._runs <= 0 or self._nodes <= 0:
            return f'<ul><li><span class="kind">nested run, not opened here</span> {link}</li></ul>'
        self._runs -= 1
        found = self._nested(name)
        if found is None:
            missing = run_anchor(name, ALONE)
            return f'<ul><li><span class="kind">nested run, not in this store</span> {missing}</li></ul>'
        document = document_of(found)
        head = f'<span class="kind">nested run</span> <span class="name">{safe(agent_name(document)[:SHOWN])}</span> {safe(run_title(document))}'
        return (
            f'<ul><li><details open><summary>{head}</summary><div class="line">{link}</div>'
            f"<ul>{self.of_run(document, depth + 1)}</ul></details></li></ul>"
        )

    def _gate(self, decision: dict[str, Any]) -> str:
        stated = (text(decision.get(field)) for field in ("level", "outcome"))
        parts = _heading("gate", _shorten(text(decision.get("action"))), *stated)
        response = mapping(decision.get("response"))
        if response:
            by = text(response.get("reviewer"))
            words = _shorten(spaced(text(response.get("action")))) + (f" by {_shorten(by)}" if by else "")
            parts.append(f'<span class="kind">{words}</span>')
        approval = text(mapping(decision.get("approval")).get("id"))
        if approval:
            parts.append(anchor(self._links.approval(approval), f'<span class="mono">{_shorten(approval)}</span>'))
        waited = number(decision.get("waited_ms"))
        return " ".join(parts) + _meta([f"waited {duration_text(waited)}"] if waited else [])


def _line(step: dict[str, Any], model: dict[str, Any], call: dict[str, Any]) -> str:
    name = text(mapping(step.get("tool")).get("name")) or text(call.get("name")) or text(model.get("model"))
    status = text((call or model).get("status"))
    parts = _heading(_shorten(kind_of(step, model)), _shorten(name), "" if status == "ok" else status)
    if step.get("input"):
        parts.append(f'<span class="mono inputs">{arguments_line(step["input"])}</span>')
    words = measures_of(step, model, mapping(call.get("usage")))
    return " ".join(parts) + _meta(words) + _brief(text(step.get("content")), "")


def arguments_line(arguments: object) -> str:
    """Return the arguments of a call as one line, which is cut if it is long."""
    if not isinstance(arguments, dict):
        return _shorten(as_json(arguments))
    return _shorten(", ".join(f"{name} = {as_json(value)}" for name, value in list(arguments.items())[:20]))


def _meta(words: list[str]) -> str:
    return f'<span class="meta">{safe(" · ".join(filter(None, words)))}</span>' if any(words) else ""


def _brief(words: str, label: str) -> str:
    before = f'<span class="kind">{label}</span>' if label else ""
    return f'<div class="brief">{before}{_shorten(words)}</div>' if words else ""


def _shorten(words: str) -> str:
    short = " ".join(words[: 4 * SHOWN].split())
    return safe(short if len(short) <= SHOWN else short[: SHOWN - 1] + "…")


def _end_line(grace: dict[str, Any]) -> str:
    status, error = text(grace.get("status")), mapping(grace.get("error"))
    if not status and not error:
        return ""
    kind = "waits" if waits(status) else "end"
    return (
        f'<li><div class="line"><span class="kind">{kind}</span> {badge(status[:100]) if status else ""}</div>'
        f"{_brief(error_words(error), '')}</li>"
    )


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
    """Milliseconds; None for a call that has not ended."""
    step: int | None = None
    depth: int = 0
    words: str = ""


def run_waterfall(run: HasDocument | Mapping[str, Any], *, links: Links = ALONE) -> str:
    """Return the durations of a run as HTML."""
    document = document_of(run)
    grace = mapping(document.get("grace"))
    parts = bool(number(grace.get("resumed")))
    bars = [*_calls(items(grace.get("calls"))), *_find_durations(grace)]
    rest = [bar for bar in bars if parts or bar.begins is None or bar.took is None]
    placed = [] if parts else [bar for bar in bars if bar.begins is not None and bar.took is not None]
    placed.sort(key=lambda bar: bar.begins or 0.0)
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


def _find_durations(grace: Mapping[str, Any]) -> Iterator[_Bar]:
    """Yield the calls of models, and the waits for answers, which have no recorded beginning."""
    for entry in map(mapping, items(grace.get("model_calls"))):
        name, step = text(entry.get("model")), _whole(entry.get("step"))
        times = _positive(entry.get("started_ms")), _positive(entry.get("latency_ms"))
        words = ", ".join(tokens(entry))
        yield _Bar(name or "a model", "model", text(entry.get("status")), *times, step, words=words)
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
    marks = ["0", *(duration_text(whole * place / _TICKS) for place in range(1, _TICKS + 1))]
    axis = "".join(f"<span>{safe(mark)}</span>" for mark in marks)
    head += f'<th role="columnheader" scope="col" class="time"><span class="axis">{axis}</span></th>'
    rows = "".join(_row(bar, whole, name, links, starts=starts) for bar in bars[:MAX_BARS])
    more = len(bars) - MAX_BARS
    note = f'<p class="note small">{count_text(more, "more row")} are not shown here; the JSON of the run has them.</p>'
    return (
        f'<table role="table" class="waterfall"><caption>{safe(caption)}</caption><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table>{note if more > 0 else ""}'
    )


def _row(bar: _Bar, whole: float, name: str, links: Links, *, starts: bool) -> str:
    kind, title, *status = _heading(bar.kind, safe(bar.name[:200]), "" if bar.status == "ok" else bar.status)
    if bar.step is not None:
        title = anchor(links.step(name, bar.step) or f"#step-{bar.step}", title)
    parts = [kind, title, *status]
    if bar.words:
        parts.append(f'<span class="kind">{safe(bar.words[:300])}</span>')
    took = "" if bar.took is None else duration_text(bar.took)
    begins = "" if bar.begins is None else duration_text(bar.begins) or "0 ms"
    cells = f'<th role="rowheader" scope="row" class="d{bar.depth}"><span class="line">{" ".join(parts)}</span></th>'
    cells += f'<td role="cell" class="n begins">{safe(begins)}</td>' if starts else ""
    cells += f'<td role="cell" class="n">{safe(took)}</td><td role="cell" class="time">{_draw_bar(bar, whole)}</td>'
    return f'<tr role="row">{cells}</tr>'


def _draw_bar(bar: _Bar, whole: float) -> str:
    """Return the bar of a row, which repeats its numbers as a picture; empty without a duration."""
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


def _positive(value: object) -> float | None:
    found = number(value)
    return None if found is None or found < 0 else found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


MAX_JSON = 2_000_000
"""Characters of the JSON in the file; a note gives the number of those left out."""


def run_page(run: HasDocument | Mapping[str, Any]) -> str:
    """Return a run as a whole page: its figures, its steps, its durations, its tree and its JSON."""
    document = document_of(run)
    steps = len(items(document.get("steps")))
    whole = as_json(document, 2)
    left_out = len(whole) - MAX_JSON
    more = f'<p class="note small">{left_out:,} more characters are not shown here.</p>' if left_out > 0 else ""
    body = (
        f"{run_head(document)}"
        f"<h2>Steps</h2>{run_timeline(document)}"
        f"<h2>Durations</h2>{run_waterfall(document)}"
        f"<h2>Tree</h2><details{'' if steps > TREE_OPEN else ' open'}><summary>calls and what they led to</summary>{run_tree(document)}</details>"
        f"<h2>JSON</h2><details><summary>the document of the run, {len(whole):,} characters</summary>"
        f'<pre tabindex="0">{safe(whole[:MAX_JSON], lines=True)}</pre>{more}</details>'
    )
    return page(run_title(document), body)


TREE_OPEN = 60
"""Steps up to which the tree is unfolded."""


MAX_PART = 150_000
"""Characters of HTML that the figures may have, and the steps."""
_LIMITS = (100, 40, 12, 4)
"""Steps that are shown; the first number whose HTML is small enough counts."""
_OPEN = 12
"""Steps up to which they are unfolded."""
WHOLE = "`trace.to_html(path)` writes the whole run."


def run_excerpt(run: HasDocument | Mapping[str, Any]) -> str:
    """Return a run for a notebook as HTML of at most 500,000 characters."""
    document = document_of(run)
    count = len(items(document.get("steps")))
    # No headings: a notebook puts those of its outputs into its table of contents.
    details = run_details(document).replace("<h2>", '<p class="name">').replace("</h2>", "</p>")
    return (
        f'<p class="name">{safe(run_title(document))}</p>{_bound_part(run_summary(document), "key figures")}'
        f"<details><summary>confidence, score and facts</summary>{_bound_part(details, 'figures')}</details>"
        f"<details{' open' if count <= _OPEN else ''}><summary>{count_text(count, 'step')}</summary>{steps_excerpt(document)}</details>"
    )


def steps_excerpt(document: Mapping[str, Any], *, whole: str = WHOLE) -> str:
    """Return as many steps of a run as a notebook can show."""
    count = len(items(document.get("steps")))
    for limit in _LIMITS:
        found = run_timeline(document, limit=limit)
        if len(found) <= MAX_PART:
            return found + (f'<p class="note small">{safe(whole)}</p>' if count > limit else "")
    return f'<p class="note">The steps are too long for a notebook. {safe(whole)}</p>'


def _bound_part(part: str, words: str) -> str:
    if len(part) <= MAX_PART:
        return part
    return f'<p class="note">The {words} are too long for a notebook. {safe(WHOLE)}</p>'
