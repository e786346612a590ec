"""What a program of the fault suite needs: its agents, its log, and another process that reads what `flush()` claims to have stored.

A program runs in an interpreter of its own, by `play.py`; its stage is described in an environment variable.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fault_suite.agents import Agents, History, Log, Plan, runtime

READER = """
import json, re, sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=10)
rows = connection.execute("SELECT text FROM traces WHERE status = 'completed'")
print(json.dumps([int(match[1]) for text, in rows if (match := re.match(r"run ([0-9]+)", text))]))
"""


class Stage:
    """The surroundings of one program. Its folder holds `data/store.db`, the log, and facts that the program states."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        self.path = self.data / "store.db"
        self.log = Log(folder / "log")
        self._agents: Agents | None = None

    @property
    def agents(self) -> Agents:
        """The agents; their runtime is created when it is first used."""
        if self._agents is None:
            self._agents = self.more_agents(0)
        return self._agents

    def more_agents(self, first: int) -> Agents:
        """Agents with a runtime of their own, whose runs are numbered from `first`."""
        return Agents(runtime(self.path, self.plan), self.log, first=first)

    def runs(self, count: int = 50, *, steady: bool = False) -> None:
        for _ in range(count):
            self.agents.run()
            if steady:
                time.sleep(0.0025)

    def flush(self, timeout: float = 30.0) -> bool:
        """Flush, and state how many of the runs that had ended another process cannot read."""
        ended = set(History.read(self.folder / "log").returned)
        flushed = self.agents.flush(timeout)
        missing = len(ended - self.readable()) if flushed else None
        self.state(flush=flushed, missing=missing)
        return flushed

    def readable(self) -> set[int]:
        """The runs that another process reads from the path of the store now."""
        command = [sys.executable, "-I", "-S", "-c", READER, str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return set(json.loads(done.stdout)) if done.returncode == 0 else set()

    def state(self, **facts: Any) -> None:
        """Append facts for the comparison afterwards."""
        line = json.dumps(facts).encode() + b"\n"
        file = os.open(self.folder / "facts", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.close(file)


def environment(folder: Path, module: str, scenario: str, plan: Plan) -> dict[str, str]:
    """The environment of a program, from which the processes that it starts know their stage, too."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRACE_KP_", "FAULT_"))}
    stage = json.dumps([str(folder), module, scenario, asdict(plan)])
    root = str(Path(__file__).resolve().parents[2])
    return {**kept, "FAULT_STAGE": stage, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def current() -> tuple[Stage, str, str]:
    """The stage of this process, with the module and the name of its scenario."""
    folder, module, scenario, plan = json.loads(os.environ["FAULT_STAGE"])
    plan["settings"] = tuple((name, value) for name, value in plan["settings"])
    return Stage(Path(folder), Plan(**plan)), module, scenario
