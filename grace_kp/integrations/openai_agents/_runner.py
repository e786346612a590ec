"""Runs agents of the OpenAI Agents SDK so that Grace records them and gates their tools. The program's own agents are never changed.

A run uses copies of all agents that handoffs and tools can reach. Hooks of the copies record, and their tools are wrapped. A gated call is decided
when the model has proposed it, and again just before it runs: an approval in the SDK's `RunState` entitles to nothing. A refusal is the tool's
output, because the model would not see an exception. Only a call that waits for a person interrupts the run.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import logging
import time
import types
import weakref
from contextlib import ExitStack
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from grace_kp.errors import GateError, MissingExtra, UnknownApproval
from grace_kp.integrations._tools import OpenCall, refusal_after
from grace_kp.record import attempt
from grace_kp.runtime import Call

try:
    from agents import Agent, AgentHooks, FunctionTool, Handoff, Runner, RunState
except ImportError:
    raise MissingExtra("grace_kp.integrations.openai_agents", "openai-agents") from None

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from grace_kp.gating import Policy, Verdict
    from grace_kp.runtime import Grace

FRAMEWORK, MARK = "openai-agents", '{"grace_kp": 1, '
SEEN = {"ComputerTool", "ShellTool", "LocalShellTool", "ApplyPatchTool", "CustomTool"}
"""Tools that run in this process, where hooks see them. All others except FunctionTool run at the provider."""

_log = logging.getLogger("grace_kp.gate")
_SCOPE: ContextVar[_Scope] = ContextVar("grace_kp_openai_agents")
_try = partial(attempt, FRAMEWORK)


class GraceResult:
    """The result of a run. Attributes of the SDK's result, such as `final_output`, are attributes of this one, too.

    Attributes:
        result: the SDK's result; its agents are the copies that ran.
        waiting: the verdicts of the calls that wait for a person; empty when the run has ended.
        state: what `GraceRunner.run` continues from, in any process: a JSON text with the conversation in it. None when nothing waits.
        session: the name of the conversation.
    """

    def __init__(self, result: Any, waiting: Sequence[Verdict], state: str | None, session: str) -> None:
        self.result, self.waiting, self.state, self.session = result, list(waiting), state, session

    @property
    def last_agent(self) -> Any:
        """The agent that ran last, as the program defined it."""
        return _original(self.result.last_agent)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("result"), name)


class GraceStream:
    """A streamed run: iterate over the SDK's events, then read `result`, which is None before the end."""

    def __init__(self, events: AsyncIterator[Any]) -> None:
        self._events = events
        self.result: GraceResult | None = None

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._events:
            if isinstance(event, GraceResult):
                self.result = event
            else:
                yield event


