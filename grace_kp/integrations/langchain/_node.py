"""A node of a LangGraph graph: behind a gate as one action, and as a resumable program.

A gate in a node asks by an interrupt, and knows its calls again when the node is run again.
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
    """Return a node that runs only with the consent that its gate asks for.

        graph.add_node("pay", gated_node(grace, pay, floor="confirm"))

    In a graph with a checkpointer a person is asked by a LangGraph interrupt, in the form of LangChain's human-in-the-loop requests, and
    the graph is resumed with `Command(resume={"decisions": [{"type": "approve"}]})`. The decision is made once and the node's function
    runs once for it, however often the graph runs the node. Without a checkpointer, the runtime's reviewer is asked.

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
    guard(node)  # what cannot be gated is an error now
    first = next(iter(inspect.signature(node).parameters), "state")

    def prepared(state: Any, call: Callable[[Any], Any]) -> tuple[Any, dict[str, Any]]:
        shown = {first: state} if show is None else {name: state[name] for name in show if name in state}

        def act(**changed: Any) -> Any:
            return call(changed[first] if show is None else {**state, **changed})

        async def act_async(**changed: Any) -> Any:
            return await call(changed[first] if show is None else {**state, **changed})

        action: Any = act_async if inspect.iscoroutinefunction(node) else act
        keyword = inspect.Parameter.KEYWORD_ONLY
        action.__signature__ = inspect.Signature([inspect.Parameter(name, keyword) for name in shown])
        action.__name__ = action.__qualname__ = action_name
        return guard(action), shown

    def refused(state: Any, error: ActionNotApproved) -> Any:
        if otherwise is None:
            raise error
        return otherwise(state, error)

    if inspect.iscoroutinefunction(node):

        @functools.wraps(node)
        async def gated_async(state: Any, *args: Any, **kwargs: Any) -> Any:
            action, shown = prepared(state, lambda changed: node(changed, *args, **kwargs))
            try:
                return await action(**shown)
            except ActionNotApproved as error:
                return refused(state, error)

        return gated_async

    @functools.wraps(node)
    def gated(state: Any, *args: Any, **kwargs: Any) -> Any:
        action, shown = prepared(state, lambda changed: node(changed, *args, **kwargs))
        try:
            return action(**shown)
        except ActionNotApproved as error:
            return refused(state, error)

    return gated


MAX_NODES = 2_000
LONGEST_WAIT = 300.0
TOO_LONG = "the gated calls before this one in its node have not been decided on; it was not run"


class RunningNode:
    """One gated call in the node that runs in this context."""

    def __init__(self, configurable: dict[str, Any]) -> None:
        self._configurable = configurable
        self.thread = str(configurable.get("thread_id", ""))
        self.place = str(configurable.get("checkpoint_ns", ""))
        self.reviewer = Interrupting(functools.partial(_checkpointed, configurable))
        self.origin = ORIGIN
        self._order = _NODES.of(configurable)
        self._number = 0

    def asking(self, approval: str) -> Interrupting:
        return InboxQuestion(approval, functools.partial(_checkpointed, self._configurable))

    def whereabouts(self) -> dict[str, Any]:
        return {"thread_id": self.thread, "checkpoint_ns": self.place}

    def position(self) -> dict[str, Any]:
        """Return the whereabouts, the step of the graph, and the attempt at the node, which differs each time the node is run again."""
        return {**self.whereabouts(), "step": self._order.step, "attempt": self._order.attempt}

    def remember(self, inbox: Inbox) -> None:
        """Keep the thread with its configuration, so that it is found when its requests are decided."""
        from grace_kp.integrations.langchain._resume import keep_thread

        keep_thread(inbox.tables, self._configurable)

    def begin(self) -> None:
        self._number = self._order.begin()

    def wait(self) -> None:
        self._order.wait(self._number)

    async def wait_async(self) -> None:
        ends = time.monotonic() + LONGEST_WAIT
        while not self._order.is_next(self._number):
            if time.monotonic() > ends:
                raise ActionCancelled(TOO_LONG)
            await asyncio.sleep(0.001)

    def end(self) -> None:
        self._order.end(self._number)

    @property
    def answered(self) -> bool:
        """Whether a person has answered an interrupt of this node before."""
        pad = self._configurable.get("__pregel_scratchpad")
        waiting = getattr(pad, "get_null_resume", None)
        return bool(getattr(pad, "resume", None)) or (callable(waiting) and waiting(False) is not None)

    def may_have_forgotten(self, ledger: Ledger) -> bool:
        """Return whether a person has answered here before, and the ledger, which ends with a process, does not know the thread."""
        if getattr(ledger, "lasting", False):
            return False
        first = bool(ledger.put_action(f"langgraph|{self.thread}", b"{}", only_if=None))
        return first and self.answered

    def ledger_key(self, action: str) -> str:
        """Return the thread, the node's task, and the number of the call in it."""
        return f"langgraph|{self.thread}|{self.place}|{self._number}|{action}"


