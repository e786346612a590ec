"""Figures of calibrations as tables: how good a confidence is, what thresholds promise, and a reliability diagram in numbers.

The report and notebooks show the same tables.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.pages import meter, safe, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_GROUPS = 100
"""Groups of a table; a note gives the number of the others."""
MAX_NAME = 120
MAX_NOTES = 40


class Assessed(Protocol):
    """Figures of a confidence on labelled samples, as an `Assessment` has them."""

    @property
    def n(self) -> int: ...
    @property
    def auroc(self) -> float | None: ...
    @property
    def intervals(self) -> Mapping[str, tuple[float, float] | None]: ...
    @property
    def bins(self) -> Iterable[Any]: ...


def with_interval(found: Assessed, name: str) -> str:
    """Return a figure with its 95 % interval in words: "0.74 (0.64 to 0.83)"; a dash if it is not defined."""
    value = found.auroc if name == "auroc" else getattr(found, name)
    if value is None:
        return "–"
    pair = found.intervals.get(name)
    return f"{value:.2f}" if pair is None else f"{value:.2f} ({pair[0]:.2f} to {pair[1]:.2f})"


def quality_table(found: Mapping[Any, Assessed], kind: str) -> str:
    """Return how good confidences are, a row each.

    Args:
        found: the figures by the name of the confidence or of the group.
        kind: what the names are.
    """
    rows = [
        (str(name)[:MAX_NAME], f"{each.n:,}", *(with_interval(each, figure) for figure in ("accuracy", "auroc", "ece", "brier")))
        for name, each in itertools.islice(found.items(), MAX_GROUPS)
    ]  # fmt: skip
    header = (kind, "runs", "share correct", "AUROC", "calibration error", "Brier score")
    return table(header, rows, words={kind}) + _more(len(found) - MAX_GROUPS, "rows")


def assessment_html(found: Assessed, groups: Mapping[Any, Assessed]) -> str:
    """Return how good a confidence is: its figures, its reliability as bars, and the figures of its groups."""
    by_group = quality_table(groups, "group") if groups else ""
    bars = f"<p>Share correct by confidence, which is equal to the confidence where it means what it says:</p>{_bars(found.bins)}"
    return f"{quality_table({'all runs': found}, 'sample')}{bars}{by_group}"


def _bars(bins: Iterable[Any]) -> str:
    rows = "".join(
        f"<dt>{each.low:.1f} to {each.high:.1f}, {each.n:,} runs</dt><dd>{each.accuracy:.0%} correct</dd>"
        f'<dd aria-hidden="true">{meter(each.accuracy)}</dd>'
        for each in bins
    )
    return f'<dl class="parts">{rows}</dl>'


def threshold_table(rows: Iterable[Mapping[str, Any]], labels: int) -> str:
    """Return thresholds with what they promise.

    Args:
        rows: for each level `level`, `risk`, `threshold` (None: never used), `coverage`, `errors`, `reached`, `bound` (or None), and
            optionally `needed`, the labels that the level needs at least.
        labels: number of independent labels that were tested.
    """
    found = list(rows)
    header = ["level", "promised risk", "confidence from", "coverage", "wrong", "bound"]
    header += ["labels needed"] if found and "needed" in found[0] else []
    lines = [
        (
            each["level"], f"{each['risk']:g}", "never" if each["threshold"] is None else f"{each['threshold']:.3f}",
            f"{each['coverage']:.1%}", f"{each['errors']:,} of {each['reached']:,}", "–" if each["bound"] is None else f"{each['bound']:.3f}",
            *([f"{each['needed']:,}"] if "needed" in each else []),
        )
        for each in found
    ]  # fmt: skip
    return table(header, lines, caption=f"Thresholds, tested on {labels:,} independent labels")


def thresholds_html(document: Mapping[str, Any], promise: str) -> str:
    """Return thresholds with their promise and what they were derived from.

    Args:
        document: `RiskThresholds.to_dict()`.
        promise: the promise in words.
    """
    labels, risks, thresholds = document["n"], document["risks"], document["thresholds"]
    rows = [
        {
            "level": level,
            "risk": risk,
            "threshold": None if isinstance(thresholds.get(level), str) else thresholds.get(level),
            "coverage": document["coverage"].get(level, 0.0),
            "errors": document["errors"].get(level, 0),
            "reached": round(document["coverage"].get(level, 0.0) * labels),
            "bound": document["bounds"].get(level),
        }
        for level, risk in risks.items()
    ]
    return f"<p>{safe(promise)}</p>{threshold_table(rows, labels)}{list_html(document['notes'])}"


def list_html(lines: Sequence[str]) -> str:
    """Return plain texts as a list; a note gives the number of those left out."""
    listed = "".join(f"<li>{safe(line)}</li>" for line in lines[:MAX_NOTES])
    return (f"<ul>{listed}</ul>" if listed else "") + _more(len(lines) - MAX_NOTES, "notes")


def _more(count: int, noun: str) -> str:
    return f'<p class="small soft">{count:,} more {noun} are not shown.</p>' if count > 0 else ""
