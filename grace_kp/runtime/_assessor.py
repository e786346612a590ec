"""The two figures of a finished run, its confidence and its value score, and the records of both in the trace."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from grace_kp.levels import waits
from grace_kp.record import SUSPENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.confidence import ConfidenceFactors, ConfidenceScore
    from grace_kp.runtime._judging import Judgement
    from grace_kp.runtime._profile_set import ProfileSet
    from grace_kp.value import ValueScorer


MAX_KNOWN = 256
"""Confidences in memory: most runs have one of a few sets of factors."""


class Assessor:
    """Fills in the confidence of a document, then its value score."""

    def __init__(self, profiles: ProfileSet, make_scorer: Callable[[], ValueScorer]) -> None:
        """Load no model yet.

        Args:
            profiles: compute confidences.
            make_scorer: returns the scorer of values; called before the first value is computed.
        """
        self.profiles = profiles
        self._make_scorer = make_scorer
        self._known: dict[ConfidenceFactors, tuple[ConfidenceScore, dict[str, Any]]] = {}

    @cached_property
    def scorer(self) -> ValueScorer:
        """Computes value scores."""
        return self._make_scorer()

    def assess(
        self,
        document: dict[str, Any],
        *,
        own_confidence: float | None = None,
        factors: ConfidenceFactors | None = None,
        judgement: Judgement | None = None,
        has_value: bool = True,
    ) -> None:
        """Set `outcome.confidence` and `metadata.quality_score`, and record under `grace` how they were computed.

        Args:
            document: the trace.
            own_confidence: what the run stated itself.
            factors: the factors of the confidence; read from the trace when None.
            judgement: the judgement of the run, if there is one.
            has_value: False leaves the value score for later; the trace then says that it is unscored.
        """
        if factors is None:
            from grace_kp.confidence import factors_from_trace

            factors = factors_from_trace(document)
        grace = document.setdefault("grace", {})
        if judgement is not None:
            factors = judgement.put_into(factors, cautious=self.profiles.main.name == "strict")
            grace["evaluation"] = judgement.to_dict()
        score, known_record = self._confidence(document, factors)
        grace.pop("unscored", None)
        grace["confidence"] = record = {**known_record}
        shadow = self.profiles.shadow_of(document, factors)
        if shadow is not None:
            grace["shadow"] = shadow
        failure = failure_of(document)
        if failure:
            record["run_failed"] = True
            record["reason"] = f"{failure} {record['reason']}"
        if own_confidence is not None:
            record["own"] = own_confidence
        document["outcome"]["confidence"] = score.score if own_confidence is None else own_confidence
        if not has_value or grace.get("status") == SUSPENDED:
            grace["unscored"] = True  # it is scored when it has ended; its novelty counts once
        else:
            self.value(document)

    def _confidence(
        self, document: dict[str, Any], factors: ConfidenceFactors
    ) -> tuple[ConfidenceScore, dict[str, Any]]:
        """Return the confidence of a run and its record, whose parts nobody changes; a profile of the user's is asked every time."""
        main = self.profiles.main
        if not main.is_formula:
            measured, facts = self.profiles.finished(document, factors)
            record = {**confidence_record(measured.score, measured.profile), **facts}
            if measured.problem:
                record["reason"] = (
                    f"{_sentence(measured.problem)} This is the formula {measured.profile}. {record['reason']}"
                )
            return measured.score, record
        known = self._known.get(factors)
        if known is None:
            score = main.calculator.calculate(factors)
            known = score, confidence_record(score, main.name)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[factors] = known
        return known

    def value(self, document: dict[str, Any]) -> None:
        """Set `metadata.quality_score` from the document, its confidence included."""
        value = self.scorer.score(document)
        document["metadata"]["quality_score"] = value.score
        document.setdefault("grace", {})["value"] = record = {
            "score": value.score,
            "complexity": value.complexity,
            "novelty": value.novelty,
            "tool_diversity": value.tool_diversity,
            "outcome_confidence": value.outcome_confidence,
            "profile": value.profile,
            "overrides": list(value.overrides),
        }
        if value.novelty_fallback is not None:
            record["novelty_fallback"] = value.novelty_fallback


def confidence_record(score: ConfidenceScore, profile: str) -> dict[str, Any]:
    """A confidence as it stands in a trace: the score, its parts (None where not evaluated), its penalties and its reason."""
    record: dict[str, Any] = {
        "score": score.score,
        "level": score.level,
        "profile": profile,
        "reason": score.reason,
        "breakdown": score.evaluated,
        "penalties": list(score.penalties_applied),
        "not_evaluated": list(score.not_evaluated),
    }
    if score.fallbacks:
        record["fallbacks"] = dict(score.fallbacks)
    if score.not_scored:
        record["not_scored"] = list(score.not_scored)
    if score.contributions:
        record["contributions"] = dict(score.contributions)
    return record


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


_FAILURES = {
    "cancelled": "The run was cancelled.",
    "closed": "The run was closed before its end.",
    "exited": "The run ended with the program's exit.",
    "interrupted": "The process ended before the end of this run was stored.",
    "not_approved": "The run stopped because an action was not approved.",
}


def failure_of(document: Mapping[str, Any]) -> str:
    """Return one sentence that says how an unsuccessful run ended; empty for a run that succeeded or waits for a person."""
    grace = document.get("grace") or {}
    status = grace.get("status", "completed")
    if document["metadata"].get("success") is not False or waits(status):
        return ""
    if isinstance(status, str) and status in _FAILURES:
        return _FAILURES[status]
    error = grace.get("error")
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        return f"The run failed with {error['type']}."
    return "The run failed." if status == "failed" else "The run did not succeed."
