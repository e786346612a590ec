"""Render any Python value as a bounded JSON value, without breaking or slowing the program that owns it.

Rendering runs on the agent's thread, so it is bounded in size, depth and time, and it calls as little user code as possible:
containers are read through the built-in types, large objects by their attributes, and only small objects by their own `repr`.
Secrets are removed elsewhere (`redaction`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    TracebackType,
)
from typing import Any, TypeAlias

MAX_TEXT = 8_192
MAX_ITEMS = 100
MAX_DEPTH = 8
MAX_NODES = 500
MAX_REPR_WEIGHT = 4_096  # characters and items below which an object's own repr is called
MAX_KEY = 200
MAX_DIGITS = 1_000
SCALARS = frozenset({str, int, float, bool, NoneType})
"""Types of the values that JSON holds without a container; subclasses are not included."""

# Not through the class: a metaclass may override these names.
class_mro, class_namespace, _type_name, _type_module = (
    type.__dict__[name].__get__ for name in ("__mro__", "__dict__", "__name__", "__module__")
)
Getter: TypeAlias = Callable[[Any], Any]
"""Reads one attribute of an instance where Python stores it."""

HIDDEN = "[hidden]"
"""Replaces a field that its class keeps out of its repr or of its serialised form."""

_PLAIN_TEXT_MODULES = frozenset({"datetime", "decimal", "fractions", "pathlib", "uuid", "ipaddress", "zoneinfo"})
_ARRAY_MODULES = frozenset(
    {"numpy", "torch", "pandas", "polars", "jax", "jaxlib", "tensorflow", "pyarrow", "scipy", "cupy"}
)
_NAMED = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
_OPAQUE = (CodeType, FrameType, TracebackType)


def render(value: Any, max_text: int = MAX_TEXT, *, hides: bool = True) -> Any:
    """Return `value` as a JSON value that later changes of `value` do not alter.

    Strings, numbers, booleans and None stay themselves; strings beyond `max_text` characters are cut visibly. Containers are copied up to
    `MAX_ITEMS` entries per level, `MAX_DEPTH` levels and `MAX_NODES` values in total. Objects become their fields or a short string.
    Fields that their class keeps out of its repr or of its serialised form are named without their values, unless `hides` is False.
    No Exception is raised, whatever the value does.
    """
    kind = type(value)
    if kind is str:
        return value if len(value) <= max_text else cut(value, max_text)
    if value is None or kind is bool:
        return value
    return _Rendering(max_text, hides).of(value, 0)


def render_text(value: object, max_text: int = MAX_TEXT) -> str:
    """Return `value` as a bounded string: a string itself, any other value as compact JSON."""
    rendered = render(value, max_text)
    return rendered if isinstance(rendered, str) else cut(to_text(rendered), max_text)


def to_text(rendered: object) -> str:
    """Return a rendered value as a string: a string itself, any other value as compact JSON."""
    if isinstance(rendered, str):
        return rendered
    if type(rendered) is int:
        return str(rendered)
    import json

    return json.dumps(rendered, ensure_ascii=False, separators=(", ", ": "))


def describe_error(error: BaseException, max_text: int = MAX_TEXT) -> tuple[str, str]:
    """Return the type name and the bounded message of an error, also if its `str` raises.

    A built-in error prints its arguments with their `repr`; arguments that are not plain are rendered instead.
    """
    kind = type(error)
    try:
        args = _error_args(error)
        if kind.__str__ in _BUILT_IN_STR and not all(type(arg) in SCALARS for arg in args):
            message = ", ".join(to_text(render(arg, max_text)) for arg in args[:MAX_ITEMS])
        else:
            message = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001
        message = "<message cannot be read>"
    return _name(kind), cut(message, max_text) if type(message) is str else render_text(message, max_text)


_error_args: Any = BaseException.__dict__["args"].__get__
_BUILT_IN_STR = (BaseException.__str__, KeyError.__str__, object.__str__)


def error_text(error: BaseException, max_text: int = 500) -> str:
    """Return type and message of an error as one bounded string; the type alone if the message is empty."""
    kind, message = describe_error(error, max_text)
    return f"{kind}: {message}" if message else kind


def storable(text: str) -> str:
    """Return a string with question marks for half surrogate pairs, which UTF-8 cannot hold; the same object if it has none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", errors="replace").decode("utf-8")
    return text


