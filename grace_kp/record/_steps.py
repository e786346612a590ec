"""The steps of a run, built from its events: the step of each event, their order, and the errors that the run recovered from.

The builder looks at each event once, so that the journal of an open run and the finished trace share the work. Everything it produces is
JSON, bounded, and without secrets.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from grace_kp.record._host import CLOSED, SUSPENDED
from grace_kp.record._resume import EarlierPart
from grace_kp.record._run import NOT_CAPTURED, Call, ModelCall, Note, UserMessage
from grace_kp.record._spec import AGENT
from grace_kp.trace import Failure, Failures, Redactor, have_plain_names, render, storable, texts_in, to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from grace_kp.confidence import ActionHistory, SearchResults
    from grace_kp.record._run import Event, Run
    from grace_kp.record._spec import Spec

    Tool = tuple[str, dict[str, str], tuple[str, ...] | None]

MAX_HIT_TEXTS = 64
MAX_RETURNED = 100_000
"""Characters of each text in what a gated function returned."""
WAITING = "waits for a person"
UNTOLD = "the instructions that the model was given before this run was resumed are not known"
NOTHING = "The run recorded no step and returned no text."
_IDS = 256
_ID = tuple(f"c{number}" for number in range(_IDS))
"""Ids of the first calls of a run."""


class StepBuilder:
    """Steps and calls of one run, up to the last event that was taken in.

    Attributes:
        steps: step dicts in the form of the trace schema, numbered from 0.
        calls: one dict per call, linking its tool_call and observation steps.
    """

    __slots__ = (
        "_failures", "_index", "_position", "_reported_decisions", "_reported_steps", "_run", "_searches", "_start", "_tools", "_touched",
        "calls", "hit_texts", "journaled", "journaled_changes", "model_calls", "nested", "places", "redactor",
        "steps",
    )  # fmt: skip

    def __init__(self, run: Run, *, identifiers: bool, earlier: EarlierPart | None = None) -> None:
        self.steps: list[dict[str, Any]] = [] if earlier is None else earlier.steps
        self.calls: list[dict[str, Any]] = [] if earlier is None else earlier.calls
        self.model_calls: list[dict[str, Any]] = [] if earlier is None else earlier.model_calls
        self.nested: list[tuple[int, Run]] = []
        """Runs that calls opened, each with the number of its call."""
        self.places: dict[int, str] = {}
        """The place in a framework's program that a step belongs to, by the number of the step."""
        self.hit_texts: list[str] = []
        """Texts of search results, without secrets; not part of the trace."""
        self._run: Run | None = run
        self._start = run.start
        self.redactor = Redactor(identifiers=identifiers)
        """Removes secrets from the steps, and counts them."""
        self._position = 0
        self._index: dict[int, int] = {}
        self._touched: dict[int, None] = {}
        self._searches: dict[int, Call] = {}
        """Searches that have not ended, by their number."""
        self._tools: dict[Spec, Tool] = {}
        self._reported_steps = 0
        self._reported_decisions = 0
        self.journaled = 0
        """Number of journal rows written for this run."""
        self.journaled_changes = 0
        """Number of attribute changes that the journal has."""
        self._failures = Failures()
        for call in () if earlier is None else earlier.pending:
            error = call["error"]
            self._failures.add(Failure(call["name"], (error["type"], error["message"]), call))

    def advance(self, texts: Iterable[str] = ()) -> None:
        """Take in the events since the last time. `texts` are redacted afterwards; they are scanned together with the strings of the events."""
        run = self._run
        if run is None:
            return
        events = run.events[self._position :]
        self.redactor.expect(texts_of(events, list(texts)))
        while events:
            place, count = 0, len(events)
            while place < count:
                first, place = place, self._add_plain(events, place)
                self._position += place - first
                if place < count:
                    self._position += 1
                    self._take(events[place])
                    place += 1
            events = run.events[self._position :]

    def _take(self, event: object) -> None:
        if isinstance(event, Call):
            number = self._index.get(id(event))
            if number is not None:
                self._add_result(event, number)
                return
            self._recover()
            self._add_call(event)
        elif isinstance(event, Note):
            self._recover()
            self._add_thought(event, event.at, {"role": "user"} if type(event) is UserMessage else {})
        elif isinstance(event, ModelCall):
            self._add_model_call(event)

    def _add_plain(self, events: list[Event], place: int) -> int:
        """Add the plain calls from this place on, as `_add_call` and `_add_result` do; return the place of the first other event.

        Most calls are plain: with harmless texts and whole numbers in, a harmless text out, and no error, nested run, search or
        framework. Nothing came between their beginning and their end.
        """
        run = self._run
        if run is None or not (run.owner.capture_input and run.owner.capture_output):
            return place
        calls, index, add_step, harmless = self.calls, self._index, self.steps.append, self.redactor.harmless
        first, number, step, last = len(calls), len(calls), len(self.steps), len(events) - 1
        spec, failures = None, self._failures.pending
        while place < last:
            call: Any = events[place]
            if (
                call is not events[place + 1]
                or type(call) is not Call
                or call.status != "ok"
                or type(content := call.result) is not str
                or content not in harmless
                or call.error is not None
                or call.child is not None
                or call.hits is not None
                or call.place is not None
            ):
                break
            if call.spec is not spec:
                spec = call.spec
                name, tool, names = self._tools.get(spec) or self._tool(spec)
            plain = plain_input(names, call.args, harmless)
            if plain is None:
                break
            if failures:
                self._recover()
                step = len(self.steps)
            since, duration = call.start - run.start, call.end - call.start
            latency = duration // 1_000 / 1_000 if duration > 0 else 0.0
            started = since // 1_000 / 1_000 if since > 0 else 0.0
            add_step({"step_id": step, "type": "tool_call", "tool": tool, "input": plain, "latency_ms": latency})
            add_step({"step_id": step + 1, "type": "observation", "latency_ms": latency, "content": content})
            entry = {
                "call_id": _ID[number] if number < _IDS else f"c{number}",
                "name": name,
                "tool_call": step,
                "status": "ok",
                "started_ms": started,
                "latency_ms": latency,
                "observation": step + 1,
            }
            if call.parent is not None and id(call.parent) in index:
                del entry["latency_ms"], entry["observation"]
                entry["parent"] = f"c{index[id(call.parent)]}"
                entry["latency_ms"], entry["observation"] = latency, step + 1
            calls.append(entry)
            index[id(call)] = number
            number, step, place = number + 1, step + 2, place + 2
        if number > first:
            self._touched.update(dict.fromkeys(range(first, number)))
        return place

    def finish(self) -> None:
        """Take in the rest. A run that ended normally has recovered from errors that nothing followed."""
        run = self._run
        if run is None:
            return
        texts = [run.name, run.domain, run.objective]
        if type(run.result) is str:
            texts.append(run.result)
        self.advance(texts)
        for number, call in self._searches.items():
            if (found := call.found()) is not None:
                self._touched[number] = None
                self.calls[number]["search"] = self._search(call, found)
        if run.status == "completed":
            self._recover()
        if not self.steps and run.status != SUSPENDED:
            # A trace has at least one step. A run without calls can only have thought.
            text = to_text(run.result) if run.result is not None else ": ".join(run.error or ())
            shown = text if run.owner.capture_output else NOT_CAPTURED
            self._add("thought", content=self._clean(shown if text.strip() else NOTHING))

    def release(self) -> None:
        """Release the run. Only the numbers of its calls stay, for a nested run that ends later."""
        self._run = None
        self.steps, self.calls, self.model_calls, self.nested, self.places = [], [], [], [], {}
        self._touched.clear()
        self._searches.clear()
        self.redactor.expect(())  # forget the strings

    def number(self, call: object) -> int:
        """Return the position of a call among the calls of its run, from 0; -1 for any other call."""
        return self._index.get(id(call), -1)

    def news(self, decisions: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int] | None:
        """Return steps and calls that are new or changed since the last time, and the number of decisions reported before."""
        if self._reported_steps == len(self.steps) and not self._touched and decisions == self._reported_decisions:
            return None
        reported = self._reported_decisions
        steps = self.steps[self._reported_steps :]
        calls = [self.calls[number] for number in self._touched]
        self._reported_steps, self._reported_decisions = len(self.steps), decisions
        self._touched.clear()
        return steps, calls, reported

    def repeats(self, places: frozenset[str]) -> list[int]:
        """Return the numbers of the steps that belong to these places."""
        return [number for number, place in self.places.items() if place in places]

    def _add_thought(self, event: Note | ModelCall, at: int, fields: dict[str, Any]) -> dict[str, Any]:
        step = self._add("thought", content=self._clean(event.text), started_ms=_ms(at - self._start), **fields)
        if event.place is not None:
            self.places[step["step_id"]] = event.place
        return step

    def _add_model_call(self, call: ModelCall) -> None:
        latency = _ms(call.end - call.start)
        entry: dict[str, Any] = {"model": self._clean(call.model), "status": call.status}
        entry.update(started_ms=_ms(call.start - self._start), latency_ms=latency)
        if call.usage:
            entry.update(call.usage)
        self._recover()
        if call.text.strip():
            entry["step"] = self._add_thought(call, call.start, {"latency_ms": latency})["step_id"]
        if call.error is not None:
            kind, message = call.error
            entry["error"] = {"type": self._clean(kind), "message": self._clean(message)}
            if call.status == "error":
                self._failures.add(Failure(call.model, call.error, entry))
        self.model_calls.append(entry)

    def _add(self, kind: str, **fields: object) -> dict[str, Any]:
        step = {"step_id": len(self.steps), "type": kind, **fields}
        self.steps.append(step)
        return step

    def _clean(self, text: str) -> str:
        return self.redactor.text(text)

    def _add_call(self, call: Call) -> None:
        calls, steps, run = self.calls, self.steps, call.run
        number, place = len(calls), len(steps)
        self._index[id(call)] = number
        self._touched[number] = None
        name, tool, _ = self._tools.get(call.spec) or self._tool(call.spec)
        step: dict[str, Any] = {"step_id": place, "type": "tool_call", "tool": tool}
        if run.owner.capture_input:
            step["input"] = self.redactor.value(name_arguments(call))
        steps.append(step)
        entry: dict[str, Any] = {
            "call_id": f"c{number}",
            "name": name,
            "tool_call": place,
            "status": "unfinished",
            "started_ms": _ms(call.start - run.start),
        }
        if call.parent is not None and id(call.parent) in self._index:
            entry["parent"] = f"c{self._index[id(call.parent)]}"
        if call.child is not None:
            entry["child"] = call.child.id
        if call.place is not None:
            self.places[place] = call.place
        calls.append(entry)
        if call.spec.searches:
            self._searches[number] = call

    def _tool(self, spec: Spec) -> Tool:
        """Return a tool's name without secrets, the object with this name that all its steps share, and its plain parameters."""
        name = self._clean(spec.name)
        is_plain = not spec.injected and have_plain_names(spec.positional)
        self._tools[spec] = found = name, {"name": name}, spec.positional if is_plain else None
        return found

    def _add_result(self, call: Call, number: int) -> None:
        self._touched[number] = None
        entry, steps = self.calls[number], self.steps
        latency = _ms(call.end - call.start)
        entry["status"], entry["latency_ms"] = call.status, latency
        if call.child is not None:
            entry["child"] = call.child.id
            self.nested.append((number, call.child))
        elif "child" in entry:
            del entry["child"]
        steps[entry["tool_call"]]["latency_ms"] = latency
        entry["observation"] = place = len(steps)
        step: dict[str, Any] = {"step_id": place, "type": "observation", "latency_ms": latency}
        steps.append(step)
        if call.place is not None:
            self.places[place] = call.place
        if call.error is not None:
            kind, message = call.error
            entry["error"] = {"type": self._clean(kind), "message": self._clean(message)}
            text = f"{kind}: {message}" if message else kind
            # Items that were streamed before the reader left are a part of the result.
            has_part = call.status == CLOSED and call.result is not None and call.run.owner.capture_output
            step["content"] = self._content(call.result) if has_part else self._clean(text)
            if call.status in {"error", "cancelled"}:
                self._failures.add(Failure(call.spec.name, call.error, entry, call.parent, call.place), call)
        elif call.status == SUSPENDED:
            step["content"] = WAITING
        elif call.run.owner.capture_output:
            step["content"] = self._content(call.result)
        self._searches.pop(number, None)
        if (found := call.found()) is not None:
            entry["search"] = self._search(call, found)

    def _content(self, result: object) -> str:
        if type(result) is str:
            return self._clean(result)
        value = render(result) if type(result) is float else result
        return to_text(self.redactor.value(value))

    def _search(self, call: Call, hits: SearchResults) -> dict[str, Any]:
        search: dict[str, Any] = {"count": hits.count, "scores": list(hits.scores)}
        sources = hits.sources[:100]
        if call.run.owner.capture_output:
            if len(self.hit_texts) < MAX_HIT_TEXTS:
                self.hit_texts += [self._clean(text) for text in hits.texts]
            search["sources"] = [self._clean(source[:500]) for source in sources]
        else:
            search["sources"] = [f"{NOT_CAPTURED} {number}" for number, _ in enumerate(sources, 1)]
        if hits.kind:
            search["kind"] = hits.kind
        if hits.unusable_scores:
            search["unusable_scores"] = hits.unusable_scores
            shown = call.run.owner.capture_output
            search["unusable"] = [
                {"value": self._clean(item.value) if shown else NOT_CAPTURED, "why": self._clean(item.why)}
                for item in hits.unusable
            ]
        if hits.note:
            search["note"] = self._clean(hits.note)
        if hits.unreadable:
            search["unreadable"] = True
        return search

    def _recover(self) -> None:
        if self._failures.pending:
            self._failures.recover(self._add_recovery)

    def _add_recovery(self, failure: Failure) -> dict[str, Any]:
        step = self._add("error_recovery", content=self._clean(failure.recovery))
        if failure.place is not None:
            self.places[step["step_id"]] = failure.place
        return step


