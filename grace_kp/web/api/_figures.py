"""The operation on figures: sums over the runs and the approvals of a period, as the page of figures computes them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import ApprovalState, RowQuery
from grace_kp.web._person import Right
from grace_kp.web._problem import Problem
from grace_kp.web.api._operation import Operation
from grace_kp.web.api._schemas import Figures
from grace_kp.web.figures._approvals import decisions_of
from grace_kp.web.figures._period import LONGEST, PARAMETERS, USUAL, asked_for
from grace_kp.web.figures._spending import spending

if TYPE_CHECKING:
    from grace_kp.web._site import Site
    from grace_kp.web.api._operation import Call

PATIENCE = 2.0
"""Seconds that a program waits for figures that nobody has asked for before."""


def get_figures(call: Call) -> dict[str, Any]:
    """Return the figures of a period."""
    site = call.site
    today = datetime.fromtimestamp(site.clock(), UTC).date()
    asked = asked_for(call.request.query_params, today, lambda: today)
    if asked.problems:
        text = " and ".join(f"{name} {problem}" for name, problem in asked.problems.items())
        raise Problem("invalid", text, fields=asked.problems)
    since, until = asked.period.since.isoformat(), asked.period.until.isoformat()
    runs = site.catalog.figures(since, until, agent=asked.agent)
    spent = spending(runs.models, site.grace.settings.prices)
    return {
        "since": since,
        "until": until,
        "agent": asked.agent,
        "runs": asdict(runs),
        "approvals": _approvals(site, asked.period.seconds),
        "spending": [{**asdict(each), "money": each.money} for each in spent],
        "thresholds": site.grace.thresholds.to_dict(),
    }


def _approvals(site: Site, span: tuple[float, float]) -> dict[str, Any]:
    """Return the figures of approvals, which all readers share; those that wait are counted now.

    Raises:
        Problem: they take too long, or cannot be computed.
    """
    found = decisions_of(site, span, patience=PATIENCE)
    if found is None or found.value is None:
        reason = "" if found is None else found.problem
        raise Problem("unavailable", reason or "the figures of this period are being computed; ask again in a moment")
    pending = site.tables.count(RowQuery(states=(ApprovalState.PENDING.value,)))
    return {**asdict(found.value), "pending": pending}


OPERATIONS = (
    Operation(
        name="getFigures",
        path="/api/v1/figures",
        right=Right.SEE,
        summary="Get the figures of a period",
        description=f"Days are in UTC, and both are included; at most {LONGEST:,} days up to today. Without `since`, {USUAL} days. "
        "Decisions on approvals are counted once a minute at most.",
        answer=get_figures,
        result=Figures,
        parameters=tuple(parameter for parameter in PARAMETERS if parameter.name != "days"),
    ),
)
"""The operation on figures."""
