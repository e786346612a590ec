"""A trace as a page in the terminal: steps with their contents, figures, decisions of gates, nested runs.

Without `--full`, long contents are shortened visibly, and the page leaves out ids, digests and parts of figures. The data under `grace` may
come from other programs, so its form is never taken for granted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grace_kp.cli._decisions import facts_of, spaced
from grace_kp.cli._figures import items, mapping, number, put_figures, put_tokens
from grace_kp.cli._output import clean, visible, visible_json
from grace_kp.cli._page import put, put_field, put_text
from grace_kp.levels import waits
from grace_kp.pages import outcome_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace, Step

TEXT = 4_000
"""Characters of a text without --full."""
LINES = 60
"""Lines of a text without --full."""
FIRST, LAST = 150, 50
"""Steps at the beginning and at the end without --full."""
NESTED = 50
"""Nested runs without --full."""
LABELS = 20
"""Labels without --full."""
DEPTH = 6
"""Levels of nested runs in the list."""
DETAILS = frozenset({
    "digest", "executed digest", "policy version", "attempt", "after step", "measured", "unmeasured", "floor", "waits", "key", "call id",
    "fallbacks",
})  # fmt: skip
"""Facts of a decision that only --full shows."""


class Sheet:
    """Writes traces to a console.

    Args:
        out: the console.
        full: shorten nothing, and leave nothing out.
        nested: write nested runs in full, too.
        store: the store with the nested runs.
    """

    def __init__(self, out: Console, *, full: bool = False, nested: bool = False, store: Store | None = None) -> None:
        self._out = out
        self._full = full
        self._nested = nested
        self._store = store

    def print(self, trace: ReasoningTrace) -> None:
        """Write one trace."""
        self._print(trace)
        if not self._nested:
            return
        for count, (_, name, child) in enumerate(self._below(trace)):
            if count >= NESTED and not self._full:
                put_text(self._out, "and more nested runs; --full shows all")
                return
            put(self._out, "")
            put_text(self._out, f"nested run {clean(name)}", style="bold")
            if child is None:
                put_text(self._out, "not in this store", indent=2)
            else:
                self._print(child)

    def _print(self, trace: ReasoningTrace) -> None:
        out, grace = self._out, mapping(trace.grace)
        self._text(trace.task.objective, style="bold")
        self._header(trace, grace)
        put(out, "")
        self._steps(trace, grace)
        put(out, "")
        put_field(out, "result", self._cut(visible(trace.outcome.result_summary)))
        put_tokens(out, grace, full=self._full)
        put_figures(out, trace, full=self._full)
        for place, decision in enumerate(items(grace.get("decisions"))):
            if place or self._full:
                put(out, "")
            self._decision(mapping(decision))
        self._feedback(items(grace.get("feedback")))
        self._family(trace, grace)

    def _feedback(self, entries: list[Any]) -> None:
        """Write the labels, newest first."""
        shown = entries if self._full else entries[-LABELS:]
        for place, entry in enumerate(reversed(shown)):
            if not place:
                put(self._out, "")
            self._field("feedback", _stated(mapping(entry)) or _words(entry))
        if len(shown) < len(entries):
            put_text(self._out, f"and {len(entries) - len(shown):,} earlier ones; --full shows all", indent=12)

    def _header(self, trace: ReasoningTrace, grace: dict[str, Any]) -> None:
        metadata = trace.metadata
        took = number(grace.get("duration_ms"))
        success = "" if waits(grace.get("status")) else f", {'successful' if metadata.success else 'not successful'}"
        success += "" if took is None else f", {took:,.0f} ms"
        if self._full or self._nested:
            self._field("id", trace.id)
            self._field("when", metadata.created_at)
            self._field("agent", metadata.agent_id or "-")
            self._field("domain", metadata.task_domain)
        self._field("status", f"{grace.get('status', '-')}{success}", "" if metadata.success else "red")
        error = mapping(grace.get("error"))
        if error:
            name, style = ("ended by", "yellow") if waits(grace.get("status")) else ("error", "red")
            self._field(name, f"{error.get('type')}: {error.get('message')}", style)
        pending = mapping(grace.get("pending"))
        if outcome := outcome_text(mapping(pending.get("approval"))):
            self._field("since then", f"{pending.get('action')}: {outcome}")
        for name in ("tags", "session", "user", "metadata"):
            if grace.get(name):
                self._field(name, _words(grace[name]))
        if isinstance(grace.get("awaits"), list):
            self._field("awaits", f"{_words(grace['awaits'])}; confidence and score may still change", "yellow")
        if number(grace.get("dropped_steps")):
            self._field("dropped", f"{grace['dropped_steps']:,} steps were not recorded")

    def _steps(self, trace: ReasoningTrace, grace: dict[str, Any]) -> None:
        by_step, calls = _by_step(grace.get("model_calls"), "step"), _by_step(grace.get("calls"), "tool_call")
        hidden = 0 if self._full else max(0, len(trace.steps) - FIRST - LAST)
        width = len(str(trace.steps[-1].step_id)) if trace.steps else 1
        for place, step in enumerate(trace.steps):
            if hidden and FIRST <= place < FIRST + hidden:
                if place == FIRST:
                    put_text(self._out, f"… {hidden:,} steps; --full shows all", indent=width + 2)
                continue
            self._step(step, width, by_step.get(step.step_id, {}), calls.get(step.step_id, {}))

    def _step(self, step: Step, width: int, model: dict[str, Any], call: dict[str, Any]) -> None:
        facts = [str(step.type)]
        if step.tool:
            facts.append(step.tool.name)
        if model.get("model"):
            facts.append(str(model["model"]))
        if step.latency_ms is not None and step.type != "tool_call":
            facts.append(f"{step.latency_ms:,.1f} ms")
        facts += [f"{value:,} {spaced(name)}" for name, value in model.items() if _is_count(name, value)]
        if call.get("status", "ok") != "ok":
            facts.append(str(call["status"]))
        head = f"{step.step_id:>{width}}  " + "  ".join(clean(fact, 60) for fact in facts)
        bad = step.type == "error_recovery" or str(call.get("status")) in {"error", "cancelled"}
        put_text(self._out, head, style="red" if bad else "cyan")
        if step.content:
            self._text(step.content, width + 2)
        elif step.input:
            self._json(step.input, width + 2)

    def _decision(self, entry: dict[str, Any]) -> None:
        """Write the decision of a gate: the action with its arguments and edits, the reviewer and the answer."""
        action, outcome = entry.get("action", "-"), entry.get("outcome", "-")
        self._field("gate", f"{action}: {spaced(outcome)}", "bold")
        rest = {name: value for name, value in entry.items() if name not in {"action", "outcome"}}
        for name, text in facts_of(rest):
            if self._full or name not in DETAILS:
                self._fact(name, text)

    def _family(self, trace: ReasoningTrace, grace: dict[str, Any]) -> None:
        """Write the parent run and the nested runs."""
        parent = mapping(grace.get("parent")).get("trace_id")
        children = list(self._below(trace))
        if parent is not None or children:
            put(self._out, "")
        if parent is not None:
            above = self._found(str(parent))
            self._field("parent", str(parent))
            if above is not None:
                put_text(self._out, clean(above.task.objective, 200), indent=12)
        shown = children if self._full else children[:NESTED]
        for depth, name, child in shown:
            put_field(self._out, "nested", "  " * depth + clean(name))
            facts = "not in this store" if child is None else _facts(child)
            put_text(self._out, facts, indent=12 + 2 * depth)
        if len(shown) < len(children):
            put_text(self._out, f"and {len(children) - len(shown):,} more nested runs; --full shows all")
        if children and not self._nested:
            put_text(self._out, "--nested shows nested runs in full", style="dim")

    def _below(self, trace: ReasoningTrace) -> Iterator[tuple[int, str, ReasoningTrace | None]]:
        """Yield depth, id and trace of each nested run, depth first; the trace is None if it is not stored."""
        visited = {trace.id}
        waiting = [(0, name) for name in reversed(items(mapping(trace.grace).get("children")))]
        while waiting:
            depth, name = waiting.pop()
            if not isinstance(name, str) or name in visited:
                continue
            visited.add(name)
            child = self._found(name)
            yield depth, name, child
            if child is not None and depth < DEPTH:
                below = items(mapping(child.grace).get("children"))
                waiting += [(depth + 1, nested) for nested in reversed(below)]

    def _found(self, name: str) -> ReasoningTrace | None:
        from grace_kp.runtime import with_outcomes

        found = None if self._store is None else self._store.get(name)
        return None if found is None else with_outcomes(found, getattr(self._store, "approvals", None))

    def _field(self, name: str, value: str, style: str = "") -> None:
        put_field(self._out, name, self._cut(clean(value)), style=style)

    def _fact(self, name: str, value: str) -> None:
        put_field(self._out, clean(name, 17), self._cut(value), indent=2, label=18)

    def _text(self, text: str, indent: int = 0, style: str = "") -> None:
        put_text(self._out, self._cut(visible(text)), indent=indent, style=style)

    def _json(self, value: object, indent: int) -> None:
        put_text(self._out, self._cut(visible_json(value)), indent=indent)

    def _cut(self, text: str) -> str:
        """Return the text, shortened visibly if it is long."""
        if self._full:
            return text
        kept = "\n".join(text[:TEXT].split("\n", LINES)[:LINES])
        left = len(text) - len(kept)
        return text if not left else f"{kept}\n… {left:,} more characters; --full shows all"


def _by_step(entries: object, field: str) -> dict[int, dict[str, Any]]:
    """Return the entries by the number of their step, which stands in `field`."""
    found = map(mapping, items(entries))
    return {entry[field]: entry for entry in found if isinstance(entry.get(field), int)}


def _stated(entry: dict[str, Any]) -> str:
    """Return what an entry of feedback states."""
    if "correct" not in entry:
        return ""
    correct = entry["correct"]
    facts = ["correct" if correct is True else "wrong" if correct is False else _words(correct)]
    facts += [_words(entry["source"])] if "source" in entry else []
    facts += [f"by {_words(entry['by'])}"] if "by" in entry else []
    facts += ["a program"] if entry.get("program") else []
    facts += [_words(entry["at"])] if "at" in entry else []
    facts += [f"probability {_words(entry['probability'])}"] if "probability" in entry else []
    return ", ".join(facts) + (f": {_words(entry['note'])}" if "note" in entry else "")


def _is_count(name: str, value: object) -> bool:
    return name.endswith("_tokens") and isinstance(value, int) and not isinstance(value, bool)


def _words(value: object) -> str:
    """Return a text or a list of texts as words, any other value as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _facts(trace: ReasoningTrace) -> str:
    status = mapping(trace.grace).get("status", "-")
    count = len(trace.steps)
    return clean(
        f"{clean(trace.task.objective, 80)}: {status}, {count:,} step{'' if count == 1 else 's'}, "
        f"confidence {trace.outcome.confidence:.2f}, score {trace.metadata.quality_score:.3f}"
    )
