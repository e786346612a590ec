"""A process that is killed loses nothing that was flushed, at random moments and at writes; the whole suite is `benchmarks/faults.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import warm

FAULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "faults.py"


def faults(*arguments):
    """Run the fault suite; its exit status says whether anything was lost that must not be lost."""
    command = [sys.executable, str(FAULTS), *arguments]
    done = warm.run(command, capture_output=True, text=True, timeout=300)
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    return done.stdout


def test_kills_at_random_moments(tmp_path):
    """Agents in one thread, in four and in tasks, at both paces."""
    printed = faults("kills", "--kills", "36", "--folder", str(tmp_path))
    assert "| fast | steady | open |" in printed


def test_kills_at_writes(tmp_path):
    """Before a write and in the middle of one."""
    printed = faults("writes", "--every", "60", "--judge", "off", "--folder", str(tmp_path))
    assert "in the middle of a write" in printed or "left out: writes" in printed
