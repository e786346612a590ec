"""The label of each run that is read one at a time: from its own feedback, or from a list beside the traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.calibrate._label_sources import counts_unnamed
from grace_kp.errors import brief, is_unit
from grace_kp.store import by_precedence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_END = object()
T = TypeVar("T")


def feedback_in(grace: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the readable entries of `grace.feedback`, oldest first."""
    entries = grace.get("feedback")
    return [
        entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping)
        and isinstance(entry.get("source"), str)
        and correctness(entry.get("correct")) is not None
    ]


def label_in(grace: Mapping[str, Any]) -> float | None:
    """Return the label of a run that counts, 1 for right and 0 for wrong; approvals and labels of imported files are none. None without a label.

    It is the label that `cal.labels` takes with `volunteered=True`, without its weight.
    """
    entries = by_precedence(feedback_in(grace), grace.get("user"))
    stated = [entry for entry in entries if counts_unnamed(entry.get("source"))]
    return correctness(stated[-1]["correct"]) if stated else None


def correctness(value: object) -> float | None:
    """Return True, False or a number from 0 to 1 as a number; None for anything else."""
    return float(value) if isinstance(value, bool) or is_unit(value) else None


def aligned_labels(traces: Iterable[T], labels: Iterable[object] | None) -> Iterator[tuple[T, float | None]]:
    """Yield each trace with its label; without labels, with None.

    Raises:
        ValueError: a label is no label, or there are not as many as traces.
    """
    if labels is None:
        yield from ((trace, None) for trace in traces)
        return
    stated = iter(labels)
    count = 0
    for count, trace in enumerate(traces, 1):
        value = next(stated, _END)
        if value is _END:
            raise ValueError(f"there are {count - 1:,} labels and more traces; pass None for a run without a label")
        # The truth values of numpy are no bool.
        value = value.item() if hasattr(value, "item") else value
        label = correctness(value)
        if value is not None and label is None:
            raise ValueError(f"label {count:,} must be True, False, None or a number from 0 to 1 (got {brief(value)})")
        yield trace, label
    if next(stated, _END) is not _END:
        raise ValueError(f"there are {count:,} traces and more labels; labels must be aligned with the traces")
