"""A learned confidence in single actions: the features of an action, a regression with an intercept per tool, and its fallback, the rate of the tool.

What tools, documents and the agent write can only lower the confidence: features that depend on it have no positive weight, and no text or
message makes one of them smaller. Only the user's words, the tool, the form of the call and successful reads before it may raise it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grace_kp.calibrate._fit import FOLDS, group_folds
from grace_kp.calibrate._logistic import Logistic, fit_calibration, fit_logistic, probability
from grace_kp.calibrate._samples import group_numbers, units, weights_of
from grace_kp.confidence import ACTION_FEATURES, FREE, LOWERING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._samples import Floats
    from grace_kp.confidence import ActionFeatures

    Integers = NDArray[np.intp]

LEAST_LABELS, LEAST_OF_EACH, LEAST_GROUPS = 50, 15, 8
"""Fewer labels, labels of the rarer class or tasks are not enough for a regression; then the rate of the tool is the confidence."""
PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0)
SHRINK = 10.0
"""Labels that the mean of all tools counts as in the rate of one."""
TAIL = 0.05
"""Share of the actions at each end of a feature whose values count as the value where that end begins."""


@dataclass(frozen=True, slots=True, eq=False)
class ActionModel:
    """A confidence in actions that was fitted on labelled ones."""

    rates: dict[str, float]
    """The share of right actions of each tool, shrunk to that of all."""
    counts: dict[str, int]
    """Number of labelled actions of each tool."""
    repeat_rate: float
    """The share of right ones among the labelled actions that repeat a call which succeeded, shrunk to 0; no such action gets more."""
    regression: _Regression | None
    """None where the rate of the tool is the confidence."""
    gain: float | None
    """By how much its Brier score out of fold was below that of the rate; None where there were too few labels to fit it."""
    reason: str
    """Why the rate is the confidence; empty if it is not."""
    out_of_fold: Floats
    """The confidence of each labelled action by models that did not see its task, of shape (n,)."""

    def predict(self, action: ActionFeatures) -> float:
        """Return the confidence, 0 to 1. A tool without labels counts as the one that is least often right."""
        found = self._uncapped(action)
        return min(found, self.repeat_rate) if action.values[_REPEATS] else found

    def knows(self, tool: str) -> bool:
        """Return whether the tool was among the labelled ones; a gate treats any other as a mismatch."""
        return tool in self.rates

    def explain(self, action: ActionFeatures) -> tuple[tuple[str, float], ...]:
        """Return what adds to the log-odds of the confidence, in words, the largest first.

        Each is the difference to an average action. Where the rate of the tool is the confidence, only a repeated call changes it.
        """
        parts = {} if self.regression is None else self.regression.explain(action)
        before, after = self._uncapped(action), self.predict(action)
        if after < before:
            name = LOWERING["repeats"]
            parts[name] = parts.get(name, 0.0) + _log_odds(after) - _log_odds(before)
        return tuple(sorted(parts.items(), key=lambda part: -abs(part[1])))

    def _uncapped(self, action: ActionFeatures) -> float:
        if self.regression is not None:
            return float(self.regression.predict([action])[0])
        return self.rates.get(action.tool, min(self.rates.values()))


_REPEATS = ACTION_FEATURES.index("repeats")


def _log_odds(chance: float) -> float:
    chance = min(max(chance, 1e-9), 1 - 1e-9)
    return math.log(chance / (1 - chance))


@dataclass(frozen=True, slots=True, eq=False)
class _Regression:
    """Columns of the features that vary, an intercept per tool, the weights, and the calibration of the log-odds."""

    tools: tuple[str, ...]
    figures: Floats
    """Rows low, high, mean and spread of each feature."""
    fitted: Logistic
    slope: float = 1.0
    offset: float = 0.0

    @classmethod
    def fit(cls, actions: Sequence[ActionFeatures], labels: Floats, weights: Floats, penalty: float) -> _Regression:
        values = np.array([action.values for action in actions])
        low, high = np.quantile(values, (TAIL, 1 - TAIL), axis=0)
        # In a rare column nearly all values are equal, and the others are all in the tail.
        rare = high - low <= 0
        low, high = np.where(rare, values.min(axis=0), low), np.where(rare, values.max(axis=0), high)
        values = np.clip(values, low, high)
        spread = values.std(axis=0)
        figures = np.stack([low, high, values.mean(axis=0), np.where(spread > 0, spread, np.inf)])
        blank = cls(tuple(sorted({action.tool for action in actions})), figures, Logistic(0.0, np.zeros(0)))
        return replace(blank, fitted=_fit_lowering(blank.columns(actions), labels, weights, penalty))

    def columns(self, actions: Sequence[ActionFeatures]) -> Floats:
        """Return the columns of actions; those of the tools are all 0 for a tool without labels."""
        low, high, mean, spread = self.figures
        values = (np.clip(np.array([action.values for action in actions]), low, high) - mean) / spread
        return np.hstack([values, [[float(action.tool == tool) for tool in self.tools] for action in actions]])

    def logits(self, actions: Sequence[ActionFeatures]) -> Floats:
        unseen = np.array([action.tool not in self.tools for action in actions])
        lowest = self.fitted.weights[len(ACTION_FEATURES) :].min()
        return self.fitted.logits(self.columns(actions)) + unseen * min(0.0, float(lowest))

    def predict(self, actions: Sequence[ActionFeatures]) -> Floats:
        return probability(self.slope * self.logits(actions) + self.offset)

    def explain(self, action: ActionFeatures) -> dict[str, float]:
        count = len(ACTION_FEATURES)
        parts = self.slope * self.columns([action])[0, :count] * self.fitted.weights[:count]
        total = self.slope * (float(self.logits([action])[0]) - self.fitted.intercept)
        named = dict(zip((LOWERING | FREE).values(), parts.tolist(), strict=True))
        return {**named, "the tool": total - float(parts.sum())}


def _fit_lowering(columns: Floats, labels: Floats, weights: Floats, penalty: float) -> Logistic:
    """Fit a regression in which the features that can only lower have no positive weight: those that would get one are left out."""
    kept = np.ones(columns.shape[1], dtype=bool)
    start: Logistic | None = None
    while True:
        fitted = fit_logistic(columns[:, kept], labels, penalty, weights=weights, start=start)
        whole = np.zeros(columns.shape[1])
        whole[kept] = fitted.weights
        raising = whole > 0
        raising[len(LOWERING) :] = False
        if not raising.any():
            return Logistic(fitted.intercept, whole)
        kept &= ~raising
        start = Logistic(fitted.intercept, whole[kept])


def fit_actions(
    actions: Sequence[ActionFeatures],
    labels: Sequence[float],
    groups: Sequence[Hashable],
    *,
    weights: Sequence[float] | None = None,
    seed: int = 0,
) -> ActionModel:
    """Fit a confidence on labelled actions.

    Penalty and calibration follow from predictions for tasks that were left out. If these have no smaller Brier score than the rates of the
    tools, the rates are the confidence.

    Args:
        actions: the features of each action.
        labels: whether each was right: bools, or numbers from 0 to 1.
        groups: the task or session of each; actions of one are never split between training and validation.
        weights: how much each label counts; None counts each once.
        seed: of the folds.

    Raises:
        ValueError: the lengths differ, or a label or weight is unusable.
    """
    right = units("labels", labels)
    for name, entries in (("labels", right), ("groups", groups)):
        if len(entries) != len(actions):
            raise ValueError(f"there are {len(actions):,} actions and {len(entries):,} {name}; each action needs one")
    if not len(actions):
        raise ValueError("there are no labelled actions to fit a confidence on")
    counted = np.ones(len(right)) if weights is None else weights_of(weights, len(right))
    tasks, names = group_numbers("groups", groups, len(right))
    samples = _Samples(actions, right, counted, tasks)
    rarer = min(float(right.sum()), float((1 - right).sum()))
    folds = group_folds(tasks, right, FOLDS, np.random.default_rng(seed))
    by_rate = samples.by_rate(folds)
    if len(right) < LEAST_LABELS or rarer < LEAST_OF_EACH or len(names) < LEAST_GROUPS:
        reason = (
            f"there are {len(right):,} labels of {len(names):,} tasks, {rarer:g} of the rarer class; a regression needs {LEAST_LABELS}, "
            f"{LEAST_GROUPS} and {LEAST_OF_EACH}"
        )
        return samples.model(None, None, reason, by_rate)
    penalty, logits = samples.choose_penalty(folds)
    confidence = np.zeros(len(right))
    for test in _masks(folds):
        slope, offset = fit_calibration(logits[~test], right[~test], counted[~test])
        confidence[test] = probability(slope * logits[test] + offset)
    confidence = samples.cap(confidence, folds)
    gains = counted * ((by_rate - right) ** 2 - (confidence - right) ** 2)
    per_task = np.bincount(tasks, gains)
    gain = float(gains.sum() / counted.sum())
    deviation = float(np.sqrt(np.sum((per_task - per_task.mean()) ** 2)))
    error = math.sqrt(len(names) / (len(names) - 1)) * deviation / float(counted.sum())
    if gain <= 0:
        reason = f"out of fold its Brier score is not below that of the tools' rates (by {gain:.4f}, standard error {error:.4f})"
        return samples.model(None, gain, reason, by_rate)
    slope, offset = fit_calibration(logits, right, counted)
    regression = replace(_Regression.fit(actions, right, counted, penalty), slope=slope, offset=offset)
    return samples.model(regression, gain, "", confidence)


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    actions: Sequence[ActionFeatures]
    labels: Floats
    weights: Floats
    tasks: Integers

    def rates(self, kept: NDArray[np.bool_]) -> tuple[dict[str, float], float]:
        """Return the rate of each tool among some actions, and the lowest, which a tool without labels gets."""
        mean = float(np.average(self.labels[kept], weights=self.weights[kept]))
        right: dict[str, float] = {}
        total: dict[str, float] = {}
        for place in np.flatnonzero(kept).tolist():
            tool, weight = self.actions[place].tool, float(self.weights[place])
            right[tool] = right.get(tool, 0.0) + weight * float(self.labels[place])
            total[tool] = total.get(tool, 0.0) + weight
        found = {tool: (right[tool] + SHRINK * mean) / (total[tool] + SHRINK) for tool in total}
        return found, min(found.values())

    def by_rate(self, folds: Integers) -> Floats:
        confidence = np.zeros(len(self.labels))
        for test in _masks(folds):
            rates, lowest = self.rates(~test)
            confidence[test] = [rates.get(self.actions[place].tool, lowest) for place in np.flatnonzero(test).tolist()]
        return self.cap(confidence, folds)

    def repeat_rate(self, kept: NDArray[np.bool_]) -> float:
        repeats = kept & self.repeats
        return float(self.weights[repeats] @ self.labels[repeats]) / (float(self.weights[repeats].sum()) + SHRINK)

    def cap(self, confidence: Floats, folds: Integers) -> Floats:
        """Return the confidence of each action, but for a repeated call at most the rate of those in other tasks."""
        capped = confidence.copy()
        for test in _masks(folds):
            repeats = test & self.repeats
            capped[repeats] = np.minimum(confidence[repeats], self.repeat_rate(~test))
        return capped

    @property
    def repeats(self) -> NDArray[np.bool_]:
        return np.array([action.values[_REPEATS] > 0 for action in self.actions])

    def choose_penalty(self, folds: Integers) -> tuple[float, Floats]:
        """Return the penalty with the least log-loss out of fold, and its log-odds."""
        logits = np.zeros((len(PENALTIES), len(self.labels)))
        for test in _masks(folds):
            seen = [self.actions[place] for place in np.flatnonzero(~test).tolist()]
            others = [self.actions[place] for place in np.flatnonzero(test).tolist()]
            for row, penalty in zip(logits, PENALTIES, strict=True):
                row[test] = _Regression.fit(seen, self.labels[~test], self.weights[~test], penalty).logits(others)
        losses = (np.logaddexp(0.0, logits) - self.labels * logits) @ self.weights
        best = int(np.argmin(losses))
        return PENALTIES[best], logits[best]

    def model(self, regression: _Regression | None, gain: float | None, reason: str, confidence: Floats) -> ActionModel:
        whole = np.ones(len(self.labels), dtype=bool)
        counts = dict(Counter(action.tool for action in self.actions))
        return ActionModel(self.rates(whole)[0], counts, self.repeat_rate(whole), regression, gain, reason, confidence)


def _masks(folds: Integers) -> Iterator[NDArray[np.bool_]]:
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        if not test.all():
            yield test
