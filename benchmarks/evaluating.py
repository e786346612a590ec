"""What scoring costs: cases of 50 operations through a standard suite, and how matching grows with the operations."""

from __future__ import annotations

import argparse
import random
from time import perf_counter

from _measure import machine, print_table, seconds_of

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
    rows = []
    for operations in (250, 500, 1_000, 2_000):
        mixed, equal = case(operations), case(operations, 1)
        times = [seconds_of(lambda one=one: suite.evaluate(*one), 3) * 1e3 for one in (mixed, equal)]
        rows.append((f"{operations:,}", *times))
    print_table("one case by its operations", ("operations", "ms, 20 targets", "ms, one target"), rows)


if __name__ == "__main__":
    main()
