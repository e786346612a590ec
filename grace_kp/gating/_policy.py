"""Policies as data: floors, timeouts, reviewers and thresholds by action name or glob. This module decides nothing about a call."""

from __future__ import annotations

import fnmatch
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.confidence import Thresholds
    from grace_kp.gating._reviewer import Reviewer

DENY = "deny"
_FLOORS = (*(level.value for level in InterventionLevel), DENY)
_RANKS = {floor: rank for rank, floor in enumerate((None, *_FLOORS))}
UNMEASURED = ("silent", "notify", "confirm")
"""Levels that can be stated for calls about which nothing was measured, mildest first."""


def check_timeout(timeout: object) -> None:
    """Refuse a timeout that is neither None nor a number of 0 or more.

    Raises:
        ValueError: the message names the value.
    """
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise ValueError(f"timeout must be 0 or more seconds, or None, not {timeout!r:.60}")


def check_auto_proceed(setting: object) -> None:
    """Refuse a setting that only looks like a boolean: the text "no" is true in Python.

    Raises:
        ValueError: the message names the value.
    """
    if not isinstance(setting, bool):
        raise ValueError(f"auto_proceed_on_timeout must be True or False, not {setting!r:.60}")


def check_unmeasured(level: object) -> None:
    """Refuse a level that cannot be stated for calls about which nothing was measured.

    Raises:
        ValueError: the message names the value.
    """
    if level is not None and str(level) not in UNMEASURED:
        raise ValueError(f"unmeasured must be one of {', '.join(UNMEASURED)}, or None, not {level!r:.60}")


def groups_of(group: object) -> tuple[str, ...]:
    """Return the groups that an argument names, in alphabetical order; none for None.

    Raises:
        ValueError: it is neither None, a name nor several names.
    """
    if group is None:
        return ()
    named = [group] if isinstance(group, str) else group
    names = list(named) if isinstance(named, list | tuple | set | frozenset) else []
    if not names or not all(isinstance(name, str) and name.strip() == name != "" for name in names):
        raise ValueError(f"group must be the name of a group, or a list of such names, not {group!r:.60}")
    return tuple(sorted({str(name) for name in names}))


def checked_quorum(quorum: object) -> int:
    """Return a quorum.

    Raises:
        ValueError: it is not a whole number from 1 to 100.
    """
    if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= 100:
        raise ValueError(f"quorum must be a whole number from 1 to 100, not {quorum!r:.60}")
    return quorum


@dataclass(frozen=True, slots=True)
class Policy:
    """How strictly an action is gated, and who is asked about it.

    Raises:
        ValueError: an unknown floor, a timeout that is not a number of 0 or more, `auto_proceed_on_timeout` that is neither True nor False,
            or a group or quorum that cannot be used.
        TypeError: `thresholds` is no `Thresholds`.
    """

    floor: InterventionLevel | str | None = None
    """The mildest level that the action can have; `deny` blocks it without asking."""
    timeout: float | None = None
    """Seconds to wait for an answer; the gate's own when None."""
    reviewer: Reviewer | None = None
    """The reviewer to ask; the gate's own when None."""
    auto_proceed_on_timeout: bool | None = None
    """Run the action when time runs out without an answer. A refusal, a reviewer that fails and a missing reviewer never run it. Off when None."""
    thresholds: Thresholds | None = None
    """The scores at which the levels begin for this action; the gate's own when None."""
    group: str | Sequence[str] | None = None
    """Groups whose members may decide in an inbox; those of the `InboxReviewer` when None."""
    quorum: int | None = None
    """Number of people who must approve in an inbox; that of the `InboxReviewer` when None."""
    unmeasured: InterventionLevel | str | None = None
    """The level of a call about which nothing was measured: `confirm`, `notify` or `silent`; the runtime's when None."""

    def __post_init__(self) -> None:
        check_unmeasured(self.unmeasured)
        if self.unmeasured is not None:
            object.__setattr__(self, "unmeasured", str(self.unmeasured))
        if self.floor is not None:
            if str(self.floor) not in _FLOORS:
                raise ValueError(f"floor must be one of {', '.join(_FLOORS)}, not {self.floor!r}")
            object.__setattr__(self, "floor", str(self.floor))
        check_timeout(self.timeout)
        if self.thresholds is not None:
            from grace_kp.confidence import check_thresholds

            check_thresholds(self.thresholds)
        if self.auto_proceed_on_timeout is not None:
            check_auto_proceed(self.auto_proceed_on_timeout)
        if self.group is not None:
            object.__setattr__(self, "group", groups_of(self.group))
        if self.quorum is not None:
            checked_quorum(self.quorum)

    @classmethod
    def of(cls, value: object) -> Self:
        """Return a policy unchanged, for a floor the policy that has it, and for a table its policy; None is the policy without a floor.

        Raises:
            ValueError: an unknown floor, or a table with anything but `floor` and `unmeasured`.
            TypeError: neither a policy, a floor nor a table.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, dict):
            if not value or not {*value} <= {"floor", "unmeasured"}:
                raise ValueError(
                    f"a table of a policy has floor, unmeasured or both, not {', '.join(map(str, value))!r:.60}"
                )
            return cls(**value)
        if value is None or isinstance(value, str):
            return cls(floor=value)
        raise TypeError(f"a policy is a Policy or a floor, not {type(value).__name__}")

    @property
    def version(self) -> str:
        """Twelve-character fingerprint of the policy."""
        who = "" if self.reviewer is None else type(self.reviewer).__qualname__
        text = f"{self.floor}|{self.timeout}|{who}|{self.auto_proceed_on_timeout}|{self.thresholds}"
        if self.group is not None or self.quorum is not None:
            text += f"|{self.group}|{self.quorum}"
        if self.unmeasured is not None:
            text += f"|unmeasured={self.unmeasured}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of this policy; none where it leaves them to the reviewer."""
        return groups_of(self.group)

    @property
    def denies(self) -> bool:
        """Whether the action is blocked without asking."""
        return self.floor == DENY

    def at_least(self, floor: Policy | InterventionLevel | str | None) -> Policy:
        """Return this policy with the stricter of its floor and `floor`."""
        return replace(self, floor=_stricter(self.floor, Policy.of(floor).floor))

    def combined(self, other: Policy) -> Policy:
        """Return both policies at once.

        The stricter floor and the higher quorum hold, only groups that both name may decide, and the action runs without an answer only
        where no policy forbids it. Every other setting is that of `self`, or of `other` where `self` has none.

        Raises:
            ValueError: both name groups, and none in common, so that nobody could decide.
        """
        settings = (self.auto_proceed_on_timeout, other.auto_proceed_on_timeout)
        return Policy(
            floor=_stricter(self.floor, other.floor),
            timeout=self.timeout if self.timeout is not None else other.timeout,
            reviewer=self.reviewer if self.reviewer is not None else other.reviewer,
            auto_proceed_on_timeout=None if settings == (None, None) else False not in settings,
            thresholds=self.thresholds if self.thresholds is not None else other.thresholds,
            group=_groups_of_both(self, other),
            quorum=max(self.quorum or 0, other.quorum or 0) or None,
            unmeasured=stricter_unmeasured(self.unmeasured, other.unmeasured),
        )