class _AsIs(Redactor):
    """Removes nothing: a history is neither stored nor shown."""

    __slots__ = ()

    def text(self, text: str, *, is_counted: bool = True) -> str:  # noqa: ARG002
        return storable(text)

    def value(self, value: object) -> Any:
        return value


class LiveReader(StepBuilder):
    """How far a gate has read a run for the history of what its agent has seen. It does not hold its run."""

    __slots__ = ("begun", "events", "forgotten", "history", "objective", "order", "preamble", "reading", "sight")

    def __init__(self, run: Run, sight: Any, history: ActionHistory) -> None:
        from grace_kp.confidence import RunReader

        earlier = None if run.earlier is None else EarlierPart(run.earlier)
        super().__init__(run, identifiers=False, earlier=earlier)
        self._run = None
        self.redactor = _AsIs(identifiers=False)
        self.sight, self.history = sight, history
        self.events: list[Event] | None = None
        """The events of a run that has ended."""
        self.begun: dict[str, Call] = {}
        """Calls that have not ended, or whose nested run has not, by their id."""
        self.reading = RunReader(history, is_outermost=run.via is None)
        first = run
        while first.via is not None and first.via.run.events[:1] == [first.via]:
            first = first.via.run
        is_agent = first.via is None and first.spec.kind == AGENT and first.via_trace is None
        objective = first.objective if first.earlier is None else first.earlier["task"]["objective"]
        grace = {} if first.earlier is None else first.earlier.get("grace") or {}
        is_document = first.objective_is_document or grace.get("objective_is_document") is True
        self.objective = None if not is_agent else "" if is_document else objective
        """That of the outermost run; None for a nested run before which an agent may have seen something, empty for a document."""
        if run.via is None:
            history.add_objective(objective, run.name, is_agent=is_agent, is_document=is_document)
        if run.earlier is not None and not run.preamble and (run.earlier.get("grace") or {}).get("model_calls"):
            history.index.add_gap(UNTOLD, hides_results=False)
        self.preamble = self.forgotten = 0
        self.order = history.index.mark()
        """The place of what the agent was told first."""

    def advance_in(self, run: Run) -> None:
        """Read what is new in its run."""
        events = run.events if self.events is None else self.events
        before = ((run.earlier or {}).get("grace") or {}).get("decisions") or []
        decisions, index = [*before, *run.decisions], self.history.index
        index.at = None
        for at, words in (run.preamble or [])[self.preamble :]:
            self.preamble += 1
            if at >= 0:
                self._read(run, events[self._position : at], decisions, is_all=False)
            if isinstance(words, str):
                index.at = self.order
                index.add_policy(words)
            else:
                words(index, self.objective, None if at < 0 else self.order, is_stored=run.earlier is not None)
            index.at = None
        self._read(run, events[self._position :], decisions)
        run.returned.clear()
        for step in self.steps[self.forgotten :]:  # what the index holds is not held twice
            step.pop("content", None)
            step.pop("input", None)
        self.forgotten = len(self.steps)
        for name, call in list(self.begun.items()):
            inner, has_ended = call.child, call.status is not None
            self.sight.streams |= not has_ended and getattr(call, "streams", False)
            if inner is not None:
                has_ended &= not inner.open
                self.sight.read(inner, self.history)  # it may go on after its call
            if has_ended:
                del self.begun[name]
        if self.events and not self.begun:
            self.events = []

    def _read(
        self, run: Run, events: Iterable[Event], decisions: list[Mapping[str, Any]], *, is_all: bool = True
    ) -> None:
        """Read the next events, and the decisions among them."""
        for event in events:
            self._position += 1
            self._take(event)
            if isinstance(event, Call):
                self.begun[f"c{self.number(event)}"] = event
        number = len(self.steps)
        due = decisions if is_all else itertools.takewhile(lambda entry: entry.get("step", number) <= number, decisions)
        returned = lambda name: render(run.returned[name], MAX_RETURNED)  # noqa: E731
        self.reading.read(self.steps, self.calls, [*due], self._inside, returned)

    def _inside(self, entry: Mapping[str, Any]) -> bool | None:
        call = self.begun.get(entry["call_id"])
        if call is None:  # from before the run was resumed
            return False if "child" in entry else None
        return None if call.child is None else self.sight.read(call.child, self.history)


