"""A run while it is live: the recorder that owns it, the run, its calls and other events, and where the current context is.

These are slotted objects; recording is two clock reads and an append. Their contents are bounded and cannot change any more. `_steps` and
`_document` turn them into a trace, later and elsewhere.
"""

from __future__ import annotations

import os
import threading
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from grace_kp.errors import ActionNotApproved
from grace_kp.record._current import CAPTURE, CURRENT, HOST, TROUBLES
from grace_kp.record._failure import TOOL_ERROR, reported_failure
from grace_kp.record._guard import finish_late, note, shielded, shielded_end
from grace_kp.record._host import CLOSED, COMPLETED, FAILED, INTERRUPTED, SUSPENDED, WAITING
from grace_kp.record._spec import Attributes
from grace_kp.trace import describe_error, render, render_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from grace_kp.confidence import ResultReader, SearchResults
    from grace_kp.record._resume import Pause
    from grace_kp.record._spec import Spec
    from grace_kp.settings import Settings
    from grace_kp.trace import ReasoningTrace


NOT_CAPTURED = "[not captured]"
"""Replaces contents where inputs or outputs are not captured."""


MAX_INSTRUCTIONS = 200_000
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
ALONE = "this run was inside of another when it was suspended, and has been continued without that"
LOST = "what this run recorded before it was suspended cannot be found"


def new_trace_id() -> str:
    """Return `kp:trace:` and a random version 4 UUID; cheaper than `uuid4`."""
    # Not from a pool of random bytes, which would repeat in a fork or in a copy of the virtual machine.
    text = os.urandom(16).hex()
    return f"kp:trace:{text[:8]}-{text[8:12]}-4{text[13:16]}-{_VARIANT[text[16]]}{text[17:20]}-{text[20:]}"


