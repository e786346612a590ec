"""The learned confidence of one moment: columns, a regression, and the calibration of its log-odds. Fitted in `_fit`, used in `_profile`.

Also the schema of profiles in files, and the error for a file that cannot be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._explanation import Explanation, Part
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from grace_kp.calibrate._columns import Columns
    from grace_kp.calibrate._features import Features
    from grace_kp.calibrate._logistic import Logistic


SCHEMA = "grace_kp/calibrated-profile"
VERSION = 1


class ProfileFileError(GraceError, ValueError):
    """A file of a learned profile cannot be used. The message names the file and the field."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A regression from the features at one moment to a confidence."""

    moment: str
    columns: Columns
    regression: Logistic
    slope: float
    offset: float
    penalty: float
    """Strength of the regularisation, in labels per squared unit of weight."""
    runs: int
    """Number of runs it was fitted on."""
    rows: int
    """Number of rows it was fitted on: one per run, or one per prefix of a run."""

    def predict(self, features: Features) -> float:
        """Return the confidence, 0 to 1."""
        return self._confidence(self._logit(self._contributions(features)))

    def explain(self, features: Features) -> Explanation:
        """Return the confidence with the contribution of each column."""
        contributions = self._contributions(features)
        logit = self._logit(contributions)
        values = features.as_dict()
        return Explanation(
            confidence=self._confidence(logit),
            moment=self.moment,
            intercept=self.regression.intercept,
            parts=tuple(
                Part(name, _value(name, values, features.tools), contribution, above > 0)
                for name, contribution, above in zip(
                    self.columns.names, contributions, self.columns.row(features).tolist(), strict=True
                )
            ),
            logit=logit,
            calibration=self.slope * logit + self.offset - logit,
            runs=self.runs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        columns = self.columns.to_list()
        weights = self.regression.weights.tolist()
        return {
            "runs": self.runs,
            "rows": self.rows,
            "penalty": self.penalty,
            "intercept": self.regression.intercept,
            "calibration": {"slope": self.slope, "offset": self.offset},
            "columns": [{**column, "weight": weight} for column, weight in zip(columns, weights, strict=True)],
        }

    def _contributions(self, features: Features) -> list[float]:
        row = self.columns.row(features) * self.regression.weights
        parts: list[float] = row.tolist()
        return parts

    def _logit(self, contributions: list[float]) -> float:
        return math.fsum((self.regression.intercept, *contributions))

    def _confidence(self, logit: float) -> float:
        return float(0.5 * (1.0 + np.tanh(0.5 * (self.slope * logit + self.offset))))


def _value(name: str, values: dict[str, float | None], tools: tuple[str, ...]) -> float | None:
    kind, _, rest = name.partition(":")
    if kind == "tool":
        return float(rest in tools)
    return float(values[rest] is None) if kind == "missing" else values[name]
