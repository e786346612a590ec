"""Cross-validation by groups: folds that keep a task together, the choice of a penalty, and predictions for runs that a model did not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grace_kp.calibrate._columns import Columns
from grace_kp.calibrate._logistic import fit_logistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._logistic import Logistic

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]

PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0)
"""From the strongest to the weakest."""
FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Labelled rows. A run has a row per prefix at the moment "action", and one row at the moment "end"."""

    matrix: Floats
    """Features, (n, len(FEATURES)), NaN where missing."""
    tools: Sequence[tuple[str, ...]]
    labels: Floats
    weights: Floats
    groups: Integers

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.bool_]) -> Samples:
        """Return the rows for which the mask is true."""
        tools = [names for names, is_taken in zip(self.tools, rows, strict=True) if is_taken]
        return Samples(self.matrix[rows], tools, self.labels[rows], self.weights[rows], self.groups[rows])


def group_folds(groups: Integers, labels: Floats, folds: int, random: np.random.Generator) -> Integers:
    """Return the fold of each row, 0 to `folds - 1`. Rows of a group share a fold; sizes and successes are spread evenly.

    Args:
        groups: the group of each row, numbered from 0.
        labels: from 0 to 1.
        folds: number of folds; no more than there are groups are used.
        random: breaks ties.
    """
    sizes = np.bincount(groups)
    successes = np.bincount(groups, weights=labels)
    folds = min(folds, int((sizes > 0).sum()))
    share = float(labels.mean()) if len(labels) else 0.0
    order = random.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    chosen = np.zeros(len(sizes), dtype=np.intp)
    rows, surplus = np.zeros(folds), np.zeros(folds)
    for group in order:
        moved = surplus + successes[group] - share * sizes[group]
        fold = int(np.argmin(rows + np.abs(moved) - np.abs(surplus)))
        chosen[group] = fold
        rows[fold] += sizes[group]
        surplus[fold] = moved[fold]
    return np.asarray(chosen[groups])


def out_of_fold(samples: Samples, folds: Integers, penalty: float) -> Floats:
    """Return the log-odds of each row by a regression that saw no row of its fold."""
    logits = np.zeros(len(samples))
    for train, test in _splits(folds):
        seen = samples.take(train)
        columns = Columns.fit(seen.matrix, seen.tools)
        fitted = fit_logistic(columns.rows(seen.matrix, seen.tools), seen.labels, penalty, weights=seen.weights)
        rest = samples.take(test)
        logits[test] = fitted.logits(columns.rows(rest.matrix, rest.tools))
    return logits


def choose_penalty(samples: Samples, folds: Integers) -> float:
    """Return the penalty with the least log-loss on rows that the regressions did not see."""
    losses = np.zeros(len(PENALTIES))
    for train, test in _splits(folds):
        seen, rest = samples.take(train), samples.take(test)
        columns = Columns.fit(seen.matrix, seen.tools)
        rows, others = columns.rows(seen.matrix, seen.tools), columns.rows(rest.matrix, rest.tools)
        fitted: Logistic | None = None
        for place, penalty in enumerate(PENALTIES):
            fitted = fit_logistic(rows, seen.labels, penalty, weights=seen.weights, start=fitted)
            logits = fitted.logits(others)
            losses[place] += rest.weights @ (np.logaddexp(0.0, logits) - rest.labels * logits)
    return PENALTIES[int(np.argmin(losses))]


def _splits(folds: Integers) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        if test.any() and not test.all():
            yield ~test, test
