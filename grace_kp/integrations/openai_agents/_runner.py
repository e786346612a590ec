"""Runs agents of the OpenAI Agents SDK so that Grace records them and gates their tools. The agents themselves are never changed.

A run uses copies of all agents that can be reached by handoffs and as tools. The copies' hooks record, and their tools are wrapped. A gated call
is decided when the model has proposed it, and again just before it runs: an approval in the SDK's `RunState` entitles to nothing. A refusal is
the tool's output, because the model would not see an exception. Only a call that waits for a person interrupts the run.
"""

from __future__ import annotations

import asyncio
import copy
import difflib
import fnmatch
import functools
import hashlib
import json
import logging
import time
import types
import weakref
from contextlib import ExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agents import Agent, AgentHooks, FunctionTool, Handoff, Runner, RunState

import grace_kp as gk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

FRAMEWORK = "openai-agents"
MARK = '{"grace_kp": 1, '
BROKEN = "The gate of this tool failed. Not run; do not call it again."
UNREADABLE = "The arguments are not a JSON object, so nobody can decide about them. Not run; do not call it again."
SEEN = {"ComputerTool", "ShellTool", "LocalShellTool", "ApplyPatchTool", "CustomTool"}
"""Tools that run in this process, where hooks see them. Every other tool that is not a FunctionTool runs at the provider."""

_log = logging.getLogger("grace_kp.openai_agents")
_SCOPE: ContextVar[_Scope] = ContextVar("grace_kp_openai_agents_scope")


