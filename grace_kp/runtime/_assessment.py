"""The assessment of runs: judgements by a model, and the two figures of a finished run, its confidence and its value score.

A finished run is judged by a worker while others go on; the writer stores it when its judgement is there. A run that cannot be
judged (no answer, no judge, too many waiting, the process ends) has the reason in its trace. A gate waits for its judgement.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.background import Resident, Worker, watch
from grace_kp.confidence import (
    ConfidenceFactors,
    Evaluation,
    could_change,
    factors_from_trace,
    with_agreement,
    with_judgements,
)
from grace_kp.levels import waits
from grace_kp.record import SUSPENDED
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.confidence import ConfidenceCalculator, ConfidenceScore
    from grace_kp.judge import LLMSelfEvaluator, SourceAgreementCalculator, SpendingLimit
    from grace_kp.levels import InterventionLevel
    from grace_kp.runtime._profiles import ProfileSet
    from grace_kp.value import ValueScorer


Material: TypeAlias = tuple[str, str, list[str]]
"""Objective, answer and sources of a run."""

MAX_WAITING = 256
MAX_SOURCE_TEXTS = 20
NOT_NEEDED = "not needed: no answer could change the level"
NEVER = "not asked for"
ENDED = "the process ended first"


class Judgement:
    """The judgement of one run, once it is there."""

    __slots__ = ("_result", "factors", "mode", "request")

    def __init__(self, mode: str, factors: ConfidenceFactors) -> None:
        self.mode = mode
        self.factors = factors
        """The factors of the run without the judgement."""
        self.request: Request | None = None
        """The request for the judge; None once it is started, or if none is needed."""
        self._result: JudgementResult | None = None

    @property
    def is_done(self) -> bool:
        return self._result is not None

    def end(self, result: JudgementResult) -> None:
        """Set the result; only the first counts."""
        if self._result is None:
            self._result = result

    def skip(self, reason: str) -> None:
        """End it with a fallback that states the reason, whatever a model answers later."""
        self.end(JudgementResult.fallback(reason))

    def put_into(self, factors: ConfidenceFactors, *, cautious: bool) -> ConfidenceFactors:
        """Return the factors with what was judged and measured."""
        result = self._result
        if result is None:
            return factors
        if result.agreement is not None:
            factors = with_agreement(factors, result.agreement)
        if result.own is None and result.coverage is None:
            return factors
        return with_judgements(factors, result.own, result.coverage, cautious=cautious)

    def to_dict(self) -> dict[str, Any]:
        """Return the trace's record: what was evaluated, what was a fallback and why, and the cost."""
        result = self._result or JudgementResult(skipped="not judged")
        return {"mode": self.mode, **result.to_dict()}


@dataclass(slots=True)
class JudgementResult:
    """Evaluations of a run, or the reason why there are none."""

    own: Evaluation | None = None
    coverage: Evaluation | None = None
    agreement: Evaluation | None = None
    skipped: str | None = None

    @classmethod
    def fallback(cls, reason: str, agreement: Evaluation | None = None) -> JudgementResult:
        """Return the fallback for a run that could not be judged."""
        evaluation = Evaluation.failed(reason, attempts=0)
        return cls(evaluation, evaluation, agreement)

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {} if self.skipped is None else {"skipped": self.skipped}
        if self.own is None and self.coverage is None and self.agreement is None:
            return record
        names = {"self_evaluation": self.own, "coverage": self.coverage, "source_agreement": self.agreement}
        record.update({name: evaluation.to_dict() for name, evaluation in names.items() if evaluation is not None})
        judged = [evaluation for evaluation in (self.own, self.coverage) if evaluation is not None]
        if judged and self.coverage is None:
            record["coverage_skipped"] = NOT_NEEDED
        if judged:
            # Judgements of one call share its time; the first of them carries the cost of the call.
            is_combined = len({(each.latency_ms, each.attempts) for each in judged}) == 1
            calls = judged[:1] if is_combined else judged
            counts = [count for judgement in judged for count in (judgement.tokens_in, judgement.tokens_out)]
            tokens = [count for count in counts if count is not None]
            record["calls"] = sum(call.attempts for call in calls)
            record["tokens"] = sum(tokens) if tokens else None
            record["latency_ms"] = round(sum(call.latency_ms or 0.0 for call in calls), 3)
        return record