class GraceRunner:
    """Runs agents as `agents.Runner` does, records them, and gates their tools by the confidence of the run so far."""

    def __init__(
        self, grace: Grace, gates: Mapping[str, Policy | str] | None = None, *, domain: str | None = None
    ) -> None:
        """Gate the named tools, also behind handoffs and in agents that are tools.

        Args:
            grace: the runtime; its own policies apply, too.
            gates: policies or floors by the name of a tool or a glob, such as `{"pay": "confirm"}`. An exact name wins over a glob, a longer
                glob over a shorter one.
            domain: the domain of the recorded runs; the runtime's when None.
        """
        self.grace, self.domain, self.tools = grace, domain, grace.tool_gates(gates, "GraceRunner")

    async def run(
        self, agent: Agent[Any], entry: Any, *, session: Any = None, context: Any = None, **options: Any
    ) -> GraceResult:
        """Run an agent until it ends or waits for people.

        Args:
            agent: the agent.
            entry: the input of `Runner.run`, or the `state` of a result that waits.
            session: the name of the conversation: a decision in one entitles to nothing in another. A Session of the SDK is passed on, and its
                id is the name. Made up when None; a state has its own.
            context: the SDK's context. Pass it again with a state, unless it is a mapping.
            **options: for `Runner.run`, such as `max_turns`, `hooks` and `run_config`.

        Raises:
            GateError: a gate names a tool that only the provider can hold, a tool has its own `needs_approval`, or the text looks like a state
                but names no request of this store.
            TypeError: `entry` is a RunState, whose agents are not gated.
        """
        return [each async for each in self._events(agent, entry, session, context, options)][-1]  # type: ignore[no-any-return]

    def run_streamed(
        self, agent: Agent[Any], entry: Any, *, session: Any = None, context: Any = None, **options: Any
    ) -> GraceStream:
        """Do what `run` does, and stream the SDK's events. A gated call ends the stream only if it waits."""
        return GraceStream(self._events(agent, entry, session, context, options, streamed=True))

    async def _events(
        self, agent: Any, entry: Any, session: Any, context: Any, options: dict[str, Any], *, streamed: bool = False
    ) -> AsyncIterator[Any]:
        kept = await self._kept(entry)
        if session is not None and not isinstance(session, str):
            options, session = {**options, "session": session}, session.session_id
        waiting: list[Verdict] = []
        talk, goes_on = _Conversation(self, kept, session, entry), True
        root, agent = _Scope(talk, ""), talk.copied(agent)
        # The tools of MCP servers are known only when they are listed.
        if not any(each.mcp_servers for each in talk.copies.values()):
            self.tools.offer(talk.names)
            self.tools.warn_unmatched()
        if kept is not None:
            entry = await RunState.from_json(agent, kept["state"], context_override=context)
        root.open(talk.objective, agent.name, resumed=kept is not None)
        try:
            if kept is not None:
                await talk.settle(entry)
            while goes_on:
                with root.entered():
                    start: Any = Runner.run_streamed if streamed else Runner.run
                    result = start(agent, entry, context=context, **options)
                    result = result if streamed else await result
                try:
                    if streamed:
                        async for event in result.stream_events():
                            yield event
                finally:
                    if streamed and not result.is_complete:
                        result.cancel()
                goes_on, context = False, None
                if result.interruptions:
                    entry = result.to_state()
                    waiting, goes_on = await talk.settle(entry)
        except BaseException as error:
            _try(partial(root.run.fail, error))
            raise
        if kept is not None and result.interruptions and not waiting:
            names = ", ".join(sorted({str(each.tool_name) for each in result.interruptions}))
            raise GateError(f"the state waits for {names}; pass the same gates as before")
        root.end(result.final_output)
        yield GraceResult(result, waiting, talk.save(entry) if waiting else None, talk.session)

    async def _kept(self, entry: Any) -> Any:
        """Return the content of a state. Its requests must exist, so that no user can write one."""
        if isinstance(entry, RunState):
            raise TypeError("pass GraceResult.state; the agents of a RunState are not gated")
        if not isinstance(entry, str) or not entry.startswith(MARK):
            return None
        try:
            kept = json.loads(entry)
            requests = [each["verdict"]["approval"] for each in kept["asked"]]
            for each in requests or [""]:
                await asyncio.to_thread(self.grace.approvals.get, each)
        except (ValueError, KeyError, TypeError, UnknownApproval) as error:
            raise GateError("the input looks like a saved state, but names no request of this store") from error
        return kept


