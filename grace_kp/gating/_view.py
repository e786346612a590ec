"""The complete content of a value, for reviewers: a tree without cuts and without redaction, as one line or as a JSON value.

`trace.render` bounds a value so that it can be recorded cheaply. A reviewer needs the opposite: every character that will run, or a note that a
part cannot be shown. This module runs no code of the values that it reads.
"""

from __future__ import annotations

import enum
import json
import math
import re
import sys
from collections import deque
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MappingProxyType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import Sealed
from grace_kp.gating._digest import is_transparent
from grace_kp.trace import SCALARS, dictionary_getter, slots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.approvals import Approval


MAX_PLAIN_DEPTH = 60
"""Nesting up to which a tree becomes nested JSON values; deeper values become strings."""


@dataclass(slots=True)
class Node:
    """One value of the tree: a leaf with `text`, or a container with `children`."""

    text: str = ""
    quoted: bool = False
    """Whether the leaf is a string, which is shown in quotes."""
    label: str = ""
    """Name of the class, where JSON has no such kind of value."""
    brackets: str = ""
    """Opening and closing bracket of a container; empty for a leaf."""
    children: list[tuple[Node | None, Node]] = field(default_factory=list)
    """Key and value; the key is None in a sequence, and an unquoted name in an object."""
    scalar: Any = None
    """The JSON value of a leaf, where it has one."""

    @property
    def closing(self) -> str:
        """The closing bracket; a tuple of one value has a comma before it."""
        is_single = len(self.children) == 1 and self.brackets == "()" and not self.label
        return ",)" if is_single else self.brackets[1]

    @property
    def separator(self) -> str:
        """The separator between a key and its value: `: ` in a mapping, `=` in an object."""
        return "=" if self.brackets == "()" else ": "


def pieces(root: Node) -> Iterator[Node | str]:
    """Yield a tree from left to right: leaves, keys and class names as leaf nodes, brackets and separators as strings."""
    stack: list[Node | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str) or not item.brackets:
            yield item
            continue
        yield Node(item.label)
        yield item.brackets[0]
        stack.append(item.closing)
        for number in range(len(item.children) - 1, -1, -1):
            key, child = item.children[number]
            stack.append(child)
            if key is not None:
                stack += [item.separator, key]
            if number:
                stack.append(", ")


def flat(root: Node) -> str:
    """Return a tree on one line, with strings as JSON."""
    return "".join(piece if isinstance(piece, str) else _leaf_text(piece) for piece in pieces(root))


def _leaf_text(leaf: Node) -> str:
    text = json.dumps(leaf.text, ensure_ascii=False) if leaf.quoted else leaf.text
    return f"{leaf.label}({text})" if leaf.label else text


def plain(root: Node, depth: int = 0) -> Any:
    """Return a tree as a JSON value. Values that JSON does not have become strings."""
    if not root.brackets:
        if root.scalar is not None or root.text == "null":
            return root.scalar
        return _leaf_text(root) if root.label and not root.quoted else root.text
    if depth >= MAX_PLAIN_DEPTH:
        return flat(root)
    keyed = [key for key, _ in root.children if key is not None]
    is_sequence = root.brackets == "[]" or (root.brackets == "()" and not root.label)
    if len(keyed) < len(root.children) or is_sequence:
        return flat(root) if keyed else [plain(child, depth + 1) for _, child in root.children]
    out: dict[str, Any] = {"@class": root.label} if root.label else {}
    for key, (_, child) in zip(keyed, root.children, strict=True):
        name, number = key.text, 1
        while name in out:
            number += 1
            name = f"{key.text} ({number})"
        out[name] = plain(child, depth + 1)
    return out


MAX_VALUES = 100_000
MAX_CHARACTERS = 2_000_000
MAX_DECIMAL_BITS = 13_000
"""Size up to which an integer is shown in decimal; Python refuses to print much larger ones."""
MAX_SORTED = 10_000
"""Number of members up to which a set is shown in order."""
MAX_ARRAY = 1_000
"""Number of items up to which an array is shown."""

