"""The decision about one call: its level, from the confidence, the policy and gaps in the evidence. Levels are computed here alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import ActionDecision, ConfidenceFactors, ConfidenceScore, decide
from grace_kp.gating._policy import strictest_level
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence import Thresholds
    from grace_kp.gating._policy import Policy


FACTS = (
    "profile", "fallback", "fitted_at", "profile_digest", "mismatches", "profile_gaps", "at_least", "shadow", "audit", "step",
)  # fmt: skip
"""Fields of a gate's entry that state what the decision rests on, beside the score and the gaps."""


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

    def raised(self, level: str, score: float) -> InterventionLevel:
        """Return the level of an earlier decision, raised to what the floor and the thresholds require of its score now."""
        return InterventionLevel(level).at_least(replace(self, gaps=(), at_least=None).decide(score).level)

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
class ShadowAssessment:
    """The confidence that a second profile has in the run, for the record alone."""

    profile: str
    thresholds: Thresholds
    score: float | None = None
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used, from the point of view of this profile."""
    error: str = ""
    """Why there is no score."""

    def to_dict(self, rules: Rules) -> dict[str, Any]:
        """Return what this profile would have decided under the same policy."""
        if self.score is None:
            return {"profile": self.profile, "error": self.error}
        decision = replace(rules, thresholds=self.thresholds, gaps=self.gaps).decide(self.score)
        return {"profile": self.profile, "score": self.score, "level": str(decision.level)}


@dataclass(frozen=True, slots=True)
class Assessment:
    """The confidence of a run at the time of a call."""

    score: ConfidenceScore
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used."""
    evaluation: Mapping[str, Any] | None = None
    """How a model judged the run; None where none was to."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the entry states beside the score: `FACTS` by name, as JSON values."""
    shadow: ShadowAssessment | None = None
    audit_rate: float = 0.0
    """The share of calls that run without asking and are selected for a check by a person."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call."""

    action: ActionDecision
    confidence: ConfidenceScore | None
    """What the decision rests on; None where it could not be computed."""
    gaps: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """`FACTS` by name."""

    @property
    def level(self) -> InterventionLevel:
        """How much of a person the call needs."""
        return self.action.level

    @classmethod
    def of(cls, assessment: Assessment, rules: Rules) -> Decision:
        """Decide on a call."""
        shadow, rate, facts = assessment.shadow, assessment.audit_rate, {**assessment.facts}
        if shadow is not None:
            facts["shadow"] = shadow.to_dict(rules)
        action = replace(rules, gaps=assessment.gaps).decide(assessment.score.score)
        if rate and not action.level.asks and not rules.policy.denies:
            facts["audit"] = {"rate": rate, "selected": _is_drawn(rate)}
        if rules.at_least is not None:
            facts["at_least"] = str(rules.at_least)
        return cls(action, assessment.score, assessment.gaps, facts)

    @classmethod
    def without_confidence(cls, why: str, rules: Rules) -> Decision:
        """Decide on a call whose confidence could not be computed."""
        escalate = ActionDecision(InterventionLevel.ESCALATE, 0.0, why)
        return cls(rules.apply(escalate), None, facts={"at_least": str(escalate.level)})

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
        if self.facts:
            kept["facts"] = dict(self.facts)
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
        return cls(action, confidence, tuple(kept.get("evidence_gaps") or ()), kept.get("facts") or {})


def _is_drawn(rate: float) -> bool:
    """Draw with this probability, from the system: a seed of the program must neither decide what is checked nor be disturbed by it."""
    from random import SystemRandom

    return SystemRandom().random() < rate
