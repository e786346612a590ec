"""Exact binomial tests and Clopper-Pearson bounds, for a million trials as for three."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

import numpy as np

_NEGLIGIBLE = 1e-18
"""Terms below this share of the largest do not change a sum in double precision."""


def binomial_cdf(errors: int, n: int, rate: float) -> float:
    """Return P(X <= errors) for X ~ Binomial(n, rate), with a rate from 0 to 1: the p-value of `errors` if the true rate is at least `rate`."""
    if errors < 0:
        return 0.0
    if errors >= n or rate <= 0:
        return 1.0
    if rate >= 1:
        return 0.0
    if errors > n * rate:
        # Sum the smaller side, whose terms fall from the first on.
        return 1.0 - _lower_sum(n - errors - 1, n, 1.0 - rate)
    return _lower_sum(errors, n, rate)


def _lower_sum(k: int, n: int, rate: float) -> float:
    """Return P(X <= k) for k <= n * rate, summed from the largest term down."""
    if rate >= 1.0:  # the complement of a rate that rounds to 0
        return 0.0
    log_first = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(rate)
        + (n - k) * math.log1p(-rate)
    )
    odds = (1.0 - rate) / rate
    total, term, i, block = 1.0, 1.0, k, 64
    while i > 0 and term > _NEGLIGIBLE * total:
        counts = np.arange(i, max(i - block, 0), -1, dtype=float)
        terms = term * np.cumprod(counts / (n - counts + 1.0) * odds)
        total += float(terms.sum())
        term, i, block = float(terms[-1]), i - len(counts), block * 2
    return min(1.0, math.exp(log_first) * total)


def upper_bound(errors: int, n: int, delta: float) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a rate: the largest rate under which at most `errors` are seen with probability `delta`."""
    if errors >= n:
        return 1.0
    low, high = errors / n, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_cdf(errors, n, middle) > delta else (low, middle)
    return high


def clopper_pearson(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a rate of which `k` in `n` were seen; (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    tail = (1.0 - level) / 2
    return 0.0 if k <= 0 else 1.0 - upper_bound(n - k, n, tail), upper_bound(k, n, tail)


def fewest_without_error(risk: float, delta: float) -> int:
    """Return the smallest n for which n trials without an error show a rate of at most `risk`, up to a probability of `delta`: (1 - risk)^n <= delta."""
    n = max(1, math.ceil(math.log(delta) / math.log1p(-risk) - 1e-9))
    return n if binomial_cdf(0, n, risk) <= delta else n + 1


def most_errors(n: int, risk: float, delta: float) -> int:
    """Return the largest number of errors among n trials that still shows a rate of at most `risk`; -1 where not even 0 does."""
    return bisect_right(range(n), delta, key=lambda errors: binomial_cdf(errors, n, risk)) - 1


def smallest_sample(n: int, risk: float, delta: float) -> int:
    """Return the smallest sample, at most n, that allows as many errors as n trials do (`most_errors`); n itself where not even 0 pass.

    A test of a size in between allows no more errors and so only fails more often.
    """
    errors = most_errors(n, risk, delta)
    if errors < 0:
        return n
    # The probability falls with the size, and `bisect_left` expects rising keys.
    return bisect_left(range(n), -delta, lo=errors + 1, key=lambda size: -binomial_cdf(errors, size, risk))
