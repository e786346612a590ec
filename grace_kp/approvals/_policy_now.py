"""The policy in force when an action is claimed or edited, which may be stricter than the one that its approval was asked under."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNow:
    """What the policy of an action requires now."""

    denies: bool = False
    """Whether the action is forbidden."""
    floor: str | None = None
    """The mildest level that the action can have; None for any."""
    groups: tuple[str, ...] = ()
    """Groups whose members may decide; empty for anybody."""
    quorum: int = 1
    version: str = ""
