"""The hooks for Strands Agents pass the conformance kit, and do what only Strands needs."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("strands")

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent

import grace_kp as gk
from grace_kp.integrations.strands import GraceHooks, responses
from tests.integrations.scenario import HELPER, PAID, STORIES, Case, Conformance, lines, open_grace
from tests.integrations.strands.driver import ScriptedModel, StrandsDriver

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "strands.md"


class TestGraceHooks(Conformance):
    driver = StrandsDriver()


class Model(ScriptedModel):
    """Calls `pay` once, then says done."""

    def __init__(self, name="pay", args=None):
        self.name, self.args, self.heard = name, args or {"amount": 5}, []

    async def stream(self, messages, *_args, **_kwargs):
        results = [
            each["toolResult"] for message in messages[-1:] for each in message["content"] if "toolResult" in each
        ]
        self.heard += results
        yield {"messageStart": {"role": "assistant"}}
        if not results:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": self.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(self.args)}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if results else "tool_use"}}
        yield {
            "metadata": {"usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}, "metrics": {"latencyMs": 1}}
        }


class Refusing:
    """A hook of the program that refuses every call."""

    def register_hooks(self, registry, **_):
        registry.add_callback(BeforeToolCallEvent, self.refuse)

    def refuse(self, event):
        event.cancel_tool = "refused by another hook"


class Shop:
    def __init__(self, grace, gates, *more, **options):
        self.paid = []

        @tool
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        hooks = [GraceHooks(grace, gates), *more]
        self.agent = Agent(model=Model(), tools=[pay], hooks=hooks, callback_handler=None, **options)


@pytest.fixture
def grace(tmp_path):
    with contextlib.closing(open_grace(tmp_path)) as opened:
        yield opened


def test_a_response_to_the_interrupt_is_no_approval(grace):
    """The call interrupts again until there is a decision, and runs then."""
    shop = Shop(grace, {"pay": "confirm"})
    result = shop.agent("Pay.")
    (request,) = grace.approvals.pending()
    for _ in range(2):
        answers = [{"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in result.interrupts]
        result = shop.agent(answers)
        assert ("interrupt", [], None) == (result.stop_reason, shop.paid, responses(grace, result))
    assert [request.id] == [each.id for each in grace.approvals.pending()]
    grace.approvals.approve(request.id, by="ana")
    result = shop.agent(responses(grace, result))
    assert ("end_turn", [5]) == (result.stop_reason, shop.paid)
    assert None is responses(grace, result)


def test_agents_without_a_session(grace):
    """Equal calls of two conversations share no approval, and a second one of the same conversation is asked about anew."""
    one, other = Shop(grace, {"pay": "confirm"}), Shop(grace, {"pay": "confirm"})
    result = one.agent("Pay.")
    (request,) = grace.approvals.pending()
    grace.approvals.approve(request.id, by="ana")
    assert "interrupt" == other.agent("Pay.").stop_reason
    one.agent(responses(grace, result))
    assert "interrupt" == one.agent("Pay again.").stop_reason
    assert ([5], [], 2) == (one.paid, other.paid, len(grace.approvals.pending()))


def test_a_hook_that_refuses_a_claimed_call(grace):
    """The claim is released: the approved call has not run."""
    shop = Shop(grace, {"pay": "confirm"}, Refusing())
    result = shop.agent("Pay.")
    (request,) = grace.approvals.pending()
    grace.approvals.approve(request.id, by="ana")
    shop.agent(responses(grace, result))
    assert ([], "refused by another hook") == (shop.paid, shop.agent.model.heard[0]["content"][0]["text"])
    assert grace.approvals.get(request.id).state in {"approved", "not_done"}


def test_a_hook_that_interrupts_too(tmp_path):
    """The call is not claimed before that hook has its response, and runs then."""

    class Asking(Refusing):
        def refuse(self, event):
            event.interrupt("sure?", reason="money")

    agree = gk.InterventionResponse(gk.InterventionAction.PROCEED)
    with contextlib.closing(open_grace(tmp_path, lambda _: agree)) as grace:
        shop = Shop(grace, {})
        hooks = [Asking(), GraceHooks(grace, {"pay": "confirm"})]
        agent = Agent(
            model=Model(), tools=[shop.agent.tool_registry.registry["pay"]], hooks=hooks, callback_handler=None
        )
        (asked,) = agent("Pay.").interrupts
        assert [] == shop.paid
        agent([{"interruptResponse": {"interruptId": asked.id, "response": "yes"}}])
        assert [5] == shop.paid


def test_a_tool_that_another_hook_selects(grace):
    """A gated one does not run in the place of another, nor another in its place."""

    @tool
    def look(amount: int) -> str:
        """Look."""
        shop.paid.append("looked")

    for called, selected in (("look", "pay"), ("pay", "look")):

        class Selecting(Refusing):
            def refuse(self, event, selected=selected):
                event.selected_tool = event.agent.tool_registry.registry[selected]

        shop = Shop(grace, {"pay": "confirm"})
        agent = Agent(model=Model(called), tools=[look, shop.agent.tool_registry.registry["pay"]],
                      hooks=[Selecting(), GraceHooks(grace, {"pay": "confirm"})], callback_handler=None)  # fmt: skip
        agent("Pay.")
        assert ([], True) == (shop.paid, "Not run" in agent.model.heard[0]["content"][0]["text"])


@pytest.mark.skipif("nested" in StrandsDriver.lacks, reason="agents are no tools")
def test_a_gated_agent_whose_call_waits(grace, tmp_path):
    """It goes on when its call has been decided, and pays once."""
    driver, case = StrandsDriver(), Case(tmp_path, STORIES["nested"])
    agent = driver.agent(case, "main", [GraceHooks(grace, {"pay": "confirm", HELPER: "confirm"})])
    result = agent("Pay.")
    for action in (HELPER, "pay"):
        (request,) = grace.approvals.pending()
        assert action == grace.approvals.approve(request.id, by="ana").action
        result = agent(responses(grace, result))
    assert ("end_turn", [PAID]) == (result.stop_reason, lines(tmp_path / "effects.jsonl"))


def test_an_answer_in_place_of_the_tool(tmp_path):
    """The reviewer's words are the result, and no error."""
    answer = gk.InterventionResponse(gk.InterventionAction.INPUT, user_input="Ann was paid by hand.")
    with contextlib.closing(open_grace(tmp_path, lambda _: answer)) as grace:
        shop = Shop(grace, {"pay": "confirm"})
        shop.agent("Pay.")
        (heard,) = shop.agent.model.heard
        assert ("success", "Ann was paid by hand.", []) == (heard["status"], heard["content"][0]["text"], shop.paid)


