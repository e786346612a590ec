"""Carries on the threads of a graph whose requests were decided in the inbox, by resuming their interrupts.

The graph gets no decision by that, only the word to look into the inbox. So a decision is never taken twice, and nothing secret of it gets
into a checkpoint.

Each thread is kept with the plain values of its configuration, and none that looks like a secret. The names of the others are kept, so that
a thread is not carried on without them.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from grace_kp.approvals import FOLLOWING, ApprovalState, Resumed
from grace_kp.errors import ActionNotApproved, ApprovalError, GraceError
from grace_kp.integrations.langchain._interrupts import APPROVALS, approvals_in
from grace_kp.trace import error_text, redacted_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grace_kp.approvals import Inbox, Tables


WAITING, CARRIED = "langgraph waiting", "langgraph carried"
"""Kinds of documents: by thread and node that asked, and by thread."""
MAX_VALUES, MAX_TEXT, MAX_REFUSED = 50, 2_000, 100
PATIENCE_SECONDS = 600.0
"""How long a thread is left to a process that carries it on and may be gone, and how long it is kept after its last request."""
_OWN = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingThread:
    """A thread that has asked."""

    id: str
    number: int | None = None
    """The thread's id where that is a number."""
    nodes: tuple[str, ...] = ()
    """Nodes of its outermost graph that have asked."""
    configurable: Mapping[str, Any] = field(default_factory=dict)
    """The plain values of its configuration, without the thread."""
    left_out: tuple[str, ...] = ()
    """Names of its other values, which whoever carries it on has to supply."""
    refused: frozenset[str] = frozenset()
    """Requests whose refusal the graph has raised. It would raise it again."""


def keep_thread(tables: Tables, configurable: Mapping[str, Any]) -> None:
    """Keep how a thread is found again, before a request of it is filed."""
    name = _name(str(configurable.get("thread_id", "")), str(configurable.get("checkpoint_ns", "")).partition(":")[0])
    number = configurable.get("thread_id")
    document = {**_document(configurable), "at": time.time()}
    if type(number) is int:
        document["number"] = number
    with tables.transaction() as writes:
        before = writes.document(WAITING, name)
        refused = [] if before is None else json.loads(before).get("refused", [])
        writes.put_document(WAITING, name, json.dumps({**document, "refused": refused}).encode())


def _name(thread: str, node: str) -> str:
    return json.dumps([thread, node])


def _document(configurable: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in configurable.items() if name not in _OWN and not name.startswith("__")}
    plain = {name: value for name, value in values.items() if _is_plain(value)}
    hidden = redacted_arguments(plain, identifiers=False)[1]
    kept = {name: plain[name] for name in [name for name in plain if name not in hidden][:MAX_VALUES]}
    return {"configurable": kept, "left_out": sorted(name for name in values if name not in kept)}


def _is_plain(value: object) -> bool:
    return value is None or type(value) in {bool, int, float} or (type(value) is str and len(value) <= MAX_TEXT)


def waiting_threads(tables: Tables, thread: str | None = None) -> list[WaitingThread]:
    """Return the threads that are kept, by name; or one, also where it is not kept."""
    found: dict[str, WaitingThread] = {} if thread is None else {thread: WaitingThread(id=thread)}
    for name, data in sorted(tables.documents(WAITING).items()):
        own, node = json.loads(name)
        if thread is not None and own != thread:
            continue
        document, before = json.loads(data), found.get(own, WaitingThread(id=own))
        found[own] = WaitingThread(
            id=own,
            number=document.get("number"),
            nodes=(*before.nodes, node),
            configurable={**before.configurable, **document["configurable"]},
            left_out=tuple(sorted({*before.left_out, *document["left_out"]})),
            refused=before.refused.union(document["refused"]),
        )
    return list(found.values())


