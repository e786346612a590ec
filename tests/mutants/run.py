"""`make mutants`: makes single changes to the rooms that must not fail, and shows which of them no test notices.

First every test file of a room runs once, with coverage, so that it is known which tests execute which line. Then each change
runs against those tests, in a fork of an interpreter that has imported what tests need, but neither the library nor a test. The
fork imports the changed module instead of the real one, and stops at the first test that fails. A change that survives is shown
with its place, unless `equivalent.txt` says why no test can notice it.

    make mutants MUTANTS="--room gating --sample 200"
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import functools
import gc
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.changes import changed, changes_of  # noqa: E402

LIST = ROOT / "tests" / "mutants" / "equivalent.txt"
CACHE = ROOT / ".mutants"
# What tests import besides the library; imported once, before the forks.
WARM = (
    "numpy", "pydantic", "hypothesis", "hypothesis.strategies", "pytest_asyncio.plugin", "_hypothesis_pytestplugin", "respx", "httpx",
    "tenacity", "typer", "rich.console", "sqlite3", "asyncio", "yaml", "regex", "coverage", "google.genai", "langchain.agents",
    "langgraph.graph", "langgraph.checkpoint.memory", "langgraph.checkpoint.sqlite", "pexpect", "xml.dom.minidom",
)  # fmt: skip
OPTIONS = [
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--tb=no",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-p",
    "pytest_asyncio.plugin",
    "-p",
    "_hypothesis_pytestplugin",
]
AT_IMPORT = ""  # the coverage context outside of tests
FIRST = 6  # the tests that are most likely to notice a change run before the others are collected
AIM = 0.95
SURVIVED, KILLED, TIMEOUT, BROKEN, EQUIVALENT = "survived", "killed", "timeout", "broken", "equivalent"


@dataclass(frozen=True)
class Room:
    """Code to change, and the tests that may notice; folders and files that are not there are left out."""

    code: tuple[str, ...]
    tests: tuple[str, ...]

    def modules(self):
        """The files of the code by the dotted name of their module."""
        return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in _files(self.code, "*.py")}

    def test_files(self):
        return _files(self.tests, "test_*.py")


ROOMS = {
    "gating": Room(
        ("grace_kp/gating", "grace_kp/runtime/_gates.py"),
        (
            "tests/gating",
            "tests/contracts",
            "tests/parity",
            "tests/runtime/test_gates.py",
            "tests/integrations/langchain",
        ),
    ),
    "approvals": Room(("grace_kp/approvals",), ("tests/approvals", "tests/contracts", "tests/parity")),
    "store": Room(("grace_kp/store",), ("tests/store", "tests/contracts")),
    "security": Room(("grace_kp/web/security",), ("tests/web",)),
    "judge": Room(("grace_kp/judge",), ("tests/judge",)),
    "guard": Room(("grace_kp/record/_guard.py",), ("tests/record",)),
    "confidence": Room(("grace_kp/confidence",), ("tests/confidence",)),
    "value": Room(("grace_kp/value",), ("tests/value",)),
}


def _files(places, pattern):
    found = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob(pattern)) if path.is_dir() else [path] * path.is_file()
    return [path for path in found if path.name not in {"__init__.py", "__main__.py"}]


@dataclass
class Coverage:
    """Which tests execute which line, and how long each takes."""

    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests_of(self, path, change, spans):
        """The tests that execute the line of a change, or may notice it where the line runs at import only.

        What stands in the body of a class may also be noticed by who executes a function of the room that names the class.
        """
        lines = self.lines.get(str(path), {})
        span = spans[str(path)].get(change.function, Span(1, 10**9, 10**9))
        found = lines.get(change.line, [])
        if change.line >= span.body and found != [AT_IMPORT]:
            return [test for test in found if test != AT_IMPORT]
        if change.line >= span.body:
            span = Span(1, 10**9, 10**9)
        # Defaults, decorators, class bodies and constants: who imports them is no witness, who uses them is.
        inside = {test for line, tests in lines.items() if span.start <= line <= span.end for test in tests}
        if span.is_class:
            name = change.function.rpartition(".")[2]
            users = [(file, each) for file, found in spans.items() for each in found.values() if name in each.names]
            inside |= {
                test
                for file, user in users
                for line, tests in self.lines.get(file, {}).items()
                if user.body <= line <= user.end
                for test in tests
            }
        return sorted(inside - {AT_IMPORT})


@dataclass(frozen=True)
class Span:
    """The first and last line of a definition, the line from which on its code runs when it is called, and the names in it."""

    start: int
    end: int
    body: int
    names: frozenset[str] = frozenset()
    is_class: bool = False


class Lines:
    """A pytest plugin that notes for each test what it executes and how it ends."""

    def __init__(self, cover):
        self._cover = cover
        self.seconds, self.failed = {}, []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self._cover.switch_context(item.nodeid)
        began = time.perf_counter()
        yield
        self.seconds[item.nodeid] = time.perf_counter() - began
        self._cover.switch_context(AT_IMPORT)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


class Chosen:
    """A pytest plugin that runs these tests only, in this order, and remembers which one failed."""

    def __init__(self, tests):
        self._places = {test: place for place, test in enumerate(tests)}
        self.failed = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda item: self._places[item.nodeid]
        )

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed = self.failed or report.nodeid


class Changed(importlib.machinery.SourceFileLoader):
    """Loads a module with a change made."""

    def __init__(self, name, path, index):
        super().__init__(name, path)
        self._index = index

    def get_code(self, fullname):
        return compile(changed(Path(self.path).read_text(encoding="utf-8"), self._index), self.path, "exec")


class Finder:
    """Finds the changed module before anybody finds the real one."""

    def __init__(self, change, path):
        self._change, self._path = change, path

    def find_spec(self, name, path=None, target=None):
        if name != self._change.module:
            return None
        loader = Changed(name, str(self._path), self._change.index)
        return importlib.util.spec_from_file_location(name, self._path, loader=loader)


class Forks:
    """Runs functions in forks, as many at once as there are processors, and collects what they return."""

    def __init__(self, jobs):
        self._jobs = jobs
        self._running = {}
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._count = 0

    def start(self, function, done, seconds):
        """Run `function` in a fork once there is room; `done` gets its result, TIMEOUT, or BROKEN. `seconds` is its usual time."""
        while len(self._running) >= self._jobs:
            self._wait()
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._become(function, folder, seconds)
        self._running[pid] = (folder, done, time.monotonic() + 60 + 10 * seconds)

    def finish(self):
        while self._running:
            self._wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _become(self, function, folder, seconds):
        code = 1
        try:
            os.setsid()
            quiet = os.open(os.environ.get("MUTANTS_LOG", os.devnull), os.O_RDWR | os.O_APPEND | os.O_CREAT)
            for number in (0, 1, 2):
                os.dup2(quiet, number)
            limit = int(10 + 5 * seconds)  # of processor time, which does not depend on what else runs
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
            (folder / "result").write_text(json.dumps(function()), encoding="utf-8")
            code = 0
        except BaseException:  # for whoever set MUTANTS_LOG
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _wait(self):
        """Collect at least one that has ended; end those whose time is over."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in self._running:
                folder, done, _ = self._running.pop(pid)
                self._end(pid)
                code = os.waitstatus_to_exitcode(status)
                late = code in (-signal.SIGXCPU, -signal.SIGKILL)
                result = folder / "result"
                done(json.loads(result.read_text("utf-8")) if code == 0 else TIMEOUT if late else BROKEN)
                shutil.rmtree(folder, ignore_errors=True)
                return
            for running, (_, _, deadline) in self._running.items():
                if time.monotonic() > deadline:
                    self._end(running)
            time.sleep(0.005)

    @staticmethod
    def _end(pid):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def covered(room, forks):
    """Run the tests of a room once and return which lines each executes; kept until the code or a test changes."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "grace_kp").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        digest.update(path.read_bytes())
    code = sorted(str(path) for path in room.modules().values())
    digest.update(repr((2, code, [str(path) for path in room.test_files()])).encode())
    kept = CACHE / f"{digest.hexdigest()[:16]}.json"
    found = Coverage()
    if not kept.exists():
        parts = []
        for path in room.test_files():
            forks.start(
                functools.partial(_cover, path, room.modules()), lambda part, path=path: parts.append((path, part)), 600
            )
        while len(parts) < len(room.test_files()):
            forks._wait()
        broken = [str(path) for path, part in parts if isinstance(part, str)]
        if broken:
            sys.exit(f"these tests cannot be run: {', '.join(broken)}")
        CACHE.mkdir(exist_ok=True)
        kept.write_text(json.dumps([part for _, part in parts]), encoding="utf-8")
    for lines, seconds, failed in json.loads(kept.read_text("utf-8")):
        found.seconds |= seconds
        found.failed += failed
        for file, tests in lines.items():
            for line, names in tests.items():
                found.lines.setdefault(file, {}).setdefault(int(line), []).extend(names)
    return found


def _cover(path, modules):
    """In a fork: the lines of these modules that the tests of a file execute."""
    import coverage

    cover = coverage.Coverage(data_file=None, include=[str(file) for file in modules.values()], config_file=False)
    plugin = Lines(cover)
    cover.start()
    for module in modules:  # so that no test seems to execute what only the first import of a module does
        importlib.import_module(module)
    pytest.main([str(path), *(option for option in OPTIONS if option != "-x")], plugins=[plugin])
    cover.stop()
    data, lines = cover.get_data(), {}
    for file in data.measured_files():
        contexts = data.contexts_by_lineno(file)
        lines[file] = {line: sorted(names) for line, names in contexts.items()}
    return lines, plugin.seconds, plugin.failed


def tried(change, path, tests):
    """In a fork: run tests against a change; return how it ended, and the test that noticed."""
    sys.meta_path.insert(0, Finder(change, path))
    for part in (tests[:FIRST], tests[FIRST:]):
        if part:
            chosen = Chosen(part)
            code = pytest.main([*dict.fromkeys(test.split("::")[0] for test in part), *OPTIONS], plugins=[chosen])
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return KILLED, chosen.failed
            if code == pytest.ExitCode.NO_TESTS_COLLECTED:
                return BROKEN, None
    return SURVIVED, None


def spans_of(source):
    """Where each function and class of a module begins and ends, by its qualified name."""
    found = {}

    def below(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                is_class = isinstance(child, ast.ClassDef)
                body = 10**9 if is_class else child.body[0].lineno
                names = frozenset(node.id for node in ast.walk(child) if isinstance(node, ast.Name))
                found[f"{prefix}{child.name}"] = Span(child.lineno, child.end_lineno, body, names, is_class)
                below(child, f"{prefix}{child.name}.")
            else:
                below(child, prefix)

    below(ast.parse(source), "")
    return found


def equivalents():
    """The changes that are known to be equivalent, each with its reason."""
    found, name = {}, None
    for line in LIST.read_text("utf-8").splitlines():
        if line.startswith(("#", "\n")) or not line.strip():
            continue
        if line.startswith(" "):
            found[name] += " " + line.strip()
        else:
            name = line.strip()
            found[name] = ""
    return {name: reason.strip() for name, reason in found.items()}


@dataclass
class Report:
    """What became of the changes of a room."""

    name: str
    ends: dict[str, list] = field(default_factory=lambda: collections.defaultdict(list))
    stale: list[str] = field(default_factory=list)

    @property
    def total(self):
        return sum(map(len, self.ends.values()))

    @property
    def share(self):
        """Of the changes that are not equivalent, how many were noticed."""
        noticed = len(self.ends[KILLED]) + len(self.ends[TIMEOUT])
        left = noticed + len(self.ends[SURVIVED]) + len(self.ends[BROKEN])
        return noticed / left if left else 1.0


class Ranking:
    """Which tests notice changes most often: in the same function first, then in the same module, then the quickest."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._noticed = collections.Counter()

    def note(self, change, test):
        self._noticed[change.module, test] += 1
        self._noticed[change.module, change.function, test] += 1

    def ordered(self, change, tests):
        def place(test):
            near, far = self._noticed[change.module, change.function, test], self._noticed[change.module, test]
            return -near, -far, self._seconds[test]

        return sorted(tests, key=place)


