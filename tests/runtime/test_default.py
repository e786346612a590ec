"""The default runtime is created on first use, replaced by `configure`, and found by functions decorated before."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import grace_kp as gk

ROOT = Path(__file__).resolve().parents[2]


def python(code, *args, **options):
    """A fresh interpreter that runs `code`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("environment", {})}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


def test_configure_replaces_the_default_and_names_stay_bound():
    """A function decorated before `configure` is recorded by what is the default when it is called."""

    @gk.agent
    def early(text):
        return text

    first = gk.configure(store="memory:")
    early("one")
    second = gk.configure(store="memory:", domain="code")
    early("two")
    assert [t.task.objective for t in first.store.query()] == ["one"]
    assert [t.metadata.task_domain for t in second.store.query()] == ["code"]
    with pytest.raises(gk.SettingsError, match="storee"):
        gk.configure(storee="memory:")
    assert gk.default() is second


def test_a_decorated_function_pickles():
    """By name, as the undecorated one does."""
    ran = python("""
        import pickle, sys, types
        import grace_kp as gk
        grace = gk.Grace(store="memory:")
        @grace.tool
        def work(x): return x
        assert pickle.loads(pickle.dumps(work)) is work
    """)
    assert (0, "") == (ran.returncode, ran.stderr)


SUBINTERPRETER = """
    import textwrap, threading
    import grace_kp as gk

    try:
        import _interpreters
        run = _interpreters.exec
    except ImportError:
        import _xxsubinterpreters as _interpreters
        run = _interpreters.run_string

    gk.configure(store="memory:", reviewer=None, embedder=None, evaluator=None)
    gk.agent(len)("main")
    assert gk.default().flush()
    other = _interpreters.create()
    failed = run(other, textwrap.dedent('''
        import sys
        import grace_kp as gk

        @gk.agent
        def agent(text):
            return tool(text)

        @gk.tool
        def tool(text):
            return text + "!"

        print(agent("result"), agent("result"))

        @gk.gate
        def action():
            print("the action ran")

        for refused in (action, lambda: gk.Grace(store="memory:")):
            try:
                refused()
            except gk.GraceError as error:
                print(error)
    '''))
    assert failed is None, failed
    _interpreters.destroy(other)
    print(len(gk.default().store.query()))
    """


def test_in_a_subinterpreter_agents_run_unrecorded_and_gates_and_runtimes_are_refused():
    """The models of traces cannot be loaded there; the log says so once for agents and once for tools, and the first interpreter goes on recording."""
    done = python(SUBINTERPRETER, environment={"GRACE_KP_STRICT_RECORDING": ""})
    refusal = (
        "grace_kp does not work in a sub-interpreter, because numpy and pydantic cannot be loaded there: "
        "use threads or processes, and in mod_wsgi `WSGIApplicationGroup %{GLOBAL}`"
    )
    assert ["result! result!", refusal, refusal, "1"] == done.stdout.splitlines()
    assert 2 == done.stderr.count(refusal)


BROKEN = """
    import asyncio
    import grace_kp as gk

    @gk.agent
    def agent(text):
        gk.thought("thinking")
        return tool(text)

    @gk.agent
    async def later(text):
        return text

    @gk.tool
    def tool(text):
        return text + "!"

    @gk.gate
    def action():
        print("the action ran")

    print(agent("a"), asyncio.run(later("b")), tool("c"))
    with gk.run("a task"):
        print(tool("d"))
    for refused in (action, gk.agent(lambda: action()), gk.default, lambda: gk.configure(store="memory:")):
        try:
            refused()
        except gk.SettingsError as error:
            print(error)
    """


@pytest.mark.parametrize("broken", ["file", "environment", "store"])
def test_with_settings_that_cannot_be_used_agents_run_unrecorded_and_gates_are_refused(broken, tmp_path):
    """Recording fails open, and a gate whose policies cannot be known fails closed."""
    environment = {"GRACE_KP_STRICT_RECORDING": ""}
    if broken == "file":
        (tmp_path / "grace_kp.toml").mkdir()
        problem = f"{tmp_path / 'grace_kp.toml'}: cannot be read: it is a directory"
    elif broken == "environment":
        environment["GRACE_KP_POLICIES"] = "action"
        problem = "policies (environment variable GRACE_KP_POLICIES) must read name=floor,name=floor, not 'action'"
    else:
        environment["GRACE_KP_STORE"] = "x.db"
        problem = (
            "store (environment variable GRACE_KP_STORE): unknown store 'x.db'; known are memory: or sqlite:///path.db; "
            "for a file, write sqlite:///x.db"
        )
    done = python(BROKEN, environment=environment, cwd=tmp_path)
    assert ["a! b c!", "d!", *[problem] * 4] == done.stdout.splitlines()
    assert problem in done.stderr
