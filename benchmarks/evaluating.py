"""What scoring costs: cases of 50 operations through a standard suite, also by `grace-kp eval`; how matching grows; finished runs."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from _measure import machine, print_table, seconds_of

import grace_kp as gk
from grace_kp import scorers as sc


def case(operations: int, targets: int = 20) -> tuple[sc.EditResult, sc.EditExpectation]:
    """A case in which nine of ten operations are right, in another order."""
    wanted = [
        sc.Operation(random.choice(["insert", "update", "delete"]), f"b{random.randrange(targets)}", random.randrange(targets), random.choice("ab"), "x")
        for _ in range(operations)
    ]  # fmt: skip
    done = random.sample(wanted, operations)[: -(operations // 10)] + [sc.Operation("move", "z")] * (operations // 10)
    expected = sc.EditExpectation(wanted, patterns={"A": ["cart", "nope|text"]})
    return sc.EditResult(done, pages={"A": "some text " * 30 + "cart"}), expected


def command(cases: list, count: int, jobs: int) -> float:
    """Seconds of `grace-kp eval` over a file of these cases, again and again until there are so many."""
    lines = []
    for actual, expected in cases:
        done = {"operations": [asdict(one) for one in actual.operations], "pages": actual.pages}
        wanted = {"operations": [asdict(one) for one in expected.operations], "patterns": expected.patterns}
        lines.append(json.dumps({"actual": done, "expected": wanted}) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        file.write_text("".join(lines[number % len(lines)] for number in range(count)), encoding="utf-8")
        start = perf_counter()
        arguments = ["-m", "grace_kp.cli", "eval", "standard", str(file), "--jobs", str(jobs)]
        subprocess.run([sys.executable, *arguments], check=False, stdout=subprocess.DEVNULL)
        return perf_counter() - start


def finished(scorers: tuple, runs: int = 2_000) -> float:
    """Seconds from the end of the first run to the last one stored, for each run."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, scorers=scorers)

    @grace.tool
    def write(path: str, content: str) -> str:
        return "ok"

    def once() -> None:
        with grace.run("Write"):
            for number in range(10):
                write(str(number), "text")

    once()
    grace.flush()
    start = perf_counter()
    for _ in range(runs):
        once()
    grace.flush()
    spent = (perf_counter() - start) / runs
    grace.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    given = parser.parse_args()
    random.seed(1)
    print(f"\n{machine()}")
    suite = sc.Suite.preset("standard")
    cases = [case(50) for _ in range(500)]
    start = perf_counter()
    for number in range(given.cases):
        suite.evaluate(*cases[number % len(cases)])
    spent = perf_counter() - start
    print_table(
        "a standard suite over cases of 50 operations, one process",
        ("cases", "s", "cases/s"),
        [(str(given.cases), spent, given.cases / spent)],
    )
    rows = [(jobs, command(cases, given.cases, jobs)) for jobs in (1, 2)]
    print_table(
        f"grace-kp eval over a file of {given.cases:,} cases, start and reading included", ("processes", "s"), rows
    )
    rows = []
    for operations in (250, 500, 1_000, 2_000):
        mixed, equal = case(operations), case(operations, 1)
        times = [seconds_of(lambda one=one: suite.evaluate(*one), 3) * 1e3 for one in (mixed, equal)]
        rows.append((f"{operations:,}", *times))
    print_table("one case by its operations", ("operations", "ms, 20 targets", "ms, one target"), rows)
    suite = sc.OnTraces(sc.Suite.preset("standard"), sc.EditExpectation([sc.Operation("write", "3")]))
    rows = [(name, finished(scorers) * 1e6) for name, scorers in (("none", ()), ("a standard suite", (suite,)))]
    print_table("finishing a run of 10 calls in the background", ("scorers", "µs"), rows)


if __name__ == "__main__":
    main()