def examine(name, options, known):
    """Try the changes of a room."""
    room, report, forks = ROOMS[name], Report(name), Forks(options.jobs)
    coverage = covered(room, forks)
    if coverage.failed:
        print(f"{name}: left out, because they fail without any change: {', '.join(coverage.failed)}")
    changes, spans = [], {}
    for module, path in room.modules().items():
        source = path.read_text("utf-8")
        spans[str(path)] = spans_of(source)
        changes += [(change, path) for change in changes_of(module, source) if options.only in change.name]
    if not options.only:
        names = {change.name for change, _ in changes}
        report.stale = [entry for entry in known if entry.split()[0] in room.modules() and entry not in names]
    if options.sample and options.sample < len(changes):
        changes = random.Random(options.seed).sample(changes, options.sample)
    ranking = Ranking(coverage.seconds)

    def done(change, path, tests, result):
        end, witness = (result, None) if isinstance(result, str) else result
        if witness in coverage.seconds:
            ranking.note(change, witness)
        if change.name in known:
            report.stale += [change.name] * (end in (KILLED, TIMEOUT))
            end = EQUIVALENT if end == SURVIVED else end
        report.ends[end].append((change, path, len(tests)))
        if end in (SURVIVED, BROKEN) and options.verbose:
            print(shown(change, path, len(tests), end), flush=True)

    began = time.monotonic()
    for number, (change, path) in enumerate(changes, 1):
        tests = coverage.tests_of(path, change, spans)
        tests = ranking.ordered(change, [test for test in tests if test not in coverage.failed])
        if tests:
            forks.start(
                functools.partial(tried, change, path, tests),
                functools.partial(done, change, path, tests),
                sum(map(coverage.seconds.get, tests)),
            )
        else:
            done(change, path, tests, SURVIVED)
        if options.verbose and number % 50 == 0:
            print(f"  {name}: {number} of {len(changes)} in {time.monotonic() - began:.0f} s", flush=True)
    forks.finish()
    return report


