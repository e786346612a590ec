"""The facts of a run as HTML: its status, key figures, user, session and nested runs, and the parts of its scores, judgements and labels.

The document of a trace is read so that every field may be missing or hold anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.errors import is_unit
from grace_kp.levels import waits
from grace_kp.pages import (
    badge,
    confidence_html,
    count_text,
    duration_text,
    facts,
    fold,
    linked,
    meter,
    outcome_text,
    penalty_text,
    safe,
    spaced,
    table,
    with_fallbacks,
)
from grace_kp.trace._rules import number_of as number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


KINDS = {
    "thought": "thought",
    "tool_call": "call",
    "observation": "result",
    "error_recovery": "recovered",
    "human_input": "person",
}


class HasDocument(Protocol):
    """A `ReasoningTrace`: what has the document of a trace."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""
        ...


def document_of(run: HasDocument | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of a trace, which may be one already."""
    document: Mapping[str, Any] = run if isinstance(run, Mapping) else run.to_dict()
    return document


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def share(value: object) -> float | None:
    """Return the value if it is a number from 0 to 1, else None."""
    return float(value) if is_unit(value) else None


def text(value: object) -> str:
    """Return a string itself, an empty string for None, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else as_json(value)


def as_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON that people read."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    except (ValueError, RecursionError):
        return "<a value that JSON cannot hold>"


class RecordedSteps:
    """The steps of a run, each with the records that belong to it, and the decisions of gates by the number of steps before them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        grace = mapping(document.get("grace"))
        self.steps = items(document.get("steps"))
        self.decisions = decisions_by_place(items(grace.get("decisions")), len(self.steps))
        self._records: list[dict[object, dict[str, Any]]] = [
            {entry[field]: entry for entry in map(mapping, items(grace.get(name))) if type(entry.get(field)) is int}
            for name, field in (("model_calls", "step"), ("calls", "tool_call"), ("calls", "observation"))
        ]

    def at(self, place: int) -> tuple[dict[str, Any], ...]:
        """Return a step, its model call, the call of a tool that it begins, and the one that it ends; each may be empty."""
        step = mapping(self.steps[place])
        number = step.get("step_id")
        number = number if type(number) is int else place
        return step, *(records.get(number, {}) for records in self._records)


def decisions_by_place(decisions: list[Any], count: int) -> dict[int, list[dict[str, Any]]]:
    """Return the decisions by the number of steps before them; those without a place come last."""
    found: dict[int, list[dict[str, Any]]] = {}
    for decision in map(mapping, decisions):
        place = decision.get("step")
        found.setdefault(place if type(place) is int and 0 <= place <= count else count, []).append(decision)
    return found


def kind_of(step: dict[str, Any], model: dict[str, Any]) -> str:
    kind = text(step.get("type"))
    return "model" if model else KINDS.get(kind, spaced(kind) or "step")


def measures_of(step: dict[str, Any], *usages: Mapping[str, Any]) -> list[str]:
    """Return tokens and duration in words; a call and its result have the same duration, which is shown at the call."""
    took = "" if text(step.get("type")) == "observation" else duration_of(step)
    return [*(words for usage in usages for words in tokens(usage)), *filter(None, [took])]


def duration_of(entry: Mapping[str, Any], field: str = "latency_ms") -> str:
    took = number(entry.get(field))
    return "" if took is None else duration_text(took)


def error_words(error: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, (text(error.get("type")), text(error.get("message")))))


def tokens(entry: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a model call or a run in words: `1,200 input tokens`."""
    return [
        f"{value:,} {name.replace('_', ' ')}"
        for name, value in entry.items()
        if name.endswith("_tokens") and isinstance(value, int) and not isinstance(value, bool)
    ]


def instant_of(value: object) -> str:
    """Return a time of the document as HTML, in UTC; an invalid time is shown as written."""
    stated = text(value)
    try:
        moment = datetime.fromisoformat(stated).astimezone(UTC)
    except (ValueError, OverflowError):
        return safe(stated[:100])
    exact = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f'<time datetime="{exact}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'


_ALLOWED = re.compile(r"[#?]|https?://|/(?![/\\])")


def _nowhere(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Functions from ids to addresses. For None, the id is shown without a link.

    The ids come from the document and may be any string; the functions quote them.
    """

    run: Callable[[str], str | None] = _nowhere
    """Address of a run."""
    step: Callable[[str, int], str | None] = _nowhere
    """Address of a step, by the id of its run and its number."""
    approval: Callable[[str], str | None] = _nowhere
    """Address of a request for approval."""


ALONE = Links()
"""No other pages."""


def anchor(address: str | None, content: str) -> str:
    """Return HTML as a link; unchanged without an address."""
    if address is None or not _ALLOWED.match(address):
        return content
    return f'<a href="{safe(address)}">{content}</a>'


def run_anchor(name: str, links: Links) -> str:
    return anchor(links.run(name), f'<span class="mono">{safe(name[:200])}</span>')


MAX_PARTS = 60
"""Entries of a list of figures on a page."""
_VALUE_PARTS = ("complexity", "novelty", "tool_diversity", "outcome_confidence")
_JUDGEMENTS = ("self_evaluation", "coverage", "source_agreement")


def confidence_of(document: Mapping[str, Any], grace: Mapping[str, Any]) -> str:
    """Return the confidence of a run: effective and computed, its parts, and in words what lowered it."""
    record = mapping(grace.get("confidence"))
    if not record:
        return ""
    shares = [share(record.get("score")), share(record.get("own"))]
    effective = share(mapping(document.get("outcome")).get("confidence"))
    failed = '<p class="note warn">The learned profile failed; a formula is used instead.</p>'
    missing = [name for name in items(record.get("not_evaluated")) if isinstance(name, str)]
    breakdown = {**mapping(record.get("breakdown")), **dict.fromkeys(missing[:MAX_PARTS])}
    body = confidence_html(
        record.get("score"),
        breakdown=with_fallbacks(breakdown, record.get("fallbacks")),
        penalties=items(record.get("penalties")),
        reason=record.get("reason"),
        not_scored=items(record.get("not_scored")),
        level=text(record.get("level")),
    )
    rows = [("does not fit", safe(text(item))) for item in items(record.get("mismatches"))[:MAX_PARTS]]
    if text(record.get("profile")):
        rows.append(("profile", safe(text(record["profile"]))))
    if shares[1] is not None:
        rows.append(("stated by the run", f"{shares[1]:.3f}"))
    if effective is not None and effective not in shares:
        rows.append(("effective", f"{effective:.3f}"))
    body = (failed if record.get("fallback") is True else "") + body + facts(rows)
    return _card("Confidence", body + _contributions(mapping(record.get("contributions"))))


def value_of(grace: Mapping[str, Any]) -> str:
    """Return the value score of a run with its parts and the rules that changed it."""
    record = mapping(grace.get("value"))
    if not record:
        return ""
    score = share(record.get("score"))
    head = ""
    if score is not None:
        head = f'<div class="confidence"><p class="figure"><span class="sum">{score:.3f}</span></p></div>'
    bars = []
    for name in _VALUE_PARTS:
        value = share(record.get(name))
        figure = '<dd class="none">not measured</dd>'
        if value is not None:
            figure = f'<dd>{value:.3f}</dd><dd aria-hidden="true">{meter(value)}</dd>'
        bars += [f"<dt>{safe(spaced(name))}</dt>{figure}"] if record.get(name) is not None else []
    head += f'<dl class="parts">{"".join(bars)}</dl>' if bars else ""
    rows = [("rule", safe(spaced(penalty_text(text(item))))) for item in items(record.get("overrides"))[:MAX_PARTS]]
    if text(record.get("novelty_fallback")):
        rows.append(("novelty not measured", safe(text(record["novelty_fallback"]))))
    if text(record.get("profile")):
        rows.append(("weights", safe(text(record["profile"]))))
    return _card("Value score", head + facts(rows))


def evaluation_of(grace: Mapping[str, Any]) -> str:
    """Return how a model judged a run, or why none did. A fallback for a failed judgement is marked."""
    record = mapping(grace.get("evaluation"))
    if not record:
        return ""
    skipped = linked(text(record.get("skipped")))
    parts = [f'<p class="soft">Nothing was judged: {skipped}</p>'] if skipped else []
    parts += [_judgement(name, judged) for name in _JUDGEMENTS if (judged := mapping(record.get(name)))]
    rows = []
    calls, spent = number(record.get("calls")), number(record.get("tokens"))
    if calls is not None:
        words = count_text(int(calls), "call") + ("" if spent is None else f", {int(spent):,} tokens")
        rows.append(("judge", safe(words)))
    if text(record.get("mode")):
        rows.append(("mode", safe(spaced(text(record["mode"])))))
    return _card("Judgement", "".join(parts) + facts(rows))


def scorers_of(grace: Mapping[str, Any]) -> str:
    """Return the results of scorers, each with its diagnosis, or why it has none."""
    entries = [item for item in items(grace.get("scores")) if isinstance(item, dict)]
    shown = "".join(map(_scorer, entries[:MAX_PARTS]))
    more = f'<p class="soft">and {len(entries) - MAX_PARTS:,} more</p>' if len(entries) > MAX_PARTS else ""
    return _card("Scorers", f'<ul class="results">{shown}</ul>{more}' if entries else "")


def _scorer(entry: dict[str, Any]) -> str:
    score, limit, passed = share(entry.get("score")), share(entry.get("threshold")), entry.get("passed")
    line = [f'<span class="name">{safe(text(entry.get("name")) or "a scorer")}</span>']
    if text(entry.get("suite")):
        line.append(f'<span class="soft">in {safe(text(entry["suite"]))}</span>')
    if score is not None:
        line.append(f"<span>{score:.3f}{'' if limit is None else f' of at least {limit:.3g}'}</span>")
    if isinstance(passed, bool):
        line.append(badge("passed", "good") if passed else badge("not passed", "bad"))
    kind = "good" if passed is True else "bad" if passed is False else ""
    body = "" if score is None else meter(score, kind)
    body += _paragraph(entry.get("skipped"), " soft", "Skipped: ") + _paragraph(entry.get("error"), " bad", "Failed: ")
    listed = "".join(f"<li>{linked(text(item))}</li>" for item in items(entry.get("diagnosis"))[:MAX_PARTS])
    return f'<li><div class="line">{" ".join(line)}</div>{body}{f"<ul>{listed}</ul>" if listed else ""}</li>'


def _judgement(name: str, record: dict[str, Any]) -> str:
    score = share(record.get("score"))
    line = [f'<span class="name">{safe(spaced(name))}</span>']
    if score is not None:
        line.append(f"<span>{score:.3f}</span>")
    if record.get("fallback") is True:
        line.append(badge("fallback, not measured", "warn"))
    if text(record.get("model")):
        line.append(f'<span class="soft mono">{safe(text(record["model"]))}</span>')
    body = "" if score is None or record.get("fallback") is True else meter(score)
    body += _paragraph(record.get("reason")) + _paragraph(record.get("error"), " bad")
    return f'<div class="result"><div class="line">{" ".join(line)}</div>{body}</div>'


def _contributions(parts: dict[str, Any]) -> str:
    """Return what each feature of a learned profile added to the log odds, strongest first."""
    known = [(name, value) for name, item in parts.items() if (value := number(item)) is not None]
    known.sort(key=lambda pair: -abs(pair[1]))
    rows = [(spaced(name), f"{value:+.2f}".replace("-", "−")) for name, value in known[:MAX_PARTS]]
    caption = "What each feature added to the logarithm of the odds"
    shown = table(("feature", "added"), rows, caption=caption)
    return f"<details><summary>contributions</summary>{shown}</details>" if rows else ""


def labels_of(grace: Mapping[str, Any], action: str | None = None) -> str:
    """Return the labels of a run, or of one of its actions, newest first: what was stated, by whom and when."""
    stated = items(grace.get("feedback" if action is None else "action_feedback"))
    entries = [entry for entry in stated if action is None or mapping(entry).get("action") == action]
    shown = "".join(f"<li>{''.join(_label(item))}</li>" for item in reversed(entries[-MAX_PARTS:]))
    more = f'<p class="soft">and {len(entries) - MAX_PARTS:,} earlier</p>' if len(entries) > MAX_PARTS else ""
    return _card("Labels", f'<ul class="results labels">{shown}</ul>{more}' if entries else "")


def _label_badge(correct: object) -> str:
    value = correct if isinstance(correct, bool) else number(correct)
    if value in {0, 1}:
        return badge("right", "good") if value else badge("wrong", "bad")
    return badge("partly" if value == 0.5 else f"partly {as_json(correct)[:20]}", "warn")


def _label(item: object) -> Iterator[str]:
    entry = mapping(item)
    if "correct" not in entry:
        yield safe(text(item))
        return
    yield f'<div class="line">{_label_badge(entry["correct"])} '
    by, source = text(entry.get("by")), text(entry.get("source"))
    yield f"<span>{safe(by or 'unknown person')}{' (program)' if entry.get('program') else ''}</span> "
    yield f'<span class="soft">{safe(source)}</span> ' if source else ""
    yield f'<span class="soft">{instant_of(entry.get("at"))}</span>' if text(entry.get("at")) else ""
    probability = number(entry.get("probability"))
    yield f' <span class="soft">chosen with probability {probability:.3g}</span>' if probability is not None else ""
    yield "</div>" + _paragraph(entry.get("note"))


def _paragraph(value: object, kind: str = "", before: str = "") -> str:
    shown = text(value)
    return f'<p class="text{kind}">{before}{linked(shown)}</p>' if shown else ""


def _card(title: str, body: str) -> str:
    return f'<section class="part"><h2>{safe(title)}</h2>{body}</section>' if body else ""


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
    """Return the head of a run as HTML, without its objective, which `run_title` has for the heading."""
    return run_summary(run) + run_details(run, links=links)


def run_summary(run: HasDocument | Mapping[str, Any]) -> str:
    """Return how a run ended and its key figures as HTML."""
    document = document_of(run)
    grace = mapping(document.get("grace"))
    figures = [f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in _figures(document, grace) if value]
    return f'<div class="run-head">{"".join(_notes(grace))}<dl class="key-figures">{"".join(figures)}</dl></div>'


def run_details(run: HasDocument | Mapping[str, Any], *, links: Links = ALONE, labels: bool = True) -> str:
    """Return the facts about a run and the parts of its scores as HTML."""
    document = document_of(run)
    grace = mapping(document.get("grace"))
    parts = confidence_of(document, grace) + value_of(grace) + evaluation_of(grace) + scorers_of(grace)
    parts += labels_of(grace) if labels else ""
    return f'<div class="run-facts">{facts(_facts(document, grace, links))}</div><div class="run-parts">{parts}</div>'


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
        kind = "warn" if waits(grace.get("status")) else "bad"
        yield f'<div class="note {kind}">{fold(error_words(error), label="ended by")}</div>'
    pending = mapping(grace.get("pending"))
    if outcome := outcome_text(mapping(pending.get("approval"))):
        yield f'<p class="note">Since then, {safe(text(pending.get("action")))}: {safe(outcome)}.</p>'
    dropped = number(grace.get("dropped_steps"))
    if dropped:
        yield f'<p class="note warn">{count_text(int(dropped), "step")} were not recorded.</p>'


def _figures(document: Mapping[str, Any], grace: dict[str, Any]) -> Iterator[tuple[str, str]]:
    metadata, steps = mapping(document.get("metadata")), items(document.get("steps"))
    status = text(grace.get("status"))
    outcome = metadata.get("success")
    words = [badge(status)] if status else []
    if isinstance(outcome, bool) and not waits(status):
        words.append(f'<span class="small {"good" if outcome else "bad"}">{"" if outcome else "not "}successful</span>')
    yield "status", " ".join(words)
    confidence = mapping(document.get("outcome")).get("confidence")
    for label, stated in (("confidence", confidence), ("value score", metadata.get("quality_score"))):
        if (value := share(stated)) is not None:
            yield label, f"{value:.2f}{meter(value)}"
    yield "duration", safe(duration_of(grace, "duration_ms"))
    yield "steps", f"{len(steps):,}"
    calls, gates = items(grace.get("model_calls")), items(grace.get("decisions"))
    yield "model calls", f"{len(calls):,}" if calls else ""
    counts = map(mapping(grace.get("usage")).get, ("input_tokens", "output_tokens"))
    used = sum(count for count in counts if type(count) is int)
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
    named = {"agent": agent_name(document), "domain": metadata.get("task_domain"), "user": grace.get("user")}
    named |= {"session": grace.get("session"), "framework": metadata.get("framework")}
    for label, value in named.items():
        if text(value):
            yield label, linked(text(value)[:2_000], lines=False)
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
    parent = text(mapping(grace.get("parent")).get("trace_id"))
    if parent:
        yield "nested in", run_anchor(parent, links)
    children = [item for item in items(grace.get("children")) if isinstance(item, str)]
    if children:
        listed = "".join(f"<li>{run_anchor(child, links)}</li>" for child in children[:MAX_LISTED])
        more = f"<li>and {len(children) - MAX_LISTED:,} more</li>" if len(children) > MAX_LISTED else ""
        yield "nested runs", f'<ul class="bare">{listed}{more}</ul>'
    resumed = number(grace.get("resumed"))
    if resumed:
        yield "continued", safe(f"{count_text(int(resumed), 'time')} after it was suspended")
