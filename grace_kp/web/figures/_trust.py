"""Whether the confidence can be trusted: labelled runs against their confidence, the thresholds in force with their origin, and watched promises."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from grace_kp.calibrate import Promise, bin_interval
from grace_kp.errors import GraceError
from grace_kp.pages import Curve, Plane, count_text, curves, spaced, table
from grace_kp.runtime import promises_in
from grace_kp.web._errors import explain_error
from grace_kp.web.figures._sums import LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate import Assessment, RiskPoint
    from grace_kp.runtime import Grace
    from grace_kp.store import CatalogQuery
    from grace_kp.web._site import Site


FIRST_SHARES = 0.1
"""Coverage below which the share of errors rests on few runs, and does not decide how high the plot is."""
MOST_ACTIONS = 20
"""Action classes that are listed for one promise."""
USUAL_RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}
"""Example risks for the number of labels that a promise needs."""


def needed_labels(labels: int) -> tuple[str, ...]:
    """Return what so many labels are not enough for, in sentences: the promises of the usual risks."""
    promise = Promise(risks=USUAL_RISKS)
    return tuple(
        f"{level} at {promise.risks[level] * 100:g} % needs at least {fewest:,} labels without an error, and there are {labels:,}"
        for level, fewest in promise.needed.items()
        if labels < fewest
    )


def reliability_plot(verdict: Verdict) -> str:
    """Return the share of correct runs by confidence."""
    assessment = verdict.assessment
    bins = () if assessment is None else assessment.bins
    are_plain = not verdict.is_weighted and all(sample.correct in (0, 1) for sample in verdict.samples)
    curve = Curve(
        name="labelled runs",
        points=[(found.confidence, found.accuracy) for found in bins],
        band=[bin_interval(found) for found in bins] if are_plain else (),
        sizes=[found.n for found in bins],
        notes=[f"{found.n:,}" for found in bins],
    )
    unit = (0.0, 1.0)
    plane = Plane(
        x="confidence", y="share correct", x_range=unit, y_range=unit, diagonal="perfectly calibrated", note="runs"
    )
    caption = "Below the dotted line the confidence promises too much. Larger points stand for more runs."
    if are_plain:
        caption += " The band is a 95 % interval at each point."
    return curves("Reliability", [curve], plane, caption=caption)


def intervals_words(found: Assessment) -> dict[str, str]:
    """Return the 95 % intervals of the figures in words; empty texts where there are none."""
    pairs = {name: found.intervals.get(name) for name in ("auroc", "ece", "brier")}
    return {name: "" if pair is None else f"{pair[0]:.2f} to {pair[1]:.2f}" for name, pair in pairs.items()}


def risk_plot(verdict: Verdict) -> str:
    """Return the share of wrong runs against the share of runs that act."""
    curve = Curve(
        name="labelled runs",
        points=[(point.coverage, point.risk) for point in verdict.curve],
        band=[(point.low, point.high) for point in verdict.curve],
        notes=[f"{point.confidence:.3g}" for point in verdict.curve],
    )
    settled = [point for point in verdict.curve if point.coverage >= FIRST_SHARES]
    top = max((point.high for point in settled), default=1.0)
    plane = Plane(
        x="coverage: share of runs that act",
        y="share wrong, of these",
        x_range=(0.0, 1.0),
        y_range=(0.0, top),
        note="confidence from",
    )
    caption = (
        "From strict thresholds on the left to mild ones on the right. A curve that does not rise means that the confidence carries no information. "
        f"One run of each task counts, of {count_text(verdict.tasks, 'task')}; the band is a 95 % interval at each point."
    )
    return curves("Risk and coverage", [curve], plane, caption=caption)


def wrong_at_thresholds(grace: Grace, verdict: Verdict) -> dict[str, str]:
    """Return how many of the labelled runs that reach the threshold of a level are wrong, in words, by level."""
    found = {}
    for level in LEVELS[:3]:
        value = getattr(grace.thresholds, level)
        point = None if value == math.inf else verdict.above(value)
        if point is not None:
            found[level] = f"{point.risk:.1%} wrong ({point.low:.1%} to {point.high:.1%})"
    return found


def threshold_rows(grace: Grace, labelled: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the thresholds in force with their origin, and how many labelled runs reach each and are wrong."""
    thresholds = grace.thresholds
    origins: Mapping[str, str] = (grace.status()["profile"] or {}).get("thresholds_from", {})
    return [
        {
            "level": level,
            "value": "never" if (value := getattr(thresholds, level)) == math.inf else f"{value:g}",
            "origin": origins.get(level, "default"),
            "labelled": labelled.get(level, "–"),
        }
        for level in LEVELS[:3]
    ]


def promise_words(grace: Grace) -> str:
    """Return what the profile in use promises, in sentences; empty if it promises nothing, or nothing that can be read."""
    stated = (grace.status()["profile"] or {}).get("promise")
    if not stated:
        return ""
    try:
        promise = Promise(**{name: stated[name] for name in ("risks", "delta", "kind", "moment") if name in stated})
    except (TypeError, ValueError):
        return ""
    approximate = " The promise is approximate." if stated.get("approximate") else ""
    return promise.in_words + approximate


