"""Details of a confidence in a notebook: the contribution of each feature of a learned profile, and the factors of the calculation."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from grace_kp.pages import spaced, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence._factors import ConfidenceFactors

MAX_CONTRIBUTIONS = 60
"""Features that are shown, strongest first; a note gives the number of the others."""
MAX_NAME = 80


def contributions_html(contributions: Mapping[str, float]) -> str:
    """Return what each feature of a learned profile added to the logarithm of the odds, strongest first; empty without any."""
    known = [(name, value) for name, value in contributions.items() if math.isfinite(value)]
    if not known:
        return ""
    known.sort(key=lambda pair: -abs(pair[1]))
    rows = [(spaced(name)[:MAX_NAME], f"{value:+.2f}".replace("-", "−")) for name, value in known[:MAX_CONTRIBUTIONS]]
    caption = "What each feature adds to the logarithm of the odds"
    left_out = len(known) - MAX_CONTRIBUTIONS
    more = f'<p class="small soft">{left_out:,} weaker ones are not shown.</p>' if left_out > 0 else ""
    whole = table(("feature", "adds"), rows, caption=caption) + more
    return f"<details><summary>contributions</summary>{whole}</details>"


def factors_html(factors: ConfidenceFactors) -> str:
    """Return the factors of a confidence as a folded table; empty for anything else."""
    # A profile of the user's may calculate from factors of its own.
    if type(factors).__name__ != "ConfidenceFactors":
        return ""
    rows = [(spaced(each.name), _text(getattr(factors, each.name))) for each in fields(factors)]
    return f"<details><summary>factors</summary>{table(('factor', 'value'), rows, words={'value'})}</details>"


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
