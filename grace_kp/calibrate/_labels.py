"""Labelled runs from a store, a file or a list: which statement about a run counts, and the weights that make the labels speak for all runs.

A label states whether a run was right. Most labels are feedback. The other sources are read from the trace only if they are named, because
none of them shows by itself that the run was right. Labels are rarely a fair sample: people look at the actions that they are asked about,
and audit only a share of the others. Weights, or a thinned sample, correct for that.

Files hold native traces with feedback, chat runs with a field that states a label, or results of benchmarks. They are read run by run, and
what cannot be read is reported with file and line.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from grace_kp.calibrate._facts import list_in, mapping_in, stated_task, task_of
from grace_kp.calibrate._samples import thinned, weights_of
from grace_kp.errors import InvalidRecord, brief, is_unit
from grace_kp.gating import audit_probability
from grace_kp.levels import waits
from grace_kp.store import FIELD, IMPORT, PROGRAM, by_precedence, open_store, precedence
from grace_kp.trace import ReasoningTrace, is_native, read_runs, success_field, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.store import Store
    from grace_kp.trace import DecisionRecord, FileRun

T = TypeVar("T")
Related: TypeAlias = "ReasoningTrace | Mapping[str, Any] | Kin"
APPROVAL, AUDIT, IMPORTED, OUTCOME, OWN, SCORER = "approval", "audit", "imported", "outcome", "own", "scorer:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}", re.ASCII)

NO_LABEL = "no label"
OTHER_SOURCE = "label of another source"
OWN_USER = "label by the user of the run"
UNWEIGHTED = "audit without a rate"
UNFINISHED = "not finished"
_UNASKED = ("silent", "notify")
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
    is_audited: bool = True
    """Of an action, whether the label may enter a promise."""


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

    A draw for an audit would have led to a label whoever states it, so its probability holds for a later one, too.
    """
    correct, newest = accepted[-1]
    audits = [
        entry for _, entry in accepted if entry["source"] == AUDIT and (entry is newest or not entry.get(PROGRAM))
    ]
    entry = newest if "probability" in newest or not audits else audits[-1]
    probability, is_audited = entry.get("probability", 1.0), True
    if "probability" not in entry:
        drawn = audit_probability(decisions)
        audits_of_gates = [decision.get("audit") for decision in decisions]
        was_selected = any(isinstance(audit, dict) and audit.get("selected") is True for audit in audits_of_gates)
        if entry["source"] == AUDIT or was_selected:
            probability = drawn
        elif drawn is not None and drawn < 1 and not volunteered:
            return VOLUNTEERED
        else:
            # An action that ran unasked and was not drawn represents an unknown number of others.
            runs_unasked = all(decision.get("level") in _UNASKED for decision in decisions)
            is_audited = drawn == 1 or (drawn is None and not runs_unasked)
    if not is_unit(probability) or not probability:
        return UNWEIGHTED
    return Label(correct, str(newest["source"]), 1.0 / probability, is_audited)


def group_of(trace: ReasoningTrace | Mapping[str, Any]) -> str:
    """Return the task of a run, with the source and the domain that tell equal task ids apart.

    Runs of one task are alike, so they belong into the same fold and the same draw of a bootstrap.
    """
    document = _head_of(trace)
    source, metadata = mapping_in(mapping_in(document, "grace"), "source"), mapping_in(document, "metadata")
    parts = [source.get("source"), metadata.get("task_domain")]
    return "/".join([part for part in parts if isinstance(part, str) and part != "default"] + [task_of(document)])


