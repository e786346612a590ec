"""Labels of single actions from a store, a file or a list: which statement about an action counts, and what each label may be used for.

Most labels are feedback on an action. A reviewer's edit and a rejection with a reason state that the proposed call was wrong, and are read
from the trace. A plain approval is no label, because people approve wrong actions. An edit says nothing about the arguments after it: they
are not the agent's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from grace_kp.calibrate._label_sources import (
    UNFINISHED,
    Label,
    accept_labels,
    checked_sources,
    group_of,
    is_standing,
    objects_in,
    weigh_label,
)
from grace_kp.calibrate._labels import FIELD as OF_FIELD
from grace_kp.calibrate._labels import UNREADABLE, LabelledRun, gather, read_label
from grace_kp.errors import InvalidRecord
from grace_kp.levels import waits
from grace_kp.record import NOT_CAPTURED
from grace_kp.store import ACTION_FIELD, CHECK, FIELD, IMPORT, PROGRAM, REVERSAL, action_name
from grace_kp.trace import ReasoningTrace, read_runs

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from grace_kp.store import Store
    from grace_kp.trace import DecisionRecord, FileRun

EDIT, REJECTION = "edit", "rejection"
"""Sources of labels that a trace states by itself: a reviewer changed the arguments, or refused the call with a reason."""
MAX_FIT_WEIGHT = 20.0
"""Actions that one may represent in a fit. A few that represent many more would decide it alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAction:
    """One gated action, whether it was right, and where that is known from."""

    trace: ReasoningTrace = field(repr=False)
    position: int
    """Its place in `trace.decisions`."""
    id: str
    """The id of its decision; its number in the run, from 1 on, in traces of earlier versions."""
    tool: str
    correct: bool | float
    """Whether the call that the agent proposed was right: True, False, or a number between 0 and 1."""
    source: str
    weight: float
    """Number of actions that this one represents: 1 / the probability that it would be labelled."""
    group: str
    """The task. Actions of one task belong together in cross-validation and in a promise."""
    is_audited: bool
    """Whether the label may enter a promise: the probability of a label is known, and no check, reversal, program or file states it."""

    @property
    def fit_weight(self) -> float:
        """The weight in a fit, at most 20. A promise needs `weight`."""
        return min(self.weight, MAX_FIT_WEIGHT)


@dataclass(frozen=True, slots=True)
class ActionLabels:
    """Labelled actions. It unpacks to the traces, and for each the labels of its actions by their place in `trace.decisions`."""

    actions: list[LabelledAction] = field(default_factory=list)
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of actions without a usable label, by reason; of runs that cannot be read or have not ended."""

    @property
    def labels(self) -> list[bool | float]:
        """Whether each action was right."""
        return [action.correct for action in self.actions]

    @property
    def groups(self) -> list[str]:
        """The task of each action."""
        return [action.group for action in self.actions]

    def __iter__(self) -> Iterator[Any]:
        traces = {id(action.trace): action.trace for action in self.actions}
        labels: dict[int, dict[int, bool | float]] = {name: {} for name in traces}
        for action in self.actions:
            labels[id(action.trace)][action.position] = action.correct
        yield list(traces.values())
        yield list(labels.values())


def action_labels(
    store: Store | str | os.PathLike[str] | Iterable[Any] | object,
    sources: Iterable[str] | str | None = None,
    *,
    volunteered: bool = False,
    **conditions: Any,
) -> ActionLabels:
    """Return the labelled actions of a store, a file or a list.

    A label is the newest feedback on the action (`grace.feedback(action=…)`) of an accepted source, with the precedence of labels of runs
    (see `labels`). A label of the run is none of its actions. Three sources need no feedback:

    - `edit`: a reviewer changed the arguments, so the proposed call was wrong.
    - `rejection`: a reviewer refused the call and gave a reason.
    - `field:actions.right`: a chat run in a file lists its actions as `{message, call, name, right}`: the index of the message, the index of
      the tool call in it, and whether it was right (1, 0, or null where that is not known).

    An answer of the run's own user, a standing approval and a timeout are no labels; a plain approval is none either. `check` is the result
    of `@grace.gate(check=…)`, and `reversal` another action that undid this one. Both are for fitting only, as are labels by programs.

    Args:
        store: a store, a `Grace`, the URL or path of a store, the path of a file of runs, traces, or what `read_labelled` yields.
        sources: the accepted sources; all but `approval` and those of imported files when None.
        volunteered: whether to keep labels of actions that were not drawn for the audit, for fitting, with weight 1.
        conditions: which runs of a store, as in `store.query`.

    Raises:
        ValueError: a source or a condition cannot be used.
        StoreError: the store cannot be opened or read.
        InvalidRecord: the file cannot be opened. A run in it that cannot be read is left out and counted.
    """
    wanted = checked_sources(sources)

    def collect(runs: Iterable[Any]) -> ActionLabels:
        found, left_out = list[LabelledAction](), Counter[str]()
        for run in runs:
            trace = run.trace if isinstance(run, LabelledRun) else run
            if isinstance(trace, Mapping):
                trace = ReasoningTrace.model_validate(trace)
            if isinstance(trace, InvalidRecord) or waits((trace.grace or {}).get("status")):
                left_out[UNREADABLE if isinstance(trace, InvalidRecord) else UNFINISHED] += 1
                continue
            for action in _labelled_in(trace, wanted, volunteered=volunteered):
                if isinstance(action, str):
                    left_out[action] += 1
                else:
                    found.append(action)
        return ActionLabels(found, dict(left_out))

    return gather(
        store,
        conditions,
        in_store=lambda opened: collect(opened.iterate(**conditions)),
        in_file=lambda path: collect(read_actions(path)),
        in_list=collect,
    )


def read_actions(
    source: str | os.PathLike[str] | IO[bytes] | IO[str], *, name: str | None = None
) -> Iterator[ReasoningTrace | InvalidRecord]:
    """Yield the runs of a file for `action_labels`; an `InvalidRecord` with place and reason replaces each that cannot be read.

    Args:
        source: a path, `-` for standard input, or an open file.
        name: name of the file in messages.
    """
    return map(_trace_of, read_runs(source, name=name, use_labels=False))


def _labelled_in(
    trace: ReasoningTrace, sources: tuple[str, ...] | None, *, volunteered: bool
) -> Iterator[LabelledAction | str]:
    """Yield each labelled action of a run; for one without a label, the reason."""
    grace, group = trace.grace or {}, group_of(trace)
    stated = [entry for name in (ACTION_FIELD, FIELD) for entry in objects_in(grace, name) if "action" in entry]
    # A program that runs again decides on a call again. Only the last entry states its outcome.
    decisions = {action_name(decision.data, place): (place, decision) for place, decision in enumerate(trace.decisions)}
    for name, (place, decision) in decisions.items():
        own = [] if grace.get("imported") else [{**entry, "action": name} for entry in _answers_to(decision)]
        accepted, reason = accept_labels([*own, *stated], grace.get("user"), sources, name)
        audited: Label | str = weigh_label(accepted, [decision.data], volunteered=False) if accepted else reason
        label = weigh_label(accepted, [decision.data], volunteered=True) if accepted and volunteered else audited
        if not isinstance(label, Label):
            yield label
            continue
        newest = accepted[-1][1]
        is_for_fits = label.source in {CHECK, REVERSAL} or label.source.startswith(IMPORT) or newest.get(PROGRAM)
        yield LabelledAction(
            trace=trace,
            position=place,
            id=name,
            tool=decision.action,
            correct=label.correct,
            source=label.source,
            weight=label.weight,
            group=group,
            is_audited=isinstance(audited, Label) and not is_for_fits,
        )


def _answers_to(decision: DecisionRecord) -> Iterator[dict[str, Any]]:
    """Yield the label that a reviewer's answer is. Its author may turn out to be the user of the run."""
    response = decision.response
    if response is None or response.timeout_reached or is_standing(decision):
        return
    if response.action == "modify" and _has_changed(decision):
        yield {"correct": False, "source": EDIT, "by": response.reviewer}
    reason = (response.user_input or "").strip()
    if response.action == "cancel" and reason and reason != NOT_CAPTURED:
        yield {"correct": False, "source": REJECTION, "by": response.reviewer}