def instant(nanoseconds: int) -> str:
    """Return nanoseconds since the epoch as ISO 8601 in UTC, to the millisecond, ending in Z."""
    seconds, rest = divmod(nanoseconds // 1_000_000, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:03d}Z"


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks of a recorder, by default none."""

    opened: Callable[[Run], None] = lambda _run: None
    ended: Callable[[Run], None] = lambda _run: None
    drain: Callable[[], None] = lambda: None
    """Wait until every run that has ended has its document."""
    recall: Callable[[Run], None] = lambda _run: None
    """Give a resumed run the document that it had when it was suspended; if it has that, the documents of the runs nested in it."""
    asked: Callable[[Sequence[tuple[Run, Pause]]], None] = lambda _waiting: None
    """Store open runs as suspended, because a person is about to be asked."""


class Recorder:
    """The owner of runs: the limits they are recorded with, the runs that are open, and who hears when one opens or ends."""

    __slots__ = (
        "adapters", "asked", "capture_input", "capture_output", "clock", "domain", "drain", "draws_early", "enabled",
        "ended", "generation", "is_gated", "lock", "max_events", "max_text", "new_id", "open_runs", "opened", "recall",
        "stray_since", "wall_clock",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        listener: Listener,
        *,
        clock: Callable[[], int] = perf_counter_ns,
        wall_clock: Callable[[], int] = time_ns,
        new_id: Callable[[], str] = new_trace_id,
    ) -> None:
        self.clock, self.wall_clock, self.new_id = clock, wall_clock, new_id
        self.draws_early = new_id is not new_trace_id
        """Whether a run draws its id when it begins. Ids of a test follow the order of the runs, whichever thread asks for one first."""
        self.opened, self.ended, self.drain = listener.opened, listener.ended, listener.drain
        self.recall, self.asked = listener.recall, listener.asked
        self.adapters: dict[str, Any] = {}
        """State that the adapter of each framework keeps with this recorder, by its name."""
        self.domain = settings.domain
        self.max_text = settings.max_text
        self.max_events = settings.max_steps
        self.enabled = settings.enabled
        self.capture_input, self.capture_output = settings.capture_input, settings.capture_output
        self.open_runs: set[Run] = set()
        self.is_gated = False
        """Whether there are gates, which may ask what runs have seen."""
        self.lock = threading.RLock()
        """Held while the id or the attributes of a run change; a signal handler may ask for them meanwhile."""
        self.stray_since = 0
        """Number of the latest first run of a thread in which a tool was called outside of any run; see `_evidence`."""
        self.generation = 0
        """Counts forks: a run that began before a fork belongs to the parent process and does not end in the child."""

    def after_fork(self) -> None:
        """In a forked child, forget the runs that are open: they belong to the parent, and no thread would release the lock."""
        self.lock = threading.RLock()
        self.generation += 1
        self.open_runs.clear()

    def announce(self, run: Run) -> None:
        """Open the run: from now on it is journaled, and found again if the process dies."""
        self.open_runs.add(run)
        if self.draws_early and run.resumes is None:
            _ = run.id
        try:
            self.opened(run)
        except BaseException:
            self.open_runs.discard(run)
            raise

    def describe(self, error: BaseException) -> tuple[str, str]:
        """Return the type name of an error and the message that is recorded for it.

        A message may quote the output of the call that failed, so it needs `capture_output`. The error of a gate may hold a reviewer's
        words about the arguments, so its message needs `capture_input`, too.
        """
        kind, message = describe_error(error, self.max_text)
        if not self.capture_output or (issubclass(type(error), ActionNotApproved) and not self.capture_input):
            message = NOT_CAPTURED
        return kind, message


class Run:
    """One run of an agent from its root call to its end.

    `with grace.run(...) as run` hands it to users, for `run.trace`, `run.thought(...)` and `run.outcome(...)`.
    """

    __slots__ = (
        "__weakref__", "_id", "asked", "attributes", "began", "capture", "checks", "claims", "clock", "decisions", "document", "domain", "dropped",
        "earlier", "earlier_nested", "end", "error", "events", "facts", "framework", "generation", "keep", "max_text", "missing",
        "name", "node", "number", "objective", "objective_is_document", "open", "own_confidence", "own_success", "owner", "pause", "pending", "preamble", "prepared",
        "reading", "refusal", "refusals", "result", "resumes", "returned", "sample", "sealed", "sight", "spec", "start", "status", "steps", "stored", "suspended",
        "troubles_before", "usage", "via", "via_trace",
    )  # fmt: skip

    def __init__(
        self, owner: Recorder, spec: Spec, name: str, objective: str, domain: str, via: Call | None = None
    ) -> None:
        self.dropped = 0  # steps beyond the bound
        self.number = 0
        """Its place in the order in which runs began; 0 until it is known to have begun."""
        self.missing: tuple[str, ...] = ()
        """Why evidence from before this run was resumed is missing."""
        self.troubles_before = TROUBLES.own
        """Failures of recording in this process before this run began."""
        self.owner = owner
        self.spec = spec
        self.name, self.objective, self.domain = name, objective, domain
        self.objective_is_document = False
        """Whether it is, or quotes, the value of what is named like a document; see `is_document`."""
        self.via = via
        self.via_trace: str | None = None
        self.events: list[Event] = []
        self.decisions: list[dict[str, Any]] = []
        self.returned: dict[object, object] = {}
        """What gated functions returned, by the id of their decision, until a gate reads it."""
        self.checks: list[Callable[[str], object]] = []
        """Called with the id of the trace once it is stored: labels that follow from the results of gated actions."""
        self.attributes: Attributes | None = None
        self.document: bytes | None = None
        self.earlier: dict[str, Any] | None = None
        """The document of the suspended run that this run continues, once it has been found."""
        self.earlier_nested: dict[str, list[dict[str, Any] | None]] | None = None
        """For each run that had ended inside the suspended one: its document and those nested in it; None for one that cannot be found.

        None until it is needed, because such a run may have ended a moment ago and wait to be stored.
        """
        self.facts: dict[str, Any] | None = None
        """Facts that the framework states about the run, for its document."""
        self.framework = "grace_kp"
        self.node: dict[str, Any] | None = None
        """The node of a graph that the run began in, if the graph may run that node again."""
        self.keep = False
        self.suspended: dict[str, Any] | None = None
        """The document of this run when it was suspended."""
        self.pause: Pause | None = None
        """Why this run waits, and where it is found again."""
        self.resumes: Pause | None = None
        """Why the run waited that this run continues, until `earlier` has been looked for."""
        self.error: tuple[str, str] | None = None
        self.result: Any = None
        self.own_confidence: float | None = None
        self.own_success: bool | None = None
        self.pending: Any = None
        """The approval that was pending at the gate which ended the run, also at one of a nested run."""
        self.refusal: Any = None
        """The last refusal of a gate, and what was recorded by then; see `_evidence`."""
        self.refusals: Any = None
        """Refusals of calls by frameworks that hold in the tree of an outermost run."""
        self.claims: Any = None
        """Open claims of calls by frameworks; their outcome is unknown once the run ends."""
        self.status: str | None = None
        self.stored: Awaitable[None] | None = None  # what a coroutine awaits before it returns
        self.steps: Any = None
        self.asked = False
        """True once the run is stored as suspended, so that it needs no journal any more."""
        self.usage: dict[str, int] | None = None
        """Tokens of this run and of the runs nested in it, once it has a document."""
        self.prepared: Any = None
        self.sample: float | None = None
        self.reading: Any = None
        """How far gates have read its events."""
        self.sight: Any = None
        """What gates have read of what the agent has seen; for a nested run that has ended, the events that they may still read."""
        self.preamble: list[tuple[int, Any]] | None = None
        """What the model was told apart from the events: instructions, and functions that read messages; see `_sight`.

        Each has the number of events before it; -1 before everything else, also before the part that a resumed run continues.
        """
        self.sealed: list[dict[str, Any]] | None = None  # entries of gates, also of runs inside
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
    def run(self) -> Self:
        """This run, as `call.run` is that of a call."""
        return self

    @property
    def id(self) -> str:
        """The id of the trace this run becomes: `kp:trace:<uuid>`."""
        if self.resumes is not None:
            self.owner.recall(self)
        return self._id or self._publish(self.owner.new_id())

    def _publish(self, new: str) -> str:
        with self.owner.lock:
            self._id = self._id or new
            return self._id

    @property
    def lacks_past(self) -> bool:
        """Whether `recall` must be called, once or twice, before its evidence can be read."""
        return self.resumes is not None or (self.earlier is not None and self.earlier_nested is None)

    def resume(self, earlier: dict[str, Any] | None) -> None:
        """Continue the suspended run whose document is `earlier`; None if that cannot be found."""
        if earlier is not None and self._publish(earlier["id"]) == earlier["id"]:
            self.earlier = earlier
            grace = earlier.get("grace") or {}
            previous = getattr(self.resumes, "previous", None)
            earlier_words = getattr(previous, "preamble", None) or ()
            self.preamble = [*((min(at, 0), words) for at, words in earlier_words), *(self.preamble or ())]
            self.missing += tuple(map(str, grace.get("evidence_gaps") or ()))
            self.dropped += grace.get("dropped_steps") or 0
            around = (grace.get("parent") or {}).get("trace_id")
            if around is not None and (self.via is None or self.via.run.id != around):
                self.missing += (ALONE,)
        else:
            self.missing += (LOST,)
        self.resumes = None  # last, because other threads wait for the earlier part until then

    @property
    def is_resumed(self) -> bool:
        """Whether it continues a suspended run, found or not."""
        return self.resumes is not None or self.earlier is not None or LOST in self.missing

    @property
    def journaled_id(self) -> str | None:
        """Its id if the store has a journal of it, which is deleted once the trace is stored; else None."""
        return self.id if self.steps is not None and self.steps.journaled else None

    @property
    def trace(self) -> ReasoningTrace:
        """The finished trace, scored (a ReasoningTrace).

        Raises:
            RuntimeError: the run is still open, or its trace was not kept.
        """
        if self.open:
            raise RuntimeError(f"the run {self.name!r} is still open; it has a trace when it has ended")
        if self.document is None:
            self.owner.drain()
        if self.document is None:
            raise RuntimeError(
                f"the trace of the run {self.name!r} was not kept: recording is off, or it was sampled out"
            )
        from grace_kp.trace import ReasoningTrace

        return ReasoningTrace.model_validate_json(self.document)

    @shielded
    def thought(self, text: object) -> None:
        """Record a thought of the agent as a step."""
        self._say(Note, "thought", text)

    @shielded
    def user_message(self, text: object) -> None:
        """Record that a person wrote something to the agent, as a step.

        Gates then no longer take into account how bad the searches before it were; a new message is a new question. So pass what a person
        wrote and nothing else: a message that a model or a document wrote does not become a person's by being in the role of a user.
        A message without a visible character, or None, is ignored. In a nested run it is a step, but no new question.
        """
        words = "" if text is None else render_text(text, self.max_text)
        if not any(letter.isprintable() and not letter.isspace() for letter in words):
            note("user_message", "ignored a message without a visible character")
            return
        self._say(UserMessage, "user_message", text if self.owner.capture_input else NOT_CAPTURED)

    @shielded
    def instructions(self, text: str) -> None:
        """State instructions that the author of the program gave the model, such as its system prompt.

        Gates then know the values in it: they are the author's words. It is not recorded. Pass no text with documents or with results of
        tools in it, and none that a user wrote.
        """
        self.preamble = [*(self.preamble or ()), (len(self.events) or -1, render_text(text, MAX_INSTRUCTIONS))]

    def _say(self, kind: type[Note], verb: str, text: object) -> None:
        if not self.open:
            note(verb, "recorded after the run had ended")
        elif len(self.events) >= self.owner.max_events:
            self.dropped += 1
        else:
            self.events.append(kind(render_text(text, self.max_text), self.clock()))

    @shielded
    def outcome(self, *, confidence: float | None = None, success: bool | None = None, result: object = None) -> None:
        """State how the run ended; see `Grace.outcome`."""
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
        """State attributes of the run: add tags, merge metadata by key, replace user and session.

        Stored under `grace` in the trace, without secrets: at most 50 tags and 50 metadata keys. A tag, user, session or key keeps
        200 characters. A nested run belongs to the user and the session of the run around it unless it states its own.

        For the arguments see `Grace.update`; None leaves what was stated before.
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
        """Record a call of a model; its text becomes a thought."""
        if self.open:
            if len(self.events) >= self.owner.max_events:
                self.dropped += 1
            else:
                self.events.append(call)

    @shielded
    def suspend(self, pause: Pause) -> None:
        """Suspend the run: it waits for a person and may continue later, in this process or another."""
        if self.open:
            self.pause = pause
            self._finish(SUSPENDED, None, None)

    @shielded
    def discard(self, result: object) -> None:
        """Forget a run in which nothing has happened; the call that opened it, if any, returned `result`."""
        self.open = False
        self.owner.open_runs.discard(self)
        if self.capture is not None and self in self.capture:
            self.capture.remove(self)
        if self.via is not None:
            self.via.child = None
            self.via.close(result)

    @shielded
    def refuse(self, kind: str, message: str, status: str = FAILED) -> None:
        """Record that the run failed without an exception: its result reports a failure, or nobody reported its end."""
        if self.open:
            self.error = (kind, message)
            self._finish(status, None, None)

    @shielded_end
    def close(self, result: object) -> None:
        """Record that the root call returned."""
        if not self.open:
            return
        if self.owner.capture_output and self.result is None:
            plain = type(result) is str and len(result) <= self.max_text
            self.result = result if plain else render(result, self.max_text)
        self._finish(COMPLETED, result, None)

    @shielded
    def drop(self, streamed: object) -> None:
        """Record that the stream of the root call was closed before its end; keep what it had streamed by then."""
        if self.open and self.owner.capture_output and self.result is None and streamed is not None:
            self.result = render(streamed, self.max_text)
        self.fail(GeneratorExit("the stream was closed before its end"))

    @shielded_end
    def fail(self, error: BaseException) -> None:
        """Record that an exception left the root call."""
        if not self.open:
            return
        status = HOST.status_after(error)
        if status == COMPLETED:
            self.close(HOST.handoff_text(error))
            return
        self.error = self.owner.describe(error)
        self.pending = getattr(error, "approval", None) if status == WAITING else None
        self._finish(status, None, error)

    def _finish(self, status: str, result: object, error: BaseException | None) -> None:
        if TROUBLES.late:
            finish_late()
        self.end = self.end or self.clock()
        owner = self.owner
        owner.open_runs.discard(self)
        self.status = status
        self.open = False
        if self.generation != owner.generation:
            return
        try:
            if self.via is None:
                owner.ended(self)
            else:
                self._hand_over((result, error))
        except RecursionError:
            TROUBLES.late += [(Run._hand_over, self, (result, error))]

    def _hand_over(self, ending: tuple[object, BaseException | None]) -> None:
        """End the call that opened this run with its result and error, and let the listener have the run."""
        result, error = ending
        via, status = self.via, self.status
        if via is not None:
            if status == SUSPENDED and error is None:
                via.pause()
            elif status in {FAILED, INTERRUPTED} and error is None:
                via.refuse(*(self.error or ("Error", "")))
            elif error is None:
                via.close(result)
            else:
                if status == CLOSED:
                    via.result = self.result
                via.fail(error)
        self.owner.ended(self)


class Event:
    """Something that a run records, in order."""

    __slots__ = ("place",)

    place: str | None
    """The part of a framework's program in which it happened."""


class Note(Event):
    """A thought that the agent stated itself."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.place = None if HOST.place is None else HOST.place()


class UserMessage(Note):
    """Something that a person wrote, as the program states."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class ModelCall(Event):
    """A finished call of a model: its text, if any, its usage, and its error if it failed."""

    model: str
    _: KW_ONLY
    start: int
    end: int
    text: str = ""
    status: str = "ok"
    error: tuple[str, str] | None = None
    usage: Mapping[str, int] | None = None
    place: str | None = None


HERE = "?"
"""Placeholder for the part of a framework's program that runs here; the framework names it."""
_SAME = object()
_STATUSES = {FAILED: "error", COMPLETED: "ok"}


class Call(Event):
    """One call of a tool: opened with its arguments, closed with its result.

    Its run's events hold it twice, once for each; the order of the events is the order of the steps.
    """

    __slots__ = (
        "args", "child", "end", "error", "hits", "kwargs", "owns", "parent", "result", "run", "spec", "start",
        "status", "streams",
    )  # fmt: skip

    def __init__(
        self,
        run: Run,
        spec: Spec,
        parent: Call | None,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None,
        place: str | None = HERE,
    ) -> None:
        self.run = run
        self.spec = spec
        self.parent = parent
        self.args = args
        self.kwargs = kwargs
        self.child: Run | None = None
        """The run that this call opened."""
        self.error: tuple[str, str] | None = None
        self.hits: SearchResults | ResultReader | None = None
        """The results of a search, or their reader while it streams."""
        self.owns = False
        """The run consists of this call and ends with it."""
        self.result: Any = None
        self.status: str | None = None
        self.end = 0
        self.streams: bool  # set for generators only
        self.place = place if place is not HERE else None if HOST.place is None else HOST.place()
        self.start = run.clock()
        run.events.append(self)  # last, because the journal reads events from another thread

    def end_with(self, result: object, last: object = _SAME) -> None:
        """Record that the call returned. A failure of recording is the caller's to catch; `close` catches it."""
        run = self.run
        end = self.end or run.clock()
        if run.open and self.status is None:
            spec, kind = self.spec, type(result)
            if (
                (kind is str and len(result) <= run.max_text)  # type: ignore[arg-type]  # it is a str
                or result is None
                or kind is float
                or kind is bool
            ) and not spec.looks:
                if run.owner.capture_output:
                    self.result = result
            else:
                failure = reported_failure(result if last is _SAME else last, spec.failed)
                if failure is not None:
                    self.refuse(TOOL_ERROR, failure)
                    return
                if run.owner.capture_output:
                    self.result = render(result, run.max_text)
                if spec.searches and self.hits is None:
                    self.read_hits(result)
            self.end = end
            self.status = "ok"
            run.events.append(self)
        if self.owns:
            run.close(result)

    close = shielded_end(end_with)

    def read_hits(self, result: object) -> None:
        """Read the search results in a result."""
        from grace_kp.confidence import read_results  # loaded with the first search

        self.hits = read_results(result, self.spec.scores)

    def found(self) -> SearchResults | None:
        """Return what a search found, so far if it still streams."""
        if self.hits is None:
            return None
        from grace_kp.confidence import ResultReader

        return self.hits.so_far() if isinstance(self.hits, ResultReader) else self.hits

    @shielded
    def refuse(self, kind: str, message: str) -> None:
        """Record that the call returned a result that reports a failure."""
        run, end = self.run, self.end or self.run.clock()
        error = (kind, render_text(message, run.max_text) if run.owner.capture_output else NOT_CAPTURED)
        if run.open and self.status is None:
            self.end, self.status, self.error, self.hits = end, "error", error, None
            run.events.append(self)
        if self.owns:
            run.refuse(*error)

    def pause(self) -> None:
        """Record that the run which this call opened waits for a person."""
        run = self.run
        if run.open and self.status is None:
            self.end, self.status = run.clock(), SUSPENDED
            run.events.append(self)

    @shielded_end
    def fail(self, error: BaseException) -> None:
        """Record that an exception left the call."""
        run = self.run
        end = self.end or run.clock()
        if run.open and self.status is None:
            self.end = end
            status = HOST.status_after(error)
            self.status = _STATUSES.get(status, status)
            if status == COMPLETED:
                self.result = HOST.handoff_text(error)
            else:
                self.error = run.owner.describe(error)
            run.events.append(self)
        if self.owns:
            run.fail(error)


Frame: TypeAlias = "Call | Run"


def find_frame() -> Frame | None:
    """Return the innermost recorded call or run of this context."""
    here: Frame | None = CURRENT.get()
    return here if HOST.locate is None else HOST.locate(here)


def current_run() -> Run | None:
    """Return the open run around this context; None outside of any run."""
    here = find_frame()
    return here.run if here is not None and here.run.open else None
