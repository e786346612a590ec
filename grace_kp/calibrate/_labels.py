"""Labelled runs from a store, a file or a list, with the weights that make them speak for all runs.

Files hold native traces with feedback, chat runs with a field that states a label, or results of benchmarks. They are read run by run, and
what cannot be read is reported with file and line.

Labels are rarely a fair sample: people look at the actions that they are asked about, and audit only a share of the others.
Weights, or a thinned sample, correct for that.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from grace_kp.calibrate._label_sources import (
    NO_LABEL,
    Label,
    checked_sources,
    group_of,
    label_of,
    needs_feedback,
)
from grace_kp.calibrate._samples import thinned, weights_of
from grace_kp.errors import InvalidRecord, brief, is_unit
from grace_kp.store import open_store
from grace_kp.trace import ReasoningTrace, is_native, read_runs, success_field, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.trace import FileRun


T = TypeVar("T")
FIELDS = {
    "reward": ("reward", "value"),
    "correct": ("correct", "value"),
    "success": ("success", "value"),
    "label": ("success", "correct", "reward", "label", "value"),
}
"""Fields of a run that state a label, in the order in which they are tried, each with the names inside it if it is an object."""
TAU2 = "reward_info.reward"
"""Where tau2-bench's results state it."""
FIELD = "field:"
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
    return LabelledRun(run.trace, Label(correct, f"{FIELD}{field}"), group_of(run.trace))


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
    if not is_unit(value):
        return None
    return float(value) if value else False


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
    from grace_kp.store import Store

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
        return replace(self, **lists)._leave_out(reason, keep.count(False))

    def _leave_out(self, reason: str, count: int) -> Labels:
        return replace(self, left_out=dict(Counter(self.left_out) + Counter({reason: count})))


def labels(
    store: Store | str | os.PathLike[str] | Iterable[Run] | object,
    sources: Iterable[str] | str | None = None,
    *,
    volunteered: bool = False,
    **conditions: Any,
) -> Labels:
    """Return the labelled runs of a store, a file or a list.

    A label is the newest feedback (`grace.feedback`) of an accepted source. One with the name of a person (`by`) counts before one without a
    name, and that before one of a program, whichever is newer. Feedback by the run's own `user` never counts. By default all sources are
    accepted but `approval` and `import:<file>`. People approve wrong actions, so an approval does not show that the run was right. An
    imported file may state any label, so name the file if you trust it.

    These sources are read from the trace itself, only if named, and only
    for runs without such feedback; from an imported trace only `imported`:

    - `approval`: False if a person cancelled an action, else True if a person let one run. Standing approvals and the run's own user
      do not count.
    - `outcome`: False if a gated action raised an exception, else True if one was executed. Success of the call, not of the task.
    - `own`: the success that the run stated for itself (`grace.outcome(success=…)`).
    - `scorer:<name>`: whether this scorer or suite passed the run, or its score where it has no threshold.
    - `imported`: what a label or a reward stated in the file that the run was imported from.

    A label weighs 1 / the probability that its run would be labelled: its own `probability`, else the recorded rate of the audit if the run was
    drawn for one or its source is `audit`, else 1. Runs in which a person was asked have probability 1. Where gates draw audits, a label of
    an action that ran unasked and was not drawn represents an unknown number of runs, and is left out; a label with
    `probability=1`, such as that of a test of every run, is not.

    Args:
        store: a store, a `Grace`, the URL or path of a store, the path of a file of runs, traces, or what
            `read_labelled` yields, which has its labels already.
        sources: the accepted sources; all feedback but approvals when None.
        volunteered: whether to keep labels of actions that were not drawn for the audit, with weight 1. Figures from them may be biased.
        conditions: which runs of a store, as in `store.query`: domain=, since=, tags=, …

    Returns:
        The runs, oldest first, with labels, weights, sources and groups, and the counts of what was left out.

    Raises:
        ValueError: a source or a condition cannot be used.
        StoreError: the store cannot be opened or read.
        InvalidRecord: the file cannot be opened. A run in it that cannot be read is left out and counted.
    """
    wanted = checked_sources(sources)
    return collect(
        store,
        conditions,
        partial(_gather_labels, sources=wanted, volunteered=volunteered),
        partial(read_labelled, sources=wanted, volunteered=volunteered),
        narrows=needs_feedback(wanted),
    )


