"""What an agent has seen so far, for the gates of a live run: an `ActionHistory` of the outermost run and of those inside it.

Nothing is read before a gate asks, and each event is read once. A run is read as its trace would be, but with its secrets; these stay in
memory. Recording keeps references only: the events of nested runs that have ended, and the instructions that a model was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.record._evidence import lost_evidence, root_of, survey_of
from grace_kp.record._guard import attempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.confidence import ActionHistory
    from grace_kp.record._run import Event, Run
    from grace_kp.record._steps import LiveReader

MAX_KEPT, MAX_KEPT_TEXT = 20_000, 4_000_000
"""Events of nested runs that have ended which the outermost run keeps until a gate asks, and characters in them; as many as are indexed."""
PER_TEXT = 100
"""What a text costs beside its characters."""
LOST = "what a run inside or around this one recorded was released before a gate asked"
STREAMS = "a tool has not yet returned all that it yields"
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
        sight.kept = sight.kept_text = 0
        sight.streams = False
        if not attempt("reading what a run has seen", lambda: sight.read(root, history)):
            history.index.add_gap(UNREAD)
        history.index.gaps.pop(STREAMS, None)
        if sight.streams:
            history.index.add_gap(STREAMS)
    return history


def keep_events(run: Run) -> None:
    """Keep the events of a nested run that has ended until a gate asks; forget those of an outermost run."""
    root = root_of(run)
    with root.owner.lock:
        if run is root:
            run.sight = LOST
            return
        sight = _sight_of(root)
        if run.sight is not None:
            if run.events and not isinstance(run.sight, list | str):
                run.sight.events = run.events
        elif run.owner.is_gated and sight.keep(run.events):
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

    __slots__ = ("generation", "history", "is_lost", "kept", "kept_text", "reader", "streams")

    def __init__(self, generation: int, *, is_lost: bool) -> None:
        self.generation, self.is_lost = generation, is_lost
        self.history: ActionHistory | None = None
        self.streams = False
        """Whether a tool had yielded only a part of its result when the history was last read."""
        self.kept = self.kept_text = 0
        """Number of events that nested runs keep, and of characters in them."""
        self.reader: LiveReader | None = None
        """That of the outermost run."""

    def keep(self, events: Sequence[Event]) -> bool:
        """Count events that are to be kept; return whether they are few and short enough."""
        from grace_kp.record._steps import texts_of

        texts: list[str] = []
        if self.kept + len(events) <= MAX_KEPT:
            texts_of(events, texts)
        number, size = self.kept + len(events), self.kept_text + sum(PER_TEXT + len(text) for text in texts)
        if is_kept := number <= MAX_KEPT and size <= MAX_KEPT_TEXT:
            self.kept, self.kept_text = number, size
        return is_kept

    def read(self, run: Run, history: ActionHistory) -> bool:
        """Read what is new in a run and in those inside it; return True."""
        from grace_kp.record._steps import LiveReader  # with the rules of redaction, which recording must not load

        reader = self.reader if run.via is None else run.sight
        if not isinstance(reader, LiveReader) or reader.sight is not self:
            kept, reader = reader, LiveReader(run, self, history)
            if run.via is None:
                self.reader = reader
                self.is_lost |= not run.open and not run.events
            else:
                run.sight = reader
                reader.events = kept if isinstance(kept, list) else None
                self.is_lost |= kept is LOST or (isinstance(kept, LiveReader) and kept.events is not None)
        for gap in (*lost_evidence(run, run.owner), *((LOST,) if self.is_lost else ())):
            history.index.add_gap(gap)
        reader.advance_in(run)
        return True
