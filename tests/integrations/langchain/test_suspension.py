"""Interrupts suspend a run, and the same trace goes on, in this process or another; or it is never answered."""

from __future__ import annotations

import asyncio
import signal

import pytest

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from .conftest import State, both, built, call, config, run_program, search, statuses, steps


@tool
def before(query: str) -> str:
    """Before."""
    return f"before {query}"


@tool
def after(query: str) -> str:
    """After."""
    return f"after {query}"


@tool
def asks(query: str) -> str:
    """Ask in the middle."""
    return f"told {interrupt('well?')}"


def first(state):
    return {"said": [before.invoke({"query": "first"})]}


def ask(state):
    before.invoke({"query": "ask"})
    return {"said": [interrupt("ok?"), after.invoke({"query": "ask"})]}


def last(state):
    return {"said": [after.invoke({"query": "last"})]}


def calls_of(trace):
    return [(step.tool.name, step.input["query"]) for step in trace.steps if step.type == "tool_call"]


def well_formed(trace):
    """Steps are numbered from 0, and calls point at the steps they say."""
    assert list(range(len(trace.steps))) == [step.step_id for step in trace.steps]
    for number, entry in enumerate(trace.grace["calls"]):
        assert f"c{number}" == entry["call_id"]
        assert "tool_call" == trace.steps[entry["tool_call"]].type
        assert entry["name"] == trace.steps[entry["tool_call"]].tool.name
        if "observation" in entry:
            assert "observation" == trace.steps[entry["observation"]].type
        if "recovery" in entry:
            assert "error_recovery" == trace.steps[entry["recovery"]].type
    return trace


def test_the_same_trace_goes_on_and_has_each_step_once(grace, handler, saver):
    """The node that asks is run again from its first line; its first tool is in the trace once, and named as carried out twice."""
    app = built(first, ask, last, checkpointer=saver)
    assert "ok?" == app.invoke({"said": []}, config(handler))["__interrupt__"][0].value

    (waiting,) = grace.store.query()
    assert ("suspended", True) == (waiting.grace["status"], waiting.metadata.success)
    assert [("before", "first"), ("before", "ask")] == calls_of(waiting)

    assert ["before first", "yes", "after ask", "after last"] == app.invoke(Command(resume="yes"), config(handler))[
        "said"
    ]
    (done,) = grace.store.query()
    well_formed(done)
    assert (waiting.id, waiting.metadata.created_at) == (done.id, done.metadata.created_at)
    assert ("completed", True) == (done.grace["status"], done.metadata.success)
    assert [("before", "first"), ("before", "ask"), ("after", "ask"), ("after", "last")] == calls_of(done)
    assert [("before", "ok"), ("before", "ok"), ("after", "ok"), ("after", "ok")] == statuses(done)
    assert (1, ["before"]) == (done.grace["resumed"], done.grace["repeated"])
    assert waiting.task.objective == done.task.objective


@pytest.mark.parametrize(
    "mode", ["values", "updates", "messages", "custom", "debug", "checkpoints", "tasks", ["updates", "values"]]
)
def test_every_stream_mode_suspends_and_goes_on(grace, handler, saver, mode):
    app = built(first, ask, last, checkpointer=saver)
    list(app.stream({"said": []}, config(handler), stream_mode=mode))
    assert ["suspended"] == [trace.grace["status"] for trace in grace.store.query()]
    list(app.stream(Command(resume="yes"), config(handler), stream_mode=mode))
    (done,) = grace.store.query()
    assert 4 == len(calls_of(well_formed(done)))


def test_several_questions_in_one_node(grace, handler, saver):
    def twice(state):
        one = interrupt("one?")
        before.invoke({"query": one})
        two = interrupt("two?")
        return {"said": [one, two]}

    app = built(first, twice, checkpointer=saver)
    app.invoke({"said": []}, config(handler))
    app.invoke(Command(resume="a"), config(handler))
    assert ["before first", "a", "b"] == app.invoke(Command(resume="b"), config(handler))["said"]
    (done,) = grace.store.query()
    assert [("before", "first"), ("before", "a")] == calls_of(well_formed(done))
    assert (2, "completed") == (done.grace["resumed"], done.grace["status"])


