"""How to read the contents of types that are known by name, and where Python keeps the attributes of all others.

A type that is not listed here and keeps anything outside of its attributes cannot be checked. Types of packages are looked up only where
the package has been imported. Attributes and cells are read where Python stores them: no code of the objects runs, and nothing is copied.
"""

from __future__ import annotations

import builtins
import functools
import gc
import io
import operator
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from grace_kp.trace import dictionary_getter, slots_of

if TYPE_CHECKING:
    import array
    import datetime
    import zoneinfo
    from collections.abc import Mapping
    from xml.etree.ElementTree import Element

    import numpy


_HEAP_TYPE = 1 << 9
_POINTER = 8


def classes_above(base: type, kind: type) -> list[type]:
    """Return the classes of `kind` that are none of `base`."""
    return [owner for owner in kind.__mro__ if owner not in base.__mro__]


def is_transparent(kind: type, base: type = object) -> bool:
    """Whether slots and dictionary hold everything that instances of `kind` have beyond those of `base`.

    That is so where the classes above the base are written in Python and nothing else makes an instance larger.
    """
    above = classes_above(base, kind)
    slots = sum(len(slots_of(owner)) for owner in above)
    weak = kind.__weakrefoffset__ > 0 and not base.__weakrefoffset__
    # A dictionary in front of the object is not part of its size; one behind a varying number of items is.
    dictionary = not base.__dictoffset__ and (kind.__dictoffset__ > 0 or kind.__dictoffset__ == -_POINTER)
    return (
        all(owner.__flags__ & _HEAP_TYPE for owner in above)
        and kind.__basicsize__ - base.__basicsize__ == _POINTER * (slots + weak + dictionary)
        and not (kind.__dictoffset__ and dictionary_getter(kind) is None)
    )


def closure_of(function: object) -> Mapping[str, object]:
    """Return the values that a function holds in its closure, by name. Cells that are not filled yet are left out."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def qualified_name(kind: type) -> str:
    """Return module and name of a class, the same in every version of Python."""
    module = "pathlib" if kind.__module__ == "pathlib._local" else kind.__module__  # as Python 3.13 names it
    return f"{module}.{kind.__qualname__}"


class Contents(NamedTuple):
    """The contents of a value."""

    data: bytes
    """The value's own data as bytes; empty where it counts by identity."""
    parts: Sequence[object] = ()
    """The values inside of it."""
    unordered: bool = False
    """The parts have no order, as in a set."""


class Buffer(NamedTuple):
    """How to read a value that is copied as a whole: its size in bytes is asked first."""

    size: Callable[[Any], int]
    read: Callable[[Any], Contents]


Reader: TypeAlias = Callable[[Any], Contents] | Buffer | None
"""How to read the values of a type; None where their attributes are all there is."""

IDENTITY = b""
"""Instead of data: the value counts by which object it is."""


class OwnObject:
    """Stands for the object whose method is called: it is no argument, and counts by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Identified:
    """Stands for an argument that counts by what the user named with `identity=`."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: type, value: object) -> None:
        self.kind = qualified_name(kind)
        self.value = value


def known_types() -> dict[type, Reader]:
    """Return how to read each type that is known here and has been imported."""
    known: dict[type, Reader] = dict(_BUILT_IN)
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


def dict_contents(value: dict[Any, Any], *, ordered: bool = True) -> Contents:
    """Read a dict: its keys and values in turn; sorted by key where that is wanted and all keys are texts."""
    items = list(dict.items(value))
    if not ordered and all(type(key) is str for key, _ in items):
        items.sort(key=lambda item: item[0])
    return Contents(b"d%d;" % len(items), [part for item in items for part in item])


def _by_identity(_: object) -> Contents:
    return Contents(IDENTITY)


def _by_text(write: Callable[[Any], str]) -> Reader:
    """For immutable values that are complete in a text."""

    def read(value: object) -> Contents:
        text = write(value).encode("utf-8", "surrogatepass")
        return Contents(b"v%d:" % len(text) + text)

    return read


def _by_parts(*names: str) -> Reader:
    return lambda value: Contents(b"t%d;" % len(names), [getattr(value, name) for name in names])


def _by_items(kind: type, letter: bytes, *, unordered: bool = False) -> Reader:
    """For containers, read past what subclasses make of iteration."""

    def read(value: object) -> Contents:
        parts = list(kind.__iter__(value))  # type: ignore[attr-defined]
        return Contents(b"%b%d;" % (letter, len(parts)), parts, unordered)

    return read


def _by_reduction(value: object) -> Contents:
    return Contents(b"t1;", [value.__reduce__()[1:]])


def _by_reference(value: object) -> Contents:
    """For views: the objects that they refer to, without running code of theirs."""
    parts = gc.get_referents(value)
    return Contents(b"r%d;" % len(parts), parts)


def _ordered_dict(value: OrderedDict[Any, Any]) -> Contents:
    # In its own order, which `dict.items` does not follow.
    keys = list(OrderedDict.__iter__(value))
    return Contents(b"D%d;" % len(keys), [part for key in keys for part in (key, dict.__getitem__(value, key))])


