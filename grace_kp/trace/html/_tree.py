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
    anchor,
    as_json,
    by_step,
    document_of,
    items,
    mapping,
    number,
    text,
    tokens,
)
from grace_kp.trace.html._head import agent_name, run_title
from grace_kp.trace.html._timeline import KINDS, decisions_by_place

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
    """Return a run as nested lists of HTML.

    Args:
        run: a trace, or its document, which another program may have written.
        links: addresses of steps, nested runs and requests for approval; without them steps are those of `run_timeline` on the same page.
        nested: returns a nested run by its id, or None. At most 40 are read.
    """
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
        steps = items(document.get("steps"))
        top, shown = self._build_nodes(document, name, steps)
        parts = [self._show_node(node, depth) for node in top]
        if shown < len(steps):
            address = self._links.step(name, shown) or ("" if depth else f"#step-{shown}")
            rest = anchor(
                address or None, safe(f"{count_text(len(steps) - shown, 'more step')} are not shown in the tree")
            )
            parts.append(f'<li class="soft">{rest}</li>')
        else:
            parts.append(_end(mapping(document.get("grace"))))
        return "".join(parts)

    def _build_nodes(self, document: Mapping[str, Any], name: str, steps: list[Any]) -> tuple[list[_Node], int]:
        """Return the nodes on the first level, and the number of steps that they stand for."""
        grace = mapping(document.get("grace"))
        decisions = decisions_by_place(items(grace.get("decisions")), len(steps))
        models, begun = by_step(grace.get("model_calls"), "step"), by_step(grace.get("calls"), "tool_call")
        ended = by_step(grace.get("calls"), "observation")
        top: list[_Node] = []
        known: dict[str, _Node] = {}
        open_calls: dict[str, _Node] = {}

        def add(node: _Node) -> None:
            above = known.get(node.parent) if node.call else None
            if above is None and not node.call:
                above = _innermost(open_calls)
            node.depth = 0 if above is None else above.depth + 1
            (top if above is None else above.below).append(node)
            if node.call:
                # Deeper calls stand on the last level, and so does what is below them.
                known[node.call] = node if node.depth < CALL_DEPTH or above is None else above
                open_calls[node.call] = node

        for place, item in enumerate(steps):
            if self._nodes <= 0:
                return top, place
            step = mapping(item)
            stated = step.get("step_id")
            position = stated if type(stated) is int else place
            for decision in decisions.get(place, ()):
                add(_Node(self._gate(decision)))
                self._nodes -= 1
            result = ended.get(position)
            opened = open_calls.pop(text(result.get("call_id")), None) if result else None
            if result and opened is not None and step.get("type") == "observation":
                opened.line += _brief(text(step.get("content")) or text(step.get("output_summary")), "result ")
                continue
            call = begun.get(position, {})
            number_of = self._number(name, place)
            line = number_of + _line(step, models.get(position, {}), call)
            add(
                _Node(
                    line,
                    call=text(call.get("call_id")),
                    parent=text(call.get("parent")),
                    child=text(call.get("child")),
                )
            )
            self._nodes -= 1
        top += [_Node(self._gate(decision)) for decision in decisions.get(len(steps), ())]
        return top, len(steps)

    def _show_node(self, node: _Node, depth: int) -> str:
        below = "".join(self._show_node(inner, depth) for inner in node.below)
        run = self._run(node.child, depth) if node.child else ""
        return f'<li><div class="line">{node.line}</div>{f"<ul>{below}</ul>" if below else ""}{run}</li>'

    def _run(self, name: str, depth: int) -> str:
        """Return a nested run, opened as far as the bounds allow."""
        link = anchor(self._links.run(name), f'<span class="mono">{safe(name[:200])}</span>')
        if self._nested is None or name in self._opened:
            return f'<ul><li><span class="kind">nested run</span> {link}</li></ul>'
        if depth >= RUN_DEPTH or self._runs <= 0 or self._nodes <= 0:
            return f'<ul><li><span class="kind">nested run, not opened here</span> {link}</li></ul>'
        self._runs -= 1
        found = self._nested(name)
        if found is None:
            return f'<ul><li><span class="kind">nested run, not in this store</span> <span class="mono">{safe(name[:200])}</span></li></ul>'
        document = document_of(found)
        head = f'<span class="kind">nested run</span> <span class="name">{safe(agent_name(document)[:SHOWN])}</span> {safe(run_title(document))}'
        return (
            f'<ul><li><details open><summary>{head}</summary><div class="line">{link}</div>'
            f"<ul>{self.of_run(document, depth + 1)}</ul></details></li></ul>"
        )

    def _number(self, name: str, place: int) -> str:
        address = self._links.step(name, place) or (f"#step-{place}" if len(self._opened) == 1 else None)
        return anchor(address, f'<span class="number">{place}</span>') + " "

    def _gate(self, decision: dict[str, Any]) -> str:
        words = [text(decision.get("level")), text(decision.get("outcome"))]
        parts = [
            '<span class="kind">gate</span>',
            f'<span class="name mono">{_shorten(text(decision.get("action")))}</span>',
        ]
        parts += [badge(word[:100]) for word in words if word]
        response = mapping(decision.get("response"))
        by = text(response.get("reviewer"))
        if response:
            parts.append(
                f'<span class="kind">{_shorten(spaced(text(response.get("action"))))}{f" by {_shorten(by)}" if by else ""}</span>'
            )
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
    kind = text(step.get("type"))
    parts = [f'<span class="kind">{_shorten("model" if model else KINDS.get(kind, spaced(kind) or "step"))}</span>']
    name = text(mapping(step.get("tool")).get("name")) or text(call.get("name")) or text(model.get("model"))
    if name:
        parts.append(f'<span class="name mono">{_shorten(name)}</span>')
    status = text((call or model).get("status"))
    if status not in {"", "ok"}:
        parts.append(badge(status[:100]))
    if step.get("input"):
        parts.append(f'<span class="mono inputs">{_arguments(step["input"])}</span>')
    words = [*tokens(model), *tokens(mapping(call.get("usage")))]
    took = number(step.get("latency_ms"))
    if took is not None and kind != "observation":
        words.append(duration_text(took))
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
    words = ": ".join(filter(None, (text(error.get("type")), text(error.get("message")))))
    kind = "waits" if waits(status) else "end"
    return (
        f'<li><div class="line"><span class="kind">{kind}</span> {badge(status[:100]) if status else ""}</div>'
        f"{_brief(words, '')}</li>"
    )
