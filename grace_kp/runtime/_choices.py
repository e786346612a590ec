"""The models and profiles of a runtime, chosen when they are first needed, with the reason for each choice.

A file or an object of the user's is opened at once instead, so that it fails early.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from grace_kp.background import Lock, Resident, watch
from grace_kp.settings import PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.confidence import ConfidenceCalculator, Thresholds
    from grace_kp.runtime._assessment import RunJudge
    from grace_kp.runtime._profiles import ProfileSet
    from grace_kp.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Models:
    judge: RunJudge
    embedder: Any
    judge_name: str
    judge_reason: str
    embedder_name: str
    embedder_reason: str

    def describe(self) -> dict[str, Any]:
        """Return which models these are, why, and what judging has cost so far."""
        spent = self.judge.limit.spent if self.judge.limit is not None else None
        return {
            "evaluator": {"name": self.judge_name, "why": self.judge_reason},
            "embedder": {"name": self.embedder_name, "why": self.embedder_reason},
            "judging": None
            if spent is None or self.judge.evaluator is None
            else {"calls": spent.calls, "tokens": spent.tokens, "refused": spent.refused},
        }


class MadeOnce(Resident, Generic[T]):
    """A value of a runtime that is made when it is first needed."""

    def __init__(self) -> None:
        self._value: T | None = None
        self.after_fork()
        watch(self)

    def import_locks(self) -> Sequence[Lock]:
        return (self._lock,)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def get(self) -> T:
        if self._value is None:
            with self._lock:  # reasons against a profile must be in one object
                if self._value is None:
                    self._value = self._make()
        return self._value

    def _make(self) -> T:
        raise NotImplementedError


class ModelChoice(MadeOnce[Models]):
    """The models of a runtime, chosen when they are first needed."""

    def __init__(
        self,
        settings: Settings,
        evaluator: object,
        embedder: object,
        calculator: Callable[[], ConfidenceCalculator],
        on_judged: Callable[[], object],
    ) -> None:
        self._settings, self._evaluator, self._embedder = settings, evaluator, embedder
        self._calculator, self._on_judged = calculator, on_judged
        super().__init__()

    @property
    def are_chosen(self) -> bool:
        return self._value is not None

    @property
    def may_judge(self) -> bool:
        return self._evaluator is not None

    @property
    def may_embed(self) -> bool:
        return self._embedder is not None

    @property
    def has_judge(self) -> bool:
        """Whether there is a judge for certain: "auto" finds out when the models are needed."""
        if self._value is not None:
            return self._value.judge.asks_models
        return self._evaluator not in (None, "auto") and self._settings.judge != "never"

    @property
    def has_embedder(self) -> bool:
        return self._value.embedder is not None if self._value else self._embedder not in (None, "auto")

    def _make(self) -> Models:
        from grace_kp.runtime._assessment import RunJudge

        settings = self._settings
        judge, judge_name, judge_reason = _choice(self._evaluator, "evaluator", settings)
        embedder, embedder_name, embedder_reason = _choice(self._embedder, "embedder", settings)
        evaluator = agreement = limit = None
        if embedder is not None:
            from grace_kp.judge import SourceAgreementCalculator

            agreement = SourceAgreementCalculator(embedder)
        if judge is not None:
            from grace_kp.judge import JudgementCache, LLMSelfEvaluator, SpendingLimit

            limit = SpendingLimit(
                calls_per_minute=settings.judge_calls_per_minute or None,
                tokens_per_minute=settings.judge_tokens_per_minute or None,
                calls_per_run=settings.judge_calls_per_run or None,
                tokens_per_run=settings.judge_tokens_per_run or None,
            )
            evaluator = LLMSelfEvaluator(
                judge,
                combined=settings.judge_combined,
                samples=settings.judge_samples,
                language=settings.judge_language,
                cache=JudgementCache(settings.judge_cache),
                limit=limit,
                timeout=settings.judge_timeout + 0.5,
            )
        run_judge = RunJudge(
            evaluator=evaluator,
            missing=f"no judge: {judge_reason}",
            mode=settings.judge,
            calculator=self._calculator(),
            agreement=agreement,
            workers=settings.judge_workers,
            limit=limit,
        )
        run_judge.on_end = self._on_judged
        return Models(run_judge, embedder, judge_name, judge_reason, embedder_name, embedder_reason)


def check_model(kind: str, model: Any, settings: Settings) -> Any:
    """Return a model that is accepted as a judge or an embedder; raise a SettingsError where it is none."""
    if model is not None and not (isinstance(model, str) and model == "auto"):
        from grace_kp.models import adapt_model

        model = adapt_model(kind, model, settings)
    return model


def _choice(model: Any, kind: str, settings: Settings) -> tuple[Any, str, str]:
    """Return the model, its name and the reason for it."""
    if model is None:
        return None, "none", f"{kind} is None"
    if model != "auto":
        from grace_kp.trace import redact_text

        named, address = (getattr(model, name, None) for name in ("model", "base_url"))
        name = str(getattr(model, "__name__", type(model).__name__)) + (f" {named}" if isinstance(named, str) else "")
        why = f"{kind} was given" + (f", at {address}" if isinstance(address, str) else "")
        return model, redact_text(name, identifiers=False), why
    from grace_kp.models import choose_embedder, choose_judge

    choice = choose_judge(settings) if kind == "evaluator" else choose_embedder(settings)
    return choice.model, choice.name, choice.why


def profile_name(profile: object) -> str | None:
    """Return the name or the path of a profile; None for a profile itself."""
    return os.fspath(profile) if isinstance(profile, str | os.PathLike) else None


class ProfileChoice(MadeOnce["ProfileSet"]):
    """The profiles of a runtime."""

    def __init__(self, settings: Settings, profile: object, shadow: object, thresholds: Thresholds | None) -> None:
        if thresholds is not None:
            from grace_kp.confidence import check_thresholds

            check_thresholds(thresholds)
        own = profile if profile_name(profile) is None else None
        self._arguments = (settings, own, shadow, thresholds)
        super().__init__()
        if own is not None or shadow is not None or settings.profile_digest or settings.profile not in PROFILES:
            self.get()

    def _make(self) -> ProfileSet:
        from grace_kp.runtime._profiles import ProfileSet

        return ProfileSet.of_runtime(*self._arguments)

    def describe(self) -> dict[str, Any] | None:
        """Return what is known of the profiles, for `Grace.status()`; None before they were needed."""
        return None if self._value is None else self._value.describe()
