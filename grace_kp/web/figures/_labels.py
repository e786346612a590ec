"""Figures of the recorded confidence on labelled runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate import Assessment, RiskPoint
    from grace_kp.store import CatalogQuery
    from grace_kp.web._site import Site

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
    """Read the newest labelled runs that meet a query, and assess their confidence.

    Raises:
        GraceError: the store cannot be read.
    """
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
    """Return whether the runs have tasks that tell them apart; if all have the same, each counts as a task of its own, as in calibration."""
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
