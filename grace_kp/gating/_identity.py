"""Coverage of the digest of a gated call: its arguments, or what identifies them according to the user."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.errors import GateError
from grace_kp.gating._call import Unknown
from grace_kp.gating._contents import Identified, OwnObject
from grace_kp.gating._digest import NotCheckable, digest_of
from grace_kp.gating._instance import qualified_name
from grace_kp.trace import SCALARS, error_text

if TYPE_CHECKING:
    import inspect

Identifier: TypeAlias = str | Callable[[Any], object]
"""The name of an attribute (dots lead further in), or a callable from the value to what identifies it."""

OWN = "self"
"""Name of the object of a bound method, or of a callable object."""
_UNCHANGEABLE = SCALARS | {complex, bytes}


@dataclass(frozen=True, slots=True)
class Owner:
    """The object whose method is called."""

    name: str
    """Its name among the arguments."""
    stands_for: Identified | OwnObject
    """What it counts by."""

    @property
    def identity(self) -> dict[str, object] | None:
        """What identifies it in every process: its class and what `identity` names, or the class that it is itself; None where nothing does."""
        if isinstance(self.stands_for, Identified):
            return {"type": self.stands_for.kind, "identity": self.stands_for.value}
        own = self.stands_for.value
        return {"class": qualified_name(own)} if isinstance(own, type) else None

    def digest(self, *, lasting: bool = False) -> str:
        """Return the digest that finds out a change of it."""
        return digest_of({self.name: self.stands_for}, lasting=lasting)


class Coverage:
    """The arguments, defaults and identities that the digests of an action cover.

    The object whose method is called is no argument: it counts by class and identity, or by what `identity` names. Default values that
    could be changed count like arguments.

    Args:
        action: the function, method or callable object; None where it is not known.
        signature: its signature.
        own: name of the parameter that is the method's own object.
        identity: what identifies the method's own object, or arguments by name.
        leave_out: parameters that carry no meaning, and may change.

    Raises:
        GateError: `identity` names no parameter of the action, or is neither a name nor a callable.
    """

    def __init__(
        self,
        action: Callable[..., object] | None,
        signature: inspect.Signature,
        own: str | None,
        identity: Identifier | Mapping[str, Identifier] | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        self._own = own
        self._leave_out = leave_out
        self._owner = None if own is not None else _owner(action)
        self._defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not parameter.empty
            and parameter.default is not Unknown
            and type(parameter.default) not in _UNCHANGEABLE
        }
        called = getattr(action, "__qualname__", type(action).__name__)
        if identity is not None and not isinstance(identity, Mapping):
            if own is None and self._owner is None:
                raise GateError(
                    f"identity={identity!r:.60} names what identifies a method's own object, and {called} has none; "
                    "use a mapping from parameter name to attribute or callable"
                )
            identity = {own or OWN: identity}
        known = [*signature.parameters, *([] if self._owner is None else [OWN])]
        self._identifiers: dict[str, Callable[[Any], object]] = {}
        for name, identifier in (identity or {}).items():
            if name not in known:
                raise GateError(
                    f"identity names {name!r:.60}, and {called} has no such parameter; it has {', '.join(known) or 'none'}"
                )
            self._identifiers[name] = _reader_of(name, identifier)

    def owner(self, arguments: Mapping[str, object]) -> Owner | None:
        """Return the object whose method a call with these arguments is of; None for functions.

        Raises:
            NotCheckable: what identifies it cannot be read.
        """
        if self._own is not None and self._own in arguments:
            name, own = self._own, arguments[self._own]
        elif self._owner is not None:
            name, own = OWN, self._owner
        else:
            return None
        identify = self._identifiers.get(name)
        return Owner(name, OwnObject(own) if identify is None else _identified(name, own, identify))

    def digest(self, arguments: Mapping[str, object], *, lasting: bool = False, ordered: bool | None = None) -> str:
        """Return the SHA-256 of what a call with these arguments, by parameter name, would run with.

        Raises:
            NotCheckable: an argument has contents that cannot be seen, or what identifies it cannot be read.
        """
        covered = {**self._defaults, **arguments}
        if self._owner is not None and OWN in self._identifiers:
            covered[OWN] = self._owner
        elif self._own is not None and self._own in covered and self._own not in self._identifiers:
            covered[self._own] = OwnObject(covered[self._own])
        for name, identify in self._identifiers.items():
            if name in covered:
                covered[name] = _identified(name, covered[name], identify)
        for name in self._leave_out:
            covered.pop(name, None)
        return digest_of(covered, lasting=lasting, ordered=ordered)


def _owner(action: Callable[..., object] | None) -> object | None:
    """The object behind a bound method or a callable object."""
    if isinstance(action, types.MethodType):
        return action.__self__
    return None if isinstance(action, types.FunctionType | types.BuiltinFunctionType | functools.partial) else action


def _reader_of(name: str, identifier: object) -> Callable[[Any], object]:
    if isinstance(identifier, str) and all(part.isidentifier() for part in identifier.split(".")):
        return operator.attrgetter(identifier)
    if callable(identifier):
        return identifier
    raise GateError(f"identity of {name!r} must be the name of an attribute or a callable, not {identifier!r:.60}")


def _identified(name: str, value: object, identify: Callable[[Any], object]) -> Identified:
    try:
        return Identified(type(value), identify(value))
    except Exception as error:
        problem = f"cannot be identified: identity= failed with {error_text(error)}"
        raise NotCheckable(problem, argument=name) from error
