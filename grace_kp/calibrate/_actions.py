"""A learned confidence in single actions: a regression on few features, with an intercept per tool and per model of the agent, and its
fallback, the rate of the tool.

What tools, documents and the agent write can only lower the confidence, and so can what the agent does before an action: features that depend
on it have no positive weight, and no text, message or call makes one of them smaller. Only the user's words, the tool, the form of the call and
the model of the agent may raise it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, field_validator, model_validator

from grace_kp.calibrate._action_labels import ActionLabels, LabelledAction
from grace_kp.calibrate._facts import as_mapping, document_of, fitted_facts, list_in, listed, mapping_in
from grace_kp.calibrate._head import (
    FLAT,
    CalibrationFields,
    Count,
    Finite,
    LogOdds,
    ProfileFileError,
    Share,
    StrictFields,
    tails,
)
from grace_kp.calibrate._labels import unit_of
from grace_kp.calibrate._logistic import MAX_LOGIT, Logistic, cross_fit, fit_calibration, fit_logistic, probability
from grace_kp.calibrate._risk import LEVELS
from grace_kp.calibrate._samples import (
    FOLDS,
    check_lengths,
    check_seed,
    fold_masks,
    group_folds,
    group_numbers,
    json_form,
    units,
    weights_of,
)
from grace_kp.confidence import ACTION_FEATURES, FREE, LOW_WORDS, LOWERING, RecordedRun, Thresholds
from grace_kp.errors import brief
from grace_kp.pages import count_text
from grace_kp.trace import SourceFile, read_decisions

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._samples import Floats, Mask, Places
    from grace_kp.confidence import ActionFeatures
    from grace_kp.trace import ReasoningTrace

    Trace = Mapping[str, Any] | ReasoningTrace

MODELLED = (
    "beside", "unnamed_target", "not_user", "unnamed", "retries", "tool_errors", "errors", "actions", "since_user", "argument_length",
    "confirmed", "user_length", "amount",
)  # fmt: skip
"""Features of the regression. The reads before an action are left out, because an agent can be led to pad with them; the others, because on
recorded actions they predicted other tasks no better, or worse (`benchmarks/action_confidence.py`)."""
LEAST_LABELS, LEAST_OF_EACH, LEAST_GROUPS = 50, 15, 8
"""Fewer labels, labels of the rarer class or tasks are not enough for a regression; then the rate of the tool is the confidence."""
PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0)
SHRINK = 10.0
"""Labels that the mean of all tools counts as in the rate of one."""
CONTEXT = 2.0
"""Spread of the intercepts of the agent's models before any label, in units of that of the other weights."""
MAX_SHOWN = 3
NO_ARGUMENTS = (
    "the step and the arguments of the action are not recorded as a whole, so nothing is known of where they come from"
)


