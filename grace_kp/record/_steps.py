"""The steps of a run, built from its events: the step of each event, their order, and the errors that the run recovered from.

The builder looks at each event once, so that the journal of an open run and the finished trace share the work. Everything it produces is
JSON, bounded, and without secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._call import Call
from grace_kp.record._events import NOT_CAPTURED, ModelCall, Note
from grace_kp.record._host import CLOSED, SUSPENDED
from grace_kp.trace import Failure, Failures, Redactor, render, texts_in, to_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.record._resume import EarlierPart
    from grace_kp.record._run import Run

MAX_HIT_TEXTS = 64
WAITING = "waits for a person"
NOTHING = "The run recorded no step and returned no text."


class StepBuilder:
    """Steps and calls of one run, up to the last event that was taken in.

    Attributes:
        steps: step dicts in the form of the trace schema, numbered from 0.
        calls: one dict per call, linking its tool_call and observation steps.
    """

    __slots__ = (
        "_failures", "_index", "_position", "_reported_decisions", "_reported_steps", "_run", "_tools", "_touched",
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
        self.redactor = Redactor(identifiers=identifiers)
        """Removes secrets from the steps, and counts them."""
        self._position = 0
        self._index: dict[int, int] = {}
        self._touched: dict[int, None] = {}
        self._tools: dict[str, tuple[str, dict[str, str]]] = {}
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
        """Take in the events since the last time. `texts` are redacted afterwards, and scanned together with those of the events."""
        run = self._run
        if run is None:
            return
        events = run.events[self._position :]
        self.redactor.expect([*texts, *_texts_of(events)])
        while events:
            begun: Call | None = None  # a plain call whose end has been taken in with its beginning
            for event, following in zip(events, [*events[1:], None]):  # noqa: B905
                self._position += 1
                if event is begun:
                    begun = None
                elif event is following and isinstance(event, Call) and self._add_plain(event):
                    begun = event
                else:
                    self._take(event)
            events = run.events[self._position :]

    def _take(self, event: object) -> None:
        if isinstance(event, Call):
            number = self._index.get(id(event))
            if number is not None:
                self._returned(event, number)
                return
            self._recover()
            self._called(event)
        elif isinstance(event, Note):
            self._recover()
            self._thought(event, {})
        elif isinstance(event, ModelCall):
            self._model_called(event)

    def _add_plain(self, call: Call) -> bool:
        """Add a call that nothing came between, as `_called` and `_returned` do; return False for one that is not plain.

        Most calls are plain: with texts and numbers in, a text out, and no error, nested run, search or framework.
        """
        run, result = call.run, call.result
        owner = run.owner
        if (
            call.status != "ok"
            or call.error is not None
            or call.child is not None
            or call.hits is not None
            or call.place is not None
            or type(result) is not str
            or not (owner.capture_input and owner.capture_output)
        ):
            return False
        if self._failures.pending:
            self._recover()
        calls, steps, spec, duration = self.calls, self.steps, call.spec, call.end - call.start
        number, place, since = len(calls), len(steps), call.start - run.start
        latency = duration // 1_000 / 1_000 if duration > 0 else 0.0
        self._index[id(call)] = number
        self._touched[number] = None
        name, tool = self._tools.get(spec.name) or self._tool(spec.name)
        redactor = self.redactor
        steps.append(
            {
                "step_id": place,
                "type": "tool_call",
                "tool": tool,
                "input": redactor.value(_named(call)),
                "latency_ms": latency,
            }
        )
        steps.append(
            {"step_id": place + 1, "type": "observation", "latency_ms": latency, "content": redactor.text(result)}
        )
        entry = {
            "call_id": f"c{number}",
            "name": name,
            "tool_call": place,
            "status": "ok",
            "started_ms": since // 1_000 / 1_000 if since > 0 else 0.0,
        }
        if call.parent is not None and id(call.parent) in self._index:
            entry["parent"] = f"c{self._index[id(call.parent)]}"
        entry["latency_ms"] = latency
        entry["observation"] = place + 1
        calls.append(entry)
        return True

    def finish(self) -> None:
        """Take in the rest. A run that ended normally has recovered from errors that nothing followed."""
        run = self._run
        if run is None:
            return
        texts = [run.name, run.domain, run.objective]
        if type(run.result) is str:
            texts.append(run.result)
        self.advance(texts)
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
        self.redactor.forget()

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

    def _thought(self, event: Note | ModelCall, fields: dict[str, Any]) -> dict[str, Any]:
        step = self._add("thought", content=self._clean(event.text), **fields)
        if event.place is not None:
            self.places[step["step_id"]] = event.place
        return step

    def _model_called(self, call: ModelCall) -> None:
        latency = _ms(call.end - call.start)
        entry: dict[str, Any] = {"model": self._clean(call.model), "status": call.status, "latency_ms": latency}
        if call.usage:
            entry.update(call.usage)
        self._recover()
        if call.text.strip():
            entry["step"] = self._thought(call, {"latency_ms": latency})["step_id"]
        if call.error is not None:
            kind, message = call.error
            entry["error"] = {"type": kind, "message": self._clean(message)}
            if call.status == "error":
                self._failures.add(Failure(call.model, call.error, entry))
        self.model_calls.append(entry)

    def _add(self, kind: str, **fields: object) -> dict[str, Any]:
        step = {"step_id": len(self.steps), "type": kind, **fields}
        self.steps.append(step)
        return step

    def _clean(self, text: str) -> str:
        return self.redactor.text(text)

    def _called(self, call: Call) -> None:
        calls, steps, run = self.calls, self.steps, call.run
        number, place = len(calls), len(steps)
        self._index[id(call)] = number
        self._touched[number] = None
        name, tool = self._tools.get(call.spec.name) or self._tool(call.spec.name)
        step: dict[str, Any] = {"step_id": place, "type": "tool_call", "tool": tool}
        if run.owner.capture_input:
            step["input"] = self.redactor.value(_named(call))
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

    def _tool(self, name: str) -> tuple[str, dict[str, str]]:
        """Return a tool's name without secrets, and the object with this name that all its steps share."""
        clean = self._clean(name)
        known = self._tools[name] = (clean, {"name": clean})
        return known

    def _returned(self, call: Call, number: int) -> None:
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
            entry["error"] = {"type": kind, "message": self._clean(message)}
            text = f"{kind}: {message}" if message else kind
            step["content"] = self._content(call.result) if _was_left(call) else self._clean(text)
            if call.status in {"error", "cancelled"}:
                self._failed(call, entry)
        elif call.status == SUSPENDED:
            step["content"] = WAITING
        elif call.run.owner.capture_output:
            step["content"] = self._content(call.result)
        if call.hits is not None:
            entry["search"] = self._search(call)

    def _content(self, result: object) -> str:
        if type(result) is str:
            return self._clean(result)
        value = render(result) if type(result) is float else result
        return to_text(self.redactor.value(value))

    def _search(self, call: Call) -> dict[str, Any]:
        hits = call.hits
        assert hits is not None  # noqa: S101
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
                {"value": self._clean(item.value) if shown else NOT_CAPTURED, "why": item.why} for item in hits.unusable
            ]
        if hits.note:
            search["note"] = self._clean(hits.note)
        if hits.unreadable:
            search["unreadable"] = True
        return search

    def _failed(self, call: Call, entry: dict[str, Any]) -> None:
        error = call.error or ("Error", "")
        self._failures.add(Failure(call.spec.name, error, entry, call.parent, call.place), call)

    def _recover(self) -> None:
        if self._failures.pending:
            self._failures.recover(self._recovered)

    def _recovered(self, failure: Failure) -> dict[str, Any]:
        step = self._add("error_recovery", content=self._clean(failure.recovery))
        if failure.place is not None:
            self.places[step["step_id"]] = failure.place
        return step