_SCALARS = (str, bytes, bytearray, int, float, complex, memoryview)
_NAMED = (FunctionType, BuiltinFunctionType, ModuleType, type)
# Modules whose values are complete in their text.
_PRINTED = frozenset({"datetime", "decimal", "fractions", "pathlib", "uuid", "ipaddress", "zoneinfo"})
_PRINTED_TYPES = frozenset({("pydantic_core", "Url"), ("pydantic_core", "MultiHostUrl"), ("pydantic_core", "TzInfo")})
_MEMBERS: dict[type, tuple[str, ...]] = {range: ("start", "stop", "step"), re.Pattern: ("pattern", "flags")}
_PRINTED_KINDS_OF_NUMPY = "biufcmM"
_INTEGERS_OF_JSON = range(-(2**63), 2**64)


@dataclass(slots=True)
class View:
    """A value to be shown, and its parts that cannot be shown."""

    root: Node
    opaque: list[str]
    """Descriptions of the parts that cannot be shown in full, in the order in which they appear."""


def view(value: object, max_values: int = MAX_VALUES, max_characters: int = MAX_CHARACTERS) -> View:
    """Return the complete content of `value`, up to a number of values and of characters."""
    return _Viewing(max_values, max_characters).of(value)


class _Viewing:
    """One traversal, with an explicit stack, so that no depth exceeds the interpreter's."""

    def __init__(self, max_values: int, max_characters: int) -> None:
        self._values = max_values
        self._characters = max_characters
        self._opaque: list[str] = []
        self._ancestors: dict[int, int] = {}
        self._depth = 0

    def of(self, value: object) -> View:
        root = Node()
        # A step is either (node, value) to fill in, or (None, id) when the container with this id is complete.
        stack: list[tuple[Node | None, Any]] = [(root, value)]
        while stack:
            node, item = stack.pop()
            if node is None:
                del self._ancestors[item]
                self._depth -= 1
                continue
            try:
                parts = self._fill(node, item)
            except Exception as error:  # noqa: BLE001 — the values run code of any class
                node.brackets, node.label, node.children = "", "", []
                parts = self._close(node, f"{_name(type(item))}: {type(error).__name__} when it was read")
            if not node.brackets:
                continue
            self._ancestors[id(item)] = self._depth
            self._depth += 1
            stack.append((None, id(item)))
            left = max(self._values, 0)
            rest, parts = len(parts) - left, parts[:left]
            for key, _ in parts:
                name = None if key is _NO_KEY else Node()
                node.children.append((name, Node()))
                if name is not None:
                    self._key(name, key, is_field=node.brackets == "()")
            stack.extend(
                (child, part) for (_, child), (_, part) in reversed(list(zip(node.children, parts, strict=True)))
            )
            if rest > 0:
                node.children.append((None, Node()))
                self._close(node.children[-1][1], f"{rest:,} more values, too many to be shown in full")
        return View(root, self._opaque)

    def _key(self, node: Node, key: object, *, is_field: bool) -> None:
        if type(key) is str:
            self._text(node, key)
            node.quoted = node.quoted and not (is_field and key.isidentifier())
            return
        if type(key) is _Attribute:
            node.text = f".{key}" if key.isidentifier() else f".{flat(Node(key, quoted=True))}"
            return
        part = view(key, min(1_000, max(self._values, 0)), self._characters)
        self._values -= 1
        self._opaque.extend(part.opaque)
        node.text = flat(part.root)

    def _fill(self, node: Node, value: Any) -> list[tuple[Any, Any]]:
        """Fill in a leaf, or name a container and return its parts."""
        kind = type(value)
        self._values -= 1
        if self._values < 0:
            return self._close(node, f"{_name(kind)}: too many values to be shown in full")
        if value is None or kind is bool:
            node.text, node.scalar = {None: "null", True: "true", False: "false"}[value], value
            return []
        if isinstance(kind, enum.EnumMeta):
            node.text = f"{_name(kind)}.{_fields(value, kind).get('_name_')}"
            return []
        if issubclass(kind, _SCALARS):
            return self._scalar(node, value, kind)
        if id(value) in self._ancestors:
            above = self._depth - self._ancestors[id(value)]
            node.text = f"<the {_name(kind)} {above} level{'s' if above > 1 else ''} above, again>"
            return []
        return self._composite(node, value, kind)

    def _scalar(self, node: Node, value: Any, kind: type) -> list[tuple[Any, Any]]:
        base: Any = next(base for base in _SCALARS if issubclass(kind, base))
        own = kind is not base and _fields(value, kind)
        if own:
            # A subclass: the attributes of its instances are passed, too.
            node.label, node.brackets = _name(kind), "()"
            return [("value", _PLAIN[base](value)), *own.items()]
        if base is str:
            self._text(node, str.__str__(value))
        elif base is int:
            number = int.__int__(value)
            node.text = int.__repr__(number) if number.bit_length() <= MAX_DECIMAL_BITS else hex(number)
            node.scalar = number if number in _INTEGERS_OF_JSON else None
        elif base is float:
            node.text = float.__repr__(value)
            node.scalar = float.__float__(value) if math.isfinite(float.__float__(value)) else None
        elif base is complex:
            node.text = complex.__repr__(value)
        else:
            self._bytes(node, value, kind)
        if kind is not base or base is bytearray or base is memoryview:
            node.label = _name(kind)
        return []

    def _text(self, node: Node, text: str) -> None:
        self._characters -= len(text)
        if self._characters < 0:
            node.label = ""
            self._close(node, f"text of {len(text):,} characters, too long to be shown in full")
        else:
            node.text, node.quoted, node.scalar = text, True, text

    def _bytes(self, node: Node, value: bytes | bytearray | memoryview, kind: type) -> None:
        value = memoryview(value)
        size = value.nbytes
        self._characters -= 4 * size
        if self._characters < 0:
            self._close(node, f"{_name(kind)} of {size:,} bytes, too long to be shown in full")
        else:
            node.text = bytes.__repr__(bytes(value))

    def _composite(self, node: Node, value: Any, kind: type) -> list[tuple[Any, Any]]:
        module = kind.__module__ if type(kind.__module__) is str else ""
        package = module.partition(".")[0]
        if _is_complete_in_text(kind, module, package):
            self._text(node, str(value))
            node.label, node.quoted = _name(kind), package != "numpy"
            node.scalar = node.text if node.quoted else None
            return []
        if kind is Sealed:
            return self._close(node, "sealed value")
        parts = _parts(node, value, kind)
        if parts is not None:
            return parts
        if kind in _MEMBERS:
            node.label, node.brackets = _name(kind), "()"
            return [(name, getattr(value, name)) for name in _MEMBERS[kind]]
        if package == "numpy" and _name(kind) == "ndarray" and value.dtype.kind in "biufSU" and value.size <= MAX_ARRAY:
            node.label, node.brackets = f"ndarray of {value.dtype}", "[]"
            items = value.tolist()
            return [(_NO_KEY, item) for item in (items if isinstance(items, list) else [items])]
        name = _importable(value) if isinstance(value, _NAMED) else ""
        if name:
            node.text = f"<{'class' if isinstance(value, type) else _name(kind)} {name}>"
            return []
        if kind is SimpleNamespace or (is_transparent(kind) and not kind.__itemsize__):
            node.label, node.brackets = _name(kind), "()"
            return list(_fields(value, kind).items())
        where = f" {value.__qualname__}" if isinstance(value, FunctionType) else ""
        return self._close(node, f"{_name(kind)}{where}")

    def _close(self, node: Node, description: str) -> list[tuple[Any, Any]]:
        node.text = f"<{description}>" if "in full" in description else f"<{description}, cannot be shown in full>"
        node.quoted, node.scalar = False, None
        self._opaque.append(node.text)
        return []


