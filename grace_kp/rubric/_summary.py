"""Summary of the runs of a variant: mean, spread, evenness across documents, and the detection rate of each category."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.rubric._judgement import Run
    from grace_kp.rubric._test_set import TestSet

HIGH, MEDIUM = 0.5, 1.0
TOLERANCE = 1e-9
"""Figures that differ by less are equal, so that 0.15 is 0.15 (SPEC §9)."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a variant."""

    mean: float
    """Of the scores of all runs."""
    sd: float
    """Standard deviation of the sample (n − 1); 0 for a single run."""
    cross_doc_gap: float
    """The largest mean of a document less the smallest; 0 for a single document."""
    category_rates: Mapping[str, float]
    """By category, 0 to 1: (Σ○ + 0.5·Σ△) / (problems of the category × runs)."""
    balance: float
    """The smallest category rate divided by the largest; 0 where the largest is 0."""
    document_means: Mapping[str, float]
    runs: int

    @property
    def stability(self) -> str:
        """`high` up to a standard deviation of 0.5, `medium` up to 1.0, otherwise `low`."""
        if self.sd <= HIGH + TOLERANCE:
            return "high"
        return "medium" if self.sd <= MEDIUM + TOLERANCE else "low"


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of an agent or prompt, with its runs over a test set.

    Raises:
        ValueError: the name is empty, there are no runs, or a run does not fit the test set.
    """

    name: str
    runs: tuple[Run, ...]
    test_set: TestSet

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple(self.runs))
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"a variant needs a name, not {brief(self.name)}")
        if not self.runs:
            raise ValueError(f"the variant {self.name} has no runs")
        for number, run in enumerate(self.runs, 1):
            document = self.test_set.document(run.document)
            known = {problem.id for problem in document.problems}
            unknown = [problem for problem in run.judgements if problem not in known]
            if unknown:
                raise ValueError(
                    f"run {number} of {self.name} judges {unknown[0]!r}, which {document.id} does not have"
                )
            missing = known - run.judgements.keys()
            if missing:
                raise ValueError(f"run {number} of {self.name} does not judge {min(missing)!r} of {document.id}")

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores of the runs, in order."""
        return tuple(run.score for run in self.runs)

    @property
    def summary(self) -> Summary:
        """The figures of this variant."""
        by_document: dict[str, list[float]] = {}
        by_category: dict[str, list[float]] = {category: [] for category in self.test_set.categories}
        for run in self.runs:
            by_document.setdefault(run.document, []).append(run.score)
            for problem in self.test_set.document(run.document).problems:
                by_category[problem.category].append(run.judgements[problem.id].value)
        means = {document: _mean(scores) for document, scores in by_document.items()}
        rates = {category: _mean(values) for category, values in by_category.items() if values}
        largest = max(rates.values(), default=0.0)
        return Summary(
            mean=_mean(self.scores),
            sd=statistics.stdev(self.scores) if len(self.runs) > 1 else 0.0,
            cross_doc_gap=max(means.values()) - min(means.values()),
            category_rates=rates,
            balance=min(rates.values()) / largest if largest > 0 else 0.0,
            document_means=means,
            runs=len(self.runs),
        )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
