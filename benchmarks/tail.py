"""How long the slowest calls of an agent take with recording, beside none and the peers: percentiles, not means.

What finishes runs in the background competes with the agent for the interpreter; it shows in the slowest calls. Three situations:

    steady   an agent of ten tool calls (200 characters in and out) starts 400 times a second; each root call is timed
    threads  200 threads make 100 runs of ten calls each as fast as they can; each root call is timed
    tasks    10,000 tasks of one event loop make a run each; a ticker measures how long the loop stands still

Every round is a process of its own, and the subjects take turns. grace_kp stores redacted runs in SQLite; OpenTelemetry and Langfuse
write their spans, unredacted, to a file as JSON. Nobody reaches a network. Peers that are not installed are left out, and named.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import statistics
import tempfile
import threading
import time
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from _measure import alone, machine, print_table
from recording import Subject, spans_of

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 10
TEXT = "x" * 200
DURABILITIES = ("fast", "bounded", "every_run")
SITUATIONS = ("steady", "threads", "tasks")


def spans_in_file(folder: str) -> Any:
    """A provider of OpenTelemetry with a batch processor that writes spans to a file."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter(folder), max_queue_size=200_000))
    return provider


def exporter(folder: str) -> Any:
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class ToFile(SpanExporter):
        def __init__(self) -> None:
            self.file = (Path(folder) / "spans.jsonl").open("w", encoding="utf-8")

        def export(self, spans: Any) -> Any:
            for span in spans:
                self.file.write(span.to_json(indent=None) + "\n")
            self.file.flush()
            return SpanExportResult.SUCCESS

    return ToFile()


def opentelemetry(folder: str) -> Subject:
    provider = spans_in_file(folder)
    decorate = spans_of(provider.get_tracer("benchmark"))
    return Subject(child=decorate, root=decorate, flush=provider.force_flush)


def langfuse(folder: str) -> Subject:
    from langfuse import Langfuse, observe
    from opentelemetry.sdk.trace import TracerProvider

    # Langfuse adds its own batch processor, with this exporter, to the provider.
    provider = TracerProvider()
    Langfuse(
        public_key="pk-benchmark",
        secret_key="sk-benchmark",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider,
        span_exporter=exporter(folder),
    )
    return Subject(child=observe(), root=observe(), flush=provider.force_flush)


def grace_kp(folder: str, durability: str) -> Subject:
    import grace_kp as gk
    from grace_kp.settings import Settings

    known = {item.name for item in fields(Settings)}
    settings: dict[str, Any] = {"durability": durability} if "durability" in known else {}
    grace = gk.Grace(store=f"sqlite:///{folder}/tail.db", embedder=None, evaluator=None, **settings)

    def losses() -> str:
        counts = grace.status()["writer"]
        return f"{sum(int(counts.get(name) or 0) for name in ('dropped', 'lost'))} lost"

    return Subject(child=grace.tool, root=grace.agent, flush=lambda: grace.flush(120), losses=losses)


def subject_of(name: str, folder: str) -> Subject:
    """A subject by its name; that of grace_kp may end with its durability."""
    if name.startswith("grace_kp"):
        return grace_kp(folder, name.partition(" ")[2] or "fast")
    return {"none": lambda _: Subject(), "opentelemetry": opentelemetry, "langfuse": langfuse}[name](folder)


def agent_of(subject: Subject) -> Callable[[str], str]:
    def child(text: str) -> str:
        return TEXT

    child = subject.child(child)

    def root(text: str) -> str:
        for _ in range(CALLS):
            child(text)
        return TEXT

    recorded: Callable[[str], str] = subject.root(root)
    return recorded


def async_agent_of(subject: Subject) -> Callable[[str], Any]:
    async def child(text: str) -> str:
        await asyncio.sleep(0)
        return TEXT

    child = subject.child(child)

    async def root(text: str) -> str:
        for _ in range(CALLS):
            await child(text)
        return TEXT

    recorded: Callable[[str], Any] = subject.root(root)
    return recorded


def steady_task(subject: Subject, seconds: float, per_second: float) -> dict[str, Any]:
    """The seconds that each root call took at a steady pace."""
    root = agent_of(subject)
    root(TEXT)
    subject.flush()
    took: list[float] = []
    start = perf_counter()
    for number in range(int(seconds * per_second)):
        wait = start + number / per_second - perf_counter()
        if wait > 0:
            time.sleep(wait)
        began = perf_counter()
        root(TEXT)
        took.append(perf_counter() - began)
    return {"took": took}


def threads_task(subject: Subject, threads: float, runs: float) -> dict[str, Any]:
    """The seconds that each root call took, and all of them together, without and with the flush."""
    root = agent_of(subject)
    root(TEXT)
    subject.flush()
    took: list[float] = []
    ready = threading.Barrier(int(threads) + 1)

    def work() -> None:
        ready.wait()
        for _ in range(int(runs)):
            began = perf_counter()
            root(TEXT)
            took.append(perf_counter() - began)

    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    ready.wait()
    start = perf_counter()
    for worker in workers:
        worker.join()
    return {"took": took, "agents": perf_counter() - start, **_flushed(subject, start)}


