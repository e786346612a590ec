"""Compare runs with the fitted runs of a profile: features that shifted, and names that are new.

It needs no labels and says nothing about errors: a promise can hold after a drift, and break without one. `Monitor` tests the promise.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._facts import facts_of, task_of
from grace_kp.calibrate._features import features
from grace_kp.calibrate._head import matrix_of
from grace_kp.calibrate._samples import JsonRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grace_kp.calibrate._features import Moment
    from grace_kp.calibrate._profile import CalibratedProfile
    from grace_kp.calibrate._samples import Floats
    from grace_kp.trace import ReasoningTrace


LEAST_RUNS = 30
LEAST_SHIFT = 0.2
"""Smaller shifts are not reported, however certain they are. Among differences of means 0.2 standard deviations count as small (Cohen 1988)."""
ALPHA = 0.05
SHOWN = 5
KINDS = ("agents", "models", "tools")


@dataclass(frozen=True, slots=True)
class FeatureShift(JsonRecord):
    """How one column of a profile differs from the runs it was fitted on."""

    name: str
    """The feature; `missing:x` is the share of runs without x, and `tool:x` the share of runs that call tool x."""
    shift: float
    """Mean of the runs minus mean of the fitted runs, in standard deviations of the fitted runs."""
    fitted_mean: float
    mean: float
    """Means in the unit of the feature; most counts and lengths are log(1 + count). Values outside of the fitted range count as its end."""
    p_value: float
    """Probability of a shift as large or larger in any column, if nothing has changed (Holm)."""
    shifted: bool
    """Whether the shift is at least 0.2 standard deviations and its p-value at most 0.05."""


@dataclass(frozen=True, slots=True)
class DriftReport(JsonRecord):
    """Differences between runs and the fitted runs of a profile. `str(report)` states them in sentences."""

    _json = ("n", "tasks", "moment", "fitted_runs", "drifted", "features", "new")

    n: int
    """Number of runs."""
    tasks: int
    """Number of distinct tasks among them."""
    moment: str
    features: tuple[FeatureShift, ...]
    """All columns, the largest shift first."""
    new: Mapping[str, Mapping[str, int]]
    """Agents, models and tools that the profile was not fitted on, with the number of runs that have them."""
    fitted_runs: int

    @property
    def shifted(self) -> tuple[FeatureShift, ...]:
        """The features that shifted."""
        return tuple(feature for feature in self.features if feature.shifted)

    @property
    def drifted(self) -> bool:
        """Whether a feature shifted or a name is new."""
        return bool(self.shifted) or any(self.new.values())

    def __str__(self) -> str:
        lines = [
            f"{self.n:,} runs of {self.tasks:,} tasks, compared with the {self.fitted_runs:,} that the profile was fitted on."
        ]
        for kind in KINDS:
            lines += [
                f"New {kind[:-1]} {name!r} in {runs:,} runs ({runs / self.n:.0%})."
                for name, runs in list(self.new.get(kind, {}).items())[:SHOWN]
            ]
        for feature in self.shifted[:SHOWN]:
            lines.append(
                f"{feature.name} is {'higher' if feature.shift > 0 else 'lower'} by {abs(feature.shift):.1f} standard deviations "
                f"({feature.fitted_mean:.2f} when fitted, {feature.mean:.2f} now)."
            )
        if len(self.shifted) > SHOWN:
            lines.append(f"{len(self.shifted) - SHOWN} more features shifted.")
        if self.drifted:
            lines.append("Whether the promise still holds, only labels of a random sample of these runs can say.")
        else:
            lines.append(f"No new name, and none of {len(self.features)} features shifted.")
        return "\n".join(lines)


def drift(
    profile: CalibratedProfile, traces: Iterable[Mapping[str, Any] | ReasoningTrace], *, moment: Moment = "end"
) -> DriftReport:
    """Compare runs with the fitted runs of a profile.

    For each column, the difference of the means is tested with the variance of the fitted runs, or of these if it is larger. Runs of one
    task resemble each other: the correlation within tasks is measured, and widens the error of both means (Kish 1965). The p-values are
    corrected for the number of columns (Holm 1979).

    Args:
        profile: the profile; it keeps mean and standard deviation of each column.
        traces: at least 30 finished runs, without labels.
        moment: `"end"` for whole runs; `"action"` compares them with the runs before an action, if the traces end there.

    Raises:
        ValueError: there are fewer than 30 runs, the profile judges actions only, or the moment is unknown.
    """
    runs = list(traces)
    if len(runs) < LEAST_RUNS:
        raise ValueError(f"drift needs at least {LEAST_RUNS} runs, because fewer cannot show a shift (got {len(runs)})")
    if not profile.heads:
        raise ValueError("the profile judges actions only: it has no fitted runs to compare with")
    found = [features(run, moment=moment) for run in runs]
    head = profile.heads[moment]
    rows = head.columns.rows(matrix_of(found), [item.tools for item in found])
    names = [task_of(run) for run in runs]
    fitted_tasks = int(profile.fitted_on.get("tasks") or head.runs)
    shifts = rows.mean(axis=0)
    z = shifts / _standard_errors(rows, names, head.runs, max(1.0, head.runs / fitted_tasks))
    p_values = _holm([math.erfc(abs(value) / math.sqrt(2)) for value in z.tolist()])
    figures = np.stack((shifts, head.columns.centre, head.columns.scale, p_values), axis=1).tolist()
    columns = [
        FeatureShift(name, shift, centre, centre + shift * scale, p, abs(shift) >= LEAST_SHIFT and p <= ALPHA)
        for name, (shift, centre, scale, p) in zip(head.columns.names, figures, strict=True)
    ]
    columns.sort(key=lambda column: (-column.shifted, -abs(column.shift)))
    new, facts = {}, [facts_of(run) for run in runs]
    for kind in KINDS:
        known = profile.fitted_on.get(kind)  # of runs without, say, model names it is not known which are new
        unknown = Counter(name for each in facts for name in each[kind] if known and name not in known)
        new[kind] = dict(unknown.most_common())
    return DriftReport(len(runs), len(set(names)), moment, tuple(columns), new, head.runs)


def _standard_errors(rows: Floats, tasks: Sequence[str], fitted_runs: int, fitted_per_task: float) -> Floats:
    """Return the standard error of the difference of the means of each column, in standard deviations of the fitted runs."""
    count = len(rows)
    variance = np.maximum(1.0, rows.var(axis=0))
    _, places = np.unique(tasks, return_inverse=True)
    groups = int(places.max()) + 1
    correlation = np.ones(rows.shape[1])  # assumed where no task occurs twice
    if 1 < groups < count:
        sums = np.zeros((groups, rows.shape[1]))
        np.add.at(sums, places, rows - rows.mean(axis=0))
        of_mean = groups / (groups - 1) * (sums**2).sum(axis=0) / count**2
        correlation = np.clip((of_mean * count / variance - 1) / (count / groups - 1), 0.0, 1.0)
    effect, fitted_effect = 1 + (count / groups - 1) * correlation, 1 + (fitted_per_task - 1) * correlation
    errors: Floats = np.sqrt(fitted_effect / fitted_runs + effect * variance / count)
    return errors


def _holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979), in the same order."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected
