"""Strands with a scripted model, for the conformance kit."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING, Any

from strands import Agent, tool
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager

from grace_kp.integrations.strands import GraceHooks, responses
from tests.integrations.scenario import HELPER, Case, Ran

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import grace_kp as gk

USAGE = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}


class ScriptedModel(Model):
    """Plays the turns of one agent of a case."""

    def __init__(self, case: Case, agent: str) -> None:
        self.case, self.agent = case, agent

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "scripted"}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: list[Any], *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        results = [each["toolResult"] for message in messages for each in message["content"] if "toolResult" in each]
        turn = self.case.next_turn(self.agent, {each["toolUseId"]: str(each["content"]) for each in results})
        yield {"messageStart": {"role": "assistant"}}
        if turn.text:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": turn.text}}}
            yield {"contentBlockStop": {}}
        for call in turn.calls:
            args = {"input": call.args["task"]} if call.tool == HELPER else call.args
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": call.id, "name": call.tool}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if turn.calls else "end_turn"}}
        yield {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}}


class StrandsDriver:
    framework = "strands"
    lacks = frozenset({"handoff"} | (set() if hasattr(Agent, "as_tool") else {"nested"}))

    def agent(self, case: Case, name: str, hooks: list[Any], **more: Any) -> Agent:
        tools = [tool(each) for each in case.tools_of(name)]
        if name == "main" and "nested" not in self.lacks:
            tools.append(self.agent(case, "helper", hooks).as_tool(name=HELPER, description="Help."))
        return Agent(
            name=name, model=ScriptedModel(case, name), tools=tools, hooks=hooks, callback_handler=None, **more
        )

    def run(
        self, case: Case, grace: gk.Grace | None, gates: Mapping[str, Any], saved: str | None, *, stream: bool
    ) -> Ran:
        hooks = [] if grace is None else [GraceHooks(grace, gates)]
        for half in case.folder.glob("sessions/session_*"):  # of a process that was killed while Strands created it
            if not (half / "session.json").exists():
                shutil.rmtree(half)
        sessions = FileSessionManager(session_id=case.session, storage_dir=str(case.folder / "sessions"))
        agent = self.agent(case, "main", hooks, session_manager=sessions)
        prompt: Any = case.prompt
        if agent.messages:
            last = agent.messages[-1]
            if (answers := grace and responses(grace, agent)) is not None:
                prompt = answers
            elif agent._interrupt_state.activated:
                return Ran(waiting=True, saved="the session")
            elif "text" in last["content"][0] and last["role"] == "assistant":
                return Ran(last["content"][0]["text"])
            else:
                prompt = None
        result = asyncio.run(streamed(agent, prompt)) if stream else agent(prompt)
        waiting = result.stop_reason == "interrupt"
        return Ran(None if waiting else str(result).strip(), waiting, "the session" if waiting else None)


async def streamed(agent: Agent, prompt: Any) -> Any:
    async for event in agent.stream_async(prompt):
        result = event.get("result")
    return result
