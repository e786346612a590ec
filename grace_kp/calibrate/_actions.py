"""A learned confidence in single actions: the features of an action, a regression with an intercept per tool, and its fallback, the rate of the tool.

What tools, documents and the agent write can only lower the confidence: features that depend on it have no positive weight, and no text or
message makes one of them smaller. Only the user's words, the tool, the form of the call and successful reads before it may raise it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from grace_kp.calibrate._fit import FOLDS, group_folds
from grace_kp.calibrate._logistic import Logistic, fit_calibration, fit_logistic, probability
from grace_kp.calibrate._samples import group_numbers, units, weights_of
from grace_kp.calibrate._wording import count_phrases, plain
from grace_kp.confidence import ProvenanceIndex, leaves_of, normal_form, words_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._samples import Floats
    from grace_kp.confidence import ActionAlarm, ValuePlaces

    Integers = NDArray[np.intp]

# Each feature with the words for its presence or a high value. The first group can only lower the confidence.
LOWERING = {
    "beside": "a value beside instructions",
    "unnamed_target": "an identifier or address that neither the user nor the policy named",
    "not_user": "values that the user did not name",
    "unnamed": "a tool that the user's words do not name",
    "unread": "a target that no earlier call used",
    "few_reads": "few different reads before",
    "repeats": "the same call already succeeded",
    "retries": "the same call already failed",
    "repeated_calls": "calls repeated before",
    "tool_errors": "errors of this tool",
    "errors": "errors before",
    "actions": "actions before",
    "tool_actions": "actions of this tool before",
    "parallel": "several calls at once",
    "since_user": "calls since the user spoke",
    "position": "a long run",
    "hedging": "hedging of the agent",
    "refusal": "words of refusal",
    "apologies": "apologies of the agent",
    "message_length": "a long message of the agent",
    "argument_length": "long arguments",
    "values": "many arguments",
    "schema_errors": "arguments that do not fit the schema",
}
FREE = {
    "confirmed": "a confirmation by the user",
    "user_turns": "several messages of the user",
    "user_length": "many words of the user",
    "last_user_length": "a long last message of the user",
    "amount": "a large amount",
}
ACTION_FEATURES = (*LOWERING, *FREE)
_YES = re.compile(
    r"\b(?:yes|yeah|yep|sure|confirm(?:ed)?|correct|go ahead|proceed|please do|ok|okay|agreed?|ja|genau|oui|sí|si|claro|sim)\b|はい|お願い|是的|好的|확인|네"
)
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_A-Za-z]+")
ENOUGH_READS = 6
"""Different reads before an action beyond which more do not count."""
MAX_AMOUNT = 1e12
"""Larger numbers are not amounts."""


@dataclass(frozen=True, slots=True)
class ActionFeatures:
    """What is known before one action."""

    tool: str
    values: tuple[float, ...]
    """In the order of `ACTION_FEATURES`."""
    alarms: tuple[ActionAlarm, ...] = ()
    places: tuple[ValuePlaces, ...] = ()

    def as_dict(self) -> dict[str, float]:
        """Return the values by name."""
        return dict(zip(ACTION_FEATURES, self.values, strict=True))


@dataclass(slots=True)
class ActionHistory:
    """What happened in a run so far. Add everything in its order, and ask for the features of an action before it is made."""

    index: ProvenanceIndex = field(default_factory=ProvenanceIndex)
    _user: list[str] = field(default_factory=list)
    _longest: int = 0
    """Characters of the agent's longest message."""
    _phrases: Counter[str] = field(default_factory=Counter)
    _since_user: int = 0
    _steps: int = 0
    _errors: Counter[str] = field(default_factory=Counter)
    _actions: Counter[str] = field(default_factory=Counter)
    _calls: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _repeated: int = 0
    _used: set[str] = field(default_factory=set)
    """Values of arguments of calls that succeeded."""
    _reads: set[str] = field(default_factory=set)
    """Calls that succeeded and were no actions."""

    def add_user(self, text: str, *, step: int = -1, is_complete: bool = True) -> None:
        """Add words that the program declares as a person's."""
        self._user.append(self.index.add_user(text, step=step, is_complete=is_complete))
        self._since_user = 0
        self._steps += 1

    def add_agent(self, text: str) -> None:
        """Add a message or thought of the agent."""
        self._longest = max(self._longest, len(text))
        words = plain(text)
        for kind in ("hedges", "refusals", "apologies"):
            self._phrases[kind] += count_phrases(words, kind)
        self._steps += 1

    def add_call(
        self,
        tool: str,
        arguments: object,
        *,
        step: int = -1,
        has_succeeded: bool | None = None,
        is_action: bool = False,
    ) -> None:
        """Add an earlier call, before its result.

        Args:
            tool: the tool.
            arguments: the arguments, as JSON values.
            step: the number of its step.
            has_succeeded: None if its result is not known.
            is_action: whether it changes something, rather than reading.
        """
        self.index.add_call(tool, arguments, step=step, has_succeeded=has_succeeded)
        leaves = [normal_form(leaf) for _, leaf, _ in leaves_of(arguments, [])]
        call = f"{tool} {leaves}"
        self._repeated += call in self._calls
        self._calls.add(call)
        self._steps += 1
        self._since_user += 1
        if has_succeeded is False:
            self._errors[tool] += 1
            self._failed.add(call)
            return
        self._used.update(leaves)
        if is_action:
            self._actions[tool] += 1
        elif has_succeeded:
            self._reads.add(call)

    def add_result(
        self, tool: str, result: object, *, step: int = -1, has_failed: bool = False, is_complete: bool = True
    ) -> None:
        """Add what a tool returned."""
        self.index.add_result(tool, result, step=step, has_failed=has_failed, is_complete=is_complete)
        self._steps += 1

    def features(self, tool: str, arguments: object, *, parallel: int = 1, schema_errors: int = 0) -> ActionFeatures:
        """Return the features of an action that is about to be made.

        Args:
            tool: the tool.
            arguments: the arguments, as JSON values.
            parallel: number of calls that the agent asked for together with this one, and this one.
            schema_errors: number of required parameters that are missing and of unknown ones.
        """
        alarms, places = self.index.examine(tool, arguments)
        leaves = [(normal_form(leaf), is_number) for _, leaf, is_number in leaves_of(arguments, [])]
        shaped = list(zip(places, leaves, strict=False))
        weighty = [each for each in places if each.shape != "common"]
        targets = [(each, leaf) for each, (leaf, _) in shaped if each.shape in {"identifier", "address"}]
        amounts = [abs(float(leaf)) for each, (leaf, is_number) in shaped if is_number and each.shape != "identifier"]
        amount = max((value for value in amounts if value < MAX_AMOUNT), default=0.0)
        last = self._user[-1] if self._user else ""
        user_words = normal_form("\n".join(self._user))
        found = {
            "beside": any(each.is_beside and each.shape != "common" and each.kind != "user" for each in places),
            "unnamed_target": any(each.kind not in {"user", "policy", "schema"} for each, _ in targets),
            "not_user": sum(each.kind != "user" for each in weighty) / max(1, len(weighty)),
            "unnamed": not _names_tool(tool, set(words_of(user_words))),
            "unread": any(leaf not in self._used for _, leaf in targets),
            "repeats": any(alarm.name == "repeat" for alarm in alarms),
            "retries": f"{tool} {[leaf for leaf, _ in leaves]}" in self._failed,
            "few_reads": math.log1p(ENOUGH_READS) - math.log1p(min(len(self._reads), ENOUGH_READS)),
            "confirmed": bool(_YES.search(normal_form(last))),
        }
        counts = {
            "tool_errors": self._errors[tool],
            "errors": self._errors.total(),
            "actions": self._actions.total(),
            "tool_actions": self._actions[tool],
            "repeated_calls": self._repeated,
            "parallel": parallel - 1,
            "since_user": self._since_user,
            "position": self._steps,
            "hedging": self._phrases["hedges"],
            "refusal": self._phrases["refusals"],
            "apologies": self._phrases["apologies"],
            "message_length": self._longest,
            "argument_length": sum(len(leaf) for leaf, _ in leaves),
            "values": len(leaves),
            "schema_errors": schema_errors,
            "user_turns": len(self._user),
            "user_length": len(user_words),
            "last_user_length": len(last),
            "amount": amount,
        }
        found |= {name: math.log1p(count) for name, count in counts.items()}
        return ActionFeatures(tool, tuple(float(found[name]) for name in ACTION_FEATURES), alarms, places)


