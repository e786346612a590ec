"""What is inside of values of the types that are known by name: containers, buffers, dates, XML elements and the like.

A type that is not listed here and keeps anything outside of its attributes cannot be checked. Types of packages are looked up only where
the package has been imported.
"""

from __future__ import annotations

import builtins
import gc
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

IDENTITY = b""
"""Instead of contents: the value counts by which one it is."""

# From a value, and a function that takes bytes off the budget, to what is written of the value itself and the values inside of it.
Reader: TypeAlias = Callable[[Any, Callable[[int], None]], "Contents"]


class Contents(NamedTuple):
    """What is in a value."""

    data: bytes
    parts: Sequence[Any] = ()
    unordered: bool = False
    """The parts have no order, as in a set."""


class OwnObject:
    """The object whose method is called: it is no argument, and counts by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Identified:
    """An argument that counts by what the user named with `identity=`."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: type, value: Any) -> None:
        self.kind = f"{kind.__module__}.{kind.__qualname__}"
        self.value = value


def known_types() -> dict[type, Reader | None]:
    """How to read each type that is known here and has been imported; None for a type that keeps everything in its attributes."""
    known: dict[type, Reader | None] = dict(_BUILT_IN)
    for (module, name), reader in _IMPORTED.items():
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type):
            known[found] = reader
    return known


