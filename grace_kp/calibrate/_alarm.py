"""An alarm of the monitor: which promise was refuted, and by what."""

from __future__ import annotations

from dataclasses import dataclass

from grace_kp.levels import InterventionLevel

LEVELS = tuple(str(level) for level in InterventionLevel)
ALL = "*"
"""All actions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A promise that labels refute. While all promises hold, an alarm is ever raised with probability at most delta."""

    level: str
    """The promised level. Labels of actions at this level or a milder one count for it."""
    action: str
    """The action class; `*` stands for all actions together."""
    risk: float
    """The promised error rate."""
    n: int
    """Labels that counted since `since`."""
    errors: int
    """How many of them were wrong."""
    rate: float
    """Their error rate, each label counted with its weight."""
    low: float
    """The error rates from `low` to `high` are compatible with these labels, at every look, with probability 1 − delta."""
    high: float
    wealth: float
    """Capital of a bettor against the promise who began with 1. The alarm was raised at 1 / (the level's part of delta)."""
    since: str
    """The ISO week from which on the labels speak most clearly against the promise."""
    at: str
    """When the alarm was raised, in ISO 8601."""

    def concerns(self, level: str, action: str) -> bool:
        """Return whether the refuted promise is about an action at this level: of this class or all, at this level or a milder one."""
        return self.action in (action, ALL) and LEVELS.index(level) <= LEVELS.index(self.level)

    def __str__(self) -> str:
        scope = "all actions" if self.action == ALL else f"action {self.action!r}"
        return (
            f"{scope}, {self.level}: {self.errors:,} of {self.n:,} labels since {self.since} are wrong "
            f"({self.rate:.1%}, plausible are {self.low:.1%} to {self.high:.1%}); promised was at most {self.risk:.1%}"
        )
