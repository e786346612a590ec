"""Runs pytest for the build server. Tests that failed run once more, alone; those that then pass are listed, and fail nothing.

    python tests/calm.py ARGUMENTS

A busy machine may fail a test that is right. Where a failure may be a race of the library's, under `STRICT`, one is enough to fail the run.
So are more than `MOST` failures, a test that cannot be collected or does not run the second time, and whatever else ends pytest: an exit code
other than 0 and 1, or a process that ends before its report is written.
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
            return code if report.exists() else code or 1
        failed = failed_tests(folder)
        strict = [name for name in failed if is_strict(name)]
        if strict or not 0 < len(failed) <= MOST:
            why = f"{strict[0]} is not run again" if strict else f"{len(failed)} failures are not run again"
            print(f"\n== not calm: {why}", flush=True)
            return code
        print(f"\n== again, alone: {len(failed)}", flush=True)
        tracebacks = {key: text for key, text in results_in(report).items() if text}
        report.unlink()
        again = subprocess.run([*pytest, f"--junitxml={report}", "-n", "0", "--lf", "--lfnf=none"], check=False)
        # A test that was skipped or not found, or ended pytest itself, has not passed, whatever the exit code.
        results = results_in(report)
        flaky = [name for name in failed if results.get(key_of(name)) == ""]
        print(f"\n== flaky: {len(flaky)}")
        for name in flaky:
            print(f"-- {name}\n{tracebacks.get(key_of(name), 'no traceback')}")
        sys.stdout.flush()
        return again.returncode or int(flaky != failed)


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


def results_in(report: Path) -> dict[tuple[str, str], str]:
    """Return the first traceback of each test, or why it was skipped; empty for one that passed."""
    found: dict[tuple[str, str], str] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():  # written by pytest
        key = (case.get("classname", ""), case.get("name", ""))
        problems = [part.text or part.tag for kind in ("failure", "error", "skipped") for part in case.iter(kind)]
        found[key] = found.get(key) or next(iter(problems), "")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