_NO_KEY: Any = object()

# A subclass of a built-in type as that type, without running its code.
_PLAIN: dict[type, Any] = {
    str: str.__str__,
    bytes: lambda value: bytes(memoryview(value)),
    bytearray: lambda value: bytearray(memoryview(value)),
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
}


def _is_complete_in_text(kind: type, module: str, package: str) -> bool:
    # Only the library's own class counts, not a class that claims its name.
    if package == "numpy":
        generic = sys.modules["numpy"].generic
        known = issubclass(kind, generic) and sys.modules["numpy"].dtype(kind).kind in _PRINTED_KINDS_OF_NUMPY
    else:
        known = package in _PRINTED or (module.partition(".")[0], _name(kind)) in _PRINTED_TYPES
    return known and bool(_importable(kind))


def _parts(node: Node, value: Any, kind: type) -> list[tuple[Any, Any]] | None:
    """The parts of a container, whose brackets and label are filled in; None where `value` is not a known container."""
    parts: list[tuple[Any, Any]]
    names = kind.__dict__.get("_fields")
    if issubclass(kind, dict):
        node.brackets, node.label = "{}", "" if kind is dict else _name(kind)
        parts = list(dict.items(value))
    elif kind is MappingProxyType:
        node.brackets, node.label, parts = "{}", _name(kind), list(value.items())
    elif (
        issubclass(kind, tuple)
        and type(names) is tuple
        and len(names) == tuple.__len__(value)
        and {*map(type, names)} <= {str}
    ):
        node.brackets, node.label = "()", _name(kind)
        parts = list(zip(names, tuple.__iter__(value), strict=True))
    else:
        base = next((base for base in (list, tuple, set, frozenset, deque) if issubclass(kind, base)), None)
        if base is None:
            return None
        node.brackets = "()" if base is tuple else "[]"
        node.label = "" if kind in {list, tuple} else _name(kind)
        items: list[Any] = list(base.__iter__(value))
        if base in {set, frozenset} and len(items) <= MAX_SORTED:
            # By text, for a steady order. Nested sets are not sorted: each level would be read twice, and so 2^depth times in all.
            items.sort(key=lambda item: flat(view(item, 1).root) if type(item) in _SORTED else "")
        parts = [(_NO_KEY, item) for item in items]
    if kind not in _BUILT_IN:
        fields = _fields(value, kind)
        parts.extend((_Attribute(name) if type(name) is str else name, item) for name, item in fields.items())
    return parts