def stricter_unmeasured(*stated: str | None) -> str | None:
    """Return the strictest of the levels that are stated; None where none is."""
    return max((level for level in stated if level is not None), key=UNMEASURED.index, default=None)


def strictest_level(
    level: InterventionLevel, policy: Policy, gaps: Sequence[str] = (), reason: str = ""
) -> tuple[InterventionLevel, str]:
    """Return the level after the policy's floor and after gaps in the evidence, and the reason for it.

    Args:
        level: the level of the confidence.
        policy: the action's policy.
        gaps: why evidence is missing or cannot be used; with any, the level is at least CONFIRM.
        reason: the reason for the level of the confidence.
    """
    raised = level
    if policy.floor is not None and not policy.denies:
        raised = raised.at_least(InterventionLevel(policy.floor))
    if raised is not level:
        required = f"the policy requires at least {raised}."
        reason = f"{reason.removesuffix('.')}, but {required}" if reason else f"T{required[1:]}"
    if gaps:
        raised = raised.at_least(InterventionLevel.CONFIRM)
        lacks = "; ".join(gaps)
        reason = (
            f"{reason} Evidence is missing or cannot be used, so the gate requires at least confirm: {lacks}.".strip()
        )
    return raised, reason


def _stricter(first: str | None, second: str | None) -> str | None:
    return max(first, second, key=_RANKS.__getitem__)


def _groups_of_both(first: Policy, second: Policy) -> tuple[str, ...] | None:
    """Return the groups that two policies leave; None where neither names any."""
    if first.group is None or second.group is None:
        return first.groups or second.groups or None
    common = tuple(sorted({*first.groups} & {*second.groups}))
    if not common:
        raise ValueError(
            f"two policies of the action name the groups {', '.join(first.groups)} and {', '.join(second.groups)}, which have none in common, "
            "so nobody could decide; name a common group in both"
        )
    return common


class PolicySet:
    """Policies by action name or glob. An exact name wins over globs, a longer glob over a shorter one, then the stricter.

    That holds within one place. The entries that match an action in several places are combined.

    Raises:
        ValueError: an entry is neither a policy nor a floor; the message names it.
    """

    def __init__(
        self,
        entries: Mapping[str, Policy | str | dict[str, str]] | None = None,
        *places: Mapping[str, Policy | str | dict[str, str]],
    ) -> None:
        self._elsewhere = tuple(PolicySet(place) for place in places if place)
        self._exact: dict[str, Policy] = {}
        self._globs: list[tuple[str, Policy]] = []
        for name, value in (entries or {}).items():
            try:
                policy = Policy.of(value)
            except (ValueError, TypeError) as error:
                raise ValueError(f"policy {name!r}: {error}") from None
            if any(wildcard in name for wildcard in "*?["):
                self._globs.append((name, policy))
            else:
                self._exact[name] = policy

    def entry_for(self, name: str) -> Policy | None:
        """Return the entry that matches the action; None where none does."""
        entry = self._exact.get(name) or self._by_glob(name)
        for place in self._elsewhere:
            other = place.entry_for(name)
            entry = entry.combined(other) if entry and other else entry or other
        return entry

    def for_action(self, name: str, own: Policy | None = None) -> Policy:
        """Return the policy of the action: its own, combined with the entry that matches. The stricter floor holds."""
        entry = self.entry_for(name)
        if own is None:
            return entry or Policy()
        return own if entry is None else own.combined(entry)

    def _by_glob(self, name: str) -> Policy | None:
        matching = [
            (sum(character not in "*?[]" for character in glob), _RANKS[policy.floor], policy)
            for glob, policy in self._globs
            if fnmatch.fnmatchcase(name, glob)
        ]
        return max(matching, key=lambda match: match[:2])[2] if matching else None
