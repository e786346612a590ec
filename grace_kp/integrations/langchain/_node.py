"""A node of a LangGraph graph: as one gated action, and as a resumable program.

A gate in a node asks by an interrupt, and recognises its calls when the node runs again.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.errors import ActionCancelled, ActionNotApproved
from grace_kp.gating import view
from grace_kp.integrations.langchain._interrupts import ORIGIN, InboxQuestion, Interrupting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.approvals import Inbox
    from grace_kp.gating import Ledger, Policy
    from grace_kp.runtime import Grace


def gated_node(
    grace: Grace,
    node: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    floor: str | None = None,
    policy: Policy | str | None = None,
    show: Sequence[str] | None = None,
    otherwise: Callable[[Any, ActionNotApproved], Any] | None = None,
    judge: Literal["always", "when_needed", "never"] = "never",
) -> Any:
    """Return a node that runs only with the consent of its gate.

        graph.add_node("pay", gated_node(grace, pay, floor="confirm"))

    In a graph with a checkpointer, a LangGraph interrupt asks a person, in the form of LangChain's human-in-the-loop requests. Resume the
    graph with `Command(resume={"decisions": [{"type": "approve"}]})`. The gate decides once, and the node's function runs once for the
    decision, however often the graph runs the node. Without a checkpointer, the gate asks the runtime's reviewer.

    Args:
        grace: the runtime.
        node: a function or coroutine function of the state; None returns a decorator.
        name: the name for policies and people; the function's own name when None.
        floor: the level is never milder than this; `deny` blocks without asking.
        policy: floor and thresholds in one; see `Policy`.
        show: the keys of the state that the reviewer sees and may change; the whole state, as one argument, when None.
        otherwise: returns the node's update when it may not run, from the state and the error; the error is raised when None.
        judge: whether a model judges the run so far before the gate decides; see `Grace.gate`.

    Raises:
        GateError: the node cannot be gated; the message says why.
    """
    if node is None:
        return lambda target: gated_node(
            grace, target, name=name, floor=floor, policy=policy, show=show, otherwise=otherwise, judge=judge
        )
    action_name = name or getattr(node, "__name__", type(node).__name__)
    guard = grace.gate(floor=floor, policy=policy, name=action_name, judge=judge)
    guard(node)  # raises GateError now, not when the graph runs
    first = next(iter(inspect.signature(node).parameters), "state")

    def prepare(state: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        shown = {first: state} if show is None else {name: state[name] for name in show if name in state}

        def act(**changed: Any) -> Any:
            return node(changed[first] if show is None else {**state, **changed}, *args, **kwargs)

        async def act_async(**changed: Any) -> Any:
            return await act(**changed)

        action: Any = act_async if inspect.iscoroutinefunction(node) else act
        keyword = inspect.Parameter.KEYWORD_ONLY
        action.__signature__ = inspect.Signature([inspect.Parameter(name, keyword) for name in shown])
        action.__name__ = action.__qualname__ = action_name
        return guard(action), shown

    if inspect.iscoroutinefunction(node):

        @functools.wraps(node)
        async def gate_async(state: Any, *args: Any, **kwargs: Any) -> Any:
            action, shown = prepare(state, args, kwargs)
            try:
                return await action(**shown)
            except ActionNotApproved as error:
                if otherwise is None:
                    raise
                return otherwise(state, error)

        return gate_async

    @functools.wraps(node)
    def gate(state: Any, *args: Any, **kwargs: Any) -> Any:
        action, shown = prepare(state, args, kwargs)
        try:
            return action(**shown)
        except ActionNotApproved as error:
            if otherwise is None:
                raise
            return otherwise(state, error)

    return gate


MAX_NODES = 2_000
LONGEST_WAIT = 300.0
TOO_LONG = "the gated calls before this one in its node have not been decided on; it was not run"


class RunningNode:
    """One gated call in the node that runs in this context."""

    interrupts = True

    def __init__(self, configurable: dict[str, Any]) -> None:
        self._configurable = configurable
        self.thread = str(configurable.get("thread_id", ""))
        self.place = str(configurable.get("checkpoint_ns", ""))
        self.reviewer = Interrupting(functools.partial(_strings_in_checkpoint, configurable))
        self.origin = ORIGIN
        self._order = _NODES.of(configurable)
        self._number = 0

    def asking(self, approval: str) -> Interrupting:
        return InboxQuestion(approval, functools.partial(_strings_in_checkpoint, self._configurable))

    def whereabouts(self) -> dict[str, Any]:
        return {"thread_id": self.thread, "checkpoint_ns": self.place}

    def position(self) -> dict[str, Any]:
        """Return the whereabouts, the graph's step, and the attempt at the node, which is new in each run of the node."""
        return {**self.whereabouts(), "step": self._order.step, "attempt": self._order.attempt}

    def remember(self, inbox: Inbox) -> None:
        """Store the thread with its configuration, so that it can be resumed once its requests are decided."""
        from grace_kp.integrations.langchain._resume import keep_thread

        keep_thread(inbox.tables, self._configurable)

    def begin(self) -> None:
        self._number = self._order.begin()

    def wait(self) -> None:
        self._order.wait(self._number)

    async def wait_async(self) -> None:
        ends = time.monotonic() + LONGEST_WAIT
        while self._order.turn != self._number:
            if time.monotonic() > ends:
                raise ActionCancelled(TOO_LONG)
            await asyncio.sleep(0.001)

    def end(self) -> None:
        self._order.end(self._number)

    @property
    def answered(self) -> bool:
        """Whether an interrupt of this node was answered before."""
        pad = self._configurable.get("__pregel_scratchpad")
        waiting = getattr(pad, "get_null_resume", None)
        return bool(getattr(pad, "resume", None)) or (callable(waiting) and waiting(False) is not None)

    def may_have_forgotten(self, ledger: Ledger) -> bool:
        """Return whether an interrupt was answered here, but a ledger in memory does not know the thread."""
        if getattr(ledger, "lasting", False):
            return False
        first = bool(ledger.put_action(f"langgraph|{self.thread}", b"{}", only_if=None))
        return first and self.answered

    def ledger_key(self, action: str) -> str:
        return f"langgraph|{self.thread}|{self.place}|{self._number}|{action}"


