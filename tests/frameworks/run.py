"""The tests of langchain-core, langchain and LangGraph, with our handler attached to every run and without it.

    make test-frameworks

Downloads the source distributions of the installed versions (they contain the tests), runs the tests that have to do with callbacks,
runnables, models, tools, agents and graphs twice, and compares. A test whose outcome changes is repeated in both ways. If it changes
each time, it is listed and this script exits with 1. Not part of the suite: it takes several minutes and is run before a release.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPEATS = 2
SUITES = {
    "langchain-core": [
        "tests/unit_tests/callbacks",
        "tests/unit_tests/tracers",
        "tests/unit_tests/runnables",
        "tests/unit_tests/language_models",
        "tests/unit_tests/output_parsers",
        "tests/unit_tests/fake",
        "tests/unit_tests/test_tools.py",
        "tests/unit_tests/test_retrievers.py",
    ],
    "langchain": ["tests/unit_tests/agents", "tests/unit_tests/chat_models", "tests/unit_tests/tools"],
    "langgraph": ["tests"],
}
LEFT_OUT = ["test_benchmark.py", "test_delta_channel_benchmark.py", "test_prune_postgres.py", "test_type_checking.py"]
"""Benchmarks, which assert durations, type checks, and a test that needs a database server."""
KNOWN = {
    "test_merge_config_callbacks": "counts the handlers of a merged config, and ours is one more; no run is involved",
}
"""Tests that change their result by design, with the reason."""


def source_of(package: str, cache: Path) -> Path:
    """Return the unpacked source distribution of the installed version, downloaded on first use."""
    name = f"{package.replace('-', '_')}-{version(package)}"
    folder = cache / name
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        wanted = f"{package}=={version(package)}"
        command = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(cache), wanted]
        # An environment without pip was filled by the pip of its interpreter.
        python = sys.executable if find_spec("pip") else getattr(sys, "_base_executable", sys.executable)
        subprocess.run([python, "-m", "pip", *command], check=True)
        with tarfile.open(cache / f"{name}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return folder


def run(
    folder: Path, tests: list[str], results: Path, *, handler: bool, options: list[str], path: str = str(HERE)
) -> dict[str, str]:
    """Run tests in a source folder; the outcome of each by its id."""
    results.unlink(missing_ok=True)
    env = {**os.environ, "FRAMEWORK_RESULTS": str(results), "FRAMEWORK_HANDLER": "1" if handler else "0"}
    env |= {"NO_DOCKER": "true", "LANGGRAPH_TEST_FAST": "true", "LANGSMITH_TRACING": "false", "PYTHONPATH": path}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "handler_everywhere",
        "-p",
        "no:cacheprovider",
        "-q",
        "--no-header",
    ]
    command += [
        "--tb=no",
        "--durations=0",
        "-r",
        "N",
        *options,
        *(f"--ignore-glob=*/{name}" for name in LEFT_OUT),
        *tests,
    ]
    log = results.with_suffix(".log")
    with log.open("w") as out:
        subprocess.run(command, cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT, check=False)
    if not results.exists():
        sys.exit(f"{folder.name}: no test was run; see {log}")
    outcomes: dict[str, str] = json.loads(results.read_text())
    return outcomes


def compare(without: dict[str, str], with_handler: dict[str, str]) -> list[str]:
    """The tests whose outcomes differ."""
    return sorted(test for test in without.keys() | with_handler.keys() if without.get(test) != with_handler.get(test))


def check(package: str, cache: Path, options: list[str]) -> dict[str, tuple[str | None, str | None]]:
    """Run the tests of one package in both ways; the tests that change each time, with both outcomes."""
    folder = source_of(package, cache)
    found: list[dict[str, str]] = []
    for handler in (False, True):
        results = cache / f"{folder.name}-{'with' if handler else 'without'}.json"
        for stale in cache.glob(f"{results.name}.*.recorded"):
            stale.unlink()
        found.append(run(folder, SUITES[package], results, handler=handler, options=options))
        counts = Counter(found[-1].values())
        print(
            f"{folder.name} {'with' if handler else 'without'} the handler: {dict(sorted(counts.items()))}", flush=True
        )
    print(f"  recorded: {recorded(cache, results)}", flush=True)
    without, with_handler = found
    differing = compare(without, with_handler)
    for number in range(REPEATS):
        if not differing:
            break
        again = [
            run(
                folder,
                differing,
                cache / f"{folder.name}-again-{number}-{int(handler)}.json",
                handler=handler,
                options=[],
            )
            for handler in (False, True)
        ]
        changing = set(compare(*again))
        unstable = [test for test in differing if test not in changing]
        for test in unstable:
            print(f"  changes by itself: {test}", flush=True)
        differing = [test for test in differing if test in changing]
    return {test: (without.get(test), with_handler.get(test)) for test in differing}


def recorded(cache: Path, results: Path) -> str:
    """What the handler recorded in all processes."""
    traces: Counter[str] = Counter()
    troubles: Counter[str] = Counter()
    for file in cache.glob(f"{results.name}.*.recorded"):
        counts = json.loads(file.read_text())
        traces.update(counts["traces"])
        troubles.update(counts["troubles"])
    return f"{sum(traces.values())} traces {dict(traces)}, troubles {dict(troubles)}"


def main() -> int:
    """Check all packages, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "packages", nargs="*", metavar="package", help=f"any of {', '.join(SUITES)}; all when none is given"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(".venv-frameworks/sources"), help="folder for the sources and the results"
    )
    parser.add_argument("--processes", default="2", help="number of test processes for each run")
    given = parser.parse_args()
    unknown = sorted(set(given.packages) - set(SUITES))
    if unknown:
        parser.error(f"unknown package {unknown[0]!r}; known are {', '.join(SUITES)}")
    options = ["-n", given.processes, "--dist", "loadfile"] if given.processes != "1" else []
    failed = False
    for package in given.packages or SUITES:
        for test, (without, with_handler) in check(package, given.cache.resolve(), options).items():
            reason = KNOWN.get(test.partition("::")[2])
            failed |= reason is None
            print(
                f"  {'CHANGES' if reason is None else 'known'}: {test}: {without} without, {with_handler} with the handler"
            )
            if reason is not None:
                print(f"    {reason}")
    print("at least one test changes its result" if failed else "no test changes its result")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
