"""From labelled runs to a learned profile whose thresholds keep a promise, and to the figures that a report shows.

The profile is fitted on some of the tasks. Its thresholds are chosen on what exactly this profile predicts for the others, so that the
promise holds for the profile that is saved. Two baselines, which a learned confidence must beat, are assessed on the same runs: the formula
`grace`, and a regression on the number of steps alone.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._actions import features_of, fit_action_features
from grace_kp.calibrate._assess import LEAST_CLUSTERS, assess, predictors_of, threshold_counts
from grace_kp.calibrate._facts import facts_of, fitted_facts, hash_of, list_in, mapping_in
from grace_kp.calibrate._features import FEATURES, Moment, features, finished_calls, transcript_of
from grace_kp.calibrate._fit import PENALTIES, action_places, fit
from grace_kp.calibrate._gated import judged_factors
from grace_kp.calibrate._head import Columns, matrix_of
from grace_kp.calibrate._labels import Labels
from grace_kp.calibrate._logistic import fit_logistic, probability
from grace_kp.calibrate._profile import CalibratedProfile
from grace_kp.calibrate._risk import OVERALL, Promise, allowed_thresholds, strictest, tool_thresholds
from grace_kp.calibrate._samples import (
    FOLDS,
    check_seed,
    fold_masks,
    group_folds,
    group_numbers,
    independent,
    json_form,
)
from grace_kp.confidence import PROFILES, Thresholds
from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._action_labels import ActionLabels
    from grace_kp.calibrate._assess import Assessment, Predictor
    from grace_kp.calibrate._features import Features
    from grace_kp.calibrate._risk import PromisedLevel, RiskThresholds
    from grace_kp.calibrate._samples import Floats, Mask

    Curve = tuple[tuple[float, float], ...]


LEARNED, FORMULA, LENGTH = "learned", "formula grace", "run length"
MAX_GROUPS = 12
"""Sources, models or domains that are assessed on their own; the rest is assessed together."""
MAX_NAME = 60
OTHERS = "all others"
CONFIDENCES = 1_000
"""Confidences are multiples of a thousandth."""
_ACTIONS = (
    "an action counts as wrong if its run turned out wrong. One action of each run is drawn at random, because a gate meets early actions "
    "as well as late ones."
)
APPROXIMATE = (
    f"the promise is approximate: no tasks were held back, so the thresholds rest on the predictions of {FOLDS} other profiles, each of "
    "them fitted without the tasks that it predicts."
)
RATE = "rate of the tool"
_EACH = "an action is right or wrong by itself. One labelled action of each task is drawn at random, because actions of a task are alike."
_PER_TOOL = (
    "the thresholds promise this for each tool alone. At gates, a tool that is not in the table has at each level the strictest threshold of those "
    "that are."
)
_ALIKE = "all runs have the same task, or record none, so each run counts as a separate task."


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A profile with the thresholds that keep a promise, and what they rest on."""

    profile: CalibratedProfile
    """With thresholds and promise, to be saved."""
    promise: Promise
    thresholds: RiskThresholds
    assessments: Mapping[str, Assessment]
    """How good three confidences are on runs that they were not fitted on: learned, formula `grace`, and run length alone."""
    by_group: Mapping[str, Mapping[str, Assessment]]
    """The learned confidence by source, model and domain, where there are several."""
    curves: Mapping[str, Curve]
    """For the learned confidence and the formula: share of the tested runs that act, and share of errors, from strict to mild."""
    sample: Mapping[str, Any]
    """Counts of the runs that were labelled, fitted on, assessed, tested and left out."""
    notes: tuple[str, ...]
    """Caveats, a sentence or two each."""
    tools: Mapping[str, RiskThresholds] = field(default_factory=dict)
    """For labelled actions, the thresholds of each tool alone, whose promises hold together. Gates use them only if they were asked for."""
    predictors: tuple[Predictor, ...] = ()
    """For labelled actions, what predicts errors, the clearest first."""

    @property
    def nouns(self) -> str:
        """What is labelled: runs or actions."""
        return f"{self.promise.unit}s"

    @property
    def is_approximate(self) -> bool:
        """Whether no tasks were held back, so that the promise is not exact."""
        return not self.sample["holdout"]

    @property
    def objections(self) -> tuple[str, ...]:
        """Why not to use this profile; empty if nothing is known against it."""
        learned, found = self.assessments[LEARNED], []
        interval = learned.intervals.get("auroc")
        if interval is None and learned.auroc == 1 and self.sample["assessed_tasks"] >= LEAST_CLUSTERS:
            interval = (1.0, 1.0)  # all resamples agree
        # A confidence that is the rate of the tool is not meant to tell actions of one tool apart.
        if not self.sample.get("base_rate") and (interval is None or interval[0] <= 0.5):
            problem = "its AUROC has no interval on these labels"
            if interval is not None:
                where = "includes" if interval[1] >= 0.5 else "is below"
                problem = f"the interval of its AUROC, {interval[0]:.2f} to {interval[1]:.2f}, {where} 0.5"
            found.append(f"{problem}, so it may not tell right {self.nouns} from wrong ones")
        if not any(level.coverage for level in self.levels):
            found.append("every level is never, so gates would escalate every action")
        return tuple(found)

    @property
    def levels(self) -> tuple[PromisedLevel, ...]:
        """The promised levels, from silent to confirm."""
        return self.thresholds.levels

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without the curves."""
        return {
            **{name: json_form(getattr(self, name)) for name in ("sample", "assessments", "by_group")},
            **self.thresholds.to_dict(),
            "moment": self.promise.moment,
            "approximate": self.is_approximate,
            "needed": self.promise.needed,
            "notes": list(self.notes),
            "objections": list(self.objections),
            **({"tools": json_form(self.tools), "predictors": json_form(self.predictors)} if self.tools else {}),
        }


def lacking_labels(
    labelled: Labels | ActionLabels, promise: Promise, *, holdout: float = 0.4, seed: int = 0
) -> tuple[str, ...]:
    """Return a sentence for each level that the labels cannot reach, even if none of them were an error; before anything is fitted.

    Args:
        labelled: the runs, as for `calibrate_runs`, or the actions, as for `calibrate_actions`.
        promise: what the thresholds shall promise.
        holdout: as for `calibrate_runs`, as is the seed.
    """
    if isinstance(labelled, Labels):
        groups, labels = _tasks(labelled)[0], labelled.labels
    else:
        groups, labels = labelled.groups, [each.correct if each.is_audited else math.nan for each in labelled.actions]
    tested = held_back(groups, holdout, seed) if holdout else np.ones(len(groups), dtype=bool)
    usable = {
        group for group, label, is_tested in zip(groups, labels, tested, strict=True) if is_tested and label in (0, 1)
    }
    return promise.lacking(len(usable))


def calibrate_runs(labelled: Labels, promise: Promise, *, holdout: float = 0.4, seed: int = 0) -> Calibration:
    """Fit a confidence on labelled runs, and choose the thresholds with which it keeps a promise.

    Args:
        labelled: the runs, as `labels` returns them.
        promise: what the thresholds shall promise.
        holdout: share of the tasks on which the thresholds are chosen; the profile is fitted on the others. 0 fits on all tasks and chooses
            the thresholds by cross-validation, and the promise is then approximate.
        seed: of all draws. Choose it before looking at results.

    Raises:
        ValueError: an argument cannot be used, or there are too few labels; the message says how many there are.
    """
    groups, notes = _tasks(labelled)
    held = held_back(groups, holdout, seed)
    if not holdout:
        notes.append(APPROXIMATE)
    if promise.moment == "action":
        notes.append(_ACTIONS)
    try:
        found = predict_others(labelled, groups, promise.moment, held, seed)
    except ValueError as error:
        split = (
            f"of {len(groups):,} labelled runs, {int(held.sum()):,} are held back to choose the thresholds; a holdout of 0 holds none back"
            if holdout
            else f"of all {len(groups):,} labelled runs, each fold of the cross-validation leaves out some"
        )
        raise ValueError(f"{error} ({split})") from None
    sample = {
        "runs": len(groups), "tasks": len(set(groups)), "share_correct": float(np.mean(labelled.labels)),
        "fitted_runs": found.profile.fitted_on["runs"], "fitted_tasks": found.profile.fitted_on["tasks"],
        "sources": dict(Counter(labelled.sources)), "left_out": dict(labelled.left_out),
    }  # fmt: skip
    return found.calibration(promise, sample, notes, holdout)


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """A profile, and labelled runs or actions that it was not fitted on, with what it and the baselines predict for them."""

    profile: CalibratedProfile
    places: NDArray[np.intp]
    """The places of the tested runs among the labelled ones."""
    confidence: Mapping[str, Floats]
    """By name: learned, formula `grace`, run length; each of shape (n,), rounded to three decimals as in traces."""
    labels: Floats
    groups: list[Any]
    weights: Floats
    seed: int
    kinds: Sequence[Mapping[str, str]]
    """The kinds of each of the tested by name, such as its source, to be assessed on their own, too."""
    audited: Mask
    """Which labels may enter a promise."""

    @property
    def inverse(self) -> Floats | None:
        """The weights; None where they are all the same."""
        return None if (self.weights == self.weights[0]).all() else self.weights

    def calibration(
        self,
        promise: Promise,
        sample: dict[str, Any],
        notes: Sequence[str],
        holdout: float,
        sure: RiskThresholds | None = None,
    ) -> Calibration:
        """Return the calibration of the profile; `sure` are its thresholds, by default those for all of the tested together."""
        sure = sure or self.thresholds(promise)
        assessments = {name: self.assess(name) for name in self.confidence}
        remarks, nouns = (*sure.notes, *notes), f"{promise.unit}s"
        assessed = {f"assessed_{nouns}": len(self.places), "assessed_tasks": len(set(self.groups)), "tested": sure.n}
        figures = sure.to_dict()
        stated = {
            "kind": promise.kind,
            "moment": promise.moment,
            **({"unit": promise.unit} if promise.unit != "run" else {}),
            **{name: figures[name] for name in ("risks", "delta", "n", "coverage", "bounds")},
            "approximate": not holdout,
            "holdout": holdout,
            "seed": self.seed,
            "notes": list(remarks),
        }
        quality = {
            name: {key: value for key, value in each.to_dict().items() if key != "bins" and value is not None}
            for name, each in assessments.items()
        }
        profile = replace(self.profile, quality={promise.moment if promise.unit == "run" else nouns: quality})
        return Calibration(
            profile=profile.with_thresholds(sure.thresholds, stated),
            promise=promise,
            thresholds=sure,
            assessments=assessments,
            by_group=self.by_group(),
            curves={name: self.curve(name, promise) for name in list(self.confidence)[:2]},
            sample={**sample, **assessed, "holdout": holdout, "seed": self.seed},
            notes=remarks,
        )

    def thresholds(self, promise: Promise) -> RiskThresholds:
        scores, labels, notes = self._independent(LEARNED)
        return rounded_up(allowed_thresholds(scores, labels, dict(promise.risks), promise.delta, promise.kind, notes))

    def tool_thresholds(self, promise: Promise) -> dict[str, RiskThresholds]:
        """Return the thresholds of each tool alone."""
        used = self.audited
        if not used.any():
            return {}
        tools, groups = (
            list(itertools.compress(each, used)) for each in ((kind["tool"] for kind in self.kinds), self.groups)
        )
        weights = None if self.inverse is None else self.weights[used]
        scores, labels = self.confidence[LEARNED][used], self.labels[used]
        found = tool_thresholds(scores, labels, tools, promise, groups=groups, weights=weights, seed=self.seed)
        return {name: rounded_up(each) for name, each in found.items()}

    def _independent(self, name: str) -> tuple[Floats, Floats, list[str]]:
        """Return confidences and labels that a promise may rest on: audited, one of each task, and of equal probability."""
        used, notes = self.audited, list[str]()
        scores, labels = self.confidence[name][used], self.labels[used]
        if not used.all():
            notes.append(
                f"{int((~used).sum()):,} of {len(used):,} labels were left out of the promise: only audited ones that say right or wrong enter it."
            )
        if not used.any():
            return scores, labels, notes
        weights = None if self.inverse is None else self.weights[used]
        kept, remarks = independent(labels, itertools.compress(self.groups, used), weights, self.seed)
        return scores[kept], labels[kept], notes + remarks

    def assess(self, name: str, by: Sequence[str] | None = None) -> Assessment:
        return assess(
            self.confidence[name], self.labels, groups=by, clusters=self.groups, weights=self.inverse, seed=self.seed
        )

    def by_group(self) -> dict[str, Mapping[str, Assessment]]:
        found: dict[str, Mapping[str, Assessment]] = {}
        for kind in self.kinds[0]:
            names = [each[kind] for each in self.kinds]
            common = [name for name, _ in Counter(names).most_common(MAX_GROUPS)]
            if len(common) > 1:
                assessed = self.assess(LEARNED, [name if name in common else OTHERS for name in names]).by_group
                found[kind] = {name: assessed[name] for name in (*common, OTHERS) if name in assessed}
        return found

    def curve(self, name: str, promise: Promise) -> Curve:
        """Return share of the tested runs that act and share of errors, at each confidence from strict to mild."""
        scores, labels, _ = self._independent(name)
        if not len(labels):
            return ()
        _, reached, wrong = threshold_counts(scores, labels)
        of = reached[-1] if promise.kind == OVERALL else reached
        return tuple(zip((reached / reached[-1]).tolist(), (wrong / of).tolist(), strict=True))


def formula_confidence(document: Mapping[str, Any], upto: int | None) -> float:
    """Return the confidence of a run by the formula `grace`, 0 to 1."""
    grace = mapping_in(document, "grace")
    evaluation = grace.get("evaluation")
    if upto is not None:
        calls = finished_calls(transcript_of(document, has_ended=False, upto=upto))
        recorded, evaluation = isinstance(grace.get("calls"), list), None
        document = {"steps": list_in(document, "steps")[:upto], "grace": {"calls": calls} if recorded else {}}
    return PROFILES["grace"].calculate(judged_factors(document, evaluation, cautious=False)).score


def length_confidences(
    fitted: Sequence[Features], labels: Floats, weights: Floats, others: Sequence[Features]
) -> Floats:
    """Return the confidences of other runs, 0 to 1, by a regression on the number of steps alone."""
    # The other features count as missing, and get no column.
    matrix, rest = (
        np.where(np.arange(len(FEATURES)) == FEATURES.index("steps"), matrix_of(rows), np.nan)
        for rows in (fitted, others)
    )
    columns = Columns.fit(matrix, [()] * len(matrix))
    regression = fit_logistic(columns.rows(matrix, [()] * len(matrix)), labels, PENALTIES[-1], weights=weights)
    return probability(regression.logits(columns.rows(rest, [()] * len(rest))))


def held_back(groups: Sequence[Any], holdout: float, seed: int = 0) -> Mask:
    """Return a mask of the runs that are held back from fitting: all runs of randomly drawn tasks."""
    if isinstance(holdout, bool) or not isinstance(holdout, int | float) or not 0 <= holdout < 1:
        raise ValueError(f"holdout must be a share of the tasks from 0 to below 1 (got {brief(holdout)})")
    check_seed(seed)
    numbers, names = group_numbers("groups", groups, len(groups))
    return np.isin(numbers, np.random.default_rng(seed).permutation(len(names))[: math.ceil(holdout * len(names))])


def predict_others(labelled: Labels, groups: Sequence[Any], moment: Moment, held: Mask, seed: int) -> Tested:
    """Fit on the runs that are not held back, and predict the others; if none are, predict each by another profile, fitted without its task.

    At the moment of an action, one action of each run is drawn at random.
    """
    random = np.random.default_rng(seed)
    documents = [trace.to_dict() for trace in labelled.traces]
    upto: list[int | None] = [None] * len(documents)
    if moment == "action":
        upto = [places[int(random.integers(len(places)))] for places in map(action_places, documents)]
    rows = [features(run, moment=moment, upto=place) for run, place in zip(documents, upto, strict=True)]
    labels, weights = np.array(labelled.labels, dtype=np.float64), np.array(labelled.weights, dtype=np.float64)

    def fitted_on(train: Mask) -> CalibratedProfile:
        runs, tasks, sources = (list(itertools.compress(each, train)) for each in (documents, groups, labelled.sources))
        return fit(runs, labels[train].tolist(), tasks, weights=weights[train].tolist(), sources=sources, seed=seed)

    tested, folds = held, [held]
    if not held.any():
        numbers = group_numbers("groups", groups, len(groups))[0]
        folds = [*fold_masks(group_folds(numbers, labels, FOLDS, np.random.default_rng(seed)))]
        tested = ~held
    learned, length = np.zeros(len(rows)), np.zeros(len(rows))
    for test in folds:
        profile = fitted_on(~test)
        others = list(itertools.compress(rows, test))
        # Rounded as `CalibratedProfile.confidence` rounds it, because gates compare that with the thresholds.
        learned[test] = [round(profile.predict(row, moment=moment), 3) for row in others]
        seen = list(itertools.compress(rows, ~test))
        length[test] = length_confidences(seen, labels[~test], weights[~test], others).round(3)
    places = np.flatnonzero(tested)
    formula = np.array([formula_confidence(documents[place], upto[place]) for place in places.tolist()])
    confidence = {LEARNED: learned[tested], FORMULA: formula, LENGTH: length[tested]}
    profile = profile if held.any() else fitted_on(tested)
    tasks, kinds = list(itertools.compress(groups, tested)), [_kinds(documents[place]) for place in places.tolist()]
    return Tested(profile, places, confidence, labels[tested], tasks, weights[tested], seed, kinds, tested[tested])


def _tasks(labelled: Labels) -> tuple[list[Any], list[str]]:
    if not isinstance(labelled, Labels):
        raise TypeError(f"labelled must be the Labels that calibrate.labels returns, not {type(labelled).__name__}")
    if not labelled.labels:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in labelled.left_out.items())
        raise ValueError(
            f"there are no labelled runs{f' ({reasons})' if reasons else ''}; a label is feedback on a run, or a field of the file, "
            "such as reward or label.success, that the option label names"
        )
    if len(set(labelled.groups)) == 1:
        return list(range(len(labelled.groups))), [_ALIKE]
    return list(labelled.groups), []


def rounded_up(found: RiskThresholds) -> RiskThresholds:
    """Return thresholds as confidences are rounded."""
    up = {}
    for name, value in asdict(found.thresholds).items():
        step = 0 if value == math.inf else math.floor(value * CONFIDENCES)
        steps = (value, *((step + more) / CONFIDENCES for more in (0, 1, 2)))
        up[name] = value if value == math.inf else next(each for each in steps[1:] if each >= value)
    return replace(found, thresholds=Thresholds(**up))


def _kinds(document: Mapping[str, Any]) -> dict[str, str]:
    source = (document.get("grace") or {}).get("source") or {}
    name = source.get("source") if isinstance(source, dict) else None
    return {
        "source": name[:MAX_NAME] if isinstance(name, str) and name else "unknown",
        "model": ", ".join(facts_of(document)["models"])[:MAX_NAME] or "unknown",
        "domain": document["metadata"]["task_domain"][:MAX_NAME],
    }


def calibrate_actions(
    labelled: ActionLabels, promise: Promise, *, per_tool: bool = False, holdout: float = 0.4, seed: int = 0
) -> Calibration:
    """Fit a confidence in single actions on labelled ones, and choose the thresholds with which it keeps a promise.

    Args:
        labelled: the actions, as `action_labels` returns them. All of them are fitted on; only audited ones enter the promise.
        promise: what the thresholds shall promise, with the unit "action".
        per_tool: whether they promise it for each tool alone. Any other tool has at each level the strictest threshold. Choose it before
            looking at results.
        holdout: as for `calibrate_runs`, as is the seed.

    Raises:
        ValueError: an argument cannot be used, or there are too few labels; the message says how many there are.
    """
    if promise.unit != "action":
        raise ValueError('the promise must be about actions: Promise(..., unit="action")')
    actions, rows, left_out = features_of(labelled)
    if not actions:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise ValueError(
            f"there are no labelled actions{reasons and f' ({reasons})'}; grace.feedback(…, action=…) labels one"
        )
    groups, labels = [each.group for each in actions], np.array([float(each.correct) for each in actions])
    held = held_back(groups, holdout, seed)
    if held.all():
        raise ValueError(
            f"{'the only task is' if len(set(groups)) == 1 else 'all tasks are'} held back to choose the thresholds; label actions in more tasks, "
            "or use a holdout of 0"
        )
    is_tested = held if holdout else ~held
    fitted, tested = list(itertools.compress(actions, ~held)), list(itertools.compress(actions, is_tested))
    weights, tasks = [each.fit_weight for each in fitted], [each.group for each in fitted]
    model = fit_action_features(
        [*itertools.compress(rows, ~held)], labels[~held].tolist(), tasks, weights=weights, seed=seed
    )
    confidence = {LEARNED: model.out_of_fold.round(3)}
    if holdout:
        confidence[LEARNED] = np.array([model.predict(row) for row in itertools.compress(rows, held)]).round(3)
        confidence[RATE] = np.array([model.rates.get(each.tool, min(model.rates.values())) for each in tested]).round(3)
    traces = list({id(each.trace): each.trace for each in fitted}.values())
    facts = fitted_facts(traces, len(set(tasks)))
    facts["labels"] = dict(sorted(Counter(each.source for each in fitted).items()))
    model, runs = replace(model, fitted_on=facts), frozenset(filter(None, map(hash_of, traces)))
    found = Tested(
        profile=CalibratedProfile(heads={}, fitted_on=facts, fitted_runs=runs, action=model),
        places=np.flatnonzero(is_tested),
        confidence=confidence,
        labels=labels[is_tested],
        groups=[each.group for each in tested],
        weights=np.array([each.weight for each in tested]),
        seed=seed,
        kinds=[{"tool": each.tool} for each in tested],
        audited=np.array([each.is_audited and each.correct in (0, 1) for each in tested], dtype=bool),
    )
    sample = {
        "actions": len(actions), "tasks": len(set(groups)), "share_correct": float(labels.mean()), "audited": sum(each.is_audited for each in actions),
        "fitted_actions": len(fitted), "fitted_tasks": len(set(tasks)), "base_rate": model.reason,
        "sources": dict(Counter(each.source for each in actions)), "left_out": left_out,
    }  # fmt: skip
    notes = [_EACH, *([] if holdout else [APPROXIMATE])]
    if model.reason:
        notes.append(f"the confidence in an action is the rate of its tool: {model.reason}.")
    by_tool, sure = found.tool_thresholds(promise), None
    if per_tool and by_tool:  # without a label that may enter a promise, none is about a single tool
        notes.append(_PER_TOOL)
        sure, own = strictest(by_tool, promise), {name: each.thresholds for name, each in by_tool.items()}
        found = replace(found, profile=found.profile.with_action(replace(model, thresholds=own)))
    calibration = found.calibration(promise, sample, notes, holdout, sure)
    return replace(calibration, tools=by_tool, predictors=predictors_of(rows, labels, groups, seed))
