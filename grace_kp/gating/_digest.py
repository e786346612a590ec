"""A digest over the full contents of a call's arguments, so that a gate notices changes after a decision.

It reads stored data and runs as little code of the values as possible. Tables state how to read known types; of all other types it reads the
attributes. It does not guess: where it cannot see the contents of a value, `NotCheckable` names the argument and the type. It looks up types of
packages only where the package has been imported.
"""

from __future__ import annotations

import builtins
import enum
import functools
import gc
import hashlib
import io
import operator
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from grace_kp.trace import dictionary_getter, error_text, slots_of

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterator

    import numpy

    from grace_kp.trace import Getter

    Slot = tuple[str, Getter]

_HEAP_TYPE = 1 << 9  # a class that is written in Python
_POINTER = 8


def classes_above(base: type, kind: type) -> list[type]:
    """Return the classes of `kind` that are not classes of `base`."""
    return [owner for owner in kind.__mro__ if owner not in base.__mro__]


def is_transparent(kind: type, base: type = object) -> bool:
    """Whether slots and dictionary hold all data that `kind` adds to `base`.

    That requires classes written in Python, and no other data that makes an instance larger.
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
    order: str = "own"
    """`own`; `none` of a set; or `keys`, where earlier versions sorted by key if all keys were strings."""


class Buffer(NamedTuple):
    """How to read a value that is copied as a whole: its size in bytes is asked first."""

    size: Callable[[Any], int]
    read: Callable[[Any], Contents]


Reader: TypeAlias = Callable[[Any], Contents] | Buffer | None
"""How to read the values of a type; None where their attributes are all there is."""

IDENTITY = b""
"""Instead of data: the value counts by which object it is."""


class OwnObject:
    """Wraps the object whose method is called. It is not an argument, and counts by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    @property
    def identity(self) -> dict[str, object]:
        """The identity of a class in every process; empty for an instance."""
        return {"class": qualified_name(self.value)} if isinstance(self.value, type) else {}


