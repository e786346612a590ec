"""Reads the typed records of a trace from the JSON under `grace`, without changing it.

Traces written by other programs may hold anything there. A part that is missing or has the wrong shape is None or empty here;
`trace.grace` still shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from grace_kp.levels import InterventionLevel
from grace_kp.trace._records import (
    CallRecord,
    ConfidenceRecord,
    DecisionRecord,
    ErrorRecord,
    EvaluationRecord,
    JudgementRecord,
    NoticeRecord,
    ResponseRecord,
    ScoreRecord,
    SearchRecord,
    UnusableScore,
    ValueRecord,
)

T = TypeVar("T")


def each(part: Any, read: Callable[[Any], T | None]) -> list[T]:
    """Read a list; entries that cannot be read are left out."""
    if not isinstance(part, list):
        return []
    return [record for entry in part if (record := read(entry)) is not None]


def text_of(value: Any) -> str | None:
    """Return a text, and None for anything else."""
    return value if isinstance(value, str) else None


def texts_of(value: Any) -> tuple[str, ...]:
    """Return the texts of a list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def object_of(value: Any) -> Mapping[str, Any] | None:
    """Return a JSON object, and None for anything else."""
    return value if isinstance(value, Mapping) else None


def confidence_of(part: Any) -> ConfidenceRecord | None:
    """Read `grace.confidence`."""
    if not isinstance(part, Mapping) or (score := _unit(part.get("score"))) is None:
        return None
    not_evaluated = texts_of(part.get("not_evaluated"))
    return ConfidenceRecord(
        score=score,
        level=text_of(part.get("level")),
        profile=text_of(part.get("profile")),
        reason=text_of(part.get("reason")) or "",
        breakdown=_breakdown(part.get("breakdown"), not_evaluated),
        penalties=texts_of(part.get("penalties")),
        not_evaluated=not_evaluated,
        own=_unit(part.get("own")),
        run_failed=part.get("run_failed") is True,
    )


def _breakdown(part: Any, not_evaluated: tuple[str, ...]) -> Mapping[str, float | None]:
    if not isinstance(part, Mapping):
        return {}
    return {name: None if name in not_evaluated else _number(value) for name, value in part.items()}


def value_of(part: Any) -> ValueRecord | None:
    """Read `grace.value`."""
    if not isinstance(part, Mapping) or (score := _unit(part.get("score"))) is None:
        return None
    return ValueRecord(
        score=score,
        complexity=_number(part.get("complexity")),
        novelty=_number(part.get("novelty")),
        tool_diversity=_number(part.get("tool_diversity")),
        outcome_confidence=_number(part.get("outcome_confidence")),
        profile=text_of(part.get("profile")),
        overrides=texts_of(part.get("overrides")),
        novelty_fallback=text_of(part.get("novelty_fallback")),
    )


def decision_of(part: Any) -> DecisionRecord | None:
    """Read one entry of `grace.decisions`."""
    if not isinstance(part, Mapping):
        return None
    action, outcome = text_of(part.get("action")), text_of(part.get("outcome"))
    if action is None or outcome is None:
        return None
    return DecisionRecord(
        action=action,
        outcome=outcome,
        level=_level(part.get("level")),
        score=_unit(part.get("score")),
        reason=text_of(part.get("reason")) or "",
        arguments=object_of(part.get("arguments")) or {},
        evidence_gaps=texts_of(part.get("evidence_gaps")),
        hidden=_counts(part.get("hidden")),
        digest=text_of(part.get("digest")),
        executed_digest=text_of(part.get("executed_digest")),
        floor=text_of(part.get("floor")),
        policy_version=text_of(part.get("policy_version")),
        attempt=_whole(part.get("attempt")),
        waited_ms=_number(part.get("waited_ms")),
        response=_response(part.get("response")),
        error=text_of(part.get("error")),
        problem=text_of(part.get("problem")),
        executed_arguments=object_of(part.get("executed_arguments")),
        unchecked=text_of(part.get("unchecked")),
        notice=_notice(part.get("notice")),
        evaluation=evaluation_of(part.get("evaluation")),
        data=part,
    )


def _counts(part: Any) -> Mapping[str, int]:
    return {name: count for name, value in (object_of(part) or {}).items() if (count := _whole(value)) is not None}


def _notice(part: Any) -> NoticeRecord | None:
    if not isinstance(part, Mapping) or (text := text_of(part.get("text"))) is None:
        return None
    return NoticeRecord(text=text, to=text_of(part.get("to")))


