"""What a learned confidence must beat: the seed formula `grace`, and a regression on nothing but the number of steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._columns import Columns
from grace_kp.calibrate._crossval import PENALTIES
from grace_kp.calibrate._features import FEATURES
from grace_kp.calibrate._logistic import fit_logistic, probability
from grace_kp.calibrate._transcript import finished_calls, transcript_of
from grace_kp.confidence import PROFILES, factors_from_trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._features import Features

    Floats = NDArray[np.float64]

_LENGTH = FEATURES.index("steps")


def formula_confidence(document: Mapping[str, Any], upto: int | None, seen: Features) -> float:
    """Return the confidence of a run by the formula `grace`, 0 to 1.

    Args:
        document: the run.
        upto: number of steps that exist when the decision is made; None for a run that has ended.
        seen: its features at that moment, which hold the judgements.
    """
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
        fitted: the features of the runs to fit on.
        labels: their labels, 0 to 1.
        weights: their weights.
        others: the features of the runs to predict.
    """
    matrix, rest = _lengths(fitted), _lengths(others)
    columns = Columns.fit(matrix, [()] * len(matrix))
    regression = fit_logistic(columns.rows(matrix, [()] * len(matrix)), labels, PENALTIES[-1], weights=weights)
    return probability(regression.logits(columns.rows(rest, [()] * len(rest))))


def _lengths(rows: Sequence[Features]) -> Floats:
    matrix = np.full((len(rows), len(FEATURES)), np.nan)
    matrix[:, _LENGTH] = [row.values[_LENGTH] for row in rows]
    return matrix