def _texts_of(events: Iterable[object]) -> list[str]:
    """Return the texts of events, which are redacted one by one later; texts that are derived from them are not known yet."""
    texts: list[str] = []
    last: object = None
    for event in events:
        if event is last:  # the end of a call directly after its beginning
            continue
        last = event
        if isinstance(event, Call):
            if type(event.args) is list:
                texts_in(event.args, texts)
            else:
                texts += [value for value in event.args if type(value) is str]
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


def _named(call: Call) -> dict[str, Any]:
    """Return the arguments of a call by name, as JSON values."""
    args = call.args
    if type(args) is list:  # rendered already
        return call.spec.bind(args, call.kwargs)
    names = call.spec.positional
    # Without `strict`, which costs more than all the rest.
    named = call.spec.bind(args, None) if len(args) > len(names) else dict(zip(names, args))  # noqa: B905
    if float in map(type, args):
        for key, value in named.items():
            if type(value) is float and value - value != 0:
                named[key] = str(value)
    return named


def _was_left(call: Call) -> bool:
    """Return whether a call streamed a part of its result before its reader left."""
    return call.status == CLOSED and call.result is not None and call.run.owner.capture_output


def _ms(nanoseconds: int) -> float:
    """Return nanoseconds as milliseconds, to the microsecond."""
    return nanoseconds // 1_000 / 1_000 if nanoseconds > 0 else 0.0
