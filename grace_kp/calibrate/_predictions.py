"""Confidences of labelled runs by profiles that were not fitted on their tasks: of tasks that are held back, or by cross-validation.

Beside them are the two baselines that a learned confidence must beat: the formula `grace`, and a regression on the number of steps alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._features import FEATURES, features, finished_calls, transcript_of
from grace_kp.calibrate._fit import FOLDS, PENALTIES, action_places, fit, group_folds
from grace_kp.calibrate._head import Columns, matrix_of
from grace_kp.calibrate._logistic import fit_logistic, probability
from grace_kp.calibrate._samples import group_numbers
from grace_kp.confidence import PROFILES, factors_from_trace
from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._features import Features, Moment
    from grace_kp.calibrate._labels import Labels
    from grace_kp.calibrate._profile import CalibratedProfile
    from grace_kp.calibrate._samples import Floats

    Mask = NDArray[np.bool_]


def formula_confidence(document: Mapping[str, Any], upto: int | None, seen: Features) -> float:
    """Return the confidence of a run by the formula `grace`, 0 to 1."""
    if upto is not None:
        calls = finished_calls(transcript_of(document, has_ended=False, upto=upto))
        recorded = isinstance((document.get("grace") or {}).get("calls"), list)
        document = {"steps": (document.get("steps") or [])[:upto], "grace": {"calls": calls} if recorded else {}}
    factors = factors_from_trace(document)
    values = seen.as_dict()
    own, coverage, agreement = (values[name] for name in ("self_evaluation", "coverage", "agreement"))
    if own is not None:
        factors = replace(factors, llm_self_confidence=own, self_evaluated=True)
    if coverage is not None:
        factors = replace(factors, query_coverage=coverage, coverage_evaluated=True)
    if agreement is not None and factors.source_count > 1:
        factors = replace(factors, source_agreement=agreement, agreement_evaluated=True)
    return PROFILES["grace"].calculate(factors).score


def length_confidences(
    fitted: Sequence[Features], labels: Floats, weights: Floats, others: Sequence[Features]
) -> Floats:
    """Return the confidences of other runs, 0 to 1, by a regression on the number of steps alone.

    Args:
        labels: labels of the fitted runs, 0 to 1.
    """
    # The other features count as missing, and get no column.
    matrix, rest = (
        np.where(np.arange(len(FEATURES)) == FEATURES.index("steps"), matrix_of(rows), np.nan)
        for rows in (fitted, others)
    )
    columns = Columns.fit(matrix, [()] * len(matrix))
    regression = fit_logistic(columns.rows(matrix, [()] * len(matrix)), labels, PENALTIES[-1], weights=weights)
    return probability(regression.logits(columns.rows(rest, [()] * len(rest))))


LEARNED, FORMULA, LENGTH = "learned", "formula grace", "run length"


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """A profile, and what it and others predict for runs that they were not fitted on."""

    profile: CalibratedProfile
    places: NDArray[np.intp]
    """The places of the predicted runs among the labelled ones."""
    confidence: Mapping[str, Floats]
    """By name: learned, formula `grace`, run length; each of shape (n,), rounded to three decimals as in traces."""


def held_back(groups: Sequence[Any], holdout: float, seed: int = 0) -> Mask:
    """Return a mask of the runs that are held back from fitting: all runs of randomly drawn tasks."""
    if isinstance(holdout, bool) or not isinstance(holdout, int | float) or not 0 <= holdout < 1:
        raise ValueError(f"holdout must be a share of the tasks from 0 to below 1 (got {brief(holdout)})")
    numbers, names = group_numbers("groups", groups, len(groups))
    order = np.random.default_rng(seed).permutation(len(names))
    return np.isin(numbers, order[: math.ceil(holdout * len(names))])


class LabelledRows:
    """Labelled runs with their features at one moment: at their end, or before an action of each that is drawn at random."""

    def __init__(self, labelled: Labels, groups: Sequence[Any], moment: Moment, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.documents = [trace.to_dict() for trace in labelled.traces]
        self._upto: list[int | None] = [None] * len(self.documents)
        if moment == "action":
            places = [action_places(run) for run in self.documents]
            self._upto = [found[int(random.integers(len(found)))] for found in places]
        self._rows = [
            features(run, moment=moment, upto=upto) for run, upto in zip(self.documents, self._upto, strict=True)
        ]
        self._moment: Moment = moment
        self._labels = np.asarray(labelled.labels, dtype=np.float64)
        self._weights = np.asarray(labelled.weights, dtype=np.float64)
        self._sources = labelled.sources
        self._groups = list(groups)

    def held_back(self, held: Mask, seed: int) -> Predicted:
        """Fit on the runs that are not held back, and predict the others."""
        profile, learned, length = self._fit_and_predict(~held, held, seed)
        return self._with_baselines(profile, np.flatnonzero(held), learned, length)

    def cross_validated(self, seed: int) -> Predicted:
        """Fit on all runs, and predict each by another profile, fitted without its task."""
        whole = self._fit(np.ones(len(self._labels), dtype=bool), seed)
        numbers = group_numbers("groups", self._groups, len(self._groups))[0]
        folds = group_folds(numbers, self._labels, FOLDS, np.random.default_rng(seed))
        learned, length = np.zeros(len(folds)), np.zeros(len(folds))
        for fold in range(int(folds.max()) + 1):
            test = folds == fold
            _, learned[test], length[test] = self._fit_and_predict(~test, test, seed)
        return self._with_baselines(whole, np.arange(len(folds)), learned, length)

    def _fit_and_predict(self, train: Mask, test: Mask, seed: int) -> tuple[CalibratedProfile, Floats, Floats]:
        profile = self._fit(train, seed)
        seen, others = self._of(self._rows, train), self._of(self._rows, test)
        # Rounded as `CalibratedProfile.confidence` rounds it, because gates compare that with the thresholds.
        learned = np.array([round(profile.predict(row, moment=self._moment), 3) for row in others])
        return profile, learned, length_confidences(seen, self._labels[train], self._weights[train], others)

    def _fit(self, train: Mask, seed: int) -> CalibratedProfile:
        return fit(
            self._of(self.documents, train),
            self._labels[train].tolist(),
            self._of(self._groups, train),
            weights=self._weights[train].tolist(),
            sources=self._of(self._sources, train),
            seed=seed,
        )

    def _with_baselines(self, profile: CalibratedProfile, places: Any, learned: Floats, length: Floats) -> Predicted:
        formula = [
            formula_confidence(self.documents[place], self._upto[place], self._rows[place]) for place in places.tolist()
        ]
        return Predicted(profile, places, {LEARNED: learned, FORMULA: np.array(formula), LENGTH: length.round(3)})

    @staticmethod
    def _of(values: Sequence[Any], mask: Mask) -> list[Any]:
        return [values[place] for place in np.flatnonzero(mask).tolist()]