@dataclass(frozen=True, slots=True, eq=False)
class ActionModel:
    """A confidence in actions that was fitted on labelled ones."""

    rates: Mapping[str, float]
    """The share of right actions of each tool, shrunk to that of all. Repeated calls are left out."""
    counts: Mapping[str, int]
    """Number of labelled actions of each tool."""
    models: tuple[str, ...]
    """The models of the agents; "" for an action whose model is not stated."""
    repeat_rate: float
    """The share of right ones among the labelled actions that repeat a call which succeeded, shrunk to 0; no such action gets more."""
    regression: ActionRegression | None
    """None where the rate of the tool is the confidence."""
    gain: float | None
    """By how much its Brier score out of fold was below that of the rate; None where there were too few labels to fit it."""
    reason: str
    """Why the rate is the confidence; empty if it is not."""
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    """Thresholds of single tools; the others have those of the profile."""
    fitted_on: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the fitted runs, as those of a profile; empty for a fit on features."""
    out_of_fold: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    """The confidence of each labelled action by models that did not see its task, of shape (n,). Not saved."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of the labelled actions."""
        return tuple(self.rates)

    def predict(self, action: ActionFeatures) -> float:
        """Return the confidence, 0 to 1. A tool without labels counts as the one that is least often right, and so does a model of the agent."""
        found = self._uncapped(action)
        return min(found, self.repeat_rate) if action.values[_REPEATS] else found

    def mismatches(self, action: ActionFeatures) -> tuple[str, ...]:
        """Return a sentence if there were no labelled actions of the tool, and one if there were none of the agent's model."""
        compared = (("tool", action.tool, self.tools), ("model of the agent", action.model, self.models))
        return tuple(
            f"the {word} is {repr(name)[:80] if name else 'not recorded'}; the confidence in actions was fitted on {listed(known, UNSTATED)}"
            for word, name, known in compared
            if name not in known
        )

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

    def describe(self, action: ActionFeatures) -> str:
        """Return the reason for the confidence in one sentence: the largest contributions, or the rate of the tool."""
        count = sum(self.counts.values())
        shown = [(name, value) for name, value in self.explain(action) if abs(value) >= 0.05][:MAX_SHOWN]
        parts = []
        if self.regression is None:
            is_known = action.tool in self.rates
            parts.append(f"the share of right actions of {action.tool}" if is_known else "the lowest share of a tool")
        for verb, direction in (("raised", 1), ("lowered", -1)):
            own = [f"{name} ({value:+.1f})".replace("-", "−") for name, value in shown if value * direction > 0]
            parts += [f"{verb} by {', '.join(own)}"] if own else []
        return f"Learned from {count:,} actions: {'; '.join(parts) or 'all features are near their averages'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without the predictions out of fold."""
        names = [name for name in self.__slots__ if name != "out_of_fold"]
        content = {name: json_form(getattr(self, name)) for name in names}
        return {**content, "regression": self.regression and self.regression.model_dump(mode="json")}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ActionModel:
        """Read the JSON form. The model predicts exactly what the saved one predicts.

        Raises:
            ProfileFileError: a field is missing or unknown, or a value cannot be used.
        """
        return cls.of_fields(SourceFile(Path("action"), content, ProfileFileError).parse(ActionFields))

    @classmethod
    def of_fields(cls, fields: ActionFields) -> ActionModel:
        """Return the model of checked fields of a file."""
        stated = {name: getattr(fields, name) for name in type(fields).model_fields}
        stated["thresholds"] = {tool: Thresholds.from_dict(found) for tool, found in fields.thresholds.items()}
        return cls(**{**stated, "models": tuple(fields.models)})

    def _uncapped(self, action: ActionFeatures) -> float:
        if self.regression is not None:
            return float(self.regression.predict(_Rows.of([action]))[0])
        return self.rates.get(action.tool, min(self.rates.values()))


UNSTATED = "actions that state none"
_REPEATS = ACTION_FEATURES.index("repeats")


