"""What large and odd arguments cost on the agent's own thread: microseconds that recording adds to one call.

Recording keeps immutable values by reference and renders mutable ones at once, within bounds, so the price must not grow with
the value. Each value goes in as an argument, comes back as a result, and leaves inside of an exception.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import statistics
from time import perf_counter
from typing import TYPE_CHECKING, Any

from _measure import machine, print_table

import grace_kp as gk

if TYPE_CHECKING:
    from collections.abc import Callable

MB = 1 << 20


@dataclasses.dataclass
class Record:
    name: str
    items: list[int]
    more: dict[str, Any]


class Thing:
    def __init__(self, number: int) -> None:
        self.number = number


class HugeRepr:
    """Its repr would be 50 MB of text."""

    def __init__(self) -> None:
        self.rows = [list(range(1_000)) for _ in range(10_000)]

    def __repr__(self) -> str:
        return f"HugeRepr({self.rows!r})"


def nested(depth: int, width: int = 6) -> Any:
    return {f"key {n}": nested(depth - 1, width) for n in range(width)} if depth else "leaf"


def values() -> dict[str, Callable[[], Any]]:
    """The values by name, each made when its turn comes."""
    made: dict[str, Callable[[], Any]] = {
        "text of 20 characters": lambda: "x" * 20,
        "text of 5 MB": lambda: "word " * MB,
        "text of 5 MB without a space": lambda: "x" * 5 * MB,
        "bytes of 5 MB": lambda: bytes(5 * MB),
        "list of 5 MB (650,000 numbers)": lambda: list(range(1_000, 651_000)),
        "list of 5 MB (5,120 texts)": lambda: ["x" * 1_024 for _ in range(5_120)],
        "small dict": lambda: {"query": "weather", "limit": 10, "exact": True},
        "nested dict, 6 wide and 5 deep": lambda: nested(5),
        "dict of 100,000 entries": lambda: {str(n): n for n in range(100_000)},
        "dataclass with 5 MB in it": lambda: Record("x" * 5 * MB, list(range(100_000)), nested(4)),
        "100,000 small objects": lambda: [Thing(n) for n in range(100_000)],
        "object with a repr of 50 MB": HugeRepr,
        "set of 100,000": lambda: set(range(100_000)),
    }
    with contextlib.suppress(ImportError):
        import numpy as np

        made["numpy array of 5 MB"] = lambda: np.zeros(5 * MB // 8)
        made["list of 1,000 numpy arrays"] = lambda: [np.zeros(100) for _ in range(1_000)]
    return made


def cost(function: Callable[[Any], Any], value: Any, rounds: int) -> list[float]:
    """Microseconds of single calls; each is timed alone, because the slowest matters too."""
    seen = []
    for _ in range(rounds):
        start = perf_counter()
        with contextlib.suppress(LookupError):
            function(value)
        seen.append((perf_counter() - start) * 1e6)
    return seen


def main(arguments: list[str] | None = None) -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args(arguments)
    grace = gk.Grace(store="memory:", embedder=None)

    @grace.tool
    def take(value: Any) -> str:
        return "taken"

    kept: list[Any] = [None]

    @grace.tool
    def give(name: str) -> Any:
        return kept[0]

    @grace.tool
    def fail(name: str) -> None:
        raise LookupError(kept[0])

    rows = []
    for name, make in values().items():
        kept[0] = value = make()
        with grace.run("cost of a value"):
            took = cost(take, value, given.rounds)
            gave = cost(lambda _: give("x"), value, given.rounds)
            failed = cost(lambda _: fail("x"), value, given.rounds)
        rows.append(
            (name, statistics.median(took), max(took), statistics.median(gave), max(gave), statistics.median(failed))
        )
        kept[0] = value = None
        grace.flush()
        grace.store.clear()
    print(f"\n## Arguments\n\n{machine()}")
    columns = ("value", "argument, µs", "slowest", "result, µs", "slowest", "inside an error, µs")
    print_table(f"median and slowest of {given.rounds} calls", columns, rows)
    grace.close()


if __name__ == "__main__":
    main()