def is_complete(base: type, kind: type) -> bool:
    """Whether the reader of a base reads all of a subclass that is written in C: numpy's kinds of numbers, and named tuples such as `os.stat_result`."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and base in (numpy.generic, numpy.dtype):
        return kind.__module__.startswith("numpy")
    return base is tuple and "n_sequence_fields" in kind.__dict__


def _by_identity(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    return Contents(IDENTITY)


def _by_text(write: Callable[[Any], str]) -> Reader:
    """For immutable values: a text that says all there is."""

    def read(value: Any, take: Callable[[int], None]) -> Contents:
        text = write(value).encode("utf-8", "surrogatepass")
        take(len(text))
        return Contents(b"v%d:" % len(text) + text)

    return read


def _by_parts(*names: str) -> Reader:
    """For values with a fixed number of parts, read as attributes that the type defines in C."""

    def read(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
        return Contents(b"t%d;" % len(names), [getattr(value, name) for name in names])

    return read


def _by_reference(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    """For views: the objects that they refer to, without running code of theirs."""
    parts = gc.get_referents(value)
    return Contents(b"r%d;" % len(parts), parts)


def _dict(value: dict[Any, Any], take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    items = list(dict.items(value))
    if all(type(key) is str for key, _ in items):
        items.sort(key=lambda item: item[0])
    return Contents(b"d%d;" % len(items), [part for item in items for part in item])


def _ordered_dict(value: dict[Any, Any], take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    # In its own order, which `dict.items` does not follow.
    keys = list(sys.modules["collections"].OrderedDict.__iter__(value))
    return Contents(b"D%d;" % len(keys), [part for key in keys for part in (key, dict.__getitem__(value, key))])


def _default_dict(value: Any, take: Callable[[int], None]) -> Contents:
    data, parts, _ = _dict(value, take)
    return Contents(b"f" + data, [value.default_factory, *parts])


def _list(value: list[Any], take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    parts = list(list.__iter__(value))
    return Contents(b"l%d;" % len(parts), parts)


def _tuple(value: tuple[Any, ...], take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    parts = list(tuple.__iter__(value))
    return Contents(b"l%d;" % len(parts), parts)


def _set(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    parts = list((set if isinstance(value, set) else frozenset).__iter__(value))
    return Contents(b"e%d;" % len(parts), parts, unordered=True)


def _deque(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    kind = sys.modules["collections"].deque
    parts = list(kind.__iter__(value))
    return Contents(b"q%d;" % len(parts), [kind.maxlen.__get__(value), *parts])


def _bytes(value: Any, take: Callable[[int], None]) -> Contents:
    take(len(value))
    data = bytes(memoryview(value))
    return Contents(b"b%d:" % len(data) + data)


def _memoryview(value: memoryview, take: Callable[[int], None]) -> Contents:
    take(value.nbytes)
    return Contents(f"m{value.format}{value.shape}:".encode() + value.tobytes())


def _array(value: Any, take: Callable[[int], None]) -> Contents:
    take(len(value) * value.itemsize)
    return Contents(f"m{value.typecode}{len(value)}:".encode() + memoryview(value).tobytes())


def _buffer_file(value: Any, take: Callable[[int], None]) -> Contents:
    kind = sys.modules["io"].BytesIO
    view = kind.getbuffer(value)
    take(view.nbytes)
    return Contents(b"m%d,%d:" % (view.nbytes, kind.tell(value)) + view.tobytes())


def _text_file(value: Any, take: Callable[[int], None]) -> Contents:
    kind = sys.modules["io"].StringIO
    text = kind.getvalue(value)
    take(len(text))
    return Contents(b"m%d;" % kind.tell(value), [text])


def _function(value: types.FunctionType, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    """By identity, and by the data that it holds itself: containers in its closure and its default values."""
    held = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    held += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return Contents(IDENTITY, [item for item in held if type(item) in _DATA])


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _exception(value: BaseException, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    base = next(kind for kind in type(value).__mro__ if kind.__module__ == "builtins")
    members = [
        (name, member.__get__(value))
        for kind in base.__mro__
        for name, member in kind.__dict__.items()
        if type(member) is types.MemberDescriptorType
    ]
    return Contents(b"z;", [BaseException.__dict__["args"].__get__(value), value.__cause__, value.__context__, members])


def _partial(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    return Contents(b"t3;", [value.func, value.args, value.keywords])


def _reduced(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    """For immutable values of the standard library that say how they were made."""
    return Contents(b"t1;", [value.__reduce__()[1:]])


def _weak_reference(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    return Contents(b"t1;", [sys.modules["weakref"].ref.__call__(value)])


def _date_and_time(value: Any, take: Callable[[int], None]) -> Contents:
    kind = next(kind for kind in type(value).__mro__ if kind.__module__ == "datetime")
    text = f"{kind.isoformat(value)}#{value.fold}".encode()  # type: ignore[attr-defined]
    take(len(text))
    return Contents(b"v%d:" % len(text) + text, [value.tzinfo])


def _zone(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    # A zone that was read from a file has no name.
    return Contents(IDENTITY) if value.key is None else Contents(b"t1;", [value.key])


def _element(value: Any, take: Callable[[int], None]) -> Contents:  # noqa: ARG001
    return Contents(b"t5;", [value.tag, value.text, value.tail, value.attrib, list(value)])


def _numpy_array(value: Any, take: Callable[[int], None]) -> Contents:
    numpy = sys.modules["numpy"]
    kind = numpy.ndarray if isinstance(value, numpy.ndarray) else numpy.generic
    dtype = str(value.dtype if kind is numpy.generic else kind.dtype.__get__(value)).encode()
    if value.dtype.hasobject:
        return Contents(b"A" + repr(value.shape).encode() + dtype, [kind.tolist(value)])
    take(value.nbytes)
    return Contents(b"a" + repr(value.shape).encode() + kind.tobytes(value) + dtype)


# What a function may hold itself and someone else may change.
_DATA: frozenset[type] = frozenset({list, dict, set, bytearray})

_BUILT_IN: dict[type, Reader | None] = {
    dict: _dict,
    list: _list,
    tuple: _tuple,
    set: _set,
    frozenset: _set,
    str: _by_text(str.__str__),
    int: _by_text(lambda value: int.__format__(value, "x")),
    float: _by_text(float.__repr__),
    complex: _by_text(complex.__repr__),
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _memoryview,
    range: _by_parts("start", "stop", "step"),
    slice: _by_parts("start", "stop", "step"),
    type(Ellipsis): _by_identity,
    type(NotImplemented): _by_identity,
    types.SimpleNamespace: None,
    types.MappingProxyType: _by_reference,
    type({}.keys()): _by_reference,
    type({}.values()): _by_reference,
    type({}.items()): _by_reference,
    types.FunctionType: _function,
    types.MethodType: _by_parts("__func__", "__self__"),
    types.BuiltinFunctionType: _by_parts("__qualname__", "__self__"),
    types.MethodWrapperType: _by_parts("__qualname__", "__self__"),
    types.MethodDescriptorType: _by_identity,
    types.WrapperDescriptorType: _by_identity,
    types.ModuleType: _by_identity,
    types.CodeType: _by_identity,
    types.GenericAlias: _by_parts("__origin__", "__args__"),
    types.UnionType: _by_parts("__args__"),
    **{
        kind: _exception
        for kind in vars(builtins).values()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    },
}

_IMPORTED: dict[tuple[str, str], Reader | None] = {
    ("collections", "deque"): _deque,
    ("collections", "OrderedDict"): _ordered_dict,
    ("collections", "defaultdict"): _default_dict,
    ("array", "array"): _array,
    ("io", "BytesIO"): _buffer_file,
    ("io", "StringIO"): _text_file,
    ("functools", "partial"): _partial,
    ("functools", "_lru_cache_wrapper"): _by_identity,
    ("operator", "itemgetter"): _reduced,
    ("operator", "attrgetter"): _reduced,
    ("operator", "methodcaller"): _reduced,
    ("weakref", "ref"): _weak_reference,
    ("datetime", "date"): _by_text(lambda value: sys.modules["datetime"].date.isoformat(value)),
    ("datetime", "datetime"): _date_and_time,
    ("datetime", "time"): _date_and_time,
    ("datetime", "timedelta"): _by_parts("days", "seconds", "microseconds"),
    ("datetime", "timezone"): _by_text(repr),
    ("zoneinfo", "ZoneInfo"): _zone,
    ("pydantic_core", "TzInfo"): _by_text(lambda value: str(value.utcoffset(None))),
    ("pydantic_core", "Url"): _by_text(str),
    ("pydantic_core", "MultiHostUrl"): _by_text(str),
    ("decimal", "Decimal"): _by_text(lambda value: sys.modules["decimal"].Decimal.__str__(value)),
    ("pathlib", "PurePath"): _by_text(lambda value: sys.modules["pathlib"].PurePath.__str__(value)),
    ("re", "Pattern"): _by_parts("pattern", "flags"),
    ("re", "Match"): _by_parts("re", "string", "regs"),
    ("xml.etree.ElementTree", "Element"): _element,
    ("numpy", "ndarray"): _numpy_array,
    ("numpy", "generic"): _numpy_array,
    ("numpy", "dtype"): _by_text(repr),
    ("logging", "Logger"): _by_identity,
    ("_thread", "LockType"): _by_identity,
    ("_thread", "RLock"): _by_identity,
}
