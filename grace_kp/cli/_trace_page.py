"""A trace as a page in the terminal: steps, decisions, figures, nested runs.

Without `--full`, long contents are cut visibly, and ids, digests and parts of figures are left out. The data under `grace` may come from other
programs, so its form is always checked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grace_kp.cli._output import clean, visible, visible_json
from grace_kp.cli._page import LABEL, TableColumn, TextTable, meter, put, put_field, put_text
from grace_kp.confidence import NOT_EVALUATED, part_text, penalties_text
from grace_kp.levels import waits
from grace_kp.pages import count_text, outcome_text, spaced, with_fallbacks
from grace_kp.trace.html import items, mapping, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace, Step


TEXT = 4_000
"""Maximum length of a string without --full."""
LINES = 60
"""Maximum of lines of a string without --full."""
FIRST, LAST = 150, 50
"""Maximum of steps shown from the beginning and the end without --full."""
NESTED = 50
"""Maximum of nested runs without --full."""
LABELS = 20
"""Maximum of labels without --full."""
DEPTH = 6
"""Maximum depth of nested runs."""
DETAILS = frozenset({
    "digest", "executed digest", "policy version", "attempt", "after step", "measured", "unmeasured", "floor", "waits", "key", "call id",
    "fallbacks", "id", "tool call id", "alarms", "action confidence", "asked at", "decided at",
})  # fmt: skip
"""Facts of a decision shown only with --full."""
LABEL_FACTS = {"action": "action ", "source": "", "by": "by ", "program": "", "at": "", "probability": "probability "}
"""The fields of a label, each with the words before its value."""


class Sheet:
    """Writes traces to a console; nested runs are read from the store, and written in full if `nested`."""

    def __init__(self, out: Console, *, full: bool = False, nested: bool = False, store: Store | None = None) -> None:
        self._out = out
        self._full = full
        self._nested = nested
        self._store = store

    def print(self, trace: ReasoningTrace) -> None:
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
        self._feedback([*items(grace.get("feedback")), *items(grace.get("action_feedback"))])
        self._family(trace, grace)

    def _feedback(self, entries: list[Any]) -> None:
        shown = entries if self._full else entries[-LABELS:]
        for place, entry in enumerate(reversed(shown)):
            if not place:
                put(self._out, "")
            self._put_field("feedback", _describe_label(mapping(entry)) or _words(entry))
        if len(shown) < len(entries):
            put_text(self._out, f"and {len(entries) - len(shown):,} earlier ones; --full shows all", indent=12)

    def _header(self, trace: ReasoningTrace, grace: dict[str, Any]) -> None:
        metadata = trace.metadata
        took = number(grace.get("duration_ms"))
        success = "" if waits(grace.get("status")) else f", {'successful' if metadata.success else 'not successful'}"
        success += "" if took is None else f", {took:,.0f} ms"
        if self._full or self._nested:
            self._put_field("id", trace.id)
            self._put_field("when", metadata.created_at)
            self._put_field("agent", metadata.agent_id or "-")
            self._put_field("domain", metadata.task_domain)
        self._put_field("status", f"{grace.get('status', '-')}{success}", "" if metadata.success else "red")
        error = mapping(grace.get("error"))
        if error:
            name, style = ("ended by", "yellow") if waits(grace.get("status")) else ("error", "red")
            self._put_field(name, f"{error.get('type')}: {error.get('message')}", style)
        pending = mapping(grace.get("pending"))
        if outcome := outcome_text(mapping(pending.get("approval"))):
            self._put_field("since then", f"{pending.get('action')}: {outcome}")
        for name in ("tags", "session", "user", "metadata"):
            if grace.get(name):
                self._put_field(name, _words(grace[name]))
        if isinstance(grace.get("awaits"), list):
            self._put_field("awaits", f"{_words(grace['awaits'])}; confidence and score may still change", "yellow")
        if number(grace.get("dropped_steps")):
            self._put_field("dropped", f"{grace['dropped_steps']:,} steps were not recorded")

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
        facts += [
            f"{value:,} {spaced(name)}"
            for name, value in model.items()
            if name.endswith("_tokens") and _is_count(value)
        ]
        if call.get("status", "ok") != "ok":
            facts.append(str(call["status"]))
        head = f"{step.step_id:>{width}}  " + "  ".join(clean(fact, 60) for fact in facts)
        bad = step.type == "error_recovery" or str(call.get("status")) in {"error", "cancelled"}
        put_text(self._out, head, style="red" if bad else "cyan")
        if step.content:
            self._text(step.content, width + 2)
        elif step.input:
            put_text(self._out, self._cut(visible_json(step.input)), indent=width + 2)

    def _decision(self, entry: dict[str, Any]) -> None:
        action, outcome = entry.get("action", "-"), entry.get("outcome", "-")
        self._put_field("gate", f"{action}: {spaced(outcome)}", "bold")
        rest = {name: value for name, value in entry.items() if name not in {"action", "outcome"}}
        for name, text in decision_facts(rest):
            if self._full or name not in DETAILS:
                put_field(self._out, clean(name, 17), self._cut(text), indent=2, label=18)

    def _family(self, trace: ReasoningTrace, grace: dict[str, Any]) -> None:
        parent = mapping(grace.get("parent")).get("trace_id")
        children = list(self._below(trace))
        if parent is not None or children:
            put(self._out, "")
        if parent is not None:
            above = self._found(str(parent))
            self._put_field("parent", str(parent))
            if above is not None:
                put_text(self._out, clean(above.task.objective, 200), indent=12)
        shown = children if self._full else children[:NESTED]
        for depth, name, child in shown:
            put_field(self._out, "nested", "  " * depth + clean(name))
            put_text(self._out, "not in this store" if child is None else _facts(child), indent=12 + 2 * depth)
        if len(shown) < len(children):
            put_text(self._out, f"and {len(children) - len(shown):,} more nested runs; --full shows all")
        if children and not self._nested:
            put_text(self._out, "--nested shows nested runs in full", style="dim")

    def _below(self, trace: ReasoningTrace) -> Iterator[tuple[int, str, ReasoningTrace | None]]:
        """Yield the depth, id and trace (None if it is not stored) of each nested run, depth first."""
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
                waiting += [(depth + 1, nested) for nested in reversed(items(mapping(child.grace).get("children")))]

    def _found(self, name: str) -> ReasoningTrace | None:
        from grace_kp.runtime import with_outcomes

        found = None if self._store is None else self._store.get(name)
        return None if found is None else with_outcomes(found, getattr(self._store, "approvals", None))

    def _put_field(self, name: str, value: str, style: str = "") -> None:
        put_field(self._out, name, self._cut(clean(value)), style=style)

    def _text(self, text: str, indent: int = 0, style: str = "") -> None:
        put_text(self._out, self._cut(visible(text)), indent=indent, style=style)

    def _cut(self, text: str) -> str:
        if self._full:
            return text
        kept = "\n".join(text[:TEXT].split("\n", LINES)[:LINES])
        left = len(text) - len(kept)
        return text if not left else f"{kept}\n… {left:,} more characters; --full shows all"


def _by_step(entries: object, field: str) -> dict[int, dict[str, Any]]:
    return {entry[field]: entry for entry in map(mapping, items(entries)) if isinstance(entry.get(field), int)}


def _describe_label(entry: dict[str, Any]) -> str:
    if "correct" not in entry:
        return ""
    correct = entry["correct"]
    facts = ["correct" if correct is True else "wrong" if correct is False else _words(correct)]
    for name, before in LABEL_FACTS.items():
        if name == "program":
            facts += ["a program"] if entry.get("program") else []
        elif name in entry:
            facts.append(f"{before}{_words(entry[name])}")
    return ", ".join(facts) + (f": {_words(entry['note'])}" if "note" in entry else "")


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _facts(trace: ReasoningTrace) -> str:
    status = mapping(trace.grace).get("status", "-")
    count = len(trace.steps)
    return clean(
        f"{clean(trace.task.objective, 80)}: {status}, {count_text(count, 'step')}, "
        f"confidence {trace.outcome.confidence:.2f}, score {trace.metadata.quality_score:.3f}"
    )


_REST = ("reason", "digest", "executed_digest")


def decision_facts(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and the content of each fact, most important first. Every field of the entry is included."""
    entry = dict(entry)
    response = mapping(entry.pop("response", None))
    level, score = entry.pop("level", None), entry.pop("score", None)
    if level is not None:
        yield "level", clean(f"{level}, at a confidence of {score}")
    arguments = mapping(entry.pop("arguments", None))
    for name, value in arguments.items():
        yield "argument", f"{clean(name)} = {visible_json(value)}"
    yield from _hidden("hidden", entry)
    for name, value in mapping(response.pop("modified", None)).items():
        before = visible_json(arguments[name]) if name in arguments else "nothing"
        yield "edited", f"{clean(name)} = {before} -> {visible_json(value)}"
    yield from _hidden("hidden", response, label="hidden in edits")
    for name, value in mapping(entry.pop("executed_arguments", None)).items():
        yield "executed with", f"{clean(name)} = {visible_json(value)}"
    yield from _hidden("executed_hidden", entry, label="hidden of these")
    if response:
        yield "answer", clean(_answer(response, entry))
    approval = entry.get("approval")
    if isinstance(approval, dict) and isinstance(approval.get("id"), str):
        del entry["approval"]
        yield from _approval(dict(approval))
    notice = mapping(entry.get("notice"))
    if notice.get("text"):
        del entry["notice"]
        place = notice.get("to")
        receiver = (
            f"to {'the ' if place in {'log', 'terminal'} else ''}{place}" if isinstance(place, str) else "not delivered"
        )
        yield "notice", clean(f"{receiver}: {notice['text']}")
    if isinstance(entry.get("mismatches"), list):
        for mismatch in entry.pop("mismatches"):
            yield "does not fit", clean(str(mismatch))
    for name in _REST:
        if entry.get(name):
            yield spaced(name), clean(str(entry.pop(name)))
    if _is_count(entry.get("step")):  # an entry counts the steps before the decision; steps are numbered from 0
        before = entry.pop("step")
        yield "after step", f"{before - 1}" if before else "none"
    waited = number(entry.get("waited_ms"))
    if waited is not None:
        del entry["waited_ms"]
        yield "waited", f"{waited / 1_000:,.1f} s"
    yield from _others(entry)


