"""Plays one fault in a program of its own and compares what was recorded with what is stored, and with what was reported as lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fault_suite.agents import History
from fault_suite.forks import answers
from fault_suite.stage import environment
from fault_suite.verdicts import exposed, is_intact, recovered, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fault_suite.agents import Plan
    from fault_suite.stage import Stage

# How long a finished run may stay unsafe, in ms: what an end without warning may cost. `fast` promises nothing.
BOUNDS = {"fast": float("inf"), "bounded": 100.0, "every_run": 0.0}
COLUMNS = (
    "fault",
    "ended with",
    "recorded",
    "stored",
    "lost, says stderr",
    "says the store",
    "lost without warning",
    "their age, ms",
    "silent loss",
    "phantoms",
    "flush()",
)
TOTAL = re.compile(r"runs of this process that are not in the store: (.*)")
PART = re.compile(r"([\d,]+) (?:dropped|lost|never written)")
LOSS = re.compile(r"([\d,]+) runs? (?:is|are) not in the store")


@dataclass(frozen=True)
class Scenario:
    """A fault: the program, and whether it ends its process without warning."""

    program: Callable[[Stage], None]
    abrupt: bool = False
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass
class Outcome:
    """What became of the runs of a program."""

    name: str
    ended: str
    recorded: int
    stored: int
    reported: int
    """Lost runs as stderr counts them."""
    kept: int
    """Lost runs as the report in the store counts them."""
    unwarned: int
    """Lost runs of a process that could not report them, because it ended without warning."""
    age_ms: float
    """Age of the oldest of them when the process ended."""
    silent: int
    phantoms: int
    corrupt: int
    secrets: int
    flushes: str
    lies: int
    """Calls of `flush()` that returned True while another process could not read a run that had ended."""
    facts: list[dict[str, Any]]
    stderr: str

    def row(self) -> tuple[Any, ...]:
        return (
            self.name,
            self.ended,
            self.recorded,
            self.stored,
            self.reported,
            self.kept,
            self.unwarned,
            self.age_ms,
            self.silent,
            self.phantoms,
            self.flushes,
        )


def play(folder: Path, module: str, name: str, scenario: Scenario, plan: Plan, timeout: float = 120.0) -> Outcome:
    """Run the program of a scenario in a new interpreter, wait for whatever it left behind, and compare."""
    place = Path(folder) / f"{plan.durability}-{re.sub(r'[^a-z]+', '-', name.lower())}"
    place.mkdir()
    plan = replace(plan, settings=(*plan.settings, *scenario.settings))
    with (place / "stderr").open("wb") as errors:
        program = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(__file__).with_name("play.py"))],
            env=environment(place, module, name, plan),
            stdout=errors,
            stderr=errors,
            start_new_session=True,
            cwd=place,
        )
        try:
            status: int | None = program.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        _wait_for_group(program.pid, 20.0 if status is not None else 0.0)
        program.wait()
    outcome = answers([lambda: _compare(place, name, scenario, plan)], folder / "errors")[0]
    with contextlib.suppress(OSError):
        subprocess.run(["umount", str(place / "data")], capture_output=True, check=False)
    shutil.rmtree(place, ignore_errors=True)
    return Outcome(**{**outcome, "ended": _ending(status)})


def _wait_for_group(group: int, seconds: float) -> None:
    """Wait until no process of the program is left; end those that stay longer."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            os.killpg(group, 0)
        except OSError:
            return
        time.sleep(0.02)
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def _ending(status: int | None) -> str:
    if status is None:
        return "hung"
    return str(status) if status >= 0 else signal.Signals(-status).name


def _compare(place: Path, name: str, scenario: Scenario, plan: Plan) -> dict[str, Any]:
    facts = (
        [json.loads(line) for line in (place / "facts").read_text().splitlines()] if (place / "facts").exists() else []
    )
    stderr = (place / "stderr").read_text(encoding="utf-8", errors="replace")
    history = History.read(place / "log")
    for fact in facts:
        for number in range(fact.get("destroyed", 0)):  # runs that somebody else deleted after they were stored
            history.returned.pop(number, None)
    secrets = exposed(place)
    stores = [path for path in place.rglob("*.db") if path.stat().st_size]
    corrupt = sum(not is_intact(path) for path in stores)
    stored = [run for path in stores for run in _read(path)]
    found = verdict_of(history, stored, history.last)
    lost = history.returned.keys() - {number for number, status in stored if status == "completed"}
    ages = {number: (history.last - history.returned[number]) / 1e6 for number in lost if scenario.abrupt}
    reported = _in_stderr(stderr)
    flushes = [fact for fact in facts if "flush" in fact]
    lies = [fact for fact in flushes if fact["missing"]]
    return {
        "name": name,
        "ended": "",
        "recorded": len(history.returned),
        "stored": len(history.returned) - len(lost),
        "reported": reported,
        "kept": sum(_in_report(path) for path in stores),
        "unwarned": len(ages),
        "age_ms": max(ages.values(), default=0.0),
        "silent": max(0, len(lost) - reported - sum(age <= BOUNDS[plan.durability] for age in ages.values())),
        "phantoms": found.phantoms,
        "corrupt": corrupt,
        "secrets": secrets,
        "flushes": ", ".join(_flush(fact) for fact in flushes),
        "lies": len(lies),
        "facts": facts,
        "stderr": stderr,
    }


def _flush(fact: dict[str, Any]) -> str:
    if not fact["flush"]:
        return "false"
    return f"TRUE, {fact['missing']} missing" if fact["missing"] else "true"


def _read(path: Path) -> list[tuple[int, str]]:
    try:
        return recovered(path)
    except Exception as error:
        print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
        return []


def _in_report(path: Path) -> int:
    """The number of lost runs in the reports that processes left in the store."""
    with contextlib.closing(sqlite3.connect(path)) as connection, contextlib.suppress(sqlite3.Error):
        reports = [json.loads(data) for (data,) in connection.execute("SELECT data FROM reports")]
        return sum(int(report.get(name) or 0) for report in reports for name in ("dropped", "lost"))
    return 0


def _in_stderr(text: str) -> int:
    """The number of lost runs in the messages of the library: the totals of the processes that ended well, else the losses one by one."""
    totals = [number for total in TOTAL.findall(text) for number in PART.findall(total)]
    return sum(int(number.replace(",", "")) for number in totals or LOSS.findall(text))
