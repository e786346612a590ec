"""Sealed parameters: their values never reach a recording. A gate names them; whatever is recorded of the call has a mark in their place.

Elsewhere in the trace the values may come up again, in a result or in the message of an error. There they are removed as texts, from every run
around the gated call and inside of it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.record._events import SEALED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Mask: TypeAlias = "Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]"

_NAMES, _AGAIN = "__grace_sealed__", "__grace_again__"


def seal(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Mark a function, and so all that wrap it from now on: these parameters are not recorded; return the function."""
    if names := tuple(names):
        setattr(function, _NAMES, (*sealed_by(function), *names))
    return function


def sealed_by(function: object) -> tuple[str, ...]:
    """Return the parameters of a function that are not recorded."""
    found: tuple[str, ...] = getattr(function, _NAMES, ())
    return found


def can_seal(recorded: Any, again: Callable[[tuple[str, ...]], Any]) -> None:
    """Note how a recorded function is built once more with sealed parameters, should a gate be put around it."""
    setattr(recorded, _AGAIN, (recorded.__wrapped__, again))


def resealed(function: Any, names: tuple[str, ...]) -> Any:
    """Return a function that does not record these parameters, if it is a recorded one; else the function itself."""
    built: Any = getattr(function, _AGAIN, None)
    # What wraps a recorded function has its attributes, too, and does more than that.
    return (
        built[1](names)
        if names and built is not None and built[0] is getattr(function, "__wrapped__", None)
        else function
    )


def mask_of(function: Any, sealed: Iterable[str] = ()) -> Mask | None:
    """Return what replaces the sealed arguments of a call; None where none are sealed.

    Args:
        function: the function that is recorded.
        sealed: parameters beside those that a gate inside of it has named.
    """
    names = (*sealed_by(function), *sealed)
    if not names:
        return None
    parameters = inspect.signature(function).parameters
    by_position = [
        item for item in parameters.values() if item.kind in {item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD}
    ]
    places = {place for place, item in enumerate(by_position) if item.name in names}
    rest = {item.kind: item.name in names for item in parameters.values()}
    hides_more, hides_others = (
        rest.get(kind, False) for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    )

    def mask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def is_hidden(place: int) -> bool:
            return place in places or (hides_more and place >= len(by_position))

        return (
            tuple(SEALED if is_hidden(place) else value for place, value in enumerate(args)),
            {
                name: SEALED if name in names or (hides_others and name not in parameters) else value
                for name, value in kwargs.items()
            },
        )

    return mask
