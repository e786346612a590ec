"""Labels of single actions: which statement about an action counts, and whether it may enter a promise.

Most are feedback on an action. A reviewer's edit and a rejection with a reason are read from the trace: the proposed call was wrong. A plain
approval is no label, because people approve wrong actions; nor does an edit say anything about its own arguments, which are not the agent's.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.calibrate._labels import (
    UNFINISHED,
    Label,
    LabelledRun,
    accept_labels,
    checked_sources,
    group_of,
    is_standing,
    objects_in,
    read_label,
    runs_of,
    weigh_label,
)
from grace_kp.errors import InvalidRecord
from grace_kp.levels import waits
from grace_kp.record import NOT_CAPTURED
from grace_kp.store import ACTION_FIELD, CHECK, FIELD, IMPORT, PROGRAM, REVERSAL, action_name
from grace_kp.trace import ReasoningTrace, read_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from grace_kp.trace import DecisionRecord, FileRun

EDIT, REJECTION, RIGHT = "edit", "rejection", "field:actions.right"
"""Sources that need no feedback."""
MAX_FIT_WEIGHT = 20.0
"""A few actions that represent many more would decide a fit alone."""


@dataclass(frozen=True, slots=True)
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
    """Whether the label may enter a promise: its probability is known, and no check, reversal, program or imported file states it."""

    @property
    def fit_weight(self) -> float:
        """The weight in a fit, at most 20. A promise needs `weight`."""
        return min(self.weight, MAX_FIT_WEIGHT)


@dataclass(frozen=True, slots=True)
class ActionLabels:
    """Labelled actions. It unpacks to the traces, and for each the labels of its actions by their place in `trace.decisions`."""

    actions: list[LabelledAction] = field(default_factory=list)
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of actions without a usable label, and of runs that have not ended or cannot be read, by reason."""

    @property
    def labels(self) -> list[bool | float]:
        """Whether each action was right."""
        return [action.correct for action in self.actions]

    @property
    def groups(self) -> list[str]:
        """The task of each action."""
        return [action.group for action in self.actions]

    def __iter__(self) -> Iterator[Any]:
        found: dict[int, tuple[ReasoningTrace, dict[int, bool | float]]] = {}
        for action in self.actions:
            found.setdefault(id(action.trace), (action.trace, {}))[1][action.position] = action.correct
        yield [trace for trace, _ in found.values()]
        yield [labels for _, labels in found.values()]


def action_labels(
    store: object, sources: Iterable[str] | str | None = None, *, volunteered: bool = False, **conditions: Any
) -> ActionLabels:
    """Return the labelled actions of a store, a file or a list, each with the newest feedback on it, as `labels` chooses that of a run.

    These sources need no feedback, and count like a label by the reviewer:

    - `edit`: a reviewer changed the arguments, so the proposed call was wrong.
    - `rejection`: a reviewer refused the call and gave a reason.
    - `field:actions.right`: a chat run in a file lists its `actions` as `{message, call, name, right}`: the index of the message, the index
      of the tool call in it, and whether it was right (1, 0, or null where that is not known).

    `check` is the result of `@grace.gate(check=…)`, and `reversal` an action that undid this one. They are for fitting only, as are labels by
    programs. The run's own user labels nothing, also as a reviewer.

    Args:
        store: a store, a `Grace`, the URL or path of a store, the path of a file of runs, or traces.
        sources: the accepted sources; all but `approval` and those of imported files when None.
        volunteered: whether to keep labels of actions that were not drawn for the audit, for fitting, with weight 1.
        conditions: which runs of a store, as in `store.query`.

    Raises:
        ValueError: a source or a condition cannot be used.
        StoreError: the store cannot be opened or read.
        InvalidRecord: the file cannot be opened. A run in it that cannot be read is left out and counted.
    """
    wanted = checked_sources(sources)
    found, left_out = list[LabelledAction](), Counter[str]()
    for run in runs_of(store, conditions, read_actions):
        for action in [run] if isinstance(run, str) else _actions_of(run, wanted, volunteered=volunteered):
            if isinstance(action, str):
                left_out[action] += 1
            else:
                found.append(action)
    return ActionLabels(found, dict(left_out))


def read_actions(source: Any, *, name: str | None = None) -> Iterator[ReasoningTrace | InvalidRecord]:
    """Yield the runs of a file for `action_labels`; an `InvalidRecord` with place and reason replaces each that cannot be read.

    Args:
        source: a path, `-` for standard input, or an open file.
        name: name of the file in messages.
    """
    return map(_trace_of, read_runs(source, name=name, use_labels=False))


