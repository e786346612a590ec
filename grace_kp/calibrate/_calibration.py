"""From labelled runs to a profile whose thresholds keep a promise, and to the figures that a report shows.

The profile is fitted on some of the tasks. Its thresholds are chosen on what exactly this profile predicts for the others, so that the
promise holds for the profile that is saved.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grace_kp.calibrate._assess import assess, threshold_counts
from grace_kp.calibrate._facts import facts_of
from grace_kp.calibrate._features import MOMENTS, Moment
from grace_kp.calibrate._fit import FOLDS
from grace_kp.calibrate._labels import Labels
from grace_kp.calibrate._predictions import FORMULA, LEARNED, LabelledRows, held_back
from grace_kp.calibrate._risk import OVERALL, SELECTIVE, checked_risks, labels_needed, promise_text, risk_thresholds
from grace_kp.calibrate._samples import check_inside, independent, json_form
from grace_kp.confidence import Thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate._assess import Assessment
    from grace_kp.calibrate._predictions import Predicted
    from grace_kp.calibrate._profile import CalibratedProfile
    from grace_kp.calibrate._risk import PromisedLevel, RiskThresholds
    from grace_kp.calibrate._samples import Floats

    Curve = tuple[tuple[float, float], ...]


MAX_GROUPS = 12
"""Sources, models or domains that are assessed on their own; the rest is assessed together."""
MAX_NAME = 60
CONFIDENCES = 1_000
"""Confidences are multiples of a thousandth."""
_ACTIONS = (
    "an action counts as wrong if its run turned out wrong. One action of each run is drawn at random, because a gate meets early actions "
    "as well as late ones."
)
_APPROXIMATE = (
    f"the promise is approximate: no tasks were held back, so the thresholds rest on the predictions of {FOLDS} other profiles, each of "
    "them fitted without the tasks that it predicts."
)
_ALIKE = "all runs have the same task, or record none, so each run counts as a separate task."


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promise that thresholds shall keep.

    Raises:
        ValueError: a field cannot be used; the message says which and why.
    """

    risks: Mapping[str, float]
    """The largest share of wrong actions by level: silent, notify, confirm. Above 0 and below 1, and no larger for a stricter level."""
    delta: float = 0.1
    """The probability that the promise does not hold, above 0 and below 1; shared equally among the levels."""
    kind: Literal["selective", "overall"] = "selective"
    """Selective: at most this share of the actions at a level or a milder one is wrong. Overall: at most this share of all runs both
    reaches the level and is wrong."""
    moment: Moment = "action"
    """`"action"`: before an action of an open run, as at a gate. `"end"`: of a run that has ended."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "risks", checked_risks(self.risks))
        check_inside("delta", self.delta)
        for name, value, known in (("promise", self.kind, (SELECTIVE, OVERALL)), ("moment", self.moment, MOMENTS)):
            if value not in known:
                raise ValueError(f"{name} must be {' or '.join(known)} (got {value!r:.60})")

    @property
    def needed(self) -> dict[str, int]:
        """Labels without an error that each level needs at least."""
        return {level: labels_needed(risk, self.delta, len(self.risks)) for level, risk in self.risks.items()}

    @property
    def in_words(self) -> str:
        """The promise as sentences."""
        return promise_text(self.kind, self.risks, self.delta, "actions" if self.moment == "action" else "runs")

    def lacking(self, labels: int) -> tuple[str, ...]:
        """Return a sentence for each level that so many independent labels cannot reach, even without one error."""
        return tuple(
            f"{level} at {self.risks[level]:g} needs at least {fewest:,} labels without an error, and there are {labels:,}"
            for level, fewest in self.needed.items()
            if labels < fewest
        )


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

    @property
    def is_approximate(self) -> bool:
        """Whether no tasks were held back, so that the promise is not exact."""
        return not self.sample["holdout"]

    @property
    def objections(self) -> tuple[str, ...]:
        """Why not to use this profile; empty if nothing is known against it."""
        interval = self.assessments[LEARNED].intervals.get("auroc")
        found = []
        if interval is None:
            found.append("its AUROC has no interval on these labels, so it may not tell right runs from wrong ones")
        elif interval[0] <= 0.5:
            shown = f"{interval[0]:.2f} to {interval[1]:.2f}"
            found.append(
                f"the interval of its AUROC, {shown}, {'includes' if interval[1] >= 0.5 else 'is below'} 0.5, so it may not tell right runs from "
                "wrong ones"
            )
        if all(level.threshold is None for level in self.levels):
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
        }


def lacking_labels(labelled: Labels, promise: Promise, *, holdout: float = 0.4, seed: int = 0) -> tuple[str, ...]:
    """Return a sentence for each level that the labels cannot reach, even if none of them were an error; before anything is fitted.

    Args:
        labelled: the runs, as for `calibrate_runs`.
        promise: what the thresholds shall promise.
        holdout: share of the tasks on which the thresholds are chosen.
        seed: of the draw of these tasks.
    """
    groups, _ = _tasks(labelled)
    tested = held_back(groups, holdout, seed) if holdout else np.ones(len(groups), dtype=bool)
    usable = {
        group
        for group, label, is_tested in zip(groups, labelled.labels, tested, strict=True)
        if is_tested and label in (0, 1)
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
        notes.append(_APPROXIMATE)
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
    places = found.places.tolist()
    tested = _Tested(
        found,
        np.asarray(labelled.labels, dtype=np.float64)[places],
        [groups[place] for place in places],
        np.asarray(labelled.weights, dtype=np.float64)[places],
        seed,
    )
    sure = tested.thresholds(promise)
    assessments = {name: tested.assess(scores) for name, scores in found.confidence.items()}
    remarks = (*sure.notes, *notes)
    sample = {
        "runs": len(groups), "tasks": len(set(groups)), "share_correct": float(np.mean(np.asarray(labelled.labels, dtype=np.float64))),
        "fitted_runs": found.profile.fitted_on["runs"], "fitted_tasks": found.profile.fitted_on["tasks"],
        "assessed_runs": len(places), "assessed_tasks": len(set(tested.groups)), "tested": sure.n, "holdout": holdout, "seed": seed,
        "sources": dict(Counter(labelled.sources)), "left_out": dict(labelled.left_out),
    }  # fmt: skip
    figures = sure.to_dict()
    stated = {
        "kind": promise.kind,
        "moment": promise.moment,
        **{name: figures[name] for name in ("risks", "delta", "n", "coverage", "bounds")},
        "approximate": not holdout,
        "holdout": holdout,
        "seed": seed,
        "notes": list(remarks),
    }
    described = {name: each.to_dict() for name, each in assessments.items()}
    quality = {
        name: {key: value for key, value in each.items() if key != "bins" and value is not None}
        for name, each in described.items()
    }
    profile = dataclasses.replace(found.profile, quality={promise.moment: quality})
    return Calibration(
        profile=profile.with_thresholds(sure.thresholds, stated),
        promise=promise,
        thresholds=sure,
        assessments=assessments,
        by_group=tested.by_group([rows.documents[place] for place in places]),
        curves={name: tested.curve(found.confidence[name], promise) for name in (LEARNED, FORMULA)},
        sample=sample,
        notes=remarks,
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    """The runs that no profile was fitted on, with their labels."""

    found: Predicted
    labels: Floats
    groups: list[Any]
    weights: Floats
    seed: int

    @property
    def inverse(self) -> Floats | None:
        """The weights; None where they are all the same."""
        return None if (self.weights == self.weights[0]).all() else self.weights

    def thresholds(self, promise: Promise) -> RiskThresholds:
        found = risk_thresholds(
            self.found.confidence[LEARNED], self.labels, promise.risks, promise.delta, promise.kind,
            groups=self.groups, weights=self.inverse, seed=self.seed,
        )  # fmt: skip
        exact = found.thresholds
        rounded = Thresholds(*(_round_up(value) for value in (exact.silent, exact.notify, exact.confirm)))
        return dataclasses.replace(found, thresholds=rounded)

    def assess(self, scores: Floats, names: Sequence[str] | None = None) -> Assessment:
        return assess(scores, self.labels, groups=names, clusters=self.groups, weights=self.inverse, seed=self.seed)

    def by_group(self, documents: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Assessment]]:
        kinds = [_kinds(document) for document in documents]
        found: dict[str, Mapping[str, Assessment]] = {}
        for kind in ("source", "model", "domain"):
            names = [each[kind] for each in kinds]
            common = [name for name, _ in Counter(names).most_common(MAX_GROUPS)]
            if len(common) > 1:
                shown = [name if name in common else "all others" for name in names]
                assessed = self.assess(self.found.confidence[LEARNED], shown).by_group
                found[kind] = {name: assessed[name] for name in (*common, "all others") if name in assessed}
        return found

    def curve(self, scores: Floats, promise: Promise) -> Curve:
        """Return share of the tested runs that act and share of errors, at each confidence from strict to mild."""
        kept, _ = independent(self.labels, self.groups, self.inverse, self.seed)
        _, reached, wrong = threshold_counts(scores[kept], self.labels[kept])
        of = reached[-1] if promise.kind == OVERALL else reached
        return tuple(zip((reached / reached[-1]).tolist(), (wrong / of).tolist(), strict=True))


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
