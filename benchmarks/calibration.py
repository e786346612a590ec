"""What a learned confidence is worth on labelled runs: beside the formulas and the length of a run, and on a source it never saw.

`own` fits on four fifths of the tasks of a source and predicts the rest. `actions` does so before an action. `transfer` fits on all other sources. `labels` fits on few labels. `--data` names the folder with
the labelled runs (or set GRACE_KP_DATA).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from _labelled_runs import DATA, STOPPED, Source, sources
from _measure import print_table

from grace_kp import ConfidenceCalculator
from grace_kp import calibrate as cal
from grace_kp.calibrate import Assessment, assess
from grace_kp.calibrate._fit import action_places
from grace_kp.confidence import factors_from_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDS = 5


def task_folds(tasks: Sequence[str], seed: int) -> np.ndarray:
    """The fold of each run: tasks are shuffled and dealt out."""
    distinct = sorted(set(tasks))
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold = {distinct[place]: number % FOLDS for number, place in enumerate(order)}
    return np.array([fold[task] for task in tasks])


def predicted(source: Source, seed: int, moment: Literal["end", "action"] = "end") -> np.ndarray:
    """The confidence in each run, by a profile that was fitted on other tasks: at its end, or before one of its actions, drawn at random."""
    draw = np.random.default_rng(seed)
    folds = task_folds(source.tasks, seed)
    confidence = np.zeros(len(source.runs))
    for fold in range(FOLDS):
        known = source.take(np.flatnonzero(folds != fold))
        profile = cal.fit(known.runs, known.labels, known.tasks, seed=seed)
        for place in np.flatnonzero(folds == fold):
            run = source.runs[place]
            upto = None if moment == "end" else int(draw.choice(action_places(run)))
            confidence[place] = profile.predict(cal.features(run, moment=moment, upto=upto), moment=moment)
    return confidence


def action_rows(name: str, source: Source) -> list[dict[str, Any]]:
    """What the confidence before an action says of the whole run."""
    row = figures(assess(predicted(source, 0, "action"), source.labels, clusters=source.tasks))
    return [{"source": name, **row}]


def print_actions(rows: list[dict[str, Any]]) -> None:
    print_table(
        "Before one action of each run, drawn at random; fitted on other tasks of the same source",
        ("source", "runs", "AUROC", "95 %", "ECE", "Brier"),
        [
            (row["source"], row["n"], f"{row['auroc']:.3f}", interval(row), f"{row['ece']:.3f}", f"{row['brier']:.3f}")
            for row in rows
        ],
    )


def by_formula(source: Source, profile: str) -> list[float]:
    calculator = ConfidenceCalculator(profile)
    return [calculator.calculate(factors_from_trace(run)).score for run in source.runs]


def by_length(source: Source, seed: int) -> np.ndarray:
    """The confidence by the number of steps alone: the share of correct runs among the fitted ones of about the same length."""
    folds = task_folds(source.tasks, seed)
    steps = np.array([len(run["steps"]) for run in source.runs], dtype=float)
    labels = np.array(source.labels, dtype=float)
    confidence = np.zeros(len(steps))
    for fold in range(FOLDS):
        known, test = folds != fold, folds == fold
        edges = np.unique(np.quantile(steps[known], np.linspace(0, 1, 7)[1:-1]))
        place, other = np.digitize(steps[known], edges), np.digitize(steps[test], edges)
        right = np.bincount(place, labels[known], len(edges) + 1) + 2 * labels[known].mean()
        confidence[test] = (right / (np.bincount(place, minlength=len(edges) + 1) + 2))[other]
    return confidence


def own_rows(name: str, source: Source, repeats: int) -> list[dict[str, Any]]:
    """One row per confidence: figures of the first repeat with their intervals, and the mean AUROC of all repeats."""
    learned = [predicted(source, seed) for seed in range(repeats)]
    rows = []
    for what, values in (
        ("learned", learned),
        ("grace", [by_formula(source, "grace")]),
        ("strict", [by_formula(source, "strict")]),
        ("run length", [by_length(source, seed) for seed in range(repeats)]),
    ):
        first = assess(values[0], source.labels, clusters=source.tasks)
        mean = float(np.mean([assess(each, source.labels).auroc for each in values]))
        rows.append({"source": name, "confidence": what, "mean_auroc": mean, **figures(first)})
    return rows


def figures(found: Assessment) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("auroc", "ece", "brier", "accuracy", "n")} | {
        "interval": found.intervals["auroc"]
    }


def transfer_rows(found: dict[str, Source]) -> list[dict[str, Any]]:
    """Each source without an oracle, predicted by a profile of all others, of which each counts the same."""
    honest = {name: source for name, source in found.items() if name not in STOPPED}
    rows = []
    for name, source in honest.items():
        others = {other: value for other, value in honest.items() if other != name}
        runs = [run for value in others.values() for run in value.runs]
        labels = [label for value in others.values() for label in value.labels]
        tasks = [f"{other} {task}" for other, value in others.items() for task in value.tasks]
        weights = [300 / len(value.runs) for value in others.values() for _ in value.runs]
        profile = cal.fit(runs, labels, tasks, weights=weights)
        row = figures(assess([profile.predict(run) for run in source.runs], source.labels, clusters=source.tasks))
        constant = float(np.average(labels, weights=weights))
        row["constant_brier"] = float(np.mean((constant - np.array(source.labels)) ** 2))
        row["beats"] = row["brier"] < row["constant_brier"] and row["interval"][0] > 0.5
        rows.append({"source": name, **row})
    return rows


def label_rows(name: str, source: Source, repeats: int) -> list[dict[str, Any]]:
    """How much better than the share of successes a profile of so many labels is on the other tasks of a source."""
    labels = np.array(source.labels, dtype=float)
    rows = []
    for count in (50, 80, 120, 200):
        gains, areas = [], []
        for seed in range(repeats):
            distinct = np.random.default_rng(seed).permutation(sorted(set(source.tasks)))
            places = np.array([place for task in distinct for place in np.flatnonzero(np.array(source.tasks) == task)])
            first, rest = places[:count], places[count:]
            rest = np.array([place for place in rest if source.tasks[place] != source.tasks[first[-1]]])
            right = labels[first].sum()
            few = len({source.tasks[place] for place in first}) < 5
            if few or len(rest) < 60 or min(right, count - right) < 15:
                continue
            known = source.take(first)
            profile = cal.fit(known.runs, known.labels, known.tasks, seed=seed)
            confidence = np.array([profile.predict(source.runs[place]) for place in rest])
            constant = np.mean((labels[first].mean() - labels[rest]) ** 2)
            gains.append(constant - np.mean((confidence - labels[rest]) ** 2))
            areas.append(assess(confidence, labels[rest]).auroc)
        if gains:
            worse = float(np.mean(np.array(gains) < 0))
            row = {"auroc": float(np.mean(areas)), "gain": float(np.mean(gains)), "worse": worse, "samples": len(gains)}
            rows.append({"source": name, "labels": count, **row})
    return rows


def print_labels(rows: list[dict[str, Any]]) -> None:
    print_table(
        "Fitted on a few labels, predicting the other tasks of the source",
        ("source", "labels", "samples", "AUROC", "Brier below the constant's by", "samples where it is above"),
        [
            (
                row["source"],
                row["labels"],
                row["samples"],
                f"{row['auroc']:.2f}",
                f"{row['gain']:.3f}",
                f"{row['worse']:.2f}",
            )
            for row in rows
        ],
    )


def print_own(rows: list[dict[str, Any]]) -> None:
    columns = ("source, confidence", "runs", "correct", "AUROC", "95 %", "mean of repeats", "ECE", "Brier")
    print_table(
        "Fitted on other tasks of the same source",
        columns,
        [
            (
                f"{row['source']}: {row['confidence']}", row["n"], f"{row['accuracy']:.2f}", f"{row['auroc']:.3f}", interval(row),
                f"{row['mean_auroc']:.3f}", f"{row['ece']:.3f}", f"{row['brier']:.3f}",
            )
            for row in rows
        ],
    )  # fmt: skip


def print_transfer(rows: list[dict[str, Any]]) -> None:
    print_table(
        "Fitted on all other sources",
        ("source", "runs", "AUROC", "95 %", "ECE", "Brier", "Brier of the constant", "beats it"),
        [
            (
                row["source"], row["n"], f"{row['auroc']:.3f}", interval(row), f"{row['ece']:.3f}", f"{row['brier']:.3f}",
                f"{row['constant_brier']:.3f}", "yes" if row["beats"] else "no",
            )
            for row in rows
        ],
    )  # fmt: skip
    mean = np.mean([row["auroc"] for row in rows])
    beaten = sum(row["beats"] for row in rows)
    print(f"\nMean AUROC {mean:.2f}; the constant is beaten on {beaten} of {len(rows)} sources.")


def interval(row: dict[str, Any]) -> str:
    return "constant" if row["interval"] is None else f"{row['interval'][0]:.2f} to {row['interval'][1]:.2f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="own, actions, transfer, labels; default all")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", help="a source, by the beginning of its name")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of the cross-validation with other folds")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    chosen = parser.parse_args(arguments)
    parts = chosen.parts or ["own", "actions", "transfer", "labels"]
    if not (chosen.data / "agent_runs.jsonl.gz").exists():
        print(f"there are no labelled runs in {chosen.data}; name their folder with --data")
        return
    found = sources(chosen.data)
    rows: dict[str, list[dict[str, Any]]] = {}
    kept = [name for name in found if name.startswith(chosen.only or "")]
    if "own" in parts:
        rows["own"] = [row for name in kept for row in own_rows(name, found[name], chosen.repeats)]
        print_own(rows["own"])
    if "actions" in parts:
        honest = [name for name in kept if name not in STOPPED]
        rows["actions"] = [row for name in honest for row in action_rows(name, found[name])]
        print_actions(rows["actions"])
    if "transfer" in parts:
        rows["transfer"] = transfer_rows(found)
        print_transfer(rows["transfer"])
    if "labels" in parts:
        honest = [name for name in kept if name not in STOPPED]
        rows["labels"] = [row for name in honest for row in label_rows(name, found[name], 4 * chosen.repeats)]
        print_labels(rows["labels"])
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