def _log_odds(chance: float) -> float:
    chance = min(max(chance, 1e-9), 1 - 1e-9)
    return math.log(chance / (1 - chance))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Actions as arrays."""

    values: Floats
    """Features, (n, len(ACTION_FEATURES))."""
    tools: NDArray[np.object_]
    models: NDArray[np.object_]

    @classmethod
    def of(cls, actions: Sequence[ActionFeatures]) -> _Rows:
        names = np.array([(action.tool, action.model) for action in actions], dtype=object).reshape(len(actions), 2)
        return cls(np.array([action.values for action in actions], dtype=np.float64), names[:, 0], names[:, 1])

    def take(self, kept: Mask) -> _Rows:
        return _Rows(self.values[kept], self.tools[kept], self.models[kept])

    @property
    def repeats(self) -> Mask:
        """Which actions repeat a call that succeeded. Their confidence is `repeat_rate`; the regression leaves them out."""
        return np.asarray(self.values[:, _REPEATS] > 0)


Figures = Annotated[list[Finite], Field(min_length=5, max_length=5)]
"""Lowest value, highest value, mean, spread and weight of a feature."""


class ActionRegression(StrictFields):
    """Weights of the features that vary, an intercept per tool and per model of the agent, and the calibration of the log-odds."""

    model_config = ConfigDict(frozen=True)

    intercept: LogOdds
    features: dict[str, Figures]
    tools: Annotated[dict[str, LogOdds], Field(min_length=1)]
    models: Annotated[dict[str, LogOdds], Field(min_length=1)]
    calibration: CalibrationFields

    @field_validator("features")
    @classmethod
    def _check(cls, features: dict[str, Figures]) -> dict[str, Figures]:
        for name, (low, high, mean, spread, weight) in features.items():
            if name not in MODELLED:
                raise ValueError(f"{name!r:.80} is not a feature of this version")
            if not (low <= mean <= high and spread > FLAT and abs(weight) <= MAX_LOGIT):
                raise ValueError(f"the range, mean, spread or weight of {name} cannot be used")
            if name in LOWERING and weight > 0:
                raise ValueError(f"{name} may only lower the confidence, so its weight must not be above 0")
        return features

    @classmethod
    def fit(cls, rows: _Rows, labels: Floats, weights: Floats, penalty: float) -> ActionRegression:
        values = rows.values[:, _places(MODELLED)]
        low, high = tails(values)
        values = np.clip(values, low, high)
        figures = np.stack([low, high, values.mean(axis=0), values.std(axis=0)])
        moving = figures[3] > FLAT
        figures, values = figures[:, moving], values[:, moving]
        names = [name for name, moves in zip(MODELLED, moving, strict=True) if moves]
        tools, models = (sorted(set(found.tolist())) for found in (rows.tools, rows.models))
        by_name = [
            rows.tools[:, None] == np.array(tools, dtype=object),
            rows.models[:, None] == np.array(models, dtype=object),
        ]
        columns = np.hstack([(values - figures[2]) / figures[3], by_name[0], CONTEXT * by_name[1]]).astype(np.float64)
        lowers = np.isin(np.arange(columns.shape[1]), [place for place, name in enumerate(names) if name in LOWERING])
        fitted = _fit_lowering(columns, lowers, labels, weights, penalty)
        own, of_tools, of_models = np.split(fitted.weights, (len(names), len(names) + len(tools)))
        return cls(
            intercept=fitted.intercept,
            features=dict(zip(names, np.vstack([figures, own]).T.tolist(), strict=True)),
            tools=dict(zip(tools, of_tools.tolist(), strict=True)),
            models=dict(zip(models, (CONTEXT * of_models).tolist(), strict=True)),
            calibration=CalibrationFields(slope=1.0, offset=0.0),
        )

    def parts(self, rows: _Rows) -> Floats:
        """Return the log-odds that each feature, the tool and the model of the agent add, of shape (n, len(features) + 2)."""
        low, high, mean, spread, weight = np.array(list(self.features.values())).reshape(-1, 5).T
        own = (np.clip(rows.values[:, _places(self.features)], low, high) - mean) / spread * weight
        pairs = zip(rows.tools.tolist(), rows.models.tolist(), strict=True)
        return np.hstack(
            [own, [[_or_lowest(self.tools, tool), _or_lowest(self.models, model)] for tool, model in pairs]]
        )

    def logits(self, rows: _Rows) -> Floats:
        return np.asarray(self.intercept + self.parts(rows).sum(axis=1))

    def predict(self, rows: _Rows) -> Floats:
        return probability(self.calibration.slope * self.logits(rows) + self.calibration.offset)

    def explain(self, action: ActionFeatures) -> dict[str, float]:
        values, high = action.as_dict(), LOWERING | FREE
        words = [(high if values[name] > each[2] else LOW_WORDS)[name] for name, each in self.features.items()]
        parts = (self.calibration.slope * self.parts(_Rows.of([action]))[0]).tolist()
        return dict(zip((*words, "the tool", "the model of the agent"), parts, strict=True))


def _places(names: Iterable[str]) -> list[int]:
    return [ACTION_FEATURES.index(name) for name in names]


def _or_lowest(weights: Mapping[str, float], name: str) -> float:
    return weights[name] if name in weights else min(0.0, *weights.values())


def _fit_lowering(columns: Floats, lowers: Mask, labels: Floats, weights: Floats, penalty: float) -> Logistic:
    """Fit a regression in which the features that can only lower have no positive weight: those that would get one are left out."""
    kept = np.ones(columns.shape[1], dtype=bool)
    start: Logistic | None = None
    while True:
        fitted = fit_logistic(columns[:, kept], labels, penalty, weights=weights, start=start)
        whole = np.zeros(columns.shape[1])
        whole[kept] = fitted.weights
        raising = lowers & (whole > 0)
        if not raising.any():
            return Logistic(fitted.intercept, whole)
        kept &= ~raising
        start = Logistic(fitted.intercept, whole[kept])


class ActionFields(StrictFields):
    """An `ActionModel`, as it is in the file of a profile."""

    rates: Annotated[dict[str, Share], Field(min_length=1)]
    counts: dict[str, Count]
    models: list[str]
    repeat_rate: Share
    regression: ActionRegression | None
    gain: Finite | None
    reason: str
    thresholds: dict[str, dict[str, float | str]]
    fitted_on: dict[str, Any]

    @model_validator(mode="after")
    def _check(self) -> ActionFields:
        if self.counts.keys() != self.rates.keys():
            raise ValueError("counts and rates must be of the same tools")
        regression = self.regression
        if regression and not (
            regression.tools.keys() <= self.rates.keys() and regression.models.keys() <= set(self.models)
        ):
            raise ValueError("the regression must be of the tools and models that are stated")
        if not self.thresholds.keys() <= self.rates.keys():
            raise ValueError("thresholds must be of tools that are stated")
        for tool, stated in self.thresholds.items():
            if set(stated) != set(LEVELS):
                raise ValueError(f"the thresholds of {tool!r:.80} must state every level")
            Thresholds.from_dict(stated)
        return self


def fit_actions(
    runs: ActionLabels | Sequence[Trace],
    labels: Sequence[Mapping[Any, float | None]] | None = None,
    groups: Sequence[Hashable] | None = None,
    *,
    weights: Sequence[float] | None = None,
    seed: int = 0,
) -> ActionModel:
    """Fit a confidence on labelled actions of recorded runs. What was known before each action is read from the trace.

    Args:
        runs: traces, or their dict forms; or the `ActionLabels` that `action_labels` returns, without other arguments. Actions whose
            arguments are not recorded in full are left out, and counted in `fitted_on["left_out"]`.
        labels: for each run a mapping from its actions to whether they were right: bools, numbers from 0 to 1, or None for no label. An
            action is named by the id of its decision, or by its position in `grace.decisions`.
        groups: the task of each run; None takes the task id of the outermost run around it, else its session, else its objective.
        weights: how much the labels of each run count; None counts each once.
        seed: of the folds of the cross-validation.

    Raises:
        ValueError: the lengths differ, an action is not in its run, or a label or weight is unusable.
    """
    entries: list[tuple[Any, str | int, float, float, Hashable]]
    if isinstance(runs, ActionLabels):
        if not labels is groups is weights is None:
            raise ValueError("ActionLabels state labels, groups and weights themselves: pass them alone")
        kept, actions, left_out = features_of(runs)
        entries = [(each.trace, each.position, each.correct, each.fit_weight, each.group) for each in kept]
    else:
        entries, left_out = list(_entries_of([*runs], labels, groups, weights)), {}
        recorded = {id(run): RecordedRun(document_of(run)) for run in {id(run): run for run, *_ in entries}.values()}
        actions = [recorded_features(recorded[id(run)], action) for run, action, *_ in entries]
    traces, _, right, counted, tasks = zip(*entries, strict=True) if entries else [()] * 5
    model = fit_action_features(actions, right, tasks, weights=counted, seed=seed)
    facts = fitted_facts({id(run): run for run in traces}.values(), len(set(tasks)))
    return replace(model, fitted_on={**facts, **({"left_out": left_out} if left_out else {})})


def _entries_of(
    runs: Sequence[Trace], labels: Sequence[Any] | None, groups: Sequence[Hashable] | None, weights: Any
) -> Iterator[tuple[Any, Any, float, float, Hashable]]:
    """Yield run, action, label, weight and task of each labelled action."""
    labels, weights = labels or [None] * len(runs), [1.0] * len(runs) if weights is None else weights
    check_lengths("run", len(runs), labels=labels, groups=groups, weights=weights)
    known = {str(run.get("id") if isinstance(run, Mapping) else getattr(run, "id", "")): run for run in runs}
    for place, (run, stated, weight) in enumerate(zip(runs, labels, weights, strict=True)):
        if not isinstance(stated, Mapping) or not (hasattr(run, "get") or hasattr(run, "to_dict")):
            raise ValueError(
                f"run {place} must be a trace with a mapping from actions to labels (got {brief(run)} and {brief(stated)})"
            )
        grace = as_mapping(run.get("grace") if isinstance(run, Mapping) else run.grace)
        # A program that runs again decides on a call again. The last decision states its outcome.
        names: dict[str, Any] = {
            str(as_mapping(entry).get("id")): at for at, entry in enumerate(list_in(grace, "decisions"))
        }
        if len({names.get(action, action) for action in stated}) < len(stated):
            raise ValueError(f"run {place} names an action twice, by its id and by its position")
        task = unit_of(run, known.get) if groups is None else groups[place]
        for action, label in stated.items():
            if label is not None:
                key: Any = names.get(action, action)
                yield run, key, label, weight, task


def features_of(labelled: ActionLabels) -> tuple[list[LabelledAction], list[ActionFeatures], dict[str, int]]:
    """Return the labelled actions with their features, and what was left out, also because too little of it is recorded.

    Raises:
        TypeError: these are not `ActionLabels`.
    """
    if not isinstance(labelled, ActionLabels):
        raise TypeError(f"labelled must be what action_labels returns (got {type(labelled).__name__})")
    recorded: dict[int, RecordedRun] = {}
    actions: list[LabelledAction] = []
    rows: list[ActionFeatures] = []
    left_out = Counter(labelled.left_out)
    for each in labelled.actions:
        if id(each.trace) not in recorded:
            recorded[id(each.trace)] = RecordedRun(document_of(each.trace))
        try:
            rows.append(recorded_features(recorded[id(each.trace)], each.position))
            actions.append(each)
        except ValueError:
            left_out[NO_ARGUMENTS] += 1
    return actions, rows, dict(left_out)


def recorded_features(run: RecordedRun | Mapping[str, Any], action: str | int) -> ActionFeatures:
    """Return the features of a recorded action, which its decision's id or position names, as they were before it.

    Args:
        run: a document; or the same `RecordedRun` for one action after another, which then is read once.

    Raises:
        ValueError: the trace has no such decision, or it does not hold the step and arguments of it.
    """
    run = run if isinstance(run, RecordedRun) else RecordedRun(run)
    document = run.document
    entries = list_in(mapping_in(document, "grace"), "decisions")
    for place, entry in enumerate(entries):
        for record in read_decisions([entry]) if action in (place, as_mapping(entry).get("id")) else ():
            if record.step is not None and not record.hidden and isinstance(entry.get("arguments"), Mapping):
                return run.before(record.step, place).features(record.action, dict(record.arguments))
    raise ValueError(
        f"the run {brief(document.get('id'))} has no action {action!r:.80} whose arguments are recorded as a whole; it has {len(entries):,}, "
        "numbered from 0"
    )


def fit_action_features(
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
    check_seed(seed)
    right = units("labels", labels)
    check_lengths("action", len(actions), labels=right, groups=groups)
    if not len(actions):
        raise ValueError("there are no labelled actions to fit a confidence on")
    counted = np.ones(len(right)) if weights is None else weights_of(weights, len(right))
    tasks = group_numbers("groups", groups, len(right))[0]
    rows, folds = _Rows.of(actions), group_folds(tasks, right, FOLDS, np.random.default_rng(seed))
    samples, first = _Samples(rows, right, counted, folds), ~rows.repeats
    count, rarer = int(first.sum()), min(float(right[first].sum()), float((1 - right[first]).sum()))
    names = len(set(tasks[first].tolist()))
    by_rate = samples.by_rate()
    if count < LEAST_LABELS or rarer < LEAST_OF_EACH or names < LEAST_GROUPS:
        reason = (
            f"{count_text(count, 'label')} from {count_text(names, 'task')}, {rarer:g} of the rarer class; a regression needs at least "
            f"{LEAST_LABELS} labels, {LEAST_GROUPS} tasks and {LEAST_OF_EACH} of the rarer class"
        )
        return samples.model(None, None, reason, by_rate)

    def predictions(train: Mask, test: Mask) -> list[Floats]:
        seen, others = train & first, rows.take(test)
        own = rows.take(seen), right[seen], counted[seen]
        return [ActionRegression.fit(*own, penalty).logits(others) for penalty in PENALTIES]

    penalty, logits, confidence = cross_fit(predictions, PENALTIES, folds, right, counted * first)
    confidence = samples.cap(confidence)
    gain = float(np.average((by_rate - right) ** 2 - (confidence - right) ** 2, weights=counted))
    if gain <= 0:
        reason = f"out of fold its Brier score is not below that of the tools' rates (by {gain:.4f})"
        return samples.model(None, gain, reason, by_rate)
    slope, offset = fit_calibration(logits[first], right[first], counted[first])
    regression = ActionRegression.fit(rows.take(first), right[first], counted[first], penalty)
    calibrated = regression.model_copy(update={"calibration": CalibrationFields(slope=slope, offset=offset)})
    return samples.model(calibrated, gain, "", confidence)


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    rows: _Rows
    labels: Floats
    weights: Floats
    folds: Places

    def rates(self, kept: Mask) -> dict[str, float]:
        """Return the rate of each tool among some actions; where only repeated calls are known of one, the mean of all."""
        weights = self.weights * (kept & ~self.rows.repeats)
        mean = float(weights @ self.labels / weights.sum()) if weights.any() else self.repeat_rate(kept)
        found = {}
        for tool in dict.fromkeys(self.rows.tools[kept].tolist()):
            own = weights * (self.rows.tools == tool)
            found[tool] = (float(own @ self.labels) + SHRINK * mean) / (float(own.sum()) + SHRINK)
        return found

    def by_rate(self) -> Floats:
        confidence = np.zeros(len(self.labels))
        for test in fold_masks(self.folds):
            rates = self.rates(~test)
            confidence[test] = [rates.get(tool, min(rates.values())) for tool in self.rows.tools[test].tolist()]
        return self.cap(confidence)

    def repeat_rate(self, kept: Mask) -> float:
        weights = self.weights * (kept & self.rows.repeats)
        return float(weights @ self.labels) / (float(weights.sum()) + SHRINK)

    def cap(self, confidence: Floats) -> Floats:
        """Return the confidence of each action, but for a repeated call at most the rate of those in other tasks."""
        capped = confidence.copy()
        for test in fold_masks(self.folds):
            repeats = test & self.rows.repeats
            capped[repeats] = np.minimum(confidence[repeats], self.repeat_rate(~test))
        return capped

    def model(
        self, regression: ActionRegression | None, gain: float | None, reason: str, confidence: Floats
    ) -> ActionModel:
        whole = np.ones(len(self.labels), dtype=bool)
        models = tuple(sorted(set(self.rows.models.tolist())))
        counts = dict(Counter(self.rows.tools.tolist()))
        return ActionModel(
            self.rates(whole), counts, models, self.repeat_rate(whole), regression, gain, reason, out_of_fold=confidence
        )
