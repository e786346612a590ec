"""From labelled runs to a learned profile whose thresholds keep a promise, and to the figures that a report shows.

The profile is fitted on some of the tasks. Its thresholds are chosen on what exactly this profile predicts for the others, so that the
promise holds for the profile that is saved. Two baselines, which a learned confidence must beat, are assessed on the same runs: the formula
`grace`, and a regression on the number of steps alone.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._assess import LEAST_CLUSTERS, assess, threshold_counts
from grace_kp.calibrate._facts import facts_of
from grace_kp.calibrate._features import FEATURES, Moment, features, finished_calls, transcript_of
from grace_kp.calibrate._fit import PENALTIES, action_places, fit
from grace_kp.calibrate._head import Columns, matrix_of
from grace_kp.calibrate._labels import Labels
from grace_kp.calibrate._logistic import fit_logistic, probability
from grace_kp.calibrate._risk import OVERALL, Promise, allowed_thresholds, tool_thresholds
from grace_kp.calibrate._samples import FOLDS, group_folds, group_numbers, independent, json_form
from grace_kp.confidence import PROFILES, Thresholds, factors_from_trace
from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._action_labels import ActionLabels
    from grace_kp.calibrate._assess import Assessment, Predictor
    from grace_kp.calibrate._features import Features
    from grace_kp.calibrate._profile import CalibratedProfile
    from grace_kp.calibrate._risk import PromisedLevel, RiskThresholds
    from grace_kp.calibrate._samples import Floats

    Curve = tuple[tuple[float, float], ...]
    Mask = NDArray[np.bool_]


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
        if self.sample.get("base_rate"):
            pass  # the rate of the tool is the confidence, and is not meant to tell actions of one tool apart
        elif interval is None:
            found.append(
                f"its AUROC has no interval on these labels, so it may not tell right {self.nouns} from wrong ones"
            )
        elif interval[0] <= 0.5:
            shown = f"{interval[0]:.2f} to {interval[1]:.2f}"
            found.append(
                f"the interval of its AUROC, {shown}, {'includes' if interval[1] >= 0.5 else 'is below'} 0.5, so it may not tell right {self.nouns} "
                "from wrong ones"
            )
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
        holdout: share of the tasks on which the thresholds are chosen.
        seed: of the draw of these tasks.
    """
    groups, labels = (_tasks(labelled)[0] if isinstance(labelled, Labels) else labelled.groups), labelled.labels
    if not isinstance(labelled, Labels):
        labels = [each.correct if each.is_audited else math.nan for each in labelled.actions]
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
    rows = LabelledRows(labelled, groups, promise.moment, seed)
    if not holdout:
        notes.append(APPROXIMATE)
    if promise.moment == "action":
        notes.append(_ACTIONS)
    try:
        found = rows.held_back(held, seed) if holdout else rows.cross_validated(seed)
    except ValueError as error:
        split = (
            f"of {len(groups):,} labelled runs, {int(held.sum()):,} are held back to choose the thresholds; a holdout of 0 holds none back"
            if holdout
            else f"of all {len(groups):,} labelled runs, each fold of the cross-validation leaves out some"
        )
        raise ValueError(f"{error} ({split})") from None
    sample = {
        "runs": len(groups), "tasks": len(set(groups)), "share_correct": float(rows.labels.mean()),
        "fitted_runs": found.profile.fitted_on["runs"], "fitted_tasks": found.profile.fitted_on["tasks"],
        "sources": dict(Counter(labelled.sources)), "left_out": dict(labelled.left_out),
    }  # fmt: skip
    kinds = [_kinds(rows.documents[place]) for place in found.places.tolist()]
    return found.calibration(promise, sample, notes, kinds, holdout)


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
    audited: Mask | None = None
    """Which labels may enter a promise; None: all of them."""

    @property
    def inverse(self) -> Floats | None:
        """The weights; None where they are all the same."""
        return None if (self.weights == self.weights[0]).all() else self.weights

    def calibration(
        self,
        promise: Promise,
        sample: dict[str, Any],
        notes: Sequence[str],
        kinds: Sequence[Mapping[str, str]],
        holdout: float,
        sure: RiskThresholds | None = None,
    ) -> Calibration:
        """Return the calibration of the profile, with the thresholds that keep the promise.

        Args:
            sample: counts of what was labelled and fitted on.
            kinds: the kinds of each of the tested, by name, to be assessed on their own, too.
            sure: the thresholds; None chooses them for all of the tested together.
        """
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
            by_group=self.by_group(kinds),
            curves={name: self.curve(name, promise) for name in list(self.confidence)[:2]},
            sample={**sample, **assessed, "holdout": holdout, "seed": self.seed},
            notes=remarks,
        )

    def thresholds(self, promise: Promise) -> RiskThresholds:
        scores, labels, notes = self._independent()
        return rounded_up(allowed_thresholds(scores, labels, dict(promise.risks), promise.delta, promise.kind, notes))

    def tool_thresholds(self, promise: Promise, tools: Sequence[str]) -> dict[str, RiskThresholds]:
        """Return the thresholds of each tool alone."""
        usable = np.arange(len(tools)) if self.audited is None else np.flatnonzero(self.audited)
        if not len(usable):
            return {}
        found = tool_thresholds(
            self.confidence[LEARNED][usable], self.labels[usable], [tools[place] for place in usable.tolist()], promise,
            groups=[self.groups[place] for place in usable.tolist()], weights=None if self.inverse is None else self.weights[usable], seed=self.seed,
        )  # fmt: skip
        return {name: rounded_up(each) for name, each in found.items()}

    def _independent(self) -> tuple[Floats, Floats, list[str]]:
        """Return confidences and labels that a promise may rest on: audited, one of each task, and of equal probability."""
        scores, labels, weights = self.confidence[LEARNED], self.labels, self.inverse
        usable = np.ones(len(labels), dtype=bool) if self.audited is None else self.audited & np.isin(labels, (0, 1))
        left_out = [
            f"{int((~usable).sum()):,} of {len(labels):,} labels were left out of the promise: only audited ones that say right or wrong enter it."
        ]
        left_out = [] if usable.all() else left_out
        if not usable.any():
            return scores[usable], labels[usable], left_out
        groups = list(itertools.compress(self.groups, usable))
        kept, notes = independent(labels[usable], groups, None if weights is None else weights[usable], self.seed)
        return scores[usable][kept], labels[usable][kept], [*left_out, *notes]

    def assess(self, name: str, by: Sequence[str] | None = None) -> Assessment:
        return assess(
            self.confidence[name], self.labels, groups=by, clusters=self.groups, weights=self.inverse, seed=self.seed
        )

    def by_group(self, kinds: Sequence[Mapping[str, str]]) -> dict[str, Mapping[str, Assessment]]:
        found: dict[str, Mapping[str, Assessment]] = {}
        for kind in kinds[0]:
            names = [each[kind] for each in kinds]
            common = [name for name, _ in Counter(names).most_common(MAX_GROUPS)]
            if len(common) > 1:
                assessed = self.assess(LEARNED, [name if name in common else OTHERS for name in names]).by_group
                found[kind] = {name: assessed[name] for name in (*common, OTHERS) if name in assessed}
        return found

    def curve(self, name: str, promise: Promise) -> Curve:
        """Return share of the tested runs that act and share of errors, at each confidence from strict to mild."""
        scores, labels, _ = replace(self, confidence={LEARNED: self.confidence[name]})._independent()
        if not len(labels):
            return ()
        _, reached, wrong = threshold_counts(scores, labels)
        of = reached[-1] if promise.kind == OVERALL else reached
        return tuple(zip((reached / reached[-1]).tolist(), (wrong / of).tolist(), strict=True))


