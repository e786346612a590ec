"""The default runtime is created on first use, replaced by `configure`, and found by functions decorated before."""

from __future__ import annotations

import json
import pickle

import pytest

import grace_kp as gk
from tests.runtime.test_grace import python


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


DEFINED = """
import asyncio, cloudpickle, functools, sys
import grace_kp as gk
grace = gk.Grace(store=f"sqlite:///{sys.argv[1]}/own.db", evaluator=None, embedder=None, on_notify=lambda request: gk)
factor = 3
def times(x): return factor * x
def of(on):
    @on.tool(name="tool", failed=lambda result: result == 9)
    def tool(x, *, more=0): return times(x) + more
    @on.tool
    async def atool(x): return await asyncio.sleep(0, x)
    @on.retriever(scores="none")
    def find(q): return [{"text": q}]
    @on.agent(objective="do {q}", tags=["t"], user=lambda q: f"u-{q}")
    def agent(q): return find(q) and tool(1)
    @on.agent
    async def aagent(q): return await atool(q)
    @on.agent
    def stream(q): yield tool(1); yield tool(2)
    @on.agent
    async def astream(q): yield await atool(1)
    @on.gate(unmeasured="silent", sealed=())
    @on.tool
    def act(x): return x
    @on.gate(unmeasured="notify")
    async def aact(x): return x
    class Worker:
        def __init__(self, n): self.n = n
        @on.tool
        def method(self, x): return self.n + x
        @staticmethod
        @on.tool
        def static(x): return x
        @classmethod
        @on.agent
        def made(cls, q): return cls(1).method(2)
    tool(1), agent("q"), act(1)  # used before they are pickled
    return dict(tool=tool, atool=atool, find=find, agent=agent, aagent=aagent, stream=stream, astream=astream, act=act, aact=aact,
        Worker=Worker, bound=Worker(1).method, unnamed=on.tool(lambda x: x), partial=on.tool(functools.partial(times)))
"""
CALLED = """
import asyncio, inspect, json, pickle, sys
import grace_kp as gk
for name in ("default", "own"):
    with open(f"{sys.argv[1]}/{name}.pickle", "rb") as file:
        things = {kind: pickle.loads(data) for kind, data in pickle.load(file).items()}
    async def listed(stream): return [item async for item in stream]
    run, of = asyncio.run, things.__getitem__
    assert [8, 1, [{"text": "q"}], 3, "q"] == [of("tool")(2, more=2), run(of("atool")(1)), of("find")("q"), of("agent")("q"), run(of("aagent")("q"))]
    assert ([3, 6], [1], 4, 5) == (list(of("stream")("q")), run(listed(of("astream")("q"))), of("act")(4), run(of("aact")(5)))
    assert (3, 1, 3) == (of("Worker")(1).method(2), of("Worker").static(1), of("Worker").made("q"))
    assert (2, 1, 6) == (of("bound")(1), of("unnamed")(1), of("partial")(2))
    assert "(x, *, more=0)" == str(inspect.signature(of("tool"))) and inspect.iscoroutinefunction(of("aact"))
    try:
        of("tool")()
    except TypeError as error:
        assert "missing 1 required positional argument: 'x'" in str(error)
grace = gk.default()
grace.flush()
print(json.dumps(sorted(trace.name for trace in grace.store.query(limit=100))))
"""


def test_a_recorded_function_pickles_by_value(tmp_path):
    """For Ray, Dask and Spark: in another process it is recorded by the default runtime there, or by its own, opened once more."""
    pytest.importorskip("cloudpickle")
    defined = python(
        DEFINED
        + """
gk.configure(store="memory:", evaluator=None, embedder=None)
for name, on in (("default", gk), ("own", grace)):
    with open(f"{sys.argv[1]}/{name}.pickle", "wb") as file:
        cloudpickle.dump({kind: cloudpickle.dumps(thing) for kind, thing in of(on).items()}, file)
    assert cloudpickle.loads(cloudpickle.dumps(grace)) is grace
""",
        tmp_path,
    )
    assert (0, "") == (defined.returncode, defined.stderr)
    environment = {"GRACE_KP_STORE": "memory:", "GRACE_KP_STRICT_RECORDING": "1"}
    called = python(CALLED, tmp_path, environment=environment)
    assert (0, "") == (called.returncode, called.stderr)
    expected = ["<lambda>", "aact", "aagent", "act", "agent", "astream", "atool", "find", "made", "method", "method", "static", "stream", "times", "tool", "tool"]  # fmt: skip
    assert expected == json.loads(called.stdout)
    names = [trace.name for trace in gk.Grace(store=f"sqlite:///{tmp_path}/own.db").store.query(limit=100)]
    assert sorted([*expected, "tool", "agent", "act"]) == sorted(names)


def test_a_runtime_with_a_store_object_does_not_pickle():
    with pytest.raises(TypeError, match="name its store by a URL"):
        pickle.dumps(gk.Grace(store=gk.Grace(store="memory:").store))


class Named(gk.Grace):
    """A runtime whose arguments are its own."""

    def __init__(self, name):
        super().__init__(store="memory:", evaluator=None, embedder=None)
        self.name = name


def test_a_subclass_pickles_with_its_own_arguments():
    named = Named("shop")
    assert pickle.loads(pickle.dumps(named)) is named
    opened, (kind, _, *arguments) = named.__reduce__()
    assert "shop" == opened(kind, "as in another process", *arguments).name


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