def test_a_question_inside_of_a_tool(grace, handler, saver):
    """The tool is called again on resume; the trace has one call of it, with its true result."""
    app = built(("ask", lambda state: {"said": [asks.invoke({"query": "q"})]}), checkpointer=saver)
    app.invoke({"said": []}, config(handler))
    (waiting,) = grace.store.query()
    assert [("asks", "suspended")] == statuses(waiting)
    app.invoke(Command(resume="this"), config(handler))
    (done,) = grace.store.query()
    assert [("tool_call", "asks"), ("observation", "told this")] == steps(well_formed(done))
    assert 1.0 == done.grace["confidence"]["breakdown"]["tool_success"]


def test_questions_side_by_side(grace, handler, saver):
    def asking(name):
        def node(state):
            before.invoke({"query": name})
            return {"said": [interrupt(name)]}

        return node

    graph = StateGraph(State)
    for name, node in {"a": asking("a"), "b": asking("b"), "c": first}.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    app = graph.compile(checkpointer=saver)
    out = app.invoke({"said": []}, config(handler))
    answers = {one.id: one.value.upper() for one in out["__interrupt__"]}
    assert {"A", "B", "before first"} == set(app.invoke(Command(resume=answers), config(handler))["said"])
    (done,) = grace.store.query()
    assert {("before", "a"), ("before", "b"), ("before", "first")} == set(calls_of(well_formed(done)))
    assert 3 == len(calls_of(done))


def test_a_graph_inside_of_a_graph_is_a_trace_of_its_own_and_goes_on_too(grace, handler, saver):
    inner = built(ask, last, name="inner")
    app = built(first, ("inner", inner), last, checkpointer=saver)
    app.invoke({"said": []}, config(handler))
    assert {"suspended"} == {trace.grace["status"] for trace in grace.store.query()}
    ids = {trace.grace["name"]: trace.id for trace in grace.store.query()}

    app.invoke(Command(resume="yes"), config(handler))
    traces = {trace.grace["name"]: well_formed(trace) for trace in grace.store.query()}
    assert ids == {name: trace.id for name, trace in traces.items()}
    outer, nested = traces["LangGraph"], traces["inner"]
    assert [("before", "ask"), ("after", "ask"), ("after", "last")] == calls_of(nested)
    assert [("before", "ok"), ("inner", "ok"), ("after", "ok")] == statuses(outer)
    assert {"trace_id": outer.id, "call_id": "c1"} == nested.grace["parent"]
    assert [nested.id] == outer.grace["children"]
    assert {"completed"} == {trace.grace["status"] for trace in traces.values()}


def test_breakpoints_suspend_too(grace, handler, saver):
    app = built(first, last, checkpointer=saver, interrupt_before=["last"])
    app.invoke({"said": []}, config(handler))
    assert ["suspended"] == [trace.grace["status"] for trace in grace.store.query()]
    app.invoke(None, config(handler))
    (done,) = grace.store.query()
    assert [("before", "first"), ("after", "last")] == calls_of(well_formed(done))


def test_a_suspended_trace_that_is_gone_leaves_a_new_one(grace, handler, saver):
    app = built(first, ask, checkpointer=saver)
    app.invoke({"said": []}, config(handler))
    grace.flush()
    grace.store.clear()
    handler.tracker.suspensions.runs.clear()
    app.invoke(Command(resume="yes"), config(handler))
    (trace,) = grace.store.query()
    assert [("before", "ask"), ("after", "ask")] == calls_of(trace)


def test_a_thread_whose_name_is_an_identifier_goes_on(saver, tmp_path):
    """It stands in the trace without what identifies; the run is found again all the same."""
    import grace_kp as gk

    app = built(first, ask, checkpointer=saver)
    for given in ({"said": []}, Command(resume="yes")):
        with gk.Grace(
            store=f"sqlite:///{tmp_path}/t.db", privacy_level="aggregated", evaluator=None, embedder=None
        ) as grace:
            for name in ("ann@example.com", "bob@example.com"):
                app.invoke(given, config(GraceCallbackHandler(grace), name))
            traces = grace.store.query()
    assert ["completed", "completed"] == [trace.grace["status"] for trace in traces]
    assert not any("example.com" in str(trace.to_dict()) for trace in traces)