_SORTED = SCALARS | {bytes}
_BUILT_IN = frozenset({dict, list, tuple, set, frozenset, deque, MappingProxyType})


class _Attribute(str):
    """Name of an attribute of a container's subclass."""

    __slots__ = ()


_name: Callable[[type], str] = type.__dict__["__name__"].__get__  # past the metaclass of the class


def _fields(value: object, kind: type) -> dict[Any, Any]:
    """All instance attributes of an object, read without running its code."""
    fields: dict[Any, Any] = {}
    read = dictionary_getter(kind)
    own = None if read is None else read(value)
    if isinstance(own, dict):
        fields.update(dict.items(own))
    for base in kind.__mro__:
        for name, get in slots_of(base).items():
            if name == "__pydantic_fields_set__":
                continue
            try:
                item = get(value)
            except AttributeError:
                continue
            if item is None and name.startswith("__pydantic_"):
                continue
            if fields.setdefault(name, item) is not item:
                fields[f"{_name(base)}.{name}"] = item  # another attribute of this name hides it
    return fields


def _importable(value: object) -> str:
    """The name under which a function, class or module can be imported; empty where it has none."""
    if isinstance(value, ModuleType):
        return value.__name__ if sys.modules.get(value.__name__) is value else ""
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    found = sys.modules.get(module) if type(module) is str else None
    if found is None or type(path) is not str:
        return ""
    target: Any = found
    for name in path.split("."):
        target = vars(target).get(name) if hasattr(target, "__dict__") else None
    return f"{module}.{path}" if target is value else ""


def changed_arguments(approval: Approval) -> list[str]:
    """Return the parameters whose values an edit has changed."""
    asked = approval.asked
    if asked is None:
        return []
    now, before = ({name: flat(view(item).root) for name, item in held.items()} for held in (approval.arguments, asked))
    return [name for name in {**now, **before} if now.get(name) != before.get(name)]


def unshown_arguments(approval: Approval, max_characters: int) -> list[str]:
    """Return the arguments that cannot be shown in full, so that a plain consent to them does not count."""
    seen = {name: view(value, max_characters=max_characters) for name, value in approval.arguments.items()}
    return [*(name for name, found in seen.items() if found.opaque), *approval.unencoded]
