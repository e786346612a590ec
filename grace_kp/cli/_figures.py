"""The figures of a trace for people: confidence and value score with their parts, results of scorers, tokens of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.cli._output import clean
from grace_kp.cli._page import LABEL, meter, put, put_field, put_text
from grace_kp.cli._table import Column, Table
from grace_kp.confidence import NOT_EVALUATED, part_text, penalties_text
from grace_kp.pages import count_text, with_fallbacks

if TYPE_CHECKING:
    from rich.console import Console

    from grace_kp.trace import ReasoningTrace

MAX_SCORES = 200
PART = 22
"""Width of the names of parts."""
FEATURE = 36
"""Width of the names of features."""
NO_FEATURES = frozenset({"intercept", "calibration"})
"""Contributions that are the same for every run, or follow from the others."""
MAX_CONTRIBUTIONS = 6
MAX_LOG_ODDS = 1e6
MAX_MISMATCHES = 10
TOKENS = {"input_tokens": "in", "output_tokens": "out", "total_tokens": "total"}


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one: the data under `grace` may come from other programs."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def number(value: object) -> float | None:
    """Return the value if it is a number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def put_figures(out: Console, trace: ReasoningTrace, *, full: bool = False) -> None:
    """Write the confidence, the value score and the results of scorers; with `full`, also parts that were not evaluated or explain the score."""
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
        put_text(
            out, clean(str(confidence.get("reason") or "the profile failed; a formula stands in for it")), indent=2
        )
    _put_contributions(out, mapping(confidence.get("contributions")))
    for mismatch in items(confidence.get("mismatches"))[:MAX_MISMATCHES]:
        put_field(out, "does not fit", clean(str(mismatch)), indent=2, label=PART - 2)
    computed = number(confidence.get("score"))
    if "own" in confidence and computed is not None:
        put_field(out, "computed", f"{computed:.3f}; the run stated its own", indent=2, label=PART - 2)


def _put_contributions(out: Console, contributions: dict[str, Any]) -> None:
    """Write the features that weigh most in a learned confidence, with what each adds to the logarithm of the odds."""
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
    name = clean(part)
    if figure is None:
        put_field(out, name, none, indent=2, label=PART - 2)
    else:
        _put_figure(out, name, figure, note, indent=2, label=PART - 2)


def _put_figure(
    out: Console, name: str, value: float, note: str = "", *, label: int, indent: int = 0, style: str = ""
) -> None:
    note = clean(note)
    words = " ".join(part for part in (f"{value:.3f}", meter(value, out), note) if part)
    put_field(out, name, words, indent=indent, label=label, style=style)


def _put_result(out: Console, result: dict[str, Any]) -> None:
    """Write the result of a scorer."""
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
    rows = Table(
        Column("model call", least=10),
        Column("step", "figure", priority=3),
        Column("status", "word", priority=2, styles={"error": "red"}),
        Column("ms", "figure", priority=1),
        *(Column(f"tokens {TOKENS.get(kind, clean(kind.removesuffix('_tokens'), 12))}", "figure") for kind in kinds),
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
