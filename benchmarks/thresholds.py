"""How often thresholds break their promise, and how much they let through, beside other ways of choosing them.

    python benchmarks/thresholds.py synthetic
    python benchmarks/thresholds.py recorded stated_confidence.csv.gz self_confidence.jsonl.gz

Synthetic samples have a known risk. A recorded data set is taken for the whole population: samples are drawn from it with replacement, so
that the true risk of every threshold is known too. Strictest-first tests every rank from the strictest down at the whole share of delta;
Hoeffding-Bentkus does the same with the p-values of MAPIE. The best possible threshold knows the true risk.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from _measure import print_table
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

from grace_kp.calibrate import _risk
from grace_kp.calibrate._binomial import most_errors
from grace_kp.calibrate._risk import risk_thresholds

RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}
DELTA = 0.1
SHARE = DELTA / len(RISKS)
CHANCES = {
    "calibrated": lambda c: c,
    "underconfident, right with √c": np.sqrt,
    "overconfident, right with c²": np.square,
    "no information, right in 70 %": lambda c: np.full_like(c, 0.7),
    "ten ties, calibrated": lambda c: c,
}


class Population:
    """Confidences with the chance of being right, as a fine grid that stands for all runs."""

    def __init__(self, scores, chances):
        order = np.argsort(-scores, kind="stable")
        self.scores, self.chances = scores[order], chances[order]
        self.ends = np.append(np.flatnonzero(np.diff(self.scores)) + 1, len(scores))
        self.wrong = np.concatenate(([0.0], np.cumsum(1 - self.chances)))

    def at(self, threshold):
        """Share of all runs that reach the threshold, and the true risk among them."""
        n = int(np.searchsorted(-self.scores, -threshold, side="right"))
        return n / len(self.scores), self.wrong[n] / n if n else 0.0

    def best(self, risk):
        """The largest share of all runs at a threshold with at most this risk."""
        allowed = self.ends[self.wrong[self.ends] <= risk * self.ends + 1e-9]
        return float(allowed[-1]) / len(self.scores) if len(allowed) else 0.0

    def draw(self, n, random):
        """An independent sample: confidences, and whether each was correct."""
        places = random.integers(0, len(self.scores), n)
        return self.scores[places], random.random(n) < self.chances[places]


def synthetic(name, cells=100_000):
    scores = (np.arange(cells) + 0.5) / cells
    if "ties" in name:
        scores = (np.floor(scores * 10) + 0.5) / 10
    return Population(scores, np.clip(CHANCES[name](scores), 0, 1))


@functools.cache
def allowed(n, risk, method):
    """The most errors that pass among the first 1 to n."""
    if method == "strictest":
        return np.array([most_errors(k, risk, SHARE) for k in range(1, n + 1)])
    most = []
    for k in range(1, n + 1):
        errors = most[-1] if most else -1
        while errors + 1 <= k and p_value(errors + 1, k, risk) <= SHARE:
            errors += 1
        most.append(errors)
    return np.array(most)


def p_value(errors, k, risk):
    return compute_hoeffding_bentkus_p_value(np.array([errors / k]), k, np.array([risk])).ravel()[0]


def first_failing(scores, correct, risk, method):
    """The last threshold before the first that fails, from the strictest that could pass."""
    order = np.argsort(-scores, kind="stable")
    sorted_scores, errors = scores[order], np.cumsum(~correct[order])
    ends = np.append(np.flatnonzero(np.diff(sorted_scores)) + 1, len(scores))
    most = allowed(len(scores), risk, method)
    start = next((k for k in range(1, len(scores) + 1) if most[k - 1] >= 0), len(scores) + 1)
    passed = math.inf
    for k in ends[ends >= start].tolist():
        if errors[k - 1] > most[k - 1]:
            break
        passed = 0.0 if k == len(scores) else math.nextafter(float(sorted_scores[k]), 2)
    return passed


def tried(population, n, draws, seed, *, others=True):
    """Mean coverage by level and method, and the shares of samples in which promises are broken."""
    random = np.random.default_rng(seed)
    coverage, broken, any_broken = defaultdict(float), defaultdict(int), 0
    for _ in range(draws):
        scores, correct = population.draw(n, random)
        found = risk_thresholds(scores, correct, RISKS, DELTA)
        exceeded = False
        for level, risk in RISKS.items():
            share, true = population.at(getattr(found.thresholds, level))
            coverage[level, "ours"] += share / draws
            broken[level] += true > risk + 1e-9
            exceeded |= true > risk + 1e-9
            for method in ("strictest", "Hoeffding-Bentkus") if others else ():
                coverage[level, method] += population.at(first_failing(scores, correct, risk, method))[0] / draws
        any_broken += exceeded
    return coverage, {level: count / draws for level, count in broken.items()}, any_broken / draws


def allowance(draws):
    """Delta and three standard errors of a share of so many samples."""
    return DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / draws)


def run_synthetic(sizes, draws):
    rows = []
    for name in CHANCES:
        population = synthetic(name)
        for n in sizes:
            coverage, broken, any_broken = tried(population, n, draws, seed=n)
            for level, risk in RISKS.items():
                best = population.best(risk)
                shares = [f"{coverage[level, method]:.3f}" for method in ("ours", "strictest", "Hoeffding-Bentkus")]
                of_best = f"{coverage[level, 'ours'] / best:.2f}" if best else ""
                rows.append(
                    (name, n, f"{risk:g}", *shares, f"{best:.3f}", of_best, f"{broken[level]:.4f}", f"{any_broken:.4f}")
                )
    columns = (
        "confidence",
        "n",
        "risk",
        "ours",
        "strictest first",
        "Hoeffding-Bentkus",
        "best possible",
        "of the best",
    )
    print_table(
        f"Coverage, and share of {draws:,} samples that break a promise (delta {DELTA} over three levels)",
        (*columns, "broken at this level", "broken at any level"), rows,
    )  # fmt: skip


def pools(stated, own):
    """Recorded data sets by name, of 100 labels or more: per source, data set, model, and both."""
    found = defaultdict(list)
    with gzip.open(stated, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            pair = float(row["stated_confidence"]), int(row["correct"])
            for name in (("",), (row["dataset"],), (row["model"],), (row["model"], row["dataset"])):
                found["stated", *name].append(pair)
    with gzip.open(own, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("stated_confidence") is None or not 0 <= row["stated_confidence"] <= 1:
                continue
            pair = row["stated_confidence"], int(row["correct"])
            for name in (("",), (row["dataset"],), (row["model"],), (row["model"], row["dataset"])):
                found[row["source"], *name].append(pair)
    for name, pairs in sorted(found.items()):
        if len(pairs) >= 100:
            scores, chances = np.array(pairs, dtype=float).T
            yield name, Population(scores, chances)


def run_recorded(stated, own, draws, most):
    rows, worst = [], defaultdict(list)
    for name, population in pools(stated, own):
        n = min(most, len(population.scores))
        is_whole = name[1:] == ("",)
        coverage, broken, any_broken = tried(population, n, draws, seed=1, others=is_whole)
        kind = "whole source" if is_whole else "model and data set" if len(name) == 3 else "model, or data set"
        worst[kind].append((any_broken, name, n, max(broken.values())))
        if is_whole:
            for level, risk in RISKS.items():
                methods = [f"{coverage[level, method]:.3f}" for method in ("ours", "strictest", "Hoeffding-Bentkus")]
                rows.append((name[0], n, f"{risk:g}", *methods, f"{population.best(risk):.3f}", f"{broken[level]:.4f}"))
    print_table(
        f"Recorded confidences, pooled by source: coverage, and share of {draws:,} samples that break a promise",
        ("source", "n", "risk", "ours", "strictest first", "Hoeffding-Bentkus", "best possible", "broken"), rows,
    )  # fmt: skip
    summary = [
        (kind, len(each), f"{max(each)[0]:.4f}", " ".join(max(each)[1]), f"{np.mean([e[0] for e in each]):.4f}",
         sum(e[0] > allowance(draws) for e in each))
        for kind, each in worst.items()
    ]  # fmt: skip
    print_table(
        f"All data sets: share of samples that break a promise at any level (delta {DELTA}; allowed with three standard errors: {allowance(draws):.4f})",
        ("data sets", "number", "largest share", "where", "mean share", "above what is allowed"), summary,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("synthetic", "recorded"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 600, 2_000])
    options = parser.parse_args()
    # The same for every sample of one size, and most of the time of a search among few labels.
    _risk.ladder = functools.cache(_risk.ladder)
    if options.what == "synthetic":
        run_synthetic(options.sizes, options.draws)
    elif len(options.files) != 2:
        parser.error("name the two files of recorded confidences")
    else:
        run_recorded(*options.files, options.draws, 600)


if __name__ == "__main__":
    main()