def _response(part: Any) -> ResponseRecord | None:
    if not isinstance(part, Mapping) or (action := text_of(part.get("action"))) is None:
        return None
    return ResponseRecord(
        action=action,
        reviewer=text_of(part.get("reviewer")),
        user_input=text_of(part.get("user_input")),
        modified=object_of(part.get("modified")),
        hidden=_counts(part.get("hidden")),
        selected_option=text_of(part.get("selected_option")),
        timeout_reached=part.get("timeout_reached") is True,
        response_time_ms=_number(part.get("response_time_ms")),
    )


def call_of(part: Any) -> CallRecord | None:
    """Read one entry of `grace.calls`."""
    if not isinstance(part, Mapping):
        return None
    name, status = text_of(part.get("name")), text_of(part.get("status"))
    if name is None or status is None:
        return None
    return CallRecord(
        name=name,
        status=status,
        call_id=text_of(part.get("call_id")),
        tool_call=_whole(part.get("tool_call")),
        observation=_whole(part.get("observation")),
        latency_ms=_number(part.get("latency_ms")),
        error=error_of(part.get("error")),
        search=_search(part.get("search")),
        parent=text_of(part.get("parent")),
        child=text_of(part.get("child")),
        usage=usage_of(part.get("usage")),
    )


def _search(part: Any) -> SearchRecord | None:
    if not isinstance(part, Mapping) or (count := _whole(part.get("count"))) is None:
        return None
    found = part.get("scores")
    scores = [_number(score) for score in found] if isinstance(found, list) else []
    usable = tuple(score for score in scores if score is not None)
    return SearchRecord(
        count=count,
        scores=usable,
        sources=texts_of(part.get("sources")),
        kind=text_of(part.get("kind")),
        unusable_scores=_whole(part.get("unusable_scores")) or 0,
        unusable=tuple(each(part.get("unusable"), _unusable)),
        note=text_of(part.get("note")),
    )


def _unusable(part: Any) -> UnusableScore | None:
    if not isinstance(part, Mapping):
        return None
    value, why = text_of(part.get("value")), text_of(part.get("why"))
    return None if value is None or why is None else UnusableScore(value=value, why=why)


def score_of(part: Any) -> ScoreRecord | None:
    """Read one entry of `grace.scores`."""
    if not isinstance(part, Mapping) or (name := text_of(part.get("name"))) is None:
        return None
    passed = part.get("passed")
    return ScoreRecord(
        name=name,
        score=_unit(part.get("score")),
        passed=passed if isinstance(passed, bool) else None,
        threshold=_number(part.get("threshold")),
        suite=text_of(part.get("suite")),
        diagnosis=texts_of(part.get("diagnosis")),
        error=text_of(part.get("error")),
        skipped=text_of(part.get("skipped")),
    )


def evaluation_of(part: Any) -> EvaluationRecord | None:
    """Read `grace.evaluation`."""
    if not isinstance(part, Mapping):
        return None
    return EvaluationRecord(
        mode=text_of(part.get("mode")),
        skipped=text_of(part.get("skipped")),
        self_evaluation=_judgement(part.get("self_evaluation")),
        coverage=_judgement(part.get("coverage")),
        source_agreement=_judgement(part.get("source_agreement")),
        calls=_whole(part.get("calls")) or 0,
        tokens=_whole(part.get("tokens")),
    )


def _judgement(part: Any) -> JudgementRecord | None:
    if not isinstance(part, Mapping) or (score := _unit(part.get("score"))) is None:
        return None
    return JudgementRecord(
        score=score,
        fallback=part.get("fallback") is True,
        reason=text_of(part.get("reason")) or "",
        error=text_of(part.get("error")),
        model=text_of(part.get("model")),
    )


def error_of(part: Any) -> ErrorRecord | None:
    """Read an `error` entry."""
    if not isinstance(part, Mapping) or (kind := text_of(part.get("type"))) is None:
        return None
    return ErrorRecord(type=kind, message=text_of(part.get("message")) or "")


def usage_of(part: Any) -> Mapping[str, int]:
    """Read `grace.usage`: token counts by name, such as `input_tokens`."""
    if not isinstance(part, Mapping):
        return {}
    counts = {name: _whole(value) for name, value in part.items()}
    return {name: count for name, count in counts.items() if count is not None}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, float | int):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number with hundreds of digits
        return None


def _unit(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _level(value: Any) -> InterventionLevel | None:
    try:
        return InterventionLevel(value)
    except ValueError:
        return None
