"""`grace.approvals.resume`: threads whose requests are decided in the inbox go on, wherever their graph is compiled, once."""

from __future__ import annotations

import contextlib

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler
from grace_kp.integrations.langchain import _resume as threads

from .conftest import State, answer, built, run_program, runtime

pytest.importorskip("langgraph", reason="needs the extra langchain")


@pytest.fixture
def grace(tmp_path):
    with runtime(store=f"sqlite:///{tmp_path}/app.db", reviewer=gk.InboxReviewer(), reviewers={}) as grace:
        yield grace


def config(thread, **more):
    return {"configurable": {"thread_id": thread, **more}}


def graph_of(grace, ran, *, name="pay"):
    @grace.gate(name=name, floor="confirm")
    def pay(to: str) -> str:
        ran.append(to)
        return f"paid {to}"

    graph = StateGraph(State)
    graph.add_node(name, lambda state: {"said": [pay(state["said"][0])]})
    graph.add_edge(START, name)
    return graph


def approve_all(grace):
    for approval in grace.approvals.pending():
        grace.approvals.approve(approval.id, by="ana")


def test_every_thread_that_is_decided_goes_on(grace, saver):
    """The others stay; a second time there is nothing to do."""
    ran = []
    app = graph_of(grace, ran).compile(checkpointer=saver)
    for thread in "abc":
        app.invoke({"said": [thread]}, config(thread))
    waiting = {approval.note["thread_id"]: approval.id for approval in grace.approvals.pending()}
    assert [] == grace.approvals.resume(app)
    assert [] == grace.approvals.resume(app, thread="unknown")
    grace.approvals.approve(waiting["a"], by="ana")
    grace.approvals.approve(waiting["c"], by="ana")
    (first,) = grace.approvals.resume(app, limit=1)
    assert [] == grace.approvals.resume(app, thread=first.thread)
    (other,) = grace.approvals.resume(app, thread="ac".replace(first.thread, ""))
    assert {("a", (waiting["a"],), "finished"), ("c", (waiting["c"],), "finished")} == {
        (resumed.thread, resumed.approvals, resumed.state) for resumed in (first, other)
    }
    assert ["a", "c"] == ran
    assert [] == grace.approvals.resume(app)
    assert ["b"] == [approval.note["thread_id"] for approval in grace.approvals.pending()]


async def test_an_async_graph_goes_on(grace, tmp_path):
    ran = []

    @grace.gate(floor="confirm")
    async def pay(to: str) -> str:
        ran.append(to)
        return f"paid {to}"

    async def node(state):
        return {"said": [await pay("ann")]}

    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        app = built(node, checkpointer=saver)
        await app.ainvoke({"said": []}, config("1"))
        (approval,) = await grace.approvals.apending()
        await grace.approvals.aapprove(approval.id, by="ana")
        (resumed,) = await grace.approvals.aresume(app)
        assert (["paid ann"], ["ann"]) == (resumed.output["said"], ran)
        assert [] == await grace.approvals.aresume(app)


def test_parallel_nodes_and_subgraphs_go_on_by_their_interrupts(grace, saver):
    """Only those that are decided; other interrupts of the thread stay as they are."""
    ran = []
    inner = graph_of(grace, ran, name="inner").compile()
    outer = StateGraph(State)
    outer.add_node("sub", inner)
    outer.add_node("side", lambda state: {"said": [interrupt("of the user's own")]})
    outer.add_node("pay", graph_of(grace, ran).nodes["pay"].runnable)
    for node in ("sub", "side", "pay"):
        outer.add_edge(START, node)
    app = outer.compile(checkpointer=saver)
    app.invoke({"said": ["ann"]}, config("1"))
    waiting = {approval.action: approval.id for approval in grace.approvals.pending()}
    assert {"inner", "pay"} == set(waiting)
    grace.approvals.approve(waiting["inner"], by="ana")
    (resumed,) = grace.approvals.resume(app)
    assert ("paused", (waiting["inner"],), ["ann"]) == (resumed.state, resumed.approvals, ran)
    grace.approvals.reject(waiting["pay"], by="ana")
    (resumed,) = grace.approvals.resume(app)
    assert ("raised", gk.ActionCancelled) == (resumed.state, type(resumed.error))
    assert [] == grace.approvals.resume(app), "a refusal that was raised is not raised again"


