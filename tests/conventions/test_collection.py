"""The tests are the same ones wherever and whenever they are collected: workers that share them out compare their names.

`make test` shows the same with every run: its workers have other hash seeds, and refuse to start on names that differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[2]


def collect(seed):
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "",
        "tests",
    ]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@exhaustive
def test_the_names_of_the_tests_depend_on_neither_the_clock_nor_the_hash_seed():
    first = collect("1")
    time.sleep(1.1)  # a name that carries the time carries another one now
    second = collect("2")
    before, after = (
        {line for line in job.communicate(timeout=1_200)[0].splitlines() if "::" in line} for job in (first, second)
    )

    assert first.returncode == second.returncode == 0
    assert len(before) > 1_000
    assert before ^ after == set()
