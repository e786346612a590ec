"""The policy in force when an action is claimed or edited, which may be stricter than the one that its approval was asked under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Collection


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
    identity: str = "stated"
    """Whose votes a quorum above 1 counts: of `authenticated` people alone, or also names that were only `stated`."""
    version: str = ""

    def stricter_than(self, *, level: str, groups: Collection[str], quorum: int, identity: str) -> str:
        """Return in what this policy is stricter than one with these settings; empty where it is not.

        A group is stricter where it excludes somebody who could decide: any group instead of none, or fewer groups.
        """
        if self.denies:
            return "the policy forbids the action now"
        if self.floor is not None and InterventionLevel(self.floor).severity > InterventionLevel(level).severity:
            return f"the policy requires {self.floor} now, and the decision was asked for at {level}"
        if self.quorum > quorum:
            return f"the policy requires {self.quorum} people now, and the decision needed {quorum}"
        if self.quorum > 1 and self.identity != identity == "stated":
            return "the policy counts authenticated people alone now"
        if self.groups and (not groups or not set(groups) <= set(self.groups)):
            return f"the policy requires a member of {' or '.join(self.groups)} now"
        return ""
