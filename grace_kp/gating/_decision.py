"""The decision about one call: its level, from the confidence, the policy and gaps in the evidence. Levels are computed here alone.

Also the probability that a run is labelled. A reviewer sees each action that a gate asks about. Of the other actions a random share is selected
for an audit; the decision states the share and the draw under `audit`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import PROFILES, ActionDecision, ConfidenceFactors, ConfidenceScore, decide
from grace_kp.errors import is_unit
from grace_kp.gating._policy import UNMEASURED, stricter_unmeasured
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grace_kp.confidence import ActionAlarm, ConfidenceCalculator, RecordedEvidence, RunEvidence, Thresholds
    from grace_kp.gating._policy import Policy


FACTS = (
    "profile", "fallback", "fitted_at", "profile_digest", "mismatches", "profile_gaps", "at_least", "shadow", "audit", "step",
    "measured", "unmeasured", "pessimistic", "has_failed", "evidence", "fallbacks", "alarms",
    "action_confidence",
)  # fmt: skip
"""Fields of a gate's entry that state the basis of the decision, besides the score and the gaps."""
_MEASURABLE = ("search_quality", "llm_self_eval", "query_coverage")
"""Sub-scores by which something is measured; see `ConfidenceScore.evaluated`."""
MAX_ALARMS, MAX_SENTENCES = 20, 5
"""Alarms of one call that are kept, and that its reason names."""
NOTHING_MEASURED = "Nothing was measured: no search scores, no judgement, no learned probability."
UNSTATED = UNMEASURED[-1]
"""The level of a call about which nothing was measured, where none is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The basis of a confidence, as far as the level of a call depends on it."""

    measured: tuple[str, ...] = ()
    """Measurements of the run: scores of a search engine, judgements of a model, the probability of a learned profile."""
    pessimistic: float | None = None
    """The confidence in the pessimistic reading of the evidence; None where a learned profile gave the score."""
    has_failed: bool = False

    @classmethod
    def of(
        cls,
        score: float,
        factors: ConfidenceFactors,
        evidence: RunEvidence | RecordedEvidence,
        calculator: ConfidenceCalculator | None,
    ) -> Basis:
        """Return the basis of a score; without a calculator it is that of a learned profile."""
        measured: tuple[str, ...] = ("search scores",) if evidence.usable_scores else ()
        if factors.self_evaluated:
            measured += ("self-evaluation",)
        if factors.coverage_evaluated:
            measured += ("coverage",)
        if calculator is None:
            measured += ("probability",)
        has_failed = evidence.has_failed
        if calculator is None or not (measured or has_failed):
            return cls(measured=measured, has_failed=has_failed)
        lowest = min(score, PROFILES["strict"].calculate(evidence.pessimistic(factors)).score)
        had_failures = factors.tool_success_count < factors.tool_execution_count
        if calculator.is_known and (had_failures or calculator.profile == "strict"):
            lowest = min(lowest, calculator.calculate(evidence.without_idle_calls(factors)).score)
        return cls(measured=measured, pessimistic=lowest, has_failed=has_failed)

    def to_dict(self, score: float) -> dict[str, Any]:
        """Return the facts for the entry of a call with this confidence."""
        facts: dict[str, Any] = {"measured": list(self.measured)}
        if self.pessimistic is not None and self.pessimistic < score:
            facts["pessimistic"] = self.pessimistic
        if self.has_failed:
            facts["has_failed"] = True
        return facts

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Basis | None:
        """Return the basis that an entry states; None for entries of versions that stated none."""
        measured, lowest = facts.get("measured"), facts.get("pessimistic")
        if not isinstance(measured, list | tuple):
            return None
        return cls(
            measured=tuple(str(item) for item in measured),
            pessimistic=lowest if is_unit(lowest) else None,
            has_failed=facts.get("has_failed") is True,
        )

    @classmethod
    def from_decision(cls, facts: Mapping[str, Any], breakdown: Mapping[str, float | None]) -> Basis:
        """Return the basis of a decision that was kept.

        Earlier versions did not state it. Then something was measured, unless no sub-score that can be measured was evaluated.
        """
        basis = cls.from_facts(facts)
        if basis is not None:
            return basis
        is_formula = "profile" not in facts and any(name in breakdown for name in _MEASURABLE)
        found = tuple(name for name in _MEASURABLE if breakdown.get(name) is not None)
        return cls(measured=found if is_formula else ("probability",))


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that determines the level of one call, except its confidence."""

    policy: Policy
    thresholds: Thresholds
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used; with any, the level is at least CONFIRM."""
    at_least: InterventionLevel | None = None
    unmeasured: str | None = None
    """The level of the runtime for calls about which nothing was measured."""
    alarms: tuple[ActionAlarm, ...] = ()
    """What is suspicious about the arguments; with any, the level is at least CONFIRM."""

    @property
    def level_unmeasured(self) -> InterventionLevel:
        """The level of a call about which nothing was measured: the strictest that is stated, else CONFIRM."""
        return InterventionLevel(stricter_unmeasured(self.unmeasured, self.policy.unmeasured) or UNSTATED)

    def decide(self, score: float, basis: Basis | None = None) -> ActionDecision:
        """Return the decision for a confidence from 0 to 1."""
        thresholds = self.policy.thresholds or self.thresholds
        if basis is None:
            return self.apply(decide(score, thresholds))
        if basis.measured:
            decision = decide(score, thresholds)
        else:
            level = self.level_unmeasured
            if thresholds.silent > 1:  # "never" holds here, too
                level = level.at_least(decide(1.0, thresholds).level)
            decision = ActionDecision(level, score, f"{NOTHING_MEASURED} The level of such calls is {level}.")
        if basis.has_failed or (basis.pessimistic is not None and basis.pessimistic < score):
            lowest = score if basis.pessimistic is None else min(score, basis.pessimistic)
            reading = decide(lowest, thresholds)
            if decision.level.at_least(reading.level) is not decision.level:
                failed = "a tool's last call failed"
                why = failed if basis.has_failed else "the worst search counts, sources only with scores"
                begin = f"In the pessimistic reading ({why})" if lowest < score else f"A{failed[1:]}, and"
                comma = "," if lowest < score else ""
                decision = _at(decision, reading.level, f"{decision.reason} {begin}{comma} the c{reading.reason[1:]}")
        return self.apply(decision)

    def apply_again(self, decision: Decision) -> Decision:
        """Return a decision that was kept, raised to what the rules require now. It never becomes milder."""
        action = decision.action
        level = self.raise_level(action.level, action.confidence_score, decision.basis)
        if decision.facts.get("alarms"):
            level = level.at_least(InterventionLevel.CONFIRM)
        if level is not action.level:
            action = _at(action, level, f"{action.reason} The policy requires at least {level} now.")
        return replace(decision, action=self.apply(action))

    def raise_level(self, level: str, score: float, basis: Basis) -> InterventionLevel:
        """Return the level of an earlier decision, raised to what floor, thresholds and `unmeasured` require of it now."""
        now = replace(self, gaps=(), at_least=None).decide(score, basis)
        return InterventionLevel(level).at_least(now.level)

    def apply(self, decision: ActionDecision) -> ActionDecision:
        """Return a decision with its level raised to what the rules require."""
        level, reason = decision.level, decision.reason
        if self.policy.floor is not None and not self.policy.denies:
            level = level.at_least(InterventionLevel(self.policy.floor))
        if level is not decision.level:
            required = f"the policy requires at least {level}."
            reason = f"{reason.removesuffix('.')}, but {required}" if reason else f"T{required[1:]}"
        if self.gaps:
            level = level.at_least(InterventionLevel.CONFIRM)
            missing = "Evidence is missing or cannot be used, so the gate requires at least confirm"
            reason = f"{reason} {missing}: {'; '.join(self.gaps)}.".strip()
        if self.alarms:
            level = level.at_least(InterventionLevel.CONFIRM)
            listed = [alarm.sentence() for alarm in self.alarms[:MAX_SENTENCES]]
            listed += [f"and {more} more"] if (more := len(self.alarms) - MAX_SENTENCES) > 0 else []
            reason = f"{reason} The gate requires at least confirm, because {'; '.join(listed)}.".strip()
        if self.at_least is not None and level.at_least(self.at_least) is not level:
            level = level.at_least(self.at_least)
            reason = f"{reason} This call requires at least {level}."
        if level is decision.level and reason is decision.reason:
            return decision
        return replace(decision, reason=reason) if level is decision.level else _at(decision, level, reason)


