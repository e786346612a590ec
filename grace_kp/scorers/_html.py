"""The report of a suite on one case as HTML: whether it passes, the score of each scorer, and where to look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from grace_kp.pages import badge, fold, meter, safe, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.scorers._result import Result

MAX_RESULTS = 100
MAX_NAME = 120


def suite_html(overall: float, *, passed: bool, results: Sequence[Result], diagnosis: Sequence[str]) -> str:
    """Return the report on one case.

    Args:
        overall: the weighted average, 0 to 1.
        passed: whether every score reaches its threshold.
        results: the results of the scorers.
        diagnosis: for every score that is too low, where to look.
    """
    word = badge("passes", "good") if passed else badge("fails", "bad")
    rows = [
        (
            result.type[:MAX_NAME],
            "not scored" if result.error else _number(result.score),
            _number(result.threshold, 2),
            f"{result.weight:g}",
            "passes" if result.passed else "✗ fails",
        )
        for result in results[:MAX_RESULTS]
    ]
    left_out = len(results) - MAX_RESULTS
    more = f'<p class="small soft">{left_out:,} more scorers are not shown.</p>' if left_out > 0 else ""
    lines = "\n".join(diagnosis)
    why = f"<details open><summary>where to look</summary>{fold(lines, code=True)}</details>" if lines else ""
    return (
        f'<p class="figure"><span class="sum">{safe(_number(overall))}</span> {word}</p>{meter(overall, "good" if passed else "bad")}'
        f"{table(('scorer', 'score', 'needed', 'weight', 'result'), rows)}{more}{why}"
    )


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else str(value)