def asking(grace, kind):
    """A node whose recorded function asks: a tool, an agent, or an agent around one."""

    @grace.tool
    def asks(question):
        return interrupt("ok?")

    @grace.agent
    def agent(question):
        return interrupt("ok?")

    @grace.agent
    def outer(question):
        return agent(question)

    function = {"tool": asks, "agent": agent, "outer": outer}[kind]

    def node(state):
        return {"said": [function("q")]}

    return node


def kept_by(grace):
    """The status of every stored run, with the number of runs that have it."""
    grace.flush()
    found = [trace.grace["status"] for trace in grace.store.query()]
    return {status: found.count(status) for status in sorted(set(found))}


@pytest.mark.parametrize("with_handler", [True, False])
@pytest.mark.parametrize("kind", ["tool", "agent", "outer"])
def test_a_run_in_a_node_waits_until_the_node_is_repeated(grace, handler, saver, kind, with_handler):
    """A function has no state to continue from, so the run that repeats it supersedes it."""
    app = built(asking(grace, kind), checkpointer=saver)
    settings = config(handler) if with_handler else {"configurable": {"thread_id": "1"}}
    app.invoke({"said": []}, settings)
    assert {"suspended"} == set(kept_by(grace))
    app.invoke(Command(resume="yes"), settings)
    assert {"closed", "completed"} >= set(kept_by(grace))
    closed = grace.store.query(status="closed")
    assert all(grace.store.get(trace.grace["superseded_by"]).status == "completed" for trace in closed)
    assert all("began again" in trace.outcome.result_summary and trace.metadata.success for trace in closed)
    assert bool(closed) == (kind != "tool" or not with_handler)


def test_runs_that_wait_side_by_side_do_not_close_each_other(grace, saver):
    waiting = []

    @grace.agent
    def agent(question):
        return interrupt(question)

    def node(state):
        for question in ("first", "second"):
            try:
                agent(question)
            except BaseException as error:
                waiting.append(error)
        raise waiting.pop(0)

    app = built(node, checkpointer=saver)
    app.invoke({"said": []}, {"configurable": {"thread_id": "1"}})
    assert {"suspended": 2} == kept_by(grace)


def test_a_later_step_closes_a_run_whose_question_was_dropped(grace, saver):
    app = built(asking(grace, "agent"), checkpointer=saver)
    for thread in ("1", "2", "1"):
        app.invoke({"said": ["new"]}, {"configurable": {"thread_id": thread}})
    assert {"closed": 1, "suspended": 2} == kept_by(grace)
    assert "other input" in grace.store.query(status="closed")[0].outcome.result_summary


def test_another_runtime_supersedes_the_run_of_a_process_that_is_gone(saver, tmp_path):
    import grace_kp as gk

    for given in ({"said": []}, Command(resume="yes")):
        with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None) as grace:
            app = built(asking(grace, "agent"), checkpointer=saver)
            app.invoke(given, {"configurable": {"thread_id": "1"}})
            kept = kept_by(grace)
    assert {"closed": 1, "completed": 1} == kept


def look_first(state):
    return {"said": [search.invoke({"query": "first"})]}


def only_ask(state):
    return {"said": [interrupt("ok?")]}


KILLED = """
import asyncio, os, signal, sys
from tests.integrations.langchain.conftest import *
folder, way = sys.argv[1:]
def look_first(state):
    return {"said": [search.invoke({"query": "first"})]}
def only_ask(state):
    return {"said": [interrupt("ok?")]}
def die():
    os.kill(os.getpid(), signal.SIGKILL)
async def leave(app):
    async for part in app.astream({"said": []}, settings, stream_mode="updates", subgraphs=True):
        if "__interrupt__" in part[-1]:
            die()
grace = runtime(store=f"sqlite:///{folder}/t.db")
settings = config(GraceCallbackHandler(grace), "t")
nested, stop = built(only_ask, name="inner"), {}
if way == "breakpoint":
    nested, stop = look_first, {"interrupt_before": ["last"]}
with SqliteSaver.from_conn_string(f"{folder}/c.db") as saver:
    kept = InMemorySaver() if way == "astream" else saver
    app = built(look_first, ("inner", nested), ("last", look_first), name="outer", checkpointer=kept, **stop)
    if way in {"stream", "breakpoint"}:
        for part in app.stream({"said": []}, settings, stream_mode="updates", subgraphs=True):
            if "__interrupt__" in part[-1]:
                die()
    elif way == "astream":
        asyncio.run(leave(app))
    elif way == "invoke":
        app.invoke({"said": []}, settings)
        die()
    else:
        print(app.invoke(Command(resume="yes"), settings)["said"])
grace.close()
"""


