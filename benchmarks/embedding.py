"""One evaluation with a real embedder, by ONNX and by sentence-transformers; batches; what loading and importing cost.

    python benchmarks/embedding.py --onnx FOLDER --torch FOLDER

FOLDER of `--onnx` is what `export_onnx.py` writes, or the default model in the hub's cache; that of `--torch` is a folder of
sentence-transformers. What is not given or not installed is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from _measure import machine, print_table

import grace_kp as gk


def trace(number: int, *, long: bool = False) -> dict[str, Any]:
    """A run of five steps, unlike the others: about 25 tokens, or about 90."""
    towns = ("Rome", "Lisbon", "Oslo", "Kyoto", "Lima", "Quito", "Accra", "Perth")
    town, other = towns[number % 8], towns[number // 8 % 8]
    brief = [
        ("thought", "compare the fares"),
        ("tool_call", f"search {other}"),
        ("observation", f"{80 + number % 300} euros on Monday"),
        ("thought", "cheap enough"),
        ("observation", f"booked seat {number % 30}C"),
    ]
    wordy = [
        (
            "thought",
            f"The customer {number} wants to fly from {town} to {other}, so the fares of this week are needed first.",
        ),
        ("tool_call", f"search(query='fares {town} {other} {number}')"),
        (
            "observation",
            f"3 flights found, the cheapest at {80 + number % 300} euros, leaving at {number % 24}:30 on Monday.",
        ),
        (
            "thought",
            f"The cheapest one leaves too early; the second at {95 + number % 300} euros fits the wishes better.",
        ),
        ("observation", f"Booked seat {number % 30}C, reference X{number:05d}."),
    ]
    return {
        "metadata": {"success": True, "task_domain": "customer_service"},
        "task": {"objective": f"Flight {number} from {town} to {other}"},
        "steps": [
            {
                "step_id": at,
                "type": kind,
                "content": text,
                **({"tool": {"name": "search"}} if kind == "tool_call" else {}),
            }
            for at, (kind, text) in enumerate(wordy if long else brief)
        ],
        "outcome": {"result_summary": "booked", "confidence": 0.8},
    }


def latencies(embedders: dict[str, Any], rounds: int) -> None:
    """Milliseconds of one score, each trace new."""
    rows = []
    for name, long in ((name, long) for long in (False, True) for name in embedders):
        embedder = embedders[name]
        scorer = gk.ValueScorer(embedder=embedder)
        for number in range(20):
            scorer.score(trace(10**6 + number, long=long))
        times = []
        for number in range(rounds):
            one = trace(number, long=long)
            start = perf_counter()
            score = scorer.score(one)
            times.append((perf_counter() - start) * 1e3)
            if score.novelty_fallback is not None:
                raise RuntimeError(score.novelty_fallback)
        times.sort()
        length = "about 90 tokens" if long else "about 25 tokens"
        rows.append(
            (name, length, statistics.median(times), *(times[int(rounds * share)] for share in (0.9, 0.99)), times[-1])
        )
    columns = ("embedder", "trace", "median", "90 %", "99 %", "slowest")
    print_table(f"one evaluation of a five-step trace with a warm embedder, ms ({rounds} traces)", columns, rows)


def batches(embedders: dict[str, Any], count: int) -> None:
    """Traces per second, one by one and in a batch."""
    rows = []
    for name, embedder in embedders.items():
        seconds = []
        for start_at, whole in ((10**7, False), (2 * 10**7, True)):
            traces = [trace(start_at + number) for number in range(count)]
            scorer = gk.ValueScorer(embedder=embedder)
            scorer.score(traces[0])
            start = perf_counter()
            scores = list(scorer.score_all(traces)) if whole else [scorer.score(one) for one in traces]
            seconds.append(perf_counter() - start)
            if len(scores) != count:
                raise RuntimeError("a trace was lost")
        rows.append((name, seconds[0], seconds[1], seconds[0] / seconds[1]))
    print_table(f"{count} traces, s", ("embedder", "one by one", "score_all", "times as fast"), rows)


LOAD = """
import sys, time, resource
start = time.perf_counter()
import grace_kp as gk
embedder = getattr(gk, sys.argv[1])(sys.argv[2])
embedder.load()
loaded = time.perf_counter() - start
embedder.embed(["How long does a short text take?"])
print(loaded, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def loading(folders: dict[str, str]) -> None:
    """Seconds from a fresh interpreter to a loaded model, and the memory it takes; the best of three."""
    rows = []
    for name, folder in folders.items():
        seen = []
        for _ in range(3):
            ran = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", LOAD, name, folder], capture_output=True, text=True, check=True
            )
            seen.append(tuple(map(float, ran.stdout.split())))
        rows.append((name, *min(seen)))
    print_table("import and load, best of three fresh interpreters", ("embedder", "s", "resident MB"), rows)


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx")
    parser.add_argument("--torch")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--traces", type=int, default=1_000)
    given = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    print(f"\n## Embedding\n\n{machine()}")
    folders = {"OnnxEmbedder": given.onnx, "SentenceTransformerEmbedder": given.torch}
    folders = {name: str(Path(folder).absolute()) for name, folder in folders.items() if folder}
    embedders = {name: getattr(gk, name)(folder, remember=4_096) for name, folder in folders.items()}
    if not embedders:
        print("\nleft out: give --onnx and --torch")
        return
    loading(folders)
    latencies(embedders, given.rounds)
    batches(embedders, given.traces)


if __name__ == "__main__":
    main()
