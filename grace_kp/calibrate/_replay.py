"""Replay of recorded traces under another policy: what it would have asked, and which errors it would have let through or caught.

The unit is a gated action, because that is what a person is asked about. A run without gated actions counts as a single decision on its
confidence, in figures of its own. Nothing is executed, and the rest of each run stays as it was recorded: how an agent would have gone on
after another answer is not known.
"""

from __future__ import annotations

import copy
import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from grace_kp.calibrate._action_labels import label_of_action
from grace_kp.calibrate._actions import NO_ARGUMENTS, recorded_features
from grace_kp.calibrate._comparison import (
    DENIED,
    OUTCOMES,
    Differing,
    PolicyOutcomes,
    Replayed,
    ReplayReport,
    differences,
)
from grace_kp.calibrate._gated import (
    UNREADABLE,
    Prefixes,
    add_judgements,
    gated_actions,
    grace_of,
    id_of,
    judged_factors,
)
from grace_kp.calibrate._labels import aligned_labels, label_in
from grace_kp.confidence import (
    FOR_ENDED_RUNS,
    PROFILES,
    ConfidenceCalculator,
    Thresholds,
    check_thresholds,
    decide,
    promise_gaps,
)
from grace_kp.errors import brief, is_unit
from grace_kp.gating import Basis, Policy, PolicySet, Rules
from grace_kp.levels import waits
from grace_kp.store import CHECK, REVERSAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grace_kp.calibrate._gated import Document, RecordedAction
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
_Confidence: TypeAlias = "tuple[float, Basis | None, tuple[str, ...]]"


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """A policy to compare: a profile, thresholds and policies of actions. An omitted part is taken from the record.

    Raises:
        TypeError: `thresholds` is not a `Thresholds`.
        ValueError: an unknown profile or `on_mismatch`, or an entry of `policies` that is neither a policy nor a floor.
    """

    profile: Profile | str | None = None
    """The profile that computes the scores; None takes the recorded ones."""
    thresholds: Thresholds | None = None
    """None takes the profile's own, else the defaults of `Grace`."""
    policies: Mapping[str, Policy | str] | None = None
    """Policies or floors by action name or glob. An action with an entry follows it alone, not its recorded floor; every other keeps that."""
    name: str = ""
    """Its name in a report; built from the other fields if empty."""
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
            put(self, "name", self._describe())

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
        if isinstance(value, str | Path):
            value = _load_profile(value)
        if callable(getattr(value, "calculate", None)):
            return cls(profile=cast("Profile", value))
        thresholds = value if isinstance(value, Thresholds) else getattr(value, "thresholds", None)
        if isinstance(thresholds, Thresholds):
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
        """Return whether the profile was fitted on this run."""
        was_fitted_on = getattr(self.profile, "was_fitted_on", None)
        return callable(was_fitted_on) and bool(was_fitted_on(trace))

    def mismatches(self, document: dict[str, Any]) -> tuple[str, ...]:
        """Return the differences of a run from the fitted ones in agent, model and tools; none for a profile that states none."""
        mismatches = getattr(self.profile, "mismatches", None)
        return tuple(mismatches(document)) if callable(mismatches) else ()

    def action(self, action: RecordedAction, before: Prefixes) -> Outcome | str:
        """Return the score and level of a gated action, or the reason why it cannot be replayed."""
        found = self._confidence_of_action(action, before)
        if isinstance(found, str):
            return found
        score, basis, unseen = found
        policy = self._policies.entry_for(action.record.action) or action.policy
        if policy.denies:
            return score, DENIED
        gaps = action.gaps
        if self._calculator is not None:  # which does not share the failures of the profile that was in use
            gaps = tuple(gap for gap in gaps if gap not in action.profile_gaps)
            gaps += unseen if self.on_mismatch == "tighten" else ()
            knows_runs = callable(getattr(self.profile, "mismatches", None))
            if self.on_mismatch == "tighten" and action.step is not None and knows_runs:
                document = before.document(action.step)
                document["grace"]["decisions"] = [{"action": action.record.action}]
                gaps += self.mismatches(document)
        if self.thresholds is not None or policy.thresholds is not None:
            gaps = tuple(gap for gap in gaps if gap != FOR_ENDED_RUNS)
        elif getattr(self.profile, "thresholds", None) is not None:
            gaps += promise_gaps(self.profile)
        # A tool has its own thresholds where the profile has some and none are stated here.
        own = {} if self.thresholds else getattr(getattr(self.profile, "action", None), "thresholds", None) or {}
        thresholds = own.get(action.record.action, self.effective_thresholds)
        rules = Rules(policy, thresholds, gaps, action.at_least)
        return score, rules.decide(score, basis).level.severity

    def run(self, trace: Document | ReasoningTrace, grace: Document) -> Outcome | str:
        """Return the score and level of a run as a whole, or the reason why it cannot be replayed."""
        if waits(grace.get("status")):
            return NOT_ENDED
        if self._calculator is None:
            score = _recorded_confidence(trace, grace)
        elif (confidence := getattr(self.profile, "confidence", None)) is not None:
            score = _learned(confidence, _document_of(trace), "end")
        else:
            factors = judged_factors(trace, grace.get("evaluation"), cautious=self._calculator.profile == "strict")
            score = self._calculator.calculate(factors).score
        return score if isinstance(score, str) else (score, decide(score, self.effective_thresholds).level.severity)

    def _confidence_of_action(self, action: RecordedAction, before: Prefixes) -> _Confidence | str:
        """Return the confidence before an action, its basis and what its model has not seen, or the reason why it is unknown."""
        if self._calculator is None:
            return action.score, action.basis, ()
        if action.step is None:
            return NO_STEP
        evaluation = action.record.data.get("evaluation")
        model, confidence = getattr(self.profile, "action", None), getattr(self.profile, "confidence", None)
        if (model or confidence) and action.step == 0 and before.grace.get("name") == action.record.action:
            return NO_RUN  # the action opened the run
        if model is not None:
            try:
                known = recorded_features(before.recorded, action.place)
            except ValueError:
                return NO_ARGUMENTS
            return round(model.predict(known), 3), Basis(measured=("probability",)), model.mismatches(known)
        if confidence is not None:
            score = _learned(confidence, before.document(action.step, evaluation), "action")
            return score if isinstance(score, str) else (score, Basis(measured=("probability",)), ())
        if not isinstance(before.grace.get("calls"), list):
            return NO_CALLS
        evidence = before.evidence_of(action)
        if evidence is None:
            return UNREADABLE
        factors = add_judgements(evidence.factors(), evaluation, cautious=self._calculator.profile == "strict")
        score = self._calculator.calculate(factors).score
        return score, None if action.basis is None else Basis.of(score, factors, evidence, self._calculator), ()

    def _describe(self) -> str:
        parts = [] if self.profile is None else [str(getattr(self.profile, "name", ""))]
        if self.profile is None or self.thresholds is not None:
            parts.append(" / ".join(str(value) for value in self.effective_thresholds.to_dict().values()))
        if self.policies:
            parts.append("policies for " + ", ".join(self.policies))
        return ", ".join(parts)


