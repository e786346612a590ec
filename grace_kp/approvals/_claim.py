"""The one execution that a decision entitles to: claim it, release it, report its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.approvals._approval import Approval


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run an action once."""

    token: str = field(repr=False)
    """What `settle` and `release` must present. Only its hash is stored."""
    approval: Approval
