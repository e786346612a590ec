"""What is recorded of results: texts and questions in all forms, tokens, agents as tools, dropped streams, and nothing without capture."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import GenerationChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

import grace_kp as gk
from grace_kp.confidence import factors_from_trace
from grace_kp.integrations.langchain import GraceCallbackHandler

from .conftest import by_name, gated_agent, message_of, only, question, runtime, says, search, statuses, steps

pytest.importorskip("langgraph", reason="needs the extra langchain")


class Pieces(FakeListLLM):
    """A text model that streams its characters."""

    def _stream(self, prompt, stop=None, run_manager=None, **kwargs):
        for character in self.responses[0]:
            run_manager.on_llm_new_token(character)
            yield GenerationChunk(text=character)


def counted(said, tokens):
    usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    return message_of(said).model_copy(update={"usage_metadata": usage})


def tokens(inputs, outputs):
    return {"input_tokens": inputs, "output_tokens": outputs, "total_tokens": inputs + outputs}


@pytest.fixture(params=["sync", "async"])
def call(request):
    def invoke(app, inputs, config):
        return app.invoke(inputs, config) if request.param == "sync" else asyncio.run(app.ainvoke(inputs, config))

    return invoke


class TestTeams:
    def team(self):
        one = create_agent(says(counted("from one", 10)), [], name="one")
        two = create_agent(says(counted("from two", 200)), [], name="two")
        graph = StateGraph(MessagesState)
        for number, (name, node) in enumerate({"one": one, "two": two}.items()):
            graph.add_node(name, node)
            graph.add_edge("one" if number else START, name)
        return graph.compile(name="team")

    def test_the_root_has_the_tokens_of_all(self, grace, handler, call):
        call(self.team(), question(), {"callbacks": [handler]})
        traces = by_name(grace)
        assert tokens(210, 2) == traces["team"].grace["usage"]
        assert {} == traces["team"].grace["own_usage"]
        assert [tokens(10, 1), tokens(200, 1)] == [entry["usage"] for entry in traces["team"].grace["calls"]]
        assert tokens(10, 1) == traces["one"].grace["usage"]
        assert "own_usage" not in traces["one"].grace


def test_an_agent_as_a_tool_is_one_call(grace, handler, call):
    """The call of the tool and the run that it makes are one call as evidence; both stand in the trace."""
    expert = create_agent(says(counted("expert here", 5)), [], name="expert")

    @tool
    def ask_expert(text: str) -> str:
        """Ask the expert."""
        return expert.invoke(question(text))["messages"][-1].content

    supervisor = create_agent(says([("ask_expert", {"text": "x"})], "done"), [ask_expert], name="supervisor")
    call(supervisor, question(), {"callbacks": [handler]})
    trace = by_name(grace)["supervisor"]
    assert [("ask_expert", "ok"), ("expert", "ok")] == statuses(trace)
    factors = factors_from_trace(trace)
    assert (1, 1) == (factors.tool_execution_count, factors.tool_success_count)
    assert 5 == trace.grace["usage"]["input_tokens"]


class TestDroppedStreams:
    """A reader who leaves: what had been streamed is the result, and the status is closed."""

    TEXT = "one two three"

    def check(self, grace, given):
        (trace,) = grace.store.query()
        assert "closed" == trace.grace["status"]
        assert given == trace.outcome.result_summary
        assert [given] == [step.content for step in trace.steps if step.type == "thought"]
        assert "GeneratorExit" not in str([step.content for step in trace.steps])

    @pytest.fixture(params=[FakeListChatModel, Pieces])
    def model(self, request):
        return request.param(responses=[self.TEXT])

    @pytest.fixture(params=[False, True], ids=["alone", "with a parser"])
    def runnable(self, request, model):
        return model | StrOutputParser() if request.param else model

    @pytest.mark.parametrize("pieces", [1, 5])
    def test_of_a_model(self, grace, handler, runnable, pieces):
        stream = runnable.stream("q", {"callbacks": [handler]})
        for _ in range(pieces):
            next(stream)
        stream.close()
        self.check(grace, self.TEXT[:pieces])

    async def test_of_a_model_in_async(self, grace, handler, runnable):
        stream = runnable.astream("q", {"callbacks": [handler]})
        for _ in range(5):
            await anext(stream)
        await stream.aclose()
        while handler.tracker.frames:  # the event loop closes the inner generators
            await asyncio.sleep(0)
        self.check(grace, self.TEXT[:5])

    @pytest.mark.parametrize("order", [1, -1], ids=["outermost first", "innermost first"])
    async def test_of_generators_that_the_loop_closes_at_its_end(self, grace, handler, runnable, order):
        hooks, begun = sys.get_asyncgen_hooks(), []
        sys.set_asyncgen_hooks(firstiter=begun.append)
        try:
            stream = runnable.astream("q", {"callbacks": [handler]})
            for _ in range(5):
                await anext(stream)
        finally:
            sys.set_asyncgen_hooks(*hooks)
        for generator in begun[::order]:
            await generator.aclose()
        self.check(grace, self.TEXT[:5])
        assert [] == only(grace).grace["calls"]

    def test_of_an_agent(self, grace, handler):
        @tool
        def look(query: str) -> str:
            """Look."""
            return "found"

        first = AIMessage("I will look.", tool_calls=[{"name": "look", "args": {"query": "x"}, "id": "1"}])
        stream = create_agent(says(first, "done"), [look]).stream(
            question(), {"callbacks": [handler]}, stream_mode="updates"
        )
        next(stream)
        stream.close()
        (trace,) = grace.store.query()
        assert ("closed", "I will look.") == (trace.grace["status"], trace.outcome.result_summary)

    def test_a_model_that_fails_in_a_stream_is_no_failure_of_the_parser(self, grace, handler):
        class Down(Pieces):
            def _stream(self, *args, **kwargs):
                yield from super()._stream(*args, **kwargs)
                raise ValueError("down")

        with pytest.raises(ValueError, match="down"):
            list((Down(responses=[self.TEXT]) | StrOutputParser()).stream("q", {"callbacks": [handler]}))
        trace = only(grace)
        assert ("failed", []) == (trace.grace["status"], trace.grace["calls"])
        assert [self.TEXT] == [step.content for step in trace.steps if step.type == "thought"]

    def test_a_stream_that_is_read_to_its_end_is_completed(self, grace, handler, runnable):
        list(runnable.stream("q", {"callbacks": [handler]}))
        trace = only(grace)
        assert ("completed", self.TEXT) == (trace.grace["status"], trace.outcome.result_summary)


def test_a_model_that_only_proposes_a_call_has_thought_nothing(grace, handler, call):
    said = AIMessage("\n\n", tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "1"}])
    call(create_agent(says(said, "done"), [search]), question(), {"callbacks": [handler]})
    (trace,) = grace.store.query()
    assert ["tool_call", "observation", "thought"] == [step.type for step in trace.steps]


BAD = {"isError": True, "content": [{"type": "text", "text": "quota exceeded"}]}
REPORTED = {
    "a message": lambda call_id: ToolMessage("quota exceeded", tool_call_id=call_id, status="error"),
    "a command": lambda call_id: Command(
        update={"messages": [ToolMessage("quota exceeded", tool_call_id=call_id, status="error")]}
    ),
    "MCP as dict": lambda call_id: BAD,
    "MCP in an artifact": lambda call_id: ("see the artifact", BAD),
}


@pytest.mark.parametrize("what", REPORTED)
def test_a_failure_in_the_result_of_a_tool_is_a_failed_call(grace, handler, call, what):
    @tool(response_format="content_and_artifact" if "artifact" in what else "content")
    def pay(euros: int, tool_call_id: Annotated[str, InjectedToolCallId]):
        """Send money."""
        return REPORTED[what](tool_call_id)

    agent = create_agent(says([("pay", {"euros": 5})], "done"), [pay])
    call(agent, question(), {"callbacks": [handler]})
    (trace,) = grace.store.query()
    (recorded,) = trace.calls
    assert ("error", "ToolError", "quota exceeded") == (recorded.status, recorded.error.type, recorded.error.message)
    assert "error_recovery" in [step.type for step in trace.steps]


@pytest.mark.parametrize("text", ['{"isError": true', '{"isError": "true"}', 'say "isError": true', '{"a": ' * 9_999])
def test_a_text_that_only_looks_like_a_failure_is_none(grace, handler, text):
    @tool
    def look(q: str) -> str:
        """Look something up."""
        return text + ' "isError": true'

    agent = create_agent(says([("look", {"q": "x"})], "done"), [look])
    agent.invoke(question(), {"callbacks": [handler]})
    assert ["ok"] == [one.status for one in grace.store.query()[0].calls]


def test_tokens_and_models_are_kept_and_proposals_are_no_steps(grace, handler):
    said = AIMessage(
        [{"type": "text", "text": "hello"}],
        tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "1"}],
        usage_metadata={"input_tokens": 7, "output_tokens": 5, "total_tokens": 12},
        response_metadata={"model_name": "m-1"},
    )
    chain = RunnableLambda(lambda _: [says(said).invoke("a"), says(said).invoke("b")][0])
    chain.invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert [("thought", "hello"), ("thought", "hello")] == steps(trace)
    assert {"input_tokens": 14, "output_tokens": 10, "total_tokens": 24} == trace.grace["usage"]
    assert ["m-1", "m-1"] == [call["model"] for call in trace.grace["model_calls"]]
    assert [0, 1] == [call["step"] for call in trace.grace["model_calls"]]


def test_an_answer_from_the_cache_is_recorded_and_costs_no_tokens(grace, handler):
    said = AIMessage("hello", usage_metadata={"input_tokens": 7, "output_tokens": 5, "total_tokens": 12})
    model = says(said)
    model.cache = InMemoryCache()
    RunnableLambda(lambda _: [model.invoke("a") for _ in range(3)].pop()).invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert [("thought", "hello")] * 3 == steps(trace)
    assert {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12} == trace.grace["usage"]


@pytest.mark.parametrize(
    ("inputs", "objective"),
    [
        ("plain", "plain"),
        ({"input": "in a dict"}, "in a dict"),
        ({"count": 3, "topic": "named"}, "named"),
        ({"messages": [HumanMessage("first"), AIMessage("said"), HumanMessage("last")]}, "last"),
        ({"messages": [("user", "a pair")]}, "a pair"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "blocks"}]}]}, "blocks"),
        ([HumanMessage("a list")], "a list"),
        (HumanMessage("a message"), "a message"),
        (3, "step(3)"),
    ],
)
def test_the_objective_is_what_is_asked(grace, handler, inputs, objective):
    RunnableLambda(lambda _: "x", name="step").invoke(inputs, {"callbacks": [handler]})
    assert objective == only(grace).task.objective


def test_no_property_of_a_result_runs(grace, handler):
    """A lazy relation of a row would be loaded once per result."""
    ran = []

    class Row:
        def __init__(self, number):
            self.number = number

        def load(self):
            ran.append(self.number)
            raise SystemExit

        type = tool_call_id = status = update = page_content = metadata = artifact = property(load)

    @tool
    def rows(query: str) -> list:
        """Search."""
        return [Row(number) for number in range(3)]

    chain = RunnableLambda(lambda _: rows.invoke("x"))
    assert [0, 1, 2] == [row.number for row in chain.invoke("q", {"callbacks": [handler]})]
    assert [] == ran
    assert ["ok"] == [call.status for call in only(grace).calls]


ORDER = "order 4711 in blue"
R = gk.InterventionResponse
QUESTION = {"messages": [("user", "Refund it.")]}
DECISIONS = [
    {"type": "approve"},
    {"type": "edit", "edited_action": {"name": "refund", "args": {"order": f"{ORDER} twice"}}},
    {"type": "reject", "message": f"not {ORDER}"},
    {"type": "respond", "message": f"not {ORDER}"},
]


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} is refunded"


def quiet(reviewer=None):
    return runtime(unmeasured="notify", reviewer=reviewer, capture_input=False, capture_output=False)


def agent_of(grace, saver=None, floor="confirm"):
    return gated_agent(grace, ([("refund", {"order": ORDER})], "done"), [refund], {"refund": floor}, saver=saver)


def config_of(grace):
    return {"configurable": {"thread_id": "1"}, "callbacks": [GraceCallbackHandler(grace)]}


def stored(grace):
    grace.flush()
    return str([trace.to_dict() for trace in grace.store.query()])


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision["type"])
def test_an_interrupt_shows_what_no_trace_stores(decision):
    grace = quiet()
    app, config = agent_of(grace, InMemorySaver()), config_of(grace)
    (question,) = app.invoke(QUESTION, config)["__interrupt__"]
    assert {"order": ORDER} == question.value["action_requests"][0]["args"]
    assert ORDER not in stored(grace)
    app.invoke(Command(resume={"decisions": [decision]}), config)
    assert ORDER not in stored(grace)
    (trace,) = grace.store.query()
    assert {"order": "[not captured]"} == trace.decisions[-1].arguments