def _names_tool(tool: str, words: set[str]) -> bool:
    """Return whether the user's words name what a tool acts on: "hotel" for `reserve_hotel`, its plural or singular."""
    parts = [part.casefold() for part in _NAME_PARTS.findall(tool)]
    return any({part, f"{part}s", part.removesuffix("s")} & words for part in parts[1:] or parts)


LEAST_LABELS, LEAST_OF_EACH, LEAST_GROUPS = 50, 15, 8
"""Fewer labels, labels of the rarer class or tasks are not enough for a regression; then the rate of the tool is the confidence."""
PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0)
SHRINK = 10.0
"""Labels that the mean of all tools counts as in the rate of one."""
TAIL = 0.05
"""Share of the actions at each end of a feature whose values count as the value where that end begins."""


@dataclass(frozen=True, slots=True, eq=False)
class ActionModel:
    """A confidence in actions that was fitted on labelled ones."""

    rates: dict[str, float]
    """The share of right actions of each tool, shrunk to that of all."""
    counts: dict[str, int]
    """Number of labelled actions of each tool."""
    repeat_rate: float
    """The share of right ones among the labelled actions that repeat a call which succeeded, shrunk to 0; no such action gets more."""
    regression: _Regression | None
    """None where the rate of the tool is the confidence."""
    gain: float | None
    """By how much its Brier score out of fold was below that of the rate; None where there were too few labels to fit it."""
    reason: str
    """Why the rate is the confidence; empty if it is not."""
    out_of_fold: Floats
    """The confidence of each labelled action by models that did not see its task, of shape (n,)."""

    def predict(self, action: ActionFeatures) -> float:
        """Return the confidence, 0 to 1. A tool without labels counts as the one that is least often right."""
        found = self._uncapped(action)
        return min(found, self.repeat_rate) if action.values[_REPEATS] else found

    def knows(self, tool: str) -> bool:
        """Return whether the tool was among the labelled ones; a gate treats any other as a mismatch."""
        return tool in self.rates

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

    def _uncapped(self, action: ActionFeatures) -> float:
        if self.regression is not None:
            return float(self.regression.predict([action])[0])
        return self.rates.get(action.tool, min(self.rates.values()))