def cut(text: str, limit: int) -> str:
    """Return the first `limit` characters of a longer string, with a visible mark of the cut.

    The cut falls on the last word boundary in the second half of the kept text, so that no half of a key or token remains that
    redaction would not recognise. Keys are ASCII: a letter of another script ends a word, too.
    """
    total = len(text)
    if total <= limit:
        return text
    half = limit // 2
    boundary = _LAST_BOUNDARY.match(text, half, limit) or _LAST_OF_NO_KEY.match(text, half, limit)
    end = boundary.end() if boundary is not None else limit
    return f"{text[:end]}… [cut: {end:,} of {total:,} characters kept]"


# Up to the last separator (excluded) or the last character beyond ASCII; else up to the last character that no key contains.
_LAST_BOUNDARY = re.compile(r"(?s:.*)(?:(?=[ \n\t\"',;&])|(?<=[^\x00-\x7f]))")
_LAST_OF_NO_KEY = re.compile(r"(?s:.*)[^\w.~%+/=-]")


class _Rendering:
    """One rendering: the remaining budget, and the containers around the current value."""

    __slots__ = ("hides", "inside", "nodes", "text")

    def __init__(self, max_text: int, hides: bool = True) -> None:
        self.hides = hides
        self.nodes = MAX_NODES
        self.text = max_text
        self.inside: set[int] = set()

    def of(self, value: object, depth: int) -> Any:
        try:
            return self._of(value, depth)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001
            # An exception of the value, SystemExit included, must not reach the agent.
            return f"<{_name(type(value))}: cannot be read: {_name(type(error))}>"

    def _of(self, value: Any, depth: int) -> Any:
        self.nodes -= 1
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, int):
            return _integer(value)
        if issubclass(kind, float):
            number = float.__float__(value)
            return number if number - number == 0 else str(number)
        if issubclass(kind, str):
            return HIDDEN if _name(kind).startswith("Secret") else self._text(str.__getitem__(value, slice(None)))
        if issubclass(kind, bytes | bytearray | memoryview):
            size = value.nbytes if isinstance(value, memoryview) else len(value)
            return repr(bytes(value)) if size <= 64 else f"<{_name(kind)}: {size:,} bytes>"
        return self._composite(value, kind, depth)

    def _text(self, text: str) -> str:
        allowed = max(self.text, 64)
        self.text -= len(text)
        if self.text <= 0:
            self.nodes = 0  # the budget of characters is used up: what follows is only counted
        return text if len(text) <= allowed else cut(text, allowed)

    def _composite(self, value: Any, kind: type, depth: int) -> Any:
        if depth >= MAX_DEPTH or self.nodes <= 0:
            return f"<{_name(kind)}: not shown, too deep>" if depth >= MAX_DEPTH else f"<{_name(kind)}: not shown>"
        identity = id(value)
        if identity in self.inside:
            return f"<{_name(kind)}: contains itself>"
        self.inside.add(identity)
        try:
            if issubclass(kind, dict):
                return self._mapping(dict.items(value), dict.__len__(value), depth)
            if issubclass(kind, list | tuple):
                names = getattr(kind, "_fields", None)
                if issubclass(kind, tuple) and isinstance(names, tuple) and len(names) == len(value):
                    return self._mapping(zip(names, tuple.__iter__(value), strict=True), len(names), depth)
                base: Any = list if issubclass(kind, list) else tuple
                return self._sequence(base.__iter__(value), base.__len__(value), depth)
            if issubclass(kind, set | frozenset):
                return self._sequence(iter(_first(value)), len(value), depth)
            if kind is MappingProxyType:
                return self._mapping(value.items(), len(value), depth)
            return self._object(value, kind, depth)
        finally:
            self.inside.discard(identity)

    def _mapping(self, items: object, size: int, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in _first(items):
            if self.nodes <= 0:
                break
            out[key if type(key) is str and len(key) <= MAX_KEY else _key(key)] = self.of(item, depth + 1)
        if size > len(out):
            out["…"] = f"{size - len(out):,} more"
        return out

    def _sequence(self, items: Any, size: int, depth: int) -> list[Any]:
        out: list[Any] = []
        for item in islice(items, MAX_ITEMS):
            if self.nodes <= 0:
                break
            out.append(self.of(item, depth + 1))
        if size > len(out):
            out.append(f"… {size - len(out):,} more")
        return out

    def _object(self, value: Any, kind: type, depth: int) -> Any:
        if issubclass(kind, BaseException):
            return ": ".join(describe_error(value, MAX_REPR_WEIGHT))
        if issubclass(kind, _NAMED):
            return f"<{_name(kind)} {getattr(value, '__qualname__', None) or getattr(value, '__name__', '?')}>"
        if issubclass(kind, _OPAQUE):
            return f"<{_name(kind)}>"
        try:
            module = _type_module(kind)
        except AttributeError:
            module = ""
        module = module.partition(".")[0] if type(module) is str else ""  # the top-level package
        if module in _PLAIN_TEXT_MODULES:
            return self._text(str(value))
        if module in _ARRAY_MODULES:
            return _array(value, kind)
        return self._own(value, kind, module, depth)

    def _own(self, value: Any, kind: type, module: str, depth: int) -> Any:
        """Render an object of an unknown class: an enum, a record, or another object."""
        fields = stored_fields(value, kind)
        if fields and self.hides and (hidden := hidden_fields(kind)):
            fields |= dict.fromkeys(hidden & fields.keys(), HIDDEN)
        own = class_namespace(kind)
        is_record = "__dataclass_fields__" in own or "__attrs_attrs__" in own or hasattr(kind, "__pydantic_fields__")
        if fields is not None and is_record:
            return self._mapping(fields.items(), len(fields), depth)
        if "_member_map_" in own and "_name_" in (fields or ()):
            return f"{_name(kind)}.{(fields or {})['_name_']}"
        custom = getattr(kind, "__repr__", None) is not object.__repr__
        if custom and not hasattr(kind, "__iter__") and _weight(fields) <= MAX_REPR_WEIGHT:
            return self._text(repr(value))
        if kind is range:
            return repr(value)
        is_sized = custom and fields is None and hasattr(kind, "__len__")
        if is_sized and module in {"collections", "builtins", "array", "types", "re"}:
            return self._sequence(iter(_first(value)), len(value), depth)
        if fields and not _name(kind).startswith("Secret"):
            return {"@class": _name(kind), **self._mapping(fields.items(), len(fields), depth)}
        return f"<{_name(kind)}>"


def _first(items: Any) -> list[Any]:
    """Return the first items; try again if another thread changes the container meanwhile."""
    for _ in range(50):
        try:
            return list(islice(items, MAX_ITEMS))
        except RuntimeError:
            continue
    return list(items)[:MAX_ITEMS]  # without a GIL only the copy of a whole dict or set is made in one step


def dictionary_getter(kind: type) -> Getter | None:
    """Return a function that reads the attributes of instances past a redefined `__dict__`; None where they have no dictionary."""
    for owner in class_mro(kind):
        found = class_namespace(owner).get("__dict__")
        if type(found) is GetSetDescriptorType or type(found) is MemberDescriptorType:
            return found.__get__
    return None


def slots_of(owner: type) -> dict[str, Getter]:
    """Return a function for each slot of the class itself that reads it; bases are left out."""
    return {
        name: member.__get__
        for name, member in class_namespace(owner).items()
        if type(member) is MemberDescriptorType and name != "__dict__"
    }


def stored_fields(value: object, kind: type) -> dict[str, Any] | None:
    """Return the instance attributes of an object without running its code or that of its class; None if it has none."""
    fields: dict[str, Any] = {}
    read = dictionary_getter(kind)
    own = None if read is None else read(value)
    if found := own is not None:
        fields = dict.copy(own) if dict.__len__(own) <= MAX_ITEMS else dict(_first(dict.items(own)))
    for base in class_mro(kind)[:-1]:  # all but `object`
        namespace = class_namespace(base)
        slots = namespace.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = namespace.get(name)
            if name[:2] == "__" or type(member) is not MemberDescriptorType:
                continue
            found = True
            try:
                fields.setdefault(name, member.__get__(value))
            except AttributeError:
                continue
    return fields if found else None


def hidden_fields(kind: type) -> set[str]:
    """Return the fields that a dataclass, attrs class or pydantic model keeps out of its repr or of its serialised form."""
    hidden: set[str] = set()
    for base in class_mro(kind)[:-1]:  # all but `object`
        space = class_namespace(base)
        if "__dataclass_fields__" in space:
            hidden.update([name for name, field in space["__dataclass_fields__"].items() if not field.repr])
        if "__attrs_attrs__" in space:  # its `repr` may also be a function that masks the value
            hidden.update([field.name for field in space["__attrs_attrs__"] if field.repr is not True])
        if "__pydantic_fields__" in space:
            found = space["__pydantic_fields__"].items()
            hidden.update([name for name, field in found if not field.repr or field.exclude])
    return hidden


def _weight(fields: dict[str, Any] | None) -> int:
    """Estimate the size of a repr from the characters and items of the attributes, one level deep."""
    weight = 0
    for item in (fields or {}).values():
        kind = type(item)
        if kind is list or kind is tuple or kind is set or kind is frozenset or kind is dict:
            parts = dict.values(item) if kind is dict else item
            weight += 40 * len(item) + sum(_part_weight(part) for part in _first(parts))
        else:
            weight += _part_weight(item)
    return weight


_PLAIN_REPR: Any = object.__repr__


def _part_weight(part: Any) -> int:
    kind = type(part)
    if kind is str or kind is bytes or kind is bytearray:
        return len(part)
    # A custom repr may be long or slow; only objects that print a plain address are light.
    return 20 if kind in SCALARS or kind.__repr__ is _PLAIN_REPR else MAX_REPR_WEIGHT // 4


def _name(kind: type) -> str:
    name = _type_name(kind)
    return name if type(name) is str else "object"


def _integer(value: int) -> Any:
    plain = int(value)
    # Python refuses to print integers beyond a few thousand digits; JSON readers fail far earlier.
    return plain if plain.bit_length() <= 3 * MAX_DIGITS else f"<int: {plain.bit_length():,} bits>"


def _array(value: object, kind: type) -> Any:
    """Render arrays and tables by their shape, and their scalars as plain numbers."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape == () and hasattr(value, "item"):
        item = value.item()
        if isinstance(item, bool | int | str):
            return item
        return item if isinstance(item, float) and item - item == 0 else str(item)[:MAX_KEY]
    parts = [f"shape={tuple(shape)}"] if isinstance(shape, tuple | list) else []
    if dtype is not None:
        parts.append(f"dtype={str(dtype)[:40]}")
    return f"<{_name(kind)} {' '.join(parts)}>".replace(" >", ">")


def _key(key: Any) -> str:
    kind = type(key)
    if kind is str:
        return cut(key, MAX_KEY)
    if kind in SCALARS:
        return str(_integer(key)) if kind is int else str(key)
    return cut(to_text(_Rendering(MAX_KEY).of(key, MAX_DEPTH - 2)), MAX_KEY)
