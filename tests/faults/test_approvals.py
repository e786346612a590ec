"""Approvals survive kills, races, stops and full disks: nothing is lost, done twice or done without consent; the whole suite is `approvals_faults.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import warm
from tests.exhaustive import exhaustive

FAULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "approvals_faults.py"


@pytest.mark.parametrize(
    "suites", ["races", "stopped places", *(pytest.param(suite, marks=exhaustive) for suite in ("random", "writes"))]
)
def test_faults(tmp_path, suites):
    """The exit status says whether anything happened that must not happen."""
    command = [sys.executable, str(FAULTS), *suites.split(), "--quick", "--folder", str(tmp_path)]
    done = warm.run(command, capture_output=True, text=True, timeout=300)
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert f"\n{suites.split()[0]}\n" in done.stdout
