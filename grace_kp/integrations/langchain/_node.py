"""A node of a LangGraph graph: as one gated action, and as a program that asks by interrupts and recognises its calls when it runs again.

A question has the form of LangChain's human-in-the-loop middleware, so that front ends made for it work. A request lists actions and the
decisions that are allowed about each. An answer lists one decision for each action, in the same order. `Interrupting` asks in a node;
`InboxQuestion` asks about a request that also waits in the inbox, where the first answer decides.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.errors import ActionCancelled, ActionNotApproved
from grace_kp.gating import InterventionResponse, ProgramAnswer, alarm_sentences, plain, view
from grace_kp.integrations.langchain._resume import APPROVALS, keep_thread
from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.approvals import Inbox
    from grace_kp.gating import InterventionRequest, Ledger, Policy
    from grace_kp.runtime import Grace

    Values = Mapping[str, Any]

ORIGIN = "langgraph"
MAX_QUESTIONS = 4
PERSON = "person"
"""Reviewer where an answer names none."""
MAX_NAME = 200
DECISIONS = {
    "approve": InterventionAction.PROCEED,
    "edit": InterventionAction.MODIFY,
    "reject": InterventionAction.CANCEL,
    "respond": InterventionAction.INPUT,
}


def action_request(
    name: str, shown: Values, reasons: Values, unseen: Sequence[str], approval: str | None, hidden: Values | None = None
) -> dict[str, Any]:
    """Return one action, with the reasons for the question: `level`, `score` (0 to 1), `breakdown`, `penalties` and `reason`.

    `hidden` is the number of characters that `shown` does not show, by argument. The action cannot be approved as it is.
    """
    wants = "needs your help" if reasons["level"] == InterventionLevel.ESCALATE else "needs your approval"
    action = {
        "name": name,
        "args": dict(shown),
        "description": f"{name} {wants}. {reasons['reason']}\n\nTool: {name}\nArgs: {dict(shown)}",
        **reasons,
    }
    if approval is not None:
        action["approval"] = approval
    if hidden:
        action["hidden"] = dict(hidden)
        listed = ", ".join(f"{argument} ({count:,} characters)" for argument, count in hidden.items())
        words = "It cannot be approved; supply it with an edit, or reject."
        action["description"] += f"\n\nHidden content: {listed}. {words}"
    if unseen:
        action["unseen"] = list(unseen)
        words = f"To approve, name it: {_unseen_form(unseen)}."
        action["description"] += f"\n\nNot shown in full: {', '.join(unseen)}. {words}"
    return action


def _unseen_form(names: Sequence[str]) -> str:
    return json.dumps({"type": "approve", "unseen": list(names)}, ensure_ascii=False)


def hitl_request(actions: list[dict[str, Any]], problem: str = "") -> dict[str, Any]:
    """Return the value of one interrupt for all waiting actions; `problem` says why the previous answer was not usable."""
    reviews = [
        {
            "action_name": action["name"],
            "allowed_decisions": [kind for kind in DECISIONS if kind != "approve" or not action.get("hidden")],
        }
        for action in actions
    ]
    return {"action_requests": actions, "review_configs": reviews, **({"problem": problem} if problem else {})}


def looks_into_inbox(answer: Any) -> bool:
    return isinstance(answer, Mapping) and APPROVALS in answer and "decisions" not in answer


@dataclass(frozen=True, slots=True)
class ActionAnswer:
    """The decision about one action in the answer to a question."""

    response: InterventionResponse
    name: object = None
    """The action name that an edit states, if any."""
    unseen: Any = ()
    """Names of arguments that the reviewer accepts without seeing them in full."""

    def name_problem(self, name: str, number: int) -> str:
        if self.name in {None, name}:
            return ""
        return f"decision {number}: the name cannot be changed (from {name} to {self.name}); reject it and say so"

    def unseen_problem(self, names: Sequence[str], number: int) -> str:
        """Return the problem if a decision does not name every argument that was not shown in full, else an empty string."""
        missing = [name for name in names if name not in self.unseen]
        if not missing:
            return ""
        return f"decision {number}: {', '.join(missing)} cannot be shown in full; to run the call anyway, add {_unseen_form(missing)}"


def decisions_in(answer: Any, count: int, approvals: Sequence[str | None] = ()) -> tuple[list[ActionAnswer], str]:
    """Return one decision for each action, or none and the problem with the answer.

    Args:
        answer: the value that the graph was resumed with.
        count: the number of actions in the question.
        approvals: ids of their requests in the inbox. A decision need not name its request, but must not name another.
    """
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if decisions is None and count == 1 and isinstance(answer, Mapping) and "type" in answer:
        decisions = [answer]
    if not isinstance(decisions, list | tuple):
        return [], 'the answer must be {"decisions": [...]}'
    if len(decisions) != count:
        return [], f"{count} decisions are needed, one for each action in order, and {len(decisions)} were given"
    found: list[ActionAnswer] = []
    for number, decision in enumerate(decisions):
        answered = _decision(decision, approvals[number] if approvals else None)
        if isinstance(answered, str):
            return [], f"decision {number}: {answered}"
        found.append(answered)
    return found, ""


def _decision(decision: Any, approval: str | None) -> ActionAnswer | str:
    """Return a decision, or the problem with it."""
    if not isinstance(decision, Mapping):
        return f"must be an object with a type, not {type(decision).__name__}"
    kind, words, by = decision.get("type"), decision.get("message"), decision.get("by")
    if by is not None and not (isinstance(by, str) and by.strip() and len(by) <= MAX_NAME):
        return f"by must be a name of 1 to {MAX_NAME} characters"
    who = PERSON if by is None else by.strip()
    if words is not None and not isinstance(words, str):
        return f"message must be a string, not {type(words).__name__}"
    if not isinstance(kind, str) or kind not in DECISIONS:
        return f"type must be one of {', '.join(DECISIONS)}, not {kind!r:.40}"
    if kind == "respond" and not words:
        return "respond needs a message"
    name, arguments = None, None
    if kind == "edit":
        edited = decision.get("edited_action")
        name, arguments = (edited.get("name"), edited.get("args")) if isinstance(edited, Mapping) else (None, None)
        if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
            return 'edit needs edited_action: {"name": ..., "args": {...}}'
        if not arguments:
            return "edit needs arguments; approve runs the call as it is, reject does not run it"
    if approval is not None and (named := decision.get("approval", approval)) != approval:
        return f"it names the request {named!r:.60}, but the question is about {approval}"
    unseen = decision.get("unseen")
    reply, changed = words if kind in {"reject", "respond"} else None, None if arguments is None else dict(arguments)
    return ActionAnswer(
        InterventionResponse(DECISIONS[kind], user_input=reply, modified=changed, reviewer=who),
        name if isinstance(name, str) else None,
        unseen if isinstance(unseen, list | tuple) else (),
    )


class Interrupting:
    """A reviewer that raises LangGraph's interrupt. Its answer is the value that the graph is resumed with.

    The checkpoint keeps the question, so the question holds no secret that the checkpoint does not hold already.
    """

    pauses = True
    name = "interrupt"

    def __init__(self, checkpointed: Callable[[], Iterator[str]], approval: str | None = None) -> None:
        self._checkpointed, self._approval = checkpointed, approval

    def stores(self, text: str) -> bool:
        """Return whether a string in the checkpoint contains this one."""
        return any(text in held for held in self._checkpointed())

    def review(self, request: InterventionRequest) -> InterventionResponse:
        problem = request.problem
        for _ in range(MAX_QUESTIONS):
            response, problem = self._ask(request, problem)
            if response is not None:
                return response
        return InterventionResponse(InterventionAction.CANCEL, user_input=f"no usable answer: {problem}")

    def _ask(self, request: InterventionRequest, problem: str) -> tuple[InterventionResponse | None, str]:
        """Ask once; return the response, or None and the problem with the answer."""
        from langgraph.types import interrupt

        approval, own = self._approval, request.arguments
        views = {name: view(value) for name, value in own.items()}
        shown = {name: plain(seen.root) for name, seen in views.items()}
        unseen = [name for name, seen in views.items() if seen.opaque]
        action = action_request(request.action, shown, _reasons(request), unseen, approval, request.hidden)
        answer = interrupt(hitl_request([action], problem))
        if approval is not None and looks_into_inbox(answer):
            return LOOK, ""
        decisions, problem = decisions_in(answer, 1, [approval])
        if problem:
            return None, problem
        [decision] = decisions
        response, runs_as_shown = decision.response, unseen
        if response.action is InterventionAction.MODIFY:
            # Where the reviewer returned the JSON form of a value unchanged, the original object is used.
            changes = {
                name: own[name] if name in shown and value == shown[name] else value
                for name, value in (response.modified or {}).items()
            }
            response = replace(response, modified=changes)
            runs_as_shown = [name for name in unseen if changes.get(name, own[name]) is own[name]]
        elif response.action is not InterventionAction.PROCEED:
            runs_as_shown = []
        problem = decision.name_problem(request.action, 0) or decision.unseen_problem(runs_as_shown, 0)
        if problem:
            return None, problem
        if unseen and response.should_continue and approval is None:
            response = replace(response, selected_option="run unseen")
        return response, ""


def _reasons(request: InterventionRequest) -> dict[str, Any]:
    score = request.confidence
    return {
        "level": str(request.level),
        "score": request.decision.confidence_score,
        "breakdown": {} if score is None else dict(score.evaluated),
        "penalties": [] if score is None else list(score.penalties_applied),
        "reason": request.reason,
        **({"alarms": alarm_sentences(request.alarms, request.arguments, request.sealed)} if request.alarms else {}),
    }


class InboxQuestion(Interrupting):
    """A reviewer that raises LangGraph's interrupt once. The caller judges the answer and may ask again."""

    def review(self, request: InterventionRequest) -> ProgramAnswer:
        response, problem = self._ask(request, request.problem)
        if isinstance(response, ProgramAnswer):
            return response
        return unusable(problem) if response is None else program_answer(response)


