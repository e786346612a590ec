"""A live run takes thoughts, calls of models, an outcome and attributes, belongs to the run around it, and ends once."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

import grace_kp as gk
from grace_kp.record import CURRENT, TROUBLES, Listener, ModelCall, Recorder, Run, current_run, nearest, note
from grace_kp.settings import Settings
from grace_kp.testing import capture, make_grace

pytestmark = pytest.mark.usefixtures("strict")


def test_thoughts_and_the_own_outcome(grace):
    """`thought` is a step; the run's own confidence and success win."""

    @grace.agent
    def root():
        grace.thought("hm")
        grace.outcome(confidence=0.25, success=False)
        return "x"

    with grace.collect() as traces:
        root()
    assert traces[0].steps[0].content == "hm"
    assert traces[0].outcome.confidence == 0.25
    assert traces[0].metadata.success is False


@pytest.mark.parametrize("confidence", [float("nan"), 1.5, -1, "high", True])
def test_an_unusable_own_confidence_is_not_taken_and_breaks_nothing(grace, confidence, monkeypatch):
    """A model's slip must not break the agent; the computed confidence stays."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)

    @grace.agent
    def root():
        grace.outcome(confidence=confidence)
        return "x"

    with grace.collect() as traces:
        assert root() == "x"
    assert traces[0].outcome.confidence == traces[0].grace["confidence"]["score"]


async def test_a_cancelled_task_closes_its_run_as_cancelled(grace):
    """The run, and the tool it was waiting in, say so; the others go on."""

    @grace.tool
    async def wait(seconds):
        await asyncio.sleep(seconds)
        return "done"

    @grace.agent
    async def agent(marker, seconds):
        return await wait(seconds)

    with grace.collect() as traces:
        slow = asyncio.create_task(agent("slow", 60))
        fast = asyncio.create_task(agent("fast", 0.001))
        assert "done" == await fast
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
    statuses = {trace.task.objective: (trace.grace["status"], trace.grace["calls"][0]["status"]) for trace in traces}
    assert {"fast": ("completed", "ok"), "slow": ("cancelled", "cancelled")} == statuses
    assert {"fast": True, "slow": False} == {trace.task.objective: trace.metadata.success for trace in traces}


async def test_a_failing_task_group_tells_the_failed_from_the_cancelled(grace):
    """The group's error ends the run; the sibling that was cancelled for it is not called a failure."""

    @grace.tool
    async def fail():
        await asyncio.sleep(0.001)
        raise ValueError("no")

    @grace.tool
    async def wait():
        await asyncio.sleep(60)

    @grace.agent
    async def agent(marker):
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(fail())

    with grace.collect() as traces, pytest.raises(ExceptionGroup):
        await agent("x")
    (trace,) = traces
    assert "failed" == trace.grace["status"]
    assert {"wait": "cancelled", "fail": "error"} == {c["name"]: c["status"] for c in trace.grace["calls"]}


async def test_a_timeout_around_an_agent_cancels_its_run(grace):
    """`asyncio.timeout` works as without recording."""

    @grace.agent
    async def agent(marker):
        await asyncio.sleep(60)

    with grace.collect() as traces, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await agent("x")
    assert "cancelled" == traces[0].grace["status"]


def test_a_call_that_is_unfinished_at_the_end_is_marked_so(grace):
    """A tool still running in another thread has its call, no observation, and no time."""
    started, release = threading.Event(), threading.Event()

    @grace.tool
    def slow():
        started.set()
        release.wait(60)
        return "too late"

    with grace.collect() as traces:
        with grace.run("root"):
            thread = threading.Thread(target=gk.propagate(slow))
            thread.start()
            assert started.wait(60)
        release.set()
        thread.join()
    (trace,) = traces
    (call,) = trace.grace["calls"]
    assert "unfinished" == call["status"]
    assert "observation" not in call
    assert "latency_ms" not in call
    assert ["tool_call"] == [step.type for step in trace.steps]


