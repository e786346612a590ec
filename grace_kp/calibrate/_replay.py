"""Replay of recorded traces under another policy: what it would have asked, and which errors it would have let through or caught.

The unit is a gated action, because that is what a person is asked about. A run without gated actions counts as a single decision on its
confidence, in figures of its own. Nothing is executed, and the rest of each run stays as it was recorded: how an agent would have gone on
after another answer is not known.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grace_kp.calibrate._comparison import Column, differences
from grace_kp.calibrate._gated import Prefixes, gated_actions, grace_of, id_of
from grace_kp.calibrate._replay_policy import RECORDED, ReplayPolicy, recorded_outcome, word_of
from grace_kp.calibrate._replay_report import Differing, Replayed, ReplayReport
from grace_kp.calibrate._run_labels import aligned_labels, label_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.calibrate._gated import Document
    from grace_kp.calibrate._replay_policy import Outcome
    from grace_kp.trace import ReasoningTrace

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
            each trace (see `labels`), approvals aside. Only 0 and 1 count as right and wrong; labels in between are counted apart. Where questions are labelled
            more often than other actions, pass the traces and labels of `cal.thin(cal.labels(store))`.
        minutes_per_review: time of a reviewer for a question.
        price_per_hour: price of an hour of reviewers, in any currency; None gives no price.
        seed: makes the bootstrap intervals repeatable.
        include_fitted: True also replays the runs that a learned profile of either policy was fitted on. It knows them better than any
            run to come, so that its figures are too good.

    Raises:
        TypeError: a trace or a policy of another type.
        ValueError: an unknown profile, a negative time or price, or labels that are no labels or not as many as the traces.
        GraceError: the file of a learned profile cannot be read.
    """
    _check_amount("minutes_per_review", minutes_per_review)
    if price_per_hour is not None:
        _check_amount("price_per_hour", price_per_hour)
    policies = ReplayPolicy.of(policy_a), ReplayPolicy.of(policy_b)
    names = [RECORDED if policy is None else policy.name for policy in policies]
    # About a run as a whole nothing was decided, so there is nothing recorded to compare with.
    actions, runs = _Part(names), _Part([None if policy is None else policy.name for policy in policies])
    count, fitted, mismatched = 0, 0, [0, 0]
    for count, (trace, stated) in enumerate(aligned_labels(traces, labels), 1):
        grace = grace_of(trace)
        if not include_fitted and any(policy is not None and policy.was_fitted_on(trace) for policy in policies):
            fitted += 1
            continue
        run = _Run(count, id_of(trace), label_in(grace) if labels is None else stated)
        for place, policy in enumerate(policies):
            mismatched[place] += policy is not None and policy.differs_from(trace)
        before = Prefixes(trace, grace)
        found_actions = list(gated_actions(grace))
        for action in found_actions:
            if isinstance(action, str):
                actions.left_out[action] += 1
                continue
            found = [
                recorded_outcome(action) if policy is None else policy.action(action, before) for policy in policies
            ]
            actions.add(run, action.name, found)
        if not found_actions:
            runs.add(run, "", [None if policy is None else policy.run(trace, grace) for policy in policies])
    costs = (float(minutes_per_review), price_per_hour)
    parts = (actions.figures(costs, seed), runs.figures(costs, seed))
    unknown = [
        letter for letter, policy in zip("ab", policies, strict=True) if policy and not policy.states_fitted_runs
    ]
    first, second = mismatched
    return ReplayReport(count, *parts, first, second, fitted, "".join(unknown))


def _check_amount(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number of at least 0, not {value!r:.60}")


@dataclass(frozen=True, slots=True)
class _Run:
    """What all decisions of a run share."""

    number: int
    id: str
    label: float | None


@dataclass(slots=True)
class _Part:
    """The decisions of one kind so far: gated actions, or runs. A decision counts only where both policies can be replayed."""

    names: Sequence[str | None]
    """The names of both policies; None for one that cannot decide about this kind."""
    columns: tuple[Column, Column] = field(default_factory=lambda: (Column(), Column()))
    runs: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("b"))
    partly_right: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    shown: list[Differing] = field(default_factory=list)
    differing: int = 0
    differing_runs: int = 0
    _last_differing: int = 0

    def add(self, run: _Run, action: str, outcomes: Sequence[Outcome | str | None]) -> None:
        """Add a decision with what both policies make of it."""
        if outcomes == [None, None]:
            self.left_out[NOTHING_DECIDED] += 1
            return
        for outcome in outcomes:
            if isinstance(outcome, str):
                self.left_out[outcome] += 1
                return
        self.runs.append(run.number)
        self.partly_right += run.label is not None and 0 < run.label < 1
        self.labels.append(-1 if run.label is None or 0 < run.label < 1 else int(run.label))
        for column, outcome in zip(self.columns, outcomes, strict=True):
            if isinstance(outcome, tuple):
                column.scores.append(outcome[0])
                column.outcomes.append(outcome[1])
        a, b = outcomes
        if isinstance(a, tuple) and isinstance(b, tuple) and a[1] != b[1]:
            self._differ(run, Differing(run.id, action, word_of(a[1]), word_of(b[1]), a[0], b[0], run.label))

    def _differ(self, run: _Run, differing: Differing) -> None:
        self.differing += 1
        if run.number == self._last_differing:
            return
        self._last_differing = run.number
        self.differing_runs += 1
        if len(self.shown) < MAX_SHOWN:
            self.shown.append(differing)

    def figures(self, costs: tuple[float, float | None], seed: int) -> Replayed:
        """Return the figures of the decisions so far."""
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
