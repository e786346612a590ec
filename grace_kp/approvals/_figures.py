"""Figures of the approvals of a period: how many were decided, how, and how long people took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.approvals._record import record_of
from grace_kp.approvals._states import ApprovalState
from grace_kp.approvals._tables import RowQuery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._tables import Reads

AT_MOST_READ = 5_000
STANDING = "standing"
"""The outcome of requests that a standing approval approved: nobody was asked."""
_PENDING = ApprovalState.PENDING.value
_PAST = tuple(state.value for state in ApprovalState if state is not ApprovalState.PENDING)
_NOBODY = frozenset({"gate", "deadline", STANDING})
"""Channels of actors that are no person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFigures:
    """Figures of the requests that were decided or closed in a period."""

    pending: int
    """Requests that wait now, whatever the period."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """By state of the decision, such as `approved`, `edited`, `rejected`, `expired`; `standing` for standing approvals. Most frequent first."""
    waits: tuple[float, ...] = ()
    """Seconds from each request to the decision of a person, from short to long."""
    is_cut: bool = False
    """Whether there were more requests than were read, so that the oldest are missing."""


def approval_figures(reads: Reads, since: float, until: float, *, limit: int = AT_MOST_READ) -> ApprovalFigures:
    """Return the figures of the approvals of a period.

    Args:
        reads: the tables.
        since: beginning of the period, in seconds since the epoch.
        until: end of the period; a decision at this time does not belong to it.
        limit: requests that are read at most: those that changed last.

    Raises:
        StoreError: the tables cannot be read.
    """
    rows = reads.rows(RowQuery(states=_PAST, since=since, order="newest", limit=limit))
    outcomes: Counter[str] = Counter()
    waits = []
    for row in rows:
        decision = record_of(row).data["decision"]
        if decision is None or not since <= decision["at"] < until:
            continue
        channel = decision["actor"]["channel"]
        outcomes[STANDING if channel == STANDING else decision["state"]] += 1
        if channel not in _NOBODY:
            waits.append(max(0.0, decision["at"] - row.created))
    return ApprovalFigures(
        pending=reads.count(RowQuery(states=(_PENDING,))),
        outcomes=dict(outcomes.most_common()),
        waits=tuple(sorted(waits)),
        is_cut=len(rows) == limit,
    )
