"""The label of one trace: which of the statements about a run counts, and how probable it was that there would be one.

A label states whether a run was right. Most labels are feedback. The other sources are read from the trace only if they are named, because
none of them shows by itself that the run was right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.calibrate._facts import task_of
from grace_kp.errors import brief, is_unit
from grace_kp.gating import audit_probability
from grace_kp.levels import waits
from grace_kp.store import ACTION_FIELD, FIELD, IMPORT, PROGRAM, by_precedence, precedence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grace_kp.trace import DecisionRecord, ReasoningTrace


APPROVAL, AUDIT, IMPORTED, OUTCOME, OWN, SCORER = "approval", "audit", "imported", "outcome", "own", "scorer:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}", re.ASCII)

NO_LABEL = "no label"
OTHER_SOURCE = "label of another source"
OWN_USER = "label by the user of the run"
UNWEIGHTED = "audit without a rate"
UNFINISHED = "not finished"
UNUSABLE = "unusable label"
VOLUNTEERED = "not drawn for the audit"


@dataclass(frozen=True, slots=True)
class Label:
    """Whether a run was right, and where that is known from."""

    correct: bool | float
    """True, False, or a number between 0 and 1."""
    source: str
    weight: float = 1.0
    """Number of runs that this one represents: 1 / the probability that it would be labelled."""


def checked_sources(sources: Iterable[str] | str | None) -> tuple[str, ...] | None:
    """Return the sources that are asked for; None for all feedback but approvals."""
    if sources is None:
        return None
    wanted = (sources,) if isinstance(sources, str) else tuple(dict.fromkeys(sources))
    if not wanted:
        raise ValueError("sources must name at least one source; None accepts all feedback but approvals")
    for name in wanted:
        if not isinstance(name, str) or not (
            _NAME.fullmatch(name) or (name.startswith((SCORER, IMPORT)) and name not in {SCORER, IMPORT})
        ):
            raise ValueError(
                f"sources: {brief(name)} is not a source; sources are names of feedback such as 'user', 'test' or 'audit', "
                "and 'approval', 'outcome', 'own', 'imported', 'import:<file>' and 'scorer:<name>'"
            )
    return wanted


def needs_feedback(sources: Sequence[str] | None) -> bool:
    """Return whether only runs with feedback can have a label of these sources."""
    return sources is None or not any(name in _DERIVED or name.startswith(SCORER) for name in sources)


def label_of(trace: ReasoningTrace, sources: Sequence[str] | None = None, *, volunteered: bool = False) -> Label | str:
    """Return the label of a run, or why it has none.

    The newest feedback of an accepted source counts: of a named person, else without a name, else of a program, and never of the run's own
    user. Without any, it is the first of the named sources that the trace itself states.
    """
    grace = trace.grace or {}
    if waits(grace.get("status")):
        return UNFINISHED
    accepted, reason = accept_labels(objects_in(grace, FIELD), grace.get("user"), sources)
    if accepted:
        return weigh_label(accepted, objects_in(grace, "decisions"), volunteered=volunteered)
    for name in sources or ():
        if grace.get("imported") and name != IMPORTED:
            continue  # whoever wrote the file may have written approvals, outcomes and scores into it
        derive = partial(_read_score, name=name) if name.startswith(SCORER) else _DERIVED.get(name)
        if derive is not None and (derived := derive(trace)) is not None:
            return Label(derived, name)
    return reason


def accept_labels(
    entries: Iterable[Mapping[str, Any]], user: object, sources: Sequence[str] | None, action: str | None = None
) -> tuple[list[tuple[bool | float, Mapping[str, Any]]], str]:
    """Return the labels of accepted sources for a run or one of its actions, the one that counts last, and the reason if there is none."""
    entries = [entry for entry in entries if entry.get("action") == action]
    counting = by_precedence(entries, user, action)
    accepted = []
    reason = NO_LABEL if len(counting) == len(entries) else OWN_USER
    for entry in counting:
        source, correct = entry.get("source"), _number(entry.get("correct"))
        by_default = source != APPROVAL and not str(source).startswith(IMPORT)
        if not (by_default if sources is None else source in sources):
            reason = UNUSABLE if reason == UNUSABLE else OTHER_SOURCE
        elif correct is None or not isinstance(source, str):
            reason = UNUSABLE
        else:
            accepted.append((correct, entry))
    return accepted, reason


def weigh_label(
    accepted: Sequence[tuple[bool | float, Mapping[str, Any]]],
    decisions: Sequence[Mapping[str, Any]],
    *,
    volunteered: bool,
) -> Label | str:
    """Return the newest label, weighted by the probability that the run would be labelled.

    A draw for an audit would have led to a label whoever states the newest one, so its probability holds for a later label, too.
    """
    correct, newest = accepted[-1]
    audits = [
        entry for _, entry in accepted if entry["source"] == AUDIT and (entry is newest or not entry.get(PROGRAM))
    ]
    entry = newest if "probability" in newest or not audits else audits[-1]
    probability = entry.get("probability", 1.0)
    if "probability" not in entry:
        drawn = audit_probability(decisions)
        audits_of_gates = [decision.get("audit") for decision in decisions]
        was_selected = any(isinstance(audit, dict) and audit.get("selected") is True for audit in audits_of_gates)
        if entry["source"] == AUDIT or was_selected:
            probability = drawn
        elif drawn is not None and drawn < 1 and not volunteered:
            return VOLUNTEERED
    if not is_unit(probability) or not probability:
        return UNWEIGHTED
    return Label(correct, str(newest["source"]), 1.0 / probability)


def group_of(trace: ReasoningTrace) -> str:
    """Return the task of a run, with the source and the domain that tell equal task ids apart.

    Runs of one task are alike, so they belong into the same fold and the same draw of a bootstrap.
    """
    grace = trace.grace or {}
    source = grace.get("source")
    parts = [source.get("source") if isinstance(source, dict) else None, trace.metadata.task_domain]
    task = task_of({"grace": grace, "task": {"objective": trace.task.objective}})  # not a copy of all its steps
    return "/".join([part for part in parts if isinstance(part, str) and part != "default"] + [task])


def _number(value: object) -> bool | float | None:
    if isinstance(value, bool):
        return value
    if not is_unit(value):
        return None
    return bool(value) if value in (0, 1) else float(value)


def objects_in(grace: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list under `grace`, without anything else that it holds."""
    part = grace.get(name)
    return [entry for entry in part if isinstance(entry, dict)] if isinstance(part, list) else []


