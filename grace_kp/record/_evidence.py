"""What a gate asks about a live run: its evidence, gaps in it, its last refusal, and material for a judge. Gates cannot wait until it ends.

Evidence is kept up to date: each event is read once, however many gates there are. All runs of a tree (a run, those nested in it, those
nested in them) add to the same evidence. The steps of a run are counted without building them.

Gaps are known reasons why evidence is missing or unusable, in words. A gate that finds any asks at least for CONFIRM. This module decides
nothing. Evidence that is absent because nothing happened is not a gap. The last refusal of a gate holds until anything else is recorded.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.record._current import FIRST, PATCHES, TROUBLES
from grace_kp.record._guard import note
from grace_kp.record._host import SUSPENDED
from grace_kp.record._resume import EarlierPart
from grace_kp.record._run import Call, ModelCall, Note, UserMessage, find_frame
from grace_kp.record._spec import AGENT
from grace_kp.trace import Failure, Failures, render, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence import RunEvidence, SearchResults
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
UNUSABLE = "{} scores of search results cannot be used"
UNREAD = (
    "the results of {} searches could not be read; return a list of results, or declare "
    'scores="none" where one list in a dict has no scores'
)
UNSCORED = 'the results of {} searches carry no score; declare scores=... or scores="none"'
ENDED = "the run that started this one had already ended, so what it did is not known here"


def stray(run: Run) -> None:
    """Note that a tool was called outside of any run in this thread. Warn if an open run most likely started the thread."""
    owner = run.owner
    if run.via_trace is None:
        owner.stray_since = max(owner.stray_since, FIRST.number)
        if _is_started_by_another(run, owner):
            _warn()


def _warn() -> None:
    is_ours = threading.current_thread().name.startswith("grace_kp ")  # a judge or scorer may be a tool
    if not PATCHES.originals and not is_ours:
        note("a tool outside of any run", OUTSIDE)


def gaps_of(run: Run | None, recorder: Recorder, evidence: RunEvidence, lost: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the reasons why evidence is missing or cannot be used, each in a few words."""
    if not recorder.enabled:
        return (OFF,)
    counts = {
        UNUSABLE: evidence.unusable_scores,
        UNREAD: evidence.unread_searches,
        UNSCORED: evidence.unscored_searches,
    }
    unusable = [words.format(count) for words, count in counts.items() if count]
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
    if run.spec.kind != AGENT and run.via_trace is None and _is_started_by_another(run, recorder):
        gaps.append(THREAD)
        _warn()
    return gaps


def _is_started_by_another(run: Run, recorder: Recorder) -> bool:
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
    here: Any = find_frame()
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


MAX_MATERIAL = 20
_LONGEST = 4_000
NOT_FOUND = "what a nested run recorded before this run was suspended cannot be found"
NOT_CONTINUED = "a nested run that had not ended when this run was suspended has not been continued"
_NEVER = -(1 << 63)
_FAILED = frozenset({"error", "cancelled", "exited"})


@dataclass(slots=True)
class Survey:
    """The evidence of a live run at the time of a gate."""

    evidence: RunEvidence
    """The evidence of the calls that have ended so far, in this run and in the runs around and inside it."""
    steps: int = 0
    """Number of steps that `StepBuilder` builds from the events so far."""
    lost: tuple[str, ...] = ()
    """Why evidence of the other runs is missing."""
    has_others: bool = False
    """Whether other runs have evidence."""


def survey_of(run: Run | None) -> Survey:
    """Gather evidence and count the steps of a run.

    Evidence follows the work: of a run within others, all of them are surveyed.
    """
    from grace_kp.confidence import RunEvidence

    if run is None:
        return Survey(RunEvidence())
    root = root_of(run)
    while True:
        with root.owner.lock:  # parallel calls may be gated at the same time
            survey, resumed = _survey(root, run)
        if not resumed:
            return survey
        for other in resumed:
            other.owner.recall(other)


def keep_evidence(run: Run) -> None:
    """Take in the events of a nested run that has ended, before they are released: gates of the runs around it need them."""
    for _ in range(2):  # first for its own document, then for those of the runs nested in it
        if run.lacks_past:
            run.owner.recall(run)
    with root_of(run).owner.lock:
        _reading_of(run).advance(run)