def test_a_tool_that_the_program_calls(tmp_path):
    """It is gated, too, outside of any invocation."""
    refusal = gk.InterventionResponse(gk.InterventionAction.CANCEL, reviewer="ana")
    with contextlib.closing(open_grace(tmp_path, lambda _: refusal)) as grace:
        shop = Shop(grace, {"pay": "confirm"})
        assert "Not run" in str(shop.agent.tool.pay(amount=5))
        assert [] == shop.paid


def test_a_gate_that_is_misspelt(grace):
    """It is an error before the model is called."""
    shop = Shop(grace, {"PAY": "confirm"})
    with pytest.raises(gk.GateError, match="did you mean 'pay'"):
        shop.agent("Pay.")
    assert [] == shop.paid


async def test_an_agent_that_is_called_while_an_exception_is_handled(grace):
    """The exception is not the agent's."""
    shop = Shop(grace, {})
    try:
        raise ValueError("of the program")
    except ValueError:
        await shop.agent.invoke_async("Pay.")
    grace.flush()
    (trace,) = grace.store.query()
    assert ("completed", "Pay.", [5]) == (trace.grace["status"], trace.task.objective, shop.paid)


def test_the_page(tmp_path, monkeypatch, capsys):
    """Its program asks, and goes on in another process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("strands.agent.agent.BedrockModel", lambda: Model("refund", {"order": "A-17", "euros": 40}))
    program = PAGE.read_text("utf-8").split("```py\n")[1].partition("```")[0]

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["shop.py", *arguments])
        exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out.strip()

    assert "waits for a person" == start("Refund A-17.")
    with pytest.raises(SystemExit, match="Nobody has decided yet"):
        start()
    with contextlib.closing(gk.Grace(store=f"sqlite:///{tmp_path}/app.db")) as grace:
        (request,) = grace.approvals.pending()
        grace.approvals.approve(request.id, by="ana")
        assert "done" == start()
        (trace,) = grace.store.query()
        assert ("completed", [("refund", "ok")]) == (
            trace.grace["status"],
            [(c["name"], c["status"]) for c in trace.grace["calls"]],
        )