class Identified:
    """Wraps an argument that counts by the attribute or callable that the user named with `identity=`."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: type, value: object) -> None:
        self.kind = qualified_name(kind)
        self.value = value

    @classmethod
    def by(cls, identify: Callable[[Any], object], value: object, argument: str) -> Identified:
        try:
            return cls(type(value), identify(value))
        except Exception as error:
            problem = f"cannot be identified: identity= failed with {error_text(error)}"
            raise NotCheckable(problem, argument=argument) from error

    @property
    def identity(self) -> dict[str, object]:
        return {"type": self.kind, "identity": self.value}


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


def _dict(value: dict[Any, Any]) -> Contents:
    items = list(dict.items(value))
    return Contents(b"d%d;" % len(items), [part for item in items for part in item], "keys")


def _by_identity(_: object) -> Contents:
    return Contents(IDENTITY)


def _by_text(write: Callable[[Any], str]) -> Reader:
    """For immutable values whose string form is complete."""

    def read(value: object) -> Contents:
        text = write(value).encode("utf-8", "surrogatepass")
        return Contents(b"v%d:" % len(text) + text)

    return read


def _by_parts(*names: str) -> Reader:
    return lambda value: Contents(b"t%d;" % len(names), [getattr(value, name) for name in names])


def _by_items(kind: type, letter: bytes, order: str = "own") -> Callable[[Any], Contents]:
    """For containers, whose subclasses may override iteration."""

    def read(value: object) -> Contents:
        parts = list(kind.__iter__(value))  # type: ignore[attr-defined]
        return Contents(b"%b%d;" % (letter, len(parts)), parts, order)

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


def _default_dict(value: defaultdict[Any, Any]) -> Contents:
    data, parts, order = _dict(value)
    return Contents(b"f" + data, [value.default_factory, *parts], order)


def _deque(value: deque[Any]) -> Contents:
    parts = list(deque.__iter__(value))
    return Contents(b"q%d;" % len(parts), [deque.__dict__["maxlen"].__get__(value), *parts])


def _bytes(value: bytes | bytearray) -> Contents:
    data = bytes(memoryview(value))
    return Contents(b"b%d:" % len(data) + data)


def _buffer_file(value: io.BytesIO) -> Contents:
    data = io.BytesIO.getvalue(value)
    return Contents(b"m%d,%d:" % (len(data), io.BytesIO.tell(value)) + data)


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


def _numpy_array(value: numpy.ndarray[Any, Any] | numpy.generic) -> Contents:
    numpy = sys.modules["numpy"]
    kind = numpy.ndarray if isinstance(value, numpy.ndarray) else numpy.generic
    dtype = str(kind.dtype.__get__(value)).encode()
    if value.dtype.hasobject:
        return Contents(b"A" + repr(value.shape).encode() + dtype, [kind.tolist(value)])
    return Contents(b"a" + repr(value.shape).encode() + kind.tobytes(value) + dtype)


# Mutable data that a function may hold itself.
_DATA: frozenset[type] = frozenset({list, dict, set, bytearray})

_NBYTES = operator.attrgetter("nbytes")

_PLAIN: dict[type, Callable[[Any], Contents]] = {
    dict: _dict,
    list: _by_items(list, b"l"),
    tuple: _by_items(tuple, b"l"),
}
_BUILT_IN: dict[type, Reader] = {
    **_PLAIN,
    set: _by_items(set, b"e", "none"),
    frozenset: _by_items(frozenset, b"e", "none"),
    str: _by_text(str.__str__),
    int: _by_text(lambda value: int.__format__(value, "x")),
    float: _by_text(float.__repr__),
    complex: _by_text(complex.__repr__),
    bytes: Buffer(len, _bytes),
    bytearray: Buffer(len, _bytes),
    memoryview: Buffer(_NBYTES, lambda value: Contents(f"m{value.format}{value.shape}:".encode() + value.tobytes())),
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
    defaultdict: _default_dict,
    io.BytesIO: Buffer(lambda value: io.BytesIO.getbuffer(value).nbytes, _buffer_file),
    io.StringIO: lambda value: Contents(b"m%d;" % io.StringIO.tell(value), [io.StringIO.getvalue(value)]),
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
    ("array", "array"): Buffer(
        lambda value: len(value) * value.itemsize,
        lambda value: Contents(f"m{value.typecode}{len(value)}:".encode() + memoryview(value).tobytes()),
    ),
    ("functools", "_lru_cache_wrapper"): _by_identity,
    ("weakref", "ref"): lambda value: Contents(b"t1;", [sys.modules["weakref"].ref.__call__(value)]),
    ("datetime", "date"): _by_text(lambda value: sys.modules["datetime"].date.isoformat(value)),
    ("datetime", "datetime"): _date_and_time,
    ("datetime", "time"): _date_and_time,
    ("datetime", "timedelta"): _by_parts("days", "seconds", "microseconds"),
    ("datetime", "timezone"): _by_text(repr),
    # A zone that was read from a file has no name.
    ("zoneinfo", "ZoneInfo"): lambda value: Contents(IDENTITY) if value.key is None else Contents(b"t1;", [value.key]),
    ("pydantic_core", "TzInfo"): _by_text(lambda value: str(value.utcoffset(None))),
    ("pydantic_core", "Url"): _by_text(str),
    ("pydantic_core", "MultiHostUrl"): _by_text(str),
    ("decimal", "Decimal"): _by_text(lambda value: sys.modules["decimal"].Decimal.__str__(value)),
    ("pathlib", "PurePath"): _by_text(lambda value: sys.modules["pathlib"].PurePath.__str__(value)),
    ("re", "Pattern"): _by_parts("pattern", "flags"),
    ("re", "Match"): _by_parts("re", "string", "regs"),
    ("xml.etree.ElementTree", "Element"): lambda value: Contents(
        b"t5;", [value.tag, value.text, value.tail, value.attrib, list(value)]
    ),
    ("numpy", "ndarray"): Buffer(_NBYTES, _numpy_array),
    ("numpy", "generic"): Buffer(_NBYTES, _numpy_array),
    ("numpy", "dtype"): _by_text(repr),
    ("logging", "Logger"): _by_identity,
    ("_thread", "LockType"): _by_identity,
    ("_thread", "RLock"): _by_identity,
}


MAX_VALUES = 500_000
MAX_BYTES = 128_000_000
_SHORT = 200  # characters; shorter strings count as values only
# Ledgers and approvals hold digests with the module name that the classes once had.
_HEADS: dict[type, bytes] = {
    kind: f"<grace_kp.gating._contents.{kind.__name__}".encode() for kind in (OwnObject, Identified)
}
_OBJECT = 3  # reading an object takes as long as reading so many values


class NotCheckable(Exception):
    """An argument whose changes would go unnoticed.

    Attributes:
        argument: the parameter's name.
        problem: the value inside the argument, and why it cannot be checked.
    """

    def __init__(self, problem: str, *, argument: str = "") -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(f"the argument {argument!r} {problem}" if argument else problem)


def digest_of(arguments: Mapping[str, object], *, lasting: bool = False, ordered: bool | None = None) -> str:
    """Return the SHA-256 over the full contents of the arguments.

    Containers count by content (dicts in their own order, sets in a canonical one), objects by class and attributes, buffers by their bytes.
    Functions, classes, modules, loggers and locks count by identity. Two calls return the same digest as long as nothing inside was changed
    between them.
    """
    return _Digest(lasting, _Budget(), not lasting if ordered is None else ordered).of(dict(arguments))


class _Budget:
    """How much a digest may still read, together with the digests of set elements."""

    def __init__(self) -> None:
        self._limits = {"values": MAX_VALUES, "bytes": MAX_BYTES}
        self._left = dict(self._limits)

    def take(self, count: int, unit: str = "values") -> None:
        self._left[unit] -= count
        if self._left[unit] < 0:
            raise NotCheckable(f"holds more than {self._limits[unit]:,} {unit}, which takes too long to check")


@dataclass(frozen=True, slots=True)
class _Storage:
    """Where the instances of a class keep their contents."""

    reader: Reader
    dictionary: Getter | None
    slots: list[Slot]
    private: list[Slot]


class _Digest:
    """One digest in the making: depth first with an explicit stack; an object that occurs again counts by its number."""

    def __init__(self, lasting: bool, budget: _Budget, ordered: bool) -> None:
        self._lasting = lasting
        self._ordered = ordered
        self._budget = budget
        self._hash = hashlib.sha256()
        self._put = self._hash.update
        self._numbers: dict[int, int] = {}
        self._keep: list[object] = []  # so that no id is used again while this runs
        self._heads = dict(_HEADS)
        self._storages: dict[type, _Storage] = {}
        self._known: dict[type, Reader] | None = None
        self._of_enums: set[int] = set()

    def of(self, arguments: dict[str, object]) -> str:
        self._number(arguments)
        self._put(b"<builtins.dictd%d;" % len(arguments))
        for name in sorted(arguments):
            try:
                self._feed([arguments[name], name])
            except NotCheckable as error:
                raise NotCheckable(error.problem, argument=error.argument or name) from None
            except Exception as error:
                # Changed by another thread meanwhile, nested too deeply, closed or released, or code of the value failed.
                problem = f"cannot be read ({error_text(error)})"
                raise NotCheckable(problem, argument=name) from error
        return self._hash.hexdigest()

    def _number(self, value: object) -> None:
        self._numbers[id(value)] = len(self._numbers)
        self._keep.append(value)

    def _feed(self, stack: list[Any]) -> None:
        put, numbers, heads = self._put, self._numbers, self._heads
        while stack:
            value = stack.pop()
            kind = type(value)
            if kind is str:
                if len(value) > _SHORT:
                    self._budget.take(len(value), "bytes")
                put(b"s%d:" % len(value) + value.encode("utf-8", "surrogatepass"))
            elif value is None or kind is bool or kind is float or kind is complex:
                put(b"n" + repr(value).encode() + b";")
            elif kind is int:
                if value.bit_length() > 8_000:
                    self._budget.take(value.bit_length() // 8, "bytes")
                put(b"i%x;" % value if value >= 0 else b"j%x;" % -value)
            elif kind is bytes or kind is bytearray:
                self._budget.take(len(value), "bytes")
                put(b"b%d:" % len(value))
                put(value)
            elif id(value) in numbers:
                put(b"@%d;" % numbers[id(value)])
            else:
                self._number(value)
                head = heads.get(kind)
                if head is None:
                    head = heads[kind] = f"<{qualified_name(kind)}".encode()
                put(head)
                stack.extend(reversed(self._open(value, kind)))

    def _open(self, value: Any, kind: type) -> Sequence[object]:
        """Write the value's own data, and return the values inside of it."""
        if (read := _PLAIN.get(kind)) is not None:
            contents = read(value)
            self._put(contents.data)
            return self._parts(contents)
        if issubclass(kind, enum.Enum):
            self._of_enums.add(id(kind))
            return self._attributes(value, _dictionary(dictionary_getter(kind), value), [], b"o%d;")
        if issubclass(kind, type):
            self._identity(value, named=id(value) not in self._of_enums)
            return ()
        if kind is OwnObject:
            self._put(f"{qualified_name(type(value.value))};".encode())
            self._address(value.value)
            return ()
        if kind is Identified:
            self._put(f"{value.kind};".encode())
            return (value.value,)
        return self._object(value, kind)

    def _object(self, value: object, kind: type) -> Sequence[object]:
        self._budget.take(_OBJECT)
        storage = self._storages.get(kind)
        if storage is None:
            storage = self._storages[kind] = self._storage_of(kind)
        contents = self._contents(storage.reader, value)
        if contents is not None and contents.data is IDENTITY:
            self._identity(value, named=True)
            return self._parts(contents)
        attributes = dict(_dictionary(storage.dictionary, value))
        private: list[tuple[str, object]] = []
        for name, found in _read_slots(storage.slots, value):
            if attributes.setdefault(name, found) is not found:
                private.append((name, found))
        private += [item for item in _read_slots(storage.private, value) if self._counts(*item)]
        if contents is None:
            return self._attributes(value, attributes, private, b"o%d;")
        inside = self._attributes(value, attributes, private, b"+o%d;") if attributes or private else ()
        self._put(contents.data)
        return [*self._parts(contents), *inside]

    def _contents(self, reader: Reader, value: object) -> Contents | None:
        if reader is None:
            return None
        if isinstance(reader, Buffer):
            self._budget.take(reader.size(value), "bytes")
            return reader.read(value)
        contents = reader(value)
        self._budget.take(len(contents.data), "bytes")
        return contents

    def _counts(self, name: str, value: object) -> bool:
        """Whether a private slot counts: unused slots of pydantic are empty, and some are not stored with the model."""
        if not name.startswith("__pydantic_"):
            return True
        return value is not None and not (self._lasting and name != "__pydantic_extra__")

    def _attributes(
        self, value: object, attributes: dict[Any, object], private: list[tuple[str, object]], head: bytes
    ) -> Sequence[object]:
        self._budget.take(2 * (len(attributes) + len(private)))
        items = list(attributes.items())
        if all(type(name) is str for name in attributes):
            items.sort(key=lambda item: item[0])
        if private:
            self._put(b"p%d;" % len(private))
            items += private
        elif not items:
            self._address(value)
            return ()
        self._put(head % len(items))
        return [part for item in items for part in item]

    def _parts(self, contents: Contents) -> Sequence[object]:
        parts = contents.parts
        self._budget.take(len(parts) * (4 if contents.order == "none" else 1))
        if contents.order == "keys" and not self._ordered:
            first = len(parts) % 2  # of a defaultdict, its factory
            items = list(zip(parts[first::2], parts[first + 1 :: 2], strict=True))
            if all(type(key) is str for key, _ in items):
                items.sort(key=lambda item: str(item[0]))
            return [*parts[:first], *(part for item in items for part in item)]
        if contents.order != "none":
            return parts
        digests = sorted(_Digest(self._lasting, self._budget, self._ordered).of({"": part}) for part in parts)
        self._put("".join(digests).encode())
        return ()

    def _address(self, value: object) -> None:
        self._put(b"x;" if self._lasting else b"x%x;" % id(value))

    def _identity(self, value: object, *, named: bool) -> None:
        self._address(value)
        if not (self._lasting and named):
            return
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or getattr(value, "name", None)
        if isinstance(name, str):
            self._put(f"{getattr(value, '__module__', '')}.{name};".encode())

    def _storage_of(self, kind: type) -> _Storage:
        if self._known is None:
            self._known = known_types()
        base = next(found for found in kind.__mro__ if found in self._known or found is object)
        if not is_complete(base, kind) and not is_transparent(kind, base):
            is_iterator = any(hasattr(kind, verb) for verb in ("__next__", "__anext__", "__await__"))
            why = "which changes when it is read" if is_iterator else "whose contents cannot be seen"
            raise NotCheckable(f"holds a {qualified_name(kind).removeprefix('builtins.')}, {why}")
        slots: list[Slot] = []
        private: list[Slot] = []
        for owner in classes_above(base, kind):
            for slot in slots_of(owner).items():
                hides = slot[0].startswith(("__", f"_{owner.__name__.lstrip('_')}__"))
                (private if hides else slots).append(slot)
        return _Storage(self._known.get(base), dictionary_getter(kind), slots, private)


def _dictionary(read: Getter | None, value: object) -> dict[Any, object]:
    return {} if read is None else read(value)


def _read_slots(slots: list[Slot], value: object) -> Iterator[tuple[str, object]]:
    for name, get in slots:
        try:
            yield name, get(value)
        except AttributeError:
            continue
