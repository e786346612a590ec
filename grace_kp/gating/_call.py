"""One call of an action: the values that consent, digest and a reviewer's changes are about. It holds no policy and no decision."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Unknown:
    """Stands for the default of an optional parameter where it is not known. It is neither shown nor checked."""


@dataclass(slots=True)
class Call:
    """One call of an action with its arguments."""

    action: str
    """Name of the action."""
    signature: inspect.Signature
    bound: inspect.BoundArguments
    hidden: str | None = None
    """Name of the parameter that is the method's own object, and is not shown."""
    types: Callable[[], Mapping[str, object]] = dict
    """Resolves the declared type of each parameter that has one. Called when a reviewer changes arguments."""
    check: Callable[[Mapping[str, object]], str] | None = None
    """Returns what is wrong with arguments beyond the signature; empty where nothing is."""
    injected: frozenset[str] = frozenset()
    """Parameters that a framework fills in. They are no arguments of the call, and are not shown."""

    def whole(self, bound: inspect.BoundArguments | None = None) -> inspect.BoundArguments:
        """Return the arguments with defaults; of the call, or of other arguments in their place."""
        whole = inspect.BoundArguments(self.signature, dict((bound or self.bound).arguments))
        whole.apply_defaults()
        return whole

    def shown(self, bound: inspect.BoundArguments | None = None) -> dict[str, object]:
        """Return the arguments that a reviewer sees and may change, defaults included; of the call, or of other arguments in their place."""
        passed, parameters = (bound or self.bound).arguments, self.signature.parameters
        return {
            name: value
            for name, value in self.whole(bound).arguments.items()
            if name != self.hidden
            and name not in self.injected
            and (name in passed or not (parameters[name].kind in _VARIADIC or value is Unknown))
        }
