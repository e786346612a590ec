"""Instances of enums, data classes, pydantic models, addresses and URLs: their state, and how they are built again without running code of users.

A class is found among those that a parameter declares, and never by importing a stored name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import typing
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = {"builtins", "typing", "types", "abc", "collections", "collections.abc", "enum"}


def qualified_name(kind: type) -> str:
    """Return module and name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def state_of(value: object) -> dict[str, object] | None:
    """Return the parts of an instance that make it what it is; None for a type that is none of these.

    An instance that holds more than its declared fields has no state that could be complete, so None as well. Values of a
    `functools.cached_property` do not count.
    """
    kind = type(value)
    if isinstance(value, enum.Enum):
        return {"name": value.name, "value": value.value}
    if _is_text(kind):
        return {"value": str(value)}
    names = _field_names(kind)
    if names is None or not _is_plain(kind):
        return None
    held = {name: item for name, item in _attributes(value).items() if not _is_cached(kind, name)}
    if not held.keys() <= set(names):
        return None
    if not is_model(kind):
        return {"fields": {name: object.__getattribute__(value, name) for name in names}}
    state: dict[str, object] = {"fields": held, "set": sorted(getattr(value, "__pydantic_fields_set__", ()))}
    for part in ("extra", "private"):
        if more := getattr(value, f"__pydantic_{part}__", None):
            state[part] = dict(more)
    return state


def restore(kind: type, state: dict[str, Any]) -> object:
    """Return an instance of the class with this state. Neither `__init__` nor a validator runs.

    The caller compares the state of the result with the state that was asked for: a class may have changed meanwhile.

    Raises:
        ValueError: the state is none of this class.
    """
    if issubclass(kind, enum.Enum):
        member = kind.__members__.get(str(state.get("name")))
        return member if member is not None else kind(state.get("value"))
    if _is_text(kind):
        read: Any = kind
        return read(state.get("value"))
    names = _field_names(kind)
    fields = state.get("fields")
    if names is None or not isinstance(fields, dict) or fields.keys() != set(names):
        raise ValueError(f"the fields of {qualified_name(kind)} are not those that were kept")
    instance: Any = object.__new__(kind)
    if not is_model(kind):
        for name, value in fields.items():
            object.__setattr__(instance, name, value)
        return instance
    from pydantic import BaseModel

    has_extra = kind.model_config.get("extra") == "allow"
    private: dict[str, Any] | None = {} if kind.__private_attributes__ else None
    BaseModel.__setstate__(
        instance,
        {
            "__dict__": fields,
            "__pydantic_fields_set__": set(state.get("set", ())),
            "__pydantic_extra__": state.get("extra", {} if has_extra else None),
            "__pydantic_private__": state.get("private", private),
        },
    )
    return instance


def _is_text(kind: type) -> bool:
    """Return whether a text holds everything about an instance: an IP address or network, or a URL of pydantic's."""
    return kind.__module__ == "ipaddress" or (
        kind.__module__ == "pydantic.networks" and hasattr(kind, "unicode_string")
    )


def is_model(kind: type) -> typing.TypeGuard[Any]:
    """Return whether a class is a pydantic model; pydantic is not loaded for the answer."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def classes_in(declared: object) -> dict[str, set[type]]:
    """Return the classes that a declared type contains, with the types of their fields and their loaded subclasses, by qualified name."""
    found: dict[str, set[type]] = {}
    seen: set[int] = set()
    stack = [declared]
    while stack:
        current: Any = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, enum.Enum):  # inside of Literal
            current = type(current)
        if isinstance(current, type) and typing.get_origin(current) is None:
            if current.__module__ not in _PLAIN:
                found.setdefault(qualified_name(current), set()).add(current)
                stack.extend(type.__subclasses__(current))
                stack.extend(_field_types(current))
        else:
            stack.extend(_inside(current))
    return found


def _inside(declared: Any) -> Iterator[object]:
    if hasattr(declared, "__metadata__"):  # Annotated: the rest is no type
        yield declared.__origin__
        return
    yield from typing.get_args(declared)
    for name in ("__supertype__", "__value__", "__bound__"):  # NewType, an alias, a type variable
        if not isinstance(declared, type) and (inner := getattr(declared, name, None)) is not None:
            yield inner
    if (origin := typing.get_origin(declared)) is not None:
        yield origin


def _field_types(kind: Any) -> list[object]:
    if is_model(kind):
        return [field.annotation for field in kind.model_fields.values()]
    if not (dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)):
        return []
    try:
        return list(typing.get_type_hints(kind).values())
    except (NameError, AttributeError, TypeError, SyntaxError):
        return []  # names that only a type checker knows


def _field_names(kind: type) -> list[str] | None:
    if is_model(kind):
        return list(kind.model_fields)
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None


def _is_plain(kind: type) -> bool:
    """Whether instances have no contents of a built-in type, as those of a data class derived from dict would."""
    try:
        object.__new__(kind)
    except TypeError:
        return False
    return True


def _attributes(value: object) -> dict[str, object]:
    return dict(getattr(value, "__dict__", {}))


def _is_cached(kind: type, name: str) -> bool:
    return any(isinstance(owner.__dict__.get(name), functools.cached_property) for owner in kind.__mro__)
