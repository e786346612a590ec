"""`GraceRunner` beyond the conformance kit: what it refuses, what it leaves alone, and what it records."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    AgentHooks,
    MaxTurnsExceeded,
    RunContextWrapper,
    RunHooks,
    Runner,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    WebSearchTool,
    function_tool,
    handoff,
    tool_input_guardrail,
)
from agents.mcp import MCPServer

import grace_kp as gk
from grace_kp.integrations.openai_agents import GraceRunner
from tests.integrations.openai_agents.test_conformance import QUIET, Scripted, agent_of, main_of
from tests.integrations.scenario import DONE, HELPER, PAID, PAY, STORIES, Case, calls, lines, open_grace


@pytest.fixture
def grace(tmp_path):
    with open_grace(tmp_path) as opened:
        yield opened


@pytest.fixture
def agreeing(tmp_path):
    """A runtime whose reviewer agrees at once."""
    reviewer = lambda _request: gk.InterventionResponse(gk.InterventionAction.PROCEED)  # noqa: E731
    with open_grace(tmp_path, reviewer) as opened:
        yield opened


@pytest.fixture
def case(tmp_path):
    def made(turns):
        return Case(tmp_path, STORIES[turns] if isinstance(turns, str) else {"main": tuple(turns)})

    return made


def effects(case):
    return lines(case.folder / "effects.jsonl")


def run(runner, agent, entry="Pay Ann.", **options):
    return asyncio.run(runner.run(agent, entry, run_config=QUIET, **options))


def approve(grace, **words):
    for request in grace.approvals.pending():
        grace.approvals.approve(request.id, by="ana", **words)


def only_tool(case, tool, **options):
    return Agent(name="main", model=Scripted(case, "main"), tools=[tool], **options)


@function_tool
def pay(to: str, amount: int) -> str:
    """Send money."""
    return f"paid {amount} to {to}"


def test_agents_and_tools_stay_as_they_are(agreeing, case):
    """The program can go on with its own agents, also after a handoff."""
    agent = main_of(case("handoff"))
    before = [*agent.tools], [*agent.handoffs], agent.hooks, [each.needs_approval for each in agent.tools]
    result = run(GraceRunner(agreeing, {"pay": "confirm"}), agent)
    assert "done" == result.final_output
    assert result.last_agent is agent.handoffs[0]
    assert before == ([*agent.tools], [*agent.handoffs], agent.hooks, [each.needs_approval for each in agent.tools])
    assert run(GraceRunner(agreeing), result.last_agent).last_agent is agent.handoffs[0]


def test_hooks_of_the_program_still_run(agreeing, case):
    """Those of the run and those of the agent."""
    seen = []

    class Hooks(RunHooks):
        async def on_llm_end(self, context, agent, response):
            seen.append(("run", agent.name))

    def noting(name):
        async def hook(*_args, **_options):
            seen.append(("agent", name))

        return hook

    names = {"on_start", "on_end", "on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"}
    own = AgentHooks()
    vars(own).update({name: noting(name) for name in names})
    agent = only_tool(case([calls(("p1", "pay", {"to": "ann", "amount": 1})), DONE]), pay, hooks=own)
    run(GraceRunner(agreeing, {"pay": "confirm"}), agent, hooks=Hooks())
    assert 2 == seen.count(("run", "main"))
    assert names == {name for kind, name in seen if kind == "agent"}


def test_what_cannot_be_gated_is_refused(grace, case):
    """A tool of the provider, and a tool that asks by itself."""
    agent = only_tool(case([DONE]), WebSearchTool())
    name = agent.tools[0].name
    with pytest.raises(gk.GateError, match=name):
        run(GraceRunner(grace, {name: "confirm"}), agent)
    asking = function_tool(lambda: "done", name_override="asks", needs_approval=True)
    with pytest.raises(gk.GateError, match="needs_approval"):
        run(GraceRunner(grace), only_tool(case([DONE]), asking))


def test_warnings(grace, case, caplog):
    """Tools that nobody sees are named once, and gates that match no tool with the nearest name. A misspelt gate is an error."""
    agent = Agent(name="main", model=Scripted(case([DONE]), "main"), tools=[WebSearchTool(), pay])
    runner = GraceRunner(grace, {"payy": "confirm"})
    with caplog.at_level(logging.WARNING, "grace_kp"):
        run(runner, agent)
        run(runner, agent)
    assert 1 == caplog.text.count("neither records nor gates 'web_search'")
    assert 1 == caplog.text.count("no tool offered so far is called 'payy' (nearest: pay)")
    with pytest.raises(gk.GateError, match="did you mean 'lookup'"):
        run(GraceRunner(grace, {"look_up": "confirm"}), agent_of(case([DONE]), "main"))


def test_states_that_are_none(grace, case):
    """A user cannot write one, and the agents of a RunState would not be gated."""
    agent = main_of(case("pay"))
    runner = GraceRunner(grace, {"pay": "confirm"})
    forged = {"grace_kp": 1, "session": "s", "objective": "", "turns": {}, "asked": [], "state": {}}
    for asked in ([], [{"verdict": {"approval": "0" * 32}}]):
        with pytest.raises(gk.GateError, match="names no request"):
            run(runner, agent, json.dumps(forged | {"asked": asked}))
    waiting = run(runner, agent, session="s1")
    with pytest.raises(TypeError, match="not gated"):
        run(runner, agent, waiting.result.to_state())
    with pytest.raises(gk.GateError, match="waits for pay; pass the same gates"):
        run(GraceRunner(grace), agent, waiting.state)
    with pytest.raises(gk.GateError, match="belongs to the session 's1'"):
        run(runner, agent, waiting.state, session="s2")


def test_an_approval_of_the_sdk_entitles_to_nothing(grace, case):
    """Neither in this runner, nor in another that runs its copies."""
    told = case("pay")
    waiting = run(GraceRunner(grace, {"pay": "confirm"}), main_of(told), session="s1")
    state = waiting.result.to_state()
    for item in state.get_interruptions():
        state.approve(item, always_approve=True)
    asyncio.run(Runner.run(waiting.result.last_agent, state, run_config=QUIET))
    kept = json.loads(waiting.state) | {"state": state.to_json()}
    run(GraceRunner(grace, {"pay": "confirm"}), main_of(told), json.dumps(kept))
    assert [] == effects(told)


def test_words_of_a_reviewer_and_an_unreadable_call(grace, case):
    """They are the output of the tool. Nobody is asked about arguments that nobody can read."""
    told = case("pay")
    waiting = run(GraceRunner(grace, {"pay": "confirm"}), main_of(told))
    assert ["pending"] == [each.outcome for each in waiting.waiting]
    (request,) = grace.approvals.pending()
    grace.approvals.respond(request.id, "Ask Ann first.", by="ana")
    result = run(GraceRunner(grace, {"pay": "confirm"}), main_of(told), waiting.state)
    assert [("Ask Ann first.")] == [each.output for each in result.new_items if each.type == "tool_call_output_item"]

    class Unreadable(Scripted):
        def outputs(self, input_):
            made = super().outputs(input_)
            for each in made:
                if each.type == "function_call":
                    each.arguments = "[1, 2]"
            return made

    told = case("pay")
    agent = agent_of(told, "main")
    agent.model = Unreadable(told, "main")
    assert ("done", []) == (run(GraceRunner(grace, {"pay": "confirm"}), agent).final_output, effects(told))
    assert [] == grace.approvals.pending()


def test_tools_of_an_mcp_server_are_gated(grace, case):
    """Also by a glob; their names are known only when they are listed."""
    mcp = pytest.importorskip("mcp.types")
    called = []

    class Server(MCPServer):
        name = "bank"

        async def connect(self): ...
        async def cleanup(self): ...
        async def list_prompts(self): ...
        async def get_prompt(self, name, arguments=None): ...

        async def list_tools(self, run_context=None, agent=None):
            return [mcp.Tool(name="pay", inputSchema={"type": "object", "properties": {"to": {"type": "string"}}})]

        async def call_tool(self, tool_name, arguments, meta=None):
            called.append(arguments)
            return mcp.CallToolResult(content=[mcp.TextContent(type="text", text="paid")])

    told = case([calls(("p1", "pay", {"to": "ann"})), DONE])
    agent = Agent(name="main", model=Scripted(told, "main"), mcp_servers=[Server()])
    runner = GraceRunner(grace, {"p*": "confirm"})
    waiting = run(runner, agent)
    assert (1, []) == (len(waiting.waiting), called)
    approve(grace)
    assert ("done", [{"to": "ann"}]) == (run(runner, agent, waiting.state).final_output, called)


def test_tools_and_handoffs_that_are_added_during_a_run(grace, tmp_path):
    """They are gated, too, whether the agent gets them or the copy that hooks see."""

    class Hooks(RunHooks):
        async def on_agent_start(self, context, agent):
            if agent.name == "main":
                agent.handoffs.append(second)

    @function_tool
    def unlock() -> str:
        agent.tools.append(pay)
        return "unlocked"

    told = Case(tmp_path, {
        "main": (calls(("u1", "unlock", {})), calls(PAY), calls(("h1", "handoff", {"to": "second"}))),
        "second": (calls(("p2", *PAY[1:])), DONE),
    })  # fmt: skip
    second, agent = agent_of(told, "second"), only_tool(told, unlock)
    result = run(GraceRunner(grace, {"pay": "deny"}), agent, hooks=Hooks())
    outputs = [each.output for each in result.new_items if each.type == "tool_call_output_item"]
    assert ("done", []) == (result.final_output, effects(told))
    assert 2 == sum("Not run" in each for each in outputs)


def test_a_handoff_object_and_a_gated_agent(grace, case):
    """The first keeps its filter and callback. The second runs once, although it waited in the middle."""
    told, seen = case("handoff"), []
    agent = agent_of(told, "main", handoffs=[handoff(agent_of(told, "second"), on_handoff=lambda _: seen.append(1))])
    runner = GraceRunner(grace, {"pay": "confirm"})
    waiting = run(runner, agent)
    approve(grace)
    assert ("done", [PAID]) == (run(runner, agent, waiting.state).final_output, effects(told))
    assert [1] == seen
    told = case("nested")
    (told.folder / "effects.jsonl").unlink()
    runner = GraceRunner(grace, {"pay": "confirm", HELPER: "confirm"})
    waiting = run(runner, main_of(told), session="other")
    approve(grace)
    waiting = run(runner, main_of(told), waiting.state)
    assert ["pay"] == [each.action for each in waiting.waiting]
    approve(grace)
    assert ("done", [PAID]) == (run(runner, main_of(told), waiting.state).final_output, effects(told))


@pytest.mark.parametrize(
    "failure", [{}, {"failure_error_function": None}, {"failure_error_function": lambda _, error: f"Sorry: {error}"}]
)
@pytest.mark.parametrize("gates", [{}, {"flaky": "confirm"}])
def test_failures_of_tools(agreeing, case, failure, gates):
    """The model and the program get what they get without the adapter, and the trace has a failed call."""

    def flaky() -> str:
        """Fail."""
        raise KeyError("no such customer")

    def told():
        return only_tool(case([calls(("f1", "flaky", {})), DONE]), function_tool(flaky, **failure))

    def ended(start):
        try:
            return [
                getattr(each, "output", None) for each in asyncio.run(start(told(), "Go.", run_config=QUIET)).new_items
            ]
        except Exception as error:
            return repr(error)

    assert ended(Runner.run) == ended(GraceRunner(agreeing, gates).run)
    agreeing.flush()
    (trace,) = agreeing.store.query()
    assert [("flaky", "error")] == [(each["name"], each["status"]) for each in trace.grace["calls"]]
    assert "KeyError" in json.dumps(trace.to_dict())


def test_what_is_recorded(grace, case):
    """Tokens, the model's texts, a handoff, the user's message."""
    run(GraceRunner(grace, domain="banking"), main_of(case("handoff")), session="s1")
    grace.flush()
    (trace,) = grace.store.query()
    assert ("Pay Ann.", "s1") == (trace.task.objective, trace.grace["session"])
    assert [trace.id] == [each.id for each in grace.store.query(domain="banking")]
    assert (9, 6) == (trace.grace["usage"]["input_tokens"], trace.grace["usage"]["output_tokens"])
    thoughts = [step.content for step in trace.steps if step.type == "thought"]
    assert any("second" in each for each in thoughts)
    assert "done" in thoughts


def test_limits_and_sessions_of_the_sdk(grace, case):
    """They hold over the interruptions of a run."""
    told = case([calls(("l1", "lookup", {"query": "ann"}), PAY), calls(("l2", "lookup", {"query": "bob"})), DONE])
    runner, kept = GraceRunner(grace, {"pay": "confirm"}), SQLiteSession("conversation")
    waiting = run(runner, agent_of(told, "main"), session=kept, max_turns=2)
    assert "conversation" == waiting.session
    approve(grace)
    with pytest.raises(MaxTurnsExceeded):
        run(runner, agent_of(told, "main"), waiting.state, session=kept, max_turns=2)
    assert [PAID] == effects(told)


def test_a_gate_that_does_not_wait_does_not_end_a_stream(agreeing, case):
    """Its events are those without the gate."""

    async def kinds(start, agent):
        streamed = start(agent, "Go.", run_config=QUIET)
        return [event.type async for event in (streamed.stream_events() if start == Runner.run_streamed else streamed)]

    bare = asyncio.run(kinds(Runner.run_streamed, main_of(case("pay"))))
    (case("pay").folder / "effects.jsonl").unlink()
    assert bare == asyncio.run(kinds(GraceRunner(agreeing, {"pay": "confirm"}).run_streamed, main_of(case("pay"))))


class Bank:
    paid = 0


def test_a_context_of_the_program(grace, case):
    """It is passed again with the state."""

    @function_tool(name_override="pay")
    def pay_from(context: RunContextWrapper[Bank], to: str, amount: int) -> str:
        """Send money."""
        context.context.paid += amount
        return "paid"

    def agent():
        return only_tool(case([calls(("p1", "pay", {"to": "ann", "amount": 5})), DONE]), pay_from)

    runner = GraceRunner(grace, {"pay": "confirm"})
    waiting = run(runner, agent(), context=Bank())
    approve(grace)
    assert "done" == run(runner, agent(), waiting.state, context=(bank := Bank())).final_output
    assert 5 == bank.paid


def test_a_call_that_a_guardrail_answers(grace, case):
    """The run ends although nobody has decided about the call."""

    @tool_input_guardrail
    def refuse(_data):
        return ToolGuardrailFunctionOutput.reject_content("no")

    guarded = dataclasses.replace(pay, tool_input_guardrails=[refuse], needs_approval=False)
    agent = only_tool(case([calls(("p1", "pay", {"to": "ann", "amount": 5})), DONE]), guarded)
    result = run(GraceRunner(grace, {"pay": "confirm"}), agent)
    if result.waiting:  # the SDK asks first
        approve(grace)
        result = run(GraceRunner(grace, {"pay": "confirm"}), agent, result.state)
    assert "done" == result.final_output
    grace.flush()
    assert {"completed"} == {trace.grace["status"] for trace in grace.store.query()}


def test_a_call_that_the_model_repeats_in_a_turn(grace, case):
    """With the same id and arguments it is the same call: asked once, run once."""
    told = case([calls(PAY, PAY), DONE])
    waiting = run(GraceRunner(grace, {"pay": "confirm"}), agent_of(told, "main"))
    assert 1 == len(grace.approvals.pending())
    approve(grace)
    result = run(GraceRunner(grace, {"pay": "confirm"}), agent_of(told, "main"), waiting.state)
    assert ("done", [PAID]) == (result.final_output, effects(told))
