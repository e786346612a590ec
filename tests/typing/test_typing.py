"""What a type checker sees through the decorators: signatures survive, and so do the mistakes in using them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive

# The checker reads the whole library first, which takes half a minute where `make lint` has left no cache.
pytestmark = exhaustive

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOUND = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<said>.*)  \[(?P<code>[\w-]+)\]$", re.MULTILINE)
MARK = re.compile(r"# error: (?P<code>[\w-]+)$")


@pytest.fixture(scope="module")
def errors():
    """Line and code of each error that mypy finds, by file; one run with the options of `make lint`, so that its cache is used."""
    ran = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--no-error-summary", "--no-color-output", "--no-pretty",
            *(str(HERE / name) for name in ("api.py", "bad.py")),
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=1_200, check=False,
    )  # fmt: skip
    assert "" == ran.stderr
    assert ran.returncode in (0, 1), ran.stdout
    found = {"api.py": [], "bad.py": []}
    for match in FOUND.finditer(ran.stdout):
        found[Path(match["file"]).name].append((int(match["line"]), match["code"], match["said"]))
    return found


def test_what_users_write_has_no_errors(errors):
    """Functions, coroutines, generators, methods, gates: each keeps its type, and a gate adds None."""
    assert [] == errors["api.py"]


def test_mistakes_are_found(errors):
    """Wrong arguments, wrong results, misspelled names: on each marked line the error named, and no other anywhere."""
    lines = (HERE / "bad.py").read_text(encoding="utf-8").splitlines()
    marked = [(number, match["code"]) for number, line in enumerate(lines, 1) if (match := MARK.search(line))]
    assert marked == [(line, code) for line, code, _ in errors["bad.py"]]