def _read_score(trace: ReasoningTrace, name: str) -> bool | float | None:
    """Return whether a scorer or suite passed the run; its score for one without a threshold."""
    for score in trace.scores:
        if score.name == name.removeprefix(SCORER) and score.score is not None:
            return score.passed if score.passed is not None else _number(score.score)
    return None


def _read_outcomes(trace: ReasoningTrace) -> bool | None:
    """Return whether all gated actions that were begun have ended without an exception."""
    outcomes = {decision.outcome for decision in trace.decisions}
    if "failed" in outcomes:
        return False
    return True if outcomes & {"executed", "executed_modified"} else None


def _read_approvals(trace: ReasoningTrace) -> bool | None:
    """Return whether people approved all actions that they were asked about; None without an answer.

    Answers of the run's own user do not count, nor do standing approvals, whose authors have not seen the action.
    """
    answers = {
        str(response.action)
        for decision in trace.decisions
        if (response := decision.response) is not None
        and not (response.timeout_reached or is_standing(decision))
        and precedence({"by": response.reviewer}, trace.user)
    }
    if "cancel" in answers:
        return False
    return True if "proceed" in answers else None


def is_standing(decision: DecisionRecord) -> bool:
    """Return whether a standing approval consented to an action, and no person saw it."""
    approval = decision.data.get("approval")
    return isinstance(approval, dict) and bool(approval.get("standing"))


def _read_own(trace: ReasoningTrace) -> bool | None:
    own = (trace.grace or {}).get("own_success")
    return own if isinstance(own, bool) else None


_DERIVED: Mapping[str, Callable[[ReasoningTrace], bool | float | None]] = {
    APPROVAL: _read_approvals,
    IMPORTED: lambda it: it.metadata.success if (it.grace or {}).get("success_from") in {"label", "reward"} else None,
    OUTCOME: _read_outcomes,
    OWN: _read_own,
}


_END = object()
T = TypeVar("T")


def label_in(grace: Mapping[str, Any], action: str | None = None) -> float | None:
    """Return the label of a run, or of one of its actions, that counts, 1 for right and 0 for wrong; approvals and labels of imported files are none. None without a label.

    It is the label that `cal.labels` takes with `volunteered=True`, without its weight.
    """
    entries = objects_in(grace, FIELD if action is None else ACTION_FIELD)
    accepted, _ = accept_labels(entries, grace.get("user"), None, action)
    return float(accepted[-1][0]) if accepted else None


def aligned_labels(traces: Iterable[T], labels: Iterable[object] | None) -> Iterator[tuple[T, float | None]]:
    """Yield each trace with its label; without labels, with None."""
    if labels is None:
        yield from ((trace, None) for trace in traces)
        return
    pairs: Iterator[tuple[Any, Any]] = zip_longest(traces, labels, fillvalue=_END)
    for count, (trace, value) in enumerate(pairs, 1):
        if trace is _END or value is _END:
            fewer, more = ("traces", "labels") if trace is _END else ("labels", "traces")
            raise ValueError(f"there are {count - 1:,} {fewer} and more {more}; pass None for a run without a label")
        # Booleans of numpy are not `bool`.
        value = value.item() if hasattr(value, "item") else value
        label = _number(value)
        if value is not None and label is None:
            raise ValueError(f"label {count:,} must be True, False, None or a number from 0 to 1 (got {brief(value)})")
        yield trace, None if label is None else float(label)
