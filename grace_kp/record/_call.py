"""A call of a tool while it is live: a slotted object, two clock reads and two appends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._current import HOST
from grace_kp.record._events import NOT_CAPTURED, Event
from grace_kp.record._failure import TOOL_ERROR, reported_failure
from grace_kp.record._guard import shielded, shielded_end
from grace_kp.record._host import COMPLETED, FAILED, SUSPENDED
from grace_kp.trace import render, render_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.confidence import ResultReader, SearchResults
    from grace_kp.record._run import Run
    from grace_kp.record._spec import Spec

HERE = "?"
"""Stands for the part of a framework's program that runs here, which the framework tells."""
_SAME = object()
_STATUSES = {FAILED: "error", COMPLETED: "ok"}


class Call(Event):
    """One call of a tool: opened with its arguments, closed with its result.

    Its run's events hold it twice, once for each; the order of the events is the order of the steps.
    """

    __slots__ = (
        "args", "child", "end", "error", "hits", "kwargs", "owns", "parent", "result", "run", "spec", "start",
        "status",
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
        """What a search found; while it streams, what reads it."""
        self.owns = False
        """The run consists of this call and ends with it."""
        self.result: Any = None
        self.status: str | None = None
        self.end = 0
        self.place = place if place is not HERE else None if HOST.place is None else HOST.place()
        self.start = run.clock()
        run.events.append(self)  # last, because the journal reads events from another thread

    def end_with(self, result: object, last: object = _SAME) -> None:
        """Record that the call returned. A failure of recording is the caller's to catch; `close` catches it.

        Args:
            result: what it returned; from a generator, all that it yielded.
            last: from a generator, what it returned, else what it yielded last: this may report a failure.
        """
        run = self.run
        end = run.clock()
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
        run, end = self.run, self.run.clock()
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
        end = run.clock()
        if run.open and self.status is None:
            self.end = end
            status = HOST.status_after(error)
            self.status = _STATUSES.get(status, status)
            if status == COMPLETED:
                self.result = HOST.handoff_text(error)
            else:
                self.error = run.owner.described(error)
            run.events.append(self)
        if self.owns:
            run.fail(error)
