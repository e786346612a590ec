"""The main module of a program of the fault suite."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fault_suite.stage import current

if __name__ == "__main__":
    stage, module, scenario = current()
    importlib.import_module(f"fault_suite.{module}").SCENARIOS[scenario].program(stage)
