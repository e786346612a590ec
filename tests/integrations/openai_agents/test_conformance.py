"""The adapter for the OpenAI Agents SDK passes the conformance kit, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import pytest

pytest.importorskip("agents")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import Response, ResponseCompletedEvent, ResponseFunctionToolCall, ResponseOutputMessage

from grace_kp.integrations.openai_agents import GraceRunner
from tests.integrations.scenario import HANDOFF, HELPER, Conformance, Ran

QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """A model of the SDK that plays the turns of a case."""

    def __init__(self, case, agent):
        self.case, self.agent = case, agent

    def outputs(self, input_):
        heard = [each for each in input_ if isinstance(each, dict)] if isinstance(input_, list) else []
        answers = {each["call_id"]: str(each["output"]) for each in heard if each.get("type") == "function_call_output"}
        turn = self.case.next_turn(self.agent, answers)
        if not turn.calls:
            part = {"type": "output_text", "text": turn.text, "annotations": []}
            return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])]
        named = {
            HANDOFF: lambda call: (f"transfer_to_{call.args['to']}", {}),
            HELPER: lambda call: (HELPER, {"input": call.args["task"]}),
        }
        made = [(call.id, *named.get(call.tool, lambda call: (call.tool, call.args))(call)) for call in turn.calls]
        return [
            ResponseFunctionToolCall(
                id=uuid4().hex,
                call_id=call_id,
                name=name,
                arguments=json.dumps(args),
                type="function_call",
                status="completed",
            )
            for call_id, name, args in made
        ]

    async def get_response(self, system_instructions, input, *_args, **_options):  # noqa: A002
        usage = Usage(requests=1, input_tokens=3, output_tokens=2, total_tokens=5)
        return ModelResponse(output=self.outputs(input), usage=usage, response_id=None)

    async def stream_response(self, system_instructions, input, *_args, **_options):  # noqa: A002
        response = Response(
            id="r", created_at=0, model="scripted", object="response", output=self.outputs(input), tool_choice="auto", tools=[],
            parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


def agent_of(case, name, **options):
    tools = [function_tool(tool, strict_mode=False) for tool in case.tools_of(name)]
    return Agent(name=name, model=Scripted(case, name), tools=[*tools, *options.pop("tools", ())], **options)


def main_of(case):
    helper = agent_of(case, "helper").as_tool(HELPER, "Help.")
    return agent_of(case, "main", tools=[helper], handoffs=[agent_of(case, "second")])


class OpenAIDriver:
    framework = "openai-agents"
    lacks = frozenset()

    def run(self, case, grace, gates, saved, *, stream):
        async def go():
            agent = main_of(case)
            if grace is None:
                if not stream:
                    return Ran((await Runner.run(agent, case.prompt, run_config=QUIET)).final_output)
                result = Runner.run_streamed(agent, case.prompt, run_config=QUIET)
                [event async for event in result.stream_events()]
                return Ran(result.final_output)
            runner, entry = GraceRunner(grace, gates), saved or case.prompt
            if stream:
                streamed = runner.run_streamed(agent, entry, session=case.session, run_config=QUIET)
                [event async for event in streamed]
                result = streamed.result
            else:
                result = await runner.run(agent, entry, session=case.session, run_config=QUIET)
            return Ran(result.final_output, bool(result.waiting), result.state)

        return asyncio.run(go())


class TestOpenAIAgents(Conformance):
    driver = OpenAIDriver()
