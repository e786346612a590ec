"""The steps of a trace: calls with unchanged inputs and results, searches, thoughts, and recoveries from errors."""

from __future__ import annotations

import asyncio
import contextlib
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.record import TOOL, Call, Listener, Recorder, Spec, open_run
from grace_kp.record._run import ModelCall, Note
from grace_kp.record._steps import StepBuilder, name_arguments, plain_input, texts_of
from grace_kp.settings import Settings
from grace_kp.testing import FakeClock, capture, fixed_ids, make_grace
from grace_kp.trace import Redactor, have_plain_names
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


def searched(grace, search):
    with grace.run("look it up"):
        search()
    (trace,) = grace.store.query()
    return trace.grace["calls"][0]["search"]


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


def test_an_exact_hit_by_distance_beats_an_unrelated_one(grace):
    """A distance of 0.02 gives a higher confidence than one of 0.93, once it is declared."""
    scores = []
    for distance in (0.02, 0.93):
        search = grace.retriever(scores="distance", name="search")(lambda distance=distance: [("text", distance)])
        with grace.run("look it up") as run:
            search()
        scores.append(run.trace.outcome.confidence)
    assert scores[0] > 0.9
    assert scores[1] < 0.6


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


NAMES = ["question", "limit", "password", "name", "value", "type", "selector", "apiKey", "text"]
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
TEXTS = st.sampled_from(["", "abc", "password", "#password", "AKIAIOSFODNN7EXAMPLE", "hunter2secret", "\ud800"])


def call_of(names, args, kwargs=None):
    """Return a call of a tool with these parameters."""
    spec = Spec(None, kind=TOOL, name="look")
    spec.positional = tuple(names)
    return Call(open_run(Recorder(Settings(), Listener()), spec, (), {}), spec, None, args, kwargs)


@given(st.lists(st.sampled_from(NAMES), unique=True), st.lists(SCALARS | TEXTS, max_size=4).map(tuple))
def test_plain_input_is_what_redaction_leaves_as_it_is(names, args):
    """Arguments that need neither rendering nor redaction are those that both leave alone; all others are left to them."""
    call, redactor = call_of(names, args), Redactor(identifiers=True)
    redactor.expect([value for value in args if isinstance(value, str)])
    plain = plain_input(tuple(names) if have_plain_names(names) else None, args, redactor.harmless)
    if plain is not None:
        assert repr(redactor.value(name_arguments(call))) == repr(plain)


def test_texts_and_whole_numbers_are_plain():
    """Arguments of most calls are plain; further arguments, fractions, rendered values and other texts are not."""
    names, harmless = ("question", "limit"), frozenset({"why?"})
    assert {"question": "why?", "limit": 3} == plain_input(names, ("why?", 3), harmless)
    assert {"question": "why?"} == plain_input(names, ("why?",), harmless)
    assert {} == plain_input(names, (), harmless)
    assert [None] * 5 == [
        plain_input(*arguments, harmless)
        for arguments in [
            (names, ("other",)),
            (names, (1.5,)),
            (names, (1, 2, 3)),
            (names, ["why?"]),
            (None, ("why?",)),
        ]
    ]


def test_arguments_beyond_the_parameters_have_a_name():
    """They stand under the name of the parameter that takes them, and numbers that JSON cannot hold become texts."""
    assert {"a": "nan", "args": [2]} == name_arguments(call_of(["a"], (float("nan"), 2)))


def test_texts_of_all_events_are_found_once():
    """Texts in arguments, results, thoughts and answers of models, in order; the end of a call repeats none."""
    call = call_of(["a"], [{"b": "in a dict"}], {"c": "keyword"})
    call.close(["out"])
    plain = call_of(["a"], ("in", 3))
    plain.close("back")
    events = [*[call] * 2, *[plain] * 2, Note("thought", 0), ModelCall("model", start=0, end=1, text="answer")]
    expected = ["before", "in a dict", "keyword", "out", "in", "back", "thought", "answer"]
    assert expected == texts_of(events, ["before"])
