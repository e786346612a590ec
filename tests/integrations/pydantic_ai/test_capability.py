"""`GraceCapability` beyond the conformance kit: what it refuses, what it leaves alone, and what it records."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import TypeAdapter
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, NativeTool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

import grace_kp as gk
from grace_kp.integrations.pydantic_ai import GraceCapability, deferred_results
from tests.integrations.scenario import open_grace


@pytest.fixture
def grace(tmp_path):
    with open_grace(tmp_path) as opened:
        yield opened


def agent_of(*calls, capabilities=(), output_type=(str, DeferredToolRequests), **options):
    """An agent whose model makes each of the calls in a turn of its own, and then says what it was told."""

    def answer(messages, _info):
        told = [part for each in messages for part in each.parts if part.part_kind in {"tool-return", "retry-prompt"}]
        turn = sum(isinstance(each, ModelResponse) for each in messages)
        if turn < len(calls):
            return ModelResponse([ToolCallPart(name, args, f"c{turn}") for name, args in [calls[turn]]])
        return ModelResponse([TextPart("; ".join(str(part.content) for part in told) or "done")])

    return Agent(FunctionModel(answer), capabilities=capabilities, output_type=output_type, **options)


def run(agent, prompt="Go.", **options):
    return asyncio.run(agent.run(prompt, **options))


def go_on(agent, result, results):
    return run(agent, None, message_history=result.all_messages(), deferred_tool_results=results)


def approve(grace):
    for request in grace.approvals.pending():
        grace.approvals.approve(request.id, by="ana")


def traces(grace):
    grace.flush()
    return grace.store.query()


PAY = ("pay", {"to": "ann", "on": "2026-05-01"})


def paying(grace, *calls, **options):
    """An agent that pays, and the list of what it paid."""
    agent = agent_of(*(calls or (PAY,)), capabilities=[GraceCapability(grace, {"pay": "confirm"})], **options)
    paid = []

    @agent.tool_plain
    def pay(to: str, on: dt.date) -> str:
        paid.append((to, on))
        return "paid"

    return agent, paid


def test_approvals_of_the_framework_entitle_to_nothing(grace):
    """The gate decides again, asks no second time, and pauses again."""
    agent, paid = paying(grace)
    waiting = run(agent)
    yes = DeferredToolResults(approvals={"c0": True})
    again = go_on(agent, waiting, yes)
    assert ([], 1) == (paid, len(grace.approvals.pending()))
    assert isinstance(again.output, DeferredToolRequests)
    other = run(agent)
    approve(grace)
    assert 2 == len(traces(grace))
    assert "paid" == go_on(agent, waiting, yes).output
    assert "paid" == go_on(agent, other, yes).output
    assert 2 == len(paid)


def test_arguments_that_the_framework_overrides_are_a_new_call(grace):
    """Nobody has approved them."""
    from pydantic_ai import ToolApproved

    agent, paid = paying(grace)
    waiting = run(agent)
    approve(grace)
    again = go_on(
        agent, waiting, DeferredToolResults(approvals={"c0": ToolApproved(override_args={**PAY[1], "to": "bob"})})
    )
    assert ([], ["bob"]) == (paid, [each.arguments["to"] for each in grace.approvals.pending()])
    assert isinstance(again.output, DeferredToolRequests)


def test_typed_arguments_and_their_edits(grace):
    """A tool gets what its annotations say, also after an edit. An edit that does not fit is refused."""
    agent, paid = paying(grace)
    for day, expected in (("2026-06-02", [("ann", dt.date(2026, 6, 2))]), ("soon", [])):
        paid.clear()
        waiting = run(agent)
        assert deferred_results(grace, waiting.output) is None
        with gk.Grace(store="memory:", evaluator=None) as other, pytest.raises(gk.UnknownApproval):
            deferred_results(other, waiting.output)
        (request,) = grace.approvals.pending()
        grace.approvals.edit(request.id, {"on": day}, by="ana")
        saved = TypeAdapter(DeferredToolRequests).dump_json(waiting.output)
        result = go_on(agent, waiting, deferred_results(grace, saved))
        assert (expected, bool(expected)) == (paid, result.output == "paid")


def test_an_agent_that_cannot_pause(grace, tmp_path):
    """It gets the refusal as the result of its tool."""
    reviewer = gk.InboxReviewer(wait="raise")
    with open_grace(tmp_path / "other", reviewer) if (tmp_path / "other").mkdir() is None else None as runtime:
        agent, paid = paying(runtime, output_type=str)
        assert "Not run" in run(agent).output
        assert [] == paid


def test_words_of_a_reviewer(grace):
    """They are the result of the tool."""
    agent, paid = paying(grace)
    waiting = run(agent)
    (request,) = grace.approvals.pending()
    grace.approvals.respond(request.id, "Ask Ann first.", by="ana")
    assert "Ask Ann first." == go_on(agent, waiting, deferred_results(grace, waiting.output)).output
    assert [] == paid


def test_requests_of_others_are_left_to_them(grace):
    """Only gated calls are among the results."""
    agent, _ = paying(grace, ("sign", {}))

    @agent.tool_plain
    def sign() -> str:
        raise ApprovalRequired({"why": "it needs a seal"})

    waiting = run(agent)
    results = deferred_results(grace, waiting.output)
    assert ({}, {}) == (results.approvals, results.calls)
    (trace,) = traces(grace)
    assert "suspended" == trace.grace["status"]


def test_tools_that_no_hook_sees(grace, caplog):
    """Those of the provider and of the program are named once, and a gate of one is an error."""
    native = NativeTool(WebSearchTool())
    capability = GraceCapability(grace, {"payy": "confirm"})
    agent = agent_of(("pay", {}), capabilities=[capability])
    agent.tool_plain(lambda: "paid", name="pay")
    with caplog.at_level(logging.WARNING, "grace_kp"):
        run(agent)
        run(agent)
        run(agent_of(capabilities=[GraceCapability(grace), native]))
    assert 1 == caplog.text.count("neither records nor gates 'web_search'")
    assert 1 == caplog.text.count("no tool offered so far is called 'payy' (nearest: pay)")
    agent = agent_of(capabilities=[GraceCapability(grace, {"look_up": "confirm"})])
    agent.tool_plain(lambda: "seen", name="lookup")
    with pytest.raises(gk.GateError, match="did you mean 'lookup'"):
        run(agent)
    external = ExternalToolset([ToolDefinition(name="wire")])
    with pytest.raises(gk.GateError, match="cannot gate 'wire'"):
        run(agent_of(capabilities=[GraceCapability(grace, {"wire": "confirm"})], toolsets=[external]))
    with pytest.raises(gk.GateError, match="web_search"):
        run(agent_of(capabilities=[GraceCapability(grace, {"web_search": "confirm"}), native]))


def test_a_function_that_makes_the_output(grace):
    """No hook can hold it, so that its gate is an error."""
    sent = []

    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    model = FunctionModel(lambda _, info: ModelResponse([ToolCallPart(info.output_tools[0].name, {"to": "ann"})]))
    for gates in ({"send": "deny"}, {"*": "confirm"}):
        with pytest.raises(gk.GateError, match="cannot gate 'send'"):
            run(Agent(model, capabilities=[GraceCapability(grace, gates)], output_type=send))
    assert [] == sent
    assert "sent" == run(Agent(model, capabilities=[GraceCapability(grace)], output_type=send)).output


def test_arguments_that_another_capability_changes(grace):
    """What runs is what the reviewer saw; the model reads why nothing ran else."""

    class Changing(AbstractCapability):
        async def before_tool_execute(self, ctx, *, call, tool_def, args):
            return {**args, "to": "bob"}

    agent = agent_of(PAY, capabilities=[Changing(), GraceCapability(grace, {"pay": "confirm"})])
    paid = []

    @agent.tool_plain
    def pay(to: str, on: dt.date) -> str:
        paid.append(to)
        return "paid"

    waiting = run(agent)
    (request,) = grace.approvals.pending()
    approve(grace)
    result = go_on(agent, waiting, deferred_results(grace, waiting.output))
    assert request.arguments["to"] == "bob" or "Not run" in result.output
    assert {*paid} <= {request.arguments["to"]}


def test_results_and_failures_are_those_without_the_capability(grace):
    """For the model and for the program; the trace has the failed calls, also those whose arguments do not fit."""

    def ended(*capabilities):
        agent = agent_of(
            ("look", {"n": "x"}),
            ("look", {"n": 1}),
            ("look", {"n": 2}),
            ("look", {"n": 3}),
            capabilities=capabilities,
            output_type=str,
        )

        @agent.tool_plain(retries=5)
        def look(n: int) -> object:
            if n == 1:
                raise ModelRetry("Look again.")
            if n == 3:
                raise KeyError("lost")
            return ToolReturn("found", content="see", metadata={"n": n})

        try:
            return run(agent).output
        except Exception as error:
            return repr(error)

    assert ended() == ended(GraceCapability(grace)) == "KeyError('lost')"
    (trace,) = traces(grace)
    assert ["error", "error", "ok", "error"] == [each["status"] for each in trace.grace["calls"]]
    assert "failed" == trace.grace["status"]


def test_an_agent_in_a_tool_is_a_nested_run(grace):
    """Its trace is inside of the call, and it stays apart from the conversation around it."""
    inner, _ = paying(grace, ("look", {}))
    inner.tool_plain(lambda: "seen", name="look")
    outer = agent_of(("ask", {}), capabilities=[GraceCapability(grace, domain="banking")], name="outer")

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run("Look.")).output

    assert "seen" == run(outer).output
    found = {trace.task.objective: trace for trace in traces(grace)}
    assert found["Go."].id == found["Look."].grace["parent"]["trace_id"]
    assert ("outer", "pydantic-ai") == (found["Go."].grace["name"], found["Go."].metadata.framework)
    assert [found["Go."].id] == [each.id for each in grace.store.query(domain="banking")]
    assert found["Go."].grace["usage"]["input_tokens"] > 0


def test_a_conversation_that_goes_on(grace):
    """The same call in a later turn of the same session is another call."""
    agent, paid = paying(grace, PAY)
    waiting = run(agent)
    approve(grace)
    first = go_on(agent, waiting, deferred_results(grace, waiting.output))
    assert 1 == len(paid)
    second = run(paying(grace, ("x", {}), ("x", {}), PAY)[0], "Again.", message_history=first.all_messages())
    assert isinstance(second.output, DeferredToolRequests)
    assert 1 == len(grace.approvals.pending())
