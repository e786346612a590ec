"""The columns of a regression: features in units of their spread, a mark for each that is missing, and the tools that were called.

Fitted on runs without their labels, so that it cannot leak one. A missing value counts as the mean of the fitted runs; where it is missing
in some of them, a column of its own says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._features import FEATURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._features import Features

    Floats = NDArray[np.float64]
    Tools = Sequence[tuple[str, ...]]

MAX_TOOLS = 24
LEAST_SHARE = 0.05
"""A tool, or a lack, has a column of its own if at least this share of the runs has it, and at least this share does not."""
LEAST_RUNS = 5
TAIL = 0.05
"""Share of the runs at each end of a feature whose values count as the value where that end begins."""
FLAT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """How features become columns. All arrays have one entry per column."""

    names: tuple[str, ...]
    """`steps` for a feature, `missing:search_quality` for a lack, `tool:search` for a tool."""
    fill: Floats
    """What stands for a missing value."""
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
        """Return columns from their names and the rows fill, centre, scale, low and high.

        Raises:
            ValueError: a name is none of a column.
        """
        places, lacks, tools = [], [], []
        for name in names:
            kind, _, rest = name.rpartition(":") if not name.startswith("tool:") else ("tool", "", name[5:])
            if kind == "tool":
                tools.append(rest)
            elif kind not in {"", "missing"} or rest not in FEATURES or tools:
                raise ValueError(f"{name!r} is no feature of this version")
            places.append(-1 if kind == "tool" else FEATURES.index(rest))
            lacks.append(kind == "missing")
        fill, centre, scale, low, high = figures
        kinds = np.array(places, dtype=np.intp), np.array(lacks, dtype=bool), tuple(tools)
        return cls(tuple(names), fill, centre, scale, low, high, *kinds)

    @classmethod
    def fit(cls, matrix: Floats, tools: Tools) -> Columns:
        """Choose the columns for runs and measure their means and spreads.

        Args:
            matrix: the features, (n, len(FEATURES)), NaN where missing.
            tools: the distinct tools of each run.
        """
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
        low, high = np.quantile(values, (TAIL, 1 - TAIL), axis=0)
        # Rare marks are all tail.
        rare = high - low <= FLAT
        blank[3], blank[4] = np.where(rare, values.min(axis=0), low), np.where(rare, values.max(axis=0), high)
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
        rows = self.rows(np.array([features.values], dtype=np.float64), [features.tools])
        return rows.reshape(-1)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the JSON form, one object per column."""
        return [
            {"name": name, "fill": fill, "centre": centre, "scale": scale, "low": low, "high": high}
            for name, fill, centre, scale, low, high in zip(
                self.names,
                *(row.tolist() for row in (self.fill, self.centre, self.scale, self.low, self.high)),
                strict=True,
            )
        ]


def matrix_of(rows: Sequence[Features]) -> Floats:
    """Return features as an array, NaN where missing."""
    return np.array([row.values for row in rows], dtype=np.float64).reshape(len(rows), len(FEATURES))