def _attempt(record: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call what only records. Whatever breaks in it has no effect on the agent."""
    try:
        return record(*args, **options)
    except Exception:
        _log.warning("an agent could not be recorded", exc_info=True)
        return None


class GraceResult:
    """The result of a run. The attributes of the SDK's result, such as `final_output`, are attributes of it, too."""

    def __init__(self, result: Any, session: str, waiting: Sequence[gk.Verdict], state: str | None) -> None:
        self.result = result
        """The SDK's result. Its agents are the copies that ran."""
        self.session = session
        self.waiting = list(waiting)
        """The verdicts of the calls that wait for a person; empty when the run has ended."""
        self.state = state
        """From what `GraceRunner.run` goes on, also in another process: a JSON text that holds the conversation. None when nothing waits."""

    @property
    def last_agent(self) -> Any:
        """The agent that ran last, as the program defined it."""
        return _original(self.result.last_agent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.result, name)


class GraceStream:
    """A streamed run, over its interruptions: iterate over the SDK's events, then read `result`."""

    def __init__(self, events: AsyncIterator[Any]) -> None:
        self._events = events
        self.result: GraceResult | None = None
        """The result, once every event was read."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._events:
            if isinstance(event, GraceResult):
                self.result = event
            else:
                yield event


class GraceRunner:
    """Runs agents as `agents.Runner` does, records them, and gates their tools by the confidence of the run so far."""

    def __init__(
        self, grace: gk.Grace, gates: Mapping[str, gk.Policy | str] | None = None, *, domain: str | None = None
    ) -> None:
        """Gate the named tools, also behind handoffs and inside of agents that are tools.

        Args:
            grace: the runtime; its own policies apply, too.
            gates: policies or floors by the name of a tool or a glob, such as `{"pay": "confirm"}`. An exact name wins over a glob, and a
                longer glob over a shorter one.
            domain: the domain of the recorded runs; the runtime's when None.
        """
        self.grace, self.gates, self.domain = grace, dict(gates or {}), domain
        self.warned: set[str] = set()

    async def run(
        self, agent: Agent[Any], input: Any, *, session: Any = None, context: Any = None, **options: Any
    ) -> GraceResult:
        """Run an agent until it ends or waits for people.

        Args:
            agent: the agent.
            input: text or input items, or the `state` of a result that waits.
            session: names the conversation: a decision in one conversation is none in another. Made up when None, and kept in the state.
                A Session of the SDK is passed on, and its id is the name.
            context: the SDK's context. Pass it again with a state, unless it is a mapping.
            **options: for `Runner.run`, such as `max_turns`, `hooks` and `run_config`.

        Raises:
            GateError: a gate names a tool that runs at the provider; a tool has `needs_approval` of its own; or the text looks like a state,
                and names no request of this store.
            TypeError: `input` is a RunState, whose agents are not gated.
        """
        events = self._events(agent, input, session, context, options, streamed=False)
        return [event async for event in events][-1]  # type: ignore[no-any-return]

    def run_streamed(
        self, agent: Agent[Any], input: Any, *, session: Any = None, context: Any = None, **options: Any
    ) -> GraceStream:
        """Do what `run` does, and stream the SDK's events. Gated calls do not end the stream, unless they wait."""
        return GraceStream(self._events(agent, input, session, context, options, streamed=True))

    async def _events(
        self, agent: Agent[Any], entry: Any, session: Any, context: Any, options: dict[str, Any], *, streamed: bool
    ) -> AsyncIterator[Any]:
        kept = await self._kept(entry)
        if session is not None and not isinstance(session, str):
            options, session = {**options, "session": session}, session.session_id
        talk = _Conversation(self, kept, session, entry)
        agent, waiting, state = talk.copied(agent), [], None
        talk.warn_of_unmatched()
        if kept is not None:
            state = await RunState.from_json(agent, kept["state"], context_override=context)
        talk.root.open(talk.objective, _original(agent).name, resumed=state is not None)
        try:
            waiting, _ = ([], True) if state is None else await talk.settle(state)
            goes_on = True
            while goes_on:
                with talk.root.entered():
                    start = Runner.run_streamed if streamed else Runner.run
                    result: Any = start(agent, entry if state is None else state, context=context, **options)
                    result = result if streamed else await result
                try:
                    async for event in result.stream_events() if streamed else _nothing():
                        yield event
                finally:
                    if streamed and not result.is_complete:
                        result.cancel()
                waiting, goes_on = [], bool(result.interruptions)
                if goes_on:
                    state, context = result.to_state(), None
                    waiting, goes_on = await talk.settle(state)
        except BaseException as error:
            _attempt(talk.root.run.fail, error)
            raise
        talk.root.end(result.final_output)
        saved = talk.save(result.to_state()) if waiting else None
        yield GraceResult(result, talk.session, waiting, saved)

    async def _kept(self, entry: Any) -> Any:
        """Return the content of a state. A text counts as one only if the requests that it names exist, so that no user can write one."""
        if isinstance(entry, RunState):
            raise TypeError("pass GraceResult.state; the agents of a RunState are not gated")
        if not isinstance(entry, str) or not entry.startswith(MARK):
            return None
        try:
            kept = json.loads(entry)
            for each in kept["asked"]:
                await asyncio.to_thread(self.grace.approvals.get, each["verdict"]["approval"])
            return kept if kept["asked"] else kept["none asked"]
        except (ValueError, KeyError, TypeError, gk.UnknownApproval) as error:
            raise gk.GateError("the input looks like a saved state, and names no request of this store") from error

    def policy_for(self, tool: str) -> gk.Policy | str | None:
        """Return the gate of a tool; None without one."""
        globs = [name for name in self.gates if fnmatch.fnmatchcase(tool, name)]
        return self.gates.get(tool) or (self.gates[max(globs, key=len)] if globs else None)

    def warn_once(self, text: str, *args: object) -> None:
        """Warn in the log, once for each text and arguments."""
        if (said := text % args) not in self.warned:
            self.warned.add(said)
            _log.warning("%s", said)


async def _nothing() -> AsyncIterator[Any]:
    return
    yield


class _Scope:
    """One run of agents: the outermost, or that of an agent that is a tool. `path` names it within its conversation."""

    run: Any

    def __init__(self, talk: _Conversation, path: str) -> None:
        self.talk, self.path = talk, path
        self.verdicts: dict[str, gk.Verdict] = {}
        """The verdicts of the latest turn, by `_key`."""
        self.started: float | None = None

    @property
    def turn(self) -> str:
        """The position of the latest turn in the conversation."""
        return f"{self.talk.prefix}{self.path}.{self.talk.turns.get(self.path, 0)}"

    def open(self, objective: str, name: str, *, resumed: bool, inside: Any = None) -> None:
        self.run = self.talk.runner.grace.open_run(
            objective, name=name, framework=FRAMEWORK, session=self.talk.session, domain=self.talk.runner.domain,
            resume=self._resume_key if resumed else None, inside=inside,
        )  # fmt: skip
        if not resumed and inside is None:
            _attempt(self.run.user_message, objective)

    @property
    def _resume_key(self) -> str:
        return f"{self.talk.session}|{self.talk.prefix}{self.path}"

    def entered(self) -> ExitStack:
        """Return a block in which this is the current scope, and its run or call the current one."""
        stack = ExitStack()
        stack.callback(_SCOPE.reset, _SCOPE.set(self))
        if (block := _attempt(self.run.current)) is not None:
            stack.enter_context(block)
        return stack

    def end(self, result: object, error: BaseException | None = None) -> bool:
        """End the run; return whether it waits for people."""
        if any(f"{each['path']}/".startswith(f"{self.path}/") for each in self.talk.asked):
            _attempt(self.run.suspend, self._resume_key)
            return True
        _attempt(self.run.close, result) if error is None else _attempt(self.run.fail, error)
        return False

    async def decide(self, calls: Sequence[tuple[Any, str, Any]]) -> list[gk.Verdict]:
        """Decide on calls of the latest turn: action, call id, arguments."""
        found: dict[int, gk.Verdict] = {}
        for wait in (False, None):
            numbers = [number for number, (action, *_) in enumerate(calls) if action.pauses is (wait is False)]
            made = [
                gk.Call(action, arguments, id=(FRAMEWORK, self.talk.session, self.turn, call_id))
                for action, call_id, arguments in (calls[number] for number in numbers)
            ]
            found.update(zip(numbers, await self.run.adecide(made, wait=wait) if made else (), strict=True))
        return [found[number] for number in range(len(calls))]

    async def verdict(self, agent: Any, action: Any, call_id: str, arguments: Any) -> gk.Verdict:
        """Return the verdict about a call of the latest turn."""
        verdict = self.verdicts.get(_key(action.name, call_id, arguments))
        if verdict is None or verdict.waits:
            (verdict,) = await self.decide([(action, call_id, arguments)])
            self.keep(agent, action, call_id, arguments, verdict)
        return verdict

    def keep(self, agent: Any, action: Any, call_id: str, arguments: Any, verdict: gk.Verdict) -> None:
        """Remember a verdict, and that its call waits."""
        key = _key(action.name, call_id, arguments)
        self.verdicts[key] = verdict
        call = {"path": self.path, "agent": agent.name, "key": key}
        self.talk.asked = [each for each in self.talk.asked if each | call != each]
        if verdict.waits:
            self.talk.asked.append({**call, "verdict": verdict.to_dict()})

    async def hear(self, agent: Any, response: Any) -> None:
        """Record a turn of the model, and decide on all its gated calls on the same evidence."""
        self.talk.turns[self.path] = self.talk.turns.get(self.path, 0) + 1
        self.verdicts = {}
        _attempt(self._record, agent, response)
        gated = self.talk.gated.get(id(agent), {})
        calls = [
            (gated[each.name], each.call_id, arguments)
            for each in response.output
            if getattr(each, "type", None) == "function_call" and each.name in gated
            if (arguments := _arguments(each.arguments)) is not None
        ]
        for call, verdict in zip(calls, await self.decide(calls), strict=True):
            self.keep(agent, *call, verdict)

    def _record(self, agent: Any, response: Any) -> None:
        model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
        parts = [part for item in response.output for part in getattr(item, "content", None) or ()]
        self.run.model_call(
            model if isinstance(model, str) else type(agent.model).__name__ if agent.model else "default",
            text="".join(getattr(part, "text", "") for part in parts if getattr(part, "type", "") == "output_text"),
            usage={name: getattr(response.usage, name) for name in ("input_tokens", "output_tokens")},
            started=self.started,
        )


class _Conversation:
    """A run with its copies of agents, and what must be kept while it waits."""

    def __init__(self, runner: GraceRunner, kept: Any, session: str | None, entry: Any) -> None:
        if kept is not None and session not in {None, kept["session"]}:
            raise gk.GateError(f"the state belongs to the session {kept['session']!r}, not {session!r}")
        kept = kept or {"session": session or uuid4().hex, "objective": _text_of(entry), "turns": {}, "asked": []}
        self.runner = runner
        self.session: str = kept["session"]
        self.objective: str = kept["objective"]
        self.turns: dict[str, int] = kept["turns"]
        """How often the model of each scope answered, by its path."""
        self.asked: list[dict[str, Any]] = kept["asked"]
        """The calls that wait."""
        self.prefix = hashlib.sha256(self.objective.encode()).hexdigest()[:12]
        self.root = _Scope(self, "")
        self.copies: dict[int, Any] = {}
        self.gated: dict[int, dict[str, Any]] = {}
        """The actions of each copy's gated tools, by name."""
        self.tools: set[str] = set()

    def save(self, state: Any) -> str:
        """Return the state as text."""
        kept = {"session": self.session, "objective": self.objective, "turns": self.turns, "asked": self.asked}
        return json.dumps({"grace_kp": 1, **kept, "state": state.to_json()})

    async def settle(self, state: Any) -> tuple[list[gk.Verdict], bool]:
        """Let go on what was decided; return the verdicts of the calls that wait, and whether any call goes on.

        Every decided call is approved for the SDK: its tool decides again, and refuses by its output.
        """
        waiting, goes_on = [], False
        items = [(item, self.gated.get(id(item.agent), {}).get(item.tool_name)) for item in state.get_interruptions()]
        for item, action in items:
            if action is None:
                continue
            arguments = _arguments(item.arguments)
            key = _key(action.name, item.call_id, arguments)
            places = [each for each in self.asked if (each["agent"], each["key"]) == (item.agent.name, key)]
            # Outside of any run: the call may belong to a nested one, which records the decision when it goes on.
            verdicts = [await action.averdict(each["verdict"], arguments=arguments) for each in places]
            waits = [each for each in verdicts if each.waits]
            waiting += waits
            if not waits:
                self.asked = [each for each in self.asked if each not in places]
                state.approve(item)
                goes_on = True
        return waiting, goes_on

    def warn_of_unmatched(self) -> None:
        """Warn of gates that match no tool. Those of MCP servers are known only when they are listed."""
        if not any(agent.mcp_servers for agent in self.copies.values()):
            for name in self.runner.gates:
                if not fnmatch.filter(self.tools, name) and name not in self.tools:
                    near = difflib.get_close_matches(name, self.tools, 1, 0)
                    self.runner.warn_once("GraceRunner(gates=...): no tool is called %r (nearest: %s)", name, near)

    def copied(self, agent: Any) -> Any:
        """Return the copy of an agent that runs in its place, with copies of all agents that it can reach."""
        agent = _original(agent)
        if (known := self.copies.get(id(agent))) is not None:
            return known
        new = self.copies[id(agent)] = copy.copy(agent)
        new._grace_original = agent
        new.hooks = _Hooks(agent.hooks)
        new.tools = [self._tool(new, each) for each in agent.tools]
        new.handoffs = [self._handoff(each) for each in agent.handoffs]
        if agent.mcp_servers:
            listed = type(agent).get_mcp_tools

            async def get_mcp_tools(self_: Any, context: Any) -> list[Any]:
                return [self._tool(new, each) for each in await listed(self_, context)]

            # In the class, so that copies which the SDK makes have it, too.
            new.__class__ = type(type(agent).__name__, (type(agent),), {"get_mcp_tools": get_mcp_tools})
        return new

    def _handoff(self, handoff: Any) -> Any:
        if not isinstance(handoff, Handoff):
            return self.copied(handoff)
        new, invoke = copy.copy(handoff), handoff.on_invoke_handoff

        async def invoke_copied(context: Any, text: str) -> Any:
            return self.copied(await invoke(context, text))

        new.on_invoke_handoff = invoke_copied
        if (target := (getattr(handoff, "_agent_ref", None) or (lambda: None))()) is not None:
            new._agent_ref = weakref.ref(self.copied(target))
        return new

    def _tool(self, agent: Any, tool: Any) -> Any:
        runner, name = self.runner, tool.name
        schema = getattr(tool, "params_json_schema", None)
        action = runner.grace.action(name, schema=schema, policy=runner.policy_for(name))
        if getattr(tool, "needs_approval", False) is not False:
            raise gk.GateError(f"the tool {name!r} has needs_approval of its own; state a gate in its place")
        if not isinstance(tool, FunctionTool):
            if action.gated:
                raise gk.GateError(f"the tool {name!r} cannot be gated, because only function tools can be held")
            if type(tool).__name__ not in SEEN:
                runner.warn_once("the tool %r runs at the provider: its calls are neither recorded nor gated", name)
            return tool
        self.tools.add(name)
        new, invoke, nested = copy.copy(tool), tool.on_invoke_tool, getattr(tool, "_agent_instance", None)
        if nested is not None:
            new._agent_instance = self.copied(nested)
            try:
                invoke = _rebound(invoke, nested, new._agent_instance)
            except (AttributeError, TypeError, ValueError) as error:
                raise gk.GateError(f"the agent in the tool {name!r} can be neither recorded nor gated") from error
        if action.gated:
            self.gated.setdefault(id(agent), {})[name] = action
            new.needs_approval = functools.partial(_waits, agent, action)
        new.on_invoke_tool = functools.partial(_invoke, agent, action, invoke, new._agent_instance if nested else None)
        return new


async def _waits(agent: Any, action: Any, _context: Any, arguments: dict[str, Any], call_id: str) -> bool:
    try:
        return (await _SCOPE.get().verdict(agent, action, call_id, arguments)).waits
    except Exception:
        _log.exception("a gate failed; its call is refused when it is to run")
        return False


async def _invoke(agent: Any, action: Any, invoke: Any, nested: Any, context: Any, text: str) -> Any:
    """Run a tool: under a claim if it is gated, and recorded. The framework's approval counts for nothing here."""
    arguments, claim = _arguments(text), None
    if action.gated:
        try:
            if arguments is None:
                return UNREADABLE
            scope = _SCOPE.get()
            verdict = await scope.verdict(agent, action, context.tool_call_id, arguments)
            if not verdict.runs:
                return verdict.result if verdict.has_result else verdict.message
            claim = await verdict.abegin()
            if not claim.started:
                return claim.result if claim.has_result else claim.message
            arguments = verdict.arguments
            text = json.dumps(arguments) if verdict.edited else text
        except Exception:
            _log.exception("the gate of %s failed; its call is refused", action.name)
            return BROKEN
    return await _run(action, invoke, nested, context, text, arguments or {}, claim)


async def _run(
    action: Any, invoke: Any, nested: Any, context: Any, text: str, arguments: dict[str, Any], claim: Any
) -> Any:
    """Call the tool, and report how it ended."""
    scope = _SCOPE.get()
    call = _attempt(scope.run.open_tool, action, arguments)
    inner = scope
    if nested is not None:
        inner = _Scope(scope.talk, f"{scope.path}/{scope.turn.rpartition('.')[2]}:{context.tool_call_id}")
        known = inner.path in scope.talk.turns
        inner.open(str(arguments.get("input", text)), nested.name, resumed=known, inside=call or scope.run)
    errors: list[Exception] = []
    waits = False
    try:
        with inner.entered() as stack:
            if nested is None and (block := call and _attempt(call.current)) is not None:
                stack.enter_context(block)
            result = await _observed(invoke, errors)(context, text)
    except BaseException as error:
        if nested is not None:
            _attempt(inner.run.fail, error)
        if claim is not None:
            _attempt(claim.failed if isinstance(error, Exception) else lambda _: claim.unknown(), error)
        _ = call and _attempt(call.fail, error)
        raise
    failure = errors[0] if errors else None
    if nested is not None:
        waits = inner.end(result, failure)
    if claim is not None:
        end = claim.release if waits else functools.partial(*(claim.failed, failure) if failure else (claim.done, result))
        await asyncio.to_thread(_attempt, end)
    if call is not None:
        _attempt(call.drop) if waits else _attempt(call.fail, failure) if failure else _attempt(call.close, result)
    return result


def _observed(invoke: Any, errors: list[Exception]) -> Any:
    """Return a tool's function that also states the exceptions which the SDK turns into texts for the model."""
    handled = getattr(invoke, "_on_handled_error", None)
    if handled is None:
        return invoke

    def note(tool: Any, error: Exception, *rest: Any) -> None:
        errors.append(error)
        handled(tool, error, *rest)

    new = copy.copy(invoke)
    new._on_handled_error = note
    return new


def _rebound(invoke: Any, agent: Any, new_agent: Any) -> Any:
    """Return the function of an agent's tool for a copy of the agent, which the SDK holds in a closure."""
    function = invoke._invoke_tool_impl
    names, cells = function.__code__.co_freevars, function.__closure__
    if cells[names.index("self")].cell_contents is not agent:
        raise ValueError("it runs another agent")
    closure = tuple(types.CellType(new_agent) if name == "self" else cell for name, cell in zip(names, cells, strict=True))
    bound = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, closure)
    bound.__kwdefaults__ = function.__kwdefaults__
    new = copy.copy(invoke)
    new._invoke_tool_impl = bound
    return new


