"""The steps of a trace: calls, observations, thoughts, and recoveries from errors."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grace_kp.record._steps import StepBuilder
from grace_kp.testing import FakeClock, capture, fixed_ids, make_grace
from tests.exhaustive import examples


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


def test_a_run_without_steps_has_one_thought(grace):
    """A trace has at least one step."""

    @grace.agent
    def oracle(question):
        return "42"

    with grace.collect() as traces:
        oracle("?")
    (step,) = traces[0].steps
    assert (step.type, step.content) == ("thought", "42")


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


VALUES = (
    st.text(max_size=20)
    | st.sampled_from(["password=hunter2secret", "AKIAIOSFODNN7EXAMPLE", "half \ud800", ""])
    | st.integers()
    | st.floats()
    | st.none()
    | st.booleans()
    | st.lists(st.text(max_size=5), max_size=2)
)
CALLS = st.lists(
    st.tuples(VALUES, VALUES, st.sampled_from(["plain", "keyword", "nested", "failing", "named"])), max_size=6
)


def recorded(calls):
    """Return the steps and calls of a run that makes these calls; clock and ids are fixed."""
    clock = FakeClock(tick_ns=1_234_567)
    with make_grace(clock=clock, new_id=fixed_ids()) as grace, capture() as traces:

        @grace.tool
        def look(value, result):
            return result

        @grace.tool
        def log_in(password, name):
            return name

        @grace.tool
        def around(value, result):
            return look(value, result)

        @grace.tool
        def broken(value, result):
            raise ValueError(str(value))

        @grace.agent
        def agent(question):
            for value, result, kind in calls:
                if kind == "keyword":
                    look(value, result=result)
                elif kind == "failing":
                    with contextlib.suppress(ValueError):
                        broken(value, result)
                else:
                    {"plain": look, "nested": around, "named": log_in}[kind](value, result)
            return "done"

        agent("go")
        trace = traces.only.to_dict()
    return trace["steps"], trace["grace"]["calls"]


@given(CALLS)
@settings(examples(60), suppress_health_check=list(HealthCheck))
def test_plain_calls_become_the_same_steps_as_any_other(calls):
    """The short path for them differs from the general one in nothing but time."""
    short = recorded(calls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepBuilder, "_add_plain", lambda builder, events, place: place)
        assert recorded(calls) == short


def test_tools_of_one_name_are_not_mixed_up(grace):
    """Tools that share a name have their own parameters, in every run, and a secret in a name is removed in every run."""
    first = grace.tool(lambda question: "a", name="look")
    second = grace.tool(lambda place: "b", name="look")
    third = grace.tool(lambda place: "c", name="look AKIAIOSFODNN7EXAMPLE")
    with grace.collect() as traces:
        for _ in range(2):
            with grace.run("go"):
                first("x")
                second("y")
                third("z")
    named = [[(step.tool.name, step.input) for step in trace.steps if step.tool] for trace in traces]
    secret = "look [REDACTED:api_key]"
    assert [[("look", {"question": "x"}), ("look", {"place": "y"}), (secret, {"place": "z"})]] * 2 == named
