"""Which stored traces a run of a conversation thread goes on with, and which of them it leaves without an answer.

It compares traces and makes documents; the pipeline looks them up and stores them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from grace_kp.record import CLOSED, SUSPENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grace_kp.record import Pause
    from grace_kp.store import Record, Writer
    from grace_kp.trace import ReasoningTrace

MAX_TRACES = 200
MAX_CONTINUED = 10_000
UNANSWERED = "Closed without an answer: its thread went on with other input."


class Threads:
    """The stored traces of conversation threads."""

    def __init__(self, writer: Callable[[], Writer]) -> None:
        self._writer = writer

    def suspended(self, thread: str) -> Sequence[ReasoningTrace]:
        """Return the suspended traces that have to do with a thread, newest first, those settled just now included."""
        self._writer().write_pending()
        return self._writer().store().query(status=SUSPENDED, text=thread, limit=MAX_TRACES)

    def resumable(self, thread: str) -> Iterator[ReasoningTrace]:
        """Yield the traces that a run of this thread may go on with: those suspended, then those closed without an answer."""
        for status in (SUSPENDED, CLOSED):
            yield from self._writer().store().query(status=status, text=thread, limit=MAX_TRACES)

    def stored(self, trace_id: str) -> ReasoningTrace | None:
        """Return the stored trace with this id; None where there is none."""
        return self._writer().store().get(trace_id)

    def put(self, records: Sequence[Record]) -> None:
        """Store records at once."""
        if records:
            self._writer().store().put(records)


class Continued:
    """The suspended traces that runs of this process have taken over, each at most once for each time it was suspended."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, int] = OrderedDict()

    def claim(self, document: dict[str, Any]) -> bool:
        """Take a suspended trace over; False where another run has done so since it was suspended."""
        if self.holds(document):
            return False
        self._times[document["id"]] = times_resumed(document)
        self._times.move_to_end(document["id"])
        while len(self._times) > MAX_CONTINUED:
            self._times.popitem(last=False)
        return True

    def holds(self, document: dict[str, Any]) -> bool:
        """Return whether a run of this process has taken this trace over since it was suspended."""
        return self._times.get(document["id"], -1) >= times_resumed(document)


def times_resumed(document: dict[str, Any]) -> int:
    """Return how often the run of a trace has gone on after it was suspended."""
    times = (document.get("grace") or {}).get("resumed", 0)
    return times if isinstance(times, int) else 0


def going_on(trace: ReasoningTrace, pause: Pause, thread: str) -> dict[str, Any] | None:
    """Return the trace in its dict form if it is the one that stopped where this run goes on, else None."""
    document = trace.to_dict()
    grace = document.get("grace") or {}
    if grace.get("status") != SUSPENDED and "superseded_by" not in grace:
        return None
    place = _place_of(document)
    same = place.get("thread_id") == thread and place.get("place") == pause.place
    if pause.place is None:
        same = same and place.get("checkpoint_id") in {None, pause.checkpoint}
    return document if same else None


def thread_to_clear(document: dict[str, Any]) -> str | None:
    """Return the thread of a run that may have left an earlier one without an answer; None for any other run.

    A graph counts its steps through all runs of a thread, so the first run of a thread starts at 1.
    """
    place = _place_of(document)
    steps = _steps_of(place)
    if place.get("place") is not None or steps is None or steps[0] <= 1:
        return None
    thread = place.get("thread_id")
    return thread if isinstance(thread, str) else None


def left_without_answer(document: dict[str, Any], suspended: Iterable[ReasoningTrace]) -> list[dict[str, Any]]:
    """Return the traces that this run has superseded, closed, with those nested in them.

    LangGraph drops a pending question when its thread gets new input. A suspended trace is superseded by a later run of the same graph
    on the same thread whose steps come after its own.
    """
    documents = [trace.to_dict() for trace in suspended]
    closed = {item["id"]: item for item in documents if _is_superseded(item, document)}
    rest = [item for item in documents if item["id"] not in closed]
    while nested := [item for item in rest if (item["grace"].get("parent") or {}).get("trace_id") in closed]:
        closed.update({item["id"]: item for item in nested})
        rest = [item for item in rest if item["id"] not in closed]
    for item in closed.values():
        _close(item, document["id"])
    return list(closed.values())


def _is_superseded(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    before, after = _place_of(earlier), _place_of(later)
    last, first = _steps_of(before) or (0, 1), _steps_of(after) or (0, 0)
    return bool(
        earlier["id"] != later["id"]
        and before.get("place") is None
        and before.get("thread_id") == after.get("thread_id")
        and earlier["grace"].get("name") == later["grace"].get("name")
        and last[1] < first[0]
    )


def _close(document: dict[str, Any], by: str) -> None:
    grace = document["grace"]
    grace["status"], grace["superseded_by"] = CLOSED, by
    document["metadata"]["success"] = False
    document["outcome"]["result_summary"] = UNANSWERED
    steps = document["steps"]
    if grace.get("repeats") == [0] and len(steps) == 1 and not grace.get("calls"):
        steps[0]["content"] = UNANSWERED


def _place_of(document: dict[str, Any]) -> dict[str, Any]:
    place = (document.get("grace") or {}).get("langchain")
    return place if isinstance(place, dict) else {}


def _steps_of(place: dict[str, Any]) -> tuple[int, int] | None:
    steps = place.get("steps")
    if isinstance(steps, list) and len(steps) == 2 and all(isinstance(step, int) for step in steps):
        return steps[0], steps[1]
    return None
