"""A question to a person: what is stored before it is asked, which calls it is about, and a trace whose question is never answered."""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys

import langgraph.types
import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langgraph._internal._runnable import RunnableSeq
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

import grace_kp as gk
from tests import warm

from .conftest import built, config, steps

pytest.importorskip("langgraph", reason="needs the extra langchain")


@tool
def look(query: str) -> str:
    """Look something up."""
    return f"found {query}"


def first(state):
    return {"said": [look.invoke({"query": "first"})]}


def ask(state):
    return {"said": [interrupt("ok?")]}


def invoked(app, inputs, handler, thread="1"):
    return app.invoke(inputs, config(handler, thread))


def ainvoked(app, inputs, handler, thread="1"):
    return asyncio.run(app.ainvoke(inputs, config(handler, thread)))


@pytest.fixture(params=[invoked, ainvoked], ids=["sync", "async"])
def call(request):
    return request.param


def both(saver, call):
    if call is ainvoked and isinstance(saver, SqliteSaver):
        return InMemorySaver()  # the other saver for async graphs is tested in test_resume
    return saver


class TestBeforeTheFirstStep:
    """A run that is suspended before its first step has thought nothing."""

    def test_what_stands_in_for_steps_is_gone_when_it_goes_on(self, grace, handler, saver, call):
        app = built(ask, first, checkpointer=both(saver, call))
        call(app, {"said": []}, handler)
        call(app, Command(resume="yes"), handler)
        (done,) = grace.store.query()
        assert [("tool_call", "look"), ("observation", "found first")] == steps(done)
        assert "repeated" not in done.grace


KILLED = """
import asyncio, operator, os, signal, sys
from typing import Annotated, TypedDict
import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
class State(TypedDict):
    said: Annotated[list, operator.add]
@tool
def look(query: str) -> str:
    "Look something up."
    return "found"
def first(state):
    return {"said": [look.invoke({"query": "first"})]}
def ask(state):
    return {"said": [interrupt("ok?")]}
def built(name, *nodes, **options):
    graph = StateGraph(State)
    for number, (title, node) in enumerate(nodes):
        graph.add_node(title, node)
        graph.add_edge(nodes[number - 1][0] if number else START, title)
    return graph.compile(name=name, **options)
folder, way = sys.argv[1:]
grace = gk.Grace(store=f"sqlite:///{folder}/t.db", evaluator=None, embedder=None)
nested = built("inner", ("ask", ask))
stop = {"interrupt_before": ["last"]} if way == "breakpoint" else {}
app = built("outer", ("first", first), ("inner", nested if way != "breakpoint" else first), ("last", first),
            checkpointer=InMemorySaver(), **stop)
config = {"configurable": {"thread_id": "t"}, "callbacks": [GraceCallbackHandler(grace)]}
def die():
    os.kill(os.getpid(), signal.SIGKILL)
async def streamed():
    async for part in app.astream({"said": []}, config, stream_mode="updates", subgraphs=True):
        if "__interrupt__" in part[-1]:
            die()
if way in {"stream", "breakpoint"}:
    for part in app.stream({"said": []}, config, stream_mode="updates", subgraphs=True):
        if "__interrupt__" in part[-1]:
            die()
elif way == "astream":
    asyncio.run(streamed())
else:
    app.invoke({"said": []}, config)
    die()
"""


@pytest.mark.parametrize("way", ["invoke", "stream", "astream", "breakpoint"])
def test_a_process_that_is_killed_as_soon_as_the_question_is_seen_has_stored_its_trace(tmp_path, way):
    """The suspended traces, nested ones included, are on disk before anybody can see the question."""
    ran = warm.run(
        [sys.executable, "-c", KILLED, str(tmp_path), way],
        imports=warm.LANGGRAPH,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (-signal.SIGKILL, "") == (ran.returncode, ran.stderr)
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None) as grace:
        traces = {trace.grace["name"]: trace for trace in grace.store.query()}
    names = {"outer"} if way == "breakpoint" else {"outer", "inner"}
    assert names == set(traces)
    assert {"suspended"} == {trace.grace["status"] for trace in traces.values()}
    assert {"t"} == {trace.grace["langchain"]["thread_id"] for trace in traces.values()}
    assert ("tool_call", "look") == steps(traces["outer"])[0]