@dataclass(frozen=True, slots=True)
class Request:
    run_id: str
    material: Material
    texts: Sequence[str]
    """Texts of its search results, if their agreement is to be measured."""
    reason_to_skip: str | None
    """Why no model is asked."""


class RunJudge(Resident):
    """Judges runs with one evaluator."""

    def __init__(
        self,
        *,
        evaluator: LLMSelfEvaluator | None,
        missing: str,
        mode: str,
        calculator: ConfidenceCalculator,
        agreement: SourceAgreementCalculator | None = None,
        workers: int = 4,
        limit: SpendingLimit | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.missing = missing
        self.mode = mode
        self.limit = limit
        self._calculator = calculator
        self._agreement = agreement
        self.on_end: Callable[[], object] = lambda: None
        """Called when a judgement is there."""
        self.after_fork()
        # A judge that flushes would wait for itself.
        self._worker = Worker(self._judge_next, name="judge", threads=workers, may_wait=False)
        watch(self)

    def after_fork(self) -> None:
        """Forget in the child what waited: the parent judges it."""
        self._queue: deque[Judgement] = deque()
        self._lock = threading.Lock()
        self._waiting: dict[int, Judgement] = {}
        self._given_up = False

    @property
    def asks_models(self) -> bool:
        """Whether a model may be asked when a run has ended."""
        return self.evaluator is not None and self.mode != "never"

    def plan(self, document: dict[str, Any], source_texts: Sequence[str]) -> Judgement:
        """Return the judgement of a finished run, not started yet; it has ended where there is nothing to ask."""
        factors = factors_from_trace(document)
        judgement = Judgement(self.mode, factors)
        measures = self._agreement is not None and factors.source_count > 1 and len(source_texts) > 1
        reason = self._reason_to_skip(document)
        if not measures and (
            reason is not None or (self.mode == "when_needed" and not could_change(self._calculator, factors))
        ):
            judgement.end(JudgementResult(skipped=reason or NOT_NEEDED))
        else:
            texts = list(source_texts) if measures else []
            judgement.request = Request(document["id"], _material(document), texts, reason)
        return judgement

    def start(self, judgement: Judgement) -> None:
        """Start judging a run. One that cannot be judged now ends with a fallback that states the reason."""
        if judgement.request is None or judgement.is_done:
            return
        with self._lock:
            failure = ENDED if self._given_up else ""
            if len(self._waiting) >= MAX_WAITING:
                failure = f"more than {MAX_WAITING} runs wait for a judgement"
            if not failure:
                self._waiting[id(judgement)] = judgement
        if failure:
            judgement.skip(failure)
            return
        self._queue.append(judgement)
        if not self._worker.wake():
            self.give_up()

    def _judge_next(self) -> float | None:
        try:
            judgement = self._queue.popleft()
        except IndexError:
            return None
        request, judgement.request = judgement.request, None
        if request is None:
            return 0.0  # an interrupt came right after it was started, so it was started once more
        result = JudgementResult.fallback("the judge ended its thread")
        try:
            result = self._judge(judgement.factors, request)
        finally:
            judgement.end(result)
            with self._lock:
                self._waiting.pop(id(judgement), None)
            self.on_end()
        return 0.0

    def _judge(self, factors: ConfidenceFactors, request: Request) -> JudgementResult:
        agreement, reason_to_skip = None, request.reason_to_skip
        try:
            if request.texts and self._agreement is not None:
                agreement = self._agreement.calculate_detailed(request.texts)
                factors = with_agreement(factors, agreement)
            if reason_to_skip is None and self.mode == "when_needed" and not could_change(self._calculator, factors):
                reason_to_skip = NOT_NEEDED
            if reason_to_skip is not None or self.evaluator is None:
                return JudgementResult(agreement=agreement, skipped=reason_to_skip)
            own, coverage = self._ask(self.mode, factors, None, request.material, request.run_id)
            return JudgementResult(own, coverage, agreement)
        except BaseException as error:  # noqa: BLE001 — a judgement that fails is a fallback, even if it raises SystemExit
            return JudgementResult.fallback(": ".join(describe_error(error, 300)), agreement)

    def _ask(
        self,
        mode: str,
        factors: ConfidenceFactors,
        level_of: Callable[[ConfidenceFactors], InterventionLevel] | None,
        material: Material,
        run_id: str | None,
    ) -> tuple[Evaluation, Evaluation | None]:
        """Return both judgements; a second one that needs its own call only if it can still matter."""
        evaluator = self.evaluator
        assert evaluator is not None  # noqa: S101
        objective, answer, sources = material
        if mode != "when_needed" or evaluator.combined:
            return evaluator.evaluate_both(objective, answer, sources, run=run_id)
        own = evaluator.evaluate_detailed(objective, answer, sources, run=run_id)
        judged = with_judgements(factors, own, None, cautious=self._calculator.profile == "strict")
        if not could_change(self._calculator, judged, own_is_known=True, level_of=level_of):
            return own, None
        return own, evaluator.cover_detailed(objective, answer, run=run_id)

    def _reason_to_skip(self, document: dict[str, Any]) -> str | None:
        if self.evaluator is None:
            return self.missing
        if self.mode == "never":
            return NEVER
        if document["grace"].get("status") != "completed":
            return "the run did not complete"
        if not document["outcome"].get("result_summary"):
            return "the run gave no answer to judge"
        return None

    def give_up(self) -> None:
        """End all judgements with a fallback, later ones too."""
        with self._lock:
            self._given_up = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for judgement in waiting:
            judgement.skip(ENDED)
        self.on_end()

    def before_gate(
        self,
        mode: str,
        factors: ConfidenceFactors,
        level_of: Callable[[ConfidenceFactors], InterventionLevel],
        material: Callable[[], Material],
        run: str | None,
    ) -> tuple[ConfidenceFactors, dict[str, Any]]:
        """Return the factors for a gate, judged if the gate asks for it, and the record of the judgement; wait for the judge.

        `level_of` gives the level for factors. It takes into account whether they hold a judgement: one that succeeds is a measurement, and
        without any the level may be the same for every score.
        """
        result = JudgementResult()
        if mode == "never":
            result.skipped = NEVER
        elif mode == "when_needed" and not could_change(self._calculator, factors, level_of=level_of):
            result.skipped = NOT_NEEDED
        elif self.evaluator is None:
            result.skipped = self.missing
        else:
            result.own, result.coverage = self._ask(mode, factors, level_of, material(), run)
            cautious = self._calculator.profile == "strict"
            factors = with_judgements(factors, result.own, result.coverage, cautious=cautious)
        return factors, {"mode": mode, **result.to_dict()}


def _material(document: dict[str, Any]) -> Material:
    steps = document["steps"]
    sources: list[str] = []
    searched: list[str] = []
    for call in document["grace"].get("calls", ()):
        number = call.get("observation")
        if not isinstance(number, int) or call.get("status") != "ok" or number >= len(steps):
            continue
        content = steps[number].get("content")
        if isinstance(content, str) and content:
            (searched if "search" in call else sources).append(content)
    return (
        document["task"]["objective"],
        document["outcome"]["result_summary"],
        (searched or sources)[:MAX_SOURCE_TEXTS],
    )


MAX_KNOWN = 256
"""Confidences in memory: most runs have one of a few sets of factors."""


class Assessor:
    """Fills in the confidence of a document, then its value score."""

    def __init__(self, profiles: ProfileSet, make_scorer: Callable[[], ValueScorer]) -> None:
        self.profiles = profiles
        self._make_scorer = make_scorer
        self._known: dict[ConfidenceFactors, tuple[ConfidenceScore, dict[str, Any]]] = {}

    @cached_property
    def scorer(self) -> ValueScorer:
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
        """Set `outcome.confidence` and `metadata.quality_score`, and record under `grace` how they were computed."""
        factors = factors_from_trace(document) if factors is None else factors
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
        """Return the confidence of a run and its record, which no caller changes. A user's profile is asked every time."""
        main = self.profiles.main
        if not main.is_formula:
            measured, facts = self.profiles.measure_finished(document, factors)
            record = {**confidence_record(measured.score, measured.profile), **facts}
            if measured.problem:
                problem = measured.problem[:1].upper() + measured.problem[1:]
                record["reason"] = f"{problem}. This is the formula {measured.profile}. {record['reason']}"
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
    """Return a confidence as traces hold it: the score, its parts (None where not evaluated), its penalties and its reason."""
    optional = {
        "fallbacks": dict(score.fallbacks),
        "not_scored": list(score.not_scored),
        "contributions": dict(score.contributions),
    }
    return {
        "score": score.score,
        "level": score.level,
        "profile": profile,
        "reason": score.reason,
        "breakdown": score.evaluated,
        "penalties": list(score.penalties_applied),
        "not_evaluated": list(score.not_evaluated),
        **{name: value for name, value in optional.items() if value},
    }


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
