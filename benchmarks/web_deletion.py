"""What deleting old runs costs without and with an index of pages beside the store, and whether lists and figures stay complete meanwhile.

Every round deletes the oldest runs by their age. The floor is the deletion without an index, which rewrites the file of the store. Beside
an index, another process follows the store and asks for figures without a pause; the table states by how many runs it ever showed too few.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter
from typing import Any

from _measure import alone, flags, machine, print_table
from web_scale import build_store, megabytes

from grace_kp.store import open_catalog, open_store

PERIOD = ("2025-11-01", "2026-12-31")


def delete_oldest(path: Path, runs: int) -> dict[str, float]:
    """Delete so many runs and those nested in them, and return how many those were and how long it took."""
    store = open_store(f"sqlite:///{path}")
    until = store.query(limit=1, offset=store.count() - runs)[0].metadata.created_at
    os.sync()
    start, processor = perf_counter(), time.process_time()
    deleted = store.delete(older_than=until)
    spent = {"runs": int(deleted), "s": perf_counter() - start, "processor, s": time.process_time() - processor}
    if not deleted.clean:
        raise RuntimeError(deleted.remains)
    store.close()
    return spent


def watch(path: Path) -> dict[str, float]:
    """Follow a store and look at figures until a line comes in; return the fewest runs and the slowest look."""
    store = open_store(f"sqlite:///{path}")
    catalog = open_catalog(store)
    catalog.refresh()
    catalog.follow()
    fewest, slowest, looks = 1 << 60, 0.0, 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        start = perf_counter()
        fewest = min(fewest, catalog.figures(*PERIOD).total.runs)
        slowest, looks = max(slowest, perf_counter() - start), looks + 1
    start = perf_counter()
    catalog.close()
    catalog = open_catalog(store)
    catalog.refresh()
    again = perf_counter() - start
    catalog.close()
    store.close()
    return {"fewest": fewest, "slowest look, ms": slowest * 1e3, "looks": looks, "words again, s": again}


def watched(path: Path, runs: int) -> dict[str, float]:
    """Delete while another process watches."""
    command = [*flags(), __file__, "--task", "watch", "--store", str(path)]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    watcher.stdout.readline()
    spent = alone(__file__, "delete", "--store", path, "--deleted", runs)
    seen = json.loads(watcher.communicate("\n", timeout=600)[0])
    store = open_store(f"sqlite:///{path}", create=False)
    missing = max(0, store.count() - seen.pop("fewest"))
    store.close()
    return {**spent, "missing": missing, **seen}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--deleted", type=int, default=1_000, help="runs of a deletion")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", choices=("delete", "watch"), help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        result = watch(options.store) if options.task == "watch" else delete_oldest(options.store, options.deleted)
        print(json.dumps(result))
        return
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        build_store(path, options.runs)
        rows: list[dict[str, Any]] = [
            {"": "without an index", **alone(__file__, "delete", "--store", path, "--deleted", options.deleted)}
            for _ in range(options.rounds)
        ]
        print_table(f"deleting {options.deleted:,} runs", tuple(rows[0]), [tuple(row.values()) for row in rows])
        rows = [{"": "beside an index", **watched(path, options.deleted)} for _ in range(options.rounds)]
        print_table(f"deleting {options.deleted:,} runs", tuple(rows[0]), [tuple(row.values()) for row in rows])
        print(f"store {megabytes(path):,.0f} MB, index {megabytes(Path(f'{path}.index')):,.0f} MB")


if __name__ == "__main__":
    main()
