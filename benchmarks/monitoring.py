"""How often the monitor of promised error rates raises a false alarm, and how many labels it needs to find a broken promise.

All streams run at once: the wealth of `Monitor` is computed here for thousands of streams, and the first of them are compared with `Monitor`.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

import numpy as np
from _measure import machine, print_table

from grace_kp import calibrate as cal
from grace_kp.calibrate._betting import CAPITAL, UP, start_capital

RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}
LEVELS = tuple(RISKS)
ALONE = np.array([0.05, 0.25, 0.75])
"""The error rates of actions at each level with which all three promises of RISKS hold exactly, when the levels are equally frequent."""
START = datetime(2026, 1, 5, tzinfo=UTC)


def factors(risk, share=1.0):
    """The logarithms of the factors of each bet for a right and for a wrong label."""
    bet = (np.array(UP) - 1) / (1 + (np.array(UP) - 1) * risk)
    return np.log1p(-share * bet * risk), np.log1p(share * bet * (1 - risk))


class Streams:
    """The wealth against one promise in many streams."""

    def __init__(self, streams: int, risk: float, limit: float) -> None:
        self.risk, self.limit = risk, np.log(limit)
        self.bets = np.full((streams, len(UP)), -np.inf)
        self.alarm_at = np.zeros(streams, dtype=int)
        self.seen = 0

    def week(self, number: int) -> None:
        """Let the bets of a week start."""
        self.bets = np.logaddexp(self.bets, np.log(np.array(CAPITAL) * start_capital(number)))

    def add(self, counts, wrong, share=1.0) -> None:
        """Count a label in each stream where `counts`; `share` is its weight as a share of the largest."""
        right_factors, wrong_factors = zip(*(factors(self.risk, s) for s in np.unique(share)), strict=True)
        row = np.searchsorted(np.unique(share), share)
        gain = np.where(wrong[:, None], np.array(wrong_factors)[row], np.array(right_factors)[row])
        self.bets += np.where(counts[:, None], gain, 0.0)
        self.seen += 1
        largest = self.bets.max(axis=1)
        near = np.flatnonzero((self.alarm_at == 0) & (largest >= self.limit - np.log(len(UP))))
        wealth = largest[near] + np.log(np.exp(self.bets[near] - largest[near, None]).sum(axis=1))
        self.alarm_at[near[wealth >= self.limit]] = self.seen


def good(streams: int, labels: int, delta: float, seed: int, weeks: int = 1, audited: bool = False):
    """Streams in which the three promises hold exactly; return which of them raise an alarm, and their labels.

    With `audited`, a silent action is labelled with a probability of 5 %, and counts with weight 20.
    """
    random = np.random.default_rng(seed)
    tests = [Streams(streams, risk, 2 * len(RISKS) / delta) for risk in RISKS.values()]
    shares = np.array([0.05, 1.0, 1.0]) if audited else np.ones(3)
    drawn = []
    for label in range(labels):
        if label % -(-labels // weeks) == 0:
            for test in tests:
                test.week(label // -(-labels // weeks))
        level = random.choice(3, size=streams, p=shares / shares.sum())
        wrong = random.random(streams) < ALONE[level]
        weight = shares.min() / shares[level]
        for number, test in enumerate(tests):
            test.add(level <= number, wrong, weight)
        drawn.append((level[:20], wrong[:20], weight[:20]))
    return np.any([test.alarm_at > 0 for test in tests], axis=0), drawn


def compare(alarmed, drawn, delta: float, weeks: int, largest: float) -> None:
    """Check that `Monitor` raises the same alarms in the first streams."""
    levels, wrong, weights = (np.array(column) for column in zip(*drawn, strict=True))
    for stream in range(levels.shape[1]):
        monitor = cal.Monitor(RISKS, delta, max_weight=largest)
        for number, (level, error, weight) in enumerate(
            zip(levels[:, stream], wrong[:, stream], weights[:, stream], strict=True)
        ):
            day = START + timedelta(weeks=number // -(-len(levels) // weeks))
            monitor.update(LEVELS[level], not error, weight=float(weight) * largest, at=day)
        assert bool(alarmed[stream]) == bool(monitor.alarms)


def false_alarm_rows(streams: int, labels: int, delta: float):
    cases = (
        (f"{labels:,} labels", labels, 1, False),
        (f"{labels:,} labels in 40 weeks", labels, 40, False),
        (f"{labels:,} labels, silent ones by an audit of 5 %", labels, 1, True),
    )
    for name, count, weeks, audited in cases:
        alarmed, drawn = good(streams, count, delta, 1, weeks, audited)
        compare(alarmed, drawn, delta, weeks, 20.0 if audited else 1.0)
        yield name, f"{streams:,}", f"{alarmed.mean():.2%}", f"{delta:.0%}"


def delay(risk: float, rate: float, delta: float, *, streams: int, good_weeks: int = 0, per_week: int = 50) -> float:
    """Return the median number of labels from the change until the alarm; the promise is one of three."""
    random = np.random.default_rng(2)
    test = Streams(streams, risk, 2 * len(RISKS) / delta)
    for week in range(good_weeks):
        test.week(week)
        for _ in range(per_week):
            test.add(np.ones(streams, bool), random.random(streams) < risk)
    early = test.alarm_at > 0
    test.seen = 0
    while np.mean(test.alarm_at[~early] > 0) <= 0.5:
        if test.seen % per_week == 0 and (good_weeks or test.seen == 0):
            test.week(good_weeks + test.seen // per_week)
        test.add(np.ones(streams, bool), random.random(streams) < rate)
    return float(np.median(np.where(test.alarm_at == 0, np.inf, test.alarm_at)[~early]))


def delay_rows(streams: int, delta: float):
    for risk in (0.02, 0.05, 0.15, 0.35):
        rates = (2 * risk, min(3 * risk, 0.95))
        fresh = [delay(risk, rate, delta, streams=streams) for rate in rates]
        late = [delay(risk, rate, delta, streams=streams, good_weeks=26) for rate in rates]
        marks = ["" if rate > 2.99 * risk or rate == 2 * risk else f" ({rate:.2f})" for rate in rates]
        yield f"{risk:.2f}", *(f"{labels:,.0f}{mark}" for labels, mark in zip(fresh + late, marks * 2, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=2_000)
    parser.add_argument("--delta", type=float, default=0.1)
    options = parser.parse_args()
    print(f"## Monitoring\n\n{machine()}")
    print_table(
        "Streams that keep three promises (0.05, 0.15, 0.35) exactly, and the share of them with any alarm",
        ("stream", "streams", "false alarms", "delta"),
        false_alarm_rows(options.streams, options.labels, options.delta),
    )
    print_table(
        "Median number of labels until the alarm, for one of three promises that share delta",
        ("promised", "2 × the risk", "3 ×", "2 ×, after 26 good weeks of 50 labels", "3 ×, the same"),
        delay_rows(min(options.streams, 2_000), options.delta),
    )


if __name__ == "__main__":
    main()
