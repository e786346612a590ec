"""Importing has no side effect and loads nothing heavy, and neither does anything up to a decorated call."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib

import pytest

from tests.conventions.source import ROOT, modules

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {  # where a distribution is not imported by its own name
    "google-genai": "google", "langchain-core": "langchain_core", "sentence-transformers": "sentence_transformers",
    "huggingface-hub": "huggingface_hub", "pyyaml": "yaml", "inspect-ai": "inspect_ai", "pydantic-evals": "pydantic_evals",
    "openai-agents": "agents", "pydantic-ai-slim": "pydantic_ai", "strands-agents": "strands", "google-adk": "google",
}  # fmt: skip
NEVER_ON_THE_WAY = {"numpy", "pydantic", "pydantic_core", "asyncio", "rich", "typer", "click", "tenacity"}


def optional_modules():
    extras = PROJECT["optional-dependencies"]
    names = {re.split(r"[\[<>=]", need)[0] for extra in extras if extra not in {"all", "dev"} for need in extras[extra]}
    return {MODULES.get(name, name) for name in names}


def modules_of(extra):
    """The top-level modules that the packages of an extra bring."""
    names = {re.split(r"[\[<>=]", need)[0] for need in PROJECT["optional-dependencies"][extra]}
    return {MODULES.get(name, name) for name in names}


@functools.cache
def imported_from_outside():
    """Each top-level module that is imported anywhere in the package, with a file that does."""
    found = {}
    for module in modules().values():
        for node in module.nodes:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            found.update({name.partition(".")[0]: module.file for name in names})
    # The module of interpreters has another name in each version of Python.
    known = {*sys.stdlib_module_names, "_interpreters", "_xxsubinterpreters", "grace_kp"}
    return {name: file for name, file in found.items() if name not in known}


def test_what_is_imported_is_declared():
    """A package that is there only because another one, or a linter, brought it along is missing for somebody else."""
    core = {re.split(r"[\[<>=]", need)[0] for need in PROJECT["dependencies"]}
    declared = core | optional_modules() | {"pydantic_core"}  # which pydantic is made of, and holds to its own version
    assert {} == {name: file for name, file in imported_from_outside().items() if name not in declared}


ALONE = {"google-adk"}  # cannot be installed beside another extra
EXTRAS = sorted(PROJECT["optional-dependencies"].keys() - {"all", "dev", "models"})


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_offered_only_with_code_that_needs_it(extra):
    """Some module of the package imports something that the extra brings."""
    assert modules_of(extra) & imported_from_outside().keys()


def test_all_is_every_extra_for_users():
    """No more and no fewer; what developers need is not among them, nor what has to be installed alone."""
    (needs,) = PROJECT["optional-dependencies"]["all"]
    assert (
        f"grace-kp[{','.join(sorted(set(EXTRAS) - ALONE))}]" == f"grace-kp[{','.join(sorted(needs[9:-1].split(',')))}]"
    )


def test_the_doctor_knows_every_extra():
    """And it names a package that the extra brings."""
    from grace_kp.cli._doctor import EXTRAS as KNOWN

    assert EXTRAS == sorted(KNOWN)
    for extra, (package, _) in KNOWN.items():
        assert package in {re.split(r"[\[<>=]", need)[0] for need in PROJECT["optional-dependencies"][extra]}


WATCHED = """
import _thread, sys
agent, elsewhere = _thread.get_ident(), set()
class Watch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if _thread.get_ident() != agent:
            elsewhere.add(name)
sys.meta_path.insert(0, Watch)
before = set(sys.modules)
def report():
    import json
    print(json.dumps(sorted(set(sys.modules) - before - elsewhere)))