def shown(change, path, tests, end):
    where = f"{path.relative_to(ROOT).as_posix()}:{change.line}"
    note = (
        "no test executes it"
        if not tests
        else f"{tests} tests run"
        if end == SURVIVED
        else "the tests could not be run"
    )
    return f"{where}  {change.name}  ({note})"


def table(reports):
    """A row for each room."""
    columns = ("room", "changes", "killed", "timeouts", "equivalent", "survivors", "noticed")
    lines = ["  ".join(f"{column:>10}" for column in columns)]
    for report in reports:
        counts = [len(report.ends[end]) for end in (KILLED, TIMEOUT, EQUIVALENT)]
        survivors = len(report.ends[SURVIVED]) + len(report.ends[BROKEN])
        row = [report.name, report.total, *counts, survivors, f"{report.share:.1%}"]
        lines.append("  ".join(f"{cell:>10}" for cell in row))
    return "\n".join(lines)


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="make mutants", description="Single changes to the code that tests must notice."
    )
    parser.add_argument("--room", action="append", choices=ROOMS, help="the rooms to change; all of them without it")
    parser.add_argument("--sample", type=int, help="try so many changes of each room, drawn with the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="try changes whose name contains this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--quiet", dest="verbose", action="store_false", help="print the table and the survivors at the end only"
    )
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    sys.dont_write_bytecode = False  # each fork would compile the library anew
    os.environ |= {"HYPOTHESIS_PROFILE": "mutants", "OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for module in WARM:
        try:
            importlib.import_module(module)
        except ImportError:
            continue
    assert "grace_kp" not in sys.modules
    gc.collect()
    gc.freeze()  # what forks need not look at again
    known = equivalents()
    reports = [examine(name, options, known) for name in options.room or ROOMS]
    print(table(reports))
    for report in reports:
        for end in (SURVIVED, BROKEN):
            for change, path, tests in sorted(report.ends[end], key=lambda entry: (str(entry[1]), entry[0].line)):
                print(shown(change, path, tests, end))
        for name in report.stale:
            print(f"{LIST.relative_to(ROOT)}: no longer survives, or is gone: {name}")
    return int(any(report.share < AIM or report.stale for report in reports))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
