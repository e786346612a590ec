"""Standing approvals: consent in advance to calls of one action whose every parameter is constrained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._actor import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Consent in advance.

    It covers no request with a quorum above 1, at level `escalate`, or with parameters that have no encoding.
    """

    action: str
    """Name of the action; no glob."""
    domain: str
    parameters: Mapping[str, Mapping[str, Any]]
    """A constraint per parameter: `{"is": value}`, `{"in": [values]}`, `{"from": low, "to": high}` with one or both bounds, inclusive,
    or `{"any": True}`. Values are encoded as in `Approval.encoded`. A request with another parameter is not covered. Sealed parameters and
    those that the digest leaves out are covered by `any` only."""
    until: float
    """Seconds since the epoch."""
    uses: int
    """At most this many claims."""
    version: str | None = None
    """Version of the action that it is limited to; None for every version."""
    note: str = ""
    id: str = ""
    """Set by `Desk.grant`."""
    granted_by: Actor | None = None
    """Set by `Desk.grant`."""
    granted_at: float = 0.0
    used: int = 0
    """Number of claims so far."""
    open: tuple[str, ...] = field(default=())
    """Ids of the approvals that it approved and nobody has claimed yet."""
    ended: str = ""
    """Why it ended; empty while it holds."""