def _original(agent: Any) -> Any:
    return getattr(agent, "_grace_original", agent)


def _arguments(text: Any) -> dict[str, Any] | None:
    """Return the arguments that the model wrote; None if they are not a JSON object."""
    try:
        arguments = json.loads(text) if text else {}
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _key(tool: str, call_id: str, arguments: Any) -> str:
    return json.dumps([tool, call_id, arguments], sort_keys=True)


def _text_of(entry: Any) -> str:
    """Return what the user wrote last."""
    if isinstance(entry, str):
        return entry
    texts = [each.get("content") for each in entry if isinstance(each, dict) and each.get("role") == "user"]
    last = texts[-1] if texts else ""
    if isinstance(last, str):
        return last
    return " ".join(str(part.get("text", "")) for part in last if isinstance(part, dict))


def _relay(name: str) -> Any:
    async def relay(self: _Hooks, *args: Any, **options: Any) -> None:
        if self.own is not None:
            await getattr(self.own, name)(*args, **options)

    return relay


class _Hooks(AgentHooks[Any]):
    """The hooks of a copy: record, besides what the agent's own hooks do."""

    def __init__(self, own: Any) -> None:
        self.own = own

    on_start, on_end, on_tool_start = _relay("on_start"), _relay("on_end"), _relay("on_tool_start")
    _llm_start, _llm_end = _relay("on_llm_start"), _relay("on_llm_end")
    _tool_end, _handoff = _relay("on_tool_end"), _relay("on_handoff")

    async def on_llm_start(self, *args: Any, **options: Any) -> None:
        _SCOPE.get().started = time.time()
        await self._llm_start(*args, **options)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        try:
            await _SCOPE.get().hear(agent, response)
        except Exception:
            _log.exception("a gate failed; its calls are refused when they are to run")
        await self._llm_end(context, agent, response)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if not isinstance(tool, FunctionTool) and (call := _attempt(_SCOPE.get().run.open_tool, tool.name, {})):
            _attempt(call.close, result)
        await self._tool_end(context, agent, tool, result)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        _attempt(_SCOPE.get().run.handoff, agent.name, source=source.name)
        await self._handoff(context, agent=agent, source=source)