def _survey(root: Run, run: Run) -> tuple[Survey, list[Run]]:
    """Return the survey of a run, and the resumed runs whose earlier part must be looked up for it first."""
    from grace_kp.confidence import STILL_OPEN

    steps, has_others, resumed = 0, False, []
    lost: dict[str, None] = {}
    searches: list[tuple[Call, SearchResults]] = []
    undecided: list[tuple[Call, int]] = []
    waiting = [root]
    while waiting:
        other = waiting.pop()
        if other.lacks_past:
            resumed.append(other)
        reading = _reading_of(other)
        reading.advance(other)
        searches += reading.open_searches(other)
        undecided += reading.undecided
        waiting += reading.open_runs(other)
        lost.update(reading.lost)
        if other is run:
            steps = reading.steps
            has_others |= reading.has_others
        else:
            has_others |= bool(reading.calls.call_count or reading.undecided)
            lost.update(dict.fromkeys(lost_evidence(other, other.owner)))
    if _reading_of(root).awaited - _reading_of(root).continued:
        lost[NOT_CONTINUED] = None
    evidence = _reading_of(root).evidence.snapshot()
    for call, found in searches:  # the trace will have what they find in the end
        evidence.search_finished(found, call.spec.name, STILL_OPEN)
    for call, at in undecided:
        evidence.call_finished(call.status, "", call.spec.name, at)
    return Survey(evidence, steps, tuple(lost), has_others or bool(searches)), resumed


def names_in(run: Run) -> tuple[list[str], list[str]]:
    """Return the tools and the models that a run has called, as far as `survey_of` has read it; each once."""
    with root_of(run).owner.lock:
        reading = _reading_of(run)
        return [*reading.tools], [*reading.models]


def _reading_of(run: Run) -> Reading:
    reading: Reading | None = run.reading
    if reading is None:
        reading = run.reading = Reading(None if run.via is None else _reading_of(root_of(run)).evidence)
    return reading