def watched_promises(store: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the promises that are watched in a store, and why they cannot be read, if so."""
    try:
        found = promises_in(store)
    except GraceError as error:
        return [], f"Watched promises cannot be read: {explain_error(error, 'reading watched promises')}."
    return [
        {
            "profile": str(each["profile"]),
            "fitted_at": str(each["fitted_at"] or ""),
            "labels": each["labels"],
            "alarms": tuple(each["alarms"]),
            "table_html": Markup(_figures_table(each["figures"])),  # noqa: S704 — made of escaped texts,
        }
        for each in found
    ], ""


def wealth_words(wealth: float) -> str:
    """Return what the wealth of the bettor against a promise says, in words."""
    if wealth < 1:
        return "the labels speak for the promise"
    if wealth < 3:
        return "the labels say nothing against it"
    if wealth < 20:
        return "some doubt"
    return "strong doubt" if wealth < 100 else "almost impossible if the promise holds"


def _figures_table(figures: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            "all actions" if row["action"] == "*" else row["action"][:80],
            row["level"],
            f"{row['risk']:.1%}",
            f"{row['errors']:,} of {row['n']:,}",
            "–" if row["rate"] is None else f"{row['rate']:.1%} ({row['low']:.1%} to {row['high']:.1%})",
            "refuted" if row["alarm"] else wealth_words(row["wealth"]) if row["n"] else "no labels yet",
        )
        for row in figures[: MOST_ACTIONS * len(USUAL_RISKS)]
    ]
    return table(("action", "level", "promised risk", "wrong", "error rate", "state"), rows, words={"state"})


def sources_words(counts: Mapping[str, int]) -> str:
    """Return labels by their source, or runs that do not count by reason: `12 user, 3 audit`."""
    return ", ".join(f"{count:,} {spaced(name)}" for name, count in counts.items())


AT_MOST_READ = 5_000
"""Labelled runs that are read: the newest."""
PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One labelled run."""

    confidence: float
    correct: bool | float
    weight: float
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Figures of the recorded confidence on labelled runs."""

    samples: tuple[Sample, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    """Labels by where they are from."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Runs with feedback that do not count, by reason."""
    assessment: Assessment | None = None
    curve: Sequence[RiskPoint] = ()
    is_cut: bool = False
    """Whether there are more labelled runs, which are older."""

    @property
    def tasks(self) -> int:
        """Number of independent labels: runs of one task count once, unless all runs have the same task."""
        return _tasks(self.samples)

    @property
    def is_weighted(self) -> bool:
        """Whether some labels stand for more runs than others."""
        return len({sample.weight for sample in self.samples}) > 1

    def above(self, threshold: float) -> RiskPoint | None:
        """Return the share of wrong runs with at least a confidence; None where no label says anything about them."""
        reached = [sample for sample in self.samples if sample.confidence >= threshold]
        return _curve(reached, points=2)[-1] if any(sample.correct in (0, 1) for sample in reached) else None


def verdict_of(site: Site, query: CatalogQuery) -> Verdict:
    """Read the newest labelled runs that meet a query, and assess their confidence."""
    from grace_kp.calibrate import assess, labels

    samples: list[Sample] = []
    sources: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    before, read, store = None, 0, site.grace.store
    while read < AT_MOST_READ:
        page = site.catalog.find(query, before=before, limit=min(PAGE, AT_MOST_READ - read), seconds=2.0)
        confidences = {row.id: row.confidence for row in page.rows}
        found = labels([trace for name in confidences if (trace := store.get(name)) is not None])
        left_out.update(found.left_out)
        for trace, correct, weight, source, group in zip(
            found.traces, found.labels, found.weights, found.sources, found.groups, strict=True
        ):
            confidence = confidences[trace.id]
            if confidence is None:
                left_out["no confidence"] += 1
                continue
            sources[source] += 1
            samples.append(Sample(confidence=confidence, correct=correct, weight=weight, group=group))
        read, before = read + len(page.rows), page.older
        if before is None:
            break
    assessment = None
    if samples:
        columns = _columns(samples)
        assessment = assess(
            columns["confidence"], columns["correct"], clusters=columns["groups"], weights=columns["weights"]
        )
    return Verdict(
        samples=tuple(samples),
        sources=dict(sources.most_common()),
        left_out=dict(left_out),
        assessment=assessment,
        curve=_curve(samples) if any(sample.correct in (0, 1) for sample in samples) else (),
        is_cut=before is not None,
    )


def _is_grouped(samples: Sequence[Sample]) -> bool:
    return len({sample.group for sample in samples}) > 1


def _tasks(samples: Sequence[Sample]) -> int:
    return len({sample.group for sample in samples}) if _is_grouped(samples) else len(samples)


def _columns(samples: Sequence[Sample]) -> dict[str, list[object]]:
    return {
        "confidence": [sample.confidence for sample in samples],
        "correct": [sample.correct for sample in samples],
        "groups": [sample.group for sample in samples] if _is_grouped(samples) else list(range(len(samples))),
        "weights": [sample.weight for sample in samples],
    }


def _curve(samples: Sequence[Sample], points: int = 60) -> tuple[RiskPoint, ...]:
    from grace_kp.calibrate import risk_curve

    columns = _columns(samples)
    weights = columns["weights"] if len({sample.weight for sample in samples}) > 1 else None
    return risk_curve(
        columns["confidence"], columns["correct"], groups=columns["groups"], weights=weights, points=points
    )
