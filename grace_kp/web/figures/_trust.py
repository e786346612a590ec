"""Evidence about the confidence: its reliability on labelled runs, the thresholds in force with their origin, and watched promises."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from grace_kp.calibrate import Promise, assess, bin_interval, labels, risk_curve
from grace_kp.errors import GraceError
from grace_kp.pages import Curve, Plane, count_text, curves, spaced, table
from grace_kp.runtime import promises_in
from grace_kp.web._errors import explain_error
from grace_kp.web._site import trust_html

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate import Assessment, RiskPoint
    from grace_kp.runtime import Grace
    from grace_kp.store import CatalogQuery
    from grace_kp.web._site import Site


LEVELS = ("silent", "notify", "confirm", "escalate")
FIRST_SHARES = 0.1
"""The share of errors at a lower coverage rests on few runs, so it does not determine the height of the plot."""
MOST_ACTIONS = 20
"""Action classes that are listed for one promise."""
USUAL_RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}
"""Example risks for the number of labels that a promise needs."""


def needed_labels(labels: int) -> tuple[str, ...]:
    promise = Promise(risks=USUAL_RISKS)
    return tuple(
        f"{level} at {promise.risks[level] * 100:g} % needs at least {fewest:,} labels without an error, and there are {labels:,}"
        for level, fewest in promise.needed.items()
        if labels < fewest
    )


def reliability_plot(verdict: Verdict, assessment: Assessment) -> str:
    bins = assessment.bins
    rows = verdict.rows
    are_plain = len({row.weight for row in rows}) < 2 and all(row.correct in (0, 1) for row in rows)
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
    caption = "Below the dotted line the confidence is too high. Larger points represent more runs."
    if are_plain:
        caption += " The band is a 95 % interval at each point."
    return curves("Reliability", [curve], plane, caption=caption)


def risk_plot(points: Sequence[RiskPoint], tasks: int) -> str:
    curve = Curve(
        name="labelled runs",
        points=[(point.coverage, point.risk) for point in points],
        band=[(point.low, point.high) for point in points],
        notes=[f"{point.confidence:.3g}" for point in points],
    )
    settled = [point for point in points if point.coverage >= FIRST_SHARES]
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
        f"One run of each task counts, of {count_text(tasks, 'task')}; the band is a 95 % interval at each point."
    )
    return curves("Risk and coverage", [curve], plane, caption=caption)


def wrong_at_thresholds(grace: Grace, verdict: Verdict) -> dict[str, str]:
    found = {}
    for level in LEVELS[:3]:
        value = getattr(grace.thresholds, level)
        if value != math.inf and (points := verdict.curve(value, points=2)):
            point = points[-1]
            found[level] = f"{point.risk:.1%} wrong ({point.low:.1%} to {point.high:.1%})"
    return found


def threshold_values(grace: Grace, labelled: Mapping[str, str]) -> dict[str, Any]:
    profile: Mapping[str, Any] = grace.status()["profile"] or {}
    return {
        "thresholds": [
            {
                "level": level,
                "value": "never" if (value := getattr(grace.thresholds, level)) == math.inf else f"{value:g}",
                "origin": profile.get("thresholds_from", {}).get(level, "default"),
                "labelled": labelled.get(level, "–"),
            }
            for level in LEVELS[:3]
        ],
        "profile": profile.get("name", ""),
        "promise": _promise_words(profile.get("promise") or {}),
    }


def _promise_words(stated: Mapping[str, Any]) -> str:
    if not stated:
        return ""
    try:
        names = stated.keys() & {"risks", "delta", "kind", "moment", "unit"}
        promise = Promise(**{name: stated[name] for name in names})
    except (TypeError, ValueError):
        return ""
    return promise.in_words + (" The promise is approximate." if stated.get("approximate") else "")


def watched_promises(store: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the watched promises of a store and, if they cannot be read, the reason."""
    try:
        found = promises_in(store)
    except GraceError as error:
        return [], f"Watched promises cannot be read: {explain_error(error, 'reading watched promises')}."
    tables = [trust_html(_figures_table(each["figures"])) for each in found]
    return [{**each, "table_html": shown} for each, shown in zip(found, tables, strict=True)], ""


WEALTH = (
    (1.0, "the labels speak for the promise"),
    (3.0, "the labels say nothing against it"),
    (20.0, "some doubt"),
    (100.0, "strong doubt"),
)
"""Interpretations of the wealth of the bettor against a promise, each with its upper bound."""


