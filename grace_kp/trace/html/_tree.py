"""A run as a tree: calls below the calls that made them, and nested runs, which come from the store, below the calls that opened them.

What happened while a single call was open stands below it; with several open calls only a recorded parent says where a call belongs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.levels import waits
from grace_kp.pages import badge, count_text, duration_text, safe, spaced
from grace_kp.trace.html._document import (
    ALONE,
    RecordedSteps,
    anchor,
    as_json,
    document_of,
    error_words,
    kind_of,
    mapping,
    measures_of,
    number,
    run_anchor,
    text,
)
from grace_kp.trace.html._head import agent_name, run_title

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.trace.html._document import HasDocument, Links

MAX_NODES = 2_000
"""Nodes of a tree on a page."""
MAX_RUNS = 40
"""Nested runs that are opened on a page."""
RUN_DEPTH = 5
"""Levels of nested runs that are opened."""
CALL_DEPTH = 10
"""Levels of calls within a run; deeper ones stand on the last level."""
SHOWN = 140
"""Characters of arguments, results and texts in a node."""


@dataclass(slots=True)
class _Node:
    line: str
    """HTML."""
    depth: int = 0
    call: str = ""
    """Id of its call; empty for what is no call."""
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
        """Return the nodes of a run."""
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
            parts.append(_end(mapping(document.get("grace"))))
        return "".join(parts)

    def _build_nodes(self, recorded: RecordedSteps, name: str) -> tuple[list[_Node], int]:
        """Return the nodes on the first level, and the number of steps that they stand for."""
        count, decisions = len(recorded.steps), recorded.decisions
        top: list[_Node] = []
        known: dict[str, _Node] = {}
        open_calls: dict[str, _Node] = {}

        def add(node: _Node) -> None:
            self._nodes -= 1
            above = known.get(node.parent) if node.call else None
            if above is None and not node.call:
                above = _innermost(open_calls)
            node.depth = 0 if above is None else above.depth + 1
            (top if above is None else above.below).append(node)
            if node.call:
                # Deeper calls stand on the last level, and so does what is below them.
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
            return (
                f'<ul><li><span class="kind">nested run, not in this store</span> {run_anchor(name, ALONE)}</li></ul>'
            )
        document = document_of(found)
        head = f'<span class="kind">nested run</span> <span class="name">{safe(agent_name(document)[:SHOWN])}</span> {safe(run_title(document))}'
        return (
            f'<ul><li><details open><summary>{head}</summary><div class="line">{link}</div>'
            f"<ul>{self.of_run(document, depth + 1)}</ul></details></li></ul>"
        )

    def _gate(self, decision: dict[str, Any]) -> str:
        name = _shorten(text(decision.get("action")))
        parts = ['<span class="kind">gate</span>', f'<span class="name mono">{name}</span>']
        parts += [badge(word[:100]) for field in ("level", "outcome") if (word := text(decision.get(field)))]
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


def _innermost(open_calls: dict[str, _Node]) -> _Node | None:
    """Return the innermost open call if each open call was made by the one before it, else None."""
    before = ""
    for name, node in open_calls.items():
        if before and node.parent != before:
            return None
        before = name
    return open_calls[before] if before else None


def _line(step: dict[str, Any], model: dict[str, Any], call: dict[str, Any]) -> str:
    parts = [f'<span class="kind">{_shorten(kind_of(step, model))}</span>']
    name = text(mapping(step.get("tool")).get("name")) or text(call.get("name")) or text(model.get("model"))
    if name:
        parts.append(f'<span class="name mono">{_shorten(name)}</span>')
    status = text((call or model).get("status"))
    if status not in {"", "ok"}:
        parts.append(badge(status[:100]))
    if step.get("input"):
        parts.append(f'<span class="mono inputs">{_arguments(step["input"])}</span>')
    words = measures_of(step, model, mapping(call.get("usage")))
    return " ".join(parts) + _meta(words) + _brief(text(step.get("content")), "")


def _arguments(arguments: object) -> str:
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


def _end(grace: dict[str, Any]) -> str:
    status, error = text(grace.get("status")), mapping(grace.get("error"))
    if not status and not error:
        return ""
    kind = "waits" if waits(status) else "end"
    return (
        f'<li><div class="line"><span class="kind">{kind}</span> {badge(status[:100]) if status else ""}</div>'
        f"{_brief(error_words(error), '')}</li>"
    )
