"""Breaks programs that ask for approval in every way that the suite knows, and counts what became of requests, decisions and actions.

The programs are whole: `grace.gate` with an InboxReviewer in each way of waiting, and people who decide through `grace.approvals` in other
processes. What they ask, decide and do stands in journals beside the store; the effect of an action is a synced line in one of them. So the
truth is known whatever happens to the store. After the faults every invoice is brought to its end, unknown outcomes are reconciled by the
journal, and another process compares. Suites:

    random  SIGKILL at random moments of programs that ask, decide, act and carry out
    writes  SIGKILL before and in the middle of each system call by which SQLite changes a file, and at both sides of the effect
    races   processes that do things with the same approval at the same moment
    stopped SIGSTOP past the lease, reconciled, SIGCONT; SIGKILL in PID namespaces
    places  a full disk, a locked file, a restored backup, wrong clocks
    peers   the kills and two deciders with LangGraph's own interrupt and LangChain's own middleware

The exit status is 1 if anything was lost, claimed twice, done without consent or otherwise than approved, recorded wrongly, damaged, or shows a
planted secret.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from _measure import machine, print_table
from approval_suite import kills, peers, places, races, stopped, warm, writes
from approval_suite.verdicts import COLUMNS, Verdict, total

if TYPE_CHECKING:
    from collections.abc import Callable

IN_MEMORY = Path("/dev/shm")
Result = tuple[list[tuple[str, Verdict]], list[str]]


def suites(options: argparse.Namespace) -> dict[str, Callable[[Path], Result]]:
    """Return the suites by name, each as a function of its folder."""
    quick = options.quick
    return {
        "random": lambda folder: (
            kills.at_random(folder, options.kills or (160 if quick else 2_400), processes=options.processes),
            [],
        ),
        "writes": lambda folder: (
            writes.at_every(
                folder,
                every=options.every or (16 if quick else 1),
                inside=4 if quick else 100,
                batch=10 if quick else writes.BATCH,
            ),
            [],
        ),
        "races": lambda folder: (races.all_races(folder, 8 if quick else 150), []),
        "stopped": lambda folder: stopped.rows(folder, 3 if quick else 20, 20 if quick else 150),
        "places": lambda folder: places.rows(folder, 2 if quick else 10, 1.0 if quick else 12.0),
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the suites and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("random", "writes", "races", "stopped", "places", "peers")
    parser.add_argument("suites", nargs="*", help=f"which ones (default all): {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="few faults of each kind, in half a minute")
    parser.add_argument("--kills", type=int, help="kills at random, in all (default 2,400)")
    parser.add_argument("--every", type=int, help="kill at every n-th write (default 1)")
    parser.add_argument("--processes", type=int, default=2, help="stores that are broken at the same time (default 2)")
    parser.add_argument("--folder", type=Path, help="where the stores are (default memory, else the temporary folder)")
    options = parser.parse_args(arguments)
    unknown = set(options.suites) - set(names)
    if unknown:
        parser.error(f"unknown suite {min(unknown)!r}; known are {', '.join(names)}")
    for variable in [name for name in os.environ if name.startswith("GRACE_KP_")]:
        del os.environ[variable]
    print(f"\n## Faults of approvals\n\n{machine()}{', quick' if options.quick else ''}", flush=True)
    wanted = options.suites or names
    if "peers" in wanted and peers.installed():
        peers.warm()
    warm.warm()
    sound = True
    place = options.folder or (IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None)
    started, found = time.monotonic(), []
    for name, play in suites(options).items():
        if name in wanted:
            with tempfile.TemporaryDirectory(dir=place) as folder:
                rows, remarks = play(Path(folder))
                found += [verdict for _, verdict in rows]
                print_table(name, COLUMNS, [verdict.row(fault) for fault, verdict in rows])
                print("".join(f"\n{sentence}" for sentence in remarks), flush=True)
                if any(verdict.broken for _, verdict in rows):
                    sound = False
                    print(Path(folder, "errors").read_text(encoding="utf-8", errors="replace")[-2_000:])
    if found:
        print_table("all", COLUMNS, [total(found).row(f"all, {time.monotonic() - started:.0f} s")])
    if "peers" in wanted:
        compare(place, 3 if options.quick else 25)
    if not sound:
        sys.exit(1)


def compare(place: Path | None, count: int) -> None:
    """Print the table of the peers."""
    if not peers.installed():
        print("\nleft out: peers: langgraph, langchain or langgraph-checkpoint-sqlite is not installed")
        return
    with tempfile.TemporaryDirectory(dir=place) as folder:
        print_table("peers", peers.COLUMNS, peers.rows(Path(folder), count))


if __name__ == "__main__":
    main()
