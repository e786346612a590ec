"""Evidence and material of a live run, for gates, which cannot wait until it ends: for its confidence, and for a judge.

Also the number of its steps, counted without building them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from grace_kp.record._call import Call
from grace_kp.record._events import ModelCall, Note
from grace_kp.record._resume import EarlierPart
from grace_kp.trace import Failure, Failures, render, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grace_kp.confidence import Evidence
    from grace_kp.record._events import Event
    from grace_kp.record._run import Run

MAX_MATERIAL = 20
_LONGEST = 4_000


class Proposed(Protocol):
    """An action that waits for its gate."""

    @property
    def action(self) -> str: ...
    def shown(self) -> Mapping[str, object]: ...


@dataclass(slots=True)
class Survey:
    """What a gate sees of a live run at a glance."""

    evidence: Evidence
    """The evidence of the calls that have ended so far."""
    steps: int = 0
    """Number of steps that the trace has so far: those that `StepBuilder` builds from the same events."""


def evidence_of(run: Run | None) -> Evidence:
    """Gather evidence from the calls of a run that have ended so far."""
    return survey_of(run).evidence


def survey_of(run: Run | None) -> Survey:
    """Gather evidence and count the steps of a run, in a single pass over its events."""
    from grace_kp.confidence import Evidence, evidence_of_calls

    if run is None:
        return Survey(Evidence())
    if run.resumes is not None:
        run.owner.recall(run)
    survey, failures = Survey(Evidence()), Failures()
    if run.earlier is not None:
        earlier = EarlierPart(run.earlier)
        survey = Survey(evidence_of_calls(earlier.calls), len(earlier.steps))
        failures.pending = [Failure("", ("", ""), None) for _ in earlier.pending]
    events = list(run.events)
    begun: set[int] = set()
    plain = extra = place = 0
    last = len(events) - 1
    while place <= last:
        event = events[place]
        place += 1
        if type(event) is Call:
            is_plain = event.status == "ok" and event.child is None and event.hits is None
            if id(event) in begun:  # its end
                if is_plain:
                    plain += 1
                else:
                    _ended(event, survey.evidence, failures)
                continue
            if is_plain and place <= last and events[place] is event:  # nothing came in between, as in most calls
                plain += 1
                place += 1
            else:
                begun.add(id(event))
        elif type(event) is ModelCall:
            extra -= not event.text.strip()  # a call without text is no step
        if failures.pending:  # the run has gone on, which is a step for each error
            extra += len(failures.pending)
            failures.pending.clear()
        if type(event) is ModelCall and event.error is not None and event.status == "error":
            failures.add(Failure("", event.error, None))
    survey.evidence.calls_succeeded(plain)
    survey.steps += len(events) + extra
    return survey


def _ended(call: Call, evidence: Evidence, failures: Failures) -> None:
    inside = None if call.child is None or call.parent is None else call.parent.status or ""
    if evidence.call_finished(call.status, inside) and call.hits is not None:
        evidence.search_finished(call.hits)
    if call.error is not None and call.status in {"error", "cancelled"}:
        failures.add(Failure("", call.error, None, call.parent), call)


def material_of(run: Run | None, case: Proposed) -> tuple[str, str, list[str]]:
    """Return question, answer and sources for a judge before an action: the objective, the proposed action, and results of tools."""
    shown = ", ".join(f"{name}={to_text(render(value, _LONGEST))}" for name, value in case.shown().items())
    answer = f"{case.action}({shown})"
    if run is None:
        return case.action, answer, []
    texts: list[str] = []
    for event in _events_that_ended(run):
        if isinstance(event, Note | ModelCall):
            texts += [event.text] if event.text else []
        elif isinstance(event, Call) and event.status == "ok" and event.result is not None:
            texts.append(f"{event.spec.name}: {to_text(render(event.result, _LONGEST))}"[:_LONGEST])
    return run.objective, answer, texts[-MAX_MATERIAL:]


def _events_that_ended(run: Run) -> Iterator[Event]:
    """Yield thoughts, and calls in the order in which they ended: a run's events hold a call twice, at its beginning and its end."""
    seen: set[int] = set()
    for event in list(run.events):
        if isinstance(event, Call) and id(event) not in seen:
            seen.add(id(event))
        else:
            yield event
