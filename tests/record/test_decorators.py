"""What a decorated function leaves in the trace, for every kind of function, and that it stays what it was."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from concurrent.futures import Future

import pytest

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", embedder=None, reviewer=None) as made:
        yield made


def types_of(trace):
    return [step.type for step in trace.steps]


def test_a_tool_call_becomes_a_call_and_an_observation(grace):
    """The call carries name and input by parameter name, the observation the rendered result; both carry latency."""

    @grace.tool
    def add(a, b, *rest, **more):
        return {"sum": a + b}

    @grace.agent
    def root(question):
        return str(add(1, 2, 3, x=4)["sum"])

    with grace.collect() as traces:
        assert root("what is 1 + 2?") == "3"
    (trace,) = traces
    call, seen = trace.steps
    assert (call.type, call.tool.name) == ("tool_call", "add")
    assert call.input == {"a": 1, "b": 2, "rest": [3], "x": 4}
    assert (seen.type, seen.content) == ("observation", '{"sum": 3}')
    assert call.latency_ms == seen.latency_ms >= 0
    assert trace.task.objective == "what is 1 + 2?"
    assert trace.outcome.result_summary == "3"
    assert trace.metadata.success is True
    assert trace.grace["status"] == "completed"
    (link,) = trace.grace["calls"]
    assert (link["tool_call"], link["observation"], link["status"]) == (0, 1, "ok")


def test_input_is_what_was_passed_although_the_tool_changes_it(grace):
    """Mutable arguments are rendered at once; a later change of them does not show."""

    @grace.tool
    def consume(items, options):
        items.clear()
        options["seen"] = True

    with grace.collect() as traces, grace.run("eat"):
        consume([1, 2, 3], {"fast": True})
    assert traces[0].steps[0].input == {"items": [1, 2, 3], "options": {"fast": True}}


def test_a_result_that_is_changed_later_is_recorded_as_it_was(grace):
    """Mutable results are rendered when they are returned."""

    @grace.tool
    def listing():
        return ["a"]

    with grace.collect() as traces, grace.run("list"):
        listing().append("b")
    assert traces[0].steps[1].content == '["a"]'


def test_the_objective_is_given_or_found(grace):
    """A template or callable on the bound arguments wins; then the first text; then the call itself."""

    @grace.agent(objective="Analyse {ticker} for {days} days")
    def templated(ticker, days=3): ...

    @grace.agent(objective=lambda ticker, days: f"{ticker}/{days}")
    def computed(ticker, days): ...

    @grace.agent(objective=lambda arguments: f"got {sorted(arguments)}")
    def mapped(ticker, days): ...

    @grace.agent
    def first_text(number, text): ...

    @grace.agent
    def nothing(number): ...

    @grace.agent(objective="{broken")
    def broken(text): ...

    with grace.collect() as traces:
        templated("TSM", days=5)
        computed("TSM", 5)
        mapped("TSM", 5)
        first_text(3, "hello")
        nothing(7)
        broken("still works")
    assert [t.task.objective for t in traces] == [
        "Analyse TSM for 5 days",
        "TSM/5",
        "got ['days', 'ticker']",
        "hello",
        "nothing(7)",
        "still works",
    ]


def test_a_survived_error_leaves_one_recovery(grace):
    """The failing tool has its error as observation; the step that follows is preceded by one error_recovery."""

    @grace.tool
    def flaky():
        raise ValueError("no luck")

    @grace.tool
    def fine():
        return "ok"

    @grace.agent
    def root():
        with contextlib.suppress(ValueError):
            flaky()
        return fine()

    with grace.collect() as traces:
        root()
    assert types_of(traces[0]) == ["tool_call", "observation", "error_recovery", "tool_call", "observation"]
    assert traces[0].steps[1].content == "ValueError: no luck"
    assert "ValueError: no luck" in traces[0].steps[2].content
    assert traces[0].metadata.success is True


def test_an_error_that_ends_the_run_is_no_recovery(grace):
    """An exception that leaves the root ends the run without success and without a recovery."""

    @grace.tool
    def flaky():
        raise ValueError("no luck")

    @grace.agent
    def root():
        flaky()

    with grace.collect() as traces, pytest.raises(ValueError, match="no luck"):
        root()
    assert types_of(traces[0]) == ["tool_call", "observation"]
    assert traces[0].metadata.success is False
    assert traces[0].grace["status"] == "failed"
    assert traces[0].grace["error"] == {"type": "ValueError", "message": "no luck"}


def test_an_error_survived_at_the_very_end_is_a_recovery(grace):
    """The run ending normally shows that the error was survived."""

    @grace.tool
    def flaky():
        raise ValueError("no luck")

    @grace.agent
    def root():
        try:
            flaky()
        except ValueError:
            return "never mind"

    with grace.collect() as traces:
        root()
    assert types_of(traces[0]) == ["tool_call", "observation", "error_recovery"]


def test_one_error_through_two_tools_is_one_recovery(grace):
    """An error that passes from a tool through the tool that called it was survived once."""

    @grace.tool
    def inner():
        raise ValueError("deep")

    @grace.tool
    def outer():
        inner()

    @grace.agent
    def root():
        try:
            outer()
        except ValueError:
            return "ok"

    with grace.collect() as traces:
        root()
    assert types_of(traces[0]).count("error_recovery") == 1
    calls = traces[0].grace["calls"]
    assert calls[1]["parent"] == calls[0]["call_id"]


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


def test_a_run_without_steps_has_one_thought(grace):
    """A trace has at least one step."""

    @grace.agent
    def oracle(question):
        return "42"

    with grace.collect() as traces:
        oracle("?")
    (step,) = traces[0].steps
    assert (step.type, step.content) == ("thought", "42")


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


def test_methods_static_and_class_methods(grace):
    """The instance is no input, and the kinds of methods stay what they are."""

    class Desk:
        @grace.tool
        def plain(self, x):
            return x

        @grace.tool
        @staticmethod
        def static(x):
            return x

        @grace.tool
        @classmethod
        def of_class(cls, x):
            return (cls.__name__, x)

        @staticmethod
        @grace.tool
        def inside(x):
            return x

    desk = Desk()
    with grace.collect() as traces, grace.run("work"):
        assert desk.plain(1) == 1
        assert Desk.static(2) == 2
        assert desk.of_class(3) == ("Desk", 3)
        assert desk.inside(4) == 4
        assert Desk.plain(desk, 5) == 5
    assert [s.input for s in traces[0].steps if s.type == "tool_call"] == [{"x": n} for n in (1, 2, 3, 4, 5)]


def test_introspection_is_as_without_the_decorator(grace):
    """Signature, documentation, name and kind survive."""

    def plain(a: int, *, b: str = "x") -> str:
        """Doc."""
        return b

    async def coroutine(a: int) -> int:
        return a

    def generator(a: int):
        yield a

    async def async_generator(a: int):
        yield a

    for function in (plain, coroutine, generator, async_generator):
        for decorator in (grace.tool, grace.agent, grace.retriever, grace.agent(domain="code")):
            recorded = decorator(function)
            assert inspect.signature(recorded) == inspect.signature(function)
            assert recorded.__doc__ == function.__doc__
            assert recorded.__name__ == function.__name__
            assert recorded.__qualname__ == function.__qualname__
            assert recorded.__module__ == function.__module__
            for question in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
                assert question(recorded) is question(function)


async def test_partials_and_callable_objects_are_seen_for_what_they_are(grace):
    """Is it async? is asked through partials and `__call__`."""

    async def work(a, b):
        await asyncio.sleep(0)
        return a + b

    class Worker:
        async def __call__(self, a):
            await asyncio.sleep(0)
            return a

    partial = grace.tool(functools.partial(work, 1))
    worker = grace.tool(Worker())
    assert inspect.iscoroutinefunction(partial)
    with grace.collect() as traces:
        async with grace.run("x"):
            assert await partial(2) == 3
            assert await worker(5) == 5
    names = [step.tool.name for step in traces[0].steps if step.tool]
    assert names == ["work", "Worker"]
    assert [s.content for s in traces[0].steps if s.type == "observation"] == ["3", "5"]


async def test_a_plain_function_that_gives_back_a_promise(grace):
    """A coroutine, generator or future given back by a plain function keeps the call open until it is done."""

    async def work():
        await asyncio.sleep(0.01)
        return "later"

    def pieces():
        yield "a"
        yield "b"

    @grace.tool
    def promise():
        return work()

    @grace.tool
    def stream():
        return pieces()

    pending = Future()

    @grace.tool
    def future():
        return pending

    with grace.collect() as traces:
        async with grace.run("x"):
            assert await promise() == "later"
            assert list(stream()) == ["a", "b"]
            assert future() is pending
            pending.set_result("done")
    assert [s.content for s in traces[0].steps if s.type == "observation"] == ["later", "ab", "done"]


def test_parallel_tools_are_linked_by_call_ids(grace):
    """Steps are numbered in the order in which they started; each observation finds its call."""

    @grace.tool
    async def wait(name, seconds):
        await asyncio.sleep(seconds)
        return name

    @grace.agent
    async def root():
        return await asyncio.gather(wait("slow", 0.03), wait("fast", 0.01))

    with grace.collect() as traces:
        asyncio.run(root())
    assert types_of(traces[0]) == ["tool_call", "tool_call", "observation", "observation"]
    assert [step.step_id for step in traces[0].steps] == [0, 1, 2, 3]
    contents = {
        call["name"] + str(call["tool_call"]): traces[0].steps[call["observation"]].content
        for call in traces[0].grace["calls"]
    }
    assert contents == {"wait0": "slow", "wait1": "fast"}


def test_retrievers_give_evidence(grace):
    """Number, scores and sources of the results stand with the call, and raise the confidence."""

    @grace.retriever
    def search(query):
        return [{"text": "a", "score": 0.9, "source": "x.md"}, {"text": "b", "score": 0.8, "source": "y.md"}]

    with grace.collect() as traces, grace.run("find it"):
        search("it")
    found = traces[0].grace["calls"][0]["search"]
    assert found["count"] == 2
    assert found["scores"] == [0.9, 0.8]
    assert found["sources"] == ["x.md", "y.md"]
    assert traces[0].grace["confidence"]["breakdown"]["search_quality"] == 0.9


def test_what_cannot_be_decorated_is_refused_with_a_reason(grace):
    """A class and a value are refused at once."""
    with pytest.raises(TypeError, match="class"):
        grace.agent(type("A", (), {}))
    with pytest.raises(TypeError, match="function"):
        grace.tool(3)
    with pytest.raises(ValueError, match="kind"):
        grace.tool(kind="serach")
    with pytest.raises(ValueError, match="objective"):
        grace.run("")


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


def test_structure_without_content(monkeypatch):
    """CAPTURE_INPUT and CAPTURE_OUTPUT off keep names and timings and nothing that was said."""
    monkeypatch.setenv("GRACE_KP_CAPTURE_INPUT", "0")
    monkeypatch.setenv("GRACE_KP_CAPTURE_OUTPUT", "0")
    grace = gk.Grace(store="memory:")

    @grace.tool
    def fetch(what):
        return f"confidential {what}"

    @grace.agent
    def root(question):
        return fetch(question)

    with grace.collect() as traces:
        root("confidential question")
    text = traces[0].to_json()
    assert "confidential" not in text
    assert traces[0].steps[0].tool.name == "fetch"
    assert traces[0].steps[0].latency_ms >= 0