class _Scope:
    """A run of agents: the outermost one, or that of an agent that is a tool. `path` names it in its conversation."""

    run: Any

    def __init__(self, talk: _Conversation, path: str) -> None:
        self.talk, self.path, self.key = talk, path, f"{talk.session}|{talk.prefix}{path}"
        self.verdicts: dict[str, Verdict] = {}  # of the latest turn, by _key
        self.started: float | None = None

    def open(self, objective: str, name: str, *, resumed: bool) -> None:
        more: dict[str, Any] = {"session": self.talk.session, "domain": self.talk.runner.domain}
        more["resume"] = self.key if resumed else None
        self.run = self.talk.runner.grace.open_run(objective, name=name, framework=FRAMEWORK, **more)
        if not resumed and not self.path:
            _try(lambda: self.run.user_message(objective))

    def entered(self) -> ExitStack:
        """Return a block in which this scope and its run are current."""
        stack = ExitStack()
        stack.callback(_SCOPE.reset, _SCOPE.set(self))
        _try(lambda: stack.enter_context(self.run.current()))
        return stack

    def end(self, result: object, error: Exception | None = None) -> bool:
        """End the run; return whether it waits for people."""
        if waits := any(map(self.holds, self.talk.asked)):
            _try(lambda: self.run.suspend(self.key))
        else:
            _try(lambda: self.run.close(result) if error is None else self.run.fail(error))
        return waits

    def holds(self, asked: dict[str, Any]) -> bool:
        """Return whether a call that waits is in this run, or in one inside of it."""
        return f"{asked['path']}/".startswith(f"{self.path}/")

    async def decide(self, agent: Any, proposed: Sequence[tuple[Any, str, Any]]) -> None:
        """Decide on calls of the latest turn, each an action, a call id and arguments, on the same evidence."""
        turn = f"{self.talk.prefix}{self.path}.{self.talk.turns.get(self.path, 0)}"
        for wait in (False, None):
            some = [each for each in proposed if each[0].pauses is (wait is False)]
            calls = [Call(action, each, id=(FRAMEWORK, self.talk.session, turn, id_)) for action, id_, each in some]
            verdicts = await self.run.adecide(calls, wait=wait) if calls else []
            for (action, id_, each), verdict in zip(some, verdicts, strict=True):
                place = {"path": self.path, "agent": agent.name, "key": _key(action.name, id_, each)}
                self.verdicts[place["key"]] = verdict
                self.talk.asked = [entry for entry in self.talk.asked if entry | place != entry]
                if verdict.waits:
                    self.talk.asked.append({**place, "verdict": verdict.to_dict()})

    async def verdict(self, agent: Any, action: Any, call_id: str, arguments: Any) -> Verdict:
        """Return the verdict about a call of the latest turn."""
        key = _key(action.name, call_id, arguments)
        if key not in self.verdicts or self.verdicts[key].waits:
            await self.decide(agent, [(action, call_id, arguments)])
        return self.verdicts[key]

    async def hear(self, agent: Any, response: Any) -> None:
        """Record a turn of the model, and decide on its gated calls."""
        self.talk.turns[self.path] = self.talk.turns.get(self.path, 0) + 1
        self.verdicts = {}
        # The calls of earlier turns have ended, also those that a guardrail of the SDK answered before their request was decided.
        self.talk.asked = [each for each in self.talk.asked if not self.holds(each)]
        _try(lambda: self._record(agent, response))
        gated = getattr(agent, "_grace_gated", {})
        calls = [each for each in response.output if each.type == "function_call" and each.name in gated]
        read = [(gated[each.name], each.call_id, _arguments(each.arguments)) for each in calls]
        once = {_key(action.name, call_id, each): (action, call_id, each) for action, call_id, each in read}
        try:
            await self.decide(agent, [each for each in once.values() if each[2] is not None])
        except Exception:  # noqa: BLE001 — each call is decided again before it runs
            _log.exception("a gate failed; its calls are refused when they are to run")

    def _record(self, agent: Any, response: Any) -> None:
        model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
        parts = [part for item in response.output if item.type == "message" for part in item.content]
        usage = {name: getattr(response.usage, name) for name in ("input_tokens", "output_tokens")}
        text = "".join(getattr(part, "text", "") for part in parts)
        name = model if isinstance(model, str) else type(agent.model).__name__ if agent.model else "default"
        self.run.model_call(name, text=text, usage=usage, started=self.started)


