"""Labelled runs from a store, a file or a list, with the weights that make them speak for all runs.

Labels are rarely a fair sample: actions that a person was asked about are looked at, and of those that ran unasked only a share is audited.
Weights, or a thinned sample, correct for that.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from grace_kp.calibrate._label_files import LabelledRun, read_labelled
from grace_kp.calibrate._label_sources import (
    NO_LABEL,
    Label,
    checked_sources,
    group_of,
    label_of,
    needs_feedback,
)
from grace_kp.calibrate._samples import thinned, weights_of
from grace_kp.errors import InvalidRecord
from grace_kp.store import open_store
from grace_kp.trace import ReasoningTrace

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
    """How many runs each stands for: 1 / the probability that it would be labelled."""
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
        lists = {name: list(itertools.compress(getattr(self, name), keep)) for name in _NAMES}
        left_out = Counter(self.left_out)
        left_out[reason] += len(keep) - sum(keep)
        return replace(self, **lists, left_out=dict(+left_out))


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
    an action that ran unasked and was not drawn stands for an unknown number of runs, and is left out; a label with
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
    if isinstance(store, str | os.PathLike):
        return _at_place(os.fspath(store), wanted, volunteered, conditions)
    opened: Any = store
    if not callable(getattr(opened, "iterate", None)) and callable(getattr(opened, "flush", None)):
        opened = opened.store  # of a Grace, which writes what waits
    if callable(getattr(opened, "iterate", None)):
        return _in_store(opened, wanted, volunteered, conditions)
    if not isinstance(store, Iterable) or isinstance(store, Mapping):
        raise TypeError(f"labels takes a store, a Grace, a URL, a path or traces (got {type(store).__name__})")
    if conditions:
        raise ValueError(f"conditions such as {min(conditions)} select runs of a store, not of a list or file")
    return _gathered(store, wanted, volunteered)


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


def _at_place(place: str, sources: tuple[str, ...] | None, volunteered: bool, conditions: Mapping[str, Any]) -> Labels:
    scheme, colon, _ = place.partition(":")
    is_url = colon and len(scheme) > 1 and not Path(place).exists()
    if not is_url and not _is_database(Path(place).expanduser()):
        if conditions:
            raise ValueError(f"conditions such as {min(conditions)} select runs of a store, and {place} is none")
        return _gathered(read_labelled(place, sources=sources, volunteered=volunteered), sources, volunteered)
    store = open_store(place if is_url else f"sqlite:///{Path(place).expanduser().absolute()}", create=False)
    try:
        return _in_store(store, sources, volunteered, conditions)
    finally:
        store.close()


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # the reader of runs gives the reason


def _in_store(
    store: Store, sources: tuple[str, ...] | None, volunteered: bool, conditions: Mapping[str, Any]
) -> Labels:
    narrows = (
        needs_feedback(sources)
        and callable(getattr(store, "put_feedback", None))
        and not {"feedback", "feedback_source"} & conditions.keys()
    )
    if not narrows:
        return _gathered(store.iterate(**conditions), sources, volunteered)
    found = _gathered(store.iterate(**conditions, feedback=True), sources, volunteered)
    without = store.count(**conditions, feedback=False)
    left_out = Counter(found.left_out)
    left_out[NO_LABEL] += without
    return replace(found, left_out=dict(+left_out))


def _gathered(runs: Iterable[Any], sources: tuple[str, ...] | None, volunteered: bool) -> Labels:
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
