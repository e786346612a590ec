"""Can the confidence be trusted? Plots of what labels say, the thresholds in force with their origin, and the promises that are watched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from grace_kp.calibrate import Promise, bin_interval
from grace_kp.errors import GraceError
from grace_kp.pages import Curve, Plane, count_text, curves, spaced, table
from grace_kp.runtime import promises_in
from grace_kp.web._problem import explained
from grace_kp.web.figures._runs import LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate import Assessment
    from grace_kp.runtime import Grace
    from grace_kp.web.figures._labels import Verdict

FIRST_SHARES = 0.1
"""Coverage below which the share of errors rests on few runs, and does not decide how high the plot is."""
MOST_ACTIONS = 20
"""Action classes that are listed for one promise."""
USUAL_RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}
"""Example risks for the number of labels that a promise needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRow:
    """One threshold in force."""

    level: str
    value: str
    origin: str
    labelled: str
    """How many labelled runs reach it, and how many of those are wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPromise:
    """A promise that is watched in the store."""

    profile: str
    fitted_at: str
    labels: int
    alarms: tuple[str, ...]
    table_html: Markup
    """The figures of each level and action class."""


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


def threshold_rows(grace: Grace, labelled: Mapping[str, str]) -> list[ThresholdRow]:
    """Return the thresholds in force.

    Args:
        grace: the runtime.
        labelled: what labels say about the runs that reach the threshold of a level, if they say anything.
    """
    thresholds = grace.thresholds
    origins: Mapping[str, str] = (grace.status()["profile"] or {}).get("thresholds_from", {})
    return [
        ThresholdRow(
            level=level,
            value="never" if (value := getattr(thresholds, level)) == math.inf else f"{value:g}",
            origin=origins.get(level, "default"),
            labelled=labelled.get(level, "–"),
        )
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


def watched_promises(store: Any) -> tuple[list[WatchedPromise], str]:
    """Return the promises that are watched in a store, and why they cannot be read, if so."""
    try:
        found = promises_in(store)
    except GraceError as error:
        return [], f"Watched promises cannot be read: {explained(error, 'reading watched promises')}."
    return [
        WatchedPromise(
            profile=str(each["profile"]),
            fitted_at=str(each["fitted_at"] or ""),
            labels=each["labels"],
            alarms=tuple(each["alarms"]),
            table_html=Markup(_figures_table(each["figures"])),  # noqa: S704 — made of escaped texts,
        )
        for each in found
    ], ""


def wealth_words(wealth: float) -> str:
    """Return what the wealth of the bettor against a promise says, in words.

    Args:
        wealth: the wealth of the bet, which begins at 1.
    """
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