class _Conversation:
    """A run with its copies of agents, and what must be kept while it waits."""

    def __init__(self, runner: GraceRunner, kept: Any, session: str | None, entry: Any) -> None:
        if kept is not None and session not in {None, kept["session"]}:
            raise GateError(f"the state belongs to the session {kept['session']!r}, not to {session!r}")
        kept = kept or {"session": session or uuid4().hex, "objective": _text_of(entry), "turns": {}, "asked": []}
        self.session: str = kept["session"]
        self.objective: str = kept["objective"]
        self.turns: dict[str, int] = kept["turns"]  # how often the model answered in each scope, by path
        self.asked: list[dict[str, Any]] = kept["asked"]  # the calls that wait
        self.prefix = hashlib.sha256(self.objective.encode()).hexdigest()[:12]
        self.runner, self.names = runner, set[str]()
        self.copies: dict[int, Any] = {}

    def save(self, state: Any) -> str:
        """Return the state as text."""
        kept = {"session": self.session, "objective": self.objective, "turns": self.turns, "asked": self.asked}
        return json.dumps({"grace_kp": 1, **kept, "state": state.to_json()})

    async def settle(self, state: Any) -> tuple[list[Verdict], bool]:
        """Let every decided call go on; return the verdicts of those that wait, and whether any goes on.

        For the SDK they are all approved: the tool decides again, and refuses by its output.
        """
        goes_on, waiting = False, []
        for item in state.get_interruptions():
            if (action := getattr(item.agent, "_grace_gated", {}).get(item.tool_name)) is None:
                continue
            arguments = _arguments(item.arguments)
            places = {"agent": item.agent.name, "key": _key(action.name, item.call_id, arguments)}
            asked = [each["verdict"] for each in self.asked if each | places == each]
            # Outside of any run: the run of a nested agent records the decision when it goes on.
            waits = [each for kept in asked if (each := await action.averdict(kept, arguments=arguments)).waits]
            waiting += waits
            if not waits:
                self.asked = [each for each in self.asked if each | places != each]
                state.approve(item)
                goes_on = True
        return waiting, goes_on

    def copied(self, agent: Any) -> Any:
        """Return the copy of an agent that runs in its place, with copies of all agents that it can reach."""
        agent = _original(agent)
        if (new := self.copies.get(id(agent))) is None:
            new, kind, known = copy.copy(agent), type(agent), dict[int, Any]()
            self.copies[id(agent)] = new

            def replaced(self_: Any, each: Any, make: Callable[[Any, Any], Any]) -> Any:
                if id(each) not in known:
                    wrapped = make(self_, each)
                    known[id(each)] = known[id(wrapped)] = each, wrapped
                return known[id(each)][1]

            def held(name: str, make: Callable[[Any, Any], Any]) -> property:
                """Return an attribute that also has what hooks and tools have added to the agent or to its copy since."""

                def read(self_: Any) -> list[Any]:
                    mine: list[Any] = vars(self_)[name]
                    added = [each for each in getattr(agent, name) if id(each) not in known]
                    mine[:] = [replaced(self_, each, make) for each in [*mine, *added]]
                    return mine

                return property(read, lambda self_, value: vars(self_).__setitem__(name, value))

            async def get_mcp_tools(self_: Any, context: Any) -> list[Any]:
                return [replaced(self_, each, self._tool) for each in await kind.get_mcp_tools(self_, context)]

            own: dict[str, Any] = {"tools": held("tools", self._tool), "handoffs": held("handoffs", self._handoff)}
            own.update(_grace_original=agent, _grace_gated={}, get_mcp_tools=get_mcp_tools)
            # In the class, so that copies which the SDK makes of this one have it, too.
            new.__class__ = type(kind.__name__, (kind,), own)
            new.hooks, new.tools, new.handoffs = _Hooks(agent.hooks), [], []
            _ = new.tools, new.handoffs  # replaces all that they can reach
        return new

    def _handoff(self, _agent: Any, handoff: Any) -> Any:
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
        name, nested = tool.name, getattr(tool, "_agent_instance", None)
        action = self.runner.tools.action(name, getattr(tool, "params_json_schema", None))
        if getattr(tool, "needs_approval", False) is not False:
            raise GateError(f"the tool {name!r} has its own needs_approval; state a gate instead")
        if not isinstance(tool, FunctionTool):
            if type(tool).__name__ not in SEEN:
                self.runner.tools.refuse([name], "the provider runs it")
            elif action.gated:
                raise GateError(f"GraceRunner cannot gate {name!r}, because it is no function tool")
            return tool
        self.names.add(name)
        new, invoke = copy.copy(tool), tool.on_invoke_tool
        if nested is not None:
            new._agent_instance = self.copied(nested)
            try:
                invoke = _rebound(invoke, nested, new._agent_instance)
            except (AttributeError, TypeError, ValueError) as error:
                raise GateError(f"the agent in the tool {name!r} can be neither recorded nor gated") from error
        if action.gated:
            agent._grace_gated[name] = action
            new.needs_approval = partial(_waits, agent, action)
        new.on_invoke_tool = partial(_invoke, agent, action, invoke, nested and nested.name)
        return new


async def _waits(agent: Any, action: Any, _context: Any, arguments: dict[str, Any], call_id: str) -> bool:
    try:
        return (await _SCOPE.get().verdict(agent, action, call_id, arguments)).waits
    except Exception:  # noqa: BLE001 — it is decided again before it runs
        _log.exception("the gate of %s failed; the call is refused when it is to run", action.name)
        return False


