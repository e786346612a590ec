"""The states of an approval and the only changes between them. Nothing else in this library states what may follow what.

    pending ──┬─ approve ──> approved ──┬─ claim ──> claimed ──┬─ the action returned ──────────> done
              ├─ edit ─────> edited ────┤                      ├─ the action raised ────────────> failed
              │                         │                      ├─ nobody knows ─────────────────> unknown
              │                         │                      └─ paused before it did anything > approved
              │                         ├─ unused in time ──> expired
              │                         └─ withdraw, or a stricter policy in force ──> cancelled
              ├─ reject ───> rejected
              ├─ respond ──> responded
              ├─ skip ─────> skipped
              ├─ retry ────> retried
              ├─ the deadline has passed ──> expired, or skipped where the reviewer says so
              └─ withdraw, or the caller gives up ──> cancelled

    unknown ──┬─ late report by its claimant ──> done | failed
              └─ reconcile ────────────────────> done | not_done

    approved, edited, claimed ── the store was restored from a backup ──> unknown

The last line is written only by `RequestStore.restored`: what was decided before the backup may have been carried out after it.
Only a claim entitles to run. `failed` means that the action raised, not that nothing happened. A state without a way out is final.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from collections.abc import Mapping


class ApprovalState(StrEnum):
    """Where a request for approval stands."""

    PENDING = "pending"
    APPROVED = "approved"
    EDITED = "edited"
    REJECTED = "rejected"
    RESPONDED = "responded"
    SKIPPED = "skipped"
    RETRIED = "retried"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_DONE = "not_done"

    @property
    def is_open(self) -> bool:
        """Whether the action may still run under this approval, or may be running."""
        return self in OPEN

    @property
    def may_have_run(self) -> bool:
        """Whether the action was begun and nobody has established that nothing happened."""
        return self in {self.CLAIMED, self.DONE, self.FAILED, self.UNKNOWN}


_S = ApprovalState
_DECIDED = (_S.APPROVED, _S.EDITED, _S.REJECTED, _S.RESPONDED, _S.SKIPPED, _S.RETRIED)
OPEN = frozenset({_S.PENDING, _S.APPROVED, _S.EDITED, _S.CLAIMED})
ENTITLING = frozenset({_S.APPROVED, _S.EDITED})
"""States from which an action may be claimed."""
FOLLOWING: Mapping[ApprovalState, frozenset[ApprovalState]] = MappingProxyType(
    {
        _S.PENDING: frozenset({*_DECIDED, _S.EXPIRED, _S.CANCELLED}),
        _S.APPROVED: frozenset({_S.CLAIMED, _S.EXPIRED, _S.CANCELLED, _S.UNKNOWN}),
        _S.EDITED: frozenset({_S.CLAIMED, _S.EXPIRED, _S.CANCELLED, _S.UNKNOWN}),
        _S.CLAIMED: frozenset({_S.DONE, _S.FAILED, _S.UNKNOWN, _S.APPROVED}),
        _S.UNKNOWN: frozenset({_S.DONE, _S.FAILED, _S.NOT_DONE}),
        **{state: frozenset() for state in (*_DECIDED[2:], _S.EXPIRED, _S.CANCELLED, _S.DONE, _S.FAILED, _S.NOT_DONE)},
    }
)
"""The states that may follow each state."""
RESPONSES: Mapping[ApprovalState, InterventionAction] = MappingProxyType(
    {
        _S.APPROVED: InterventionAction.PROCEED,
        _S.EDITED: InterventionAction.MODIFY,
        _S.REJECTED: InterventionAction.CANCEL,
        _S.RESPONDED: InterventionAction.INPUT,
        _S.SKIPPED: InterventionAction.SKIP,
        _S.RETRIED: InterventionAction.RETRY,
    }
)
"""The response that a gate takes each decision for."""


def may_follow(state: ApprovalState, after: ApprovalState) -> bool:
    """Return whether `after` may follow `state`."""
    return after in FOLLOWING[state]