def formula_confidence(document: Mapping[str, Any], upto: int | None, seen: Features) -> float:
    """Return the confidence of a run by the formula `grace`, 0 to 1."""
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
        labels: labels of the fitted runs, 0 to 1.
    """
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
    numbers, names = group_numbers("groups", groups, len(groups))
    order = np.random.default_rng(seed).permutation(len(names))
    return np.isin(numbers, order[: math.ceil(holdout * len(names))])


class LabelledRows:
    """Labelled runs with their features at one moment: at their end, or before an action of each that is drawn at random."""

    def __init__(self, labelled: Labels, groups: Sequence[Any], moment: Moment, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.documents = [trace.to_dict() for trace in labelled.traces]
        self._upto: list[int | None] = [None] * len(self.documents)
        if moment == "action":
            places = [action_places(run) for run in self.documents]
            self._upto = [found[int(random.integers(len(found)))] for found in places]
        self._rows = [
            features(run, moment=moment, upto=upto) for run, upto in zip(self.documents, self._upto, strict=True)
        ]
        self._moment: Moment = moment
        self.labels = np.asarray(labelled.labels, dtype=np.float64)
        self._weights = np.asarray(labelled.weights, dtype=np.float64)
        self._sources = labelled.sources
        self._groups = list(groups)

    def held_back(self, held: Mask, seed: int) -> Tested:
        """Fit on the runs that are not held back, and predict the others."""
        profile, learned, length = self._fit_and_predict(~held, held, seed)
        return self._with_baselines(profile, held, learned, length, seed)

    def cross_validated(self, seed: int) -> Tested:
        """Fit on all runs, and predict each by another profile, fitted without its task."""
        everything = np.ones(len(self.labels), dtype=bool)
        whole = self._fit(everything, seed)
        numbers = group_numbers("groups", self._groups, len(self._groups))[0]
        folds = group_folds(numbers, self.labels, FOLDS, np.random.default_rng(seed))
        learned, length = np.zeros(len(folds)), np.zeros(len(folds))
        for fold in range(int(folds.max()) + 1):
            test = folds == fold
            _, learned[test], length[test] = self._fit_and_predict(~test, test, seed)
        return self._with_baselines(whole, everything, learned, length, seed)

    def _fit_and_predict(self, train: Mask, test: Mask, seed: int) -> tuple[CalibratedProfile, Floats, Floats]:
        profile = self._fit(train, seed)
        seen, others = self._of(self._rows, train), self._of(self._rows, test)
        # Rounded as `CalibratedProfile.confidence` rounds it, because gates compare that with the thresholds.
        learned = np.array([round(profile.predict(row, moment=self._moment), 3) for row in others])
        return profile, learned, length_confidences(seen, self.labels[train], self._weights[train], others)

    def _fit(self, train: Mask, seed: int) -> CalibratedProfile:
        return fit(
            self._of(self.documents, train),
            self.labels[train].tolist(),
            self._of(self._groups, train),
            weights=self._weights[train].tolist(),
            sources=self._of(self._sources, train),
            seed=seed,
        )

    def _with_baselines(
        self, profile: CalibratedProfile, tested: Mask, learned: Floats, length: Floats, seed: int
    ) -> Tested:
        places = np.flatnonzero(tested)
        formula = [formula_confidence(self.documents[i], self._upto[i], self._rows[i]) for i in places.tolist()]
        confidence = {LEARNED: learned, FORMULA: np.array(formula), LENGTH: length.round(3)}
        groups = self._of(self._groups, tested)
        return Tested(profile, places, confidence, self.labels[tested], groups, self._weights[tested], seed)

    @staticmethod
    def _of(values: Sequence[Any], mask: Mask) -> list[Any]:
        return [values[place] for place in np.flatnonzero(mask).tolist()]


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
    exact = found.thresholds
    return replace(
        found, thresholds=Thresholds(*(_round_up(value) for value in (exact.silent, exact.notify, exact.confirm)))
    )


def _round_up(value: float) -> float:
    if value == math.inf:
        return value
    step = math.floor(value * CONFIDENCES)
    return next(up for up in (step / CONFIDENCES, (step + 1) / CONFIDENCES, (step + 2) / CONFIDENCES) if up >= value)


def _kinds(document: Mapping[str, Any]) -> dict[str, str]:
    source = (document.get("grace") or {}).get("source") or {}
    name = source.get("source") if isinstance(source, dict) else None
    return {
        "source": name[:MAX_NAME] if isinstance(name, str) and name else "unknown",
        "model": ", ".join(facts_of(document)["models"])[:MAX_NAME] or "unknown",
        "domain": document["metadata"]["task_domain"][:MAX_NAME],
    }
