"""A digest over everything inside a call's arguments, so that a change after a decision does not go unnoticed.

It reads what is stored in values and runs as little of their code as it can. A value with contents that it cannot see is not guessed at:
`NotCheckable` names the argument and its type.
"""

from __future__ import annotations

import enum
import hashlib
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.gating._contents import IDENTITY, Identified, OwnObject, is_complete, known_types
from grace_kp.gating._error_text import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from grace_kp.gating._contents import Contents, Reader

    Getter = Callable[[Any], Any]
    Slot = tuple[str, Getter]

MAX_VALUES = 500_000
MAX_BYTES = 128_000_000
_HEAP_TYPE = 1 << 9
_POINTER = 8
_SHORT = 200  # characters; what is shorter is covered by the number of values
_OBJECT = 3  # values that reading an object costs as much time as


class NotCheckable(Exception):
    """An argument whose changes would go unnoticed.

    Attributes:
        argument: the parameter's name.
        problem: what it holds, and why that cannot be checked.
    """

    def __init__(self, problem: str, *, argument: str = "") -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(f"the argument {argument!r} {problem}" if argument else problem)


def digest_of(arguments: Mapping[str, Any], *, lasting: bool = False) -> str:
    """SHA-256 over the full contents of the arguments.

    Containers count by content (sets and dicts in a canonical order), objects by class and attributes, buffers by their bytes.
    Functions, classes, modules, loggers and locks count by identity. Two calls return the same digest as long as nothing inside was changed
    between them.

    Args:
        arguments: the values by parameter name.
        lasting: count by name what otherwise counts by identity, so that the same call in another process has the same digest.

    Raises:
        NotCheckable: an argument has contents that cannot be seen, or more than `MAX_VALUES` values or `MAX_BYTES` bytes.
    """
    return _Digest(lasting, _Budget()).of(dict(arguments))


class _Budget:
    """How much one digest may still read, the digests of set elements included."""

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
class _Layout:
    """Where the instances of a class keep what is in them."""

    reader: Reader | None
    dictionary: Getter | None
    slots: list[Slot]
    private: list[Slot]


