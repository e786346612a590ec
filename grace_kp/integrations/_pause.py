"""A LangGraph node that can be paused: how a gate inside of it asks by an interrupt, and knows its calls again when the node is run again."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from grace_kp.gating import Entry, InterventionResponse
from grace_kp.integrations._hitl import action_request, decisions_in, edited_name, hitl_request
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from grace_kp.gating import InterventionRequest

MAX_QUESTIONS = 4
MAX_NODES = 2_000


class Pausing:
    """The node that runs in this context."""

    def __init__(self, configurable: dict[str, Any]) -> None:
        self._configurable = configurable
        self.thread = str(configurable.get("thread_id", ""))
        self.place = str(configurable.get("checkpoint_ns", ""))
        self.reviewer = Interrupting()

    @property
    def answered(self) -> bool:
        """Whether somebody has answered an interrupt of this node before."""
        pad = self._configurable.get("__pregel_scratchpad")
        waiting = getattr(pad, "get_null_resume", None)
        return bool(getattr(pad, "resume", None)) or (callable(waiting) and waiting(False) is not None)

    def may_have_forgotten(self, keeps: Any) -> bool:
        """Whether somebody has answered here before, and the ledger ends with the process and has never heard of the thread."""
        if getattr(keeps, "lasting", False):
            return False
        first = bool(keeps.put_action(f"langgraph|{self.thread}", b"{}", only_if=None))
        return first and self.answered

    def entry(self, keeps: Any, action: str) -> Entry:
        """The ledger's entry of this call: the thread, the node's task, and which call of the action it is in there."""
        number = _COUNTS.next(self._configurable, action)
        return Entry(keeps, f"langgraph|{self.thread}|{self.place}|{action}|{number}")


class Interrupting:
    """A reviewer that raises LangGraph's interrupt, and takes the answer that the graph is resumed with."""

    pauses = True
    name = "interrupt"

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Ask; returns when the graph is resumed.

        Raises:
            GraphInterrupt: the graph stops here and waits.
        """
        from langgraph.types import interrupt

        from grace_kp.trace._render import render

        score = request.confidence
        told = {
            "level": str(request.level),
            "score": request.decision.confidence_score,
            "breakdown": {} if score is None else score.breakdown,
            "penalties": [] if score is None else score.penalties_applied,
            "reason": request.reason,
        }
        shown = {name: render(value) for name, value in request.arguments.items()}
        action, problem = action_request(request.action, shown, told, ""), request.problem
        for _ in range(MAX_QUESTIONS):
            answer = interrupt(hitl_request([action], problem))
            responses, problem = decisions_in(answer, 1)
            if responses:
                other = edited_name(answer, 0) if responses[0].action is InterventionAction.MODIFY else None
                if other in {None, request.action}:
                    return responses[0]
                problem = (
                    f"decision 0: the name cannot be changed (from {request.action} to {other}); reject it and say so"
                )
        return InterventionResponse(InterventionAction.CANCEL, user_input=f"no usable answer: {problem}")


class Counts:
    """How often each action has been called in each run of a node."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[tuple[int, int], tuple[Any, dict[str, int]]] = OrderedDict()

    def next(self, configurable: dict[str, Any], action: str) -> int:
        """The number of this call, from 0. What counts is LangGraph's own scratchpad: it is made anew whenever a node is run."""
        pad = configurable.get("__pregel_scratchpad")
        runtime = configurable.get("__pregel_runtime")
        attempt = getattr(getattr(runtime, "execution_info", None), "node_attempt", 1)
        key = (id(pad), attempt)
        kept = self._nodes.get(key)
        if kept is None or kept[0] is not pad:
            kept = self._nodes[key] = (pad, {})
            while len(self._nodes) > MAX_NODES:
                self._nodes.popitem(last=False)
        number = kept[1].get(action, 0)
        kept[1][action] = number + 1
        return number


_COUNTS = Counts()


def pausing() -> Pausing | None:
    """The node that runs here, where it belongs to a graph with a checkpointer; None elsewhere."""
    from langgraph.config import get_config

    try:
        configurable = get_config().get("configurable") or {}
    except RuntimeError:
        return None
    return Pausing(configurable) if configurable.get("__pregel_checkpointer") else None