@pytest.mark.parametrize("way", ["invoke", "stream", "astream", "breakpoint"])
def test_a_process_that_is_killed_as_soon_as_the_question_is_seen_has_stored_its_trace(tmp_path, way):
    """The suspended traces, nested ones included, are on disk before anybody can see the question."""
    ran = run_program(KILLED, tmp_path, way)
    assert (-signal.SIGKILL, "") == (ran.returncode, ran.stderr)
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None) as grace:
        traces = {trace.grace["name"]: trace for trace in grace.store.query()}
    names = {"outer"} if way == "breakpoint" else {"outer", "inner"}
    assert names == set(traces)
    assert {"suspended"} == {trace.grace["status"] for trace in traces.values()}
    assert {"t"} == {trace.grace["langchain"]["thread_id"] for trace in traces.values()}
    assert ("tool_call", "search") == steps(traces["outer"])[0]


def test_a_killed_process_s_run_goes_on_in_another_one(tmp_path):
    assert -signal.SIGKILL == run_program(KILLED, tmp_path, "invoke").returncode
    answered = run_program(KILLED, tmp_path, "resume")
    assert ("['found first', 'found first', 'yes', 'found first']", "") == (answered.stdout.strip(), answered.stderr)
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None) as grace:
        traces = {trace.grace["name"]: trace for trace in grace.store.query()}
    assert {"outer": "completed", "inner": "completed"} == {name: it.grace["status"] for name, it in traces.items()}
    assert ["search", "inner", "search"] == [entry["name"] for entry in traces["outer"].grace["calls"]]


def test_a_reader_who_leaves_at_the_question_has_one_trace(grace, handler, saver):
    """Leaving the stream at the question does not close the run: the answer goes on with it."""
    app = built(look_first, only_ask, checkpointer=saver)
    for chunk in app.stream({"said": []}, config(handler), stream_mode="updates"):
        if "__interrupt__" in chunk:
            break
    assert ["suspended"] == [trace.grace["status"] for trace in grace.store.query()]
    app.invoke(Command(resume="yes"), config(handler))
    assert ["completed"] == [trace.grace["status"] for trace in grace.store.query()]


