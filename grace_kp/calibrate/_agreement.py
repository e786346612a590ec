"""Agreement between people who answered the same question: how often all agree, Krippendorff's alpha, and Cohen's kappa of two people.

Answers are categories without an order. Below a minimum of questions there is no coefficient, because a few cases can give any value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._comparison import LEVEL, RESAMPLES, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

LEAST_SHARED = 20
"""Questions that two people, or all together, must share for a coefficient."""
CATEGORIES = 4


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement: 1 is perfect, 0 is chance, with a bootstrap interval at 95 % over questions."""

    value: float | None
    """None with too few questions, or where everybody always gave the same answer, so that chance explains everything."""
    low: float | None
    high: float | None
    why_none: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        if self.value is None:
            return self.why_none
        around = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.value:.2f}{around}"


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two people on the questions that both answered."""

    names: tuple[str, str]
    same: Share
    """Questions with the same answer, of those that both answered."""
    kappa: Coefficient
    """Cohen's kappa."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"names": list(self.names), "same": self.same.to_dict(), "kappa": self.kappa.to_dict()}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Everybody on the questions that at least two people answered."""

    same: Share
    """Questions to which all who answered gave the same answer."""
    alpha: Coefficient
    """Krippendorff's alpha for nominal data."""
    pairs: tuple[PairAgreement, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "same": self.same.to_dict(),
            "alpha": self.alpha.to_dict(),
            "pairs": [pair.to_dict() for pair in self.pairs],
        }


def agreement_of(questions: Sequence[Mapping[str, int]], *, seed: int = 0) -> Agreement:
    """Return the agreement over questions.

    Args:
        questions: for each question the category of each person's answer, 0 to 3, by name. Those with a single answer do not count.
        seed: makes the bootstrap intervals repeatable.
    """
    shared = [answers for answers in questions if len(answers) > 1]
    tables: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
    for answers in shared:
        for first, second in combinations(sorted(answers), 2):
            tables.setdefault((first, second), Counter())[answers[first], answers[second]] += 1
    kinds = Counter(tuple(np.bincount(list(answers.values()), minlength=CATEGORIES).tolist()) for answers in shared)
    same = Share(sum(len(set(answers.values())) == 1 for answers in shared), len(shared))
    pairs = [_pair(names, cells, seed) for names, cells in sorted(tables.items())]
    return Agreement(same, _coefficient(kinds, _alpha, seed), tuple(pairs))


def _pair(names: tuple[str, str], cells: Counter[tuple[int, int]], seed: int) -> PairAgreement:
    same = Share(sum(count for (a, b), count in cells.items() if a == b), sum(cells.values()))
    return PairAgreement(names, same, _coefficient(cells, _kappa, seed))


def _coefficient(kinds: Counter[Any], formula: Callable[[Floats, Floats], Floats], seed: int) -> Coefficient:
    """Return a coefficient of questions that fall into a few kinds, each with its number; whole questions are resampled."""
    total = sum(kinds.values())
    if total < LEAST_SHARED:
        return Coefficient(None, None, None, f"not enough questions: {total} of the {LEAST_SHARED} that are needed")
    values, counts = np.array(list(kinds), dtype=float), np.array(list(kinds.values()), dtype=float)
    found = float(formula(values, counts[None, :])[0])
    if np.isnan(found):
        return Coefficient(None, None, None, "everybody always gave the same answer")
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    resampled = formula(values, drawn.astype(float))
    low, high = np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Coefficient(found, float(low), float(high))


def _alpha(answers: Floats, counts: Floats) -> Floats:
    """Krippendorff (2004), Content Analysis, chapter 11, nominal data with any number of answers to a question.

    Args:
        answers: (kinds, categories): number of answers of each category.
        counts: (samples, kinds): number of questions of each kind.
    """
    sizes = answers.sum(axis=1)
    disagreeing = (sizes**2 - (answers**2).sum(axis=1)) / (sizes - 1)
    observed = counts @ disagreeing
    by_category = counts @ answers
    total = by_category.sum(axis=1)
    expected = (total**2 - (by_category**2).sum(axis=1)) / (total - 1)
    return 1 - _ratio(observed, expected)


def _kappa(cells: Floats, counts: Floats) -> Floats:
    """Cohen (1960). `cells`: (kinds, 2), the categories of both people; `counts`: (samples, kinds), the number of questions."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    observed = shares @ (cells[:, 0] == cells[:, 1])
    first = shares @ (cells[:, [0]] == np.arange(CATEGORIES))
    second = shares @ (cells[:, [1]] == np.arange(CATEGORIES))
    expected = (first * second).sum(axis=1)
    return 1 - _ratio(1 - observed, 1 - expected)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return NaN where the whole is nothing."""
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 1e-12)