def _has_changed(decision: DecisionRecord) -> bool:
    """Return whether an edit changed the arguments. A form may hand in the shown ones."""
    if decision.was_executed or decision.outcome == "failed":
        return decision.executed_digest not in {None, decision.digest}
    changes = decision.data["response"].get("modified")
    return isinstance(changes, Mapping) and any(decision.arguments.get(name) != new for name, new in changes.items())


def _trace_of(run: FileRun | InvalidRecord) -> ReasoningTrace | InvalidRecord:
    """Return the trace of a run in a file, with a decision and a label for each entry of its field `actions`, if it has one."""
    if isinstance(run, InvalidRecord) or not isinstance(run.document, dict):
        return run if isinstance(run, InvalidRecord) else run.trace
    listed, messages, trace = run.document.get("actions"), run.document.get("messages"), run.trace
    if not isinstance(listed, list) or not isinstance(messages, list) or trace.decisions:
        return trace
    begins = [0]
    for message in messages:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        begins.append(begins[-1] + (len(calls) if isinstance(calls, list) else 0))
    decisions: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    for number, entry in enumerate(listed, 1):
        try:
            call = trace.calls[begins[entry["message"]] + entry["call"]]
            step = call.tool_call
            if call.name != entry["name"] or step is None or entry["message"] < 0 or entry["call"] < 0:
                raise ValueError(f"message {entry['message']} has no such call")
            proposed = messages[entry["message"]]["tool_calls"][entry["call"]]["function"]["arguments"]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            problem = f"is not an action of the run, with message, call and name: {error!r:.100}"
            return InvalidRecord(problem, file=run.file, line=run.line, path=f"{run.path}actions[{number - 1}]")
        outcome = "executed" if call.status == "ok" else "failed"
        name, arguments = f"action-{number}", proposed
        with suppress(TypeError, ValueError):  # a model may write anything
            arguments = json.loads(proposed)
        decisions.append(
            {
                "id": name,
                "action": call.name,
                "outcome": outcome,
                "arguments": arguments if isinstance(arguments, dict) else {},
                "step": step,
            }
        )
        if (right := read_label(entry.get("right"))) is not None:
            labels.append({"action": name, "correct": right, "source": f"{OF_FIELD}actions.right"})
    trace.grace = {**(trace.grace or {}), "decisions": decisions, ACTION_FIELD: labels}
    return trace
