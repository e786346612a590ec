"""The adapter for Pydantic AI passes the conformance kit, with a function in the place of the model."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from grace_kp.integrations.pydantic_ai import GraceCapability, deferred_results
from tests.integrations.scenario import Conformance, Ran

REQUESTS = TypeAdapter(DeferredToolRequests)


def model_of(case, name):
    def turn_after(messages):
        parts = [
            part for message in messages for part in message.parts if part.part_kind in {"tool-return", "retry-prompt"}
        ]
        return case.next_turn(name, {part.tool_call_id: str(part.content) for part in parts})

    async def answer(messages, _info):
        turn = turn_after(messages)
        return ModelResponse(
            [ToolCallPart(each.tool, each.args, each.id) for each in turn.calls] or [TextPart(turn.text)]
        )

    async def stream(messages, _info):
        turn = turn_after(messages)
        for number, each in enumerate(turn.calls):
            yield {number: DeltaToolCall(each.tool, json.dumps(each.args), tool_call_id=each.id)}
        if not turn.calls:
            yield turn.text

    return FunctionModel(answer, stream_function=stream)


def agent_of(case, *capabilities, **options):
    return Agent(
        model_of(case, "main"),
        name="main",
        capabilities=capabilities,
        output_type=[str, DeferredToolRequests],
        **options,
    )


class PydanticDriver:
    framework = "pydantic-ai"
    lacks = frozenset({"handoff", "nested"})

    def run(self, case, grace, gates, saved, *, stream):
        async def go():
            agent = agent_of(case, *([GraceCapability(grace, gates)] if grace else []))
            for tool in case.tools_of("main"):
                agent.tool_plain(retrying(tool), retries=3)
            options = {"conversation_id": case.session}
            if saved:
                kept = json.loads(saved)
                results = deferred_results(grace, kept["requests"])
                if results is None:
                    return Ran(None, True, saved)
                messages = ModelMessagesTypeAdapter.validate_json(kept["messages"])
                options |= {"message_history": messages, "deferred_tool_results": results}
            prompt = None if saved else case.prompt
            if stream:
                async with agent.run_stream(prompt, **options) as result:
                    output = await result.get_output()
            else:
                result = await agent.run(prompt, **options)
                output = result.output
            if not isinstance(output, DeferredToolRequests):
                return Ran(output)
            requests = REQUESTS.dump_json(output).decode()
            return Ran(None, True, json.dumps({"messages": result.all_messages_json().decode(), "requests": requests}))

        return asyncio.run(go())


def retrying(tool):
    """Raise the framework's own exception for a failure that the model may try again."""
    import functools

    from pydantic_ai import ModelRetry

    @functools.wraps(tool)
    def call(**arguments):
        try:
            return tool(**arguments)
        except RuntimeError as error:
            raise ModelRetry(str(error)) from error

    return call


class TestPydanticAI(Conformance):
    driver = PydanticDriver()
