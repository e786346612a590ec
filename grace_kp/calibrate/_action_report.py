"""From labelled actions to a learned confidence in single actions, thresholds that keep a promise about them, and what predicts errors.

The steps are those of `calibrate_runs`. An action is predicted, and the thresholds are chosen, by a model that saw no action of its task.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._actions import NO_ARGUMENTS, fit_action_features, recorded_features
from grace_kp.calibrate._assess import predictors_of
from grace_kp.calibrate._calibration import APPROXIMATE, LEARNED, Tested, held_back
from grace_kp.calibrate._facts import document_of, fitted_facts, hash_of
from grace_kp.calibrate._profile import CalibratedProfile
from grace_kp.calibrate._risk import strictest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.calibrate._action_labels import ActionLabels, LabelledAction
    from grace_kp.calibrate._calibration import Calibration
    from grace_kp.calibrate._risk import Promise
    from grace_kp.confidence import ActionFeatures

RATE = "rate of the tool"
_EACH = "an action is right or wrong by itself. One labelled action of each task is drawn at random, because actions of a task are alike."
_PER_TOOL = (
    "the thresholds promise this for each tool alone. At gates, a tool that is not in the table has at each level the strictest threshold of those "
    "that are."
)


def calibrate_actions(
    labelled: ActionLabels, promise: Promise, *, per_tool: bool = False, holdout: float = 0.4, seed: int = 0
) -> Calibration:
    """Fit a confidence in single actions on labelled ones, and choose the thresholds with which it keeps a promise.

    Args:
        labelled: the actions, as `action_labels` returns them. All of them are fitted on; only audited ones enter the promise.
        promise: what the thresholds shall promise, with the unit "action".
        per_tool: whether they promise it for each tool alone. Any other tool has at each level the strictest threshold. Choose it before
            looking at results.
        holdout: share of the tasks on which the thresholds are chosen, as for `calibrate_runs`.
        seed: of all draws. Choose it before looking at results.

    Raises:
        ValueError: an argument cannot be used, or there are too few labels; the message says how many there are.
    """
    if promise.unit != "action":
        raise ValueError('the promise must be about actions: Promise(..., unit="action")')
    actions, rows, left_out = _features_of(labelled)
    if not actions:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise ValueError(
            f"there are no labelled actions{reasons and f' ({reasons})'}; grace.feedback(…, action=…) labels one"
        )
    groups, labels = [each.group for each in actions], np.array([float(each.correct) for each in actions])
    held = held_back(groups, holdout, seed) if holdout else np.ones(len(actions), dtype=bool)
    seen = np.flatnonzero(~held if holdout else held).tolist()
    if not seen:
        raise ValueError(
            f"{'the only task is' if len(set(groups)) == 1 else 'all tasks are'} held back to choose the thresholds; label actions in more tasks, "
            "or use a holdout of 0"
        )
    tested_at = np.flatnonzero(held).tolist()
    fitted, tested = [actions[place] for place in seen], [actions[place] for place in tested_at]
    model = fit_action_features(
        [rows[place] for place in seen],
        labels[seen].tolist(),
        [each.group for each in fitted],
        weights=[each.fit_weight for each in fitted],
        seed=seed,
    )
    confidence = {LEARNED: model.out_of_fold.round(3)}
    if holdout:
        confidence[LEARNED] = np.array([model.predict(rows[place]) for place in tested_at]).round(3)
        confidence[RATE] = np.array([model.rates.get(each.tool, min(model.rates.values())) for each in tested]).round(3)
    traces = list({id(each.trace): each.trace for each in fitted}.values())
    facts = fitted_facts(traces, len({each.group for each in fitted}))
    facts["labels"] = dict(sorted(Counter(each.source for each in fitted).items()))
    model, runs = replace(model, fitted_on=facts), frozenset(filter(None, map(hash_of, traces)))
    found = Tested(
        profile=CalibratedProfile(heads={}, fitted_on=facts, fitted_runs=runs, action=model),
        places=np.flatnonzero(held),
        confidence=confidence,
        labels=labels[held],
        groups=[each.group for each in tested],
        weights=np.array([each.weight for each in tested]),
        seed=seed,
        audited=np.array([each.is_audited for each in tested], dtype=bool),
    )
    sample = {
        "actions": len(actions), "tasks": len(set(groups)), "share_correct": float(labels.mean()), "audited": sum(each.is_audited for each in actions),
        "fitted_actions": len(fitted), "fitted_tasks": len({each.group for each in fitted}), "base_rate": model.reason,
        "sources": dict(Counter(each.source for each in actions)), "left_out": left_out,
    }  # fmt: skip
    notes = [_EACH, *([] if holdout else [APPROXIMATE]), *([_PER_TOOL] if per_tool else [])]
    if model.reason:
        notes.append(f"the confidence in an action is the rate of its tool: {model.reason}.")
    tools = [each.tool for each in tested]
    by_tool, sure = found.tool_thresholds(promise, tools), None
    if per_tool and by_tool:
        sure, own = strictest(by_tool, promise), {name: each.thresholds for name, each in by_tool.items()}
        found = replace(found, profile=found.profile.with_action(replace(model, thresholds=own)))
    calibration = found.calibration(promise, sample, notes, [{"tool": tool} for tool in tools], holdout, sure)
    return replace(calibration, tools=by_tool, predictors=predictors_of(rows, labels, groups, seed))


def _features_of(labelled: ActionLabels) -> tuple[list[LabelledAction], list[ActionFeatures], dict[str, int]]:
    """Return the labelled actions with their features, and what was left out because too little of it is recorded."""
    documents: dict[int, Mapping[str, Any]] = {}
    actions, rows, left_out = [], [], Counter(labelled.left_out)
    for each in labelled.actions:
        if id(each.trace) not in documents:
            documents[id(each.trace)] = document_of(each.trace)
        try:
            rows.append(recorded_features(documents[id(each.trace)], each.position))
            actions.append(each)
        except ValueError:
            left_out[NO_ARGUMENTS] += 1
    return actions, rows, dict(left_out)
