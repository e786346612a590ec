"""Breaks recording in every way that the suite knows, and counts what became of the runs.

Each agent keeps a log of its own beside the recording. Afterwards another process opens the store, which recovers it, and compares.
Suites:

    kills   SIGKILL at random moments, agents in one thread, in four threads and in tasks, at a steady pace and as fast as they can
    writes  SIGKILL before, and in the middle of, every system call by which SQLite changes a file
    places  a full disk, a locked file, a file that disappears, more runs than memory may hold
    exits   ends of a process, with and without warning, and forks beside busy threads (`processes.py` has all ways to start and end)

The exit status is 1 if a run was lost although `flush()` had returned True, lost without a report beyond the bound of its
durability, or stored twice or as interrupted, or if a file was damaged or holds a secret. A version of the library that does not
know a setting is measured without it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from _measure import machine, print_table
from fault_suite import forks, kills, scenarios, writes
from fault_suite.agents import KNOWN, Plan

SUITES = ("kills", "writes", "places", "exits")
DURABILITIES = ("fast", "bounded", "every_run")
IN_MEMORY = Path("/dev/shm")


def scenario_rows(folder: Path, suite: str, options: argparse.Namespace) -> bool:
    """A table of the outcomes of a suite for each durability; return whether every run is accounted for."""
    sound = True
    found = importlib.import_module(f"fault_suite.{suite}").SCENARIOS
    for durability in options.durability:
        plan = Plan(durability=durability, overflow=options.overflow, judged=options.judge == "on")
        outcomes = []
        for name, scenario in found.items():
            if options.only in name:
                progress(f"{durability}: {name}")
                outcomes.append(scenarios.play(folder, suite, name, scenario, plan))
        progress("")
        print_table(
            f"{suite}, durability {durability}, overflow {options.overflow}, judge {options.judge}",
            scenarios.COLUMNS,
            [outcome.row() for outcome in outcomes],
        )
        for outcome in outcomes:
            for fact in outcome.facts:
                for name, measured in fact.items():
                    if name.endswith("_ms"):
                        print(
                            f"\n{outcome.name}: {name} {statistics.median(measured):.1f}, at most {max(measured):.1f}"
                        )
            unsound = outcome.silent or outcome.lies or outcome.phantoms or outcome.corrupt or outcome.secrets
            if unsound or outcome.ended == "hung":
                sound = False
                print(f"\n{outcome.name}: {outcome.corrupt} files damaged, {outcome.secrets} with a secret; stderr:")
                print(outcome.stderr[-options.stderr :])
    return sound


def progress(text: str) -> None:
    """Show at a terminal what is under way."""
    if sys.stderr.isatty():
        print(f"\r{text:<110}", end="" if text else "\r", file=sys.stderr, flush=True)


def killed_rows(folder: Path, suite: str, options: argparse.Namespace) -> bool:
    """The table of the kills; return whether none of them lost what must not be lost."""
    judged = options.judge == "on"
    columns: tuple[str, ...] = kills.COLUMNS
    if suite == "kills":
        rows = kills.at_random(folder, options.kills, options.durability, judged=judged, processes=options.processes)
        title = f"kills at random, judge {options.judge}"
    else:
        columns = writes.COLUMNS
        rows = writes.at_every(folder, options.durability, judged=judged, every=options.every)
        title = f"kills at every {options.every}. write, judge {options.judge}"
        if not rows:
            print("\nleft out: writes: the system calls of this SQLite cannot be replaced")
    print_table(title, columns, rows)
    errors = folder / "errors"
    if errors.exists() and errors.stat().st_size:
        print(f"\nstderr of the agents:\n{errors.read_text(encoding='utf-8', errors='replace')[-options.stderr :]}")
    return not any(_is_broken(dict(zip(columns, row, strict=True))) for row in rows)


def _is_broken(row: dict[str, Any]) -> bool:
    never = ("lost after a flush", "phantoms", "corrupt files", "files with a secret")
    return any(row[name] for name in never) or bool(row["durability"] == "every_run" and row["lost without"])


def main(arguments: list[str] | None = None) -> None:
    """Run the suites and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", help=f"which ones (default all): {', '.join(SUITES)}")
    parser.add_argument("--kills", type=int, default=600, help="kills at random, in all (default 600)")
    parser.add_argument("--every", type=int, default=1, help="kill at every n-th write (default 1)")
    parser.add_argument(
        "--durability", choices=DURABILITIES, action="append", help="only this setting; may be repeated"
    )
    parser.add_argument("--overflow", choices=("drop", "wait"), default="drop")
    parser.add_argument("--judge", choices=("on", "off"), default="on", help="a slow judge and a scorer (default on)")
    parser.add_argument("--only", default="", help="only faults whose name contains this, in places and exits")
    parser.add_argument("--processes", type=int, default=2, help="processes that kill at the same time (default 2)")
    parser.add_argument("--folder", type=Path, help="where the stores are (default memory, else the temporary folder)")
    parser.add_argument("--stderr", type=int, default=600, help="characters of stderr shown of a program (default 600)")
    options = parser.parse_args(arguments)
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {min(unknown)!r}; known are {', '.join(SUITES)}")
    for variable in [name for name in os.environ if name.startswith("GRACE_KP_")]:
        del os.environ[variable]
    print(f"\n## Faults\n\n{machine()}", flush=True)
    missing = [name for name in ("durability", "overflow") if name not in KNOWN]
    if missing:
        print(f"\nthis version of grace_kp has no setting {' or '.join(missing)}: measured without", flush=True)
    if options.durability is None:
        options.durability = ["fast"] if "durability" in missing else list(DURABILITIES)
    forks.warm()
    sound = True
    place = options.folder or (IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None)
    for suite in options.suites or SUITES:
        with tempfile.TemporaryDirectory(dir=place) as name:
            rows_of = killed_rows if suite in {"kills", "writes"} else scenario_rows
            sound = rows_of(Path(name), suite, options) and sound
    if not sound:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