def _document_of(trace: Document | ReasoningTrace) -> dict[str, Any]:
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


def _load_profile(value: str | Path) -> Any:
    if isinstance(value, str) and value in PROFILES:
        return PROFILES[value]
    if isinstance(value, Path) or value.endswith(".json") or Path(value).is_file():
        from grace_kp.calibrate._profile import CalibratedProfile

        return CalibratedProfile.load(value)
    raise ValueError(
        f"{brief(value)} is not a policy; known are 'recorded', the profiles {', '.join(map(repr, PROFILES))}, "
        "and the JSON file of a learned profile"
    )


MAX_SHOWN = 20
NOTHING_DECIDED = "nothing was decided about the run"


def replay(
    traces: Iterable[ReasoningTrace | Document],
    policy_a: object,
    policy_b: object = None,
    *,
    labels: Iterable[bool | float | None] | None = None,
    minutes_per_review: float = 2.0,
    price_per_hour: float | None = None,
    seed: int = 0,
    include_fitted: bool = False,
) -> ReplayReport:
    """Return what two policies do with the recorded decisions of traces.

    Args:
        traces: traces or their dict form, from a list, a store or a file; they are read once, one at a time.
        policy_a: a `Thresholds`; anything with `.thresholds`, such as `RiskThresholds`; a profile, its name, or the JSON file of a learned
            profile; a `ReplayPolicy` for several of these together; or None or "recorded" for what was recorded.
        policy_b: what to compare it with; by default what was recorded.
        labels: whether each run was right, aligned with the traces, None where that is unknown. By default the feedback that counts in
            each trace (see `labels`), approvals aside; an action that has a label of its own counts with that. Only 0 and 1 count as right and wrong; labels in between are counted apart. Where questions are labelled
            more often than other actions, pass the traces and labels of `cal.thin(cal.labels(store))`.
        minutes_per_review: time of a reviewer for a question.
        price_per_hour: price of an hour of reviewers, in any currency; None gives no price.
        seed: makes the bootstrap intervals repeatable.
        include_fitted: True also replays the runs that a learned profile of either policy was fitted on. It knows them better than any
            run to come, so that its figures are too good.

    Raises:
        TypeError: a trace or a policy of another type.
        ValueError: an unknown profile, a negative time or price, or labels that cannot be used or are not as many as the traces.
        GraceError: the file of a learned profile cannot be read.
    """
    price = 0 if price_per_hour is None else price_per_hour
    for name, value in (("minutes_per_review", minutes_per_review), ("price_per_hour", price)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"{name} must be a number of at least 0, not {value!r:.60}")
    policies = ReplayPolicy.of(policy_a), ReplayPolicy.of(policy_b)
    names = [RECORDED if policy is None else policy.name for policy in policies]
    # About a run as a whole nothing was decided, so there is nothing recorded to compare with.
    actions, runs = _Decisions(names), _Decisions([None if policy is None else policy.name for policy in policies])
    count, fitted, mismatched = 0, 0, [0, 0]
    for count, (trace, stated) in enumerate(aligned_labels(traces, labels), 1):
        grace = grace_of(trace)
        if not include_fitted and any(policy is not None and policy.was_fitted_on(trace) for policy in policies):
            fitted += 1
            continue
        run = count, id_of(trace), label_in(grace) if labels is None else stated
        for place, policy in enumerate(policies):
            mismatched[place] += policy is not None and bool(policy.mismatches(_document_of(trace)))
        before = Prefixes(trace, grace)
        found_actions = list(gated_actions(grace))
        latest = {each.name: each.place for each in found_actions if not isinstance(each, str)}
        for action in found_actions:
            if isinstance(action, str):
                actions.left_out[action] += 1
                continue
            label = run[2] if labels is not None else _label_of(action, grace, run[2], latest)
            recorded = (action.score, DENIED if action.policy.denies else action.level.severity)
            found = [recorded if policy is None else policy.action(action, before) for policy in policies]
            actions.add((*run[:2], label), action.record.action, found)
        if not found_actions:
            runs.add(run, "", [None if policy is None else policy.run(trace, grace) for policy in policies])
    costs = (float(minutes_per_review), price_per_hour)
    parts = (actions.figures(costs, seed), runs.figures(costs, seed))
    unknown = [
        letter for letter, policy in zip("ab", policies, strict=True) if policy and not policy.states_fitted_runs
    ]
    first, second = mismatched
    return ReplayReport(count, *parts, first, second, fitted, "".join(unknown))


