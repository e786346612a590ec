"""The models of a runtime: who judges its runs, who embeds them, and why these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import ConfidenceCalculator
from grace_kp.runtime._judging import RunJudge

if TYPE_CHECKING:
    from grace_kp.confidence import Thresholds
    from grace_kp.judge import LLMSelfEvaluator
    from grace_kp.settings import Settings


@dataclass(frozen=True, slots=True)
class Models:
    """Judge and embedder of a runtime."""

    judge: RunJudge
    embedder: Any
    judge_name: str
    judge_why: str
    embedder_name: str
    embedder_why: str

    @property
    def is_active(self) -> bool:
        """Whether finishing a run may take a model's time."""
        return self.judge.is_active or self.embedder is not None

    def describe(self) -> dict[str, Any]:
        """Which models these are, why, and what judging has cost so far."""
        spent = self.judge.limit.spent if self.judge.limit is not None else None
        return {
            "evaluator": {"name": self.judge_name, "why": self.judge_why},
            "embedder": {"name": self.embedder_name, "why": self.embedder_why},
            "judging": None
            if spent is None or self.judge.evaluator is None
            else {"calls": spent.calls, "tokens": spent.tokens, "refused": spent.refused},
        }


def choose(settings: Settings, evaluator: Any, embedder: Any, thresholds: Thresholds) -> Models:
    """The models that were given, or what `auto` decides."""
    judge, judge_name, judge_why = _chosen(evaluator, "evaluator", settings)
    model, embedder_name, embedder_why = _chosen(embedder, "embedder", settings)
    asked = agreement = limit = None
    if model is not None:
        from grace_kp.judge import SourceAgreementCalculator

        agreement = SourceAgreementCalculator(model)
    if judge is not None:
        asked = _evaluator(judge, settings)
        limit = asked.limit
    run_judge = RunJudge(
        evaluator=asked,
        missing=f"no judge: {judge_why}",
        mode=settings.judge,
        calculator=ConfidenceCalculator(profile=settings.profile, thresholds=thresholds),
        agreement=agreement,
        workers=settings.judge_workers,
        limit=limit,
    )
    return Models(run_judge, model, judge_name, judge_why, embedder_name, embedder_why)


def _evaluator(judge: Any, settings: Settings) -> LLMSelfEvaluator:
    from grace_kp.judge import JudgementCache, LLMSelfEvaluator, SpendingLimit

    limit = SpendingLimit(
        calls_per_minute=settings.judge_calls_per_minute or None,
        tokens_per_minute=settings.judge_tokens_per_minute or None,
        calls_per_run=settings.judge_calls_per_run or None,
        tokens_per_run=settings.judge_tokens_per_run or None,
    )
    return LLMSelfEvaluator(
        judge,
        combined=settings.judge_combined,
        samples=settings.judge_samples,
        language=settings.judge_language,
        cache=JudgementCache(settings.judge_cache),
        limit=limit,
        timeout=settings.judge_timeout + 0.5,
    )


def _chosen(given: Any, what: str, settings: Settings) -> tuple[Any, str, str]:
    if given is None:
        return None, "none", f"{what} is None"
    if given != "auto":
        return given, getattr(given, "__name__", type(given).__name__), f"{what} was given"
    from grace_kp.models import choose_embedder, choose_judge

    choice = choose_judge(settings) if what == "evaluator" else choose_embedder(settings)
    return choice.model, choice.name, choice.why