def default_dict_contents(value: defaultdict[Any, Any], *, ordered: bool = True) -> Contents:
    """Read a defaultdict: its factory, and then as a dict."""
    data, parts, _ = dict_contents(value, ordered=ordered)
    return Contents(b"f" + data, [value.default_factory, *parts])


def _deque(value: deque[Any]) -> Contents:
    parts = list(deque.__iter__(value))
    return Contents(b"q%d;" % len(parts), [deque.__dict__["maxlen"].__get__(value), *parts])


def _bytes(value: bytes | bytearray) -> Contents:
    data = bytes(memoryview(value))
    return Contents(b"b%d:" % len(data) + data)


def _memoryview(value: memoryview) -> Contents:
    return Contents(f"m{value.format}{value.shape}:".encode() + value.tobytes())


def _array(value: array.array[Any]) -> Contents:
    return Contents(f"m{value.typecode}{len(value)}:".encode() + memoryview(value).tobytes())


def _buffer_file(value: io.BytesIO) -> Contents:
    data = io.BytesIO.getvalue(value)
    return Contents(b"m%d,%d:" % (len(data), io.BytesIO.tell(value)) + data)


def _text_file(value: io.StringIO) -> Contents:
    return Contents(b"m%d;" % io.StringIO.tell(value), [io.StringIO.getvalue(value)])


def _function(value: types.FunctionType) -> Contents:
    """By identity, and by the data that it holds itself: containers in its closure and its default values."""
    defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return Contents(IDENTITY, [item for item in (*closure_of(value).values(), *defaults) if type(item) in _DATA])


def _exception(value: BaseException) -> Contents:
    base = next(kind for kind in type(value).__mro__ if kind.__module__ == "builtins")
    members = [
        (name, member.__get__(value))
        for kind in base.__mro__
        for name, member in kind.__dict__.items()
        if type(member) is types.MemberDescriptorType
    ]
    return Contents(b"z;", [BaseException.__dict__["args"].__get__(value), value.__cause__, value.__context__, members])


def _date_and_time(value: datetime.datetime | datetime.time) -> Contents:
    kind: Any = next(kind for kind in type(value).__mro__ if kind.__module__ == "datetime")
    text = f"{kind.isoformat(value)}#{value.fold}".encode()
    return Contents(b"v%d:" % len(text) + text, [value.tzinfo])


def _zone(value: zoneinfo.ZoneInfo) -> Contents:
    # A zone that was read from a file has no name.
    return Contents(IDENTITY) if value.key is None else Contents(b"t1;", [value.key])


def _element(value: Element) -> Contents:
    return Contents(b"t5;", [value.tag, value.text, value.tail, value.attrib, list(value)])


def _numpy_array(value: numpy.ndarray[Any, Any] | numpy.generic) -> Contents:
    numpy = sys.modules["numpy"]
    kind = numpy.ndarray if isinstance(value, numpy.ndarray) else numpy.generic
    dtype = str(kind.dtype.__get__(value)).encode()
    if value.dtype.hasobject:
        return Contents(b"A" + repr(value.shape).encode() + dtype, [kind.tolist(value)])
    return Contents(b"a" + repr(value.shape).encode() + kind.tobytes(value) + dtype)


def _nbytes(value: memoryview | numpy.ndarray[Any, Any] | numpy.generic) -> int:
    return value.nbytes


# What a function may hold itself and someone else may change.
_DATA: frozenset[type] = frozenset({list, dict, set, bytearray})

_BUILT_IN: dict[type, Reader] = {
    dict: dict_contents,
    list: _by_items(list, b"l"),
    tuple: _by_items(tuple, b"l"),
    set: _by_items(set, b"e", unordered=True),
    frozenset: _by_items(frozenset, b"e", unordered=True),
    str: _by_text(str.__str__),
    int: _by_text(lambda value: int.__format__(value, "x")),
    float: _by_text(float.__repr__),
    complex: _by_text(complex.__repr__),
    bytes: Buffer(len, _bytes),
    bytearray: Buffer(len, _bytes),
    memoryview: Buffer(_nbytes, _memoryview),
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
    deque: _deque,
    OrderedDict: _ordered_dict,
    defaultdict: default_dict_contents,
    io.BytesIO: Buffer(lambda value: io.BytesIO.getbuffer(value).nbytes, _buffer_file),
    io.StringIO: _text_file,
    functools.partial: _by_parts("func", "args", "keywords"),
    operator.itemgetter: _by_reduction,
    operator.attrgetter: _by_reduction,
    operator.methodcaller: _by_reduction,
    **{
        kind: _exception
        for kind in vars(builtins).values()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    },
}

_IMPORTED: dict[tuple[str, str], Reader] = {
    ("array", "array"): Buffer(lambda value: len(value) * value.itemsize, _array),
    ("functools", "_lru_cache_wrapper"): _by_identity,
    ("weakref", "ref"): lambda value: Contents(b"t1;", [sys.modules["weakref"].ref.__call__(value)]),
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
    ("numpy", "ndarray"): Buffer(_nbytes, _numpy_array),
    ("numpy", "generic"): Buffer(_nbytes, _numpy_array),
    ("numpy", "dtype"): _by_text(repr),
    ("logging", "Logger"): _by_identity,
    ("_thread", "LockType"): _by_identity,
    ("_thread", "RLock"): _by_identity,
}