def _ms(nanoseconds: int) -> float:
    return nanoseconds // 1_000 / 1_000 if nanoseconds > 0 else 0.0


def texts_of(events: Iterable[object], texts: list[str]) -> list[str]:
    """Add the strings of events, which are redacted one by one later. Strings derived from them are not known yet."""
    last: object = None
    for event in events:
        if event is last:  # the end of a call directly after its beginning
            continue
        last = event
        if isinstance(event, Call):
            if type(event.args) is list:
                texts_in(event.args, texts)
            else:
                for value in event.args:
                    if type(value) is str:
                        texts.append(value)  # noqa: PERF401 — a comprehension costs more
            if event.kwargs:
                texts_in(event.kwargs, texts)
            if type(event.result) is str:
                texts.append(event.result)
            elif event.result is not None:
                texts_in(event.result, texts)
            if event.hits is not None:
                texts += event.hits.texts
                texts += event.hits.sources
        elif isinstance(event, Note | ModelCall):
            texts.append(event.text)
    return texts


def plain_input(names: tuple[str, ...] | None, args: object, harmless: Set[str]) -> dict[str, Any] | None:
    """Return the arguments of a call by name if they need neither redaction nor rendering, else None."""
    if names is None or type(args) is not tuple or len(args) > len(names):
        return None
    for value in args:
        kind = type(value)
        if kind is str:
            if value not in harmless:
                return None
        elif not (value is None or kind is int or kind is bool):
            return None
    # Without `strict`, which costs more than all the rest.
    return {names[0]: args[0]} if len(args) == 1 else dict(zip(names, args))  # noqa: B905


def name_arguments(call: Call) -> dict[str, Any]:
    args = call.args
    if type(args) is list:  # rendered already
        return call.spec.bind(args, call.kwargs)
    names = call.spec.positional
    # Without `strict`, which costs more than all the rest.
    is_simple = len(args) <= len(names) and not call.spec.injected
    named = dict(zip(names, args)) if is_simple else call.spec.bind(args, None)  # noqa: B905
    if float in map(type, args):
        for key, value in named.items():
            if type(value) is float and value - value != 0:
                named[key] = str(value)
    return named