def _strings_in_checkpoint(configurable: dict[str, Any]) -> Iterator[str]:
    """Yield the strings in the checkpoint with which this node started."""
    read = configurable.get("__pregel_read")
    for argument in getattr(read, "args", ()):
        if isinstance(argument, Mapping):
            savers = [getattr(channel, "checkpoint", None) for channel in argument.values()]
            stack = [view(save()).root for save in savers if callable(save)]
            while stack:
                node = stack.pop()
                if node.quoted:
                    yield node.text
                stack.extend(child for _, child in node.children)


class CallOrder:
    """The gated calls of one run of a node, numbered and decided in call order.

    LangGraph matches answers to questions by their order in the node. Concurrent calls that ask in another order when the node runs again
    would get each other's answers.
    """

    def __init__(self, step: int) -> None:
        self.step, self.attempt = step, os.urandom(8).hex()
        self._condition = threading.Condition()
        self._count = 0
        self.turn = 0
        self._over: set[int] = set()

    def begin(self) -> int:
        with self._condition:
            self._count += 1
            return self._count - 1

    def wait(self, number: int) -> None:
        with self._condition:
            if not self._condition.wait_for(lambda: self.turn == number, LONGEST_WAIT):
                raise ActionCancelled(TOO_LONG)

    def end(self, number: int) -> None:
        with self._condition:
            self._over.add(number)
            while self.turn in self._over:
                self._over.discard(self.turn)
                self.turn += 1
            self._condition.notify_all()


class NodeRegistry:
    """The call order of running and recent nodes, by LangGraph's scratchpad, which is new in each run."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[tuple[int, int], tuple[Any, CallOrder]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, configurable: dict[str, Any]) -> CallOrder:
        pad, runtime = configurable.get("__pregel_scratchpad"), configurable.get("__pregel_runtime")
        node_key = (id(pad), getattr(getattr(runtime, "execution_info", None), "node_attempt", 1))
        with self._lock:
            kept = self._nodes.get(node_key)
            if kept is None or kept[0] is not pad:
                kept = self._nodes[node_key] = (pad, CallOrder(getattr(pad, "step", 0)))
                while len(self._nodes) > MAX_NODES:
                    self._nodes.popitem(last=False)
            return kept[1]


_NODES = NodeRegistry()


def tools_of_graph() -> Mapping[str, Any] | None:
    """Return the tools of the graph that runs here, by name; None where they are unknown."""
    call = (_configurable() or {}).get("__pregel_call")
    # The scheduler of a node's task belongs to the loop, which knows the other nodes.
    loop = getattr(getattr(call, "keywords", {}).get("schedule_task"), "__self__", None)
    bound = [getattr(node, "bound", None) for node in getattr(loop, "nodes", {}).values()]
    registries = [tools for each in bound if (tools := getattr(each, "tools_by_name", None)) is not None]
    return {name: tool for tools in registries for name, tool in tools.items()} if registries else None


def number_of_send() -> int | None:
    """Return the number, from 0, of this task among those that LangGraph sent together; None where it states none."""
    from langgraph.config import get_config

    path: tuple[Any, ...] = (get_config().get("metadata") or {}).get("langgraph_path") or ()
    number = path[1] if len(path) > 1 and path[0] == "__pregel_push" else None
    return number if isinstance(number, int) else None


def resumable() -> RunningNode | None:
    """Return a call in the node that runs here, if its graph has a checkpointer; None elsewhere."""
    configurable = _configurable()
    return RunningNode(configurable) if configurable and configurable.get("__pregel_checkpointer") else None


def _configurable() -> dict[str, Any] | None:
    from langgraph.config import get_config

    try:
        return get_config().get("configurable")
    except RuntimeError:  # outside of any graph
        return None
