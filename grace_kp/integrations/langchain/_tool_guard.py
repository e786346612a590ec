"""The last check before a tool starts: only the decided call starts, once, wherever below the agent it is called.

LangChain calls `on_tool_start` of its handlers right before a tool runs, also in subagents and inside other tools. The guard is such a
handler. It is active while `GraceMiddleware` runs a tool, and raises where a gated tool would start without a decision.
"""

from __future__ import annotations

import dataclasses
import threading
import warnings
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from langchain_core.tracers.context import register_configure_hook

from grace_kp.errors import ActionCancelled
from grace_kp.gating import GateEntry, NotCheckable, NotStarted, Raised, Returned, digest_of
from grace_kp.integrations.langchain._frames import InlineHandler, include_others
from grace_kp.integrations.langchain._tool_schema import copy_values, injected_values, with_parser
from grace_kp.record import current_run, note, shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    from grace_kp.record import Recorder, Run

    Gates: TypeAlias = Callable[[str], bool | None]
    """Whether a call of a tool must not start without a decision, by the tool's name; None where the tool is not gated."""

REGISTRY = "langchain gates"
HOW_TO_GATE = "give the agent that calls it a GraceMiddleware of its own"


class ToolConsent:
    """The consent to one execution of a tool with certain arguments.

    Args:
        digest: SHA-256 of the call.
        again_after_failure: whether the tool may start again after it has raised.
        values: the arguments that the tool runs with; None where the tool must refuse the call.
        proposed: SHA-256 of the call before validation; a request may hold this form, too.
        is_held: True where the tool may run with other values, because no person approved these.
    """

    def __init__(
        self,
        tool: str,
        digest: str,
        *,
        again_after_failure: bool,
        values: Mapping[str, Any] | None = None,
        proposed: str | None = None,
        is_held: bool = False,
    ) -> None:
        self.tool = tool
        self.digest = digest
        self.run_id: UUID | None = None
        self.ended: Returned | Raised | None = None
        self.refused_again = False
        """Whether another start of the tool was refused."""
        self.values = values
        self._proposed = proposed
        self._is_held, self._is_parsing = is_held, False
        self._earlier: tuple[UUID | None, Returned | Raised | None] = (None, None)
        self.again_after_failure = again_after_failure
        self._lock = threading.Lock()

    def hold_tool(self, tool: Any) -> Any:
        """Return a stand-in of the tool that runs with the decided arguments and does not validate them again."""

        def starts() -> None:
            self._is_held = True

        def parse(own: Any, tool_input: Any, tool_call_id: str | None) -> Any:
            if not self._is_parsing:
                return own(tool_input, tool_call_id)  # a recursive call, which is not the decided one
            self._is_parsing = False
            if self.values is None:
                own(tool_input, tool_call_id)
                problem = f"`{self.tool}` refused its arguments when they were proposed"
            elif _digest(self.tool, self.values) == self.digest:
                return {**copy_values(self.values), **injected_values(tool, tool_input, tool_call_id)}
            else:
                problem = f"the arguments of `{self.tool}` were changed after the decision"
            self.run_id, self.ended = self._earlier
            self.refused_again = self.ended is not None
            raise NotStarted(f"{problem}; it was not run")

        return with_parser(tool, parse, starts)

    def hold_request(self, request: Any, tool: Any) -> Any:
        """Return a request whose tool runs with the decided arguments only."""
        if tool is None:
            return request  # LangGraph reports the unknown tool to the model
        held = self.hold_tool(tool)
        if request.tool is tool:
            return request.override(tool=held)
        # HumanInTheLoopMiddleware replaces the request's tool by one of these.
        tools = [held if each is tool else each for each in getattr(request.runtime, "tools", ())]
        return request.override(runtime=dataclasses.replace(request.runtime, tools=tools))

    def problem_with(self, inputs: Mapping[str, Any], run_id: UUID, parent: UUID | None) -> str:
        """Claim the start of the tool; return why it must not start, or an empty string."""
        if self.run_id is not None and parent == self.run_id:
            return ""  # the tool calls a tool of the same name
        if not self._is_held:
            return f"another tool has replaced `{self.tool}` since the decision; it was not run"
        is_proposed = self._proposed is not None and _digest(self.tool, inputs, ordered=False) == self._proposed
        if not is_proposed and _digest(self.tool, inputs) != self.digest:
            self.refused_again = self.ended is not None
            return f"`{self.tool}` is called with other arguments than the decision covers; it was not run"
        with self._lock:
            failed = isinstance(self.ended, Raised) and isinstance(self.ended.error, Exception)
            if self.run_id is not None and not (failed and self.again_after_failure):
                self.refused_again = True
                return f"`{self.tool}` has been started once, and the decision covers one start; it was not run again"
            self._earlier = self.run_id, self.ended
            self.run_id, self.ended, self._is_parsing = run_id, None, True
        return ""