@dataclass(frozen=True, slots=True)
class ShadowAssessment:
    """The confidence that a second profile has in the run, for the record alone."""

    profile: str
    thresholds: Thresholds
    score: float | None = None
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used, from the point of view of this profile."""
    error: str = ""
    basis: Basis | None = None

    def to_dict(self, rules: Rules) -> dict[str, Any]:
        """Return what this profile would have decided under the same policy."""
        if self.score is None:
            return {"profile": self.profile, "error": self.error}
        decision = replace(rules, thresholds=self.thresholds, gaps=self.gaps).decide(self.score, self.basis)
        return {"profile": self.profile, "score": self.score, "level": str(decision.level)}


@dataclass(frozen=True, slots=True)
class RunConfidence:
    """The confidence of a run at the time of a call."""

    score: ConfidenceScore
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used."""
    evaluation: Mapping[str, Any] | None = None
    """The judgement of a model; None where none was asked."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts for the entry, besides the score: `FACTS` by name, as JSON values."""
    shadow: ShadowAssessment | None = None
    audit_rate: float = 0.0
    """The share of calls that run without asking and are selected for a check by a person."""
    basis: Basis | None = None
    """None where the level follows from the score alone."""
    alarms: tuple[ActionAlarm, ...] = ()
    """What is suspicious about the arguments of the call."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one call."""

    action: ActionDecision
    confidence: ConfidenceScore | None
    """None where it could not be computed."""
    gaps: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> InterventionLevel:
        """How much of a person the call needs."""
        return self.action.level

    @property
    def basis(self) -> Basis:
        """The basis of the level, as far as the decision states it."""
        return Basis.from_decision(self.facts, {} if self.confidence is None else self.confidence.evaluated)

    @classmethod
    def of(cls, assessment: RunConfidence, rules: Rules) -> Decision:
        """Decide on a call."""
        shadow, rate, facts = assessment.shadow, assessment.audit_rate, {**assessment.facts}
        basis, score = assessment.basis, assessment.score.score
        if (rules.gaps, rules.alarms) != (assessment.gaps, assessment.alarms):
            rules = replace(rules, gaps=assessment.gaps, alarms=assessment.alarms)
        if shadow is not None:
            facts["shadow"] = shadow.to_dict(rules)
        if rules.alarms:
            facts["alarms"] = [asdict(alarm) for alarm in rules.alarms[:MAX_ALARMS]]
        action = rules.decide(score, basis)
        if basis is not None:
            facts.update(basis.to_dict(score))
            if not basis.measured:
                facts["unmeasured"] = str(rules.level_unmeasured)
        if rate and not action.level.asks and not rules.policy.denies:
            # Drawn from the system: a seed of the program must neither decide what is checked nor be disturbed by it.
            from random import SystemRandom

            facts["audit"] = {"rate": rate, "selected": SystemRandom().random() < rate}
        if rules.at_least is not None:
            facts["at_least"] = str(rules.at_least)
        if assessment.score.fallbacks:
            facts["fallbacks"] = dict(assessment.score.fallbacks)
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
        facts = kept.get("facts") or {}
        confidence = ConfidenceScore(
            kept["score"], ConfidenceFactors(), breakdown, list(kept["penalties"]), not_evaluated=missing, fallbacks=facts.get("fallbacks") or {}
        )  # fmt: skip
        action = ActionDecision(level, kept["score"], kept["reason"])
        return cls(action, confidence, tuple(kept.get("evidence_gaps") or ()), facts)


def _at(decision: ActionDecision, level: InterventionLevel, reason: str) -> ActionDecision:
    # An empty suggestion follows from the level.
    return replace(decision, level=level, reason=reason, suggested_action="")


_ASKING = frozenset(str(level) for level in InterventionLevel if level.asks)


def audit_probability(decisions: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the probability that a run with these decisions is put up for an audit, or asked about anyway.

    The draws for several actions are independent, so it is 1 − ∏(1 − rate). It is 1 where a person was asked about one of the actions.
    """
    unselected = 1.0
    for entry in decisions:
        if entry.get("level") in _ASKING:
            return 1.0
        audit = entry.get("audit")
        rate = audit.get("rate") if isinstance(audit, dict) else None
        if is_unit(rate):
            unselected *= 1.0 - rate
    return 1.0 - unselected if unselected < 1 else None