def _others(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in entry.items():
        yield spaced(name), clean(value) if isinstance(value, str) else visible_json(value)


def _hidden(field: str, entry: dict[str, Any], label: str = "hidden") -> Iterator[tuple[str, str]]:
    """Yield the number of hidden characters by argument; a field of another form remains in the entry."""
    counts = entry.get(field)
    if not isinstance(counts, dict) or not all(_is_count(count) for count in counts.values()):
        return
    del entry[field]
    for name, count in counts.items():
        yield label, f"{clean(name)}, {count_text(count, 'character')}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _answer(response: dict[str, Any], entry: dict[str, Any]) -> str:
    """Describe the answer, or why there is none; an error that explains it is removed from the entry."""
    action, reviewer = response.get("action"), response.get("reviewer")
    if response.get("timeout_reached"):
        runs = "; the policy lets the action run then" if action == "proceed" else ""
        return f"none: no answer in time{runs}"
    if not reviewer and action == "cancel":
        if entry.get("error"):
            return f"none: asking failed: {entry.pop('error')}"
        return "none: no reviewer was available"
    words = [f"{action} by {reviewer or 'an unknown reviewer'}"]
    took = number(response.get("response_time_ms"))
    if took is not None:
        words.append(f"after {took / 1_000:,.1f} s")
    stated = (name for name in ("user_input", "selected_option") if response.get(name) is not None)
    words += [f"{spaced(name)}: {response[name]}" for name in stated]
    return ", ".join(words)


def _approval(approval: dict[str, Any]) -> Iterator[tuple[str, str]]:
    take = approval.pop
    words = f"{take('id')}, {take('state', 'of unknown state')}"
    if approval.get("by"):
        words += f" by {take('by')} ({take('identity', 'stated')}, {take('channel', 'unknown')})"
    yield "approval", clean(words)
    if outcome := outcome_text(approval):
        del approval["now"]
        yield "since then", clean(outcome)
    yield from _others(approval)


MAX_SCORES = 200
PART = 22
"""Width of the names of parts."""
FEATURE = 36
"""Width of the names of features."""
NO_FEATURES = frozenset({"intercept", "calibration"})
"""Contributions that are equal for all runs, or follow from the others."""
MAX_CONTRIBUTIONS = 6
MAX_LOG_ODDS = 1e6
MAX_MISMATCHES = 10
TOKENS = {"input_tokens": "in", "output_tokens": "out", "total_tokens": "total"}


def put_figures(out: Console, trace: ReasoningTrace, *, full: bool = False) -> None:
    """Write the confidence, the value score and the scores of scorers; with `full`, also unevaluated parts and those of the score."""
    grace = mapping(trace.grace)
    _put_confidence(out, trace.outcome.confidence, mapping(grace.get("confidence")), full=full)
    _put_value(out, trace.metadata.quality_score, mapping(grace.get("value")), full=full)
    results = items(grace.get("scores"))
    shown = results if full else results[:MAX_SCORES]
    for result in shown:
        if isinstance(result, dict):
            _put_result(out, result)
    if len(shown) < len(results):
        put_text(out, f"and {len(results) - len(shown):,} more scores; --full shows all")


def _put_confidence(out: Console, score: float, confidence: dict[str, Any], *, full: bool) -> None:
    failed = confidence.get("run_failed") is True
    note = f"{confidence.get('level') or ''}{'  run failed' if failed else ''}"
    _put_figure(out, "confidence", score, note, label=LABEL, style="red" if failed else "")
    missing, unscored = items(confidence.get("not_evaluated")), items(confidence.get("not_scored"))
    fallbacks = with_fallbacks({}, confidence.get("fallbacks"))
    parts = {part: None if part in missing else value for part, value in mapping(confidence.get("breakdown")).items()}
    shown = [part for part, value in parts.items() if full or part in fallbacks or number(value) is not None]
    for part in shown:
        _put_part(out, part, parts[part], none=part_text(fallbacks.get(part), not_scored=part in unscored))
    if len(shown) < len(parts):
        put_text(out, f"{count_text(len(parts) - len(shown), 'factor')} not evaluated; --full shows all", indent=2)
    penalties = items(confidence.get("penalties"))
    if penalties:
        put_field(out, "penalties", clean(penalties_text(penalties)), indent=2, label=PART - 2)
    if confidence.get("fallback") is True:
        put_text(out, clean(str(confidence.get("reason") or "the profile failed; a formula replaced it")), indent=2)
    _put_contributions(out, mapping(confidence.get("contributions")))
    for mismatch in items(confidence.get("mismatches"))[:MAX_MISMATCHES]:
        put_field(out, "does not fit", clean(str(mismatch)), indent=2, label=PART - 2)
    computed = number(confidence.get("score"))
    if "own" in confidence and computed is not None:
        put_field(out, "computed", f"{computed:.3f}; the run stated its own", indent=2, label=PART - 2)


def _put_contributions(out: Console, contributions: dict[str, Any]) -> None:
    """Write the features with the largest effect on a learned confidence, in log-odds."""
    features = (entry for entry in contributions.items() if entry[0] not in NO_FEATURES)
    numbers = ((clean(name, FEATURE - 6), number(value)) for name, value in features)
    known = [(name, value) for name, value in numbers if value and abs(value) < MAX_LOG_ODDS]
    known.sort(key=lambda entry: -abs(entry[1]))
    if not known:
        return
    put_text(out, "largest contributions, in log-odds: + raises the confidence, - lowers it", indent=2)
    for name, value in known[:MAX_CONTRIBUTIONS]:
        put_field(out, name, f"{value:+.2f}", indent=4, label=FEATURE)
    if len(known) > MAX_CONTRIBUTIONS:
        rest = sum(value for _, value in known[MAX_CONTRIBUTIONS:])
        put_field(out, f"{len(known) - MAX_CONTRIBUTIONS} others together", f"{rest:+.2f}", indent=4, label=FEATURE)


def _put_value(out: Console, score: float, value: dict[str, Any], *, full: bool) -> None:
    _put_figure(out, "score", score, str(value.get("profile") or ""), label=LABEL)
    if not full:
        return
    for part in ("complexity", "novelty", "tool_diversity", "outcome_confidence"):
        if part in value:
            note = "not measured" if part == "novelty" and "novelty_fallback" in value else ""
            _put_part(out, part, value[part], note)
    overrides = items(value.get("overrides"))
    if overrides:
        put_field(out, "rules", clean(penalties_text(overrides)), indent=2, label=PART - 2)


def _put_part(out: Console, part: str, value: object, note: str = "", *, none: str = NOT_EVALUATED) -> None:
    figure = number(value)
    if figure is None:
        put_field(out, clean(part), none, indent=2, label=PART - 2)
    else:
        _put_figure(out, clean(part), figure, note, indent=2, label=PART - 2)


def _put_figure(
    out: Console, name: str, value: float, note: str = "", *, label: int, indent: int = 0, style: str = ""
) -> None:
    words = " ".join(part for part in (f"{value:.3f}", meter(value, out), clean(note)) if part)
    put_field(out, name, words, indent=indent, label=label, style=style)


def _put_result(out: Console, result: dict[str, Any]) -> None:
    indent = 2 if "suite" in result else 0
    name, label = clean(str(result.get("name")), 28), PART - indent
    score = number(result.get("score"))
    if score is None or not 0 <= score <= 1:
        why = str(result.get("error") or result.get("skipped") or "no score")
        put_field(out, name, f"not scored: {clean(why)}", indent=indent, label=label)
        return
    passed = result.get("passed")
    word = "passes" if passed is True else "fails" if passed is False else ""
    _put_figure(out, name, score, word, indent=indent, label=label, style="red" if passed is False else "")
    for line in items(result.get("diagnosis")):
        put_text(out, clean(str(line)), indent=4)


def put_tokens(out: Console, grace: dict[str, Any], *, full: bool = False) -> None:
    """Write the model calls with their tokens, and the sum."""
    calls = [mapping(call) for call in items(grace.get("model_calls"))]
    usage = mapping(grace.get("usage"))
    kinds = list(dict.fromkeys(name for entry in [usage, *calls] for name in entry if name.endswith("_tokens")))
    if not calls and not kinds:
        return
    put(out, "")
    rows = TextTable(
        TableColumn("model call", least=10),
        TableColumn("step", "figure", priority=3),
        TableColumn("status", "word", priority=2, styles={"error": "red"}),
        TableColumn("ms", "figure", priority=1),
        *(
            TableColumn(f"tokens {TOKENS.get(kind, clean(kind.removesuffix('_tokens'), 12))}", "figure")
            for kind in kinds
        ),
    )
    shown = calls if full else calls[:MAX_SCORES]
    for call in shown:
        rows.add(
            call.get("model") or "-",
            call.get("step", "-"),
            clean(str(call.get("status", "-")), 12),
            _whole(call.get("latency_ms")),
            *(_whole(call.get(kind)) for kind in kinds),
        )
    total = [_whole(usage.get(kind)) for kind in kinds]
    rows.add(f"all {len(calls):,}" if len(calls) != 1 else "all", "", "", "", *total)
    rows.print(out)
    if len(shown) < len(calls):
        put_text(out, f"and {len(calls) - len(shown):,} more model calls; --full shows all")
    put(out, "")


def _whole(value: object) -> str:
    figure = number(value)
    return "-" if figure is None else f"{figure:,.0f}"
