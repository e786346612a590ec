"""Every example runs offline as it stands, without a warning and without a word on standard error."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    if example.stem.startswith("lang") and importlib.util.find_spec("langchain") is None:
        pytest.skip("needs the extra langchain")
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GRACE_KP_STRICT_RECORDING": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout + ran.stderr
    assert ran.stdout


def test_the_list_of_examples_names_each():
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [] == [path.name for path in EXAMPLES if f"`{path.name}`" not in listed]
