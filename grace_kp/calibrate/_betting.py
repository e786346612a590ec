"""Bets against a promised error rate, from counts: the wealth that refutes the promise, and the interval of rates that are not refuted.

A bet against "at most a share q is wrong" multiplies its capital with each label by

    1 + u · b · (x − q),        b = (c − 1) / (1 + (c − 1) q),        c > 1,

where x is 1 for wrong and 0 for right, and u, from 0 to 1, is the label's weight as a share of the largest possible weight. With u = 1 this
is the likelihood ratio of the rate with c times the odds of q. No factor is negative, because b < 1 / q. When labels are drawn with
a probability proportional to 1 / u, the mean of u (x − q) is at most 0 under the promise, whatever the levels and weights of the labels, so
the expected factor is at most 1. An average of such capitals has this property too. Capital that starts at 1 therefore reaches 1 / delta
with probability at most delta, at any time (Ville 1939; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
2024). Bets with c < 1 test "at least a share q is wrong" in the same manner.

The capital is divided among several c, and among the weeks in which a bet starts: bets that start late find a rate that rises late, when
older bets have lost most of theirs to a long good time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate._samples import Floats

    Counts = Mapping[float, Sequence[int]]
    """From the weight as a share of the largest one, u, to how many labels with it are right, and how many are wrong."""

UP = (1.05, 1.15, 1.5, 2.2, 3.2, 6.0, 15.0)
"""By which the bets multiply the odds of an error. Two and three times the promised risk are found soonest."""
DOWN = tuple(1 / odds for odds in UP)
CAPITAL = (0.02, 0.06, 0.14, 0.38, 0.28, 0.10, 0.02)
"""The capital of each of these bets; together 1."""
LOG_CAPITAL = np.log(CAPITAL)
FIRST_WEEK = 0.75
"""The capital of the bets that start in the first week. Week j later gets (1 − FIRST_WEEK) / (j (j + 1)), which together is the rest."""
STEPS = 60
"""Halvings of an interval; the result is exact to a double."""


def start_capital(week: int) -> float:
    """Return the share of the capital with which bets start in a week, counted from 0; over all weeks the shares add up to 1."""
    return FIRST_WEEK if week == 0 else (1 - FIRST_WEEK) / (week * (week + 1))


def log_wealth(weeks: Sequence[tuple[int, Counts]], rate: float) -> tuple[float, int]:
    """Return the logarithm of the wealth of all bets against a rate, and the week whose start contributes most."""
    if not weeks:
        return 0.0, 0
    gains = np.array([_log_gain(counts, rate, UP) for _, counts in weeks])
    since_start = np.cumsum(gains[::-1], axis=0)[::-1] + LOG_CAPITAL
    starts = _log_sum(since_start) + np.log([start_capital(number) for number, _ in weeks])
    return float(_log_sum(starts)), weeks[int(np.argmax(starts))][0]


def log_wealth_bound(weeks: Sequence[tuple[int, Counts]], rate: float) -> float:
    """Return a number that the logarithm of the wealth never exceeds; it is cheaper to compute.

    For each weight and week it takes the best bet in hindsight, which gains n · KL(share of wrong labels, rate).
    """
    return sum(
        (wrong * math.log(wrong / (n * rate)) if wrong else 0.0)
        + (right * math.log(right / (n * (1 - rate))) if right else 0.0)
        for _, counts in weeks
        for right, wrong in counts.values()
        if (n := right + wrong) and wrong > n * rate
    )


def interval(counts: Counts, alpha: float) -> tuple[float, float]:
    """Return the rates that are not refuted: they contain the true rate, at every look, with probability at least 1 − `alpha`.

    Each side has half of alpha. A rate is outside if the bets against it, all of which start with the first label, reach 2 / alpha.
    """
    limit = math.log(2 / alpha)
    # Bets against smaller rates win more when labels are wrong, and bets against larger rates when labels are right.
    low = _edge(counts, limit, UP, 0.0) if any(wrong for _, wrong in counts.values()) else 0.0
    high = _edge(counts, limit, DOWN, 1.0) if any(right for right, _ in counts.values()) else 1.0
    return low, high


def _edge(counts: Counts, limit: float, odds: tuple[float, ...], outside: float) -> float:
    inside = 1.0 - outside
    for _ in range(STEPS):
        middle = (outside + inside) / 2
        is_refuted = float(_log_sum(_log_gain(counts, middle, odds) + LOG_CAPITAL)) >= limit
        outside, inside = (middle, inside) if is_refuted else (outside, middle)
    return outside


def _log_gain(counts: Counts, rate: float, odds: tuple[float, ...]) -> Floats:
    """Return the logarithm of what each bet has multiplied its capital with."""
    total: Floats = np.zeros(len(odds))
    excess = np.array(odds) - 1
    bet = excess / (1 + excess * rate)
    for share, (right, wrong) in counts.items():
        total += right * np.log1p(-share * bet * rate) + wrong * np.log1p(share * bet * (1 - rate))
    return total


def _log_sum(logarithms: Floats) -> Floats:
    largest = logarithms.max(axis=-1)
    total: Floats = largest + np.log(np.exp(logarithms - largest[..., None]).sum(axis=-1))
    return total