_REPEATS = ACTION_FEATURES.index("repeats")


def _log_odds(chance: float) -> float:
    chance = min(max(chance, 1e-9), 1 - 1e-9)
    return math.log(chance / (1 - chance))


@dataclass(frozen=True, slots=True, eq=False)
class _Regression:
    """Columns of the features that vary, an intercept per tool, the weights, and the calibration of the log-odds."""

    tools: tuple[str, ...]
    figures: Floats
    """Rows low, high, mean and spread of each feature."""
    fitted: Logistic
    slope: float = 1.0
    offset: float = 0.0

    @classmethod
    def fit(cls, actions: Sequence[ActionFeatures], labels: Floats, weights: Floats, penalty: float) -> _Regression:
        values = np.array([action.values for action in actions])
        low, high = np.quantile(values, (TAIL, 1 - TAIL), axis=0)
        # In a rare column nearly all values are equal, and the others are all in the tail.
        rare = high - low <= 0
        low, high = np.where(rare, values.min(axis=0), low), np.where(rare, values.max(axis=0), high)
        values = np.clip(values, low, high)
        spread = values.std(axis=0)
        figures = np.stack([low, high, values.mean(axis=0), np.where(spread > 0, spread, np.inf)])
        blank = cls(tuple(sorted({action.tool for action in actions})), figures, Logistic(0.0, np.zeros(0)))
        return replace(blank, fitted=_fit_lowering(blank.columns(actions), labels, weights, penalty))

    def columns(self, actions: Sequence[ActionFeatures]) -> Floats:
        """Return the columns of actions; those of the tools are all 0 for a tool without labels."""
        low, high, mean, spread = self.figures
        values = (np.clip(np.array([action.values for action in actions]), low, high) - mean) / spread
        return np.hstack([values, [[float(action.tool == tool) for tool in self.tools] for action in actions]])

    def logits(self, actions: Sequence[ActionFeatures]) -> Floats:
        unseen = np.array([action.tool not in self.tools for action in actions])
        lowest = self.fitted.weights[len(ACTION_FEATURES) :].min()
        return self.fitted.logits(self.columns(actions)) + unseen * min(0.0, float(lowest))

    def predict(self, actions: Sequence[ActionFeatures]) -> Floats:
        return probability(self.slope * self.logits(actions) + self.offset)

    def explain(self, action: ActionFeatures) -> dict[str, float]:
        count = len(ACTION_FEATURES)
        parts = self.slope * self.columns([action])[0, :count] * self.fitted.weights[:count]
        total = self.slope * (float(self.logits([action])[0]) - self.fitted.intercept)
        named = dict(zip((LOWERING | FREE).values(), parts.tolist(), strict=True))
        return {**named, "the tool": total - float(parts.sum())}