def _actions_of(
    run: ReasoningTrace | LabelledRun, sources: tuple[str, ...] | None, *, volunteered: bool
) -> Iterator[LabelledAction | str]:
    """Yield each labelled action of a run; for one without a label, the reason."""
    trace = run.trace if isinstance(run, LabelledRun) else run
    grace, group = trace.grace or {}, group_of(trace)
    if waits(grace.get("status")):
        yield UNFINISHED
        return
    stated = [entry for name in (ACTION_FIELD, FIELD) for entry in objects_in(grace, name) if "action" in entry]
    # A program that runs again decides on a call again. Only the last entry states its outcome.
    decisions = {action_name(decision.data, place): (place, decision) for place, decision in enumerate(trace.decisions)}
    for name, (place, decision) in decisions.items():
        answer = None if grace.get("imported") else _answer_to(decision)
        own = [] if answer is None else [{"correct": False, "source": answer[0], "by": answer[1], "action": name}]
        accepted, reason = accept_labels([*own, *stated], grace.get("user"), sources, name)
        audited = weigh_label(accepted, [decision.data], volunteered=False) if accepted else reason
        label = weigh_label(accepted, [decision.data], volunteered=True) if accepted and volunteered else audited
        if not isinstance(label, Label):
            yield label
            continue
        source, stated_by = label.source, accepted[-1][1]
        is_for_fits = source in {CHECK, REVERSAL} or source.startswith(IMPORT) or bool(stated_by.get(PROGRAM))
        is_audited = isinstance(audited, Label) and not is_for_fits
        about = (trace, place, name, decision.action)
        yield LabelledAction(*about, label.correct, source, label.weight, group, is_audited)


def _answer_to(decision: DecisionRecord) -> tuple[str, str | None] | None:
    """Return the source and the author of the label that a reviewer's answer is; None where it is none."""
    response = decision.response
    if response is None or response.timeout_reached or is_standing(decision):
        return None
    reason, changes = (response.user_input or "").strip(), response.modified or {}
    if response.action == "cancel" and reason not in {"", NOT_CAPTURED}:
        return REJECTION, response.reviewer
    # A form may hand in the shown values. The digests tell after an execution, also where values are hidden.
    ran = decision.was_executed or decision.outcome == "failed"
    is_changed = any(decision.arguments.get(name) != value for name, value in changes.items())
    if response.action == "modify" and (decision.executed_digest not in {None, decision.digest} if ran else is_changed):
        return EDIT, response.reviewer
    return None


def _trace_of(run: FileRun | InvalidRecord) -> ReasoningTrace | InvalidRecord:
    """Return a run of a file; a chat that lists its actions, with a decision and a label for each."""
    if isinstance(run, InvalidRecord):
        return run
    document = run.document if isinstance(run.document, dict) else {}
    listed, messages = document.get("actions"), document.get("messages")
    if not isinstance(listed, list) or not isinstance(messages, list) or run.trace.decisions:
        return run.trace
    decisions, labels, begins = list[dict[str, Any]](), list[dict[str, Any]](), [0]
    for message in messages:
        begins.append(begins[-1] + len((message.get("tool_calls") if isinstance(message, dict) else None) or ()))
    for number, entry in enumerate(listed, 1):
        try:
            arguments = messages[entry["message"]]["tool_calls"][entry["call"]]["function"]["arguments"]
            call = run.trace.calls[begins[entry["message"]] + entry["call"]]
            if call.name != entry["name"] or entry["message"] < 0 or entry["call"] < 0:
                raise ValueError(f"message {entry['message']} has no such call")
        except (KeyError, TypeError, IndexError, ValueError) as error:
            problem = f"is not an action of the run, with message, call and name: {error!r:.100}"
            return InvalidRecord(problem, file=run.file, line=run.line, path=f"{run.path}actions[{number - 1}]")
        with suppress(TypeError, ValueError):  # a model may write anything
            arguments = json.loads(arguments)
        stated = {"outcome": "executed" if call.status == "ok" else "failed", "step": call.tool_call}
        stated["parallel"] = begins[entry["message"] + 1] - begins[entry["message"]]
        stated["arguments"] = arguments if isinstance(arguments, dict) else {}
        decisions.append({"id": f"action-{number}", "action": call.name, **stated})
        if (right := read_label(entry.get("right"))) is not None:
            labels.append({"action": f"action-{number}", "correct": right, "source": RIGHT})
    run.trace.grace = {**(run.trace.grace or {}), "decisions": decisions, ACTION_FIELD: labels}
    return run.trace