def _label_of(action: RecordedAction, grace: Document, of_run: float | None, latest: Mapping[str, int]) -> float | None:
    """Return the label of an action, else that of its run, which a check or a reversal does not displace. A decision that was made again has
    none of its own, because its label is that of the last one."""
    label = label_of_action(grace, action.record, action.name)
    if isinstance(label, str) or (label.source in {CHECK, REVERSAL} and of_run is not None):
        return of_run
    return float(label.correct) if latest[action.name] == action.place else None


@dataclass(slots=True)
class _Decisions:
    """The decisions of one kind so far: gated actions, or runs. A decision counts only where both policies can be replayed."""

    names: Sequence[str | None]
    """The names of both policies; None for one that cannot decide about this kind."""
    columns: tuple[PolicyOutcomes, PolicyOutcomes] = field(default_factory=lambda: (PolicyOutcomes(), PolicyOutcomes()))
    runs: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("b"))
    partly_right: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    shown: list[Differing] = field(default_factory=list)
    differing: int = 0
    differing_runs: int = 0
    _last_differing: int = 0

    def add(self, run: tuple[int, str, float | None], action: str, outcomes: Sequence[Outcome | str | None]) -> None:
        """Count a decision under both policies. The run has a number, an id and a label."""
        number, name, label = run
        if outcomes == [None, None]:
            self.left_out[NOTHING_DECIDED] += 1
            return
        for outcome in outcomes:
            if isinstance(outcome, str):
                self.left_out[outcome] += 1
                return
        self.runs.append(number)
        self.partly_right += label is not None and 0 < label < 1
        self.labels.append(-1 if label is None or 0 < label < 1 else int(label))
        for column, outcome in zip(self.columns, outcomes, strict=True):
            if isinstance(outcome, tuple):
                column.scores.append(outcome[0])
                column.outcomes.append(outcome[1])
        a, b = outcomes
        if not isinstance(a, tuple) or not isinstance(b, tuple) or a[1] == b[1]:
            return
        self.differing += 1
        if number != self._last_differing:  # only the first difference of each run is shown
            self._last_differing = number
            self.differing_runs += 1
            if len(self.shown) < MAX_SHOWN:
                self.shown.append(Differing(name, action, OUTCOMES[a[1]], OUTCOMES[b[1]], a[0], b[0], label))

    def figures(self, costs: tuple[float, float | None], seed: int) -> Replayed:
        labels, runs = np.array(self.labels, dtype=np.int64), np.array(self.runs, dtype=np.int64)
        a, b = (
            None if name is None else column.figures(name, labels, *costs)
            for name, column in zip(self.names, self.columns, strict=True)
        )
        compared = a is not None and b is not None and len(labels) > 0
        return Replayed(
            runs=len(set(self.runs)),
            right=int((labels == 1).sum()),
            wrong=int((labels == 0).sum()),
            partly_right=self.partly_right,
            a=a,
            b=b,
            differences=differences(*self.columns, labels, runs, seed) if compared else {},
            differing=self.differing,
            differing_runs=self.differing_runs,
            first=tuple(self.shown),
            left_out=dict(self.left_out),
        )