def _fit_lowering(columns: Floats, labels: Floats, weights: Floats, penalty: float) -> Logistic:
    """Fit a regression in which the features that can only lower have no positive weight: those that would get one are left out."""
    kept = np.ones(columns.shape[1], dtype=bool)
    start: Logistic | None = None
    while True:
        fitted = fit_logistic(columns[:, kept], labels, penalty, weights=weights, start=start)
        whole = np.zeros(columns.shape[1])
        whole[kept] = fitted.weights
        raising = whole > 0
        raising[len(LOWERING) :] = False
        if not raising.any():
            return Logistic(fitted.intercept, whole)
        kept &= ~raising
        start = Logistic(fitted.intercept, whole[kept])


def fit_actions(
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
    right = units("labels", labels)
    for name, entries in (("labels", right), ("groups", groups)):
        if len(entries) != len(actions):
            raise ValueError(f"there are {len(actions):,} actions and {len(entries):,} {name}; each action needs one")
    if not len(actions):
        raise ValueError("there are no labelled actions to fit a confidence on")
    counted = np.ones(len(right)) if weights is None else weights_of(weights, len(right))
    tasks, names = group_numbers("groups", groups, len(right))
    samples = _Samples(actions, right, counted, tasks)
    rarer = min(float(right.sum()), float((1 - right).sum()))
    folds = group_folds(tasks, right, FOLDS, np.random.default_rng(seed))
    by_rate = samples.by_rate(folds)
    if len(right) < LEAST_LABELS or rarer < LEAST_OF_EACH or len(names) < LEAST_GROUPS:
        reason = (
            f"there are {len(right):,} labels of {len(names):,} tasks, {rarer:g} of the rarer class; a regression needs {LEAST_LABELS}, "
            f"{LEAST_GROUPS} and {LEAST_OF_EACH}"
        )
        return samples.model(None, None, reason, by_rate)
    penalty, logits = samples.choose_penalty(folds)
    confidence = np.zeros(len(right))
    for test in _masks(folds):
        slope, offset = fit_calibration(logits[~test], right[~test], counted[~test])
        confidence[test] = probability(slope * logits[test] + offset)
    confidence = samples.cap(confidence, folds)
    gains = counted * ((by_rate - right) ** 2 - (confidence - right) ** 2)
    per_task = np.bincount(tasks, gains)
    gain = float(gains.sum() / counted.sum())
    deviation = float(np.sqrt(np.sum((per_task - per_task.mean()) ** 2)))
    error = math.sqrt(len(names) / (len(names) - 1)) * deviation / float(counted.sum())
    if gain <= 0:
        reason = f"out of fold its Brier score is not below that of the tools' rates (by {gain:.4f}, standard error {error:.4f})"
        return samples.model(None, gain, reason, by_rate)
    slope, offset = fit_calibration(logits, right, counted)
    regression = replace(_Regression.fit(actions, right, counted, penalty), slope=slope, offset=offset)
    return samples.model(regression, gain, "", confidence)


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    actions: Sequence[ActionFeatures]
    labels: Floats
    weights: Floats
    tasks: Integers

    def rates(self, kept: NDArray[np.bool_]) -> tuple[dict[str, float], float]:
        """Return the rate of each tool among some actions, and the lowest, which a tool without labels gets."""
        mean = float(np.average(self.labels[kept], weights=self.weights[kept]))
        right: dict[str, float] = {}
        total: dict[str, float] = {}
        for place in np.flatnonzero(kept).tolist():
            tool, weight = self.actions[place].tool, float(self.weights[place])
            right[tool] = right.get(tool, 0.0) + weight * float(self.labels[place])
            total[tool] = total.get(tool, 0.0) + weight
        found = {tool: (right[tool] + SHRINK * mean) / (total[tool] + SHRINK) for tool in total}
        return found, min(found.values())

    def by_rate(self, folds: Integers) -> Floats:
        confidence = np.zeros(len(self.labels))
        for test in _masks(folds):
            rates, lowest = self.rates(~test)
            confidence[test] = [rates.get(self.actions[place].tool, lowest) for place in np.flatnonzero(test).tolist()]
        return self.cap(confidence, folds)

    def repeat_rate(self, kept: NDArray[np.bool_]) -> float:
        repeats = kept & self.repeats
        return float(self.weights[repeats] @ self.labels[repeats]) / (float(self.weights[repeats].sum()) + SHRINK)

    def cap(self, confidence: Floats, folds: Integers) -> Floats:
        """Return the confidence of each action, but for a repeated call at most the rate of those in other tasks."""
        capped = confidence.copy()
        for test in _masks(folds):
            repeats = test & self.repeats
            capped[repeats] = np.minimum(confidence[repeats], self.repeat_rate(~test))
        return capped

    @property
    def repeats(self) -> NDArray[np.bool_]:
        return np.array([action.values[_REPEATS] > 0 for action in self.actions])

    def choose_penalty(self, folds: Integers) -> tuple[float, Floats]:
        """Return the penalty with the least log-loss out of fold, and its log-odds."""
        logits = np.zeros((len(PENALTIES), len(self.labels)))
        for test in _masks(folds):
            seen = [self.actions[place] for place in np.flatnonzero(~test).tolist()]
            others = [self.actions[place] for place in np.flatnonzero(test).tolist()]
            for row, penalty in zip(logits, PENALTIES, strict=True):
                row[test] = _Regression.fit(seen, self.labels[~test], self.weights[~test], penalty).logits(others)
        losses = (np.logaddexp(0.0, logits) - self.labels * logits) @ self.weights
        best = int(np.argmin(losses))
        return PENALTIES[best], logits[best]

    def model(self, regression: _Regression | None, gain: float | None, reason: str, confidence: Floats) -> ActionModel:
        whole = np.ones(len(self.labels), dtype=bool)
        counts = dict(Counter(action.tool for action in self.actions))
        return ActionModel(self.rates(whole)[0], counts, self.repeat_rate(whole), regression, gain, reason, confidence)


def _masks(folds: Integers) -> Iterator[NDArray[np.bool_]]:
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        if not test.all():
            yield test