def test_a_run_of_another_runtime_that_outlives_its_parent_is_stored(grace):
    """The parent has been stored, and released what it recorded, when the number of its call is asked for."""
    begun, go = threading.Event(), threading.Event()

    def work():
        with other.run("inner"):
            begun.set()
            go.wait(60)

    @grace.tool
    def start():
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(work))
        thread.start()
        assert begun.wait(60)
        return thread

    with gk.Grace(store="memory:", reviewer=None, embedder=None, evaluator=None) as other:
        with grace.run("outer"):
            thread = start()
        assert grace.flush()
        go.set()
        thread.join(60)
        assert other.flush()
        (inner,) = other.store.query()
    (outer,) = grace.store.query()
    (call,) = (call for call in outer.grace["calls"] if call.get("child") == inner.id)
    assert {"trace_id": outer.id, "call_id": call["call_id"]} == inner.grace["parent"]


def in_another_thread(function):
    """Run a function to its end in another thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_the_writer_and_the_user_who_ask_at_the_same_time_get_the_same_id(tmp_path):
    """The journal that is written while the user's thread creates the id belongs to the run, and is deleted when it has ended."""
    asked = []

    def new_id():
        number = len(asked)
        asked.append(number)
        if number == 0:
            in_another_thread(grace._writer._write_journal)
        return f"kp:trace:{number}"

    url = f"sqlite:///{tmp_path / 't.db'}"
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None, new_id=new_id) as grace:
        grace.recorder.opened = lambda _run: None  # the writer's own thread stays out of it until the run has ended
        with grace.run("x") as run:
            first = run.id
        assert grace.flush()
        assert [first] == [trace.id for trace in grace.store.query()]
        assert [] == grace.store._connection.execute("SELECT run_id FROM journal").fetchall()
    assert ([0, 1], first) == (asked, run.id)


def test_a_resumed_run_that_two_threads_ask_for_its_id_continues_the_earlier_run():
    """The second thread waits until the first has found the earlier part; neither of them starts a new trace."""
    looked, ids, threads = threading.Event(), [], []
    lock = threading.Lock()

    class Earlier(dict):
        def __getitem__(self, name):
            if name == "id" and not threads:
                threads.append(threading.Thread(target=lambda: (ids.append(run.id), looked.set())))
                threads[0].start()
                looked.wait()
            return super().__getitem__(name)

    def recall(run):
        if threads:
            looked.set()
        with lock:
            if run.resumes is not None:
                run.resume(Earlier({"id": "kp:trace:earlier"}))

    owner = Recorder(Settings(), Listener(recall=recall), new_id=lambda: "kp:trace:new")
    run = Run(owner, None, name="x", objective="x", domain="default")
    run.resumes = object()
    ids.append(run.id)
    threads[0].join()
    assert ["kp:trace:earlier"] * 2 == ids
    assert ({"id": "kp:trace:earlier"}, ()) == (run.earlier, run.missing)


def types_of(trace):
    return [step.type for step in trace.steps]


def test_a_nested_agent_is_a_trace_of_its_own_linked_both_ways(grace):
    """Parent and child know each other by id, and the parent has a step for the child."""

    @grace.tool
    def look():
        return "seen"

    @grace.agent
    def child(task):
        return look()

    @grace.agent
    def parent(task):
        return child("sub-task")

    with grace.collect() as traces:
        parent("task")
    inner, outer = traces
    assert (inner.task.objective, outer.task.objective) == ("sub-task", "task")
    assert types_of(outer) == ["tool_call", "observation"]
    assert outer.steps[0].tool.name == "child"
    assert outer.grace["children"] == [inner.id]
    assert outer.grace["calls"][0]["child"] == inner.id
    assert inner.grace["parent"] == {"trace_id": outer.id, "call_id": outer.grace["calls"][0]["call_id"]}


def test_a_tool_outside_of_any_run_is_a_run_of_its_own(grace):
    """A root call opens a run, whatever it is."""

    @grace.tool
    def lonely(text):
        return text.upper()

    with grace.collect() as traces:
        assert lonely("hi") == "HI"
    assert types_of(traces[0]) == ["tool_call", "observation"]
    assert traces[0].task.objective == "hi"


