"""Figures of approvals as plots: how requests were decided, and how long people took."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.approvals import ENTITLING, approval_figures
from grace_kp.pages import histogram, named_bars, span_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.approvals import ApprovalFigures
    from grace_kp.web._kept import Result
    from grace_kp.web._site import Site

EDGES = (0.0, 10.0, 60.0, 600.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0)
_WORDS = {
    "responded": "answered",
    "retried": "sent back for a retry",
    "standing": "by a standing approval",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Seconds from requests to the decisions of people."""

    count: int
    median: float
    most: float
    """Nine of ten decisions took no longer."""
    longest: float


def decisions_of(
    site: Site, span: tuple[float, float], *, patience: float | None = None
) -> Result[ApprovalFigures] | None:
    """Return the figures of a period, computed once a minute at most, for all readers; None while they are computed for the first time.

    Args:
        site: the site.
        span: begin and end of the period, in seconds since the epoch.
        patience: seconds to wait for the first computation.
    """
    return site.decisions.get(span, site.clock(), lambda: approval_figures(site.tables, *span), patience=patience)


def waits_of(figures: ApprovalFigures) -> Waits | None:
    """Return how long people took; None if nobody decided anything."""
    if not figures.waits:
        return None
    return Waits(
        count=len(figures.waits),
        median=quantile(figures.waits, 0.5),
        most=quantile(figures.waits, 0.9),
        longest=figures.waits[-1],
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of some numbers that at least this share of them does not exceed.

    Args:
        ordered: the numbers from small to large; at least one.
        share: above 0, up to 1.
    """
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def outcome_plot(figures: ApprovalFigures) -> str:
    """Return how requests were decided or closed."""
    values = {_WORDS.get(name, name): count for name, count in figures.outcomes.items()}
    return named_bars("How requests were decided", values, kind="decision", unit="requests")


def wait_plot(figures: ApprovalFigures) -> str:
    """Return how long people took as a distribution; the bins are times that people name."""
    edges = (
        [*EDGES, max(figures.waits[-1], 2 * EDGES[-1])]
        if figures.waits and figures.waits[-1] > EDGES[-1]
        else list(EDGES)
    )
    places = [bisect_left(figures.waits, edge) for edge in edges[:-1]] + [len(figures.waits)]
    return histogram(
        "Time until people decided",
        [end - begin for begin, end in itertools.pairwise(places)],
        edges=edges,
        labels=["0", *(span_text(edge).replace(" ", "") for edge in edges[1:])],
        unit="decisions",
    )


def approved_share(figures: ApprovalFigures) -> float | None:
    """Return the share of the decisions of people that let the action run; None without decisions."""
    decided = {
        name: figures.outcomes.get(name, 0)
        for name in ("approved", "edited", "rejected", "responded", "skipped", "retried")
    }
    total = sum(decided.values())
    return sum(decided[state.value] for state in ENTITLING) / total if total else None
