"""The policies that a replay compares, and the level that each gives to a recorded decision or run.

Scores become levels by the same `Rules` that live gates use. What was not recorded is not guessed: such a decision is not replayed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from grace_kp.calibrate._comparison import DENIED
from grace_kp.calibrate._gated import UNREADABLE, judged, measured_agreement
from grace_kp.confidence import (
    FOR_ENDED_RUNS,
    PROFILES,
    ConfidenceCalculator,
    Thresholds,
    check_thresholds,
    decide,
    factors_from_trace,
    promise_gaps,
    with_agreement,
)
from grace_kp.errors import brief, is_unit
from grace_kp.gating import Basis, Policy, PolicySet, Rules
from grace_kp.levels import InterventionLevel, waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.calibrate._gated import Document, GatedAction, Prefixes
    from grace_kp.confidence import ConfidenceScore, Profile
    from grace_kp.trace import ReasoningTrace

RECORDED = "recorded"
NO_STEP = "the step of the decision is not recorded, so the run before it is unknown"
NO_CALLS = "the trace does not record its calls"
NO_CONFIDENCE = "no confidence is recorded; name a profile"
NO_RUN = "the action was called outside of any run, and a learned profile reads recorded runs"
NOT_ENDED = "the run has not ended"

Outcome: TypeAlias = tuple[float, int]
"""A score, and the severity of the level or `DENIED`."""


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """Another way to decide: a profile, thresholds and policies of actions. What is left out is as it was recorded.

    Raises:
        TypeError: `thresholds` is no `Thresholds`.
        ValueError: an unknown profile or `on_mismatch`, or an entry of `policies` that is neither a policy nor a floor.
    """

    profile: Profile | str | None = None
    """What computes the scores; None takes the recorded ones."""
    thresholds: Thresholds | None = None
    """None takes the profile's own, else the defaults of `Grace`."""
    policies: Mapping[str, Policy | str] | None = None
    """Policies or floors by action name or glob. An action with an entry follows it alone, not its recorded floor; every other keeps that."""
    name: str = ""
    """What a report calls it; None of the parts has to be repeated by hand."""
    on_mismatch: str = "tighten"
    """Whether an action in a run that the learned profile was not fitted on needs at least CONFIRM: `tighten`, as at gates by default, or `report`."""
    _calculator: ConfidenceCalculator | None = field(init=False, repr=False, compare=False, default=None)
    _policies: PolicySet = field(init=False, repr=False, compare=False, default_factory=PolicySet)

    def __post_init__(self) -> None:
        if self.thresholds is not None:
            check_thresholds(self.thresholds)
        if self.on_mismatch not in ("tighten", "report"):
            raise ValueError(f"on_mismatch must be tighten or report, not {brief(self.on_mismatch)}")
        put = object.__setattr__
        if self.profile is not None:
            profile = PROFILES.get(self.profile, self.profile) if isinstance(self.profile, str) else self.profile
            put(self, "profile", profile)
            put(self, "_calculator", ConfidenceCalculator(profile))
        put(self, "_policies", PolicySet(self.policies))
        if not self.name:
            put(self, "name", self._described())

    @classmethod
    def of(cls, value: object) -> Self | None:
        """Return what `cal.replay` compares; None for what was recorded.

        Args:
            value: None or "recorded", a `ReplayPolicy`, a `Thresholds`, anything that has `.thresholds` (such as `RiskThresholds`),
                a profile, its name, or the path of the JSON file of a learned profile.

        Raises:
            TypeError: none of these.
            ValueError: an unknown name.
            GraceError: the file cannot be read.
        """
        if value is None or (isinstance(value, str) and value == RECORDED):
            return None
        if isinstance(value, cls):
            return value
        if isinstance(value, Thresholds):
            return cls(thresholds=value)
        if isinstance(value, str | Path):
            return cls(profile=_named(value))
        if callable(getattr(value, "calculate", None)):
            return cls(profile=cast("Profile", value))
        if isinstance(thresholds := getattr(value, "thresholds", None), Thresholds):
            return cls(thresholds=thresholds)
        raise TypeError(
            "a policy is 'recorded', a ReplayPolicy, a Thresholds, a RiskThresholds, a profile, its name or its file, "
            f"not {type(value).__name__}"
        )

    @property
    def effective_thresholds(self) -> Thresholds:
        """The thresholds that hold where no policy of an action has its own."""
        own = getattr(self.profile, "thresholds", None)
        return self.thresholds or (own if isinstance(own, Thresholds) else Thresholds())

    @property
    def states_fitted_runs(self) -> bool:
        """Whether it is known which runs the profile was fitted on; True without a learned profile."""
        return not hasattr(self.profile, "confidence") or getattr(self.profile, "fitted_runs", None) is not None

    def was_fitted_on(self, trace: Document | ReasoningTrace) -> bool:
        """Return whether a run is one of those that the profile was fitted on."""
        was_fitted_on = getattr(self.profile, "was_fitted_on", None)
        return callable(was_fitted_on) and bool(was_fitted_on(trace))

    def differs_from(self, trace: Document | ReasoningTrace) -> bool:
        """Return whether a run differs in agent, model or tools from those that the profile was fitted on."""
        mismatches = getattr(self.profile, "mismatches", None)
        return callable(mismatches) and bool(mismatches(_document_of(trace)))

    def _mismatches(self, action: GatedAction, before: Prefixes) -> tuple[str, ...]:
        """Return why the profile cannot be relied on before an action, as gates do."""
        mismatches = getattr(self.profile, "mismatches", None)
        if self.on_mismatch != "tighten" or mismatches is None or action.step is None:
            return ()
        document = before.document(action.step)
        document["grace"]["decisions"] = [{"action": action.name}]
        return tuple(mismatches(document))

    def action(self, action: GatedAction, before: Prefixes) -> Outcome | str:
        """Return the score and level of a gated action; a text says why it cannot be replayed."""
        found = self._confidence_of_action(action, before)
        if isinstance(found, str):
            return found
        score, basis = found
        policy = self._policies.entry_for(action.name) or action.policy
        if policy.denies:
            return score, DENIED
        gaps = action.gaps
        if self._calculator is not None:  # which does not share the failures of the profile that was in use
            gaps = tuple(gap for gap in gaps if gap not in action.profile_gaps) + self._mismatches(action, before)
        if self.thresholds is not None or policy.thresholds is not None:
            gaps = tuple(gap for gap in gaps if gap != FOR_ENDED_RUNS)
        elif getattr(self.profile, "thresholds", None) is not None:
            gaps += promise_gaps(self.profile)
        rules = Rules(policy, self.effective_thresholds, gaps, action.at_least)
        return score, rules.decide(score, basis).level.severity

    def run(self, trace: Document | ReasoningTrace, grace: Document) -> Outcome | str:
        """Return the score and level of a run as a whole; a text says why it cannot be replayed."""
        score = self._score_of_run(trace, grace)
        if isinstance(score, str):
            return score
        return score, decide(score, self.effective_thresholds).level.severity

    def _confidence_of_action(self, action: GatedAction, before: Prefixes) -> tuple[float, Basis | None] | str:
        """Return the confidence before an action and what it rests on; a text says why it is not known."""
        if self._calculator is None:
            return action.score, action.basis
        if action.step is None:
            return NO_STEP
        evaluation = action.record.data.get("evaluation")
        if (confidence := getattr(self.profile, "confidence", None)) is not None:
            if before.is_opened_by(action):
                return NO_RUN
            score = _learned(confidence, before.document(action.step, evaluation), "action")
            return score if isinstance(score, str) else (score, Basis(measured=("probability",)))
        if not before.has_calls:
            return NO_CALLS
        evidence = before.evidence_of(action)
        if evidence is None:
            return UNREADABLE
        factors = judged(evidence.factors(), evaluation, cautious=self._calculator.profile == "strict")
        score = self._calculator.calculate(factors).score
        return score, None if action.basis is None else Basis.of(score, factors, evidence, self._calculator)

    def _score_of_run(self, trace: Document | ReasoningTrace, grace: Document) -> float | str:
        if waits(grace.get("status")):
            return NOT_ENDED
        if self._calculator is None:
            return _recorded_confidence(trace, grace)
        if (confidence := getattr(self.profile, "confidence", None)) is not None:
            return _learned(confidence, _document_of(trace), "end")
        factors = factors_from_trace(trace)
        evaluation = grace.get("evaluation")
        if (agreement := measured_agreement(evaluation)) is not None:
            factors = with_agreement(factors, agreement)
        factors = judged(factors, evaluation, cautious=self._calculator.profile == "strict")
        return self._calculator.calculate(factors).score

    def _described(self) -> str:
        parts = [] if self.profile is None else [str(getattr(self.profile, "name", ""))]
        if self.profile is None or self.thresholds is not None:
            parts.append(" / ".join(str(value) for value in self.effective_thresholds.to_dict().values()))
        if self.policies:
            parts.append("policies for " + ", ".join(self.policies))
        return ", ".join(parts)


