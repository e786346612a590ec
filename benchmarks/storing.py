"""What storing does: traces per second, query times, sustained recording end to end, its cost for the agent, and memory.

Figures of a whole process (memory, a million steps) come from processes of their own, which this script starts. The SQLite
files are temporary. "Sustained" means that the clock runs from the first call until `flush()` has returned.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from _measure import alone, machine, median_seconds, print_table, resident_mb

import grace_kp as gk
from grace_kp.store import Record, Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GIVEN, BACK = "x" * 200, "y" * 200
DOMAINS = ("default", "finance", "code", "medical")
BATCH = 500


def agent_of(grace: gk.Grace | None, *, calls: int = 10, wait: float = 0.0) -> Callable[[str], str]:
    """An agent that makes so many tool calls, recorded or not, each of which waits so many seconds."""

    def tool(query: str) -> str:
        if wait:
            time.sleep(wait)
        return BACK

    if grace is not None:
        tool = grace.tool(tool)

    def agent(question: str) -> str:
        for _ in range(calls):
            tool(GIVEN)
        return BACK

    return agent if grace is None else grace.agent(agent)


def template() -> dict[str, Any]:
    """The document of one run with ten calls, as recording makes it."""
    grace = gk.Grace(store="memory:", embedder=None)
    with grace.collect() as traces:
        agent_of(grace)("How much is it?")
    grace.close()
    return traces[0].to_dict()


def records(number: int) -> Iterator[list[Record]]:
    """Batches of records, each of its own id, time, domain and score."""
    document = template()
    batch: list[Record] = []
    for index in range(number):
        domain, score = DOMAINS[index % len(DOMAINS)], index % 1_000 / 1_000
        created = f"2026-01-{1 + index % 28:02d}T{index // 3_600 % 24:02d}:{index // 60 % 60:02d}:{index % 60:02d}.000Z"
        document["id"] = f"kp:trace:{index:08d}"
        document["metadata"].update(created_at=created, task_domain=domain, quality_score=score)
        document["task"]["objective"] = f"Question {index} about topic{index % 997}"
        batch.append(
            Record(
                id=document["id"],
                created_at=created,
                domain=domain,
                score=score,
                success=index % 10 != 0,
                status="completed",
                text=f"{document['task']['objective']}\n{BACK}",
                data=json.dumps(document, separators=(",", ":")).encode(),
            )
        )
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def filled(url: str, number: int) -> tuple[Store, float]:
    """A store with so many traces, and how many it took per second."""
    store, spent = open_store(url), 0.0
    for batch in records(number):
        start = perf_counter()
        store.put(batch)
        spent += perf_counter() - start
    return store, number / spent


QUERIES: dict[str, Callable[[Any], Any]] = {
    "get by id": lambda store: store.get("kp:trace:00004321"),
    "newest 20": lambda store: store.query(limit=20),
    "20 of a domain": lambda store: store.query(domain="finance", limit=20),
    "20 of a domain with a score from 0.9": lambda store: store.query(domain="finance", min_score=0.9, limit=20),
    "20 that failed": lambda store: store.query(success=False, limit=20),
    "20 since a time": lambda store: store.query(since="2026-01-20T00:00:00Z", limit=20),
    "20 with a text": lambda store: store.query(text="topic500", limit=20),
    "a text that nowhere is": lambda store: store.query(text="nowhere at all", limit=20),
    "all 10,000": lambda store: store.query(limit=None),
}


def storing_rows(folder: Path, number: int) -> None:
    """Bare stores: traces stored per second, and what questions take afterwards."""
    urls = {"memory": f"memory:?max_traces={number}&max_mb=1000", "SQLite": f"sqlite:///{folder / 'bare.db'}"}
    stores = {name: filled(url, number) for name, url in urls.items()}
    rows: list[tuple[Any, ...]] = [
        ("traces stored per second (batches of 500)", *(rate for _, rate in stores.values()))
    ]
    print_table(f"{number:,} traces of 21 steps, bare store", ("what", *stores), rows)
    timed = [
        (
            name.replace("10,000", f"{number:,}"),
            *(
                median_seconds(lambda ask=ask, store=store: ask(store), rounds=3 if "all" in name else 7) * 1e3
                for store, _ in stores.values()
            ),
        )
        for name, ask in QUERIES.items()
    ]
    print_table(f"queries at {number:,} traces, ms", ("query", *stores), timed)
    for store, _ in stores.values():
        store.close()


def sustained(url: str, runs: int, threads: int = 1) -> tuple[float, float, float, dict[str, Any]]:
    """Seconds of the agents' loops, seconds until all is stored, most megabytes that waited, and what became of the runs."""
    grace = gk.Grace(store=url, embedder=None)
    agent = agent_of(grace)
    agent("warm")
    grace.flush()
    waited = [0]

    def loop() -> None:
        for number in range(runs // threads):
            agent("How much is it?")
            if number % 100 == 0:
                waited.append(grace.status()["writer"]["pending_bytes"])

    start = perf_counter()
    if threads == 1:
        loop()
    else:
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(threads):
                pool.submit(loop)
    agent_done = perf_counter() - start
    if not grace.flush(300):
        raise RuntimeError("flush did not get all stored")
    all_done = perf_counter() - start
    told = grace.status()["writer"]
    grace.close()
    return agent_done, all_done, max(waited) / (1 << 20), told


def sustained_rows(folder: Path, runs: int, rounds: int) -> None:
    """Recorded steps per second end to end, what waited meanwhile, and what was dropped."""
    rows: list[tuple[Any, ...]] = []
    steps = runs * 20
    for name, threads in (("memory", 1), ("SQLite", 1), ("SQLite, 4 threads", 4)):
        seen = [
            sustained(
                "memory:" if name == "memory" else f"sqlite:///{folder / f'{threads}-{number}.db'}", runs, threads
            )
            for number in range(rounds)
        ]
        loop, whole, waited = (statistics.median(one[place] for one in seen) for place in (0, 1, 2))
        dropped = sum(one[3]["dropped"] for one in seen)
        rows.append((name, steps / whole, runs / whole, loop / steps * 2e6, waited, dropped))
    columns = (
        "store",
        "steps per second",
        "runs per second",
        "agent, µs per call",
        "most waiting, MB",
        "dropped",
    )
    print_table(f"sustained: {runs:,} runs of 10 calls (20 steps) back to back, until all is stored", columns, rows)


def agent_rows(folder: Path, rounds: int) -> None:
    """An agent whose tools take their time, as real ones do: what recording into SQLite adds to it."""
    rows: list[tuple[Any, ...]] = []
    for wait, runs in ((0.0, 500), (0.001, 20), (0.01, 3)):
        grace = gk.Grace(store=f"sqlite:///{folder / f'agent{wait}.db'}", embedder=None)
        subjects = {"plain": agent_of(None, wait=wait), "recorded": agent_of(grace, wait=wait)}
        wall: dict[str, list[float]] = {name: [] for name in subjects}
        thread: dict[str, list[float]] = {name: [] for name in subjects}
        for _ in range(rounds + 1):
            for name, agent in subjects.items():
                cpu, start = time.thread_time(), perf_counter()
                for _ in range(runs):
                    agent("How much is it?")
                wall[name].append((perf_counter() - start) / runs * 1e6)
                thread[name].append((time.thread_time() - cpu) / runs * 1e6)
            grace.flush()
        grace.close()
        before, after = (statistics.median(wall[name][1:]) for name in ("plain", "recorded"))
        cpu_before, cpu_after = (statistics.median(thread[name][1:]) for name in ("plain", "recorded"))
        share = f"{(after / before - 1) * 100:.1f} %" if wait else ""
        rows.append((f"{wait * 1e3:g} ms", before, after, share, cpu_after - cpu_before))
    columns = ("each tool takes", "plain run, µs", "recorded run, µs", "more", "own CPU added, µs per run")
    print_table("the agent's own time: runs of 10 tool calls, recorded into SQLite", columns, rows)


def memory_task(url: str) -> dict[str, float]:
    """Megabytes per 1,000 traces: resident, and as Python counts its own objects."""
    grace = gk.Grace(store=url, embedder=None)
    agent = agent_of(grace)
    for _ in range(200):
        agent("warm")
    grace.flush()
    before = resident_mb()
    for _ in range(5_000):
        agent("How much is it?")
    grace.flush()
    resident = (resident_mb() - before) / 5
    tracemalloc.start()
    counted = tracemalloc.get_traced_memory()[0]
    for _ in range(1_000):
        agent("How much is it?")
    grace.flush()
    python = (tracemalloc.get_traced_memory()[0] - counted) / (1 << 20)
    tracemalloc.stop()
    return {"resident": resident, "python": python}


def million_task(url: str, steps: str) -> dict[str, Any]:
    """Resident megabytes at 10 %, 50 % and 100 % of so many recorded steps."""
    grace = gk.Grace(store=url, embedder=None)
    agent = agent_of(grace)
    runs = int(steps) // 20
    marks = {runs // 10: "at 10 %", runs // 2: "at 50 %", runs: "at 100 %"}
    told: dict[str, Any] = {}
    start = perf_counter()
    for number in range(1, runs + 1):
        agent("How much is it?")
        if number % 100 == 0:
            told["waited"] = max(told.get("waited", 0), grace.status()["writer"]["pending_bytes"] / (1 << 20))
        if number in marks:
            told[f"before flush {marks[number]}"] = resident_mb()
            grace.flush(600)
            told[marks[number]] = resident_mb()
    told["seconds"] = perf_counter() - start
    told["writer"] = grace.status()["writer"]
    grace.close()
    return told


def memory_rows(folder: Path, steps: int) -> None:
    """Memory per 1,000 traces, and over a million steps."""
    kept, on_disk = alone(__file__, "memory", "memory:"), alone(__file__, "memory", f"sqlite:///{folder / 'memory.db'}")
    rows = [("memory", kept["resident"], kept["python"]), ("SQLite", on_disk["resident"], on_disk["python"])]
    print_table("memory per 1,000 traces of 20 steps, MB", ("store", "resident", "Python's objects"), rows)
    many = {
        "memory": alone(__file__, "million", "memory:", steps),
        "SQLite": alone(__file__, "million", f"sqlite:///{folder / 'million.db'}", steps),
    }
    table: list[tuple[Any, ...]] = [
        (
            name,
            *(told[f"at {share} %"] for share in (10, 50, 100)),
            max(told[f"before flush at {share} %"] for share in (10, 50, 100)),
            told["waited"],
            steps / told["seconds"],
            told["writer"]["dropped"],
        )
        for name, told in many.items()
    ]
    columns = (
        "store",
        "10 %",
        "50 %",
        "100 %",
        "highest, before a flush",
        "most waiting, MB",
        "steps per second",
        "dropped",
    )
    print_table(f"resident MB over {steps:,} recorded steps in one process", columns, table)


def main(arguments: list[str] | None = None) -> None:
    """All tables; with --task one measurement for another process of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=10_000, help="traces in the bare stores (default 10,000)")
    parser.add_argument("--runs", type=int, default=10_000, help="runs of a sustained round (default 10,000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of the memory run (default 1,000,000)")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.task:
        task, *rest = given.task
        print(json.dumps({"memory": memory_task, "million": million_task}[task](*rest)))
        return
    print(f"\n## Storing\n\n{machine()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        storing_rows(folder, given.traces)
        sustained_rows(folder, given.runs, given.rounds)
        agent_rows(folder, given.rounds)
        memory_rows(folder, given.steps)


if __name__ == "__main__":
    main()
