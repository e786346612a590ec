"""The operation on figures: sums over the runs of a period."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from grace_kp.store import RunFigures
from grace_kp.web._parameter import Kind, Parameter
from grace_kp.web._person import Right
from grace_kp.web._problem import Problem
from grace_kp.web.api._operation import Operation

if TYPE_CHECKING:
    from grace_kp.web.api._operation import Call

DAYS = 30
"""Days of the period where none is stated."""
AT_MOST_DAYS = 3_660


def get_figures(call: Call) -> dict[str, Any]:
    """Return the figures of a period."""
    today = datetime.fromtimestamp(call.site.clock(), UTC).date()
    until = date.fromisoformat(call.values.get("until", today.isoformat()))
    earliest = max(until.toordinal() - DAYS + 1, 1)
    since = date.fromisoformat(call.values.get("since", date.fromordinal(earliest).isoformat()))
    if not timedelta(0) <= until - since < timedelta(days=AT_MOST_DAYS):
        problem = (
            f"must be a day from {until - timedelta(min(AT_MOST_DAYS, until.toordinal()) - 1)} to {until}, the last day"
        )
        raise Problem("invalid", f"since {problem}", fields={"since": problem})
    return asdict(call.site.catalog.figures(since.isoformat(), until.isoformat(), agent=call.values.get("agent")))


OPERATIONS = (
    Operation(
        name="getFigures",
        path="/api/v1/figures",
        right=Right.SEE,
        summary="Get the figures of a period",
        description=f"Days are in UTC, and both are included; at most {AT_MOST_DAYS:,} days.",
        answer=get_figures,
        result=RunFigures,
        parameters=(
            Parameter(name="since", meaning=f"First day; without it, {DAYS} days are returned.", kind=Kind.DAY),
            Parameter(name="until", meaning="Last day; today where it is left out.", kind=Kind.DAY),
            Parameter(name="agent", meaning="Only runs of this agent.", example="refunds"),
        ),
    ),
)
"""The operations on figures."""
