"""The learned confidence of one moment: columns of features, a regression, the calibration of its log-odds, and their explanation in words.

Heads are fitted in `_fit` and used in `_profile`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field

from grace_kp.calibrate._features import FEATURES, TABLE
from grace_kp.calibrate._logistic import MAX_LOGIT
from grace_kp.errors import GraceError
from grace_kp.trace import SourceFields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._features import Features
    from grace_kp.calibrate._logistic import Logistic
    from grace_kp.calibrate._samples import Floats

    Tools = Sequence[tuple[str, ...]]


MAX_NAMED = 3
_LEAST = 0.05
"""Reasons leave out contributions below this many log-odds."""


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one feature, tool or missing value to a prediction."""

    name: str
    """The feature; `missing:…` for its lack, `tool:…` for a tool that was called or not."""
    value: float | None
    """The value of the feature; None where it is missing. For a lack or a tool, 1.0 if it is there and 0.0 if not."""
    contribution: float
    """Log-odds that it adds; above 0 it raises the confidence. An average value adds 0."""
    is_high: bool
    """Whether the value is above the mean of the fitted runs."""

    @property
    def words(self) -> str:
        """The value in words: "few errors"."""
        kind, _, rest = self.name.partition(":")
        if kind == "tool":
            return f"{rest} was called" if self.is_high else f"{rest} was not called"
        if kind == "missing":
            return f"{'no' if self.is_high else 'a known'} {rest.replace('_', ' ')}"
        return TABLE[self.name][0 if self.is_high else 1]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction and its parts. `intercept` and the contributions add up to `logit`; with `calibration` they give `confidence`."""

    confidence: float
    """The prediction, 0 to 1."""
    moment: str
    intercept: float
    """Log-odds of a run whose features are all average."""
    parts: tuple[Part, ...]
    """In the order of the columns."""
    logit: float
    """Log-odds before calibration."""
    calibration: float
    """Log-odds that the calibration adds."""
    runs: int
    """Number of runs that the profile was fitted on."""

    @property
    def largest(self) -> tuple[Part, ...]:
        """The parts, largest contribution first; parts whose shown contributions are equal are sorted by name."""
        # The last bits of a fit differ between processors, and must not change what a person reads.
        return tuple(sorted(self.parts, key=lambda part: (-round(abs(part.contribution), 1), part.name)))

    @property
    def contributions(self) -> dict[str, float]:
        """Everything that adds up to the log-odds of the confidence, by name: `intercept`, the parts, and `calibration`."""
        parts = {part.name: part.contribution for part in self.parts}
        return {"intercept": self.intercept, **parts, "calibration": self.calibration}

    @property
    def reason(self) -> str:
        """One sentence: the largest contributions in each direction."""
        sentences = []
        for verb, direction in (("raised", 1), ("lowered", -1)):
            parts = [part for part in self.largest if direction * part.contribution >= _LEAST][:MAX_NAMED]
            shown = ", ".join(f"{part.words} ({part.contribution:+.1f})".replace("-", "−") for part in parts)
            sentences += [f"{verb} by {shown}"] if parts else []
        return f"Learned from {self.runs} runs: {'; '.join(sentences) or 'all features are near their averages'}"


SCHEMA = "grace_kp/calibrated-profile"
VERSION = 2


class ProfileFileError(GraceError, ValueError):
    """A file of a learned profile cannot be used. The message names the file and the field."""


MAX_SLOPE = 1_000.0
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LogOdds = Annotated[float, Field(ge=-MAX_LOGIT, le=MAX_LOGIT)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class StrictFields(SourceFields):
    """A part of a profile's file, without any other fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CalibrationFields(StrictFields):
    """The calibration of log-odds, as it is in a file."""

    slope: Annotated[float, Field(gt=0, le=MAX_SLOPE)]
    offset: LogOdds


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
        return self._evaluate(features)[2]

    def explain(self, features: Features) -> Explanation:
        """Return the confidence with the contribution of each column."""
        contributions, logit, confidence = self._evaluate(features)
        values = features.as_dict()
        return Explanation(
            confidence=confidence,
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
        figures = {name: getattr(self.columns, name).tolist() for name in FIGURES}
        figures["weight"] = self.regression.weights.tolist()
        return {
            "runs": self.runs,
            "rows": self.rows,
            "penalty": self.penalty,
            "intercept": self.regression.intercept,
            "calibration": {"slope": self.slope, "offset": self.offset},
            "columns": [
                {"name": name, **{figure: values[place] for figure, values in figures.items()}}
                for place, name in enumerate(self.columns.names)
            ],
        }

    def _evaluate(self, features: Features) -> tuple[list[float], float, float]:
        """Return the contributions of the columns, their log-odds with the intercept, and the calibrated confidence."""
        contributions: list[float] = (self.columns.row(features) * self.regression.weights).tolist()
        logit = math.fsum((self.regression.intercept, *contributions))
        return contributions, logit, float(0.5 * (1.0 + np.tanh(0.5 * (self.slope * logit + self.offset))))


def _value(name: str, values: dict[str, float | None], tools: tuple[str, ...]) -> float | None:
    kind, _, rest = name.partition(":")
    if kind == "tool":
        return float(rest in tools)
    return float(values[rest] is None) if kind == "missing" else values[name]


MAX_TOOLS = 24
LEAST_SHARE = 0.05
"""A tool or a missing value has a column if at least this share of the runs has it, and at least this share does not."""
LEAST_RUNS = 5
TAIL = 0.05
"""Share of the runs at each end of a feature whose values count as the value where that end begins."""
FLAT = 1e-9
FIGURES = ("fill", "centre", "scale", "low", "high")
"""The fields of `Columns` that are saved, apart from the names."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """How features become columns. All arrays have one entry per column."""

    names: tuple[str, ...]
    """`steps` for a feature, `missing:search_quality` for a lack, `tool:search` for a tool."""
    fill: Floats
    """Replaces a missing value."""
    centre: Floats
    scale: Floats
    low: Floats
    """Where the lowest twentieth of the fitted runs ends; whatever is below counts as this."""
    high: Floats
    _places: NDArray[np.intp]
    """The place of the feature of a column; -1 for a tool."""
    _is_lack: NDArray[np.bool_]
    _tools: tuple[str, ...]

    @classmethod
    def build(cls, names: Sequence[str], figures: Floats) -> Columns:
        """Return columns from their names and the rows fill, centre, scale, low and high."""
        places, lacks, tools = [], [], []
        for name in names:
            kind, _, rest = name.rpartition(":") if not name.startswith("tool:") else ("tool", "", name[5:])
            if kind == "tool":
                tools.append(rest)
            elif kind not in {"", "missing"} or rest not in FEATURES or tools:
                raise ValueError(f"{name!r} is not a feature of this version")
            places.append(-1 if kind == "tool" else FEATURES.index(rest))
            lacks.append(kind == "missing")
        fill, centre, scale, low, high = figures
        kinds = np.array(places, dtype=np.intp), np.array(lacks, dtype=bool), tuple(tools)
        return cls(tuple(names), fill, centre, scale, low, high, *kinds)

    @classmethod
    def fit(cls, matrix: Floats, tools: Tools) -> Columns:
        """Choose the columns for runs and measure their means and spreads."""
        count = len(matrix)
        least = max(LEAST_RUNS, LEAST_SHARE * count)
        lack = np.isnan(matrix)
        lacking = lack.sum(axis=0)
        varying = [place for place in range(len(FEATURES)) if lacking[place] < count]
        # Features that are missing together share a column.
        patterns = {
            lack[:, place].tobytes(): place for place in reversed(varying) if least <= lacking[place] <= count - least
        }
        called = Counter(name for names in tools for name in names)
        frequent = [name for name, runs in called.most_common(MAX_TOOLS) if least <= runs <= count - least]
        names = [FEATURES[place] for place in varying]
        names += [f"missing:{FEATURES[place]}" for place in sorted(patterns.values())]
        names += [f"tool:{name}" for name in sorted(frequent)]
        blank = np.zeros((5, len(names)))
        blank[0, : len(varying)] = [np.nanmean(matrix[:, place]) for place in varying]
        blank[2], blank[3], blank[4] = 1.0, -np.inf, np.inf
        values = cls.build(names, blank).rows(matrix, tools)
        blank[3], blank[4] = tails(values)
        values = np.clip(values, blank[3], blank[4])
        spread = values.std(axis=0)
        blank[1], blank[2] = values.mean(axis=0), np.where(spread > FLAT, spread, 1.0)
        moving = spread > FLAT
        return cls.build([name for name, moves in zip(names, moving, strict=True) if moves], blank[:, moving])

    def rows(self, matrix: Floats, tools: Tools) -> Floats:
        """Return the columns of runs, (n, len(names)), in units of their spread."""
        values = matrix[:, self._places]
        lack = np.isnan(values)
        values = np.where(self._is_lack, lack, np.where(lack, self.fill, values))
        first = len(self.names) - len(self._tools)
        for offset, name in enumerate(self._tools):
            values[:, first + offset] = [name in names for names in tools]
        return np.asarray((np.clip(values, self.low, self.high) - self.centre) / self.scale)

    def row(self, features: Features) -> Floats:
        """Return the columns of a run, as `rows` does."""
        return self.rows(np.array([features.values], dtype=np.float64), [features.tools]).reshape(-1)


def tails(values: Floats) -> tuple[Floats, Floats]:
    """Return where the twentieth at each end of each column begins."""
    low, high = np.quantile(values, (TAIL, 1 - TAIL), axis=0)
    # In a rare column nearly all values are equal, and the others are all in the tail.
    rare = high - low <= FLAT
    return np.where(rare, values.min(axis=0), low), np.where(rare, values.max(axis=0), high)


def matrix_of(rows: Sequence[Features]) -> Floats:
    """Return features as an array, NaN where missing."""
    return np.array([row.values for row in rows], dtype=np.float64).reshape(len(rows), len(FEATURES))


@dataclass(frozen=True, slots=True)
class Weight:
    """The effect of one feature on the confidence."""

    name: str
    words: str
    """The feature in words: "many errors"."""
    step: str
    """The change that `odds` refers to: "twice as much"."""
    odds: float
    """Factor by which this change multiplies the odds of being right."""
    spread: float
    """Log-odds that a change by one standard deviation of the fitted runs adds. Weights can be compared by it."""


def weights_of_head(head: Head) -> tuple[Weight, ...]:
    """Return the weights of a head, the largest effect first. Calibration is included."""
    columns = head.columns
    found = []
    ranges = (columns.high - columns.low).tolist()
    for name, weight, scale, width in zip(
        columns.names, head.regression.weights.tolist(), columns.scale.tolist(), ranges, strict=True
    ):
        spread = head.slope * weight
        step, size = _STEPS.get("flag" if ":" in name else TABLE[name][2], _TWICE)
        if size > width:  # beyond the fitted runs a value counts as the nearest of theirs
            step, size = "from the lowest to the highest", width
        found.append(Weight(name, Part(name, None, 0.0, True).words, step, math.exp(spread / scale * size), spread))
    return tuple(sorted(found, key=lambda each: -abs(each.spread)))


_STEPS = {"flag": ("yes instead of no", 1.0), "share": ("0.1 more", 0.1), "mean": ("1 more per thought", 1.0)}
_TWICE = ("twice as much", math.log(2))
