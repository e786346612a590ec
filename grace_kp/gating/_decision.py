"""The decision about one call: its level, from the confidence, the policy and gaps in the evidence. Levels are computed here alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import ActionDecision, ConfidenceFactors, ConfidenceScore, decide
from grace_kp.gating._policy import strictest_level
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence import Thresholds
    from grace_kp.gating._policy import Policy


@dataclass(frozen=True, slots=True)
class Rules:
    """What the level of one call follows from, beside its confidence."""

    policy: Policy
    thresholds: Thresholds
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used; with any, the level is at least CONFIRM."""
    at_least: InterventionLevel | None = None
    """A level that this very call requires."""

    def decide(self, score: float) -> ActionDecision:
        """Return the decision for a confidence from 0 to 1."""
        return self.apply(decide(score, self.policy.thresholds or self.thresholds))

    def apply(self, decision: ActionDecision) -> ActionDecision:
        """Return a decision with its level raised to what the rules require."""
        level, reason = strictest_level(decision.level, self.policy, self.gaps, decision.reason)
        if self.at_least is not None and level.at_least(self.at_least) is not level:
            level = level.at_least(self.at_least)
            reason = f"{reason} This call requires at least {level}."
        if level is decision.level:
            return decision if reason == decision.reason else replace(decision, reason=reason)
        return replace(decision, level=level, reason=reason, suggested_action="")  # which then follows from the level


@dataclass(frozen=True, slots=True)
class Assessment:
    """The confidence of a run at the time of a call."""

    score: ConfidenceScore
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used."""
    evaluation: Mapping[str, Any] | None = None
    """How a model judged the run; None where none was to."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call."""

    action: ActionDecision
    confidence: ConfidenceScore | None
    """What the decision rests on; None where it could not be computed."""
    gaps: tuple[str, ...] = ()

    @property
    def level(self) -> InterventionLevel:
        """How much of a person the call needs."""
        return self.action.level

    @classmethod
    def of(cls, assessment: Assessment, rules: Rules) -> Decision:
        """Decide on a call."""
        rules = replace(rules, gaps=assessment.gaps)
        return cls(rules.decide(assessment.score.score), assessment.score, assessment.gaps)

    @classmethod
    def without_confidence(cls, why: str, rules: Rules) -> Decision:
        """Decide on a call whose confidence could not be computed."""
        escalate = ActionDecision(InterventionLevel.ESCALATE, 0.0, why)
        return cls(rules.apply(escalate), None)

    def to_dict(self, digest: str) -> dict[str, Any]:
        """Return the decision about the call with this digest as it is kept: what a reviewer sees of it."""
        confidence = self.confidence
        kept: dict[str, Any] = {
            "digest": digest,
            "level": str(self.level),
            "score": self.action.confidence_score,
            "breakdown": {} if confidence is None else confidence.evaluated,
            "penalties": [] if confidence is None else list(confidence.penalties_applied),
            "reason": f"{self.action.reason} {'' if confidence is None else confidence.reason}".strip(),
        }
        if self.gaps:
            kept["evidence_gaps"] = list(self.gaps)
        return kept

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Decision:
        """Return a decision that was kept."""
        level = InterventionLevel(kept["level"])
        breakdown = {name: 0.0 if value is None else value for name, value in kept["breakdown"].items()}
        missing = tuple(name for name, value in kept["breakdown"].items() if value is None)
        penalties = list(kept["penalties"])
        confidence = ConfidenceScore(kept["score"], ConfidenceFactors(), breakdown, penalties, not_evaluated=missing)
        action = ActionDecision(level, kept["score"], kept["reason"])
        return cls(action, confidence, tuple(kept.get("evidence_gaps") or ()))