def _digest(name: str, arguments: Mapping[str, Any], *, ordered: bool = True) -> str:
    """Return the digest of a call; an empty string, which no call has, where its arguments have no digest."""
    try:
        return call_digest(name, arguments, ordered=ordered)
    except ActionCancelled:
        return ""


class ToolGuard(InlineHandler):
    """Stops gated tools that start without a decision, below one tool call of an agent."""

    raise_error = True
    ignore_agent = ignore_llm = False
    ignore_chat_model = ignore_retry = ignore_chain = ignore_retriever = ignore_custom_event = True

    def __init__(self, needs_decision: Gates, consent: ToolConsent | None, outer: ToolGuard | None) -> None:
        super().__init__()
        self._needs_decision = needs_decision
        self._consent = consent
        self._outer = outer

    def on_tool_start(self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID, **event: Any) -> None:
        name, inputs = (serialized or {}).get("name") or event.get("name") or "", event.get("inputs")
        arguments = {"input": input_str} if inputs is None else inputs
        innermost = _GUARD.get() or self  # below a nested agent, LangChain still calls the outermost guard
        consent = innermost._consent
        if consent is not None and consent.tool == name:
            problem = consent.problem_with(arguments, run_id, event.get("parent_run_id"))
            if problem:
                raise NotStarted(problem)
            return
        guard: ToolGuard | None = innermost
        while guard is not None and (needs_decision := guard._needs_decision(name)) is None:
            guard = guard._outer
        if guard is None:
            return
        if needs_decision:
            problem = f"this call of `{name}` has no decision"
            record_undecided(name, arguments, current_run(), outcome="cancelled", problem=problem)
            raise NotStarted(f"{problem}, which is gated: {HOW_TO_GATE}; it was not run")
        record_undecided(name, arguments, current_run(), outcome="ungated", problem="the tool ran without a decision")

    def on_llm_start(self, *_args: object, **_kwargs: object) -> None:
        include_others()

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: object) -> None:  # noqa: ARG002 - as LangChain calls it
        self._end(run_id, Returned())

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:  # noqa: ARG002
        self._end(run_id, Raised(error))

    def _end(self, run_id: UUID, outcome: Returned | Raised) -> None:
        consent = (_GUARD.get() or self)._consent
        if consent is not None and consent.run_id == run_id:
            consent.ended = outcome


_GUARD: ContextVar[ToolGuard | None] = ContextVar("grace_kp_tool_guard", default=None)
register_configure_hook(_GUARD, inheritable=True, handle_class=ToolGuard)


@contextmanager
def guard_tools(needs_decision: Gates, consent: ToolConsent | None) -> Iterator[None]:
    """Check every tool that starts in this block; `consent` permits one execution."""
    token = _GUARD.set(ToolGuard(needs_decision, consent, _GUARD.get()))
    try:
        yield
    finally:
        _GUARD.reset(token)


class GatedTools:
    """The tools gated by the middlewares of one runtime, for handlers that see a tool start outside any guard."""

    def __init__(self) -> None:
        self.gates: tuple[weakref.WeakMethod[Gates], ...] = ()
        self._warned: set[str] = set()

    @classmethod
    def of(cls, recorder: Recorder) -> GatedTools:
        found: GatedTools = recorder.adapters.setdefault(REGISTRY, cls())
        return found

    def add(self, needs_decision: Gates) -> None:
        self.gates = (*(ref for ref in self.gates if ref() is not None), weakref.WeakMethod(needs_decision))

    def check(self, tool: str, inputs: Mapping[str, Any], run: Run | None) -> None:
        """Record a start of a gated tool outside any guard, and warn once for each tool."""
        gates = [] if _GUARD.get() is not None else [ref() for ref in self.gates]
        if all(each is None or each(tool) is None for each in gates):
            return
        problem = "the tool ran without a decision, outside the agent that gates it"
        record_undecided(tool, inputs, run, outcome="ungated", problem=problem)
        if tool not in self._warned:
            self._warned.add(tool)
            message = f"the tool {tool!r} is gated by a GraceMiddleware of this runtime and ran without a decision: {HOW_TO_GATE}"
            warnings.warn(message, UserWarning, stacklevel=2)


@shielded
def record_undecided(tool: str, inputs: Mapping[str, Any], run: Run | None, *, outcome: str, problem: str) -> None:
    entry = GateEntry.new(tool, inputs, entry_id=uuid4().hex)
    entry.state(outcome, problem=problem)
    keep_entry(entry.fields, run)


def keep_entry(fields: dict[str, Any], run: Run | None) -> None:
    if run is None:
        note("gate entry", "decided outside of any recorded run")
    else:
        run.decisions.append(fields)


def call_digest(name: str, arguments: Mapping[str, Any], *, ordered: bool = True) -> str:
    try:
        return digest_of({"name": name, "args": dict(arguments)}, lasting=True, ordered=ordered)
    except NotCheckable as error:
        raise ActionCancelled(f"{name} was not run: one of its arguments {error.problem}") from error