def test_a_killed_process_s_run_goes_on_in_another_one(tmp_path):
    """What was stored before the question is found again by the answer, with each step once."""
    program = KILLED.replace("checkpointer=InMemorySaver()", "checkpointer=saver").replace(
        "folder, way = sys.argv[1:]",
        "folder, way = sys.argv[1:]\nfrom langgraph.checkpoint.sqlite import SqliteSaver\n"
        'import sqlite3\nsaver = SqliteSaver(sqlite3.connect(f"{folder}/c.db", check_same_thread=False))',
    )
    answer = program.split("def die():")[0] + (
        "from langgraph.types import Command\nprint(app.invoke(Command(resume='yes'), config)['said'])\ngrace.close()\n"
    )
    asked = warm.run(
        [sys.executable, "-c", program, str(tmp_path), "invoke"],
        imports=warm.LANGGRAPH,
        capture_output=True,
        timeout=300,
    )
    assert -signal.SIGKILL == asked.returncode
    answered = warm.run(
        [sys.executable, "-c", answer, str(tmp_path), "invoke"],
        imports=warm.LANGGRAPH,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ("['found', 'found', 'yes', 'found']", "") == (answered.stdout.strip(), answered.stderr)
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None) as grace:
        traces = {trace.grace["name"]: trace for trace in grace.store.query()}
    assert {"outer": "completed", "inner": "completed"} == {name: it.grace["status"] for name, it in traces.items()}
    assert ["look", "inner", "look"] == [entry["name"] for entry in traces["outer"].grace["calls"]]


def test_a_reader_who_leaves_at_the_question_has_one_trace(grace, handler, saver):
    """Leaving the stream at the question does not close the run: the answer goes on with it."""
    app = built(first, ask, checkpointer=saver)
    for chunk in app.stream({"said": []}, config(handler), stream_mode="updates"):
        if "__interrupt__" in chunk:
            break
    assert ["suspended"] == [trace.grace["status"] for trace in grace.store.query()]
    app.invoke(Command(resume="yes"), config(handler))
    assert ["completed"] == [trace.grace["status"] for trace in grace.store.query()]


