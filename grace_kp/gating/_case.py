"""One call of a gated action on its way to a consent, and the consent: what may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.gating._call import Call

if TYPE_CHECKING:
    import inspect

    from grace_kp.gating._flow import GateScope
    from grace_kp.gating._identity import Coverage
    from grace_kp.gating._ledger import Entry
    from grace_kp.gating._policy import Policy


@dataclass(slots=True, kw_only=True)
class Case(Call):
    """One call of a gated action."""

    policy: Policy
    scope: GateScope
    entry: dict[str, Any]
    coverage: Coverage
    """What a digest of the arguments covers."""
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used, as `assess` found it; with any, the level is at least CONFIRM."""
    kept: Entry | None = None
    """The ledger's entry, where the program around may be run again."""

    def digest(self, bound: inspect.BoundArguments | None = None, *, lasting: bool = False) -> str:
        """The digest of the call's arguments, or of those in their place.

        Raises:
            NotCheckable: a change of an argument would go unnoticed.
        """
        return self.coverage.digest((bound or self.bound).arguments, lasting=lasting)


@dataclass(frozen=True, slots=True)
class Consent:
    """The action may run with these arguments; or, with None, it is skipped."""

    bound: inspect.BoundArguments | None
    digest: str
    """Empty where the arguments cannot be checked, which is only so where nobody was asked."""
    modified: bool = False
