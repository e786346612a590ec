"""A digest over everything inside a call's arguments, so that a change after a decision does not go unnoticed.

It reads stored data and runs as little code of the values as possible. It does not guess: for a value whose contents it cannot see,
`NotCheckable` names the argument and its type.
"""

from __future__ import annotations

import enum
import functools
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.gating._contents import (
    IDENTITY,
    Buffer,
    Identified,
    OwnObject,
    default_dict_contents,
    dict_contents,
    is_complete,
    known_types,
)
from grace_kp.gating._instance import classes_above, is_transparent, qualified_name
from grace_kp.trace import dictionary_getter, error_text, slots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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

    Args:
        arguments: the values by parameter name.
        lasting: count by name what otherwise counts by identity, so that the same call in another process has the same digest.
        ordered: whether the order of the keys of a dict counts; None for all digests but lasting ones, because those that earlier
            versions kept must stay valid.

    Raises:
        NotCheckable: an argument has contents that cannot be seen, or more than `MAX_VALUES` values or `MAX_BYTES` bytes.
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
class _Layout:
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
        self._layouts: dict[type, _Layout] = {}
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
        layout = self._layouts.get(kind)
        if layout is None:
            layout = self._layouts[kind] = self._layout(kind)
        contents = self._contents(layout.reader, value)
        if contents is not None and contents.data is IDENTITY:
            self._identity(value, named=True)
            return self._parts(contents)
        attributes = dict(_dictionary(layout.dictionary, value))
        private: list[tuple[str, object]] = []
        for name, found in _filled(layout.slots, value):
            if attributes.setdefault(name, found) is not found:
                private.append((name, found))
        private += [item for item in _filled(layout.private, value) if self._counts(*item)]
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

    def _layout(self, kind: type) -> _Layout:
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
        return _Layout(self._known.get(base), dictionary_getter(kind), slots, private)


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
