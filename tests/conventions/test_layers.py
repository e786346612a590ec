"""The house: imports go one way, and every room has its place in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "grace_kp"


def contract():
    (only,) = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    return only


def test_imports_go_one_way():
    """import-linter finds no import against the layers, those for type checkers included."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    ran = subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--config", "pyproject.toml"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert 0 == ran.returncode, ran.stdout + ran.stderr


def test_every_room_has_its_place():
    """A new package or module of grace_kp stands in the list of layers; the list names nothing that is not there."""
    rooms = {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    rooms |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    placed = [room for layer in contract()["layers"] for room in re.split(r"\s*[|:]\s*", layer)]
    assert sorted(rooms) == sorted(placed)


def test_the_contract_lets_nothing_out():
    """No room is exempt, and no import is ignored."""
    assert {"name", "type", "containers", "exhaustive", "layers"} == set(contract())
    assert contract()["exhaustive"] is True
