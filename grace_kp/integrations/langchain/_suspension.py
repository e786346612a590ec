"""Suspended runs of LangGraph: stored before the question is asked, kept in this process, and found again when they continue.

A trace is stored as suspended before LangGraph hands out the question, so that a process that is killed right afterwards loses nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from grace_kp.record import Pause, Run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.integrations.langchain._frames import Chain, Frame
    from grace_kp.record import Recorder

MAX_SUSPENDED = 256
MAX_INTERRUPTS = 100


class Suspensions:
    """The suspended runs of one recorder that this process still holds, by thread, checkpoint and place."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.runs: OrderedDict[tuple[str, str | None, str | None], Run] = OrderedDict()

    def take(self, thread: str, checkpoint: str | None, place: str | None) -> Run | None:
        """Return the run that stopped there and forget it; None if this process has none."""
        run = self.runs.pop((thread, checkpoint, place), None)
        # If the reader left at the question, the checkpoint was never reported.
        return run if run is not None or checkpoint is None else self.runs.pop((thread, None, place), None)

    def give_back(self, run: Run) -> None:
        """Keep a run that was taken but not continued."""
        if run.pause is not None:
            self.runs[run.pause.thread, run.pause.checkpoint, run.pause.place] = run

    def stopped(self, frame: Chain, checkpoint: str, interrupts: Iterable[Any]) -> None:
        """Note the checkpoint at which a graph stopped, at a breakpoint or at a node's question, which is stored already."""
        frame.checkpoint = str(checkpoint)
        frame.interrupts = [str(interrupt.id) for interrupt in interrupts]
        self.ask(frame, interrupts)

    def ask(self, frame: Frame, interrupts: Iterable[Any]) -> None:
        """Store the runs around an interrupted node as suspended, before anybody hears of the question."""
        if not frame.thread:
            return
        waiting: list[tuple[Run, Pause]] = []
        places: set[str] = set()
        above: Frame | None = frame
        while above is not None:
            if isinstance(above.own, Run):
                place = above.place if above.parent is not None else None
                self._note(above, interrupts)
                waiting.append(
                    (
                        above.own,
                        Pause(frame.thread, above.checkpoint, place, frozenset(places | (above.places or set()))),
                    )
                )
                places = set()
            if above.place is not None:
                places.add(above.place)
            above = above.parent
        for run, _ in waiting:
            run.asked = True
        self._recorder.asked(waiting)

    def _note(self, frame: Frame, interrupts: Iterable[Any]) -> None:
        run = frame.own
        if not isinstance(run, Run):
            return
        run.facts = facts = run.facts if run.facts is not None else {}
        ids = [str(interrupt.id) for interrupt in interrupts if hasattr(interrupt, "id")][:MAX_INTERRUPTS]
        if ids:
            facts["interrupts"] = ids
        if frame.checkpoint is not None:
            facts["checkpoint_id"] = frame.checkpoint
        note_steps(frame)

    def suspend(self, frame: Frame, run: Run) -> None:
        """End a run that waits; its thread, checkpoint and place find it again."""
        thread = frame.thread or ""
        place = frame.place if frame.parent is not None else None
        run.facts = facts = run.facts if run.facts is not None else {}
        note_steps(frame)
        if frame.checkpoint is not None:
            facts["checkpoint_id"] = frame.checkpoint
        if frame.interrupts:
            facts["interrupts"] = frame.interrupts
        if thread:
            self.runs[thread, frame.checkpoint, place] = run
            while len(self.runs) > MAX_SUSPENDED:
                self.runs.popitem(last=False)
        run.suspend(Pause(thread, frame.checkpoint, place, frozenset(frame.places or ())))


def note_steps(frame: Frame) -> None:
    """Add the steps of the thread that a run has covered to its trace, as [first, last]."""
    run = frame.own
    if frame.steps is not None and isinstance(run, Run) and run.facts is not None:
        run.facts["steps"] = list(frame.steps)


def interrupts_of(error: BaseException) -> tuple[Any, ...]:
    """Return the interrupts that an exception carries."""
    found = error.args[0] if error.args else ()
    return tuple(found) if isinstance(found, list | tuple) else ()
