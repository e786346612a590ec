"""What an agent has seen so far, for the gates of a live run: an `ActionHistory` of the outermost run and of those inside it.

Nothing is read before a gate asks, and each event is read once. A run is read as its trace would be, but with its secrets; these stay in
memory. Recording keeps references only: the events of nested runs that have ended, and the instructions that a model was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._evidence import lost_evidence, root_of, survey_of
from grace_kp.record._guard import attempt
from grace_kp.record._resume import EarlierPart
from grace_kp.record._run import Call
from grace_kp.record._spec import AGENT
from grace_kp.record._steps import StepBuilder
from grace_kp.trace import Redactor, storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence import ActionHistory
    from grace_kp.record._run import Event, Run

MAX_KEPT = 20_000
"""Events of nested runs that have ended which the outermost run keeps until a gate asks."""
LOST = "what a run inside or around this one recorded was released before a gate asked"
UNTOLD = "the instructions that the model was given before this run was resumed are not known"
UNREAD = "what the run has seen could not be read"


def history_of(run: Run | None) -> ActionHistory | None:
    """Return what the agent has seen so far, in this run and in those around and inside it; None outside of any run.

    All gates of these runs get the same object, which grows. Nothing is raised: what could not be read is among the gaps of its index.
    """
    if run is None:
        return None
    from grace_kp.confidence import ActionHistory

    attempt("looking for earlier parts of runs", lambda: survey_of(run))  # may wait, so not under the lock
    root = root_of(run)
    with root.owner.lock:
        sight = _sight_of(root)
        if sight.history is None:
            sight.history = ActionHistory()
        history = sight.history
    with history.lock:
        sight.kept = 0
        if not attempt("reading what a run has seen", lambda: sight.read(root, history)):
            history.index.add_gap(UNREAD)
    return history


def keep_events(run: Run) -> None:
    """Keep the events of a nested run that has ended until a gate asks; forget those of an outermost run."""
    root = root_of(run)
    with root.owner.lock:
        if run is root:
            run.sight = LOST
            return
        sight, reader = _sight_of(root), run.sight
        if isinstance(reader, _Reader):
            reader.events = run.events
        elif sight.kept + len(run.events) <= MAX_KEPT:
            sight.kept += len(run.events)
            run.sight = run.events
        else:
            run.sight = LOST


def _sight_of(root: Run) -> Sight:
    sight = root.sight
    if not isinstance(sight, Sight) or sight.generation != root.owner.generation:  # its lock may be held in the parent
        root.sight = sight = Sight(root.owner.generation, is_lost=sight is LOST)
    return sight


class Sight:
    """The history of a tree of runs. Its outermost run keeps it."""

    __slots__ = ("generation", "history", "is_lost", "kept", "reader")

    def __init__(self, generation: int, *, is_lost: bool) -> None:
        self.generation, self.is_lost = generation, is_lost
        self.history: ActionHistory | None = None
        self.kept = 0
        """Number of events that nested runs keep."""
        self.reader: _Reader | None = None
        """That of the outermost run."""

    def read(self, run: Run, history: ActionHistory) -> bool:
        """Read what is new in a run and in those inside it; return True."""
        reader = self.reader if run.via is None else run.sight
        if not isinstance(reader, _Reader) or reader.sight is not self:
            kept, reader = reader, _Reader(run, self, history)
            if run.via is None:
                self.reader = reader
                self.is_lost |= not run.open and not run.events
            else:
                run.sight = reader
                reader.events = kept if isinstance(kept, list) else None
                self.is_lost |= kept is LOST or (isinstance(kept, _Reader) and kept.events is not None)
        for gap in (*lost_evidence(run, run.owner), *((LOST,) if self.is_lost else ())):
            history.index.add_gap(gap)
        reader.advance_in(run)
        return True


class _AsIs(Redactor):
    """Removes nothing: a history is neither stored nor shown."""

    __slots__ = ()

    def text(self, text: str, *, is_counted: bool = True) -> str:  # noqa: ARG002
        return storable(text)

    def value(self, value: object) -> Any:
        return value


class _Reader(StepBuilder):
    """How far one run has been read. It does not hold its run."""

    __slots__ = ("begun", "events", "forgotten", "history", "objective", "order", "preamble", "reading", "sight")

    def __init__(self, run: Run, sight: Sight, history: ActionHistory) -> None:
        from grace_kp.confidence import RunReader

        earlier = None if run.earlier is None else EarlierPart(run.earlier)
        super().__init__(run, identifiers=False, earlier=earlier)
        self._run = None
        self.redactor = _AsIs(identifiers=False)
        self.sight, self.history = sight, history
        self.events: list[Event] | None = None
        """The events of a run that has ended."""
        self.begun: dict[str, Call] = {}
        """Calls that have not ended, or whose nested run has not, by their id."""
        self.reading = RunReader(history, is_outermost=run.via is None)
        first = run
        while first.via is not None and first.via.run.events[:1] == [first.via]:
            first = first.via.run
        is_agent = first.via is None and first.spec.kind == AGENT and first.via_trace is None
        objective = first.objective if first.earlier is None else first.earlier["task"]["objective"]
        self.objective = objective if is_agent else None
        """That of the outermost run; None for a nested run before which an agent may have seen something."""
        if run.via is None:
            history.add_objective(objective, run.name, is_agent=is_agent)
        if run.earlier is not None and not run.preamble and (run.earlier.get("grace") or {}).get("model_calls"):
            history.index.add_gap(UNTOLD)
        self.preamble = self.forgotten = 0
        self.order = history.index.mark()
        """The place of what the agent was told first."""

    def advance_in(self, run: Run) -> None:
        """Read what is new in its run."""
        events = run.events if self.events is None else self.events
        for event in events[self._position :]:
            self._position += 1
            self._take(event)
            if isinstance(event, Call):
                self.begun[f"c{self.number(event)}"] = event
        before = ((run.earlier or {}).get("grace") or {}).get("decisions") or []
        self.history.index.at = None
        self.reading.read(self.steps, self.calls, [*before, *run.decisions], self._inside)
        for step in self.steps[self.forgotten :]:  # what the index holds is not held twice
            step.pop("content", None)
            step.pop("input", None)
        self.forgotten = len(self.steps)
        for name, call in list(self.begun.items()):
            inner, has_ended = call.child, call.status is not None
            if inner is not None:
                has_ended &= not inner.open
                self.sight.read(inner, self.history)  # it may go on after its call
            if has_ended:
                del self.begun[name]
        if self.events and not self.begun:
            self.events = []
        self.history.index.at = self.order
        for words in (run.preamble or [])[self.preamble :]:
            self.preamble += 1
            if isinstance(words, str):
                self.history.index.add_policy(words)
            else:
                words(self.history.index, self.objective)
        self.history.index.at = None

    def _inside(self, entry: Mapping[str, Any]) -> bool | None:
        call = self.begun.get(entry["call_id"])
        if call is None:  # from before the run was resumed
            return False if "child" in entry else None
        return None if call.child is None else self.sight.read(call.child, self.history)
