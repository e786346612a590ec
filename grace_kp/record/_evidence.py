"""Evidence and material of a live run, for gates, which cannot wait until it ends: for its confidence, and for a judge.

Also the number of its steps, counted without building them.
"""

from __future__ import annotations

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


def evidence_of(run: Run | None) -> Evidence:
    """Gather evidence from the calls of a run that have ended so far."""
    from grace_kp.confidence import Evidence, evidence_of_calls

    if run is None:
        return Evidence()
    if run.resumes is not None:
        run.owner.recall(run)
    evidence = Evidence() if run.earlier is None else evidence_of_calls(EarlierPart(run.earlier).calls)
    for call in _events_that_ended(run):
        if isinstance(call, Call):
            inside = None if call.child is None or call.parent is None else call.parent.status or ""
            if evidence.call_finished(call.status, inside) and call.hits is not None:
                evidence.search_finished(call.hits)
    return evidence


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


def steps_so_far(run: Run | None) -> int:
    """Return the number of steps that the trace of an open run has so far: those that `StepBuilder` builds from its events."""
    if run is None:
        return 0
    if run.resumes is not None:
        run.owner.recall(run)
    count, failures, begun = 0, Failures(), set()
    if run.earlier is not None:
        earlier = EarlierPart(run.earlier)
        count = len(earlier.steps)
        failures.pending = [Failure("", ("", ""), None) for _ in earlier.pending]
    for event in list(run.events):
        if isinstance(event, Call) and id(event) in begun:
            if event.error is not None and event.status in {"error", "cancelled"}:
                failures.add(Failure("", event.error, None, event.parent), event)
            count += 1
            continue
        if failures.pending:  # the run has gone on, which is a step for each error
            count += len(failures.pending)
            failures.pending.clear()
        if isinstance(event, Call):
            begun.add(id(event))
        elif isinstance(event, ModelCall):
            if event.error is not None and event.status == "error":
                failures.add(Failure("", event.error, None))
            count -= not event.text.strip()  # a call without text is no step
        count += 1
    return count


def _events_that_ended(run: Run) -> Iterator[Event]:
    """Yield thoughts, and calls in the order in which they ended: a run's events hold a call twice, at its beginning and its end."""
    seen: set[int] = set()
    for event in list(run.events):
        if isinstance(event, Call) and id(event) not in seen:
            seen.add(id(event))
        else:
            yield event