def tasks_task(subject: Subject, tasks: float, tick: float) -> dict[str, Any]:
    """The longest time between two turns of a ticker in the loop, and the seconds that all tasks took."""
    root = async_agent_of(subject)

    async def main() -> tuple[float, float]:
        await root(TEXT)
        subject.flush()
        longest, done = 0.0, False

        async def ticker() -> None:
            nonlocal longest
            last = perf_counter()
            while not done:
                await asyncio.sleep(tick)
                now = perf_counter()
                longest, last = max(longest, now - last), now

        watch = asyncio.create_task(ticker())
        await asyncio.sleep(0.05)
        longest, start = 0.0, perf_counter()
        await asyncio.gather(*(root(TEXT) for _ in range(int(tasks))))
        spent = perf_counter() - start
        done = True
        await watch
        return longest, spent

    start = perf_counter()
    longest, spent = asyncio.run(main())
    return {"took": [longest], "agents": spent, **_flushed(subject, start)}


def _flushed(subject: Subject, start: float) -> dict[str, Any]:
    subject.flush()
    return {"all": perf_counter() - start}


def measured(name: str, situation: str, size: str, rate: str) -> dict[str, Any]:
    """One round of one subject, in this process."""
    task = {"steady": steady_task, "threads": threads_task, "tasks": tasks_task}[situation]
    with tempfile.TemporaryDirectory() as folder:
        subject = subject_of(name, folder)
        gc.collect()
        found = task(subject, float(size), float(rate))
        subject.flush()
        return {**found, "losses": subject.losses()}


def rounds_of(names: list[str], situation: str, rounds: int, *numbers: float) -> dict[str, list[dict[str, Any]]]:
    """What each subject measured, round by round, in processes that take turns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in list(found):
            try:
                found[name].append(alone(__file__, name, situation, *numbers))
            except RuntimeError as problem:
                print(f"\nleft out: {name}: {str(problem).strip().splitlines()[-1][:120]}")
                del found[name]
    return {name: seen for name, seen in found.items() if seen}


def percentiles(rounds: list[dict[str, Any]]) -> tuple[float, ...]:
    """Milliseconds at 50, 99 and 99.9 %, and the longest."""
    took = sorted(took for one in rounds for took in one["took"])
    return tuple(took[min(len(took) - 1, int(len(took) * share))] * 1e3 for share in (0.5, 0.99, 0.999, 1.0))


def lost(rounds: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(one["losses"] for one in rounds if one["losses"]))


def main(arguments: list[str] | None = None) -> None:
    """A table for each situation; with --task one round for another process of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("situations", nargs="*", help=f"which ones (default all): {', '.join(SITUATIONS)}")
    parser.add_argument("--only", action="append", help="only this subject, such as none or grace_kp; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="processes per subject (default 3)")
    parser.add_argument("--seconds", type=float, default=4, help="of a round at a steady pace (default 4)")
    parser.add_argument("--rate", type=float, default=400, help="runs per second at a steady pace (default 400)")
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--runs", type=int, default=100, help="of each thread (default 100)")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    if options.task:
        print(json.dumps(measured(*options.task)))
        return
    from grace_kp.settings import Settings

    own = [f"grace_kp {name}" for name in DURABILITIES]
    if "durability" not in {item.name for item in fields(Settings)}:
        own = ["grace_kp"]
    names = ["none", "opentelemetry", "langfuse", *own]
    if options.only:
        names = [name for name in names if name in options.only or name.partition(" ")[0] in options.only]
    print(f"\n## Tail latency\n\n{machine()}")
    wanted = options.situations or SITUATIONS
    if "steady" in wanted:
        steady = rounds_of(names, "steady", options.rounds, options.seconds, options.rate)
        rows = [(name, *percentiles(rounds), lost(rounds)) for name, rounds in steady.items()]
        print_table(
            f"steady: {options.rate:g} runs of {CALLS} calls a second, ms per run; {options.rounds} × {options.seconds:g} s",
            ("subject", "50 %", "99 %", "99.9 %", "longest", "lost"),
            rows,
        )
    for situation, numbers, title, columns in (
        (
            "threads",
            (options.threads, options.runs),
            f"threads: {options.threads} threads of {options.runs} runs, ms per run; {options.rounds} rounds",
            ("subject", "50 %", "99 %", "99.9 %", "slowest call", "agents, s", "with flush, s", "lost"),
        ),
        (
            "tasks",
            (options.tasks, 0.005),
            f"tasks: {options.tasks:,} tasks of one event loop; {options.rounds} rounds, median and worst",
            ("subject", "longest stall, ms", "worst", "agents, s", "with flush, s", "lost"),
        ),
    ):
        if situation not in wanted:
            continue
        found = rounds_of(names, situation, options.rounds, *numbers)
        rows = []
        for name, rounds in found.items():
            spent = [statistics.median(one[what] for one in rounds) for what in ("agents", "all")]
            figures = percentiles(rounds)
            if situation == "tasks":
                figures = (statistics.median(one["took"][0] for one in rounds) * 1e3, figures[-1])
            rows.append((name, *figures, *spent, lost(rounds)))
        print_table(title, columns, rows)


if __name__ == "__main__":
    main()