def thin(labelled: Labels, seed: int = 0) -> Labels:
    """Return a random sample of the labelled runs in which every run was equally likely to be, so that no weights are needed.

    Each run is kept with the probability weight / largest weight, by a draw that does not depend on its label. If labels were collected
    independently with the probabilities that the weights state, the sample is an independent sample of all runs, and a guarantee that needs one,
    such as that of `risk_thresholds`, holds for it; `risk_thresholds(weights=…)` draws the same sample for the same seed. With audits of 5 % about 5 % of the runs that were asked about remain, and all
    audited ones.

    Args:
        labelled: the labelled runs.
        seed: seed of the draws. Choose it before looking at results, and keep it.
    """
    weights = weights_of(labelled.weights, len(labelled.labels))
    kept = labelled._only(thinned(weights, np.random.default_rng(seed)).tolist(), THINNED)
    return replace(kept, weights=[1.0] * len(kept.weights))


def collect(
    source: Any,
    conditions: Mapping[str, Any],
    gather: Callable[[Iterable[Any]], T],
    read: Callable[[str], Iterable[Any]],
    *,
    narrows: bool = False,
) -> T:
    """Return what `gather` makes of the runs of a store, a `Grace`, the URL or path of a store, the path of a file, which is `read`, or a list.

    `narrows` states that runs without feedback have no label, so that they need not be read. Only a store takes conditions.
    """
    if isinstance(source, str | os.PathLike):
        place = os.fspath(source)
        scheme, colon, _ = place.partition(":")
        is_url = colon and len(scheme) > 1 and not Path(place).exists()
        if not is_url and not _is_database(Path(place).expanduser()):
            if conditions:
                raise ValueError(f"conditions such as {min(conditions)} select runs of a store, and {place} is none")
            return gather(read(place))
        opened = open_store(place if is_url else f"sqlite:///{Path(place).expanduser().absolute()}", create=False)
        try:
            return collect(opened, conditions, gather, read, narrows=narrows)
        finally:
            opened.close()
    if not callable(getattr(source, "iterate", None)) and callable(getattr(source, "flush", None)):
        source = source.store  # of a Grace, which writes what waits
    if callable(getattr(source, "iterate", None)):
        has_feedback = callable(getattr(source, "put_feedback", None))
        if not narrows or not has_feedback or {"feedback", "feedback_source"} & conditions.keys():
            return gather(source.iterate(**conditions))
        found: Any = gather(source.iterate(**conditions, feedback=True))
        narrowed: T = found._leave_out(NO_LABEL, source.count(**conditions, feedback=False))
        return narrowed
    if not isinstance(source, Iterable) or isinstance(source, Mapping):
        raise TypeError(f"labels takes a store, a Grace, a URL, a path or traces (got {type(source).__name__})")
    if conditions:
        raise ValueError(f"conditions such as {min(conditions)} select runs of a store, not of a list or file")
    return gather(source)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # the reader of runs gives the reason


def _gather_labels(runs: Iterable[Any], sources: tuple[str, ...] | None, volunteered: bool) -> Labels:
    found = Labels()
    left_out: Counter[str] = Counter()
    for run in runs:
        if isinstance(run, InvalidRecord):
            left_out[UNREADABLE] += 1
            continue
        if isinstance(run, LabelledRun):
            trace, label, group = run.trace, run.label or run.reason, run.group
        else:
            trace = run if isinstance(run, ReasoningTrace) else ReasoningTrace.model_validate(run)
            label, group = label_of(trace, sources, volunteered=volunteered), group_of(trace)
        if not isinstance(label, Label):
            left_out[label] += 1
            continue
        row = (trace, label.correct, label.weight, label.source, group)
        for name, value in zip(_NAMES, row, strict=True):
            getattr(found, name).append(value)
    return replace(found, left_out=dict(left_out))
