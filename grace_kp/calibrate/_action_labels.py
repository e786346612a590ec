"""Labels of single actions: which statement about an action counts, and whether it may enter a promise.

Most are feedback on an action. A reviewer's edit and a rejection with a reason are read from the trace: the proposed call was wrong. A plain
approval is no label, because people approve wrong actions; nor does an edit say anything about its own arguments, which are not the agent's.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grace_kp.calibrate._labels import (
    UNFINISHED,
    Kin,
    Label,
    LabelledRun,
    accept_labels,
    checked_sources,
    is_standing,
    kin_of,
    objects_in,
    read_label,
    runs_of,
    unit_of,
    weigh_label,
)
from grace_kp.errors import InvalidRecord
from grace_kp.levels import waits
from grace_kp.record import NOT_CAPTURED
from grace_kp.store import ACTION_FIELD, CHECK, FIELD, IMPORT, PROGRAM, REVERSAL, named_decisions
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
    """Its position in `grace.decisions`, with the entries that cannot be read."""
    id: str
    """The id of its decision; its number in the run, from 1 on, in traces of earlier versions."""
    tool: str
    correct: bool | float
    """Whether the call that the agent proposed was right: True, False, or a number between 0 and 1."""
    source: str
    weight: float
    """Number of actions that this one represents: 1 / the probability that it would be labelled."""
    group: str
    """The task, else the session, else the objective of the outermost run. Actions of one belong together in cross-validation and in a promise."""
    is_audited: bool
    """Whether the label may enter a promise: its probability is known, and no check, reversal, program or imported file states it."""

    @property
    def fit_weight(self) -> float:
        """The weight in a fit, at most 20. A promise needs `weight`."""
        return min(self.weight, MAX_FIT_WEIGHT)


@dataclass(frozen=True, slots=True)
class ActionLabels:
    """Labelled actions. It unpacks to the traces, and for each the labels of its actions by their position in `grace.decisions`."""

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
    found, left_out, kin = list[LabelledAction](), Counter[str](), dict[str, Kin]()
    for run in runs_of(store, conditions, read_actions):
        if isinstance(run, str):
            left_out[run] += 1
            continue
        trace = run.trace if isinstance(run, LabelledRun) else run
        kin[trace.id] = kin_of(trace)
        for action in _actions_of(trace, wanted, volunteered=volunteered):
            if isinstance(action, str):
                left_out[action] += 1
            else:
                found.append(action)
    if any(each.around and each.around not in kin for each in kin.values()) and conditions:  # it does not meet them
        runs = runs_of(store, {}, read_actions)
        kin.update((run.id, kin_of(run)) for run in runs if isinstance(run, ReasoningTrace) and run.id not in kin)
    return ActionLabels([replace(each, group=unit_of(each.trace, kin.get)) for each in found], dict(left_out))


def read_actions(source: Any, *, name: str | None = None) -> Iterator[ReasoningTrace | InvalidRecord]:
    """Yield the runs of a file for `action_labels`; an `InvalidRecord` with place and reason replaces each that cannot be read.

    Args:
        source: a path, `-` for standard input, or an open file.
        name: name of the file in messages.
    """
    return map(_trace_of, read_runs(source, name=name, use_labels=False))


def _actions_of(
    trace: ReasoningTrace, sources: tuple[str, ...] | None, *, volunteered: bool
) -> Iterator[LabelledAction | str]:
    """Yield each labelled action of a run, without its group; for one without a label, the reason."""
    grace = trace.grace or {}
    if waits(grace.get("status")):
        yield UNFINISHED
        return
    # A program that runs again decides on a call again. Only the last entry states its outcome.
    decisions = {name: (place, decision) for place, name, decision in named_decisions(trace)}
    for name, (place, decision) in decisions.items():
        label = label_of_action(grace, decision, name, sources, volunteered=volunteered)
        if isinstance(label, str):
            yield label
            continue
        about = (trace, place, name, decision.action)
        yield LabelledAction(*about, label.correct, label.source, label.weight, "", label.is_audited)


def label_of_action(
    grace: Mapping[str, Any],
    decision: DecisionRecord,
    name: str,
    sources: tuple[str, ...] | None = None,
    *,
    volunteered: bool = True,
) -> Label | str:
    """Return the label of an action, by its decision and the name of that in labels, or why it has none; see `action_labels`."""
    stated = [entry for field in (FIELD, ACTION_FIELD) for entry in objects_in(grace, field) if "action" in entry]
    answer = _answer_to(decision)
    own = [] if answer is None else [{"correct": False, "source": answer[0], "by": answer[1], "action": name}]
    if grace.get("imported"):
        # Whoever wrote the file may have written both. Earlier versions kept its labels as they were.
        own, stated = [], [entry for entry in stated if str(entry.get("source")).startswith(IMPORT)]
    accepted, reason = accept_labels([*own, *stated], grace.get("user"), sources, name)
    if not accepted:
        return reason
    label = weigh_label(accepted, [decision.data], volunteered=volunteered)
    if isinstance(label, str):
        return label
    is_for_fits = label.source in {CHECK, REVERSAL} or label.source.startswith(IMPORT) or accepted[-1][1].get(PROGRAM)
    return replace(label, is_audited=False) if is_for_fits else label


def _answer_to(decision: DecisionRecord) -> tuple[str, str | None] | None:
    """Return source and author of the label that follows from a reviewer's answer; None if none does."""
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
    seen: set[tuple[int, int]] = set()
    for message in messages:
        begins.append(begins[-1] + len((message.get("tool_calls") if isinstance(message, dict) else None) or ()))
    for number, entry in enumerate(listed, 1):
        try:
            arguments = messages[entry["message"]]["tool_calls"][entry["call"]]["function"]["arguments"]
            call = run.trace.calls[begins[entry["message"]] + entry["call"]]
            if call.name != entry["name"] or entry["message"] < 0 or entry["call"] < 0:
                raise ValueError(f"message {entry['message']} has no such call")
            if (entry["message"], entry["call"]) in seen:
                raise ValueError(f"call {entry['call']} of message {entry['message']} is listed twice")
            seen.add((entry["message"], entry["call"]))
        except (KeyError, TypeError, IndexError, ValueError) as error:
            problem = f"is not an action of the run, with message, call and name: {error!r:.100}"
            return InvalidRecord(problem, file=run.file, line=run.line, path=f"{run.path}actions[{number - 1}]")
        with suppress(TypeError, ValueError):  # a model may write anything
            arguments = json.loads(arguments)
        stated = {"outcome": "executed" if call.status == "ok" else "failed", "step": call.tool_call}
        stated["arguments"] = arguments if isinstance(arguments, dict) else {}
        decisions.append({"id": f"action-{number}", "action": call.name, **stated})
        if (right := entry.get("right")) is not None:
            # What states no label stays as it is, and so counts as unusable.
            correct = right if (known := read_label(right)) is None else known
            labels.append({"action": f"action-{number}", "correct": correct, "source": RIGHT})
    run.trace.grace = {**(run.trace.grace or {}), "decisions": decisions, ACTION_FIELD: labels}
    return run.trace