class TestAnswersThatComeTooLate:
    def test_a_late_duplicate_adds_no_trace(self, grace, handler, saver, call):
        app = built(first, ask, checkpointer=both(saver, call))
        call(app, {"said": []}, handler)
        call(app, Command(resume="yes"), handler)
        (done,) = grace.store.query()
        for again in (Command(resume="no"), Command(resume="no"), None):
            call(app, again, handler)
        assert [done.to_dict()] == [trace.to_dict() for trace in grace.store.query()]
        assert {} == handler.tracker.frames

    def test_an_answer_that_is_refused_leaves_the_run_waiting(self, grace, handler, saver, monkeypatch):
        """A resume that fails before any node runs is a failed run; the question can still be answered."""
        app = built(first, ask, checkpointer=saver)
        invoked(app, {"said": []}, handler)
        (waiting,) = grace.store.query()
        with monkeypatch.context() as patch:
            patch.setattr(saver, "get_tuple", lambda _config: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                invoked(app, Command(resume="yes"), handler)
        assert {"suspended", "failed"} == {trace.grace["status"] for trace in grace.store.query()}
        assert "suspended" == grace.store.get(waiting.id).grace["status"]
        invoked(app, Command(resume="yes"), handler)
        assert "completed" == grace.store.get(waiting.id).grace["status"]


def test_a_question_in_a_task_of_the_functional_api(grace, handler, saver):
    """A task that had ended is not run again, and the one that asks has each step once."""

    @task
    def prepare(text):
        return look.invoke({"query": text})

    @task
    def decide(text):
        look.invoke({"query": "decide"})
        return [text, interrupt("ok?")]

    @entrypoint(checkpointer=saver)
    def flow(text):
        return decide(prepare(text).result()).result()

    flow.invoke("a", config(handler))
    assert ["found a", "yes"] == flow.invoke(Command(resume="yes"), config(handler))
    (done,) = grace.store.query()
    assert ["a", "decide"] == [step.input["query"] for step in done.steps if step.tool]
    assert (["look"], "completed") == (done.grace["repeated"], done.grace["status"])


class TestNewMessages:
    """A new message instead of an answer: LangGraph drops the question, so its trace is closed."""

    def test_the_old_trace_is_closed(self, grace, handler, saver, call):
        app = built(first, ask, checkpointer=both(saver, call))
        call(app, {"said": ["old"]}, handler)
        (old,) = grace.store.query()
        call(app, {"said": ["new"]}, handler)
        closed = grace.store.get(old.id)
        (new,) = [trace for trace in grace.store.query() if trace.id != old.id]
        assert ("closed", False) == (closed.grace["status"], closed.metadata.success)
        assert new.id == closed.grace["superseded_by"]
        assert "Closed without an answer: its thread went on with other input." == closed.outcome.result_summary
        assert "suspended" == new.grace["status"]
        call(app, Command(resume="yes"), handler)
        assert ["closed", "completed"] == sorted(trace.grace["status"] for trace in grace.store.query())

    def test_nested_traces_are_closed_with_it(self, grace, handler, saver):
        app = built(("inner", built(ask, name="inner")), checkpointer=saver, name="outer")
        invoked(app, {"said": []}, handler)
        invoked(app, {"said": ["new"]}, handler)
        assert 2 * ["closed"] + 2 * ["suspended"] == sorted(trace.grace["status"] for trace in grace.store.query())

    def test_other_threads_and_other_graphs_keep_waiting(self, grace, handler):
        """A graph of the same name with checkpoints of its own may have a thread of the same name."""
        one, two = (built(first, ask, checkpointer=InMemorySaver()) for _ in range(2))
        invoked(one, {"said": []}, handler)
        invoked(two, {"said": []}, handler)
        invoked(one, {"said": []}, handler, thread="2")
        assert 3 * ["suspended"] == [trace.grace["status"] for trace in grace.store.query()]
        invoked(one, Command(resume="yes"), handler)
        invoked(two, Command(resume="yes"), handler)
        assert ["completed", "completed", "suspended"] == sorted(trace.grace["status"] for trace in grace.store.query())

    def test_a_state_that_a_person_changed_goes_on_in_a_new_trace(self, grace, handler, saver):
        """After `update_state` the graph goes on from another checkpoint; the trace that waited is closed, not forgotten."""
        app = built(first, ask, checkpointer=saver)
        invoked(app, {"said": []}, handler)
        app.update_state(config(handler), {"said": ["changed"]}, as_node="first")
        invoked(app, None, handler)
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


def sequence_with_a_policy():
    """LangGraph calls tracers after all other handlers where a node has a TracePolicy."""
    policy = langgraph.types.TracePolicy(process_inputs=lambda _: {})
    return RunnableSeq(lambda value: value, lambda value: value, trace_policy=policy)


CANCELLED = {"chain": lambda: RunnableLambda(lambda value: value)}
if "trace_policy" in inspect.signature(RunnableSeq).parameters:  # not in the oldest versions
    CANCELLED["policy"] = sequence_with_a_policy


@pytest.mark.parametrize("kind", CANCELLED)
async def test_a_run_that_is_cancelled_between_two_handlers_ends(grace, handler, kind):
    """A cancellation after our handler and before the next one is reported to nobody; the task's end stands in for it."""
    tracer = SlowTracer()
    task = asyncio.create_task(CANCELLED[kind]().ainvoke({"q": 1}, {"callbacks": [handler, tracer]}))
    await tracer.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    (trace,) = grace.store.query()
    assert "cancelled" == trace.grace["status"]
    assert {} == handler.tracker.frames


pytest.importorskip("langchain.agents", reason="needs the extra langchain")
