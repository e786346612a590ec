"""What gates need of the runtime: the confidence of the run so far, who is asked, and where the decision is kept."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import (
    ActionDecision,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    Thresholds,
    decide,
)
from grace_kp.errors import ActionCancelled
from grace_kp.gating import ConsoleReviewer, InMemory, Kept, NotCheckable, Policy, PolicySet, gate, strictest_level
from grace_kp.levels import InterventionLevel
from grace_kp.record import Run, current_run, evidence_of, gaps_of, material_of, note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.gating import Case
    from grace_kp.record import Recorder
    from grace_kp.runtime._judging import RunJudge


class Gates:
    """How one runtime gates: thresholds, policies, reviewer, timeout."""

    def __init__(
        self,
        *,
        profile: str,
        thresholds: Thresholds,
        reviewer: Any,
        on_notify: Callable[[Any], Any] | None,
        policies: Mapping[str, Policy | str],
        timeout: float,
        judge: Callable[[], RunJudge],
        keeps: Callable[[], Any],
        recorder: Recorder,
    ) -> None:
        self.recorder = recorder
        self.judge = judge
        self._store = keeps
        self.in_memory = InMemory()
        self.calculator = ConfidenceCalculator(profile=profile, thresholds=thresholds)
        self.thresholds = self.calculator.thresholds
        self.policies = PolicySet(policies)
        self.on_notify = on_notify
        self.timeout = timeout
        self._reviewer = reviewer

    @property
    def keeps(self) -> Any:
        """Where the ledger of actions is: the store, or memory where a store of the user's keeps none.

        Raises:
            StoreError: the store cannot be opened.
        """
        store = self._store()
        return store if callable(getattr(store, "put_action", None)) else self.in_memory

    @property
    def reviewer(self) -> Any:
        """Who is asked: the one given, or with `auto` the console, when there is a terminal to ask at."""
        if self._reviewer != "auto":
            return self._reviewer
        return ConsoleReviewer() if _at_terminal() else None


class Scope:
    """One gated call: the run it belongs to, and the gates of its runtime."""

    def __init__(self, gates: Gates, *, reviewer: Any, timeout: float | None, judge: str = "never") -> None:
        self._judge = judge
        self._run: Run | None = current_run()
        self._gates = gates
        self.thresholds = gates.thresholds
        self.reviewer = reviewer if reviewer is not None else gates.reviewer
        self.on_notify = gates.on_notify
        self.timeout: float | None = gates.timeout if timeout is None else timeout
        self.again: Any = pausing()

    @property
    def run_id(self) -> str | None:
        """The trace that the decision will stand in."""
        return None if self._run is None else self._run.id

    @property
    def objective(self) -> str | None:
        """What the run is for."""
        return None if self._run is None else self._run.objective

    @property
    def waits(self) -> bool:
        """Whether assessing may wait for a model."""
        run = self._run
        return self._judge != "never" or self.again is not None or (run is not None and run.resumes is not None)

    def assess(self, case: Case) -> ConfidenceScore | Kept:
        """The confidence of the run so far, or the decision that was made about this very call before.

        Raises:
            ActionCancelled: it was made about other arguments.
        """
        if self.again is None:
            return self._assessed(case)
        try:
            digest = case.digest(lasting=True)
        except NotCheckable:
            digest = ""  # the gate refuses the call where a person would have to be asked about it
        case.kept = self.again.entry(self._gates.keeps, case.action)
        case.entry["id"] = case.kept.id
        told = case.kept.decision()
        if told is None:
            score = self._assessed(case)
            decided = decide(score.score, case.policy.thresholds or self.thresholds)
            level = self._level(case, score.score)
            if self.again.may_have_forgotten(self._gates.keeps):
                # Somebody has answered here before, so something was asked, whatever is thought of it now.
                level = level.at_least(InterventionLevel.CONFIRM)
            told = case.kept.decide(frozen_decision(score, decided, level, digest, case.policy, case.gaps))
            case.gaps = ()  # they are part of the decision that was kept
        if told.get("evidence_gaps"):
            case.entry["evidence_gaps"] = list(told["evidence_gaps"])
        if told["digest"] != digest:
            raise ActionCancelled(f"{case.action} is called with other arguments than were decided on; it was not run")
        return thawed(told)

    def _level(self, case: Case, score: float) -> InterventionLevel:
        found = decide(score, case.policy.thresholds or self.thresholds).level
        return strictest_level(found, case.policy, case.gaps)[0]

    def _assessed(self, case: Case) -> ConfidenceScore:
        evidence = evidence_of(self._run)
        case.gaps = gaps_of(self._run, self._gates.recorder, evidence)
        factors = evidence.factors()
        if self._judge == "never":
            return self._gates.calculator.calculate(factors)
        score, told = self._gates.judge().before_gate(
            self._judge,
            factors,
            lambda value: self._level(case, value),
            lambda: material_of(self._run, case),
            self.run_id,
        )
        case.entry["evaluation"] = told
        return score

    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry with the run. What fails here is noted and changes no decision."""
        try:
            if self._run is not None:
                self._run.decisions.append(entry)
        except Exception as error:  # noqa: BLE001
            note("gate entry", error)


def pausing() -> Any:
    """How the program around can be paused for a person, where it is a LangGraph with a checkpointer; None elsewhere."""
    if "langgraph" not in sys.modules:
        return None
    # Named here and not imported: integrations stand above the runtime.
    return importlib.import_module("grace_kp.integrations.langchain._pause").pausing()


def frozen_decision(
    score: ConfidenceScore,
    decided: ActionDecision,
    level: InterventionLevel,
    digest: str,
    policy: Policy,
    gaps: Sequence[str] = (),
) -> dict[str, Any]:
    """A decision as it is kept: what a reviewer is shown of it, and what it was made about."""
    required, reason = strictest_level(decided.level, policy, gaps, decided.reason)
    if level is not required:
        reason = f"{reason} This call requires at least {level}."
    told = {
        "digest": digest,
        "level": str(level),
        "score": score.score,
        "breakdown": score.evaluated,
        "penalties": list(score.penalties_applied),
        "reason": f"{reason} {score.reason}".strip(),
    }
    if gaps:
        told["evidence_gaps"] = list(gaps)
    return told


def thawed(told: dict[str, Any]) -> Kept:
    """A decision that was kept, as the gate works with it."""
    level = InterventionLevel(told["level"])
    breakdown = {name: 0.0 if value is None else value for name, value in told["breakdown"].items()}
    missing = tuple(name for name, value in told["breakdown"].items() if value is None)
    penalties = list(told["penalties"])
    confidence = ConfidenceScore(told["score"], ConfidenceFactors(), breakdown, penalties, not_evaluated=missing)
    return Kept(ActionDecision(level, told["score"], told["reason"]), confidence)


def gated(
    action: Any,
    *,
    gates: Callable[[], Gates],
    floor: Any,
    policy: Any,
    name: str | None,
    reviewer: Any,
    timeout: float | None,
    judge: str,
    identity: Any = None,
) -> Any:
    """`action` behind a gate of whatever runtime `gates` gives when it is called."""
    Policy(timeout=timeout)  # what cannot be used is an error now, not when the action is called
    own = Policy.of(policy).at_least(floor) if policy is not None else Policy.of(floor)
    return gate(
        action,
        name=name,
        policy_for=lambda called: gates().policies.for_action(called, own),
        scope=lambda: Scope(gates(), reviewer=reviewer, timeout=timeout, judge=judge),
        identity=identity,
    )


def _at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None
    except (ValueError, OSError):  # closed
        return False