def test_the_configuration_is_kept_without_secrets(grace, tmp_path):
    """What cannot be kept has to be passed again, and its name is stated."""
    seen = []
    key = "sk-proj-4f9aK2mPq8Rt6Vw1Xy3Zb5Cd7Ef9Gh0Jk2"

    @grace.gate(floor="confirm")
    def pay(to: str) -> str:
        return f"paid {to}"

    def node(state, config: RunnableConfig):
        seen.append({name: config["configurable"].get(name) for name in ("tenant", "api_key", "client")})
        return {"said": [pay("ann")]}

    node.__annotations__["config"] = RunnableConfig  # LangGraph reads the type itself
    app = built(node, checkpointer=InMemorySaver())
    app.invoke({"said": []}, config("1", tenant="acme", api_key=key, client=len))
    approve_all(grace)
    (left,) = grace.approvals.resume(app)
    assert ("left", True, True) == (left.state, "api_key" in left.problem, "client" in left.problem)
    (resumed,) = grace.approvals.resume(app, config={"configurable": {"api_key": "new", "client": len}})
    assert ("finished", {"tenant": "acme", "api_key": "new", "client": len}) == (resumed.state, seen[-1])
    grace.close()
    assert not any(key.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_the_trace_goes_on(grace, saver):
    """With a handler, as after an answer to the graph."""
    ran = []
    app = graph_of(grace, ran).compile(checkpointer=saver)
    callbacks = {"callbacks": [GraceCallbackHandler(grace)]}
    app.invoke({"said": ["ann"]}, config("1") | callbacks)
    (approval,) = grace.approvals.pending()
    grace.approvals.approve(approval.id, by="ana")
    grace.approvals.resume(app, config=callbacks)
    (trace,) = grace.store.query()
    (entry,) = trace.grace["decisions"]
    assert (approval.run_id, "executed", approval.id) == (trace.id, entry["outcome"], entry["approval"]["id"])
    assert ("ana", "python", "stated") == tuple(entry["approval"][name] for name in ("by", "channel", "identity"))


def test_a_graph_that_fails_later_goes_on_without_repeating_the_action(grace):
    ran, broken = [], [True]

    @grace.gate(floor="confirm")
    def pay(to: str) -> str:
        ran.append(to)
        return f"paid {to}"

    def node(state):
        said = pay("ann")
        if broken:
            raise RuntimeError("the network is down")
        return {"said": [said]}

    app = built(node, checkpointer=InMemorySaver())
    app.invoke({"said": []}, config("1"))
    approve_all(grace)
    (resumed,) = grace.approvals.resume(app)
    assert ("raised", "RuntimeError: the network is down") == (resumed.state, resumed.problem)
    broken.clear()
    (resumed,) = grace.approvals.resume(app)
    assert (["paid ann"], ["ann"]) == (resumed.output["said"], ran)


def test_what_is_no_graph_with_a_checkpointer_is_refused(grace):
    graph = graph_of(grace, [])
    for wrong in (graph, graph.compile(), object()):
        with pytest.raises(gk.GraceError, match="resume takes a compiled"):
            grace.approvals.resume(wrong)
    with pytest.raises(ValueError, match="limit must be"):
        grace.approvals.resume(graph.compile(checkpointer=InMemorySaver()), limit=0)


PROCESS = """
import os, sys, time
from tests.integrations.langchain.conftest import *

folder, (what, *others), threads = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
begin, children = time.time() + 0.5 * bool(others), []
for other in others:
    child = os.fork()
    if child == 0:
        what, children = other, []
        break
    children.append(child)
grace = runtime(store=f"sqlite:///{folder}/app.db", reviewer=gk.InboxReviewer())

@grace.gate(floor="confirm")
def pay(to: str) -> str:
    with open(f"{folder}/ran", "a") as file:
        file.write(to + chr(10))
    time.sleep(0.02)
    return f"paid {to}"

def node(state):
    return {"said": [pay(state["said"][0])]}

with SqliteSaver.from_conn_string(f"{folder}/checkpoints.db") as saver:
    saver.conn.execute("PRAGMA busy_timeout = 60000")  # three processes share the file
    app = built(node, checkpointer=saver)
    if what == "ask":
        for thread in map(str, range(threads)):
            app.invoke({"said": [thread]}, config(thread=thread))
    time.sleep(max(0.0, begin - time.time()))
    if what == "answer":
        for thread in map(str, range(threads)):
            try:
                app.invoke(answer("approve", by="ben"), config(thread=thread))
            except gk.ActionNotApproved:
                pass
    if what == "resume":
        for _ in range(3):
            grace.approvals.resume(app)
grace.close()
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def in_processes(folder, *whats, threads):
    """Run these programs side by side, each in a process; they begin their work at the same time."""
    done = run_program(PROCESS, folder, ",".join(whats), threads)
    assert done.returncode == 0, done.stderr[-3000:]


def ran_in(folder):
    path = folder / "ran"
    return sorted(path.read_text().split()) if path.exists() else []


THREADS = 8


def test_decided_in_both_places_an_action_runs_once(tmp_path):
    in_processes(tmp_path, "ask", threads=THREADS)
    with gk.Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        approve_all(grace)
        in_processes(tmp_path, "resume", "answer", "resume", threads=THREADS)
        assert sorted(map(str, range(THREADS))) == ran_in(tmp_path)
        assert {"done"} == {str(approval.state) for approval in grace.approvals.history()}
        assert grace.approvals.verify().ok


def test_a_process_that_is_killed_in_the_action_leaves_it_unknown(tmp_path):
    """The thread is left until somebody has found out; then the action is asked about again, and not before."""
    in_processes(tmp_path, "ask", threads=1)
    with gk.Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        approve_all(grace)
        killed = PROCESS.replace("time.sleep(0.02)", "__import__('os').kill(__import__('os').getpid(), 9)")
        assert -9 == run_program(killed, tmp_path, "resume", 1).returncode
        in_processes(tmp_path, "resume", threads=1)
        (approval,) = grace.approvals.history()
        assert ("unknown", ["0"]) == (approval.state, ran_in(tmp_path))
        grace.approvals.reconcile(approval.id, happened=False, by="ana")
        in_processes(tmp_path, "resume", threads=1)
        assert ["0"] == ran_in(tmp_path)
        approve_all(grace)
        in_processes(tmp_path, "resume", threads=1)
        assert ["0", "0"] == ran_in(tmp_path)


@pytest.mark.parametrize(("moment", "ran"), [("approve", []), ("claim", []), ("settle", ["ann"])])
def test_withdrawn_while_the_graph_is_answered_it_runs_or_it_does_not(grace, monkeypatch, moment, ran):
    """What was withdrawn in time did not run; what ran was claimed before."""
    done, requests, attempts = [], grace.approvals.inbox.requests, []
    app = graph_of(grace, done).compile(checkpointer=InMemorySaver())
    app.invoke({"said": ["ann"]}, config("1"))
    (approval,) = grace.approvals.pending()
    verb = getattr(requests, moment)

    def withdrawn_before(*args, **options):
        try:
            attempts.append(grace.approvals.withdraw(approval.id, by="eve").state)
        except gk.ApprovalError:
            attempts.append("refused")
        return verb(*args, **options)

    monkeypatch.setattr(requests, moment, withdrawn_before)
    with contextlib.nullcontext() if ran else pytest.raises(gk.ActionNotApproved):
        app.invoke(answer("approve", by="ben"), config("1"))
    state = "done" if ran else "cancelled"
    assert (ran, ["refused" if ran else state], state) == (done, attempts, grace.approvals.get(approval.id).state)


NODE = {"checkpoint_ns": "node:1|inner:2"}


def test_a_thread_is_carried_on_by_one_at_a_time(grace):
    tables = grace.store.approvals
    threads.keep_thread(tables, {"thread_id": "1", **NODE})
    (thread,) = threads.waiting_threads(tables)
    token = threads.begin_carrying(tables, thread)
    assert None is threads.begin_carrying(tables, thread)
    threads.end_carrying(tables, thread, "another token")
    assert None is threads.begin_carrying(tables, thread)
    threads.end_carrying(tables, thread, token)
    assert None is not threads.begin_carrying(tables, thread)


def test_a_thread_that_waits_no_more_is_forgotten_after_a_while(grace, monkeypatch):
    """Not at once: a request that was filed just now may not be in the checkpoint yet."""
    tables = grace.store.approvals
    threads.keep_thread(tables, {"thread_id": "1", **NODE})
    (thread,) = threads.waiting_threads(tables)
    threads.end_carrying(tables, thread, "", over=["node"])
    assert [thread] == threads.waiting_threads(tables)
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", -1.0)
    threads.end_carrying(tables, thread, "", over=["other"])
    assert [thread] == threads.waiting_threads(tables)
    threads.end_carrying(tables, thread, "", over=["node"])
    assert [] == threads.waiting_threads(tables)
