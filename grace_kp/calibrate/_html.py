"""Figures of calibrations as tables: how good a confidence is, what thresholds promise, and a reliability diagram in numbers.

The report and notebooks show the same tables. An `Assessment` and `RiskThresholds` show themselves by this module, so that it does not
import them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from grace_kp.pages import meter, safe, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_GROUPS = 100
"""Groups of a table; a note gives the number of the others."""
MAX_NAME = 120
MAX_NOTES = 40


def with_interval(found: Any, name: str) -> str:
    """Return a figure with its 95 % interval in words: "0.74 (0.64 to 0.83)"; a dash if it is not defined."""
    value = getattr(found, name)
    if value is None:
        return "–"
    pair = found.intervals.get(name)
    return f"{value:.2f}" if pair is None else f"{value:.2f} ({pair[0]:.2f} to {pair[1]:.2f})"


def quality_table(found: Mapping[Any, Any], kind: str, nouns: str = "runs") -> str:
    """Return how good confidences are, a row each."""
    rows = [
        (str(name)[:MAX_NAME], f"{each.n:,}", *(with_interval(each, figure) for figure in ("accuracy", "auroc", "ece", "brier")))
        for name, each in itertools.islice(found.items(), MAX_GROUPS)
    ]  # fmt: skip
    header = (kind, nouns, "share correct", "AUROC", "calibration error", "Brier score")
    return table(header, rows, words={kind}) + _more(len(found) - MAX_GROUPS, "rows")


def assessment_html(found: Any) -> str:
    """Return how good the confidence of an `Assessment` is: its figures, its reliability as bars, and the figures of its groups."""
    by_group = quality_table(found.by_group, "group") if found.by_group else ""
    rows = "".join(
        f"<dt>{each.low:.1f} to {each.high:.1f}, {each.n:,} runs</dt><dd>{each.accuracy:.0%} correct</dd>"
        f'<dd aria-hidden="true">{meter(each.accuracy)}</dd>'
        for each in found.bins
    )
    bars = f'<p>Share correct by confidence, which is equal to the confidence where it means what it says:</p><dl class="parts">{rows}</dl>'
    return f"{quality_table({'all runs': found}, 'sample')}{bars}{by_group}"


def threshold_table(found: Any) -> str:
    """Return the levels of `RiskThresholds`, with the promise and the evidence of each."""
    header = ("level", "promised risk", "confidence from", "coverage", "wrong", "bound", "labels needed")
    lines = [
        (
            each.level, f"{each.risk:g}", "never" if each.threshold is None else f"{each.threshold:.3f}",
            f"{each.coverage:.1%}", f"{each.errors:,} of {each.reached:,}", "–" if each.bound is None else f"{each.bound:.3f}",
            f"{each.needed:,}",
        )
        for each in found.levels
    ]  # fmt: skip
    return table(header, lines, caption=f"Thresholds, tested on {found.n:,} independent labels")


def thresholds_html(found: Any, promise: str) -> str:
    """Return `RiskThresholds` with their promise in words and their notes."""
    return f"<p>{safe(promise)}</p>{threshold_table(found)}{list_html(found.notes)}"


def list_html(lines: Sequence[str]) -> str:
    """Return plain texts as a list; a note gives the number of those left out."""
    listed = "".join(f"<li>{safe(line)}</li>" for line in lines[:MAX_NOTES])
    return (f"<ul>{listed}</ul>" if listed else "") + _more(len(lines) - MAX_NOTES, "notes")


def _more(count: int, noun: str) -> str:
    return f'<p class="small soft">{count:,} more {noun} are not shown.</p>' if count > 0 else ""
