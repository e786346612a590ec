"""A live run takes thoughts, calls of models, an outcome and attributes, belongs to the run around it, and ends once."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import uuid

import pytest

import grace_kp as gk
from grace_kp.record import Listener, ModelCall, Recorder, Run
from grace_kp.settings import Settings
from grace_kp.trace._rules import MAX_LABEL

pytestmark = pytest.mark.usefixtures("strict")


def test_thoughts_and_the_own_outcome(grace):
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
    assert ["tool_call", "observation"] == [step.type for step in outer.steps]
    assert outer.steps[0].tool.name == "child"
    assert outer.grace["children"] == [inner.id]
    assert outer.grace["calls"][0]["child"] == inner.id
    assert inner.grace["parent"] == {"trace_id": outer.id, "call_id": outer.grace["calls"][0]["call_id"]}


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
            run.thought("not recorded")
    assert traces == []
    with pytest.raises(RuntimeError, match="not kept"):
        _ = run.trace


def test_a_model_call_is_a_thought_with_its_tokens(grace):
    with grace.run("q") as run:
        for text, tokens in (("first", 3), ("", 4)):
            usage = {"input_tokens": tokens, "total_tokens": tokens}
            run.model_called(ModelCall("m", start=0, end=2_000_000, text=text, usage=usage))
    grace.flush()
    trace = run.trace
    assert [("thought", "first", 2.0)] == [(step.type, step.content, step.latency_ms) for step in trace.steps]
    assert {"input_tokens": 7, "total_tokens": 7} == trace.grace["usage"]
    expected = [
        {
            "model": "m",
            "status": "ok",
            "started_ms": 0.0,
            "latency_ms": 2.0,
            "input_tokens": 3,
            "total_tokens": 3,
            "step": 0,
        },
        {"model": "m", "status": "ok", "started_ms": 0.0, "latency_ms": 2.0, "input_tokens": 4, "total_tokens": 4},
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
    with gk.Grace(store="memory:", evaluator=None, embedder=None, max_steps=limit) as grace, grace.run("q") as run:
        for _ in range(3):
            run.thought("hm")
            run.model_called(ModelCall("m", start=0, end=1, text="ha"))
    assert 6 - limit == run.trace.grace["dropped_steps"]


NAMES = ("tags", "user", "session", "metadata", "dropped_tags", "dropped_metadata")


def attributes(trace):
    return {name: trace.grace[name] for name in NAMES if name in trace.grace}


def only(grace, **conditions):
    (trace,) = grace.store.query(**conditions)
    return trace


def test_a_decorator_states_values_templates_and_callables(grace):
    """Texts name parameters in braces, defaults included; callables get the bound arguments."""

    @grace.agent(
        tags=["nightly", "{kind}"], user="{user_id}", session=lambda ticker: f"s-{ticker}",
        metadata={"plan": "pro", "kind": "{kind}", "n": 3, "depth": lambda depth: depth * 2},
    )  # fmt: skip
    def analyst(ticker, user_id=7, kind="quick", *, depth=1):
        return ticker

    analyst("TSM", depth=4)
    expected = {
        "tags": ["nightly", "quick"], "user": "7", "session": "s-TSM", "metadata": {"plan": "pro", "kind": "quick", "n": 3, "depth": 8},
    }  # fmt: skip
    assert expected == attributes(only(grace))


def test_a_block_and_the_code_inside_state_them(grace):
    """Tags add up, metadata merges by key, the last user and session hold."""
    with grace.run("x", tags=["a"], user="ana", session="s1", metadata={"k": 1, "left": True}) as run:
        grace.update(tags=["b", "a"], metadata={"k": 2})
        run.update(tags="c", session="s2", metadata={"more": {"deep": [1]}})
    expected = {
        "tags": ["a", "b", "c"], "user": "ana", "session": "s2", "metadata": {"k": 2, "left": True, "more": {"deep": [1]}},
    }  # fmt: skip
    assert expected == attributes(run.trace)


def test_a_nested_run_belongs_to_the_user_and_session_around_it(grace):
    """Also where they are stated late; its own win; tags and metadata stay where they were stated."""

    @grace.agent(user="{own}")
    def inner(task, own=None):
        return task

    with grace.run("outer", tags=["t"], metadata={"m": 1}) as outer:
        outer.update(user="ana", session="s1")
        inner("plain")
        inner("own", own="ben")
    found = {trace.task.objective: attributes(trace) for trace in grace.store.query(session="s1")}
    assert {"user": "ana", "session": "s1"} == found["plain"]
    assert {"user": "ben", "session": "s1"} == found["own"]
    assert {"tags": ["t"], "user": "ana", "session": "s1", "metadata": {"m": 1}} == found["outer"]


def test_what_is_wrong_is_noted_and_breaks_no_agent(grace, monkeypatch):
    """A template without its parameter, a callable that raises, values of the wrong kind."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")

    @grace.agent(user="{absent}", session=lambda: 1 / 0, tags=["{", "fine"], metadata=lambda: 5)
    def agent(question):
        grace.update(tags=5, metadata=["no"], user="  ", session=["a", 1])
        return question

    assert "q" == agent("q")
    assert {"tags": ["fine"], "session": '["a", 1]'} == attributes(only(grace))
    grace.update(tags=["outside"])
    troubles = " ".join(grace.status()["troubles"])
    assert "attributes of agent: KeyError" in troubles
    assert "attributes of agent: ZeroDivisionError" in troubles
    assert "metadata must be a dict" in troubles


