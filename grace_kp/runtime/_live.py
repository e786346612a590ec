"""Runs and calls that an adapter opens and ends itself, for frameworks that call hooks instead of functions.

A `LiveRun` is a recorded run with the calls of its program in it. Whatever it records fails open. It also knows the claims of gated calls that
have begun: those that are open when it ends become unknown, because nobody will report their results.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
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
    note,
    open_run,
    register,
    shielded,
    silent_run,
)
from grace_kp.trace import cut, render, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextvars import Token
    from types import TracebackType

    from grace_kp.confidence import Scores
    from grace_kp.gating import Verdict
    from grace_kp.record import Call as ToolCall
    from grace_kp.record import Recorder, Run
    from grace_kp.runtime._grace import Grace
    from grace_kp.runtime._seam import Call
    from grace_kp.trace import ReasoningTrace

    Frame = ToolCall | Run
    Instant = datetime | float | None

MAX_OPEN = 10_000
"""Live runs that are open at once; the oldest one beyond it is closed as interrupted."""
MAX_SUSPENDED = 256
"""Suspended runs that this process holds; the others are read from the store."""
MAX_SPECS, MAX_NAME, MAX_OBJECTIVE, MAX_SEALED = 1_024, 200, 2_000, 200_000
OVERFLOW = f"closed as interrupted, because more than {MAX_OPEN:,} runs were open"
DEFAULT = "grace_kp"
_FRAMEWORK = re.compile(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")
_TAKEN = frozenset((
    "awaits", "calls", "children", "confidence", "decisions", "error", "feedback", "imported", "judgements", "metadata", "name", "node", "parent",
    "pending", "repeated", "repeats", "resumed", "scores", "session", "source", "status", "tags", "usage", "user", "value",
))  # fmt: skip
"""Fields of traces, which cannot be names of frameworks."""


class Current:
    """Makes a run or call current while a block runs. Leaving it never raises, in whichever context that happens."""

    __slots__ = ("_before", "_entered", "_frame", "_token")

    def __init__(self, frame: Frame, entered: Any) -> None:
        self._frame, self._entered = frame, entered
        self._before: Frame | None = None
        self._token: Token[Any] | None = None

    def __enter__(self) -> Any:
        self._before = CURRENT.get()
        self._token = CURRENT.set(self._frame)
        return self._entered

    def __exit__(self, *_: object) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        try:
            CURRENT.reset(token)
        except ValueError:  # left in another context, which may be a copy of the one that was entered
            if CURRENT.get() is self._frame:
                CURRENT.set(self._before)


class LiveRun:
    """A run that an adapter opens and ends itself; see `Grace.open_run`.

    Attributes:
        run: the recorded run; None where recording is off.
        frame: the same; without recording, a run that records nothing and lets gates know that.
        framework, session: as passed to `open_run`, else those of the live run around it.
        claims: the open claims of gated calls; each becomes unknown when the run ends.
    """

    __slots__ = (
        "__weakref__", "_block", "_place", "_runs", "claims", "domain", "frame", "framework", "name", "run", "session", "user",
    )  # fmt: skip

    def __init__(self, runs: LiveRuns, run: Run | None, frame: Run, place: tuple[str, str] | None) -> None:
        self._runs, self._place = runs, place
        self._block: Current | None = None
        self.run, self.frame = run, frame
        self.name = self.domain = ""
        self.framework: str | None = None
        self.session: str | None = None
        self.user: str | None = None
        self.claims: set[Any] = set()

    @property
    def grace(self) -> Grace:
        """The runtime that records it."""
        return self._runs.grace

    @property
    def id(self) -> str | None:
        """The id of its trace; None where recording is off."""
        return None if self.run is None else self.run.id

    @property
    def open(self) -> bool:
        """Whether it has not ended; False in a forked child, which does not own the runs of its parent."""
        return self._runs.holds(self)

    @property
    def trace(self) -> ReasoningTrace:
        """The finished trace, scored.

        Raises:
            RuntimeError: the run is still open, or its trace was not kept.
        """
        return self.frame.trace

    def current(self) -> Current:
        """`with run.current():` makes it the current run of this context, so that gates and recorded functions inside belong to it.

        It may be entered several times, in any number of tasks and threads. Leaving it in another context raises nothing.
        """
        return Current(self.frame, self)

    def thought(self, text: object) -> None:
        """Record a thought of the agent as a step."""
        if self.run is not None:
            self.run.thought(text)

    def user_message(self, text: object) -> None:
        """Record that a person wrote something to the agent, as a step; see `Run.user_message`."""
        if self.run is not None:
            self.run.user_message(text)

    def instructions(self, text: str) -> None:
        """State instructions that the author of the program gave the model; see `Run.instructions`. They are not recorded."""
        if self.run is not None:
            self.run.instructions(text)

    def update(
        self,
        *,
        tags: Iterable[str] | str | None = None,
        user: str | None = None,
        session: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """State attributes of the trace, to find it by; see `Run.update`. They do not change the identity of the run."""
        if self.run is not None:
            self.run.update(tags=tags, user=user, session=session, metadata=metadata)

    def outcome(self, *, confidence: float | None = None, success: bool | None = None, result: object = None) -> None:
        """State how the run ended; see `Run.outcome`."""
        if self.run is not None:
            self.run.outcome(confidence=confidence, success=success, result=result)

    def handoff(self, to: str | Iterable[str], *, source: str | None = None) -> None:
        """Record as a thought that the agent, or the one named `source`, handed over to one or several others."""
        if self.run is not None:
            names = [to] if isinstance(to, str) else list(to)
            self.run.thought(f"{source[:MAX_NAME]} {HOST.handoff_to(names)}" if source else HOST.handoff_to(names))

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
        """Record a call of a model that has ended.

        Args:
            model: the name of the model.
            text: what it wrote, which becomes a thought; empty where it only called tools.
            usage: tokens by kind, such as `{"input_tokens": 12, "output_tokens": 3}`. Other entries are left out.
            error: the exception or message with which the call failed.
            started: when it began: an aware datetime, or seconds since the epoch; when it ended if None.
            ended: the same for its end; now if None.
        """
        run = self.run
        if run is None:
            return
        end = _on_clock(run, ended, "ended") or run.clock()
        start = min(_on_clock(run, started, "started") or end, end)
        shown = render_text(text, run.max_text) if run.owner.capture_output or not text else NOT_CAPTURED
        counts = {key: n for key, n in (usage or {}).items() if str(key).endswith("_tokens") and type(n) is int}
        call = ModelCall(render_text(model, MAX_NAME), start=start, end=end, text=shown, usage=counts or None)
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
        """Record that a tool is called; return the call, which must be closed. Any number of calls may be open at once.

        Args:
            tool: its name, or its action. What an action ignores is not recorded, what it seals is hidden, also where only the name
                of a gated action is passed.
            arguments: by name.
            kind: `search` for a tool whose result is search results.
            scores: what the scores of search results are; see `Grace.retriever`. Without it no score is read, whatever the results hold,
                because nobody knows who wrote them; gates then ask at least for CONFIRM.
            failed: decides whether a result is a failure; see `Grace.tool`. That of the action where there is one.
            started: when it began: an aware datetime, or seconds since the epoch; now if None.
            inside: the call around it.
        """
        found = (
            self._open_tool(tool, arguments, kind, scores, failed, started, inside) if self.run is not None else None
        )
        return LiveCall(self, found, reads_scores=scores is not None)

    @shielded
    def _open_tool(
        self,
        tool: Any,
        arguments: Mapping[str, Any],
        kind: str,
        scores: Scores | None,
        failed: Callable[[Any], object] | None,
        started: Instant,
        inside: LiveCall | None,
    ) -> ToolCall | None:
        run = self.frame
        if not run.open:
            note("open_tool", "called after the run had ended")
            return None
        action = tool if not isinstance(tool, str) else self._runs.action_named(tool)
        name = tool if isinstance(tool, str) else tool.name
        spec = self._runs.tool_spec(name, kind, scores, failed or getattr(action, "failed", None))
        terms = getattr(action, "terms", None)
        named = {str(key): value for key, value in arguments.items()}
        if terms is not None:
            sealed = {key: render(value, MAX_SEALED) for key, value in named.items() if key in terms.sealed}
            if sealed:  # they may come up again in the result
                register(run, {"sealed": [*sealed], "arguments": sealed})
            named = {key: SEALED if key in sealed else value for key, value in named.items() if key not in terms.ignore}
        call = call_in(run if inside is None or inside.call is None else inside.call, spec, named)
        if call is not None and (begun := _on_clock(run, started, "started")) is not None:
            call.start = begun
        return call

    def decide(self, calls: Sequence[Call], wait: bool | None = None) -> list[Verdict]:
        """Decide on the calls of one turn on the same evidence; return a verdict for each.

        `wait=False` never asks or waits: what a person must decide is pending then. None leaves it to the reviewer.
        """
        from grace_kp.runtime._seam import decide_calls

        return decide_calls(self, calls, wait)

    async def adecide(self, calls: Sequence[Call], wait: bool | None = None) -> list[Verdict]:
        """Decide like `decide`, without blocking the event loop."""
        from grace_kp.runtime._seam import adecide_calls

        return await adecide_calls(self, calls, wait)

    def close(self, result: object = None, *, ended: Instant = None) -> None:
        """Record that the run returned `result`. Ending it again, in whichever way, has no effect."""
        self._end(lambda run: run.close(result), ended)

    def fail(self, error: BaseException | str, *, ended: Instant = None) -> None:
        """Record that the run failed with an exception, or with a message."""

        def fail(run: Run) -> None:
            if isinstance(error, BaseException):
                run.fail(error)
            else:
                run.refuse("Error", _shown(run, error))

        self._end(fail, ended)

    def suspend(self, key: str) -> None:
        """End the live run, because it waits for a person, so that `open_run(resume=key)` continues its trace, in any process.

        Only a run with the same name, domain, framework, session and user continues it, and only once.
        """
        self._end(lambda run: self._suspend(run, self._runs.token(key, self)))

    @shielded
    def _suspend(self, run: Run, token: str) -> None:
        run.facts = {"thread_id": token}
        pause = Pause(token, None, None, once=True)
        # Stored before this returns: the program may save its state next, and die.
        run.asked = True
        run.owner.asked([(run, pause)])
        run.suspend(pause)
        self._runs.keep_suspended(token, run)

    def interrupt(self, why: str) -> None:
        """Record that the run was interrupted: nobody reported its end."""
        self._end(lambda run: run.refuse("Interrupted", why, INTERRUPTED))

    def _end(self, end: Callable[[Run], object], ended: Instant = None) -> None:
        if not self._runs.leave(self, self._place):
            return
        try:
            while self.claims:
                attempt("a claim that its run leaves open", self.claims.pop().unknown)
        finally:
            run = self.run
            if run is not None:
                if ended is not None and run.open:
                    run.end = _on_clock(run, ended, "ended") or 0
                end(run)

    def __enter__(self) -> Self:
        self._block = self.current()
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.__exit__()
        if error is None:
            self.close()
        else:
            self.fail(error)

    async def __aenter__(self) -> Self:
        if self.run is not None:
            self.run.spec = copy.copy(self.run.spec)  # others share it
            self.run.spec.can_await = True
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)
        if self.run is not None and self.run.stored is not None and kind is not GeneratorExit:
            await self.run.stored

    def __repr__(self) -> str:
        return f"LiveRun({self.name!r}, framework={self.framework!r}, open={self.open})"


class LiveCall:
    """An open call of a tool in a live run. It ends once; later ends have no effect. `call` is None where it is not recorded."""

    __slots__ = ("_reads_scores", "call", "run")

    def __init__(self, run: LiveRun, call: ToolCall | None, *, reads_scores: bool) -> None:
        self.run, self.call, self._reads_scores = run, call, reads_scores

    @property
    def frame(self) -> Frame:
        """The recorded call; the run where the call is not recorded."""
        return self.run.frame if self.call is None else self.call

    def current(self) -> Current:
        """`with call.current():` — recorded functions and runs inside belong to this call; see `LiveRun.current`."""
        return Current(self.frame, self)

    def close(self, result: object, *, ended: Instant = None) -> None:
        """Record that the call returned `result`, which may report a failure."""
        call = self._ending(ended)
        if call is None:
            return
        if call.spec.searches and not self._reads_scores:
            self._count(call, result)
        call.close(result)

    def fail(self, error: BaseException | str, *, ended: Instant = None) -> None:
        """Record that the call failed, with an exception or a message."""
        call = self._ending(ended)
        if call is None:
            return
        if isinstance(error, BaseException):
            call.fail(error)
        else:
            call.refuse(TOOL_ERROR, error)

    def drop(self) -> None:
        """Record that nobody waits for the result any more, as when a stream is closed before its end."""
        if self.call is not None:
            self.call.fail(GeneratorExit("the call was abandoned"))

    @shielded
    def _count(self, call: ToolCall, result: object) -> None:
        """Count what a search found, without reading a score."""
        from grace_kp.confidence import read_results

        call.hits = replace(read_results(result, "none"), kind="")

    @shielded
    def _ending(self, ended: Instant) -> ToolCall | None:
        call = self.call
        if call is not None and ended is not None and call.status is None:
            call.end = max(_on_clock(call.run, ended, "ended") or 0, call.start)
        return call


class LiveRuns:
    """The open live runs of one runtime, by the framework's ids, and those that were suspended."""

    def __init__(self, grace: Grace) -> None:
        self.grace = grace
        self.after_fork()

    def after_fork(self) -> None:
        """Forget all of them in the child; they belong to the parent."""
        self._lock = threading.RLock()
        self._open: dict[LiveRun, None] = {}
        self._by_id: dict[tuple[str, str], LiveRun] = {}
        self._suspended: OrderedDict[str, Run] = OrderedDict()
        self._specs: dict[Any, Spec] = {}

    @property
    def _recorder(self) -> Recorder:
        return self.grace.recorder

    def get(self, framework: str, run_id: object) -> LiveRun | None:
        """Return the latest open run with this id; None without one."""
        return self._by_id.get((framework, str(run_id)))

    def holds(self, live: LiveRun) -> bool:
        """Return whether the run is open."""
        return live in self._open

    def leave(self, live: LiveRun, place: tuple[str, str] | None) -> bool:
        """Forget a run that ends; False where it has ended."""
        with self._lock:
            if live not in self._open:
                return False
            del self._open[live]
            if place is not None and self._by_id.get(place) is live:
                del self._by_id[place]
        return True

    def keep_suspended(self, token: str, run: Run) -> None:
        """Hold a suspended run for a run of this process that continues it."""
        with self._lock:
            self._suspended[token] = run
            self._suspended.move_to_end(token)
            while len(self._suspended) > MAX_SUSPENDED:
                self._suspended.popitem(last=False)

    def open(
        self,
        objective: object,
        *,
        name: str | None,
        framework: str | None,
        run_id: object,
        session: str | None,
        user: str | None,
        domain: str | None,
        attributes: Mapping[str, Any],
        resume: str | None,
        inside: LiveRun | LiveCall | None,
        started: Instant,
    ) -> LiveRun:
        """Open a live run; see `Grace.open_run`."""
        recorder, around = self._recorder, inside.run if isinstance(inside, LiveCall) else inside
        if framework is None and around is not None:
            framework = around.framework
        known = render_text(name or framework or "run", MAX_NAME)
        text = render_text(objective, MAX_OBJECTIVE) if recorder.capture_input and objective is not None else ""
        text = cut(text, min(MAX_OBJECTIVE, recorder.max_text)) if text.strip() else known
        spec = Spec(None, kind=AGENT, name=known, domain=domain)
        run = self._begin(spec, text, None if inside is None else inside.frame, framework, started)
        frame = silent_run(spec, text) if run is None else run
        place = None if run_id is None else (framework or DEFAULT, str(run_id))
        live = LiveRun(self, run, frame, place)
        live.name, live.domain, live.framework = known, domain or recorder.domain, framework
        live.session = session if session is not None or around is None else around.session
        live.user = user if user is not None or around is None else around.user
        if run is not None:
            run.update(user=user, session=session, **attributes)
            self._announce(run, None if resume is None else self.token(resume, live))
        with self._lock:
            self._open[live] = None
            if place is not None:
                self._by_id[place] = live
            oldest = next(iter(self._open)) if len(self._open) > MAX_OPEN else None
        if oldest is not None:
            note("open_run", OVERFLOW)
            oldest.interrupt(OVERFLOW)
        return live

    @shielded
    def _begin(
        self, spec: Spec, objective: str, inside: Frame | None, framework: str | None, started: Instant
    ) -> Run | None:
        arguments = {"input": objective}
        run = open_run(self._recorder, spec, (), arguments, objective=objective, inside=inside, quiet=True)
        if run is None:
            return None
        run.keep = True
        run.framework = framework or DEFAULT
        if _FRAMEWORK.fullmatch(run.framework[:64]) is None or run.framework in _TAKEN:
            note("open_run", f"{framework!r:.80} cannot be the name of a framework")
            run.framework = DEFAULT
        wall = run.owner.wall_clock()
        if (at := _nanoseconds(started, "started")) is not None and at < wall:
            run.began, run.start = at, run.start - (wall - at)
            if run.via is not None:
                run.via.start = max(run.start, run.via.run.start)
        return run

    @shielded
    def _announce(self, run: Run, token: str | None) -> None:
        if token is not None:
            with self._lock:
                previous = self._suspended.pop(token, None)
            run.resumes = Pause(token, None, None, previous=previous, once=True)
        self._recorder.announce(run)

    @staticmethod
    def token(key: str, live: LiveRun) -> str:
        """Return what a suspended run is found by. It shows neither the key nor whom the run is for."""
        parts = [key, live.name, live.domain, live.framework, live.session, live.user]
        whole = json.dumps(
            [None if part is None else str(part) for part in parts], ensure_ascii=True, separators=(",", ":")
        )
        return hashlib.sha256(whole.encode()).hexdigest()

    def action_named(self, name: str) -> Any:
        """Return the gated action of this name that was defined last; None without one."""
        if (action := self.grace._actions.get(name)) is not None:
            return action
        found = self.grace._definitions().find_named(name)
        return found[-1] if found else None

    def tool_spec(self, name: str, kind: str, scores: Any, failed: Callable[[Any], object] | None) -> Spec:
        """Return the description of a tool."""
        key = (name, kind, scores, failed)
        try:
            known = self._specs.get(key)
        except TypeError:  # what was declared has no hash
            return self._new_spec(*key)
        if known is None:
            if len(self._specs) >= MAX_SPECS:
                self._specs.clear()
            known = self._specs[key] = self._new_spec(*key)
        return known

    @staticmethod
    def _new_spec(name: str, kind: str, scores: Any, failed: Callable[[Any], object] | None) -> Spec:
        if kind not in {"tool", "search"}:
            raise ValueError(f"kind must be 'tool' or 'search', not {kind!r:.40}")
        if scores is not None:
            from grace_kp.confidence import checked_scores

            checked_scores(scores)
            if kind != "search":
                raise ValueError("scores belong to search results; pass kind='search'")
        spec = Spec(None, kind=RETRIEVER if kind == "search" else TOOL, name=render_text(name, MAX_NAME), scores=scores)
        if failed is not None:
            spec.failed, spec.looks = failed, True
        return spec


def _shown(run: Run, text: object) -> str:
    return render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED


def _on_clock(run: Run, value: Instant, name: str) -> int | None:
    """Return a time on the clock of a run, between its beginning and now; None where none, or none that can be used, was passed."""
    at = _nanoseconds(value, name)
    if at is None:
        return None
    now = run.clock()
    return min(now, max(run.start, now - (run.owner.wall_clock() - at)))


def _nanoseconds(value: Instant, name: str) -> int | None:
    """Return a time as nanoseconds since the epoch."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.utcoffset() is not None:
            return round(value.timestamp() * 1e9)
    elif type(value) in {int, float} and math.isfinite(value):
        return round(value * 1e9)
    note(name, "must be an aware datetime or seconds since the epoch; recorded as now")
    return None
