"""A node of a LangGraph graph behind a gate, as one action."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.errors import ActionNotApproved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.gating import Policy
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

    if inspect.iscoroutinefunction(node):

        @functools.wraps(node)
        async def gated_async(state: Any, *args: Any, **kwargs: Any) -> Any:
            action, shown = prepared(state, lambda changed: node(changed, *args, **kwargs))
            try:
                return await action(**shown)
            except ActionNotApproved as error:
                if otherwise is None:
                    raise
                return otherwise(state, error)

        return gated_async

    @functools.wraps(node)
    def gated(state: Any, *args: Any, **kwargs: Any) -> Any:
        action, shown = prepared(state, lambda changed: node(changed, *args, **kwargs))
        try:
            return action(**shown)
        except ActionNotApproved as error:
            if otherwise is None:
                raise
            return otherwise(state, error)

    return gated
