"""Resumes the threads of a graph whose requests were decided in the inbox.

The graph does not receive the decisions, only a hint to read the inbox. So no decision is applied twice, and no secret of one gets into a
checkpoint.

A thread is stored with the plain values of its configuration, except those that look like secrets. Of all other values the names are
stored, so that a thread is not resumed without them.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from grace_kp.approvals import FOLLOWING, ApprovalState, Resumed
from grace_kp.errors import ActionNotApproved, ApprovalError, GraceError
from grace_kp.gating import Await, Failed, Work, drive, drive_async
from grace_kp.trace import error_text, redacted_arguments

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from grace_kp.approvals import Inbox, Tables
    from grace_kp.gating import EngineStep, Steps


APPROVALS = "approvals"
"""Field of an answer: ids of requests that are decided in the inbox."""
WAITING, CARRIED = "langgraph waiting", "langgraph carried"
"""Kinds of documents: the former by thread and asking node, the latter by thread."""
MAX_VALUES, MAX_TEXT, MAX_REFUSED = 50, 2_000, 100
PATIENCE_SECONDS = 600.0
"""How long a process that may be gone keeps its claim on a thread, and how long a thread is kept after its last request."""
_OWN = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingThread:
    """A thread that has asked."""

    id: str
    number: int | None = None
    """The thread's id if it is an integer."""
    nodes: tuple[str, ...] = ()
    """Asking nodes of its outermost graph."""
    configurable: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Names of values that were not stored. The caller must supply them."""
    refused: frozenset[str] = frozenset()
    """Requests whose refusal the graph has raised. It would raise the same error again."""


def keep_thread(tables: Tables, configurable: Mapping[str, Any]) -> None:
    """Store a thread before a request of it is filed."""
    thread = configurable.get("thread_id", "")
    name = _name(str(thread), str(configurable.get("checkpoint_ns", "")).partition(":")[0])
    values = {name: value for name, value in configurable.items() if name not in _OWN and not name.startswith("__")}
    types = {type(None), bool, int, float, str}
    plain = {name: it for name, it in values.items() if type(it) in types and len(str(it)) <= MAX_TEXT}
    hidden = redacted_arguments(plain, identifiers=False)[1]
    kept = {name: plain[name] for name in [name for name in plain if name not in hidden][:MAX_VALUES]}
    document = {"configurable": kept, "left_out": sorted(values.keys() - kept.keys()), "at": time.time()}
    if type(thread) is int:
        document["number"] = thread
    with tables.transaction() as writes:
        before = writes.document(WAITING, name)
        refused = [] if before is None else json.loads(before).get("refused", [])
        writes.put_document(WAITING, name, json.dumps({**document, "refused": refused}).encode())


def _name(thread: str, node: str) -> str:
    return json.dumps([thread, node])


def waiting_threads(tables: Tables, thread: str | None = None) -> list[WaitingThread]:
    """Return all stored threads, or one by its id, even if it is not stored."""
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


def approvals_in(value: Any) -> list[str]:
    """Return the ids of the requests in the value of an interrupt; none unless all its actions have one."""
    actions = value.get("action_requests") if isinstance(value, Mapping) else None
    if not isinstance(actions, list | tuple):
        return []
    found = [action.get("approval") if isinstance(action, Mapping) else None for action in actions]
    approvals = [approval for approval in found if isinstance(approval, str)]
    return approvals if len(approvals) == len(found) else []


def begin_carrying(tables: Tables, thread: WaitingThread) -> str | None:
    """Claim a thread for this process; return the claim's token, or None where another process holds a claim."""
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
    tables: Tables, thread: WaitingThread, token: str, *, over: Collection[str] = (), refused: Sequence[str] = ()
) -> None:
    """End the claim with this token; forget the nodes in `over`, and note the requests in `refused`."""
    with tables.transaction() as writes:
        data = writes.document(CARRIED, thread.id)
        if data is not None and json.loads(data)["token"] == token:
            writes.put_document(CARRIED, thread.id, None)
        for node in thread.nodes:
            name = _name(thread.id, node)
            kept = writes.document(WAITING, name)
            document = {} if kept is None else json.loads(kept)
            # The checkpoint may not have reached the store yet for a request that was filed just now.
            if document and node in over and time.time() - document["at"] > PATIENCE_SECONDS:
                writes.put_document(WAITING, name, None)
            elif document and refused:
                document["refused"] = [*document["refused"], *refused][-MAX_REFUSED:]
                writes.put_document(WAITING, name, json.dumps(document).encode())


_NOT_YET = frozenset({ApprovalState.PENDING, ApprovalState.CLAIMED, ApprovalState.UNKNOWN})
"""States that do not let the graph continue: undecided, running, or with an unknown outcome."""