def _state_of(row: Mapping[str, Any]) -> str:
    if row["alarm"] or not row["n"]:
        return "refuted" if row["alarm"] else "no labels yet"
    return next((words for bound, words in WEALTH if row["wealth"] < bound), "almost impossible if the promise holds")


def _figures_table(figures: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            "all actions" if row["action"] == "*" else row["action"][:80],
            row["level"],
            f"{row['risk']:.1%}",
            f"{row['errors']:,} of {row['n']:,}",
            "–" if row["rate"] is None else f"{row['rate']:.1%} ({row['low']:.1%} to {row['high']:.1%})",
            _state_of(row),
        )
        for row in figures[: MOST_ACTIONS * len(USUAL_RISKS)]
    ]
    return table(("action", "level", "promised risk", "wrong", "error rate", "state"), rows, words={"state"})


AT_MOST_READ = 5_000
"""Labelled runs that are read: the newest."""
PAGE = 200


class LabelledRow(NamedTuple):
    confidence: float
    correct: bool | float
    weight: float
    task: object
    """Runs of one task count once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Figures of the recorded confidence on labelled runs."""

    rows: Sequence[LabelledRow] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    """Labels by where they are from."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Runs with feedback that do not count, by reason."""
    is_cut: bool = False
    """Whether older labelled runs were left out."""

    @property
    def tasks(self) -> int:
        return len({row.task for row in self.rows})

    @property
    def assessment(self) -> Assessment | None:
        """The figures of the confidence; None without labels."""
        if not self.rows:
            return None
        confidence, correct, weights, tasks = zip(*self.rows, strict=True)
        return assess(confidence, correct, clusters=tasks, weights=weights)

    def curve(self, threshold: float = 0.0, points: int = 60) -> Sequence[RiskPoint]:
        """Return the share of wrong runs by coverage, from a threshold on; empty if every label is partial."""
        reached = [row for row in self.rows if row.confidence >= threshold]
        if not any(row.correct in (0, 1) for row in reached):
            return ()
        confidence, correct, weights, tasks = zip(*reached, strict=True)
        return risk_curve(
            confidence, correct, groups=tasks, weights=weights if len(set(weights)) > 1 else None, points=points
        )


def verdict_of(site: Site, query: CatalogQuery) -> Verdict:
    """Read the newest labelled runs that meet a query."""
    rows: list[LabelledRow] = []
    sources: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    before, read, store = None, 0, site.grace.store
    while read < AT_MOST_READ:
        page = site.catalog.find(query, before=before, limit=min(PAGE, AT_MOST_READ - read), seconds=2.0)
        confidences = {row.id: row.confidence for row in page.rows}
        found = labels([trace for name in confidences if (trace := store.get(name)) is not None])
        left_out.update(found.left_out)
        for trace, correct, weight, source, task in zip(
            found.traces, found.labels, found.weights, found.sources, found.groups, strict=True
        ):
            confidence = confidences[trace.id]
            if confidence is None:
                left_out["no confidence"] += 1
                continue
            sources[source] += 1
            rows.append(LabelledRow(confidence, correct, weight, task))
        read, before = read + len(page.rows), page.older
        if before is None:
            break
    if len({row.task for row in rows}) == 1:  # the runs state no tasks, so each counts separately
        rows = [row._replace(task=number) for number, row in enumerate(rows)]
    return Verdict(rows=rows, sources=dict(sources.most_common()), left_out=dict(left_out), is_cut=before is not None)


def trust_values(site: Site, labelled: CatalogQuery) -> dict[str, Any]:
    """Return the values of labels and watched promises for the page. This may take seconds."""
    verdict = verdict_of(site, labelled)
    found, curve = verdict.assessment, verdict.curve()
    watched, problem = watched_promises(site.grace.store)
    return {
        "assessment": found,
        "is_cut": verdict.is_cut,
        "sources": _counts(verdict.sources),
        "left_out": _counts(verdict.left_out),
        "lacking": needed_labels(verdict.tasks),
        "reliability_plot": trust_html(reliability_plot(verdict, found)) if found else "",
        "risk_plot": trust_html(risk_plot(curve, verdict.tasks)) if curve else "",
        "labelled": wrong_at_thresholds(site.grace, verdict),
        "watched": watched,
        "watched_problem": problem,
    }


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {spaced(name)}" for name, count in counts.items())