def _head_of(trace: ReasoningTrace | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dict form of a run without its steps, which would be copied."""
    if isinstance(trace, Mapping):
        return trace
    metadata, task = {"task_domain": trace.metadata.task_domain}, {"objective": trace.task.objective}
    return {"id": trace.id, "grace": trace.grace or {}, "metadata": metadata, "task": task}


class Kin(NamedTuple):
    """What the actions of a run may share with those of other runs; empty parts are unknown."""

    around: str
    """The id of the run around it."""
    shared: str
    """Its task id, else its session."""
    own: str
    """Its objective, else its id."""


def kin_of(run: Related, *, by_objective: bool = True) -> Kin:
    """Return what the actions of a run may share with others."""
    if isinstance(run, Kin):
        return run
    document = _head_of(run)
    grace = mapping_in(document, "grace")
    around, session, name = mapping_in(grace, "parent").get("trace_id"), grace.get("session"), document.get("id")
    task, session = stated_task(document), f"session={session}" if isinstance(session, str) and session else ""
    has_objective = by_objective and bool(mapping_in(document, "task").get("objective"))
    own = group_of(document) if has_objective else str(name or "")
    return Kin(around if isinstance(around, str) else "", group_of(document) if task else session, own)


def unit_of(run: Related, find: Callable[[str], Related | None], *, by_objective: bool = True) -> str:
    """Return the unit in which actions are alike, which a promise, its monitor and cross-validation count once.

    It is that of the outermost run: its task id, else its session, else its objective or id. So a run and all runs nested in it are one.

    Args:
        run: a trace, or what `kin_of` returned for it.
        find: returns that of the run with an id; None if it is not known.
        by_objective: False for the id instead of the objective.
    """
    kin, seen = kin_of(run, by_objective=by_objective), {""}
    while kin.around not in seen:
        seen.add(kin.around)
        outer = find(kin.around)
        if outer is None:
            return kin.shared or kin.around
        kin = kin_of(outer, by_objective=by_objective)
    return kin.shared or kin.own


def _number(value: object) -> bool | float | None:
    if isinstance(value, bool):
        return value
    if not is_unit(value):
        return None
    return bool(value) if value in (0, 1) else float(value)


def objects_in(grace: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list under `grace`, without anything else that it holds."""
    return [entry for entry in list_in(grace, name) if isinstance(entry, dict)]


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


_DERIVED: Mapping[str, Callable[[ReasoningTrace], bool | float | None]] = {
    APPROVAL: _read_approvals,
    IMPORTED: lambda it: it.metadata.success if (it.grace or {}).get("success_from") in {"label", "reward"} else None,
    OUTCOME: _read_outcomes,
    OWN: lambda it: own if isinstance(own := (it.grace or {}).get("own_success"), bool) else None,
}


_END = object()


def label_in(grace: Mapping[str, Any]) -> float | None:
    """Return the label of a run that counts, 1 for right and 0 for wrong; approvals and labels of imported files are none. None without a label.

    It is the label that `cal.labels` takes with `volunteered=True`, without its weight.
    """
    accepted, _ = accept_labels(objects_in(grace, FIELD), grace.get("user"), None)
    return float(accepted[-1][0]) if accepted else None


def aligned_labels(traces: Iterable[T], labels: Iterable[object] | None) -> Iterator[tuple[T, float | None]]:
    """Yield each trace with its label; without labels, with None."""
    if labels is None:
        yield from ((trace, None) for trace in traces)
        return
    pairs: Iterator[tuple[Any, Any]] = itertools.zip_longest(traces, labels, fillvalue=_END)
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


FIELDS = {
    "reward": ("reward", "value"),
    "correct": ("correct", "value"),
    "success": ("success", "value"),
    "label": ("success", "correct", "reward", "label", "value"),
}
"""Fields of a run that state a label, in the order in which they are tried, each with the names inside it if it is an object."""
TAU2 = "reward_info.reward"
"""Where tau2-bench's results state it."""
FROM_FIELD = "field:"
"""Beginning of the source of a label that a field states; the field's path follows."""
_SOLVED = 1 - 1e-6
"""Rewards from here on count as 1, as in tau-bench."""
_MISSING = object()


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run of a file, with its label if it has any."""

    trace: ReasoningTrace
    label: Label | None
    """Whether the run was right, the source and the weight; None if the file does not say."""
    group: str
    """The task of the run, with its source and domain."""
    reason: str = ""
    """Why the run has no label; empty with one."""


def read_labelled(
    source: str | os.PathLike[str] | IO[bytes] | IO[str],
    *,
    label: str | None = None,
    sources: Iterable[str] | str | None = None,
    volunteered: bool = False,
    name: str | None = None,
    domain: str | None = None,
    max_document_mb: float | None = None,
) -> Iterator[LabelledRun | InvalidRecord]:
    """Yield the runs of a file in order; an `InvalidRecord` with place and reason replaces each that cannot be read.

    The file holds JSON lines or JSON, plain or gzip, as `read_traces` reads it: native traces with `grace.feedback`, or chat runs. tau-bench's
    and tau2-bench's result files work as they are. No step of a trace depends on its label.

    The label is, unless `label` names a field, the feedback that counts (see `labels`), or else the first of the fields `reward`, `correct`,
    `success` and `label` that is not null, then `reward_info.reward`. Such a field is a truth value, a number from 0 to 1, a word such as
    "passed" or "wrong", or an object with such a value (`label.success`, for example). Other names that state a success, such as
    `resolved`, are recognised for chat runs.

    Args:
        source: a path, `-` for standard input, or an open file.
        label: the field that states the label: its name, or a path such as `label.success` or `scores.0.value`.
        sources: the accepted sources, as in `labels`; if named, no field of the document counts.
        volunteered: see `labels`.
        name: name of the file in messages.
        domain: task domain for runs without one.
        max_document_mb: see `read_traces`.

    Raises:
        InvalidRecord: the file cannot be opened.
        ValueError: `label` or `sources` cannot be used.
    """
    if label is not None and (not isinstance(label, str) or not label):
        raise ValueError(f"label must name a field, such as 'reward' or 'label.success' (got {brief(label)})")
    if label is not None and sources is not None:
        raise ValueError("label and sources exclude each other: the label is either a field of the file or a source")
    wanted = checked_sources(sources)
    runs = read_runs(source, name=name, domain=domain, max_document_mb=max_document_mb, use_labels=False)
    file = name if name is not None else str(getattr(source, "name", source))
    return (
        run if isinstance(run, InvalidRecord) else _label_run(run, label, wanted, volunteered, file) for run in runs
    )


def _label_run(
    run: FileRun, field: str | None, sources: tuple[str, ...] | None, volunteered: bool, file: str
) -> LabelledRun | InvalidRecord:
    if field is None:
        found = label_of(run.trace, sources, volunteered=volunteered)
        if isinstance(found, Label):
            return LabelledRun(run.trace, found, group_of(run.trace))
        field = usual_field(run.document) if found == NO_LABEL and sources is None else None
        if field is None:
            return LabelledRun(run.trace, None, group_of(run.trace), found)
    value = _at(run.document, field)
    if value is _MISSING or value is None:
        return LabelledRun(run.trace, None, group_of(run.trace), f"{NO_LABEL} in the field {field}")
    correct = read_label(value)
    if correct is None:
        problem = f"is not a label: it must be true, false, a number from 0 to 1, or a word such as 'passed' (got {brief(value)})"
        return InvalidRecord(problem, file=file, line=run.line, path=".".join(filter(None, (run.path, field))))
    return LabelledRun(run.trace, Label(correct, f"{FROM_FIELD}{field}"), group_of(run.trace))


def read_label(value: object) -> bool | float | None:
    """Return what a value states as a label: True, False, or a number between 0 and 1; None if it is none.

    Words and numbers may be strings. Rewards within a millionth of 1 are 1, because of rounding.
    """
    stated = verdict(value)
    if stated is not None:
        return stated
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, bool) and isinstance(value, int | float) and _SOLVED <= value <= 2 - _SOLVED:
        return True
    return _number(value)


def usual_field(document: object) -> str | None:
    """Return the path of the field with a usual name that states a label in a document; None without one."""
    if not isinstance(document, dict):
        return None
    for usual, names in FIELDS.items():
        value = document.get(usual)
        if isinstance(value, dict):
            inner = next((name for name in names if value.get(name) is not None), None)
            if inner is not None:
                return f"{usual}.{inner}"
        elif value is not None:
            return usual
    if _at(document, TAU2) not in (_MISSING, None):
        return TAU2
    # A native trace states under `metadata` the success that the run reported itself.
    return None if is_native(document) else success_field(document)


def _at(document: object, path: str) -> Any:
    """Return the value at a path of names and indices joined by dots; a name may itself hold dots."""
    if isinstance(document, dict):
        if path in document:
            return document[path]
        for end in (place for place, character in enumerate(path) if character == "."):
            if path[:end] in document:
                value = _at(document[path[:end]], path[end + 1 :])
                if value is not _MISSING:
                    return value
        return _MISSING
    if isinstance(document, list):
        first, _, rest = path.partition(".")
        if first.isdecimal() and len(first) < 10 and int(first) < len(document):
            value = document[int(first)]
            return _at(value, rest) if rest else value
    return _MISSING


if TYPE_CHECKING:
    Run: TypeAlias = ReasoningTrace | Mapping[str, Any] | LabelledRun | InvalidRecord

UNREADABLE = "unreadable"
FRACTIONAL = "fractional label"
THINNED = "thinned"
_SQLITE = b"SQLite format 3\0"
_NAMES = ("traces", "labels", "weights", "sources", "groups")
"""The lists of `Labels`, which have one item per run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Labelled runs. It unpacks to two: `traces, labels = cal.labels(store)`."""

    traces: list[ReasoningTrace] = field(default_factory=list)
    labels: list[bool | float] = field(default_factory=list)
    """Whether each run was right: True, False, or a number between 0 and 1."""
    weights: list[float] = field(default_factory=list)
    """Number of runs that each represents: 1 / the probability that it would be labelled."""
    sources: list[str] = field(default_factory=list)
    """Where each label is from."""
    groups: list[str] = field(default_factory=list)
    """The task of each run. Runs of one task belong together in cross-validation."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of runs without a usable label, by reason."""

    def __iter__(self) -> Iterator[Any]:
        yield self.traces
        yield self.labels

    def binary(self) -> Labels:
        """Return the runs that are plainly right or wrong. Guarantees count errors, so they need these."""
        return self._only([isinstance(label, bool) for label in self.labels], FRACTIONAL)

    def _only(self, keep: list[bool], reason: str) -> Labels:
        lists: dict[str, Any] = {name: list(itertools.compress(getattr(self, name), keep)) for name in _NAMES}
        return replace(self, **lists, left_out=dict(Counter(self.left_out) + Counter({reason: keep.count(False)})))


def labels(
    store: Store | str | os.PathLike[str] | Iterable[Run] | object,
    sources: Iterable[str] | str | None = None,
    *,
    volunteered: bool = False,
    **conditions: Any,
) -> Labels:
    """Return the labelled runs of a store, a file or a list, oldest first, and the counts of what was left out.

    A label is the newest feedback (`grace.feedback`) of an accepted source. One with the name of a person (`by`) counts before one without a
    name, and that before one of a program, whichever is newer. Feedback by the run's own `user` never counts. By default all sources are
    accepted but `approval` and `import:<file>`. People approve wrong actions, so an approval does not show that the run was right. An
    imported file may state any label, so name the file if you trust it.

    These sources are read from the trace itself, only if named and without such feedback; from an imported trace only `imported`:

    - `approval`: False if a person cancelled an action, else True if a person let one run. Standing approvals and the run's own user
      do not count.
    - `outcome`: False if a gated action raised an exception, else True if one was executed. Success of the call, not of the task.
    - `own`: the success that the run stated for itself (`grace.outcome(success=…)`).
    - `scorer:<name>`: whether this scorer or suite passed the run, or its score where it has no threshold.
    - `imported`: what a label or a reward stated in the file that the run was imported from.

    A label weighs 1 / the probability that its run would be labelled: its own `probability`, else the recorded rate of the audit if the run was
    drawn for one or its source is `audit`, else 1. Where gates draw audits, a label of an action that ran unasked and was not drawn represents
    an unknown number of runs, and is left out; a label with `probability=1`, such as that of a test of every run, is not.

    Args:
        store: a store, a `Grace`, the URL or path of a store, the path of a file of runs, traces, or what
            `read_labelled` yields, which has its labels already.
        sources: the accepted sources; all feedback but approvals when None.
        volunteered: whether to keep labels of actions that were not drawn for the audit, with weight 1. Figures from them may be biased.
        conditions: which runs of a store, as in `store.query`: domain=, since=, tags=, …

    Raises:
        ValueError: a source or a condition cannot be used.
        StoreError: the store cannot be opened or read.
        InvalidRecord: the file cannot be opened. A run in it that cannot be read is left out and counted.
    """
    wanted = checked_sources(sources)
    read = partial(read_labelled, sources=wanted, volunteered=volunteered)
    found, left_out = Labels(), Counter[str]()
    needs_feedback = not any(name in _DERIVED or name.startswith(SCORER) for name in wanted or ())
    for run in runs_of(store, conditions, read, narrows=needs_feedback):
        if isinstance(run, LabelledRun):
            trace, label, group = run.trace, run.label or run.reason, run.group
        elif isinstance(run, ReasoningTrace):
            trace, label, group = run, label_of(run, wanted, volunteered=volunteered), group_of(run)
        else:
            label = run
        if not isinstance(label, Label):
            left_out[label] += 1
            continue
        row = (trace, label.correct, label.weight, label.source, group)
        for name, value in zip(_NAMES, row, strict=True):
            getattr(found, name).append(value)
    return replace(found, left_out=dict(left_out))


def thin(labelled: Labels, seed: int = 0) -> Labels:
    """Return a random sample of the labelled runs in which every run was equally likely to be, so that no weights are needed.

    Each run is kept with the probability weight / largest weight, by a draw that does not depend on its label. For labels that were collected
    independently with the probabilities that the weights state, a guarantee that needs an independent sample of all runs, such as that of
    `risk_thresholds`, then holds; `risk_thresholds(weights=…)` draws the same sample for the same `seed`. Choose the seed before looking at
    results, and keep it.
    """
    weights = weights_of(labelled.weights, len(labelled.labels))
    kept = labelled._only(thinned(weights, np.random.default_rng(seed)).tolist(), THINNED)
    return replace(kept, weights=[1.0] * len(kept.weights))


def runs_of(
    source: Any, conditions: Mapping[str, Any], read: Callable[[str], Iterable[Any]], *, narrows: bool = False
) -> Iterator[ReasoningTrace | LabelledRun | str]:
    """Yield the runs of a store, a `Grace`, the URL or path of a store, the path of a file, which is `read`, or a list; for one that cannot be
    used, the reason.

    `narrows` states that runs without feedback have no label, so that they need not be read. Only a store takes conditions.
    """
    if isinstance(source, str | os.PathLike):
        place = os.fspath(source)
        scheme, colon, _ = place.partition(":")
        is_url = colon and len(scheme) > 1 and not Path(place).exists()
        if is_url or _is_database(Path(place).expanduser()):
            opened = open_store(place if is_url else f"sqlite:///{Path(place).expanduser().absolute()}", create=False)
            try:
                yield from runs_of(opened, conditions, read, narrows=narrows)
            finally:
                opened.close()
            return
        source = read(place)
    elif not callable(getattr(source, "iterate", None)) and callable(getattr(source, "flush", None)):
        source = source.store  # of a Grace, which writes what waits
    if callable(getattr(source, "iterate", None)):
        if (
            narrows
            and callable(getattr(source, "put_feedback", None))
            and not {"feedback", "feedback_source"} & conditions.keys()
        ):
            yield from itertools.repeat(NO_LABEL, source.count(**conditions, feedback=False))
            conditions = {**conditions, "feedback": True}
        source = source.iterate(**conditions)
    elif not isinstance(source, Iterable) or isinstance(source, Mapping):
        raise TypeError(f"labels takes a store, a Grace, a URL, a path or traces (got {type(source).__name__})")
    elif conditions:
        raise ValueError(f"conditions such as {min(conditions)} select runs of a store, not of a list or file")
    for run in source:
        if isinstance(run, InvalidRecord):
            yield UNREADABLE
        else:
            yield run if isinstance(run, ReasoningTrace | LabelledRun) else ReasoningTrace.model_validate(run)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # the reader of runs gives the reason
