"""The main module of a program of the fault suite; multiprocessing imports it again in the processes that it starts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fault_suite.stage import current

STAGE, MODULE, SCENARIO = current()
if "module level" in SCENARIO:
    STAGE.agents  # noqa: B018 — creates the runtime, as a program does that has it at module level

if __name__ == "__main__":
    importlib.import_module(f"fault_suite.{MODULE}").SCENARIOS[SCENARIO].program(STAGE)