LOOK = ProgramAnswer(InterventionAction.RETRY, looks=True)


def unusable(problem: str) -> ProgramAnswer:
    return ProgramAnswer(InterventionAction.CANCEL, problem=problem)


def program_answer(response: InterventionResponse) -> ProgramAnswer:
    """Return a response as a program's answer. Its default reviewer is the graph."""
    fields: dict[str, Any] = {name: getattr(response, name) for name in response.__dataclass_fields__}
    return replace(ProgramAnswer(**fields), reviewer=ORIGIN if response.reviewer == PERSON else response.reviewer)


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

    def run(state: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        shown = {first: state} if show is None else {name: state[name] for name in show if name in state}

        def act(**changed: Any) -> Any:
            return node(changed[first] if show is None else {**state, **changed}, *args, **kwargs)

        async def act_async(**changed: Any) -> Any:
            return await act(**changed)

        action: Any = act_async if inspect.iscoroutinefunction(node) else act
        keyword = inspect.Parameter.KEYWORD_ONLY
        action.__signature__ = inspect.Signature([inspect.Parameter(name, keyword) for name in shown])
        action.__name__ = action.__qualname__ = action_name
        action = guard(action)
        return action(**shown)

    @functools.wraps(node)
    async def gate_async(state: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await run(state, args, kwargs)
        except ActionNotApproved as error:
            if otherwise is None:
                raise
            return otherwise(state, error)

    @functools.wraps(node)
    def gate(state: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(state, args, kwargs)
        except ActionNotApproved as error:
            if otherwise is None:
                raise
            return otherwise(state, error)

    return gate_async if inspect.iscoroutinefunction(node) else gate


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
        return InboxQuestion(functools.partial(_strings_in_checkpoint, self._configurable), approval)

    def whereabouts(self) -> dict[str, Any]:
        return {"thread_id": self.thread, "checkpoint_ns": self.place}

    def position(self) -> dict[str, Any]:
        """Return the whereabouts, the graph's step, and the attempt at the node, which is new in each run of the node."""
        return {**self.whereabouts(), "step": self._order.step, "attempt": self._order.attempt}

    def remember(self, inbox: Inbox) -> None:
        """Store the thread with its configuration, so that it can be resumed once its requests are decided."""
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