"""


def loaded_by(code, folder):
    """Return the modules that the first thread of a fresh interpreter has loaded at `report()`, beyond those it starts with."""
    script = f"{WATCHED}{textwrap.dedent(code)}"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    return {name.partition(".")[0] for name in json.loads(ran.stdout)} | {
        name for name in json.loads(ran.stdout) if name.startswith("grace_kp")
    }


def test_importing_the_package_loads_next_to_nothing(tmp_path):
    """No dependency, optional or not, no database, no event loop; of this package, no room at all."""
    loaded = loaded_by("import grace_kp\nreport()", tmp_path)
    assert set() == loaded & (
        NEVER_ON_THE_WAY | optional_modules() | {"sqlite3", "logging", "threading", "platformdirs"}
    )
    assert {"grace_kp"} == {name for name in loaded if name.startswith("grace_kp")}


RUNS = {
    "functions": """
        @{verbs}.tool
        def add(a, b):
            return a + b

        @{verbs}.retriever(name="look")
        def search(query):
            return [{{"text": "x", "score": 0.9, "source": "y"}}]

        @{verbs}.agent(domain="code", objective="Add {{a}}")
        def root(a):
            search("x")
            {verbs}.thought("hm")
            total = add(a, 2)
            report()
            return total

        assert root(1) == 3
        """,
    "generators": """
        @{verbs}.tool
        def numbers(n):
            yield from range(n)

        @{verbs}.agent
        def root(question):
            yield from numbers(3)
            report()

        assert list(root("count")) == [0, 1, 2]
        """,
    "coroutines": """
        @{verbs}.tool
        async def add(a, b):
            return a + b

        @{verbs}.agent
        async def root(question):
            total = await add(1, 2)
            report()
            return total

        try:
            root("1 + 2").send(None)  # driven by hand: an event loop would be the user's
        except StopIteration as done:
            assert done.value == 3
        """,
    "blocks": """
        with {verbs}.run("add"):
            report()
        """,
    "failures": """
        @{verbs}.tool
        def fail():
            raise ValueError("no")

        @{verbs}.agent
        def root(question):
            try:
                fail()
            except ValueError:
                report()

        root("x")
        """,
}


@pytest.mark.parametrize("verbs", ["grace", "gk"])
@pytest.mark.parametrize("run", RUNS)
def test_a_decorated_call_loads_nothing_heavy(run, verbs, tmp_path):
    """Until the run ends, recording works with plain objects; what finishing needs is loaded then."""
    code = 'import grace_kp as gk\ngrace = gk.Grace(store="memory:")\ngk.configure(store="memory:")\n'
    loaded = loaded_by(code + textwrap.dedent(RUNS[run]).format(verbs=verbs), tmp_path)
    assert "grace_kp.record" in loaded
    patterns = {"grace_kp.confidence._provenance", "grace_kp.confidence._wording"}
    assert set() == loaded & (NEVER_ON_THE_WAY | optional_modules() | patterns)


WORLD = """
    import atexit, gc, json, os, signal, socket, sys, threading, warnings

    def world():
        import logging
        return {
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "environment": dict(os.environ),
            "working directory": os.getcwd(),
            "files": sorted(os.path.join(at, name) for top in (os.getcwd(), os.environ["HOME"])
                            for at, _, names in os.walk(top) for name in names),
            "loggers with handlers": sorted(
                name for name in ["root", *logging.root.manager.loggerDict] if logging.getLogger(name).handlers
            ),
            "log level": logging.root.level,
            "warning filters": len(warnings.filters),
            "path": list(sys.path),
            "hooks": [repr(hook) for hook in (
                sys.excepthook, sys.unraisablehook, threading.excepthook, sys.getprofile(), sys.gettrace(),
                sys.displayhook, sys.breakpointhook, threading.Thread.start,
            )],
            "exits": atexit._ncallbacks(),
            "signals": [repr(signal.getsignal(number)) for number in signal.valid_signals()],
            "open files": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
            "collecting": gc.isenabled(),
        }

    world()  # what looking itself loads is no matter
    before = world()
    IMPORT_HERE
    after = world()
    print(json.dumps({name: [before[name], after[name]] for name in before if before[name] != after[name]}))
    """


@pytest.mark.parametrize(
    "code",
    ["import grace_kp", "import grace_kp as gk; [getattr(gk, name) for name in gk.__all__]", "import grace_kp.testing"],
)
def test_importing_changes_nothing(code, tmp_path):
    """No thread, no file, no handler, no hook, no environment: also when every public name is looked up."""
    world = textwrap.dedent(WORLD)
    if code != "import grace_kp":
        # Libraries that the rooms rest on may ask to be told of the exit, and rearrange their warnings.
        world = world.replace('"exits"', '# "exits"').replace('"warning filters"', '# "warning filters"')
    ran = subprocess.run(
        [sys.executable, "-B", "-c", world.replace("IMPORT_HERE", code)],
        cwd=tmp_path, env={**os.environ, "GRACE_KP_DOMAIN": "x"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    assert {} == json.loads(ran.stdout)


def test_importing_does_not_read_settings(tmp_path):
    """A bad setting is an error where a runtime is made, not where the package is imported or a function is decorated."""
    code = "import grace_kp as gk\n@gk.tool\ndef f(): ...\ntry:\n    gk.Grace()\nexcept gk.SettingsError as error:\n    print(error)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={**os.environ, "GRACE_KP_NONSENSE": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "unknown setting 'nonsense'" in ran.stdout