class _Digest:
    """One digest in the making: depth first with a stack of its own; an object that was met before counts by its number."""

    def __init__(self, lasting: bool, budget: _Budget) -> None:
        self._lasting = lasting
        self._budget = budget
        self._hash = hashlib.sha256()
        self._put = self._hash.update
        self._numbers: dict[int, int] = {}
        self._keep: list[Any] = []  # so that no id is used again while this runs
        self._layouts: dict[type, _Layout] = {}
        self._known: dict[type, Reader | None] | None = None
        self._of_enums: set[int] = set()

    def of(self, arguments: dict[str, Any]) -> str:
        self._number(arguments)
        self._put(b"<builtins.dictd%d;" % len(arguments))
        for name in sorted(arguments):
            try:
                self._feed([arguments[name], name])
            except NotCheckable as error:
                raise NotCheckable(error.problem, argument=error.argument or name) from None
            except Exception as error:
                # Changed by another thread while it was read, nested too deeply, closed or released, or code of its own that failed.
                problem = f"cannot be read ({error_text(error)})"
                raise NotCheckable(problem, argument=name) from error
        return self._hash.hexdigest()

    def _number(self, value: Any) -> None:
        self._numbers[id(value)] = len(self._numbers)
        self._keep.append(value)

    def _feed(self, stack: list[Any]) -> None:
        put, numbers = self._put, self._numbers
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
                self._open(stack, value, kind)

    def _open(self, stack: list[Any], value: Any, kind: type) -> None:
        put = self._put
        put(f"<{kind.__module__}.{kind.__qualname__}".encode())
        if kind is dict:
            self._dict(stack, value)
        elif kind is list or kind is tuple:
            parts = list(value)
            self._budget.take_values(len(parts))
            put(b"l%d;" % len(parts))
            stack.extend(reversed(parts))
        elif issubclass(kind, enum.Enum):
            self._of_enums.add(id(kind))
            self._attributes(stack, value, _stored(dictionary_getter(kind), value), [], b"o%d;")
        elif issubclass(kind, type):
            self._identity(value, named=id(value) not in self._of_enums)
        elif kind is OwnObject:
            put(f"{_name(type(value.value))};".encode())
            put(b"x;" if self._lasting else b"x%x;" % id(value.value))
        elif kind is Identified:
            put(f"{value.kind};".encode())
            stack.append(value.value)
        else:
            self._object(stack, value, kind)

    def _dict(self, stack: list[Any], value: dict[Any, Any]) -> None:
        self._budget.take_values(2 * len(value))
        items = list(dict.items(value))
        self._put(b"d%d;" % len(items))
        if all(type(key) is str for key, _ in items):
            items.sort(key=lambda item: item[0])
        stack.extend(part for item in reversed(items) for part in reversed(item))

    def _object(self, stack: list[Any], value: Any, kind: type) -> None:
        self._budget.take_values(_OBJECT)
        layout = self._layouts.get(kind)
        if layout is None:
            layout = self._layouts[kind] = self._layout(kind)
        contents = None if layout.reader is None else layout.reader(value, self._budget.take_bytes)
        if contents is not None and contents.data is IDENTITY:
            self._identity(value, named=True)
            self._parts(stack, contents)
            return
        attributes = dict(_stored(layout.dictionary, value))
        private: list[tuple[str, Any]] = []
        for name, found in _filled(layout.slots, value):
            if attributes.setdefault(name, found) is not found:
                private.append((name, found))
        private += [item for item in _filled(layout.private, value) if self._counts(*item)]
        if contents is None:
            self._attributes(stack, value, attributes, private, b"o%d;")
            return
        # What is put on the stack first is read last: the attributes follow the contents.
        if attributes or private:
            self._attributes(stack, value, attributes, private, b"+o%d;")
        self._put(contents.data)
        self._parts(stack, contents)

    def _counts(self, name: str, value: Any) -> bool:
        """Whether a private slot counts: pydantic's are empty where unused, and in part not stored with the model."""
        if not name.startswith("__pydantic_"):
            return True
        return value is not None and not (self._lasting and name != "__pydantic_extra__")

    def _attributes(
        self, stack: list[Any], value: Any, attributes: dict[Any, Any], private: list[tuple[str, Any]], sign: bytes
    ) -> None:
        self._budget.take_values(2 * (len(attributes) + len(private)))
        items = list(attributes.items())
        if all(type(name) is str for name in attributes):
            items.sort(key=lambda item: item[0])
        if private:
            self._put(b"p%d;" % len(private))
            items += private
        elif not items:
            self._put(b"x;" if self._lasting else b"x%x;" % id(value))
            return
        self._put(sign % len(items))
        stack.extend(part for item in reversed(items) for part in reversed(item))

    def _parts(self, stack: list[Any], contents: Contents) -> None:
        parts = contents.parts
        self._budget.take_values(len(parts) * (4 if contents.unordered else 1))
        if contents.unordered:
            digests = sorted(_Digest(self._lasting, self._budget).of({"": part}) for part in parts)
            self._put("".join(digests).encode())
        else:
            stack.extend(reversed(parts))

    def _identity(self, value: Any, *, named: bool) -> None:
        if not self._lasting:
            self._put(b"x%x;" % id(value))
            return
        self._put(b"x;")
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or getattr(value, "name", None)
        if named and isinstance(name, str):
            self._put(f"{getattr(value, '__module__', '')}.{name};".encode())

    def _layout(self, kind: type) -> _Layout:
        if self._known is None:
            self._known = known_types()
        base = next(found for found in kind.__mro__ if found in self._known or found is object)
        above = [found for found in kind.__mro__ if found not in base.__mro__]
        slots: list[Slot] = []
        private: list[Slot] = []
        for owner in above:
            for name, member in owner.__dict__.items():
                if type(member) is types.MemberDescriptorType:
                    hides = name.startswith(("__", f"_{owner.__name__.lstrip('_')}__"))
                    (private if hides else slots).append((name, member.__get__))
        dictionary = dictionary_getter(kind)
        if not is_complete(base, kind) and (
            not all(found.__flags__ & _HEAP_TYPE for found in above)
            or _hidden_bytes(kind, base, len(slots) + len(private))
            or (dictionary is None and kind.__dictoffset__)
        ):
            raise NotCheckable(_unseen(kind))
        return _Layout(self._known.get(base), dictionary, slots, private)


def _hidden_bytes(kind: type, base: type, slots: int) -> int:
    """How much larger an instance is than its base, slots, dictionary and list of weak references explain."""
    weak = kind.__weakrefoffset__ > 0 and not base.__weakrefoffset__
    # A dictionary in front of the object is not part of its size; one behind a varying number of items is.
    dictionary = not base.__dictoffset__ and (kind.__dictoffset__ > 0 or kind.__dictoffset__ == -_POINTER)
    return kind.__basicsize__ - base.__basicsize__ - _POINTER * (slots + weak + dictionary)


def dictionary_getter(kind: type) -> Getter | None:
    """Read the attributes past whatever a class makes of the name `__dict__`."""
    for owner in kind.__mro__:
        found = owner.__dict__.get("__dict__")
        if isinstance(found, types.GetSetDescriptorType | types.MemberDescriptorType):
            return found.__get__
    return None


def _stored(dictionary: Getter | None, value: Any) -> dict[Any, Any]:
    found = {} if dictionary is None else dictionary(value)
    if not isinstance(found, dict):
        raise NotCheckable(_unseen(type(value)))
    return found


def _filled(slots: list[Slot], value: Any) -> Iterator[tuple[str, Any]]:
    for name, get in slots:
        try:
            yield name, get(value)
        except AttributeError:
            continue


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _unseen(kind: type) -> str:
    name = _name(kind).removeprefix("builtins.")
    if any(hasattr(kind, verb) for verb in ("__next__", "__anext__", "__await__")):
        return f"holds a {name}, which changes when it is read"
    return f"holds a {name}, whose contents cannot be seen"