class Reading:
    """How far the events of one run have been read, and what they say.

    It does not hold its run, which would then wait for the garbage collector.

    Args:
        evidence: the evidence of all runs around and inside it, which it adds to; None for the outermost run, which has none yet.
    """

    __slots__ = (
        "_at", "_begun", "_failures", "_left", "_position", "awaited", "calls", "continued", "evidence", "has_others", "last_error", "lost", "models",
        "steps", "tools", "undecided",
    )  # fmt: skip

    def __init__(self, evidence: RunEvidence | None) -> None:
        from grace_kp.confidence import RunEvidence

        self._position = 0
        self._at = _NEVER
        """The end of the last call, later than that of the one before."""
        self._begun: dict[int, int] = {}
        """Calls that have not ended: their identity, and their place among the events."""
        self._left: list[Run] = []
        """Runs that go on after the call that opened them."""
        self._failures = Failures()
        self.evidence = RunEvidence() if evidence is None else evidence
        self.calls = RunEvidence()
        """The calls of this run and of the runs nested in it that have ended, without what searches found."""
        self.awaited: set[object] = set()
        """Of the outermost run: ids of nested runs that had not ended when their runs were suspended, and of those continued so far."""
        self.continued: set[object] = set()
        self.last_error: tuple[str, str] | None = None
        """The last error that counts as a failure."""
        self.lost: dict[str, None] = {}
        """Why evidence of nested runs is missing."""
        self.has_others = False
        self.steps = 0
        self.tools: dict[str, None] = {}
        """Names of the tools that its run has called, and of the models."""
        self.models: dict[str, None] = {}
        self.undecided: list[tuple[Call, int]] = []
        """Calls of nested runs inside a call that has not ended, with their ends: failures, and successes that make up for them.

        If the call around them fails, it counts in their place.
        """

    def open_runs(self, run: Run) -> list[Run]:
        """Return the runs nested in its run that have not ended, or whose end has not been read."""
        children = [getattr(run.events[place], "child", None) for place in self._begun.values()]
        return [*self._left, *(child for child in children if child is not None)]

    def open_searches(self, run: Run) -> list[tuple[Call, SearchResults]]:
        """Return the searches of its run that stream and have not ended, with what they found so far."""
        calls: list[Any] = [run.events[place] for place in self._begun.values()]
        return [(call, found) for call in calls if call.hits is not None and (found := call.found()) is not None]

    def advance(self, run: Run) -> None:
        """Take in the events of its run since the last time; none before the earlier part of a resumed run is known."""
        if run.lacks_past:
            return
        if self._at == _NEVER:
            self._at = run.start
            if run.earlier is not None:
                root = _reading_of(root_of(run))
                root.continued.add(run.earlier["id"])
                root.awaited |= self._take_earlier(run.earlier, run.earlier_nested or {}, is_outermost=run.via is None)
        if self._left:
            left, self._left = self._left, []
            for other in left:
                self._take_run(other)
        # Until the end as it is now: other threads go on recording.
        events, begun, failures = run.events, self._begun, self._failures
        place, last = self._position, len(events) - 1
        plain: dict[str, int] = {}
        ends: dict[str, int] = {}
        extra, at, first = 0, self._at, place
        while place <= last:
            event = events[place]
            place += 1
            if type(event) is Call:
                is_plain = event.status == "ok" and event.child is None and event.hits is None
                # Nothing came in between its beginning and its end, as in most calls.
                is_whole = is_plain and place <= last and events[place] is event
                if is_whole:
                    place += 1
                    if failures.pending:
                        extra += len(failures.pending)
                        failures.pending.clear()
                self.tools[event.spec.name] = None
                if is_whole or begun.pop(id(event), None) is not None:  # its end
                    end = event.end
                    at = end if end > at else at + 1
                    if is_plain:
                        name = event.spec.name
                        plain[name] = plain.get(name, 0) + 1
                        ends[name] = at
                    else:
                        self._count_end(event, at, run)
                    continue
                begun[id(event)] = place - 1
            elif type(event) is ModelCall:
                extra -= not event.text.strip()  # a call without text adds no step
                self.models[event.model] = None
            elif type(event) is UserMessage:
                at = event.at if event.at > at else at + 1
                if run.via is None:  # a user message of a nested run resets nothing around it
                    self.evidence.user_spoke(at)
            if failures.pending:  # the run has gone on, which is a step for each error
                extra += len(failures.pending)
                failures.pending.clear()
            if type(event) is ModelCall and event.error is not None and event.status == "error":
                failures.add(Failure("", event.error, None))
        for name, count in plain.items():
            self.evidence.calls_succeeded(count, name, ends[name])
            self.calls.calls_succeeded(count, name, ends[name])
        if self.undecided:
            waiting, self.undecided = self.undecided, []
            for call, end in waiting:
                self._count(call, end, run)
        self._position, self._at = place, at
        self.steps += place - first + extra
        if begun and not run.open:  # its events may be released
            for call, found in self.open_searches(run):
                self.evidence.search_finished(found, call.spec.name, at)
            self._left = self.open_runs(run)
            begun.clear()

    def _count_end(self, call: Call, at: int, run: Run) -> None:
        child = call.child
        if child is not None:
            self._take_run(child)
        # An error that left the nested run is counted where it began, unless that has been made up for.
        inner = None if child is None else _reading_of(child)
        passed_on = (
            inner is not None and call.error is not None and call.error == inner.last_error and inner.calls.has_failed
        )
        if not passed_on:
            self._count(call, at, run)
        if call.error is not None and call.status in _FAILED:
            self.last_error = call.error
        if call.error is not None and call.status in {"error", "cancelled"}:
            self._failures.add(Failure("", call.error, None, call.parent), call)

    def _count(self, call: Call, at: int, run: Run) -> None:
        """Count a call of its run that ended; a nested run that failed, only once the call around it has ended."""
        from grace_kp.confidence import PARTLY_READ

        name, around = call.spec.name, None if call.child is None else call.parent
        inside = None if around is None else around.status or ""
        makes_up = inside is not None and call.status == "ok"
        if makes_up:
            waits = any(other.spec.name == name for other, _ in self.undecided)
        else:
            waits = inside == "" and run.open and call.status in _FAILED
        if waits:
            self.undecided.append((call, at))
            return
        if not makes_up or self.calls.has_calls_of(name):  # it makes up for its failures in this run alone
            self.evidence.call_finished(call.status, inside, name, at)
        counts = self.calls.call_finished(call.status, inside, name, at) or call.status in PARTLY_READ
        if counts and (found := call.found()) is not None:
            self.evidence.search_finished(found, name, at)

    def _take_run(self, run: Run) -> None:
        """Add the evidence of a nested run that has ended, or whose call has."""
        if run.open or run.lacks_past:
            self._left.append(run)
            return
        reading = _reading_of(run)
        reading.advance(run)
        self.calls.merge(reading.calls)
        self.has_others |= bool(reading.calls.call_count)
        self._left += reading.open_runs(run)
        self.lost.update(reading.lost)
        self.lost.update(dict.fromkeys(run.missing))
        if run.dropped:
            self.lost[DROPPED.format(run.dropped)] = None

    def _take_earlier(
        self, document: dict[str, Any], nested: Mapping[str, list[dict[str, Any] | None]], *, is_outermost: bool
    ) -> set[object]:
        """Add the evidence from before this run was resumed, with that of its nested runs that had ended; return the ids of the others."""
        from grace_kp.confidence import BEFORE, PER_STEP, RunEvidence, evidence_of_calls

        earlier = EarlierPart(document)
        self.steps = len(earlier.steps)
        self.tools.update((step["tool"]["name"], None) for step in earlier.steps if step.get("tool"))
        self.models.update((str(call["model"]), None) for call in earlier.model_calls if call.get("model"))
        self._failures.pending = [Failure("", ("", ""), None) for _ in earlier.pending]
        own = []
        for call in earlier.calls:
            inside = nested.get(str(call.get("child")), [])
            at = BEFORE + PER_STEP * call.get("observation", 0)
            inner = RunEvidence()
            failed: list[dict[str, Any]] = []
            for found in inside:
                grace = {} if found is None else found.get("grace") or {}
                calls = grace.get("calls")
                if not isinstance(calls, list) or grace.get("dropped_steps"):
                    self.lost[NOT_FOUND] = None
                elif calls:
                    self.has_others = True
                    inner.merge(evidence_of_calls(calls, since=at, per_step=1))
                    failed += [each for each in calls if found is inside[0] and each["status"] in _FAILED]
            self._merge(inner)
            last = max(failed, key=lambda each: each.get("observation", 0), default={}).get("error")
            if not (
                inner.has_failed and last is not None and call.get("error") == last
            ):  # else it counts where it began
                own.append(call)
        self._merge(evidence_of_calls(own, since=BEFORE))
        for step in earlier.steps:
            if is_outermost and step.get("role") == "user":
                self.evidence.user_spoke(BEFORE + PER_STEP * step["step_id"])
        return {call["child"] for call in own if "child" in call and call["status"] in {SUSPENDED, "unfinished"}}

    def _merge(self, earlier: RunEvidence) -> None:
        self.evidence.merge(earlier)
        self.calls.merge(earlier)


def material_of(run: Run | None, action: str, arguments: Mapping[str, object]) -> tuple[str, str, list[str]]:
    """Return question, answer and sources for a judge before an action: the objective, the proposed action, and results of tools."""
    shown = ", ".join(f"{name}={to_text(render(value, _LONGEST))}" for name, value in arguments.items())
    answer = f"{action}({shown})"
    if run is None:
        return action, answer, []
    texts: list[str] = []
    begun: set[int] = set()
    for event in list(run.events):
        if isinstance(event, Note | ModelCall):
            texts += [event.text] if event.text else []
        elif isinstance(event, Call) and id(event) not in begun:
            begun.add(id(event))  # the events hold a call a second time, at its end
        elif isinstance(event, Call) and event.status == "ok" and event.result is not None:
            texts.append(f"{event.spec.name}: {to_text(render(event.result, _LONGEST))}"[:_LONGEST])
    return run.objective, answer, texts[-MAX_MATERIAL:]