@pytest.mark.parametrize("bad", [{"tags": 5}, {"metadata": "text"}, {"metadata": [1]}])
def test_a_decorator_refuses_what_can_never_be_an_attribute(grace, bad):
    with pytest.raises(TypeError, match=next(iter(bad))):
        grace.agent(**bad)(lambda question: question)


def test_their_number_and_length_are_bounded_and_cuts_are_visible(grace):
    """Fifty tags and keys; long texts keep their beginning, their length and a fingerprint."""
    with grace.run("x") as run:
        for n in range(60):
            run.update(tags=[f"t{n}"], metadata={f"k{n}": "v" * 5_000})
        run.update(user="u" * 500)
    found = attributes(run.trace)
    assert (50, 50, 10, 10) == (
        len(found["tags"]), len(found["metadata"]), found["dropped_tags"], found["dropped_metadata"],
    )  # fmt: skip
    assert "cut" in found["metadata"]["k0"]
    assert len(found["metadata"]["k0"]) < 2_100
    assert len(found["user"]) == MAX_LABEL
    assert "500 characters" in found["user"]
    assert run.trace == only(grace, user="u" * 500)
    assert [] == grace.store.query(user="u" * 499)


def test_secrets_go_and_identifiers_go_where_the_level_says(tmp_path):
    key, ident = "sk-proj-" + "a1B2" * 12, str(uuid.UUID(int=0x12345678_1234_5678_1234_567812345678))
    for level, user in (("private", "ana@example.com"), ("aggregated", "[REDACTED:email]")):
        grace = gk.Grace(store="memory:", evaluator=None, embedder=None, privacy_level=level)
        with grace.run("x", user="ana@example.com", session=ident, tags=[key], metadata={"password": "hunter2"}) as run:
            pass
        found = attributes(run.trace)
        assert (user, ident) == (found["user"], found["session"])
        assert key not in json.dumps(found)
        assert "hunter2" not in json.dumps(found)
        grace.close()


def test_without_captured_input_arguments_stay_out(grace):
    """Tags and metadata made of arguments are left out; user and session stay, because runs are found and deleted by them."""
    grace.recorder.capture_input = False

    @grace.agent(tags=["fixed", "{question}"], metadata={"q": "{question}", "v": 1}, user="{user}")
    def agent(question, user):
        return None

    agent("secret question", "ana")
    assert {"tags": ["fixed"], "metadata": {"v": 1}, "user": "ana"} == attributes(only(grace))


def test_threads_that_update_one_run_lose_nothing(grace):
    with grace.run("x") as run:
        threads = [
            threading.Thread(target=run.update, kwargs={"tags": [f"t{n}"], "metadata": {f"k{n}": n}}) for n in range(40)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = attributes(run.trace)
    assert {f"t{n}" for n in range(40)} == set(found["tags"])
    assert {f"k{n}": n for n in range(40)} == found["metadata"]


def test_the_journal_has_them(grace):
    with grace._writer._settling, grace.run("x", tags=["a"]) as run:
        (entries,) = grace._pipeline.journal()
        run.update(user="ana", metadata={"k": 1})
        entries += next(grace._pipeline.journal())
        assert [[]] == list(grace._pipeline.journal())
    lost = grace._pipeline.documents.rebuild([entry.data for entry in entries])
    expected = {"tags": ["a"], "user": "ana", "metadata": {"k": 1}}
    assert expected == attributes(gk.ReasoningTrace.model_validate(lost))
