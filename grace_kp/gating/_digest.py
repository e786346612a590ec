"""A digest over everything inside a call's arguments, so that a change after a decision does not go unnoticed.

It reads stored data and runs as little code of the values as possible. It does not guess: for a value whose contents it cannot see,
`NotCheckable` names the argument and its type. `Coverage` says what the digest of an action covers: its arguments, or what identifies them
according to the user.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.errors import GateError
from grace_kp.gating._contents import (
    IDENTITY,
    Buffer,
    Identified,
    OwnObject,
    classes_above,
    default_dict_contents,
    dict_contents,
    is_complete,
    is_transparent,
    known_types,
    qualified_name,
)
from grace_kp.trace import SCALARS, dictionary_getter, error_text, slots_of

if TYPE_CHECKING:
    import inspect
    from collections.abc import Collection, Iterator, Sequence

    from grace_kp.gating._contents import Contents, Reader
    from grace_kp.trace import Getter

    Slot = tuple[str, Getter]

MAX_VALUES = 500_000
MAX_BYTES = 128_000_000
_SHORT = 200  # characters; shorter texts count as values only
_BY_KEY: dict[Any, Callable[[Any], Contents]] = {
    read: functools.partial(read, ordered=False) for read in (dict_contents, default_dict_contents)
}
_OBJECT = 3  # reading an object takes as long as reading so many values


class NotCheckable(Exception):
    """An argument whose changes would go unnoticed.

    Attributes:
        argument: the parameter's name.
        problem: what the argument holds, and why that cannot be checked.
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

    __slots__ = ("bytes", "values")

    def __init__(self) -> None:
        self.values = MAX_VALUES
        self.bytes = MAX_BYTES

    def take_values(self, count: int) -> None:
        self.values -= count
        if self.values < 0:
            raise NotCheckable(f"holds more than {MAX_VALUES:,} values, which takes too long to check")

    def take_bytes(self, count: int) -> None:
        self.bytes -= count
        if self.bytes < 0:
            raise NotCheckable(f"holds more than {MAX_BYTES:,} bytes, which takes too long to check")


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
        self._heads: dict[type, bytes] = {}
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
                    self._budget.take_bytes(len(value))
                put(b"s%d:" % len(value) + value.encode("utf-8", "surrogatepass"))
            elif value is None or kind is bool or kind is float or kind is complex:
                put(b"n" + repr(value).encode() + b";")
            elif kind is int:
                if value.bit_length() > 8_000:
                    self._budget.take_bytes(value.bit_length() // 8)
                put(b"i%x;" % value if value >= 0 else b"j%x;" % -value)
            elif kind is bytes or kind is bytearray:
                self._budget.take_bytes(len(value))
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
        if kind is dict:
            self._budget.take_values(2 * len(value))
            contents = dict_contents(value, ordered=self._ordered)
            self._put(contents.data)
            return contents.parts
        if kind is list or kind is tuple:
            parts = list(value)
            self._budget.take_values(len(parts))
            self._put(b"l%d;" % len(parts))
            return parts
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
        self._budget.take_values(_OBJECT)
        storage = self._storages.get(kind)
        if storage is None:
            storage = self._storages[kind] = self._storage_of(kind)
        contents = self._contents(storage.reader, value)
        if contents is not None and contents.data is IDENTITY:
            self._identity(value, named=True)
            return self._parts(contents)
        attributes = dict(_dictionary(storage.dictionary, value))
        private: list[tuple[str, object]] = []
        for name, found in _filled(storage.slots, value):
            if attributes.setdefault(name, found) is not found:
                private.append((name, found))
        private += [item for item in _filled(storage.private, value) if self._counts(*item)]
        if contents is None:
            return self._attributes(value, attributes, private, b"o%d;")
        inside = self._attributes(value, attributes, private, b"+o%d;") if attributes or private else ()
        self._put(contents.data)
        return [*self._parts(contents), *inside]

    def _contents(self, reader: Reader, value: object) -> Contents | None:
        if reader is None:
            return None
        if isinstance(reader, Buffer):
            self._budget.take_bytes(reader.size(value))
            return reader.read(value)
        by_key = None if self._ordered else _BY_KEY.get(reader)
        contents = reader(value) if by_key is None else by_key(value)
        self._budget.take_bytes(len(contents.data))
        return contents

    def _counts(self, name: str, value: object) -> bool:
        """Whether a private slot counts: unused slots of pydantic are empty, and some are not stored with the model."""
        if not name.startswith("__pydantic_"):
            return True
        return value is not None and not (self._lasting and name != "__pydantic_extra__")

    def _attributes(
        self, value: object, attributes: dict[Any, object], private: list[tuple[str, object]], head: bytes
    ) -> Sequence[object]:
        self._budget.take_values(2 * (len(attributes) + len(private)))
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
        self._budget.take_values(len(parts) * (4 if contents.unordered else 1))
        if not contents.unordered:
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
            raise NotCheckable(_unseen(kind))
        slots: list[Slot] = []
        private: list[Slot] = []
        for owner in classes_above(base, kind):
            for slot in slots_of(owner).items():
                hides = slot[0].startswith(("__", f"_{owner.__name__.lstrip('_')}__"))
                (private if hides else slots).append(slot)
        return _Storage(self._known.get(base), dictionary_getter(kind), slots, private)


def _dictionary(read: Getter | None, value: object) -> dict[Any, object]:
    return {} if read is None else read(value)


def _filled(slots: list[Slot], value: object) -> Iterator[tuple[str, object]]:
    for name, get in slots:
        try:
            yield name, get(value)
        except AttributeError:
            continue


def _unseen(kind: type) -> str:
    name = qualified_name(kind).removeprefix("builtins.")
    if any(hasattr(kind, verb) for verb in ("__next__", "__anext__", "__await__")):
        return f"holds a {name}, which changes when it is read"
    return f"holds a {name}, whose contents cannot be seen"


Identifier: TypeAlias = str | Callable[[Any], object]
"""The name of an attribute (dots lead further in), or a callable from the value to what identifies it."""

OWN = "self"
"""Name of the object of a bound method, or of a callable object."""
_UNCHANGEABLE = SCALARS | {complex, bytes}


class Unknown:
    """Stands for the default of an optional parameter where it is not known. It is neither shown nor checked."""


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
        """Return the object whose method a call with these arguments is of; None for functions."""
        if self._own is not None and self._own in arguments:
            name, own = self._own, arguments[self._own]
        elif self._owner is not None:
            name, own = OWN, self._owner
        else:
            return None
        identify = self._identifiers.get(name)
        return Owner(name, OwnObject(own) if identify is None else _identified(name, own, identify))

    def digest(self, arguments: Mapping[str, object], *, lasting: bool = False, ordered: bool | None = None) -> str:
        """Return the SHA-256 of what a call with these arguments, by parameter name, would run with."""
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
