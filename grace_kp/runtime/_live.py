"""Runs and calls that an adapter opens and ends itself, for frameworks that call hooks instead of functions.

Recording them fails open. A live run also knows the claims of gated calls that have begun: those that are open when it ends become unknown,
because nobody will report their results.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from grace_kp.record import (
    AGENT,
    CLOSED,
    CURRENT,
    FAILED,
    HOST,
    INTERRUPTED,
    NOT_CAPTURED,
    RETRIEVER,
    SEALED,
    TOOL,
    TOOL_ERROR,
    ModelCall,
    Pause,
    Spec,
    attempt,
    call_in,
    instant,
    note,
    open_run,
    register,
    shielded,
    silent_run,
)
from grace_kp.trace import render, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from grace_kp.confidence import Scores
    from grace_kp.record import Call, Recorder, Run
    from grace_kp.trace import ReasoningTrace

    Frame = Call | Run
    Instant = datetime | float | None
    Who = tuple[str, str, str | None, str | None, str | None]

MAX_OPEN = 10_000
"""Live runs that are open at once; beyond it the oldest is closed as interrupted."""
MAX_SUSPENDED = 256
"""Suspended runs that this process holds; others are read from the store."""
MAX_SPECS, MAX_NAME, MAX_OBJECTIVE, MAX_SEALED = 1_024, 200, 2_000, 200_000
OVERFLOW = f"closed as interrupted, because more than {MAX_OPEN:,} runs were open"
DEFAULT = "grace_kp"
LAST = 1e11
"""Seconds since the epoch that are certainly no time."""


class Current:
    """Makes a run or call current while a block runs. Leaving the block raises nothing, in whichever context and order that happens."""

    __slots__ = ("_before", "_entered", "_frame")

    def __init__(self, frame: Frame, entered: Any) -> None:
        self._frame, self._entered, self._before = frame, entered, None

    def __enter__(self) -> Any:
        self._before = CURRENT.get()
        CURRENT.set(self._frame)
        return self._entered

    def __exit__(self, *_: object) -> None:
        if CURRENT.get() is self._frame:  # also in a copy of the context that was entered; no token would do there
            CURRENT.set(self._before)


class LiveRun:
    """A run that an adapter opens with `Grace.open_run` and ends itself. `thought`, `user_message`, `instructions`, `update` and `outcome` are those of `Run`.

    Attributes:
        run: the recorded run; None where recording is off.
        frame: the same, else a run that records nothing and lets gates know that.
        framework, session, user: as passed to `open_run`, else those of the live run around it.
        claims: open claims of gated calls.
    """

    __slots__ = (
        "__weakref__", "_block", "_runs", "_who", "claims", "domain", "frame", "framework", "instructions", "name", "outcome", "place", "run", "session",
        "thought", "update", "user", "user_message",
    )  # fmt: skip

    def __init__(self, runs: LiveRuns, run: Run | None, frame: Run, who: Who, place: tuple[str, str] | None) -> None:
        self._runs, self.place, self.run, self.frame = runs, place, run, frame
        self.name, self.domain, self.framework, self.session, self.user = self._who = who
        self._block: Current | None = None
        self.claims: set[Any] = set()
        self.thought, self.user_message, self.instructions = frame.thought, frame.user_message, frame.instructions
        self.update, self.outcome = frame.update, frame.outcome

    @property
    def id(self) -> str | None:
        """The id of its trace; None where recording is off."""
        return None if self.run is None else self.run.id

    @property
    def open(self) -> bool:
        """Whether it has not ended. In a forked child it is not open, because it belongs to the parent."""
        return self in self._runs.open_runs

    @property
    def trace(self) -> ReasoningTrace:
        """The finished trace, scored; RuntimeError while the run is open, or where its trace was not kept."""
        return self.frame.trace

    def current(self) -> Current:
        """`with run.current():` — gates and recorded functions inside belong to this run. It may be entered repeatedly, by many tasks and threads."""
        return Current(self.frame, self)

    @shielded
    def handoff(self, to: str | Iterable[str], *, source: str | None = None) -> None:
        """Record as a thought that the agent, or the one named `source`, handed over to another or several."""
        words = HOST.handoff_to([to] if isinstance(to, str) else [*to])
        self.thought(f"{source[:MAX_NAME]} {words}" if source else words)

    @shielded
    def model_call(
        self,
        model: str,
        *,
        text: str = "",
        usage: Mapping[str, int] | None = None,
        error: BaseException | str | None = None,
        started: Instant = None,
        ended: Instant = None,
    ) -> None:
        """Record a call of a model that has ended. What it wrote becomes a thought.

        `usage` has tokens by kind, such as `{"input_tokens": 12, "output_tokens": 3}`. Times are aware datetimes, or seconds since the epoch.
        Without `ended` it ended now; without `started` it took no time.
        """
        run = self.frame
        if run is not self.run:
            return
        end = _on_clock(run, ended) or run.clock()
        call = ModelCall(render_text(model, MAX_NAME), start=min(_on_clock(run, started) or end, end), end=end)
        call.text = _shown(run, text) if text else ""
        call.usage = {key: n for key, n in (usage or {}).items() if key.endswith("_tokens") and type(n) is int} or None
        if isinstance(error, BaseException):
            status = HOST.status_after(error)
            call.status = "error" if status == FAILED else status
            call.error = None if status == CLOSED else run.owner.describe(error)
        elif error is not None:
            call.status, call.error = "error", ("ModelError", _shown(run, error))
        run.model_called(call)

    def open_tool(
        self,
        tool: Any,
        arguments: Mapping[str, Any],
        *,
        kind: str = "tool",
        scores: Scores | None = None,
        failed: Callable[[Any], object] | None = None,
        started: Instant = None,
        inside: LiveCall | None = None,
    ) -> LiveCall:
        """Record that a tool is called; return the call, which must be ended. Any number may be open at once.

        `tool` is its name or its action; what a gated action of that name ignores is not recorded, and what it seals is hidden. A tool of the
        kind `search` returns search results; `scores` and `failed` are those of `Grace.retriever`. Without `scores` no score is read,
        and gates ask at least for CONFIRM. `started` is an aware datetime, or seconds since the epoch; `inside` is the call around it.
        """
        found = None
        if self.run is not None:
            found = self._open_tool(tool, arguments, kind, scores, failed, started, inside)
        return LiveCall(self, found, reads_scores=scores is not None)

    @shielded
    def _open_tool(
        self, tool: Any, arguments: Mapping[str, Any], kind: str, scores: Scores | None, failed: Callable[[Any], object] | None,
        started: Instant, inside: LiveCall | None,
    ) -> Call | None:  # fmt: skip
        run, named = self.frame, {str(key): value for key, value in arguments.items()}
        action = self._runs.find_action(tool) if isinstance(tool, str) else tool
        name = tool if isinstance(tool, str) else tool.name
        if (terms := getattr(action, "terms", None)) is not None:
            sealed = {key: render(value, MAX_SEALED) for key, value in named.items() if key in terms.sealed}
            if sealed:  # its result may repeat them
                register(run, {"sealed": [*sealed], "arguments": sealed})
            named = {key: SEALED if key in sealed else named[key] for key in named if key not in terms.ignore}
        if not run.open:
            note("open_tool", "called after the run had ended")
            return None
        spec = self._runs.spec_of(name, kind, scores, failed or getattr(action, "failed", None))
        call = call_in(run if inside is None else inside.frame, spec, named)
        if call is not None and started is not None:
            call.start = _on_clock(run, started) or call.start
        return call

    def decide(self, calls: Sequence[Any], wait: bool | None = None) -> list[Any]:
        """Decide on the `gk.Call`s of one turn on the same evidence; with `wait=False`, what a person must decide is pending."""
        from grace_kp.runtime._seam import decide_calls

        return decide_calls(self, calls, wait)

    async def adecide(self, calls: Sequence[Any], wait: bool | None = None) -> list[Any]:
        """Decide like `decide`, without blocking the event loop."""
        from grace_kp.runtime._seam import adecide_calls

        return await adecide_calls(self, calls, wait)

    def close(self, result: object = None, *, ended: Instant = None) -> None:
        """Record that the run returned `result`. Only the first end of a run counts."""
        self._end(lambda run: run.close(result), ended)

    def fail(self, error: BaseException | str, *, ended: Instant = None) -> None:
        """Record that the run failed, with an exception or a message."""
        if isinstance(error, BaseException):
            self._end(lambda run: run.fail(error), ended)
        else:
            self._end(lambda run: run.refuse("Error", _shown(run, error)), ended)

    def suspend(self, key: str) -> None:
        """End the live run, because it waits for a person; its trace is continued by `open_run(resume=key)`, also in another process."""
        self._end(lambda run: self._suspend(run, _token(key, self._who)))

    @shielded
    def _suspend(self, run: Run, token: str) -> None:
        run.facts = {"thread_id": token, "at": instant(run.owner.wall_clock())}
        run.suspend(Pause(token, None, None, once=True))
        if run is self.run:
            self._runs.suspended[token] = run
            if len(self._runs.suspended) > MAX_SUSPENDED:
                self._runs.suspended.popitem(last=False)
            self._runs.store_soon()  # with the runs inside, because the program may save its state next and die

    def _end(self, end: Callable[[Run], object], ended: Instant = None) -> None:
        runs = self._runs
        with runs.lock:
            if runs.open_runs.pop(self, True):  # it has ended before
                return
            if self.place is not None and runs.by_id.get(self.place) is self:
                del runs.by_id[self.place]
        try:
            for claim in list(self.claims):
                attempt("a claim that its run leaves open", claim.unknown)
        finally:
            if self.frame.open:
                self.frame.end = _on_clock(self.frame, ended) or 0
            end(self.frame)

    def __enter__(self) -> Self:
        self._block = self.current()
        self._block.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if self._block is not None:
            self._block.__exit__()
        if error is None:
            self.close()
        else:
            self.fail(error)

    async def __aenter__(self) -> Self:
        self.frame.spec.can_await = True
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)
        if self.frame.stored is not None and kind is not GeneratorExit:
            await self.frame.stored


class LiveCall:
    """A call of a tool in a live run; `call` is None where it is not recorded. Only its first end counts."""

    __slots__ = ("_reads_scores", "call", "run")

    def __init__(self, run: LiveRun, call: Call | None, *, reads_scores: bool) -> None:
        self.run, self.call, self._reads_scores = run, call, reads_scores

    @property
    def frame(self) -> Frame:
        """The recorded call, else its run."""
        return self.run.frame if self.call is None else self.call

    def current(self) -> Current:
        """`with call.current():` — gates, recorded functions and runs inside belong to this call; see `LiveRun.current`."""
        return Current(self.frame, self)

    @shielded
    def close(self, result: object, *, ended: Instant = None) -> None:
        """Record that the call returned `result`, which may report a failure."""
        if (call := self._at(ended)) is not None:
            if call.spec.searches and not self._reads_scores:
                from grace_kp.confidence import read_results

                call.hits = replace(read_results(result, "none"), kind="")
            call.close(result)

    @shielded
    def fail(self, error: BaseException | str, *, ended: Instant = None) -> None:
        """Record that the call failed, with an exception or a message."""
        if (call := self._at(ended)) is not None:
            call.fail(error) if isinstance(error, BaseException) else call.refuse(TOOL_ERROR, error)

    def drop(self) -> None:
        """Record that nobody waits for the result any more, as when a stream is closed before its end."""
        self.fail(GeneratorExit("the call was abandoned"))

    def _at(self, ended: Instant) -> Call | None:
        call = self.call
        if call is None or call.status is not None:
            return None
        call.end = max(at, call.start) if (at := _on_clock(call.run, ended)) is not None else 0
        return call


class LiveRuns:
    """The open live runs of one runtime, also by the ids of their frameworks, and suspended ones."""

    def __init__(self, recorder: Recorder, find_action: Callable[[str], Any], store_soon: Callable[[], object]) -> None:
        self.recorder, self.find_action, self.store_soon = recorder, find_action, store_soon
        self.after_fork()

    def after_fork(self) -> None:
        """Forget all of them in the child; they belong to the parent."""
        self.lock = threading.RLock()
        self.open_runs: dict[LiveRun, None] = {}
        self.by_id: dict[tuple[str, str], LiveRun] = {}
        self.suspended: OrderedDict[str, Run] = OrderedDict()
        self._specs: dict[Any, Spec] = {}

    def open(
        self, objective: object, name: str | None, framework: str | None, run_id: object, resume: str | None,
        inside: LiveRun | LiveCall | None, started: Instant, stated: Mapping[str, Any],
    ) -> LiveRun:  # fmt: skip
        """Open a live run. `stated` has its domain, session, user, tags and metadata."""
        recorder, around = self.recorder, inside.run if isinstance(inside, LiveCall) else inside
        framework, session, user = (
            getattr(around, label, None) if value is None else value
            for label, value in (("framework", framework), ("session", stated["session"]), ("user", stated["user"]))
        )
        known = render_text(name or framework or "run", MAX_NAME)
        who = (known, stated["domain"] or recorder.domain, framework, session, user)
        spec, limit = Spec(None, kind=AGENT, name=known, domain=stated["domain"]), min(MAX_OBJECTIVE, recorder.max_text)
        text = render_text(objective, limit) if recorder.capture_input and objective is not None else ""
        token, outside = None if resume is None else _token(resume, who), None if inside is None else inside.frame
        run = self._begin(spec, text if text.strip() else known, outside, started, framework, stated, token)
        frame = run
        if frame is None:
            frame = silent_run(spec, known)
            frame.owner.max_events = 0
        live = LiveRun(self, run, frame, who, None if run_id is None else (framework or DEFAULT, str(run_id)))
        with self.lock:
            self.open_runs[live] = None
            if live.place is not None:
                self.by_id[live.place] = live
            oldest = next(iter(self.open_runs)) if len(self.open_runs) > MAX_OPEN else None
        if oldest is not None:
            note("open_run", OVERFLOW)
            oldest._end(lambda run: run.refuse("Interrupted", OVERFLOW, INTERRUPTED))
        return live

    @shielded
    def _begin(
        self, spec: Spec, objective: str, inside: Frame | None, started: Instant, framework: str | None,
        stated: Mapping[str, Any], token: str | None,
    ) -> Run | None:  # fmt: skip
        recorder, arguments = self.recorder, {"input": objective}
        run = open_run(recorder, spec, (), arguments, objective=objective, inside=inside, quiet=True)
        if run is None:
            return None
        run.keep, run.framework = True, render_text(framework or DEFAULT, MAX_NAME)
        if (at := _nanoseconds(started)) is not None and at < (wall := recorder.wall_clock()):
            run.began, run.start = at, run.start - (wall - at)
            if run.via is not None:
                run.via.start = max(run.start, run.via.run.start)
        run.update(**{label: stated[label] for label in ("session", "user", "tags", "metadata")})
        if token is not None:
            run.resumes = Pause(token, None, None, previous=self.suspended.pop(token, None), once=True)
        recorder.announce(run)
        return run

    def spec_of(self, name: str, kind: str, scores: Any, failed: Callable[[Any], object] | None) -> Spec:
        """Return the description of a tool, the same for all its calls."""
        place = (name, kind, scores, failed)
        if (known := self._specs.get(place)) is not None:
            return known
        if kind != "search" and (kind != "tool" or scores is not None):
            raise ValueError(f"kind must be 'tool', or 'search' where there are scores, not {kind!r:.40}")
        from grace_kp.confidence import checked_scores

        what = RETRIEVER if kind == "search" else TOOL
        spec = Spec(None, kind=what, name=render_text(name, MAX_NAME), scores=checked_scores(scores))
        spec.failed, spec.looks = failed, spec.looks or failed is not None
        if len(self._specs) >= MAX_SPECS:
            self._specs.clear()
        self._specs[place] = spec
        return spec


def _token(key: str, who: Who) -> str:
    """Return what a suspended run is found by. It shows neither the key nor whom the run is for."""
    import hashlib  # not with the runtime, which loads little
    import json

    parts = [None if part is None else str(part) for part in (key, *who)]
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def _shown(run: Run, text: object) -> str:
    return render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED


def _on_clock(run: Run, value: Instant) -> int | None:
    """Return a time on the clock of a run, from its beginning to now; None without a usable one."""
    if (at := _nanoseconds(value)) is None:
        return None
    now = run.clock()
    return min(now, max(run.start, now - (run.owner.wall_clock() - at)))


@shielded
def _nanoseconds(value: Instant) -> int | None:
    """Return a time as nanoseconds since the epoch; None without a usable one."""
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return round(value.timestamp() * 1e9)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LAST:
        return round(value * 1e9)
    if value is not None:
        note("started or ended", "a time must be an aware datetime or seconds since the epoch; recorded as now")
    return None