def test_switched_off_nothing_is_recorded(monkeypatch):
    """GRACE_KP_ENABLED=0 leaves decorated functions as if they were not."""
    monkeypatch.setenv("GRACE_KP_ENABLED", "0")
    grace = gk.Grace(store="memory:")

    @grace.tool
    def add(a, b):
        return a + b

    @grace.agent
    def root(question):
        return add(1, 2)

    with grace.collect() as traces:
        assert root("x") == 3
        with grace.run("y") as run:
            run.thought("nobody hears this")
    assert traces == []
    with pytest.raises(RuntimeError, match="not kept"):
        _ = run.trace


def test_a_model_call_is_a_thought_with_its_tokens(grace):
    """Its text becomes a step; its usage is summed up for the run."""
    with grace.run("q") as run:
        for text, tokens in (("first", 3), ("", 4)):
            usage = {"input_tokens": tokens, "total_tokens": tokens}
            run.model_called(ModelCall("m", start=0, end=2_000_000, text=text, usage=usage))
    grace.flush()
    trace = run.trace
    assert [("thought", "first", 2.0)] == [(step.type, step.content, step.latency_ms) for step in trace.steps]
    assert {"input_tokens": 7, "total_tokens": 7} == trace.grace["usage"]
    expected = [
        {"model": "m", "status": "ok", "latency_ms": 2.0, "input_tokens": 3, "total_tokens": 3, "step": 0},
        {"model": "m", "status": "ok", "latency_ms": 2.0, "input_tokens": 4, "total_tokens": 4},
    ]
    assert expected == trace.grace["model_calls"]


def test_a_failed_model_that_the_run_survives_is_a_recovery(grace):
    with grace.run("q") as run:
        run.model_called(ModelCall("m", start=0, end=1, status="error", error=("Timeout", "too slow")))
        run.thought("again")
    assert ["error_recovery", "thought"] == [step.type for step in run.trace.steps]
    assert "Recovered from m: Timeout: too slow" == run.trace.steps[0].content


@pytest.mark.parametrize("limit", [1, 2])
def test_events_beyond_the_bound_are_counted(limit):
    import grace_kp as gk

    with gk.Grace(store="memory:", evaluator=None, embedder=None, max_steps=limit) as grace, grace.run("q") as run:
        for _ in range(3):
            run.thought("hm")
            run.model_called(ModelCall("m", start=0, end=1, text="ha"))
    assert 6 - limit == run.trace.grace["dropped_steps"]


def test_a_context_has_its_own_current_run(grace):
    """A copied context sees the run that was current when it was copied; a plain thread sees none."""
    seen = []
    with grace.run("q") as run:
        copied = contextvars.copy_context()
        thread = threading.Thread(target=lambda: seen.append(current_run()))
        thread.start()
        thread.join()
        assert run is CURRENT.get()
    assert [None] == seen
    assert run is copied.run(CURRENT.get)
    assert copied.run(current_run) is None  # it has ended
    assert CURRENT.get() is None


def test_captures_side_by_side_hold_their_own_runs(grace):
    def captured(objective):
        with capture() as traces:
            with grace.run(objective):
                pass
            return [trace.task.objective for trace in traces]

    assert (["a"], ["b"]) == (
        contextvars.copy_context().run(captured, "a"),
        contextvars.copy_context().run(captured, "b"),
    )


@pytest.mark.parametrize(
    ("error", "theirs", "own"), [("text", False, 0), (ValueError("x"), True, 0), (ValueError("x"), False, 1)]
)
def test_only_errors_of_our_own_may_have_cost_evidence(monkeypatch, error, theirs, own):
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)
    before, counted = TROUBLES.own, sum(TROUBLES.counts.values())
    note("a test", error, theirs=theirs)
    assert (own, 1) == (TROUBLES.own - before, sum(TROUBLES.counts.values()) - counted)


def test_a_nested_run_has_the_user_around_it():
    """Unless it states its own."""
    grace = make_grace()
    seen = []

    @grace.agent
    def inner(question):
        seen.append(nearest(current_run(), "user"))

    @grace.agent(user="bo")
    def own(question):
        seen.append(nearest(current_run(), "user"))

    with grace.run("outer", user="ana"):
        inner("x")
        own("x")
    inner("x")
    assert ["ana", "bo", None] == seen
