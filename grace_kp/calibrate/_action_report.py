"""From labelled actions to a learned confidence in single actions, thresholds that keep a promise about them, and what predicts errors.

The steps are those of `calibrate_runs`. An action is predicted, and the thresholds are chosen, by a model that saw no action of its task.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._actions import SHRINK, fit_actions
from grace_kp.calibrate._calibration import APPROXIMATE, LEARNED, Tested, held_back, rounded_up
from grace_kp.calibrate._facts import MAX_NAMES, domain_of, facts_of_all, hash_of
from grace_kp.calibrate._profile import CalibratedProfile
from grace_kp.calibrate._risk import strictest, tool_thresholds
from grace_kp.calibrate._samples import JsonRecord, group_numbers
from grace_kp.confidence import ACTION_FEATURES, FREE, LOWERING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from grace_kp.calibrate._calibration import Calibration, Promise
    from grace_kp.calibrate._samples import Floats
    from grace_kp.confidence import ActionFeatures

RATE = "rate of the tool"
_EACH = "an action is right or wrong by itself. One labelled action of each task is drawn at random, because actions of a task are alike."
_PER_TOOL = (
    "the thresholds promise this for each tool alone. At gates, a tool that is not in the table has at each level the strictest threshold of those "
    "that are."
)
RESAMPLES = 2_000
LEAST_TASKS = 10
"""Tasks with the feature, and without it, below which resampling says nothing about an odds ratio."""


@dataclass(frozen=True, slots=True)
class Predictor(JsonRecord):
    """How often actions with a feature are wrong, beside all others."""

    name: str
    words: str
    flagged: int
    """Labelled actions with the feature: where it is a figure, above its median."""
    n: int
    """All labelled actions."""
    wrong: int
    """How many of the flagged are wrong."""
    wrong_others: int
    """How many of the others are wrong."""
    odds_ratio: float
    """Odds of an error among the flagged, divided by those among the others; half an action is added to each of the four counts."""
    interval: tuple[float, float] | None
    """Its 95 % interval over resamples of whole tasks; None where fewer than ten tasks have the feature or lack it."""

    @property
    def clearness(self) -> float:
        """How far the interval is from 1, in log-odds; below 0 if it includes 1."""
        low, high = self.interval or (0.0, math.inf)
        return max(math.log(low) if low else -math.inf, -math.log(high))

    @property
    def odds(self) -> str:
        """The odds ratio with its interval: "5.5 (2.1 to 20)"."""
        low, high = self.interval or (None, None)
        return (
            _ratio(self.odds_ratio)
            if low is None or high is None
            else f"{_ratio(self.odds_ratio)} ({_ratio(low)} to {_ratio(high)})"
        )

    def __str__(self) -> str:
        others = self.n - self.flagged
        return (
            f"{self.words}: {self.flagged:,} of {self.n:,} flagged; {self.wrong / self.flagged:.0%} wrong, else {self.wrong_others / others:.0%}; "
            f"odds ratio {self.odds}"
        )


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def predictors_of(
    actions: Sequence[ActionFeatures], labels: Floats, groups: Sequence[Hashable], seed: int = 0
) -> tuple[Predictor, ...]:
    """Return what predicts errors, the clearest first: by the end of the interval that is nearer to 1.

    Args:
        labels: whether each action was right: 1 or 0, others are left out; shape (n,).
        groups: the task of each, of which resamples are drawn.
    """
    kept = np.flatnonzero(np.isin(labels, (0, 1)))
    actions, wrong = [actions[place] for place in kept.tolist()], labels[kept] == 0
    tasks, names = group_numbers("groups", [groups[place] for place in kept.tolist()], len(kept))
    values = np.array([action.values for action in actions]).reshape(len(kept), len(ACTION_FEATURES))
    medians = np.median(values, axis=0) if len(kept) else np.zeros(len(ACTION_FEATURES))
    above = np.where((values > medians).any(axis=0), values > medians, values >= medians)
    words = {**LOWERING, **FREE, "nowhere": "an identifier or address that stands nowhere"}
    columns = dict(zip(ACTION_FEATURES, above.T, strict=True))
    columns["nowhere"] = np.array(
        [any(each.name == "nowhere" for each in action.alarms) for action in actions], dtype=bool
    )
    draws = np.random.default_rng(seed).multinomial(len(names), np.full(len(names), 1 / max(1, len(names))), RESAMPLES)
    found = []
    for name, flagged in columns.items():
        if flagged.any() and not flagged.all():
            cells = [flagged & wrong, flagged & ~wrong, ~flagged & wrong, ~flagged & ~wrong]
            per_task = np.array([np.bincount(tasks, cell, len(names)) for cell in cells])
            whole, *resampled = _odds_ratio(per_task.sum(axis=1)), *_odds_ratio(per_task @ draws.T)
            least = min((per_task[:2].sum(axis=0) > 0).sum(), (per_task[2:].sum(axis=0) > 0).sum())
            low, high = np.quantile(resampled, (0.025, 0.975)).tolist()
            counts = (int(flagged.sum()), len(wrong), int(cells[0].sum()), int(cells[2].sum()))
            found.append(
                Predictor(name, words[name], *counts, float(whole), (low, high) if least >= LEAST_TASKS else None)
            )
    return tuple(sorted(found, key=lambda each: -each.clearness))


def _odds_ratio(cells: Floats) -> Any:
    """Return the odds ratios of four rows: flagged and wrong, flagged and right, others wrong, others right."""
    a, b, c, d = cells + 0.5
    return a * d / (b * c)


def calibrate_actions(
    labelled: ActionLabels, promise: Promise, *, per_tool: bool = False, holdout: float = 0.4, seed: int = 0
) -> Calibration:
    """Fit a confidence in single actions on labelled ones, and choose the thresholds with which it keeps a promise.

    Args:
        labelled: the actions, as `action_labels` returns them. All of them are fitted on; only audited ones enter the promise.
        promise: what the thresholds shall promise, with the unit "action".
        per_tool: whether the thresholds promise it for each tool alone. Any other tool then has at each level the strictest of them. Choose it
            before looking at results.
        holdout: share of the tasks on which the thresholds are chosen, as for `calibrate_runs`.
        seed: of all draws. Choose it before looking at results.

    Raises:
        ValueError: an argument cannot be used, or there are too few labels; the message says how many there are.
    """
    actions = labelled.actions
    if promise.unit != "action":
        raise ValueError('the promise must be about actions: Promise(..., unit="action")')
    if not actions:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in labelled.left_out.items())
        raise ValueError(
            f"there are no labelled actions{f' ({reasons})' if reasons else ''}; grace.feedback(…, action=…) labels one"
        )
    rows = action_rows(actions)
    labels, weights = (np.array([float(getattr(each, name)) for each in actions]) for name in ("correct", "weight"))
    groups, tools = [each.group for each in actions], [each.tool for each in actions]
    held = held_back(groups, holdout, seed) if holdout else np.ones(len(actions), dtype=bool)
    fitted = ~held if holdout else held
    if not fitted.any():
        raise ValueError(
            f"all {len(set(groups)):,} tasks are held back to choose the thresholds; label actions of more, or hold none back"
        )
    model = fit_actions(
        list(itertools.compress(rows, fitted)),
        labels[fitted],
        list(itertools.compress(groups, fitted)),
        weights=weights[fitted],
        seed=seed,
    )
    learned = np.array([model.predict(row) for row in itertools.compress(rows, held)]) if holdout else model.out_of_fold
    rates = rates_of_tools(tools, labels, weights, groups)[held]
    audited = np.array([each.is_audited for each in actions])[held]
    places = np.flatnonzero(held)
    tasks = list(itertools.compress(groups, held))
    confidence = {LEARNED: learned.round(3), RATE: rates.round(3)}
    tested = Tested(
        _profile_of(model, list(itertools.compress(actions, fitted))),
        places,
        confidence,
        labels[held],
        tasks,
        weights[held],
        seed,
        audited,
    )
    sample = {
        "actions": len(actions), "tasks": len(set(groups)), "share_correct": float(labels.mean()), "audited": sum(each.is_audited for each in actions),
        "fitted_actions": int(fitted.sum()), "fitted_tasks": len(set(itertools.compress(groups, fitted))), "base_rate": model.reason,
        "sources": dict(Counter(each.source for each in actions)), "left_out": dict(labelled.left_out),
    }  # fmt: skip
    notes = (
        [_EACH]
        + ([] if holdout else [APPROXIMATE])
        + ([f"the confidence in an action is the rate of its tool: {model.reason}."] if model.reason else [])
    )
    found = tested.calibration(promise, sample, notes, [{"tool": tools[place]} for place in places.tolist()], holdout)
    usable = audited & np.isin(labels[held], (0, 1))
    by_tool = {}
    if usable.any():
        by_tool = tool_thresholds(
            confidence[LEARNED][usable], labels[held][usable], [tools[place] for place in places[usable].tolist()], promise.risks, promise.delta,
            promise.kind, groups=list(itertools.compress(tasks, usable)), weights=tested.inverse if tested.inverse is None else tested.inverse[usable], seed=seed,
        )  # fmt: skip
    by_tool = {name: rounded_up(each) for name, each in by_tool.items()}
    found = replace(found, tools=by_tool, predictors=predictors_of(rows, labels, groups, seed))
    return _with_own_thresholds(found) if per_tool else found


def _with_own_thresholds(found: Calibration) -> Calibration:
    """Return the calibration with the thresholds of each tool for its actions."""
    own = {name: each.thresholds for name, each in found.tools.items()}
    stated = {**(found.profile.promise or {}), "tools": {name: each.to_dict() for name, each in found.tools.items()}}
    profile = found.profile.with_action(replace(found.profile.action, thresholds=own))
    whole = replace(found.thresholds, thresholds=strictest(own.values()))
    return replace(
        found,
        profile=profile.with_thresholds(whole.thresholds, stated),
        thresholds=whole,
        notes=(*found.notes, _PER_TOOL),
    )


def _profile_of(model: ActionModel, actions: Sequence[LabelledAction]) -> CalibratedProfile:
    """Return a profile that holds the model alone."""
    traces = list({id(each.trace): each.trace for each in actions}.values())
    facts = {
        "runs": len(traces),
        "tasks": len({each.group for each in actions}),
        **facts_of_all(traces),
        "domains": sorted({domain_of(trace) for trace in traces})[:MAX_NAMES],
        "fitted_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "labels": dict(sorted(Counter(each.source for each in actions).items())),
        "notes": [],
    }
    return CalibratedProfile(
        heads={}, fitted_on=facts, fitted_runs=frozenset(filter(None, map(hash_of, traces)))
    ).with_action(model)


def rates_of_tools(tools: Sequence[str], labels: Floats, weights: Floats, groups: Sequence[Hashable]) -> Floats:
    """Return for each action the share of right actions of its tool in other tasks, shrunk to that of all tools there."""
    tool, task = (
        group_numbers(name, values, len(labels))[0] for name, values in (("tools", tools), ("groups", groups))
    )
    pair = np.unique(tool * len(labels) + task, return_inverse=True)[1]
    right = weights * labels

    def total(values: Floats, keys: Any) -> Floats:
        return np.asarray(np.bincount(keys, values)[keys])

    others = weights.sum() - total(weights, task)
    mean = np.where(others > 0, (right.sum() - total(right, task)) / np.where(others > 0, others, 1.0), 0.5)
    counted = total(weights, tool) - total(weights, pair)
    return np.asarray((total(right, tool) - total(right, pair) + SHRINK * mean) / (counted + SHRINK))
