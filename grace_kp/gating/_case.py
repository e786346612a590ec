"""One call of a gated action on its way to a consent, and the consent: what may run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.gating._flow import GateScope
    from grace_kp.gating._identity import Coverage
    from grace_kp.gating._ledger import Entry
    from grace_kp.gating._policy import Policy


class Unknown:
    """Stands for the default of an optional parameter where it is not known. It is neither shown nor checked."""


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(slots=True)
class Case:
    """One call of a gated action."""

    action: str
    signature: inspect.Signature
    bound: inspect.BoundArguments
    hidden: str | None
    """Name of the parameter that is the method's own object, and is not shown."""
    policy: Policy
    scope: GateScope
    entry: dict[str, Any]
    coverage: Coverage
    """What a digest of the arguments covers."""
    types: Callable[[], Mapping[str, Any]] = dict
    """The declared type of each parameter that has one, worked out when a reviewer changes arguments."""
    check: Callable[[Mapping[str, Any]], str] | None = None
    """What is wrong with the arguments beyond the signature; empty where nothing is."""
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

    def shown(self) -> dict[str, Any]:
        """The arguments that a reviewer sees and may change, defaults included."""
        whole = inspect.BoundArguments(self.signature, dict(self.bound.arguments))
        whole.apply_defaults()
        passed, parameters = self.bound.arguments, self.signature.parameters
        return {
            name: value
            for name, value in whole.arguments.items()
            if name != self.hidden and (name in passed or not (parameters[name].kind in _VARIADIC or value is Unknown))
        }


@dataclass(frozen=True, slots=True)
class Consent:
    """The action may run with these arguments; or, with None, it is skipped."""

    bound: inspect.BoundArguments | None
    digest: str
    """Empty where the arguments cannot be checked, which is only so where nobody was asked."""
    modified: bool = False
