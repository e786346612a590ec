"""Runs and calls while they are live: slotted objects, two clock reads and an append, nothing else.

What they hold is bounded and cannot change any more; turning it into a trace is `_steps` and `_document`, later and elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._attributes import Attributes
from grace_kp.record._captured import NOT_CAPTURED, recorded_error
from grace_kp.record._current import BEYOND, CAPTURE, TROUBLES
from grace_kp.record._events import ModelCall, Note, Pause
from grace_kp.record._guard import note, shielded, shielded_pair
from grace_kp.record._losses import Losses
from grace_kp.record._searches import read_results as _read_results
from grace_kp.record._signals import CLOSED, COMPLETED, FAILED, SUSPENDED, handoff_text, way_out
from grace_kp.trace import render, render_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.confidence import SearchResults
    from grace_kp.record._recorder import Recorder
    from grace_kp.record._spec import Spec
    from grace_kp.trace import ReasoningTrace


class Call:
    """One call of a tool: opened with what was passed, closed with what came back.

    It stands in its run's events twice, once for each; the order of the events is the order of the steps.
    """

    __slots__ = (
        "args",
        "child",
        "end",
        "error",
        "hits",
        "kwargs",
        "owns",
        "parent",
        "place",
        "result",
        "run",
        "spec",
        "start",
        "status",
    )

    def __init__(
        self, run: Run, spec: Spec, parent: Call | None, args: Sequence[Any], kwargs: dict[str, Any] | None
    ) -> None:
        self.run = run
        self.spec = spec
        self.parent = parent
        self.args = args
        self.kwargs = kwargs
        self.child: Run | None = None
        self.error: tuple[str, str] | None = None
        self.hits: SearchResults | None = None
        self.owns = False
        self.result: Any = None
        self.status: str | None = None
        self.end = 0
        self.place = None if BEYOND.place is None else BEYOND.place()
        self.start = run.clock()
        run.events.append(self)  # last, because the journal reads events from another thread

    @shielded_pair
    def close(self, result: Any) -> None:
        """The call returned."""
        run = self.run
        end = run.clock()
        if run.open and self.status is None:
            self.end = end
            self.status = "ok"
            kind = type(result)
            if not run.owner.capture_output:
                self.result = None
            elif (kind is str and len(result) <= run.max_text) or result is None or kind is float or kind is bool:
                self.result = result
            else:
                self.result = render(result, run.max_text)
            if self.spec.searches and self.hits is None:
                self.hits = _read_results(result, self.spec.scores)
            run.events.append(self)
        if self.owns:
            run.close(result)

    @shielded
    def refuse(self, kind: str, message: str) -> None:
        """The call returned, but what it returned says that it failed."""
        run, end = self.run, self.run.clock()
        error = (kind, render_text(message, run.max_text) if run.owner.capture_output else NOT_CAPTURED)
        if run.open and self.status is None:
            self.end, self.status, self.error = end, "error", error
            run.events.append(self)
        if self.owns:
            run.refuse(*error)

    def pause(self) -> None:
        """The run that was called waits for a person."""
        run = self.run
        if run.open and self.status is None:
            self.end, self.status = run.clock(), SUSPENDED
            run.events.append(self)

    @shielded_pair
    def fail(self, error: BaseException) -> None:
        """The call was left by an exception."""
        run = self.run
        end = run.clock()
        if run.open and self.status is None:
            self.end = end
            way = way_out(error)
            self.status = {FAILED: "error", COMPLETED: "ok"}.get(way, way)
            if way == COMPLETED:
                self.result = handoff_text(error)
            else:
                self.error = recorded_error(error, run.owner, run.max_text)
            run.events.append(self)
        if self.owns:
            run.fail(error)


class Run(Losses):
    """One run of an agent from its root call to its end.

    Users meet it as what `with grace.run(...) as run` gives: `run.trace`, `run.thought(...)`, `run.outcome(...)`.
    """

    __slots__ = (
        "_id",
        "asked",
        "attributes",
        "began",
        "capture",
        "clock",
        "decisions",
        "document",
        "domain",
        "earlier",
        "end",
        "error",
        "events",
        "extra",
        "framework",
        "generation",
        "keep",
        "left",
        "max_text",
        "name",
        "objective",
        "open",
        "own_confidence",
        "own_success",
        "owner",
        "pause",
        "prepared",
        "result",
        "resumes",
        "sample",
        "spec",
        "start",
        "status",
        "steps",
        "usage",
        "via",
        "via_trace",
    )

    def __init__(
        self, owner: Recorder, spec: Spec, *, name: str, objective: str, domain: str, via: Call | None = None
    ) -> None:
        self.dropped = self.number = 0
        self.missing = ()
        self.troubles_before = TROUBLES.own
        self.owner = owner
        self.spec = spec
        self.name = name
        self.objective = objective
        self.domain = domain
        self.via = via
        self.via_trace: str | None = None
        self.events: list[Call | Note | ModelCall] = []
        self.decisions: list[dict[str, Any]] = []
        self.attributes: Attributes | None = None
        self.document: bytes | None = None
        self.earlier: dict[str, Any] | None = None
        """The document of this run as it was suspended, once that has been looked for."""
        self.extra: dict[str, Any] | None = None
        self.framework = "grace_kp"
        self.keep = False
        self.left: dict[str, Any] | None = None
        """The document of this run when it was suspended."""
        self.pause: Pause | None = None
        self.resumes: Pause | None = None
        self.error: tuple[str, str] | None = None
        self.result: Any = None
        self.own_confidence: float | None = None
        self.own_success: bool | None = None
        self.status: str | None = None
        self.steps: Any = None
        self.asked = False
        """It is stored as suspended already, so no journal of it is kept any more."""
        self.usage: dict[str, int] | None = None
        """Tokens of this run and of the runs nested in it, once its document has been written."""
        self.prepared: Any = None
        self.sample: float | None = None
        self._id: str | None = None
        self.max_text = owner.max_text
        self.clock = owner.clock
        self.generation = owner.generation
        self.open = True
        self.capture = CAPTURE.get()
        self.began = owner.wall_clock()
        self.end = 0
        self.start = owner.clock()

    @property
    def id(self) -> str:
        """The id of the trace this run becomes: `kp:trace:<uuid>`."""
        if self.resumes is not None:
            self.owner.recall(self)
        if self._id is None:
            self._id = self.owner.new_id()
        return self._id

    def goes_on(self, earlier: dict[str, Any] | None) -> None:
        """This run is one that was suspended, and `earlier` is its trace by then; None where that is not to be had."""
        self.resumes = None
        if earlier is not None and self._id is None:
            self.earlier = earlier
            self._id = earlier["id"]
        self.inherit(self.earlier)

    @property
    def journaled_id(self) -> str | None:
        """Its id, where the store has a journal of it that is done with once the trace is stored."""
        return self.id if self.steps is not None and self.steps.journaled else None

    @property
    def trace(self) -> ReasoningTrace:
        """The finished trace, scored (a ReasoningTrace).

        Raises:
            RuntimeError: the run is still open, or its trace was not kept.
        """
        from grace_kp.record._document import trace_of

        return trace_of(self)

    @shielded
    def thought(self, text: Any) -> None:
        """Record what the agent thinks, as a step."""
        if not self.open:
            note("thought", "said after the run had ended")
        elif len(self.events) >= self.owner.max_events:
            self.dropped += 1
        else:
            self.events.append(Note(render_text(text, self.max_text), self.clock()))

    @shielded
    def outcome(self, *, confidence: float | None = None, success: bool | None = None, result: Any = None) -> None:
        """Say how the run ended in its own words; what is not given stays as it was.

        Args:
            confidence: the run's own confidence, 0 to 1; it wins over the computed one. Anything else is not taken, and
                said so once in the log: a model's slip must not break the agent.
            success: whether the run succeeded; wins over "it returned".
            result: what the run came to; wins over what its root returned.
        """
        if not self.open:
            note("outcome", "set after the run had ended")
            return
        if confidence is not None:
            if type(confidence) in {int, float} and 0 <= confidence <= 1:
                self.own_confidence = confidence
            else:
                note("outcome", f"confidence must be a number from 0 to 1, not {render_text(confidence, 100)}")
        if success is not None:
            self.own_success = bool(success)
        if result is not None:
            self.result = render(result, self.max_text)

    @shielded
    def update(
        self,
        *,
        tags: Iterable[str] | str | None = None,
        user: str | None = None,
        session: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """State what the run is found by: tags are added, metadata is merged by key, user and session are replaced.

        Stored under `grace` in the trace, without secrets: at most 50 tags and 50 metadata keys. A tag, user, session or key keeps
        200 characters. A nested run belongs to the user and the session of the run around it unless it states its own.

        Args:
            tags: texts such as "beta" or "nightly".
            user: who the run is for, as an id; None leaves it as it is.
            session: the conversation or job that the run is part of; None leaves it as it is.
            metadata: any JSON values by name.
        """
        if not self.open:
            note("update", "called after the run had ended")
            return
        with self.owner.lock:
            if self.attributes is None:
                self.attributes = Attributes()
            self.attributes.merge(tags=tags, user=user, session=session, metadata=metadata, max_text=self.max_text)

    @shielded
    def model_called(self, call: ModelCall) -> None:
        """Record a model's call; its text becomes a thought."""
        if self.open:
            if len(self.events) >= self.owner.max_events:
                self.dropped += 1
            else:
                self.events.append(call)

    @shielded
    def suspend(self, pause: Pause) -> None:
        """The run waits for a person, and may go on later, in this process or another one."""
        if self.open:
            self.pause = pause
            self._finish(SUSPENDED, None, None)

    @shielded
    def discard(self, result: Any) -> None:
        """Forget a run in which nothing has happened; the call that it was made by, if any, returned `result`."""
        self.open = False
        self.owner.open_runs.discard(self)
        if self.capture is not None and self in self.capture:
            self.capture.remove(self)
        if self.via is not None:
            self.via.child = None
            self.via.close(result)

    @shielded
    def refuse(self, kind: str, message: str) -> None:
        """The root call returned, but what it returned says that it failed."""
        if self.open:
            self.error = (kind, message)
            self._finish(FAILED, None, None)

    @shielded_pair
    def close(self, result: Any) -> None:
        """The root call returned."""
        if not self.open:
            return
        if self.owner.capture_output and self.result is None:
            self.result = render(result, self.max_text)
        self._finish(COMPLETED, result, None)

    @shielded
    def drop(self, streamed: Any) -> None:
        """The stream of the root call was closed before its end; keep what had been streamed by then."""
        if self.open and self.owner.capture_output and self.result is None and streamed is not None:
            self.result = render(streamed, self.max_text)
        self.fail(GeneratorExit("the stream was closed before its end"))

    @shielded_pair
    def fail(self, error: BaseException) -> None:
        """The root call was left by an exception."""
        if not self.open:
            return
        status = way_out(error)
        if status == COMPLETED:
            self.close(handoff_text(error))
            return
        self.error = recorded_error(error, self.owner, self.max_text)
        self._finish(status, None, error)

    def _finish(self, status: str, result: Any, error: BaseException | None) -> None:
        self.end = self.clock()
        self.status = status
        self.open = False
        owner = self.owner
        owner.open_runs.discard(self)
        if self.generation != owner.generation:
            return
        via = self.via
        if via is not None:
            if status == SUSPENDED and error is None:
                via.pause()
            elif status == FAILED and error is None:
                via.refuse(*(self.error or ("Error", "")))
            elif error is None:
                via.close(result)
            else:
                if status == CLOSED:
                    via.result = self.result
                via.fail(error)
        owner.ended(self)
