"""The tests of recording with every interpreter that can be had here, and a table of those that cannot.

    make test-interpreters

Each interpreter gets an environment with the library and the packages that the tests cannot do without, from wheels alone. Exits with 1
if a test fails. An interpreter that cannot be had, or has no wheels, is named with the reason and fails nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.interpreters.find import Interpreters, NotTried, run

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("3.11", "3.12", "3.13", "3.14", "3.15", "3.13t", "3.14t")
# What differs between interpreters: wrapping and tracing of calls, threads, forks, exits. Without the GIL also what threads share.
TESTS = ("background", "parity", "record")
FREE_THREADED_TESTS = ("runtime", "store")
NEEDED = ("pytest>=8.4", "pytest-asyncio>=1.1", "pytest-xdist>=3.6", "hypothesis>=6.130", "respx>=0.22", "httpx>=0.27")
WANTED = (
    "pyyaml>=6",
    "regex>=2024.5",
    "orjson>=3.10",
    "cryptography>=42",
    "jsonschema>=4.20",
    "standardwebhooks>=1.0",
    "trio>=0.27",
    "cloudpickle>=3",
    "gevent>=24.10",
)
"""Optional packages: tests of what needs them are left out where they have no wheel."""
PROBE = (
    "import sys, grace_kp, numpy, pydantic; from grace_kp.testing import make_grace; make_grace().close();"
    "print('pydantic', pydantic.VERSION, 'numpy', numpy.__version__, *['free threads'] * (not getattr(sys, '_is_gil_enabled', lambda: True)()))"
)


def prepare(name: str, found: Interpreters) -> tuple[Path, str, list[str]]:
    """Make an environment of an interpreter with the library, new each time.

    Returns the path of its Python, a description of it, and the packages that have no wheel for it. Raises NotTried if the interpreter is
    not available, or if a package that the tests need has no wheel.
    """
    python, origin = found.get(name)
    folder = found.folder / f"venv-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "venv", "--without-pip", folder])
    inside = folder / "bin" / "python"
    # The packages that are missing for a new interpreter would take minutes to build, if they can be built.
    install = [inside, found.tools / "pip", "install", "--quiet", "--no-input", "--only-binary", ":all:"]
    env = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    lacking = []
    try:
        run([*install, "--editable", ROOT, *NEEDED, *WANTED], env=env)
    except NotTried:
        run([*install, "--editable", ROOT, *NEEDED], env=env)
        for package in WANTED:
            try:
                run([*install, package], env=env)
            except NotTried:
                lacking.append(package)
    return inside, f"{origin}; {run([inside, '-W', 'error', '-c', PROBE]).strip()}", lacking


def tests(python: Path, arguments: list[str], log: Path) -> tuple[bool, str]:
    """Run the tests; whether they passed, and their counts. What failed is printed."""
    pytest = ["tests/calm.py"] if os.environ.get("CALM") else ["-m", "pytest", "-p", "no:cacheprovider"]
    command = [str(python), *pytest, "-q", "-n", "3", "--dist", "worksteal"]
    with log.open("w") as out:
        status = subprocess.run(
            [*command, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    text = log.read_text(errors="replace")
    if status:
        begun = re.search(r"^=+ (?:ERRORS|FAILURES) =+$", text, re.MULTILINE)
        print(text[begun.start() if begun else 0 :][-20_000:], flush=True)
    elif "\n== flaky" in text:
        print(text[text.index("\n== flaky") :][:20_000], flush=True)
    counts = re.findall(r"^(.*\b(?:passed|failed|errors?)\b.*) in [\d.]+s", text, re.MULTILINE)
    return status == 0, counts[0].strip("= ") if counts else f"exit code {status}"


def main() -> int:
    """Try all interpreters, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="interpreter", help=f"any of {', '.join(NAMES)}; all when none is given")  # fmt: skip
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".venv-interpreters", help="folder for what is downloaded"
    )
    parser.add_argument("--tests", nargs="+", help="paths that pytest runs, instead of those of its table")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"unknown interpreter {unknown[0]!r}; known are {', '.join(NAMES)}")
    own = "{}.{}".format(*sys.version_info[:2])
    names = options.names or [name for name in NAMES if name != own]  # the suite has run with its own
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = Interpreters(folder, may_install=bool(os.environ.get("CI")) and os.geteuid() == 0)
    rows, failed = [], []
    with ThreadPoolExecutor(1) as ahead:  # the next environments are made while tests run
        prepared = {name: ahead.submit(prepare, name, found) for name in names}
        try:
            for name in names:
                print(f"-- {name}", flush=True)
                try:
                    inside, kind, lacking = prepared[name].result()
                except NotTried as reason:
                    rows.append((name, "NOT TRIED", str(reason)))
                    continue
                for line in (kind, *(f"without {package}, which has no wheel" for package in lacking)):
                    print(f"   {line}", flush=True)
                began = time.monotonic()
                rooms = TESTS + FREE_THREADED_TESTS * name.endswith("t")
                chosen = options.tests or [f"tests/{room}" for room in rooms]
                passed, counts = tests(inside, chosen, folder / f"{name}.log")
                if not passed:
                    failed.append(name)
                seconds = round(time.monotonic() - began)
                rows.append((name, f"{'passed' if passed else 'FAILED'}: {counts}, {seconds} s", kind))
        finally:
            ahead.shutdown(cancel_futures=True)
    width = max(len(row[1]) for row in rows)
    for name, result, note in rows:
        print(f"{name:6} {result:{width}}  {note}", flush=True)
    missing = [name for name, result, _ in rows if result == "NOT TRIED"]
    print(f"not tried: {', '.join(missing) or 'none'}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