def begin_carrying(tables: Tables, thread: WaitingThread) -> str | None:
    """Record that this process carries a thread on; return the token that ends it, or None where somebody does already."""
    with tables.transaction() as writes:
        data = writes.document(CARRIED, thread.id)
        if data is not None:
            kept = json.loads(data)
            alive = tables.is_alive(kept["process"])
            if alive or (alive is None and time.time() - kept["since"] < PATIENCE_SECONDS):
                return None
        carried = {"process": tables.hold(), "token": uuid.uuid4().hex, "since": time.time()}
        writes.put_document(CARRIED, thread.id, json.dumps(carried).encode())
        return str(carried["token"])


def end_carrying(
    tables: Tables, thread: WaitingThread, token: str, *, over: Sequence[str] = (), refused: Sequence[str] = ()
) -> None:
    """Record that nobody carries a thread on.

    Args:
        token: what `begin_carrying` returned.
    """
    with tables.transaction() as writes:
        data = writes.document(CARRIED, thread.id)
        if data is not None and json.loads(data)["token"] == token:
            writes.put_document(CARRIED, thread.id, None)
        for node in thread.nodes:
            name = _name(thread.id, node)
            kept = writes.document(WAITING, name)
            document = {} if kept is None else json.loads(kept)
            # A request that was filed just now may not have reached the checkpoint yet.
            if document and node in over and time.time() - document["at"] > PATIENCE_SECONDS:
                writes.put_document(WAITING, name, None)
            elif document and refused:
                document["refused"] = [*document["refused"], *refused][-MAX_REFUSED:]
                writes.put_document(WAITING, name, json.dumps(document).encode())


_NOT_YET = frozenset({ApprovalState.PENDING, ApprovalState.CLAIMED, ApprovalState.UNKNOWN})
"""States in which the graph could not go on: somebody decides, runs the action, or has to find out what it did."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A thread that is about to be resumed."""

    thread: WaitingThread
    token: str
    config: dict[str, Any]
    answers: dict[str, Any]
    """By the id of the interrupt."""

    @property
    def approvals(self) -> tuple[str, ...]:
        return tuple(approval for answer in self.answers.values() for approval in answer[APPROVALS])

    def ended(self, output: Any) -> Resumed:
        paused = isinstance(output, dict) and bool(output.get("__interrupt__"))
        state = "paused" if paused else "finished"
        return Resumed(thread=self.thread.id, approvals=self.approvals, state=state, output=output)

    def raised(self, error: Exception) -> Resumed:
        problem = error_text(error)
        return Resumed(thread=self.thread.id, approvals=self.approvals, state="raised", problem=problem, error=error)


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
            outcome = taken.ended(graph.invoke(Command(resume=taken.answers), taken.config))
        except Exception as error:  # noqa: BLE001 — the other threads are carried on, too
            outcome = taken.raised(error)
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
            outcome = taken.ended(await graph.ainvoke(Command(resume=taken.answers), taken.config))
        except Exception as error:  # noqa: BLE001 — as in `resume_graph`
            outcome = taken.raised(error)
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
            end_carrying(inbox.tables, thread, "", over=_nodes(graph, thread))
        return []
    missing = sorted({*thread.left_out} - {*config["configurable"]})
    problem = f"its configuration had values that are not kept: {', '.join(missing)}; pass them with config="
    if not missing:
        token = begin_carrying(inbox.tables, thread)
        if token is not None:
            return Ready(thread, token, config, answers)
        problem = "another process carries it on"
    return [Resumed(thread=thread.id, state="left", problem=problem)]


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


def _close(inbox: Inbox, graph: Any, ready: Ready, outcome: Resumed | None) -> None:
    over = _nodes(graph, ready.thread) if outcome is not None and outcome.state == "finished" else ()
    refused: list[str] = []
    if outcome is not None and isinstance(outcome.error, ActionNotApproved):
        refused = [approval for approval in ready.approvals if not FOLLOWING[inbox.requests.get(approval).state]]
    end_carrying(inbox.tables, ready.thread, ready.token, over=over, refused=refused)


def _nodes(graph: Any, thread: WaitingThread) -> tuple[str, ...]:
    known = getattr(graph, "nodes", None) or ()
    return tuple(node for node in thread.nodes if node in known)