class Resumption:
    """The threads of a graph that are resumed one after the other."""

    def __init__(
        self, inbox: Inbox, graph: Any, *, thread: str | None, limit: int | None, config: Mapping[str, Any] | None
    ) -> None:
        if not callable(getattr(graph, "get_state", None)) or getattr(graph, "checkpointer", True) in (None, False):
            kind = type(graph).__name__
            raise GraceError(f"resume takes a compiled graph with a checkpointer, not {kind} without one")
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ValueError(f"limit must be a whole number of 1 or more, or None, not {limit!r:.40}")
        self._inbox, self._graph, self._nodes = inbox, graph, getattr(graph, "nodes", None)
        self._thread, self._limit, self._base_config = thread, limit, config
        self._found: list[Resumed] = []

    def steps(self) -> Steps[list[Resumed]]:
        for thread in (yield from perform(Work(self._threads))):
            if self._limit is not None and sum(each.state != "left" for each in self._found) >= self._limit:
                break
            config = self._config(thread)
            state = yield from perform(self._ask_graph("get_state", config))
            claimed = yield from perform(Work(partial(self._claim, thread, config, state)))
            if claimed is None:
                continue
            token, answers = claimed
            outcome: Resumed | None = None
            try:
                # The other threads are still resumed where this one raises.
                output = yield self._ask_graph("invoke", Command(resume=answers), config)
                outcome = _outcome(thread, answers, output)
            finally:
                yield from perform(Work(partial(self._close, thread, token, outcome)))
        return self._found

    def _ask_graph(self, verb: str, *args: Any) -> Await:
        graph = self._graph
        return Await(lambda: getattr(graph, verb)(*args), lambda: getattr(graph, f"a{verb}")(*args))

    def _threads(self) -> list[WaitingThread]:
        found = waiting_threads(self._inbox.tables, None if self._thread is None else str(self._thread))
        if self._thread is not None or self._nodes is None:
            return found
        return [each for each in found if any(node in self._nodes for node in each.nodes)]

    def _config(self, thread: WaitingThread) -> dict[str, Any]:
        merged = dict(self._base_config or {})
        name = thread.id if thread.number is None else thread.number
        merged["configurable"] = {**thread.configurable, **merged.get("configurable", {}), "thread_id": name}
        return merged

    def _claim(self, thread: WaitingThread, config: dict[str, Any], state: Any) -> tuple[str, dict[str, Any]] | None:
        """Claim a thread; return the token and the answers by interrupt to resume it with, else note why it is not resumed."""
        tables = self._inbox.tables
        interrupts = [each for task in getattr(state, "tasks", ()) for each in getattr(task, "interrupts", ())]
        waiting = {str(interrupt.id): ids for interrupt in interrupts if (ids := approvals_in(interrupt.value))}
        answers = {name: {APPROVALS: ids} for name, ids in waiting.items() if self._can_continue(thread, ids)}
        if not answers:
            if not waiting and getattr(state, "created_at", None) is not None:
                end_carrying(tables, thread, "", over=self._nodes or ())
            return None
        missing = sorted({*thread.left_out} - {*config["configurable"]})
        problem = f"its configuration had values that are not kept: {', '.join(missing)}; pass them with config="
        if not missing:
            token = begin_carrying(tables, thread)
            if token is not None:
                return token, answers
            problem = "another process is resuming it"
        self._found.append(Resumed(thread=thread.id, state="left", problem=problem))
        return None

    def _can_continue(self, thread: WaitingThread, ids: list[str]) -> bool:
        if thread.refused.issuperset(ids):
            return False
        try:
            return not {self._inbox.requests.get(approval).state for approval in ids} & _NOT_YET
        except ApprovalError:  # requests of another store
            return False

    def _close(self, thread: WaitingThread, token: str, outcome: Resumed | None) -> None:
        requests, refused = self._inbox.requests, []
        if outcome is not None:
            self._found.append(outcome)
            if isinstance(outcome.error, ActionNotApproved):
                refused = [approval for approval in outcome.approvals if not FOLLOWING[requests.get(approval).state]]
        over = self._nodes or () if outcome is not None and outcome.state == "finished" else ()
        end_carrying(self._inbox.tables, thread, token, over=over, refused=refused)


def _outcome(thread: WaitingThread, answers: Mapping[str, Any], output: Any) -> Resumed:
    approvals = tuple(approval for answer in answers.values() for approval in answer[APPROVALS])
    if isinstance(output, Failed):
        problem, error = error_text(output.error), output.error
        return Resumed(thread=thread.id, approvals=approvals, state="raised", problem=problem, error=error)
    paused = isinstance(output, dict) and bool(output.get("__interrupt__"))
    return Resumed(thread=thread.id, approvals=approvals, state="paused" if paused else "finished", output=output)


def perform(step: EngineStep) -> Steps[Any]:
    """Perform a step, and raise its error where it fails."""
    answer = yield step
    if isinstance(answer, Failed):
        raise answer.error
    return answer


def resume_graph(inbox: Inbox, graph: Any, **chosen: Any) -> list[Resumed]:
    """Resume the threads whose requests are decided; see `Approvals.resume`."""
    return drive(Resumption(inbox, graph, **chosen).steps())


async def aresume_graph(inbox: Inbox, graph: Any, **chosen: Any) -> list[Resumed]:
    """`resume_graph` without blocking the event loop."""
    return await drive_async(Resumption(inbox, graph, **chosen).steps())
