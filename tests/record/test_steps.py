"""The steps of a trace: calls with unchanged inputs and results, searches, thoughts, and recoveries from errors."""

from __future__ import annotations

import asyncio
import contextlib
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.record._steps import StepBuilder
from grace_kp.testing import FakeClock, capture, fixed_ids, make_grace
from tests.exhaustive import examples
from tests.record.conftest import searched


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


def pass_on(tools):
    tools["outer"]()


def survive(tools):
    with contextlib.suppress(ValueError):
        tools["flaky"]()


def survive_through_another(tools):
    with contextlib.suppress(ValueError):
        tools["outer"]()


def go_on(tools):
    survive(tools)
    tools["fine"]()


CALL = ["tool_call", "observation"]


@pytest.mark.parametrize(
    ("program", "types"),
    [
        (survive, [*CALL, "error_recovery"]),
        (go_on, [*CALL, "error_recovery", *CALL]),
        (survive_through_another, ["tool_call", *CALL, "observation", "error_recovery"]),
        (pass_on, ["tool_call", *CALL, "observation"]),
    ],
)
def test_an_error_that_the_run_goes_on_after_leaves_one_recovery(grace, program, types):
    """The failing tool has its error as observation. An error that ends the run is none that was survived."""
    tools = {"fine": grace.tool(lambda: "ok", name="fine")}

    @grace.tool
    def flaky():
        raise ValueError("no luck")

    tools["flaky"], tools["outer"] = flaky, grace.tool(lambda: flaky(), name="outer")
    with grace.collect() as traces, contextlib.suppress(ValueError):
        grace.agent(program, name="root")(tools)
    (trace,) = traces
    assert types == types_of(trace)
    assert "ValueError: no luck" in {step.content for step in trace.steps}
    is_survived = program is not pass_on
    assert (is_survived, "completed" if is_survived else "failed") == (trace.metadata.success, trace.status)
    assert is_survived or {"type": "ValueError", "message": "no luck"} == trace.grace["error"]


def test_a_run_without_steps_has_one_thought(grace):
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


def test_input_is_what_was_passed_although_the_tool_changes_it(grace):
    """Mutable arguments are rendered at once; a later change of them does not show."""

    @grace.tool
    def consume(items, options):
        items.clear()
        options["seen"] = True

    with grace.collect() as traces, grace.run("eat"):
        consume([1, 2, 3], {"fast": True})
    assert traces[0].steps[0].input == {"items": [1, 2, 3], "options": {"fast": True}}


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


@pytest.mark.parametrize(
    ("bad", "value", "why"),
    [
        (math.nan, "nan", "it is not finite"),
        (-1, "-1.0", "a similarity is from 0 to 1"),
        (5, "5.0", "a similarity is from 0 to 1"),
        ("0.1", "'0.1'", "it is not a number"),
        (None, "None", "the score is None"),
    ],
)
def test_an_unusable_score_is_named_in_the_trace(grace, bad, value, why):
    """It is counted and shown with the reason, beside the scores that can be used."""
    results = [{"score": 0.5, "source": "a"}, {"score": bad, "source": "b"}]
    search = searched(grace, grace.retriever(lambda: results, name="search"))
    assert [0.5] == search["scores"]
    assert (1, [{"value": value, "why": why}]) == (search["unusable_scores"], search["unusable"])


@pytest.mark.parametrize(
    ("scores", "expected"), [("similarity", 0.02), ("distance", 0.98), ("squared_l2_distance", 0.99), (None, None)]
)
@pytest.mark.parametrize("decorator", ["retriever", "tool"])
def test_the_kind_of_scores_is_declared_on_the_retriever(grace, scores, expected, decorator):
    """A pair counts as what was declared; an undeclared pair cannot be used."""
    options = {"name": "search", "scores": scores} | ({"kind": "search"} if decorator == "tool" else {})
    search = searched(grace, getattr(grace, decorator)(**options)(lambda: [("a document", 0.02)]))
    assert ([] if expected is None else [expected]) == search["scores"]
    assert (scores, int(expected is None)) == (search.get("kind"), search.get("unusable_scores", 0))


def test_a_value_of_an_unusable_score_holds_no_secret(grace):
    """What stands where a score should stand is redacted, and left out where outputs are not captured."""
    results = [{"score": "password=hunter2secret", "source": "a"}]
    search = searched(grace, grace.retriever(lambda: results, name="search"))
    assert "hunter2secret" not in str(search)
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None, capture_output=False) as quiet:
        search = searched(quiet, quiet.retriever(lambda: results, name="search"))
    assert [{"value": "[not captured]", "why": "it is not a number"}] == search["unusable"]


def test_results_that_were_not_read_say_so(grace):
    """An iterator that is not consumed leaves its results unknown, and the trace says that."""
    search = searched(grace, grace.retriever(lambda: iter([{"score": 0.2}]), name="search"))
    assert (0, True) == (search["count"], search["unreadable"])
    assert "not consumed" in search["note"]