def _document_of(trace: Document | ReasoningTrace) -> dict[str, Any]:
    """Return a copy: a profile is code of the user's."""
    return copy.deepcopy(dict(trace)) if isinstance(trace, Mapping) else trace.to_dict()


def _learned(confidence: Callable[..., ConfidenceScore], document: dict[str, Any], moment: str) -> float | str:
    try:
        return confidence(document, moment=moment).score
    except ValueError as error:  # the profile was not fitted for this moment
        return f"the profile has no confidence: {error}"


def _recorded_confidence(trace: Document | ReasoningTrace, grace: Document) -> float | str:
    if grace.get("unscored"):
        return NO_CONFIDENCE  # the figure in the trace is a placeholder
    if not isinstance(trace, Mapping):
        return float(trace.outcome.confidence)
    outcome = trace.get("outcome")
    value = outcome.get("confidence") if isinstance(outcome, Mapping) else None
    return float(value) if is_unit(value) else NO_CONFIDENCE


def _named(value: str | Path) -> Any:
    """Return the profile of this name, or the learned profile in this file."""
    if isinstance(value, str) and value in PROFILES:
        return PROFILES[value]
    if isinstance(value, Path) or value.endswith(".json") or Path(value).is_file():
        from grace_kp.calibrate._profile import CalibratedProfile

        return CalibratedProfile.load(value)
    raise ValueError(
        f"{brief(value)} is no policy; known are 'recorded', the profiles {', '.join(map(repr, PROFILES))}, "
        "and the JSON file of a learned profile"
    )


def recorded_outcome(action: GatedAction) -> Outcome:
    """Return the score and level that were recorded."""
    return action.score, DENIED if action.policy.denies else action.level.severity


def word_of(code: int) -> str:
    """Return the word for the severity of a level, or for `DENIED`."""
    return "denied" if code == DENIED else list(InterventionLevel)[code].value
