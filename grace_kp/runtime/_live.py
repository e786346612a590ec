"""Runs and calls that an adapter opens and ends itself, for frameworks that call hooks instead of functions.

Recording them fails open. A live run also knows the claims of gated calls that have begun: those that are open when it ends become unknown,
because nobody will report their results.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

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
    note,
    open_run,
    register,
    shielded,
    silent_run,
)
from grace_kp.trace import render, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from grace_kp.confidence import Scores
    from grace_kp.record import Call, Run
    from grace_kp.runtime._grace import Grace
    from grace_kp.trace import ReasoningTrace

    Frame = Call | Run
    Instant = datetime | float | None

T = TypeVar("T")

MAX_OPEN = 10_000
"""Live runs that are open at once; beyond it the oldest is closed as interrupted."""
MAX_SUSPENDED = 256
"""Suspended runs that this process holds; others are read from the store."""
MAX_SPECS, MAX_NAME, MAX_OBJECTIVE, MAX_SEALED = 1_024, 200, 2_000, 200_000
OVERFLOW = f"closed as interrupted, because more than {MAX_OPEN:,} runs were open"
DEFAULT = "grace_kp"


@contextmanager
def _current(frame: Frame, entered: T) -> Iterator[T]:
    """Make a run or call current while a block runs. Leaving the block raises nothing, in whichever context that happens."""
    before, token = CURRENT.get(), CURRENT.set(frame)
    try:
        yield entered
    finally:
        try:
            CURRENT.reset(token)
        except ValueError:  # another context, perhaps a copy of the one that was entered
            if CURRENT.get() is frame:
                CURRENT.set(before)


class LiveRun:
    """A run that an adapter opens with `Grace.open_run` and ends itself. `thought`, `user_message`, `instructions`, `update` and `outcome` are those of `Run`.

    Attributes:
        run: the recorded run; None where recording is off.
        frame: the same, else a run that records nothing and lets gates know that.
        framework, session, user: as passed to `open_run`, else those of the live run around it.
        claims: open claims of gated calls.
    """

    __slots__ = (
        "__weakref__", "_block", "_runs", "claims", "domain", "frame", "framework", "instructions", "name", "outcome", "place", "run", "session",
        "thought", "update", "user", "user_message",
    )  # fmt: skip

    def __init__(self, runs: LiveRuns, run: Run | None, frame: Run, place: tuple[str, str] | None) -> None:
        self._runs, self.place, self.run, self.frame = runs, place, run, frame
        self._block: AbstractContextManager[Any] | None = None
        self.name = self.domain = ""
        self.framework: str | None = None
        self.session: str | None = None
        self.user: str | None = None
        self.claims: set[Any] = set()
        self.thought, self.user_message, self.instructions = frame.thought, frame.user_message, frame.instructions
        self.update, self.outcome = frame.update, frame.outcome

    @property
    def grace(self) -> Grace:
        """The runtime of the run."""
        return self._runs.grace

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

    def current(self) -> AbstractContextManager[LiveRun]:
        """`with run.current():` — gates and recorded functions inside belong to this run. It may be entered repeatedly, by many tasks and threads."""
        return _current(self.frame, self)

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

        Args:
            tool: its name, or its action. What a gated action of that name ignores is not recorded, and what it seals is hidden.
            arguments: by name.
            kind: `search` for a tool that returns search results.
            scores: what their scores are; see `Grace.retriever`. When None, no score is read, and gates ask at least for CONFIRM.
            failed: decides whether a result is a failure; see `Grace.tool`. That of the action when None.
            started: an aware datetime, or seconds since the epoch; now when None.
            inside: the call around it.
        """
        run, call, is_name = self.frame, None, isinstance(tool, str)
        try:
            action = self._runs.action_named(tool) if is_name else tool
            spec = self._runs.spec_of(
                tool if is_name else tool.name, kind, scores, failed or getattr(action, "failed", None)
            )
            named = {str(key): value for key, value in arguments.items()}
            if (terms := getattr(action, "terms", None)) is not None:
                sealed = {key: render(value, MAX_SEALED) for key, value in named.items() if key in terms.sealed}
                named = {key: value for key, value in named.items() if key not in terms.ignore} | dict.fromkeys(
                    sealed, SEALED
                )
                if sealed:  # its result may repeat them
                    register(run, {"sealed": [*sealed], "arguments": sealed})
            if not run.open:
                note("open_tool", "called after the run had ended")
            elif (call := call_in(inside.frame if inside else run, spec, named)) is not None and started is not None:
                call.start = _on_clock(run, started) or call.start
        except Exception as error:  # noqa: BLE001
            note("open_tool", error)
        return LiveCall(self, call, reads_scores=scores is not None)

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
        raised = isinstance(error, BaseException)
        self._end(lambda run: run.fail(error) if raised else run.refuse("Error", _shown(run, error)), ended)  # type: ignore[arg-type]

    def interrupt(self, why: str) -> None:
        """Record that nobody reported the end of the run."""
        self._end(lambda run: run.refuse("Interrupted", why, INTERRUPTED))

    def suspend(self, key: str) -> None:
        """End the live run, because it waits for a person; its trace is continued by `open_run(resume=key)`, also in another process."""
        self._end(lambda run: self._suspend(run, self._runs.token(key, self)))

    @shielded
    def _suspend(self, run: Run, token: str) -> None:
        run.facts = {"thread_id": token}
        run.suspend(Pause(token, None, None, once=True))
        if run is not self.run:
            return
        self.grace._writer.store_soon(1.0)  # with the runs inside, because the program may save its state next and die
        self._runs.suspended[token] = run
        if len(self._runs.suspended) > MAX_SUSPENDED:
            self._runs.suspended.popitem(last=False)

    def _end(self, end: Callable[[Run], object], ended: Instant = None) -> None:
        if not self._runs.leave(self):
            return
        try:
            while self.claims:
                attempt("a claim that its run leaves open", self.claims.pop().unknown)
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
            self._block.__exit__(None, None, None)
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

    def current(self) -> AbstractContextManager[LiveCall]:
        """`with call.current():` — gates, recorded functions and runs inside belong to this call; see `LiveRun.current`."""
        return _current(self.frame, self)

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

    def __init__(self, grace: Grace) -> None:
        self.grace = grace
        self.after_fork()

    def after_fork(self) -> None:
        """Forget all of them in the child; they belong to the parent."""
        self._lock = threading.RLock()
        self.open_runs: dict[LiveRun, None] = {}
        self.by_id: dict[tuple[str, str], LiveRun] = {}
        self.suspended: OrderedDict[str, Run] = OrderedDict()
        self._specs: dict[Any, Spec] = {}

    def leave(self, live: LiveRun) -> bool:
        """Forget a run that ends; False where it has ended before."""
        with self._lock:
            if live not in self.open_runs:
                return False
            del self.open_runs[live]
            if live.place is not None and self.by_id.get(live.place) is live:
                del self.by_id[live.place]
        return True

    def open(
        self, objective: object, name: str | None, framework: str | None, run_id: object, resume: str | None,
        inside: LiveRun | LiveCall | None, started: Instant, stated: Mapping[str, Any],
    ) -> LiveRun:  # fmt: skip
        """Open a live run. `stated` has its domain, session, user, tags and metadata."""
        recorder, around = self.grace.recorder, inside.run if isinstance(inside, LiveCall) else inside
        framework = framework or (None if around is None else around.framework)
        known = render_text(name or framework or "run", MAX_NAME)
        text = render_text(objective, min(MAX_OBJECTIVE, recorder.max_text)) if recorder.capture_input else ""
        spec = Spec(None, kind=AGENT, name=known, domain=stated["domain"])
        run = self._begin(spec, text if text.strip() else known, None if inside is None else inside.frame, started)
        frame = run
        if frame is None:
            frame = silent_run(spec, known)
            frame.owner.max_events = 0
        live = LiveRun(self, run, frame, None if run_id is None else (framework or DEFAULT, str(run_id)))
        live.name, live.domain, live.framework = known, spec.domain or recorder.domain, framework
        for label in ("session", "user"):
            setattr(
                live, label, stated[label] if around is None or stated[label] is not None else getattr(around, label)
            )
        if run is not None:
            run.framework = framework or DEFAULT
            run.update(**{label: stated[label] for label in ("session", "user", "tags", "metadata")})
            self._announce(run, None if resume is None else self.token(resume, live))
        with self._lock:
            self.open_runs[live] = None
            if live.place is not None:
                self.by_id[live.place] = live
            oldest = next(iter(self.open_runs)) if len(self.open_runs) > MAX_OPEN else None
        if oldest is not None:
            note("open_run", OVERFLOW)
            oldest.interrupt(OVERFLOW)
        return live

    @shielded
    def _begin(self, spec: Spec, objective: str, inside: Frame | None, started: Instant) -> Run | None:
        arguments = {"input": objective}
        run = open_run(self.grace.recorder, spec, (), arguments, objective=objective, inside=inside, quiet=True)
        if run is not None:
            run.keep = True
            at, wall = _nanoseconds(started), run.owner.wall_clock()
            if at is not None and at < wall:
                run.began, run.start = at, run.start - (wall - at)
                if run.via is not None:
                    run.via.start = max(run.start, run.via.run.start)
        return run

    @shielded
    def _announce(self, run: Run, token: str | None) -> None:
        if token is not None:
            run.resumes = Pause(token, None, None, previous=self.suspended.pop(token, None), once=True)
        self.grace.recorder.announce(run)

    @staticmethod
    def token(key: str, live: LiveRun) -> str:
        """Return what a suspended run is found by. It shows neither the key nor whom the run is for."""
        parts = (key, live.name, live.domain, live.framework, live.session, live.user)
        whole = json.dumps([None if part is None else str(part) for part in parts], separators=(",", ":"))
        return hashlib.sha256(whole.encode()).hexdigest()

    def action_named(self, name: str) -> Any:
        """Return the gated action of this name that was defined last; None without one."""
        found = self.grace._definitions().find_named(name)
        return self.grace._actions.get(name) or (found[-1] if found else None)

    def spec_of(self, name: str, kind: str, scores: Any, failed: Callable[[Any], object] | None) -> Spec:
        """Return the description of a tool, the same for all its calls."""
        place = (name, kind, scores, failed)
        if (known := self._specs.get(place)) is not None:
            return known
        if kind not in {"tool", "search"} or (scores is not None and kind != "search"):
            raise ValueError(f"kind must be 'tool', or 'search' where there are scores, not {kind!r:.40}")
        from grace_kp.confidence import checked_scores

        what = RETRIEVER if kind == "search" else TOOL
        spec = Spec(None, kind=what, name=render_text(name, MAX_NAME), scores=checked_scores(scores))
        spec.failed, spec.looks = failed, spec.looks or failed is not None
        if len(self._specs) >= MAX_SPECS:
            self._specs.clear()
        self._specs[place] = spec
        return spec


def _shown(run: Run, text: object) -> str:
    return render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED


def _on_clock(run: Run, value: Instant) -> int | None:
    """Return a time on the clock of a run, from its beginning to now; None without a usable one."""
    if (at := _nanoseconds(value)) is None:
        return None
    now = run.clock()
    return min(now, max(run.start, now - (run.owner.wall_clock() - at)))


def _nanoseconds(value: Instant) -> int | None:
    """Return a time as nanoseconds since the epoch; None without a usable one."""
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return round(value.timestamp() * 1e9)
    if type(value) in {int, float} and math.isfinite(value):  # type: ignore[arg-type]  # it is a number
        return round(value * 1e9)  # type: ignore[operator]
    if value is not None:
        note("started or ended", "a time must be an aware datetime or seconds since the epoch; recorded as now")
    return None
