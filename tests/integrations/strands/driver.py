"""Strands with a scripted model, for the conformance kit."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from strands import Agent, tool
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager

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
    lacks = frozenset({"handoff", "nested"})

    def agent(self, case: Case, hooks: list[Any]) -> Agent:
        return Agent(
            model=ScriptedModel(case, "main"),
            tools=[tool(each) for each in case.tools_of("main")],
            session_manager=FileSessionManager(session_id=case.session, storage_dir=str(case.folder / "sessions")),
            hooks=hooks,
            callback_handler=None,
        )

    def run(
        self, case: Case, grace: gk.Grace | None, gates: Mapping[str, Any], saved: str | None, *, stream: bool
    ) -> Ran:
        agent = self.agent(case, [])
        result = agent(case.prompt)
        return Ran(str(result).strip())
