"""Runs pytest for the build server. Tests that failed run once more, alone; those that then pass are listed, and fail nothing.

    python tests/calm.py ARGUMENTS

A busy machine may fail a test that is right. Where a failure may be a race of the library's, under `STRICT`, one is enough to fail the run.
So are more than `MOST` failures, a test that cannot be collected, and whatever else ends pytest with an exit code other than 0 and 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

STRICT = ("gating", "approvals", "store", "integrations", "parity", "faults")
"""Folders of `tests` whose tests are not run again."""
MOST = 10


def main(arguments: list[str]) -> int:
    """Return the exit code for `make`."""
    with tempfile.TemporaryDirectory(prefix="calm-") as folder:
        report = Path(folder) / "report.xml"
        pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={folder}/cache", *arguments]
        code = subprocess.run([*pytest, f"--junitxml={report}"], check=False).returncode
        if code != 1:
            return code
        failed = failed_tests(folder)
        strict = [name for name in failed if is_strict(name)]
        if strict or not 0 < len(failed) <= MOST:
            why = f"{strict[0]} is not run again" if strict else f"{len(failed)} failures are not run again"
            print(f"\n== not calm: {why}", flush=True)
            return code
        print(f"\n== again, alone: {len(failed)}", flush=True)
        tracebacks = tracebacks_in(report)
        again = subprocess.run([*pytest, "-n", "0", "--lf", "--lfnf=none"], check=False).returncode
        still = set(failed_tests(folder)) if again else set()
        flaky = [name for name in failed if name not in still] if again in {0, 1} else []
        print(f"\n== flaky: {len(flaky)}")
        for name in flaky:
            print(f"-- {name}\n{tracebacks.get(key_of(name), 'no traceback')}")
        sys.stdout.flush()
        return again


def failed_tests(folder: str) -> list[str]:
    """Return what failed in the last run; a file that could not be collected is a name without `::`."""
    kept = Path(folder) / "cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else []


def is_strict(name: str) -> bool:
    """Return whether one failure of this test fails the run."""
    path, separator, _ = name.partition("::")
    return not separator or Path(path).parts[1:2] in {(room,) for room in STRICT}


def key_of(name: str) -> tuple[str, str]:
    """Return the class and the name that a report has for a test."""
    plain, bracket, parameters = name.partition("[")
    path, *classes, test = plain.split("::")
    return ".".join([*Path(path).with_suffix("").parts, *classes]), f"{test}{bracket}{parameters}"


def tracebacks_in(report: Path) -> dict[tuple[str, str], str]:
    """Return the first traceback of each test that failed."""
    found: dict[tuple[str, str], str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # written by pytest
        for problem in (*case.iter("failure"), *case.iter("error")):
            found.setdefault((case.get("classname", ""), case.get("name", "")), problem.text or "")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
