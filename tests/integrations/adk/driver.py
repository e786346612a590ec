"""Google ADK with a scripted model, for the conformance kit."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.version import __version__
from google.genai import types

from grace_kp.integrations.adk import GracePlugin, confirmations
from tests.integrations.scenario import HANDOFF, HELPER, Case, Ran

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import grace_kp as gk

USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=7, candidates_token_count=3)


class ScriptedModel(BaseLlm):
    """Plays the turns of one agent of a case."""

    case: Any
    agent: str

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        answers = {
            each.function_response.id: str(each.function_response.response)
            for content in llm_request.contents
            for each in content.parts or ()
            if each.function_response is not None
        }
        turn = self.case.next_turn(self.agent, answers)
        parts = [types.Part(text=turn.text)] if turn.text else []
        for call in turn.calls:
            name, args = call.tool, call.args
            if name == HANDOFF:
                name, args = "transfer_to_agent", {"agent_name": args["to"]}
            elif name == HELPER:
                args = {"request": args["task"]}
            parts.append(types.Part(function_call=types.FunctionCall(id=call.id, name=name, args=args)))
        if stream and turn.text:
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=turn.text[:2])]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=USAGE)


def failure(tool: object, args: object, tool_context: object, error: Exception) -> dict[str, Any]:
    """Give the model the error of a tool, which would otherwise end the run."""
    return {"error": str(error)}


class AdkDriver:
    framework = "google-adk"
    # Before, a nested agent that pauses is begun anew or ends its root agent when it is resumed.
    lacks = frozenset({"nested"} if tuple(map(int, __version__.split(".")[:2])) < (2, 13) else ())

    def run(
        self, case: Case, grace: gk.Grace | None, gates: Mapping[str, Any], saved: str | None, *, stream: bool
    ) -> Ran:
        return asyncio.run(self.arun(case, grace, gates, saved, stream=stream))

    def agent(self, case: Case, name: str, **more: Any) -> LlmAgent:
        model = ScriptedModel(model="scripted", case=case, agent=name)
        return LlmAgent(
            name=name, model=model, description=name, tools=case.tools_of(name), on_tool_error_callback=failure, **more
        )

    async def arun(
        self, case: Case, grace: gk.Grace | None, gates: Mapping[str, Any], saved: str | None, *, stream: bool
    ) -> Ran:
        helper = self.agent(case, "helper", mode="single_turn")
        main = self.agent(case, "main", sub_agents=[self.agent(case, "second"), helper])
        plugins = [] if grace is None else [GracePlugin(grace, gates)]
        service = SqliteSessionService(db_path=str(case.folder / "sessions.db"))
        runner = Runner(app=App(name="shop", root_agent=main, plugins=plugins), session_service=service)
        place = {"app_name": "shop", "user_id": "u1", "session_id": case.session}
        session = await service.get_session(**place)
        message = types.UserContent(parts=[types.Part(text=case.prompt)])
        if session is None:
            await service.create_session(**place)
        elif (answers := confirmations(grace, session)) is not None:
            message = answers
        elif unanswered(session):
            return Ran(waiting=True, saved="the session")
        elif (text := final_text(session)) is not None:
            return Ran(text)
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        run = runner.run_async(user_id="u1", session_id=case.session, new_message=message, run_config=config)
        async with contextlib.aclosing(run) as events:
            async for _ in events:
                pass
        await runner.close()
        session = await service.get_session(**place)
        waiting = unanswered(session)
        return Ran(None if waiting else final_text(session), waiting, "the session" if waiting else None)


def unanswered(session: Any) -> bool:
    """Return whether ADK has asked for a confirmation that nobody has given."""
    calls = [call for event in session.events for call in event.get_function_calls()]
    given = {answer.id for event in session.events for answer in event.get_function_responses()}
    return any(call.name == "adk_request_confirmation" and call.id not in given for call in calls)


def final_text(session: Any) -> str | None:
    if not session.events:  # killed before the first one was kept
        return None
    last = session.events[-1]
    parts = last.content.parts if last.content is not None and last.author != "user" else ()
    return "".join(part.text or "" for part in parts or ()) or None
