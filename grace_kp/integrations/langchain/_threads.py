"""The threads of graphs whose requests wait in the inbox: how each is found again, and who is carrying it on now.

Only plain values of a configuration are kept, and none that looks like a secret. The names of the others are kept, so that a thread is not
carried on without them.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.trace import redacted_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.approvals import Tables

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
        tables: the tables.
        thread: the thread.
        token: what `begin_carrying` returned.
        over: nodes that wait for nothing any more.
        refused: requests whose refusal the graph has raised.
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
