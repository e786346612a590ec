"""Regularised logistic regression by Newton's method, and the calibration of its scores. Plain arithmetic on arrays, no traces.

The columns are expected in comparable units. Labels may be fractions: a label of 0.7 counts as 0.7 of a success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grace_kp.calibrate._samples import fold_masks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.calibrate._samples import Floats, Mask, Places


MAX_STEPS = 50
MAX_HALVINGS = 30
TOLERANCE = 1e-9
MAX_LOGIT = 30.0
_PRIOR_LABELS = 20.0
"""The calibration starts from "the scores are right", which counts as much as about twenty labels."""
_LEAST_SLOPE = 0.05
"""A calibration never reverses the order of the scores."""


@dataclass(frozen=True, slots=True)
class Logistic:
    """A fitted regression: the log-odds are `intercept + columns @ weights`."""

    intercept: float
    weights: Floats

    def logits(self, columns: Floats) -> Floats:
        """Return the log-odds of each row."""
        return np.asarray(columns @ self.weights + self.intercept)


def probability(logits: Floats) -> Floats:
    """Return the probabilities of log-odds, without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)))


def fit_logistic(
    columns: Floats, labels: Floats, penalty: float, *, weights: Floats | None = None, start: Logistic | None = None
) -> Logistic:
    """Return the regression that minimises `sum(weights * loss) + penalty / 2 * sum(w ** 2)`. The intercept is not penalised.

    Labels, of shape (n,), are from 0 to 1. Those of one class only have no finite intercept; it then ends at log-odds of 30.
    """
    ones = np.ones(len(labels)) if weights is None else weights
    design = np.column_stack([np.ones(len(labels)), columns])
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 0.0
    beta = np.zeros(design.shape[1])
    if start is None:
        share = (float(ones @ labels) + 0.5) / (float(ones.sum()) + 1.0)
        beta[0] = np.log(share / (1.0 - share))
    else:
        beta[:] = start.intercept, *start.weights
    return _newton(design, labels, ones, ridge, np.zeros(len(ridge)), beta)


def fit_calibration(logits: Floats, labels: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Return slope and offset, so that `slope * logits + offset` are log-odds that agree with the labels (Platt 1999).

    The logits must come from models that did not see the labels. Slope and offset are shrunk towards 1 and 0.
    """
    ones = np.ones(len(labels)) if weights is None else weights
    spread = float(np.average((logits - np.average(logits, weights=ones)) ** 2, weights=ones))
    design = np.column_stack([np.ones(len(labels)), logits])
    ridge = np.array([0.25, 0.25 * max(spread, 0.01)]) * _PRIOR_LABELS
    fitted = _newton(design, labels, ones, ridge, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    slope = float(fitted.weights[0])
    if slope >= _LEAST_SLOPE:
        return slope, fitted.intercept
    # The scores do not rank the runs: only the share of successes remains.
    rest = _newton(design[:, :1], labels, ones, ridge[:1], np.zeros(1), np.zeros(1), _LEAST_SLOPE * logits)
    return _LEAST_SLOPE, rest.intercept


def cross_fit(
    predict: Callable[[Mask, Mask], list[Floats]],
    penalties: Sequence[float],
    folds: Places,
    labels: Floats,
    weights: Floats,
) -> tuple[float, Floats, Floats]:
    """Return the penalty with the least log-loss out of fold, its log-odds, and these calibrated on the other folds, 0 to 1.

    Args:
        predict: returns for each penalty the log-odds of the rows of the second mask, by a regression that saw only rows of the first.
        weights: of the labels, from 0 for rows that are predicted, but count for nothing.
    """
    logits, confidence = np.zeros((len(penalties), len(labels))), np.zeros(len(labels))
    for test in fold_masks(folds):
        logits[:, test] = predict(~test, test)
    best = int(np.argmin((np.logaddexp(0.0, logits) - labels * logits) @ weights))
    for test in fold_masks(folds):
        slope, offset = fit_calibration(logits[best, ~test], labels[~test], weights[~test])
        confidence[test] = probability(slope * logits[best, test] + offset)
    return penalties[best], logits[best], confidence


def _newton(
    design: Floats,
    labels: Floats,
    weights: Floats,
    ridge: Floats,
    centre: Floats,
    beta: Floats,
    offset: Floats | float = 0.0,
) -> Logistic:
    """Minimise the penalised loss by Newton steps, each halved until the loss falls."""
    scale = max(float(weights.sum()), 1e-12)

    def loss(point: Floats) -> float:
        logits = design @ point + offset
        shift = point - centre
        fit = float(weights @ (np.logaddexp(0.0, logits) - labels * logits))
        return (fit + 0.5 * float(ridge @ (shift * shift))) / scale

    current = loss(beta)
    for _ in range(MAX_STEPS):
        chance = probability(design @ beta + offset)
        gradient = design.T @ (weights * (chance - labels)) + ridge * (beta - centre)
        curvature = weights * np.maximum(chance * (1.0 - chance), 1e-12)
        hessian = (design.T * curvature) @ design
        hessian[np.diag_indices_from(hessian)] += ridge + 1e-9
        step = np.linalg.solve(hessian, gradient)
        if float(gradient @ step) / scale < TOLERANCE**2:
            break
        for _ in range(MAX_HALVINGS):
            moved = beta - step
            after = loss(moved)
            if after <= current:
                break
            step = step / 2
        else:
            break
        improved, beta, current = current - after, moved, after
        if abs(beta[0]) > MAX_LOGIT:
            beta[0] = np.clip(beta[0], -MAX_LOGIT, MAX_LOGIT)
            break
        if improved <= TOLERANCE**1.5 * max(1.0, abs(current)):
            break
    return Logistic(float(beta[0]), beta[1:].copy())
