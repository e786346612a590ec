"""A run that waits and is continued: why it waits, where it is found again, and what its earlier part brings along.

A suspended run is stored like a finished one. The run that continues it takes over its id, and the two parts become one trace.
"""

from __future__ import annotations

import functools
import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.record._guard import attempt
from grace_kp.record._host import CLOSED, SUSPENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grace_kp.store import Record, Store
    from grace_kp.trace import ReasoningTrace

    Document = dict[str, Any]

MAX_TRACES = 200
MAX_CONTINUED = 10_000
UNANSWERED = "Closed without an answer: its thread went on with other input."
REPEATED = "Repeated after the question: the run that superseded this one began again at the same node."


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a run waits, and where it is found again when it continues."""

    thread: str
    """The conversation that it belongs to."""
    checkpoint: str | None
    """The state that it stopped at; None if only the place is known."""
    place: str | None
    """The part of the program that called it, for a nested run."""
    again: frozenset[str] = frozenset()
    """Places that are run again from their beginning when the run continues."""
    previous: Any = None
    """The suspended run itself, while this process still has it."""
    once: bool = False
    """Whether it is continued once among all processes, as soon as it is found."""


class EarlierPart:
    """The part of a run from before it was suspended: its steps, calls and decisions.

    A framework that resumes in the middle of a program runs the interrupted part again from its beginning, and records it again.
    So its first recording is left out here, and `repeated` names the calls in it that had already been carried out.
    """

    __slots__ = ("calls", "decisions", "duration_ms", "model_calls", "pending", "repeated", "steps")

    def __init__(self, document: Document) -> None:
        grace = document.get("grace") or {}
        again = set(grace.get("repeats") or ())
        kept = [step for step in document.get("steps") or () if step["step_id"] not in again]
        number = {step["step_id"]: place for place, step in enumerate(kept)}
        self.steps: list[Document] = [{**step, "step_id": number[step["step_id"]]} for step in kept]
        self.duration_ms: float = grace.get("duration_ms", 0.0)
        self.decisions: list[Document] = list(grace.get("decisions") or ())
        self.repeated: list[str] = list(grace.get("repeated") or ())
        calls = grace.get("calls") or []
        stays = [call for call in calls if call["tool_call"] in number]
        self.repeated += [call["name"] for call in calls if call not in stays and call["status"] in {"ok", "error"}]
        names = {call["call_id"]: f"c{place}" for place, call in enumerate(stays)}
        self.calls = [_renumber(call, number, names) for call in stays]
        self.model_calls = [
            {**call, **({"step": number[call["step"]]} if "step" in call else {})}
            for call in grace.get("model_calls") or ()
            if "step" not in call or call["step"] in number
        ]
        failed = {call["call_id"]: call for call in self.calls if call["status"] in {"error", "cancelled"}}
        inner = {call.get("parent") for call in failed.values() if call.get("error")}
        self.pending = [
            call
            for name, call in failed.items()
            if "recovery" not in call and "error" in call and (name not in inner or call.get("parent") not in failed)
        ]
        """Calls whose error nothing has followed yet."""


def _renumber(call: Document, number: dict[int, int], names: dict[str, str]) -> Document:
    changed = {**call, "call_id": names[call["call_id"]]}
    for field in ("tool_call", "observation", "recovery"):
        if field in changed:
            if changed[field] in number:
                changed[field] = number[changed[field]]
            else:
                del changed[field]
    if "parent" in changed:
        changed["parent"] = names.get(changed["parent"], changed["parent"])
    return changed


class Conversations:
    """The suspended runs of conversation threads: each is continued by at most one run, or closed when its thread leaves it behind."""

    def __init__(self, store: Callable[[], Store], settle: Callable[[], object], write: Callable[[], object]) -> None:
        self._store, self._settle_ended, self._write_settled = store, settle, write
        self._name = os.urandom(16).hex()
        self._continued: OrderedDict[str, int] = OrderedDict()
        """Ids of traces that runs of this process continue, each with the number of resumes before."""

    def find(self, pause: Pause, thread: str) -> Document | None:
        """Return the document of the run that stopped at `pause`; None if it cannot be found."""
        documents = (
            trace.to_dict() for status in (SUSPENDED, CLOSED) for trace in self._query(status, thread)
        )  # read one by one inside the guard
        found = (item for item in documents if _is_of(item, pause, thread))
        if not pause.once:
            return attempt("resuming", lambda: next(found, None))
        # Of runs that were suspended with the same key, the one that was suspended last.
        return attempt("resuming", lambda: max(found, key=lambda item: str(facts_of(item).get("at")), default=None))

    def nested_in(self, document: Document) -> dict[str, list[Document | None]]:
        """Return for each run that had ended inside a suspended one its document and those nested in it; None for one that cannot be found."""
        nested = {name: list(self._with_nested(name)) for name in _ended_inside(document)}
        for name, found in nested.items():
            if None in found:  # it may have ended a moment ago
                attempt("resuming", self._settle_ended)
                # While a run is settled, that does nothing; the runs nested in it are settled by then, but may not be written.
                attempt("resuming", self._write_settled)
                nested[name] = list(self._with_nested(name))
        return nested

    def _with_nested(self, name: str) -> Iterator[Document | None]:
        waiting = [name]
        for _ in range(MAX_TRACES):
            if not waiting:
                return
            stored = attempt("resuming", functools.partial(self._store().get, waiting.pop()))
            document = None if stored is None or (stored.grace or {}).get("imported") else stored.to_dict()
            yield document
            waiting += [] if document is None else _ended_inside(document)
        yield None  # more than are read

    def claim(self, document: Document, *, once: bool = False) -> bool:
        """Continue a suspended run; False if another run has continued it since it was suspended, with `once` also one of another process."""
        if self._holds(document):
            return False
        if once:
            grace = {**document["grace"], "resumed": times_resumed(document) + 1}
            if self.has_rival({**document, "grace": grace}):
                return False
        self._continued[document["id"]] = times_resumed(document)
        self._continued.move_to_end(document["id"])
        while len(self._continued) > MAX_CONTINUED:
            self._continued.popitem(last=False)
        return True

    def _holds(self, document: Document) -> bool:
        return self._continued.get(document["id"], -1) >= times_resumed(document)

    def has_rival(self, document: Document) -> bool:
        """Return whether another process has continued the same run and stored its trace, or is about to."""
        return bool(attempt("resuming", lambda: self._is_taken(document)))

    def _is_taken(self, document: Document) -> bool:
        store, times = self._store(), times_resumed(document)
        stored = store.get(document["id"])
        if stored is not None and times_resumed(stored.to_dict()) >= times:
            return True
        ledger: Any = store
        if not callable(getattr(ledger, "put_action", None)):
            return False
        # Two processes may come here at the same moment. The store lets one of them keep the id.
        ledger_key, owner = f"continued|{document['id']}|{times}", f"{self._name}|{os.getpid()}".encode()
        return not ledger.put_action(ledger_key, owner, only_if=None) and ledger.action(ledger_key) != owner

    def close_superseded(self, document: Document, record_of: Callable[[Document], Record]) -> list[Document]:
        """Close the traces that waited for an answer on the thread of a finished run and will not get any more."""
        thread = _thread_to_clear(document)
        closed = thread and attempt("closing a suspended trace", lambda: self._close(document, thread, record_of))
        return closed or []

    def _close(self, document: Document, thread: str, record_of: Callable[[Document], Record]) -> list[Document]:
        self._write_settled()  # so that those settled just now are found
        found = [trace.to_dict() for trace in self._query(SUSPENDED, thread)]
        waiting = [item for item in found if not (item["grace"].get("imported") or self._holds(item))]
        closed = left_without_answer(document, waiting)
        if closed:
            self._store().put([record_of(item) for item in closed])
        return closed

    def _query(self, status: str, thread: str) -> Sequence[ReasoningTrace]:
        return self._store().query(status=status, text=thread, limit=MAX_TRACES)


def _ended_inside(document: Document) -> list[str]:
    """Return the ids of the runs that calls of a run opened and that have ended."""
    calls = (document.get("grace") or {}).get("calls") or ()
    return [call["child"] for call in calls if "child" in call and call["status"] not in {SUSPENDED, "unfinished"}]


def facts_of(document: Document) -> Document:
    """Return what a framework states about the run of a document: its thread, checkpoint, place and steps. Empty for no framework."""
    facts = (document.get("grace") or {}).get(document["metadata"].get("framework"))
    return facts if isinstance(facts, dict) else {}


def node_of(document: Document) -> Document:
    """Return the node of a graph in which the run of a document began; empty for a run outside of any."""
    node = (document.get("grace") or {}).get("node")
    return node if isinstance(node, dict) else {}


def left_without_answer(document: Document, documents: Iterable[Document]) -> list[Document]:
    """Return the traces that a run has superseded, closed, with those nested in them.

    A pending question is dropped when its thread gets new input. So a suspended trace is superseded by a later run of the same program
    on the same thread whose steps come after its own.

    A run of ours in a node has no state to continue from: it is superseded by the run of the next attempt at its node.
    """
    documents = list(documents)
    closed = {item["id"]: item for item in documents if _is_superseded(item, document)}
    rest = [item for item in documents if item["id"] not in closed]
    while nested := [item for item in rest if (item["grace"].get("parent") or {}).get("trace_id") in closed]:
        closed.update({item["id"]: item for item in nested})
        rest = [item for item in rest if item["id"] not in closed]
    for item in closed.values():
        _leave_unanswered(item, document)
    return list(closed.values())


def times_resumed(document: Document) -> int:
    times = (document.get("grace") or {}).get("resumed", 0)
    return times if isinstance(times, int) else 0


def _is_of(document: Document, pause: Pause, thread: str) -> bool:
    """Return whether a trace is that of the run that stopped there. A trace that was closed without an answer may still be continued."""
    grace, facts = document.get("grace") or {}, facts_of(document)
    if grace.get("imported") or (grace.get("status") != SUSPENDED and "superseded_by" not in grace):
        return False  # a run of this program does not go on from what a file states
    same = facts.get("thread_id") == thread and facts.get("place") == pause.place
    return same and (pause.place is not None or facts.get("checkpoint_id") in {None, pause.checkpoint})


def _thread_to_clear(document: Document) -> str | None:
    """Return the thread of a run that may have left an earlier one without an answer; None for any other run.

    The steps of a thread are counted through all its runs, so its first run starts at 1.
    """
    facts = facts_of(document)
    if node := node_of(document):
        return str(node.get("thread_id"))
    steps, thread = _steps_of(facts), facts.get("thread_id")
    later = facts.get("place") is None and steps is not None and steps[0] > 1
    return thread if later and isinstance(thread, str) else None


def _is_superseded(earlier: Document, later: Document) -> bool:
    if node_of(earlier):
        return _is_repeated(earlier, later)
    before, after = facts_of(earlier), facts_of(later)
    last, first = _steps_of(before) or (0, 1), _steps_of(after) or (0, 0)
    return bool(
        earlier["id"] != later["id"]
        and before.get("place") is None
        and before.get("thread_id") == after.get("thread_id")
        and earlier["grace"].get("name") == later["grace"].get("name")
        and last[1] < first[0]
    )


def _is_repeated(earlier: Document, later: Document) -> bool:
    """Return whether a run began in a later attempt at the node of another, or, by the same name, in a later step of its graph."""
    before, after = node_of(earlier), node_of(later)
    in_order = earlier["metadata"]["created_at"] <= later["metadata"]["created_at"]
    if not in_order or before["thread_id"] != after.get("thread_id"):
        return False
    if before["checkpoint_ns"] == after["checkpoint_ns"]:
        return bool(before["attempt"] != after["attempt"])
    graphs = {node["checkpoint_ns"].rpartition("|")[0] for node in (before, after)}
    same = len(graphs) == 1 and earlier["grace"].get("name") == later["grace"].get("name")
    return same and bool(before["step"] < after["step"])


def _leave_unanswered(document: Document, later: Document) -> None:
    grace = document["grace"]
    grace["status"], grace["superseded_by"] = CLOSED, later["id"]
    if node_of(document).get("checkpoint_ns", "") == node_of(later).get("checkpoint_ns"):
        document["outcome"]["result_summary"] = REPEATED
        return
    document["metadata"]["success"] = False
    document["outcome"]["result_summary"] = UNANSWERED
    steps = document["steps"]
    if grace.get("repeats") == [0] and len(steps) == 1 and not grace.get("calls"):
        steps[0]["content"] = UNANSWERED


def _steps_of(facts: Document) -> tuple[int, int] | None:
    steps = facts.get("steps")
    if isinstance(steps, list) and len(steps) == 2 and all(isinstance(step, int) for step in steps):
        return steps[0], steps[1]
    return None
