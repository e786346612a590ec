"""The plugin for Google ADK passes the conformance kit, and does what only ADK needs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, google_search
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

import grace_kp as gk
from grace_kp.integrations.adk import GracePlugin, confirmations
from tests.integrations.adk.driver import USAGE, AdkDriver, ScriptedModel
from tests.integrations.scenario import HELPER, PAID, STORIES, Case, Conformance, lines, open_grace

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "google-adk.md"
CONFIRM = "adk_request_confirmation"
pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning", "ignore::DeprecationWarning")


class TestGracePlugin(Conformance):
    driver = AdkDriver()


class Model(ScriptedModel):
    """Calls `tool` once, then says done."""

    case: object = None
    agent: str = ""
    tool: str = "pay"
    args: object = None

    async def generate_content_async(self, llm_request, stream=False):
        said = any(part.function_response for content in llm_request.contents for part in content.parts)
        call = types.FunctionCall(id="c1", name=self.tool, args=self.args or {"amount": 5})
        part = types.Part(text="done") if said or not self.tool else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=USAGE)


class Shop:
    def __init__(self, grace, gates, tools=None, model=None, **options):
        self.paid = []
        agent = LlmAgent(name="main", model=model or Model(model="scripted"), tools=tools or [self.pay], **options)
        self.tools = agent.tools
        self.runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=[GracePlugin(grace, gates)]))

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"

    async def session(self, user="u1"):
        service, place = self.runner.session_service, {"app_name": "shop", "user_id": user, "session_id": "s1"}
        return await service.get_session(**place) or await service.create_session(**place)

    async def run(self, message="Pay.", user="u1"):
        """Return what the model was told about its call, last."""
        if isinstance(message, str):
            message = types.UserContent(parts=[types.Part(text=message)])
        await self.session(user)
        heard = []
        async for event in self.runner.run_async(user_id=user, session_id="s1", new_message=message):
            heard += [each.response for each in event.get_function_responses()]
        return heard[-1] if heard else None

    async def answer(self, *, confirmed):
        """Answer ADK's question as its own user interface does."""
        calls = [call for event in (await self.session()).events for call in event.get_function_calls()]
        (question,) = [call for call in calls if call.name == CONFIRM]
        response = types.FunctionResponse(id=question.id, name=CONFIRM, response={"confirmed": confirmed})
        return await self.run(types.Content(role="user", parts=[types.Part(function_response=response)]))


@pytest.fixture
def grace(tmp_path):
    with contextlib.closing(open_grace(tmp_path)) as opened:
        yield opened


async def test_a_confirmation_by_adk_is_no_approval(grace):
    """The call goes on waiting for the inbox, and is resumed after the decision."""
    shop = Shop(grace, {"pay": "confirm"})
    await shop.run()
    (request,) = grace.approvals.pending()
    assert await shop.answer(confirmed=True) is None
    assert ([], [request.id]) == (shop.paid, [each.id for each in grace.approvals.pending()])
    assert confirmations(grace, await shop.session()) is None
    grace.approvals.approve(request.id, by="ana")
    assert {"result": "paid 5"} == await shop.run(confirmations(grace, await shop.session()))
    assert ([5], None) == (shop.paid, confirmations(grace, await shop.session()))


async def test_a_refusal_by_adk_cancels_the_request(grace):
    """The model reads that it did not run, and nobody is asked any more."""
    shop = Shop(grace, {"pay": "confirm"})
    await shop.run()
    assert "Not run" in str(await shop.answer(confirmed=False))
    assert ([], []) == (shop.paid, grace.approvals.pending())


async def test_a_tool_that_asks_itself(grace):
    """A call that its gate lets pass still waits for whoever ADK asks for the tool, and runs once."""
    shop = Shop(grace, {"pay": gk.Policy(unmeasured="silent")})
    shop.tools[:] = [FunctionTool(shop.pay, require_confirmation=True)]
    await shop.run()
    assert ([], []) == (shop.paid, grace.approvals.pending())
    assert {"result": "paid 5"} == await shop.answer(confirmed=True)
    assert [5] == shop.paid


async def test_users_with_equal_sessions_and_calls(grace):
    """The approval of one user never runs the call of another."""
    shop = Shop(grace, {"pay": "confirm"})
    await shop.run()
    (request,) = grace.approvals.pending()
    grace.approvals.approve(request.id, by="ana")
    await shop.run(user="u2")
    assert ([], 1) == (shop.paid, len(grace.approvals.pending()))


async def test_tools_of_the_provider(grace, caplog):
    """A gate for a tool that no hook sees ends the run; without one, the plugin says so, once."""
    model = Model(model="gemini-2.5-flash", tool="google_search", args={})
    shop = Shop(grace, {"google_*": "confirm"}, [google_search], model)
    with pytest.raises(RuntimeError, match="cannot gate 'google_search'"):
        await shop.run()
    with caplog.at_level(logging.WARNING, "grace_kp.gate"):
        await Shop(grace, {}, [google_search], Model(model="gemini-2.5-flash", tool="")).run()
    assert 1 == sum("google_search" in each.message for each in caplog.records if each.name == "grace_kp.gate")


