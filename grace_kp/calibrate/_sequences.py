"""The search for the mildest threshold that keeps a promise, over one sample sorted by confidence.

The selective promise is tested along ranks, from strict to mild: how many of the most confident samples may act. The ranks, and the share of
delta that each has, follow from the number of samples alone, so they depend neither on the labels nor on what the confidence says. A test
that passes hands its share on to the next milder one (the fallback procedure of Wiens and Dmitrienko, 2005). `docs/calibrate.md` proves
that the probability of a wrong result is at most delta.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from grace_kp.calibrate._binomial import binomial_cdf, fewest_without_error, most_errors, smallest_sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from grace_kp.calibrate._samples import Floats

    Counts = NDArray[np.int64]

RANKS = 100
"""Ranks that are tested, in geometric steps from the strictest to all samples."""
STARTS = ((0.0, 0.6), (0.4, 0.2), (0.65, 0.2))
"""Where the sequence starts, as a share of its steps, and with which share of delta. Started at the strictest rank alone, it stalls where a few
errors among the most confident samples end it; docs/calibrate-results.md compares both."""
SCARCE = 0.1
"""Where the strictest rank takes this share of the samples or more, it gets the whole delta: the other starts could decide little."""


class Ranking:
    """A sample in the order of its confidence, the most confident first."""

    def __init__(self, scores: Floats, wrong: Floats) -> None:
        """Sort the sample.

        Args:
            scores: confidences from 0 to 1, of shape (n,).
            wrong: 1.0 for each error and 0.0 for the rest, of shape (n,).
        """
        order = np.argsort(-scores, kind="stable")
        self.n = len(scores)
        self._scores = scores[order]
        self._errors = np.concatenate(([0], np.cumsum(wrong[order]).astype(np.int64)))
        """Errors among the first k."""
        self._ends: Counts = np.append(np.flatnonzero(np.diff(self._scores)) + 1, self.n).astype(np.int64)
        """Numbers of samples at which no tie is cut in two."""

    def at(self, threshold: float) -> tuple[int, int]:
        """Return how many samples reach a threshold, and how many of them are errors."""
        n = int(np.searchsorted(-self._scores, -threshold, side="right"))
        return n, int(self._errors[n])

    def selective(self, risk: float, delta: float) -> float:
        """Return the mildest threshold that is shown to have at most a share `risk` of errors among what reaches it; infinity for none.

        Args:
            risk: above 0 and below 1.
            delta: the probability with which the threshold may have a larger share.
        """
        fewest = fewest_without_error(risk, delta)
        if fewest > self.n:
            return math.inf
        passed, handed_on = math.inf, 0.0
        for count, share in self._sequence(risk, delta):
            level = share + handed_on
            handed_on = 0.0
            if level > 0 and binomial_cdf(int(self._errors[count]), count, risk) <= level:
                passed, handed_on = self._above(count), level
        return passed

    def overall(self, risk: float, delta: float) -> float:
        """Return the mildest threshold at which at most a share `risk` of all samples is shown to reach it and be wrong; infinity for none.

        The share only grows from strict to mild, so that one sequence over all thresholds needs no correction.
        """
        most = most_errors(self.n, risk, delta)
        if most < 0:
            return math.inf
        # The first tie that brings too many errors is left out whole.
        allowed = self._ends[self._errors[self._ends] <= most]
        return self._above(int(allowed[-1])) if len(allowed) else math.inf

    def more_labels(self, risk: float, delta: float) -> int | None:
        """Return about how many more labels would make a level usable if the shares of errors stay as they are; None if none would."""
        counts = np.unique(self._snapped(np.geomspace(1, self.n, RANKS)))
        factors = np.geomspace(1.05, 1_000, 120)
        best: float | None = None
        for k, errors in zip(counts.tolist(), self._errors[counts].tolist(), strict=True):
            if errors >= risk * k:
                continue
            for factor in factors[factors < (best or math.inf)].tolist():
                if binomial_cdf(math.ceil(errors * factor), int(k * factor), risk) <= delta:
                    best = factor
                    break
        return None if best is None else math.ceil(self.n * (best - 1))

    def _sequence(self, risk: float, delta: float) -> Iterator[tuple[int, float]]:
        """Yield numbers of samples, from strict to mild, with the share of delta that each has before another hands on its own."""
        ranks, shares = ladder(self.n, risk, delta)
        counts = self._snapped(np.asarray(ranks)).tolist()
        for place, count in enumerate(counts):
            if place == 0 or count != counts[place - 1]:
                yield count, sum(shares[i] for i in range(place, len(counts)) if counts[i] == count)

    def _snapped(self, ranks: Floats | Counts) -> Counts:
        """Return for each rank the next number of samples at which no tie is cut in two."""
        return self._ends[np.searchsorted(self._ends, ranks)]

    def _above(self, count: int) -> float:
        """Return the threshold that exactly the first `count` samples reach, as mild as possible."""
        return 0.0 if count == self.n else math.nextafter(float(self._scores[count]), 2.0)


def ladder(n: int, risk: float, delta: float) -> tuple[list[int], list[float]]:
    """Return the ranks that are tested among n samples, from strict to mild, and the part of `delta` that each has of its own.

    The first is the smallest rank that passes without an error. Each is the smallest rank that allows its number of errors, because a
    test of a size in between would only fail more often.
    """
    scarcity = min(1.0, fewest_without_error(risk, delta) / (SCARCE * n))
    shares = [0.0] * RANKS
    for place, share in STARTS:
        shares[round(place * (RANKS - 1))] += share * (1 - scarcity)
    shares[0] += scarcity
    first = min(n, fewest_without_error(risk, delta * shares[0]))
    steps = np.geomspace(first, n, RANKS).round().astype(np.int64).tolist()
    smallest = {k: smallest_sample(k, risk, delta * shares[0]) for k in set(steps[:-1])}
    return [*(smallest[k] for k in steps[:-1]), n], [share * delta for share in shares]