def _checkpointed(configurable: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of the state that this node was started with, as LangGraph keeps it in its checkpoint."""
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
    """The gated calls of one run of a node, numbered in the order of their calls and decided on in that order.

    LangGraph matches answers to questions by their order in the node. Two calls that run side by side, and ask in another order when the
    node is run again, would get each other's answers.
    """

    def __init__(self, step: int) -> None:
        self.step, self.attempt = step, os.urandom(8).hex()
        self._condition = threading.Condition()
        self._count = 0
        self._turn = 0
        self._over: set[int] = set()

    def begin(self) -> int:
        with self._condition:
            self._count += 1
            return self._count - 1

    def is_next(self, number: int) -> bool:
        return self._turn == number

    def wait(self, number: int) -> None:
        with self._condition:
            if not self._condition.wait_for(lambda: self.is_next(number), LONGEST_WAIT):
                raise ActionCancelled(TOO_LONG)

    def end(self, number: int) -> None:
        with self._condition:
            self._over.add(number)
            while self._turn in self._over:
                self._over.discard(self._turn)
                self._turn += 1
            self._condition.notify_all()


class NodeRegistry:
    """The order of calls of the nodes that run now, and of some that have run, by LangGraph's scratchpad, which is new in each run."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[tuple[int, int], tuple[Any, CallOrder]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, configurable: dict[str, Any]) -> CallOrder:
        """Return the order of calls of the node with this configuration."""
        pad = configurable.get("__pregel_scratchpad")
        runtime = configurable.get("__pregel_runtime")
        attempt = getattr(getattr(runtime, "execution_info", None), "node_attempt", 1)
        node_key = (id(pad), attempt)
        with self._lock:
            kept = self._nodes.get(node_key)
            if kept is None or kept[0] is not pad:
                kept = self._nodes[node_key] = (pad, CallOrder(getattr(pad, "step", 0)))
                while len(self._nodes) > MAX_NODES:
                    self._nodes.popitem(last=False)
            return kept[1]


_NODES = NodeRegistry()


def tools_of_graph() -> Mapping[str, Any] | None:
    """Return the tools of the graph that runs here, by name; None where that cannot be found out.

    LangGraph hands a node everything about its task, and the task's loop knows the other nodes.
    """
    from langgraph.config import get_config

    try:
        call = (get_config().get("configurable") or {}).get("__pregel_call")
    except RuntimeError:
        return None
    loop = getattr(getattr(call, "keywords", {}).get("schedule_task"), "__self__", None)
    found: dict[str, Any] = {}
    registries = [
        getattr(getattr(node, "bound", None), "tools_by_name", None) for node in getattr(loop, "nodes", {}).values()
    ]
    for registry in registries:
        found.update(registry or {})
    return found if any(registry is not None for registry in registries) else None


def number_of_send() -> int | None:
    """Return which of the tasks that LangGraph sent out together runs here, from 0; None where it does not state that."""
    from langgraph.config import get_config

    path: tuple[Any, ...] = (get_config().get("metadata") or {}).get("langgraph_path") or ()
    number = path[1] if len(path) > 1 and path[0] == "__pregel_push" else None
    return number if isinstance(number, int) else None


def resumable() -> RunningNode | None:
    """Return a call in the node that runs here, where its graph has a checkpointer; None elsewhere."""
    from langgraph.config import get_config

    try:
        configurable = get_config().get("configurable") or {}
    except RuntimeError:
        return None
    return RunningNode(configurable) if configurable.get("__pregel_checkpointer") else None
