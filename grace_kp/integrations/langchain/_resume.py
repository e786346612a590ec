"""Carries on the threads of a graph whose requests were decided in the inbox, by resuming their interrupts.

The graph gets no decision by that, only the word to look into the inbox. So a decision is never taken twice, and nothing secret of it gets
into a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from grace_kp.approvals import FOLLOWING, ApprovalState, Resumed
from grace_kp.errors import ActionNotApproved, ApprovalError, GraceError
from grace_kp.integrations.langchain._hitl import APPROVALS, approvals_in
from grace_kp.integrations.langchain._threads import WaitingThread, begin_carrying, end_carrying, waiting_threads
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grace_kp.approvals import Inbox


_NOT_YET = frozenset({ApprovalState.PENDING, ApprovalState.CLAIMED, ApprovalState.UNKNOWN})
"""States in which the graph could not go on: somebody decides, runs the action, or has to find out what it did."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A thread that is about to be resumed."""

    thread: WaitingThread
    token: str
    config: dict[str, Any]
    answers: Mapping[str, Any]
    """By the id of the interrupt."""

    @property
    def approvals(self) -> tuple[str, ...]:
        """The requests that are decided."""
        return tuple(approval for answer in self.answers.values() for approval in answer[APPROVALS])

    @property
    def command(self) -> Any:
        """What the graph is resumed with."""
        return Command(resume=dict(self.answers))


def resume_graph(
    inbox: Inbox, graph: Any, *, thread: str | None, limit: int | None, config: Mapping[str, Any] | None
) -> list[Resumed]:
    """Carry on the threads whose requests are decided; see `Approvals.resume`."""
    _check(graph, limit)
    found: list[Resumed] = []
    for each in _candidates(inbox, graph, thread):
        if limit is not None and sum(resumed.state != "left" for resumed in found) >= limit:
            break
        merged = _config(each, config)
        taken = _taken(inbox, graph, each, merged, graph.get_state(merged))
        if not isinstance(taken, Ready):
            found += taken
            continue
        outcome: Resumed | None = None
        try:
            outcome = _ended(taken, graph.invoke(taken.command, taken.config))
        except Exception as error:  # noqa: BLE001 — the other threads are carried on, too
            outcome = _raised(taken, error)
        finally:
            _close(inbox, graph, taken, outcome)
        found.append(outcome)
    return found


async def aresume_graph(
    inbox: Inbox, graph: Any, *, thread: str | None, limit: int | None, config: Mapping[str, Any] | None
) -> list[Resumed]:
    """`resume_graph` without blocking the event loop."""
    import asyncio

    _check(graph, limit)
    found: list[Resumed] = []
    for each in await asyncio.to_thread(_candidates, inbox, graph, thread):
        if limit is not None and sum(resumed.state != "left" for resumed in found) >= limit:
            break
        merged = _config(each, config)
        state = await graph.aget_state(merged)
        taken = await asyncio.to_thread(_taken, inbox, graph, each, merged, state)
        if not isinstance(taken, Ready):
            found += taken
            continue
        outcome: Resumed | None = None
        try:
            outcome = _ended(taken, await graph.ainvoke(taken.command, taken.config))
        except Exception as error:  # noqa: BLE001 — as in `resume_graph`
            outcome = _raised(taken, error)
        finally:
            await asyncio.to_thread(_close, inbox, graph, taken, outcome)
        found.append(outcome)
    return found


def _check(graph: Any, limit: int | None) -> None:
    if not callable(getattr(graph, "get_state", None)) or getattr(graph, "checkpointer", True) in (None, False):
        raise GraceError(f"resume takes a compiled graph with a checkpointer, not {type(graph).__name__} without one")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ValueError(f"limit must be a whole number of 1 or more, or None, not {limit!r:.40}")


def _candidates(inbox: Inbox, graph: Any, thread: str | None) -> list[WaitingThread]:
    found = waiting_threads(inbox.tables, None if thread is None else str(thread))
    nodes = getattr(graph, "nodes", None)
    if thread is not None or nodes is None:
        return found
    return [each for each in found if any(node in nodes for node in each.nodes)]


def _config(thread: WaitingThread, config: Mapping[str, Any] | None) -> dict[str, Any]:
    merged = dict(config or {})
    name = thread.id if thread.number is None else thread.number
    merged["configurable"] = {**thread.configurable, **merged.get("configurable", {}), "thread_id": name}
    return merged


def _taken(
    inbox: Inbox, graph: Any, thread: WaitingThread, config: dict[str, Any], state: Any
) -> Ready | list[Resumed]:
    """Return what a thread is resumed with, with this process as the one that does it; or why it is not."""
    waiting = list(_interrupts(state))
    answers = dict(_decided(inbox, thread, waiting))
    if not answers:
        if not waiting and getattr(state, "created_at", None) is not None:
            _forget(inbox, graph, thread)
        return []
    missing = sorted({*thread.left_out} - {*config["configurable"]})
    if missing:
        return [
            Resumed(
                thread=thread.id,
                state="left",
                problem=f"its configuration had values that are not kept: {', '.join(missing)}; pass them with config=",
            )
        ]
    token = begin_carrying(inbox.tables, thread)
    if token is None:
        return [Resumed(thread=thread.id, state="left", problem="another process carries it on")]
    return Ready(thread, token, config, answers)


def _interrupts(state: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the interrupts that ask about requests in the inbox, with the ids of these."""
    for task in getattr(state, "tasks", ()):
        for interrupt in getattr(task, "interrupts", ()):
            if ids := approvals_in(interrupt.value):
                yield str(interrupt.id), ids


def _decided(inbox: Inbox, thread: WaitingThread, waiting: list[tuple[str, list[str]]]) -> Iterator[tuple[str, Any]]:
    for interrupt, ids in waiting:
        if thread.refused.issuperset(ids):
            continue
        try:
            states = {inbox.requests.get(approval).state for approval in ids}
        except ApprovalError:
            continue  # of another store
        if not states & _NOT_YET:
            yield interrupt, {APPROVALS: ids}


def _ended(ready: Ready, output: Any) -> Resumed:
    paused = isinstance(output, dict) and bool(output.get("__interrupt__"))
    state = "paused" if paused else "finished"
    return Resumed(thread=ready.thread.id, approvals=ready.approvals, state=state, output=output)


def _raised(ready: Ready, error: Exception) -> Resumed:
    return Resumed(
        thread=ready.thread.id, approvals=ready.approvals, state="raised", problem=error_text(error), error=error
    )


def _close(inbox: Inbox, graph: Any, ready: Ready, outcome: Resumed | None) -> None:
    over = _nodes(graph, ready.thread) if outcome is not None and outcome.state == "finished" else ()
    refused: list[str] = []
    if outcome is not None and isinstance(outcome.error, ActionNotApproved):
        refused = [approval for approval in ready.approvals if not FOLLOWING[inbox.requests.get(approval).state]]
    end_carrying(inbox.tables, ready.thread, ready.token, over=over, refused=refused)


def _forget(inbox: Inbox, graph: Any, thread: WaitingThread) -> None:
    nodes = _nodes(graph, thread)
    if nodes:
        end_carrying(inbox.tables, thread, "", over=nodes)


def _nodes(graph: Any, thread: WaitingThread) -> tuple[str, ...]:
    known = getattr(graph, "nodes", None) or ()
    return tuple(node for node in thread.nodes if node in known)
