"""Labelled runs in files: native traces with feedback, chat runs with a field that states a label, and results of benchmarks.

A file is read run by run. What cannot be read is reported with file and line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from grace_kp.calibrate._label_sources import NO_LABEL, Label, checked_sources, group_of, label_of
from grace_kp.errors import InvalidRecord, brief, is_unit
from grace_kp.trace import is_native, read_runs, success_field, verdict

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from grace_kp.trace import FileRun, ReasoningTrace

FIELDS = ("reward", "correct", "success", "label")
"""Fields of a run that state a label, in the order in which they are tried."""
INSIDE = {
    "label": ("success", "correct", "reward", "label", "value"),
    "reward": ("reward", "value"),
    "correct": ("correct", "value"),
    "success": ("success", "value"),
}
"""Where the label stands if such a field is an object."""
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
    """Why there is no label; empty with one."""


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
        run
        if isinstance(run, InvalidRecord)
        else _labelled(run, label, file)
        if label is not None
        else _by_itself(run, wanted, volunteered, file)
        for run in runs
    )


def _labelled(run: FileRun, field: str, file: str) -> LabelledRun | InvalidRecord:
    """Return a run with the label that a field states."""
    value = _at(run.document, field)
    if value is _MISSING or value is None:
        return LabelledRun(run.trace, None, group_of(run.trace), f"{NO_LABEL} in the field {field}")
    correct = read_label(value)
    if correct is None:
        problem = f"is no label: it must be true, false, a number from 0 to 1, or a word such as 'passed' (got {brief(value)})"
        return InvalidRecord(problem, file=file, line=run.line, path=".".join(filter(None, (run.path, field))))
    return LabelledRun(run.trace, Label(correct, f"{FIELD}{field}"), group_of(run.trace))


def _by_itself(
    run: FileRun, sources: tuple[str, ...] | None, volunteered: bool, file: str
) -> LabelledRun | InvalidRecord:
    """Return a run with its feedback, or else what a field with a usual name states."""
    found = label_of(run.trace, sources, volunteered=volunteered)
    if isinstance(found, Label):
        return LabelledRun(run.trace, found, group_of(run.trace))
    field = usual_field(run.document) if found == NO_LABEL and sources is None else None
    return LabelledRun(run.trace, None, group_of(run.trace), found) if field is None else _labelled(run, field, file)


def read_label(value: object) -> bool | float | None:
    """Return what a value states as a label: True, False, or a number between 0 and 1; None if it is none.

    A word or a number may also be a text. Rewards that rounding has moved off 1 by less than a millionth are 1.
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
    for field in FIELDS:
        value = document.get(field)
        if isinstance(value, dict):
            inner = next((name for name in INSIDE[field] if value.get(name) is not None), None)
            if inner is not None:
                return f"{field}.{inner}"
        elif value is not None:
            return field
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