class TestAnswersThatComeTooLate:
    @both
    async def test_a_late_duplicate_adds_no_trace(self, grace, handler, world):
        app = built(look_first, only_ask, checkpointer=InMemorySaver())
        await call(app, {"said": []}, world, handler)
        await call(app, Command(resume="yes"), world, handler)
        (done,) = grace.store.query()
        for again in (Command(resume="no"), Command(resume="no"), None):
            await call(app, again, world, handler)
        assert [done.to_dict()] == [trace.to_dict() for trace in grace.store.query()]
        assert {} == handler.tracker.frames

    def test_an_answer_that_is_refused_leaves_the_run_waiting(self, grace, handler, saver, monkeypatch):
        """A resume that fails before any node runs is a failed run; the question can still be answered."""
        app = built(look_first, only_ask, checkpointer=saver)
        app.invoke({"said": []}, config(handler))
        (waiting,) = grace.store.query()
        with monkeypatch.context() as patch:
            patch.setattr(saver, "get_tuple", lambda _config: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                app.invoke(Command(resume="yes"), config(handler))
        assert {"suspended", "failed"} == {trace.grace["status"] for trace in grace.store.query()}
        assert "suspended" == grace.store.get(waiting.id).grace["status"]
        app.invoke(Command(resume="yes"), config(handler))
        assert "completed" == grace.store.get(waiting.id).grace["status"]


def test_a_question_in_a_task_of_the_functional_api(grace, handler, saver):
    """A task that had ended is not run again, and the one that asks has each step once."""

    @task
    def prepare(text):
        return search.invoke({"query": text})

    @task
    def decide(text):
        search.invoke({"query": "decide"})
        return [text, interrupt("ok?")]

    @entrypoint(checkpointer=saver)
    def flow(text):
        return decide(prepare(text).result()).result()

    flow.invoke("a", config(handler))
    assert ["found a", "yes"] == flow.invoke(Command(resume="yes"), config(handler))
    (done,) = grace.store.query()
    assert ["a", "decide"] == [step.input["query"] for step in done.steps if step.tool]
    assert (["search"], "completed") == (done.grace["repeated"], done.grace["status"])


class TestNewMessages:
    """A new message instead of an answer: LangGraph drops the question, so its trace is closed."""

    @both
    async def test_the_old_trace_is_closed(self, grace, handler, world):
        app = built(look_first, only_ask, checkpointer=InMemorySaver())
        await call(app, {"said": ["old"]}, world, handler)
        (old,) = grace.store.query()
        await call(app, {"said": ["new"]}, world, handler)
        closed = grace.store.get(old.id)
        (new,) = [trace for trace in grace.store.query() if trace.id != old.id]
        assert ("closed", False) == (closed.grace["status"], closed.metadata.success)
        assert new.id == closed.grace["superseded_by"]
        assert "Closed without an answer: its thread went on with other input." == closed.outcome.result_summary
        assert "suspended" == new.grace["status"]
        await call(app, Command(resume="yes"), world, handler)
        assert ["closed", "completed"] == sorted(trace.grace["status"] for trace in grace.store.query())

    def test_nested_traces_are_closed_with_it(self, grace, handler, saver):
        app = built(("inner", built(only_ask, name="inner")), checkpointer=saver, name="outer")
        app.invoke({"said": []}, config(handler))
        app.invoke({"said": ["new"]}, config(handler))
        assert 2 * ["closed"] + 2 * ["suspended"] == sorted(trace.grace["status"] for trace in grace.store.query())

    def test_other_threads_and_other_graphs_keep_waiting(self, grace, handler):
        """A graph of the same name with checkpoints of its own may have a thread of the same name."""
        one, two = (built(look_first, only_ask, checkpointer=InMemorySaver()) for _ in range(2))
        one.invoke({"said": []}, config(handler))
        two.invoke({"said": []}, config(handler))
        one.invoke({"said": []}, config(handler, "2"))
        assert 3 * ["suspended"] == [trace.grace["status"] for trace in grace.store.query()]
        one.invoke(Command(resume="yes"), config(handler))
        two.invoke(Command(resume="yes"), config(handler))
        assert ["completed", "completed", "suspended"] == sorted(trace.grace["status"] for trace in grace.store.query())

    def test_a_state_that_a_person_changed_goes_on_in_a_new_trace(self, grace, handler, saver):
        """After `update_state` the graph goes on from another checkpoint; the trace that waited is closed, not forgotten."""
        app = built(look_first, only_ask, checkpointer=saver)
        app.invoke({"said": []}, config(handler))
        app.update_state(config(handler), {"said": ["changed"]}, as_node="look_first")
        app.invoke(None, config(handler))
        assert ["closed", "suspended"] == sorted(trace.grace["status"] for trace in grace.store.query())


class SlowTracer(BaseTracer):
    """A tracer that never gets past the start of a run."""

    def __init__(self):
        super().__init__()
        self.reached = asyncio.Event()

    def _persist_run(self, run):
        pass

    async def on_chain_start(self, *args, **kwargs):
        self.reached.set()
        await asyncio.Event().wait()


async def test_a_run_that_is_cancelled_between_two_handlers_ends(grace, handler):
    """A cancellation after our handler and before the next one is reported to nobody; the task's end stands in for it."""
    tracer = SlowTracer()
    same = RunnableLambda(lambda value: value)
    task = asyncio.create_task(same.ainvoke({"q": 1}, {"callbacks": [handler, tracer]}))
    await tracer.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    (trace,) = grace.store.query()
    assert "cancelled" == trace.grace["status"]
    assert {} == handler.tracker.frames
