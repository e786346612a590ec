"""What a gate asks about a run: gaps in its evidence, its last refusal, and the runs around it.

Gaps are known reasons why evidence is missing or unusable, in words. A gate that finds any asks at least for CONFIRM. This module decides
nothing. Evidence that is absent because nothing happened is not a gap. The last refusal of a gate holds until anything else is recorded.
From the runs around it, a run has its user and its session, unless it states its own; it leaves to them what is to be sealed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from grace_kp.record._current import FIRST, PATCHES, TROUBLES
from grace_kp.record._guard import note
from grace_kp.record._run import located
from grace_kp.record._spec import AGENT

if TYPE_CHECKING:
    from grace_kp.confidence import RunEvidence
    from grace_kp.record._run import Recorder, Run


OFF = "recording is disabled, so nothing is known of this run"
UNRECORDED = "this run could not be recorded"
STRAY = "a tool was called in a thread that does not carry this run (use gk.propagate or gk.instrument_threads)"
THREAD = "the action was called in a thread that does not carry the run that started it (use gk.propagate or gk.instrument_threads)"
OUTSIDE = (
    "a thread called it while an agent ran, so it has a trace of its own; if it belongs to the agent's run, pass "
    "gk.propagate(tool) to the executor or thread, or call gk.instrument_threads() at the start of the program"
)
DROPPED = "{} steps of this run were not recorded (more than max_steps, or no room on the stack)"
FULL = "the run around this one had reached its max_steps, so what it did is not known here"
_READABLE = 'return a list of results, or declare scores="none" where one list in a dict has no scores'
ENDED = "the run that started this one had already ended, so what it did is not known here"


def stray(run: Run) -> None:
    """Note that a tool was called outside of any run, in this thread; warn where an open run most likely started the thread."""
    owner = run.owner
    if run.via_trace is None:
        owner.stray_since = max(owner.stray_since, FIRST.number)
        if _started_by_another(run, owner):
            _warn()


def _warn() -> None:
    is_ours = threading.current_thread().name.startswith("grace_kp ")  # a judge or scorer may be a tool
    if not PATCHES.originals and not is_ours:
        note("a tool outside of any run", OUTSIDE)


def gaps_of(run: Run | None, recorder: Recorder, evidence: RunEvidence, lost: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the reasons why evidence is missing or cannot be used, each in a few words."""
    if not recorder.enabled:
        return (OFF,)
    unusable = [
        words.format(count)
        for words, count in (
            ("{} scores of search results cannot be used", evidence.unusable_scores),
            (f"the results of {{}} searches could not be read; {_READABLE}", evidence.unread_searches),
            (
                'the results of {} searches carry no score; declare scores=... or scores="none"',
                evidence.unscored_searches,
            ),
        )
        if count
    ]
    return tuple(dict.fromkeys((*lost_evidence(run, recorder), *lost, *unusable)))


def lost_evidence(run: Run | None, recorder: Recorder) -> list[str]:
    """Return the reasons why evidence of a run was not recorded; recorded evidence that cannot be used is not among them."""
    if run is None or not run.owner.enabled:
        return [UNRECORDED]
    gaps = list(run.missing)
    if run.dropped:
        gaps.append(DROPPED.format(run.dropped))
    troubles = TROUBLES.own - run.troubles_before
    if troubles:
        gaps.append(f"recording failed {troubles} times; see grace.status()")
    if max(recorder.stray_since, run.owner.stray_since) > run.number:
        gaps.append(STRAY)
    # The action, or the tool that calls it, may have opened this run because there was none.
    if run.spec.kind != AGENT and run.via_trace is None and _started_by_another(run, recorder):
        gaps.append(THREAD)
        _warn()
    return gaps


def _started_by_another(run: Run, recorder: Recorder) -> bool:
    """Return whether an open run most likely started this thread, which recorded nothing before that run began."""
    if threading.current_thread() is threading.main_thread():
        return False
    first = min(FIRST.number or run.number, run.number)
    return any(other.spec.kind == AGENT and other.number < first for other in list(recorder.open_runs))


def nearest(run: Run, name: str) -> str | None:
    """Return the user or session of the run itself, else of the nearest run around it."""
    around: Run | None = run
    while around is not None:
        stated: str | None = getattr(around.attributes, name, None)
        if stated is not None:
            return stated
        around = None if around.via is None else around.via.run
    return None


def register(run: Run, entry: dict[str, Any]) -> None:
    """Have the sealed arguments of a gated call removed from its run and from all runs around that and inside of it."""
    root = root_of(run)
    with root.owner.lock:
        if root.sealed is None:
            root.sealed = []
        root.sealed.append(entry)


def root_of(run: Run) -> Run:
    """Return the outermost run around a run."""
    while run.via is not None:
        run = run.via.run
    return run


def keep_refusal(run: Run, refusal: object) -> None:
    """Keep a refusal of a gate, with what the run has recorded by now and the calls around the gate."""
    here: Any = located()
    calls = []
    while here is not None and here is not run:
        calls.append(here)
        here = here.parent or here.run
    run.refusal = refusal, len(run.events), len(run.decisions), run.dropped, calls


def kept_refusal(run: Run) -> Any:
    """Return the last refusal of a gate; None if anything else has been recorded since.

    Ends of the calls around the gate, and repetitions of those calls, do not count as anything else: the loop that repeats the call may be
    outside a tool that calls the gate.
    """
    if run.refusal is None:
        return None
    refusal, events, decisions, dropped, calls = run.refusal
    since: list[Any] = run.events[events:]
    for event in since:
        again = (event.spec is call.spec and event.args == call.args and event.kwargs == call.kwargs for call in calls)
        if not hasattr(event, "spec") or not any(again):
            return None
    return refusal if (decisions, dropped) == (len(run.decisions), run.dropped) else None