async def _invoke(agent: Any, action: Any, invoke: Any, nested: str | None, context: Any, text: str) -> Any:
    """Run a tool: under a claim if it is gated, and recorded. What the SDK holds for approved does not count here."""
    arguments, claim = _arguments(text), None
    try:
        scope = _SCOPE.get()
        if action.gated:
            verdict = await scope.verdict(agent, action, context.tool_call_id, arguments)
            if not verdict.runs:
                return verdict.result if verdict.has_result else verdict.message
            claim = await verdict.abegin()
            if not claim.started:
                return claim.result if claim.has_result else claim.message
            arguments, text = verdict.arguments, json.dumps(verdict.arguments) if verdict.edited else text
    except Exception as error:  # noqa: BLE001 — the gate fails closed
        if not action.gated:  # a copy that another runner runs
            return await invoke(context, text)
        return refusal_after(error, action.name)
    call = OpenCall(scope.run, action, arguments or {}, claim)
    if nested is not None:
        path = f"{scope.path}/{scope.talk.turns.get(scope.path, 0)}:{context.tool_call_id}"
        scope = _Scope(scope.talk, path)
        scope.open(str((arguments or {}).get("input", text)), nested, resumed=path in scope.talk.turns)
    errors: list[Exception] = []
    waits = False
    try:
        with scope.entered() if nested is not None else ExitStack():
            result = await _observed(invoke, errors)(context, text)
    except BaseException as error:
        if nested is not None:
            _try(partial(scope.run.fail, error))
        call.report("failed", error) if isinstance(error, Exception) else call.report("unknown")
        raise
    finally:
        call.leave()
    failure = errors[0] if errors else None
    waits = nested is not None and scope.end(result, failure)
    ended = ("release",) if waits else ("failed", failure) if failure is not None else ("done", result)
    await asyncio.to_thread(call.report, *ended) if claim is not None else call.report(*ended)
    return result


def _observed(invoke: Any, errors: list[Exception]) -> Any:
    """Return the function of a tool that also states the exceptions which the SDK turns into texts for the model."""
    if (handled := getattr(invoke, "_on_handled_error", None)) is None:
        return invoke

    def note(tool: Any, error: Exception, *rest: Any) -> None:
        errors.append(error)
        handled(tool, error, *rest)

    new = copy.copy(invoke)
    new._on_handled_error = note
    return new


def _rebound(invoke: Any, agent: Any, new_agent: Any) -> Any:
    """Return the function of an agent's tool for a copy of the agent. The SDK holds the agent in a closure."""
    call, new = invoke._invoke_tool_impl, copy.copy(invoke)
    cells = dict(zip(call.__code__.co_freevars, call.__closure__, strict=True))
    if getattr(cells.get("self"), "cell_contents", None) is not agent:
        raise ValueError("it runs another agent")
    cells["self"] = types.CellType(new_agent)
    bound = types.FunctionType(call.__code__, call.__globals__, call.__name__, call.__defaults__, tuple(cells.values()))
    bound.__kwdefaults__ = call.__kwdefaults__
    new._invoke_tool_impl = bound
    return new


def _original(agent: Any) -> Any:
    return getattr(agent, "_grace_original", agent)


def _arguments(text: str | None) -> Any:
    """Return the arguments that the model wrote; None if they are not a JSON object, which no gate lets run."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _key(tool: str, call_id: str, arguments: Any) -> str:
    return json.dumps([tool, call_id, arguments], sort_keys=True)


def _text_of(entry: Any) -> str:
    """Return what the user wrote last."""
    texts = [each["content"] for each in entry if isinstance(each, dict) and each.get("role") == "user"]
    last = entry if isinstance(entry, str) else texts[-1] if texts else ""
    return last if isinstance(last, str) else " ".join(str(part.get("text", "")) for part in last)


def _hook(name: str, record: Callable[..., Any] | None = None) -> Any:
    async def hook(self: Any, *args: Any, **options: Any) -> None:
        scope = _SCOPE.get(None)
        awaited = _try(lambda: record(scope, *args, **options)) if record is not None and scope is not None else None
        if awaited is not None:
            await awaited
        if self.own is not None:
            await getattr(self.own, name)(*args, **options)

    return hook


def _ended(scope: _Scope, _context: Any, _agent: Any, tool: Any, result: Any) -> None:
    if not isinstance(tool, FunctionTool):
        scope.run.open_tool(tool.name, {}).close(result)


class _Hooks(AgentHooks[Any]):  # type: ignore[misc]
    """The hooks of a copy: they record, and call the agent's own."""

    def __init__(self, own: Any) -> None:
        self.own = own

    on_start, on_end, on_tool_start = _hook("on_start"), _hook("on_end"), _hook("on_tool_start")
    on_llm_start, on_tool_end = (
        _hook("on_llm_start", lambda scope, *_: setattr(scope, "started", time.time())),
        _hook("on_tool_end", _ended),
    )
    on_llm_end = _hook("on_llm_end", lambda scope, _context, agent, response: scope.hear(agent, response))
    on_handoff = _hook("on_handoff", lambda scope, _, agent, source: scope.run.handoff(agent.name, source=source.name))
