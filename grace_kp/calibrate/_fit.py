"""Fit a learned confidence on labelled runs: features, cross-validation by task, regression, calibration.

The arithmetic of a regression is in `_logistic`, and what is fitted is a `Head` for each moment.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._assess import assess
from grace_kp.calibrate._facts import as_mapping, document_of, fitted_facts, hash_of, list_in, mapping_in, task_of
from grace_kp.calibrate._features import features
from grace_kp.calibrate._head import Columns, Head, matrix_of
from grace_kp.calibrate._logistic import cross_fit, fit_calibration, fit_logistic
from grace_kp.calibrate._profile import CalibratedProfile, OutOfFold
from grace_kp.calibrate._samples import FOLDS, check_lengths, group_folds, units, weights_of
from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from grace_kp.calibrate._features import Features
    from grace_kp.calibrate._samples import Floats, Mask, Places
    from grace_kp.trace import ReasoningTrace

    Trace = Mapping[str, Any] | ReasoningTrace

LEAST_LABELS = 50
LEAST_OF_EACH = 15
"""With 50 to 200 labels of public benchmarks, the mean Brier score on other tasks was from 0.008 worse to 0.10 better than that of the share of
successes (`benchmarks/calibration.py labels`)."""
LEAST_GROUPS = 5
MAX_RUNS = 20_000
"""More labelled runs than this add nothing to about fifty weights; this many are drawn, whole tasks at a time."""
MAX_ACTION_RUNS = 5_000
MAX_ASSESSED = 5_000
"""Rows whose figures are computed with intervals."""
MAX_PREFIXES = 8
"""Prefixes of a run at the moment "action", spread evenly over its actions."""
UNGROUPED = (
    "the objectives do not tell tasks apart, so each run counts as a separate task; pass groups= if runs share tasks"
)


def fit(
    runs: Sequence[Trace],
    labels: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    *,
    weights: Sequence[float] | None = None,
    sources: Sequence[str] | None = None,
    seed: int = 0,
) -> CalibratedProfile:
    """Fit a confidence on labelled runs.

    A regularised logistic regression on the features of each run, at two moments: at its end, and before each of its actions. Its
    penalty is chosen by cross-validation, and its scores are calibrated on predictions for tasks that were left out.

    Args:
        runs: finished traces, or their dict forms.
        labels: whether each run was correct: bools, or numbers from 0 to 1.
        groups: the task of each run. Runs of the same task are never split between training and validation. None takes the task
            id that a run's document names (`grace.source` or `grace.metadata`: `task_id`, `instance_id`, …), or else its objective.
        weights: how much each label counts, such as the inverse probability that it was collected; None counts each once.
        sources: where each label is from, such as "user" or "test"; kept as counts in `fitted_on`.
        seed: of the folds. The same input and seed give the same profile.

    Returns:
        The profile, with out-of-fold predictions. It has no thresholds yet.

    Raises:
        ValueError: the lengths differ, a label or weight is unusable, or there are too few labels: 50 are needed, 15 of each class,
            from at least five tasks. The message says how many there are.
    """
    for place, run in enumerate(runs):
        if not hasattr(run, "get") and not hasattr(run, "to_dict"):
            raise ValueError(f"a run must be a ReasoningTrace or its dict form: run {place} is {brief(run)}")
    correct = units("labels", labels)
    check_lengths("run", len(runs), labels=correct, groups=groups, weights=weights, sources=sources)
    counted = np.ones(len(runs)) if weights is None else weights_of(weights, len(runs))
    _check_counts(correct)
    notes: list[str] = []
    tasks = _tasks(runs, groups, notes)
    random = np.random.default_rng(seed)
    chosen = _draw_tasks(tasks, MAX_RUNS, random)
    if len(chosen) < len(runs):
        notes.append(f"{len(chosen):,} of {len(runs):,} labelled runs were drawn, whole tasks at a time")
    used = [runs[place] for place in chosen]
    correct, counted, tasks = correct[chosen], counted[chosen], tasks[chosen]
    heads, predictions, quality = {}, {}, {}
    rows = [features(run) for run in used]
    ends = Samples(matrix_of(rows), [row.tools for row in rows], correct, counted, tasks)
    for moment, samples in (("end", ends), ("action", _action_samples(used, correct, counted, tasks, random))):
        heads[moment], predicted = _fit_head(moment, samples, len(used), random)
        predictions[moment] = predicted
        drawn = _draw_tasks(samples.groups, MAX_ASSESSED, random)
        assessed = assess(
            predicted.confidence[drawn],
            predicted.correct[drawn],
            clusters=samples.groups[drawn],  # the bootstrap draws whole tasks
            weights=predicted.weights[drawn],
        ).to_dict()
        quality[moment] = {name: assessed[name] for name in ("auroc", "ece", "brier", "accuracy", "n", "intervals")}
    kinds = Counter(str(sources[place]) for place in chosen) if sources is not None else Counter({"unknown": len(used)})
    facts = {
        **fitted_facts(used, len(set(tasks.tolist()))),
        "labels": dict(sorted(kinds.items())),
        "share_correct": float(np.average(correct, weights=counted)),
        "notes": notes,
    }
    hashes = frozenset(filter(None, map(hash_of, used)))
    return CalibratedProfile(heads=heads, fitted_on=facts, quality=quality, predictions=predictions, fitted_runs=hashes)


def _fit_head(moment: str, samples: Samples, runs: int, random: np.random.Generator) -> tuple[Head, OutOfFold]:
    folds = group_folds(samples.groups, samples.labels, FOLDS, random)
    penalty, logits, confidence = cross_fit(samples.predictions, PENALTIES, folds, samples.labels, samples.weights)
    columns = Columns.fit(samples.matrix, samples.tools)
    rows = columns.rows(samples.matrix, samples.tools)
    regression = fit_logistic(rows, samples.labels, penalty, weights=samples.weights)
    slope, offset = fit_calibration(logits, samples.labels, samples.weights)
    head = Head(moment, columns, regression, slope, offset, penalty, runs, len(samples))
    return head, OutOfFold(confidence, samples.labels, tuple(samples.groups.tolist()), samples.weights)


def _action_samples(
    runs: Sequence[Trace], labels: Floats, weights: Floats, tasks: Places, random: np.random.Generator
) -> Samples:
    rows: list[Features] = []
    places: list[int] = []
    for place in _draw_tasks(tasks, MAX_ACTION_RUNS, random).tolist():
        document = document_of(runs[place])
        ends = action_places(document)
        if len(ends) > MAX_PREFIXES:
            ends = [ends[round(index * (len(ends) - 1) / (MAX_PREFIXES - 1))] for index in range(MAX_PREFIXES)]
        rows += [features(document, moment="action", upto=end) for end in ends]
        places += [place] * len(ends)
    tools = [row.tools for row in rows]
    return Samples(matrix_of(rows), tools, labels[places], weights[places] / np.bincount(places)[places], tasks[places])


def action_places(document: Mapping[str, Any]) -> list[int]:
    """Return the number of steps before each action of a run: its gated actions, else all its tool calls, else its end."""
    steps = list_in(document, "steps")
    gated = [as_mapping(entry).get("step") for entry in list_in(mapping_in(document, "grace"), "decisions")]
    places = sorted({place for place in gated if type(place) is int and 0 <= place <= len(steps)})
    if places:
        return places
    kinds = [as_mapping(step).get("type") for step in steps]
    return [place for place, kind in enumerate(kinds) if kind == "tool_call"] or [len(steps)]


def _check_counts(labels: Floats) -> None:
    count, right = len(labels), float(labels.sum())
    if count >= LEAST_LABELS and min(right, count - right) >= LEAST_OF_EACH:
        return
    missing = max(0, LEAST_LABELS - count)
    rarer, lacking = ("correct", right) if right <= count - right else ("wrong", count - right)
    wanted = [f"{missing} more labels"] if missing else []
    if lacking < LEAST_OF_EACH:
        wanted.append(f"{math.ceil(LEAST_OF_EACH - lacking)} more of them {rarer}")
    raise ValueError(
        f"too few labels to fit a confidence: there are {count:,}, {right:g} correct and {count - right:g} wrong; "
        f"at least {LEAST_LABELS} are needed, {LEAST_OF_EACH} of each. Collect {', '.join(wanted)}"
    )


def _tasks(runs: Sequence[Trace], groups: Sequence[Hashable] | None, notes: list[str]) -> Places:
    names = list(groups) if groups is not None else [task_of(run) for run in runs]
    numbers: dict[Hashable, int] = {}
    tasks = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)
    if len(numbers) >= LEAST_GROUPS:
        return tasks
    if groups is None:
        notes.append(UNGROUPED)
        return np.arange(len(runs), dtype=np.intp)
    raise ValueError(
        f"too few tasks to fit a confidence: runs of {LEAST_GROUPS} different tasks are needed, and these are of {len(numbers)}"
    )


def _draw_tasks(tasks: Places, most: int, random: np.random.Generator) -> Places:
    """Return the places of at most `most` rows: all of them, or the rows of whole tasks drawn at random."""
    if len(tasks) <= most:
        return np.arange(len(tasks), dtype=np.intp)
    tasks = np.unique(tasks, return_inverse=True)[1]  # a task without rows here must not be drawn
    sizes = np.bincount(tasks)
    order = random.permutation(len(sizes))
    taken = order[: max(LEAST_GROUPS, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))]
    return np.flatnonzero(np.isin(tasks, taken))


PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0)
"""From the strongest to the weakest."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Labelled rows. A run has a row per prefix at the moment "action", and one row at the moment "end"."""

    matrix: Floats
    """Features, (n, len(FEATURES)), NaN where missing."""
    tools: Sequence[tuple[str, ...]]
    labels: Floats
    weights: Floats
    groups: Places

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Mask) -> Samples:
        tools = [names for names, is_taken in zip(self.tools, rows, strict=True) if is_taken]
        return Samples(self.matrix[rows], tools, self.labels[rows], self.weights[rows], self.groups[rows])

    def predictions(self, train: Mask, test: Mask) -> list[Floats]:
        """Return for each penalty the log-odds of the rows of a fold, as `cross_fit` wants them."""
        seen, others = self.take(train), self.take(test)
        columns = Columns.fit(seen.matrix, seen.tools)
        rows, rest = columns.rows(seen.matrix, seen.tools), columns.rows(others.matrix, others.tools)
        found, fitted = [], None
        for penalty in PENALTIES:
            fitted = fit_logistic(rows, seen.labels, penalty, weights=seen.weights, start=fitted)
            found.append(fitted.logits(rest))
        return found
