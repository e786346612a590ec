"""Words for people: what a penalty says and what a sub-score is called. Traces and requests keep the pinned names; people read these."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_EVALUATED = "not evaluated"
_FAILURES = re.compile(r"tool_failures\(rate=([01]\.\d\d)\)")
_FIXED = {"no_search_results": "the search found nothing", "no_sources": "no sources"}


def penalty_text(penalty: str) -> str:
    """Return a penalty in words: `tool_failures(rate=0.83)` reads "tools succeeded: 83 %". Unknown names stay as they are."""
    failures = _FAILURES.fullmatch(penalty)
    if failures is not None:
        # A penalty of 1.00 is a rounded one: where every tool succeeded there is none.
        share = "over 99" if failures[1] == "1.00" else str(round(float(failures[1]) * 100))
        return f"tools succeeded: {share} %"
    return _FIXED.get(penalty, penalty)


def penalties_text(penalties: Iterable[str]) -> str:
    """Return several penalties in words, separated by commas."""
    return ", ".join(penalty_text(str(penalty)) for penalty in penalties)


def part_text(value: float | None) -> str:
    """Return a sub-score for people: three decimals, or "not evaluated" for None."""
    return NOT_EVALUATED if value is None else f"{value:.3f}"