async def test_a_callback_that_changes_approved_arguments(grace, caplog):
    """ADK calls it after all plugins, so that only the log can say so."""

    def change(tool, args, tool_context):
        args["amount"] = 900

    shop = Shop(grace, {"pay": "confirm"}, before_tool_callback=change)
    await shop.run()
    (request,) = grace.approvals.pending()
    grace.approvals.approve(request.id, by="ana")
    await shop.run(confirmations(grace, await shop.session()))
    assert ([900], 1) == (shop.paid, caplog.text.count("pay ran with other arguments"))


async def test_an_agent_that_excludes_plugins(grace):
    """A gate of one of its tools is an error, because no hook sees the calls."""
    inner = Shop(grace, {})
    below = LlmAgent(name="below", model=Model(model="scripted"), tools=[inner.pay])
    helper = AgentTool(
        LlmAgent(name="helper", model=Model(model="scripted"), sub_agents=[below]), include_plugins=False
    )
    with pytest.raises(RuntimeError, match="cannot gate 'pay'"):
        await Shop(grace, {"pay": "confirm"}, [helper]).run()


async def test_a_gate_without_a_tool(grace, caplog):
    """It is named once, with the nearest tool."""
    shop = Shop(grace, {"refund_money": "confirm"})
    for _ in range(2):
        await shop.run()
    assert 1 == sum("'refund_money'" in each.message for each in caplog.records)


@pytest.mark.parametrize("gate", ["send_pay", "PAY", "раy"])
async def test_a_gate_that_is_misspelt(grace, gate):
    """It is an error, or its policy holds for the tool that it looks like."""

    def sendpay(amount: int) -> str:
        """Pay."""

    shop = Shop(grace, {gate: "confirm"}, [sendpay] if gate == "send_pay" else None)
    if gate == "раy":
        await shop.run()
        assert 1 == len(grace.approvals.pending())
    else:
        with pytest.raises(Exception, match="did you mean"):
            await shop.run()
    assert [] == shop.paid


async def test_an_agent_that_runs_in_a_session_of_its_own(tmp_path):
    """ADK cannot resume an AgentTool, so its calls wait for their answer. Its run is nested in the one around it."""
    reviewer = gk.InboxReviewer(ask=lambda _: gk.InterventionResponse(gk.InterventionAction.PROCEED))
    with contextlib.closing(open_grace(tmp_path, reviewer)) as grace:
        inner = Shop(grace, {})
        helper = LlmAgent(name="helper", model=Model(model="scripted"), description="Helps.", tools=[inner.pay])
        model = Model(model="scripted", tool="helper", args={"request": "Pay."})
        shop = Shop(grace, {"pay": "confirm"}, [AgentTool(helper)], model)
        assert {"result": "done"} == await shop.run()
        assert [5] == inner.paid
        grace.flush()
        assert ["helper", "main"] == sorted(trace.name for trace in grace.store.query())
        assert 1 == sum("parent" in trace.grace for trace in grace.store.query())


@pytest.mark.skipif("nested" in AdkDriver.lacks, reason="it cannot be resumed")
async def test_a_gated_agent_whose_call_waits(grace, tmp_path):
    """It goes on when its call has been decided, and pays once."""
    driver, case = AdkDriver(), Case(tmp_path, STORIES["nested"])
    for action in (HELPER, "pay", None):
        ran = await driver.arun(case, grace, {"pay": "confirm", HELPER: "confirm"}, None, stream=False)
        pending = grace.approvals.pending()
        assert [each.action for each in pending] == ([action] if action else [])
        for request in pending:
            grace.approvals.approve(request.id, by="ana")
    assert ("done", [PAID]) == (ran.text, lines(tmp_path / "effects.jsonl"))


async def test_a_run_that_is_abandoned(grace):
    """What its claims began is unknown, and is not run again."""
    begun, shop = asyncio.Event(), Shop(grace, {})

    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.Event().wait()

    shop = Shop(grace, {"pay": "confirm"}, [pay])
    await shop.run()
    (request,) = grace.approvals.pending()
    grace.approvals.approve(request.id, by="ana")
    task = asyncio.create_task(shop.run(confirmations(grace, await shop.session())))
    await begun.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    if (run := grace.live_run("google-adk", (await shop.session()).events[0].invocation_id)) is not None:
        run.close()  # ADK does not report it
    assert "unknown" == grace.approvals.get(request.id).state


def test_the_page(tmp_path, monkeypatch, capsys):
    """Its program asks, goes on in another process, and leaves a trace with tokens and the conversation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        LLMRegistry, "resolve", lambda _name: partial(Model, tool="refund", args={"order": "A-17", "euros": 40})
    )
    program = PAGE.read_text("utf-8").split("```py\n")[1].partition("```")[0]

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["shop.py", *arguments])
        exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})

    start("Refund A-17.")
    with pytest.raises(SystemExit, match="Nobody has decided yet"):
        start()
    with contextlib.closing(gk.Grace(store=f"sqlite:///{tmp_path}/app.db")) as grace:
        (request,) = grace.approvals.pending()
        grace.approvals.approve(request.id, by="ana")
        start()
        assert "done" in capsys.readouterr().out
        (trace,) = grace.store.query()
        assert ("completed", "shop/ann/s1", "Refund A-17.") == (
            trace.grace["status"],
            trace.grace["session"],
            trace.task.objective,
        )
        assert (14, 6) == (trace.grace["usage"]["input_tokens"], trace.grace["usage"]["output_tokens"])
