"""The complete content of a value, for reviewers: a tree without cuts and without redaction.

`trace._render` bounds a value so that it can be recorded cheaply. A reviewer needs the opposite: every character of what will run, or
the statement that something cannot be shown. This module runs no code of the values it reads.
"""

from __future__ import annotations

import enum
import json
import math
import re
import sys
from collections import deque
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any

MAX_VALUES = 100_000
MAX_CHARACTERS = 2_000_000
MAX_PLAIN_DEPTH = 60
"""Nesting up to which a tree becomes nested JSON values; what is deeper becomes text."""

MAX_DECIMAL_BITS = 13_000
"""Size up to which an integer is shown in decimal; Python refuses to print much larger ones."""
MAX_ARRAY = 1_000
"""Number of items up to which an array is shown."""

_HEAP_TYPE = 1 << 9
_TEXTS = (str, bytes, bytearray)
_SCALARS = (*_TEXTS, int, float, memoryview)
_NAMED = (FunctionType, BuiltinFunctionType, ModuleType, type)
_PRINTED = frozenset({"datetime", "decimal", "fractions", "pathlib", "uuid", "ipaddress", "zoneinfo"})
_INTEGERS_OF_JSON = range(-(2**63), 2**64)


@dataclass(slots=True)
class Node:
    """One value of the tree: a leaf with `text`, or a container with `children`."""

    text: str = ""
    quoted: bool = False
    """The leaf is a text, and stands in quotes."""
    label: str = ""
    """Name of the class, where the value is none of JSON's own kinds."""
    brackets: str = ""
    """Opening and closing bracket of a container; empty for a leaf."""
    children: list[tuple[Node | None, Node]] = field(default_factory=list)
    """Key and value; the key is None in a sequence."""
    scalar: Any = None
    """The JSON value of a leaf, where it has one."""


@dataclass(slots=True)
class View:
    """A value to be shown, and what of it cannot be shown."""

    root: Node
    opaque: list[str]
    """Descriptions of the parts that cannot be shown in full, in the order in which they appear."""


def view(value: Any, max_values: int = MAX_VALUES, max_characters: int = MAX_CHARACTERS) -> View:
    """Return the complete content of `value`.

    Args:
        value: any object.
        max_values: number of nested values after which the rest counts as not shown.
        max_characters: number of characters of text after which the rest counts as not shown.
    """
    return _Viewing(max_values, max_characters).of(value)


class _Viewing:
    """One traversal, with an explicit stack, so that no depth exceeds the interpreter's."""

    def __init__(self, max_values: int, max_characters: int) -> None:
        self._values = max_values
        self._characters = max_characters
        self._opaque: list[str] = []
        self._ancestors: dict[int, int] = {}
        self._depth = 0

    def of(self, value: Any) -> View:
        root = Node()
        # A step is either (node, value) to fill in, or (None, id) when the container with this id is complete.
        stack: list[tuple[Node | None, Any]] = [(root, value)]
        while stack:
            node, item = stack.pop()
            if node is None:
                del self._ancestors[item]
                self._depth -= 1
                continue
            parts = self._fill(node, item)
            if not node.brackets:
                continue
            self._ancestors[id(item)] = self._depth
            self._depth += 1
            stack.append((None, id(item)))
            for key, _ in parts:
                name = None if key is _NO_KEY else Node()
                node.children.append((name, Node()))
                if name is not None:
                    self._key(name, key)
            stack.extend(
                (child, part) for (_, child), (_, part) in reversed(list(zip(node.children, parts, strict=True)))
            )
        return View(root, self._opaque)

    def _key(self, node: Node, key: Any) -> None:
        if type(key) is str:
            self._text(node, key)
            return
        if type(key) is _Attribute:
            node.text = f".{key}"
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
            node.text = f"{_name(kind)}.{object.__getattribute__(value, '__dict__').get('_name_')}"
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
            # A subclass: attributes that its instances carry are part of what is passed.
            node.label, node.brackets = _name(kind), "()"
            return [("value", base.__getitem__(value, slice(None)) if base in _TEXTS else base(value)), *own.items()]
        if base is str:
            self._text(node, str.__str__(value))
        elif base is int:
            number = int.__int__(value)
            node.text = int.__repr__(number) if number.bit_length() <= MAX_DECIMAL_BITS else hex(number)
            node.scalar = number if number in _INTEGERS_OF_JSON else None
        elif base is float:
            node.text = float.__repr__(value)
            node.scalar = float.__float__(value) if math.isfinite(value) else None
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
        size = value.nbytes if isinstance(value, memoryview) else len(value)
        self._characters -= 4 * size
        if self._characters < 0:
            self._close(node, f"{_name(kind)} of {size:,} bytes, too long to be shown in full")
        else:
            node.text = bytes.__repr__(bytes(value))

    def _composite(self, node: Node, value: Any, kind: type) -> list[tuple[Any, Any]]:
        module = kind.__module__ if type(kind.__module__) is str else ""
        package = module.partition(".")[0]
        if package in _PRINTED:
            self._text(node, str(value))
            node.label, node.scalar = _name(kind), node.text
            return []
        parts = _parts(node, value, kind)
        if parts is not None:
            return parts
        if kind is range:
            node.text = repr(value)
            return []
        if kind is re.Pattern:
            node.label, node.brackets = "Pattern", "()"
            return [("pattern", value.pattern), ("flags", value.flags)]
        if package == "numpy" and _name(kind) == "ndarray" and value.dtype.kind in "biufSU" and value.size <= MAX_ARRAY:
            node.label, node.brackets = f"ndarray of {value.dtype}", "[]"
            items = value.tolist()
            return [(_NO_KEY, item) for item in (items if isinstance(items, list) else [items])]
        name = _importable(value) if isinstance(value, _NAMED) else ""
        if name:
            node.text = f"<{'class' if isinstance(value, type) else _name(kind)} {name}>"
            return []
        if _is_transparent(kind):
            node.label, node.brackets = _name(kind), "()"
            return list((_fields(value, kind) or {}).items())
        where = f" {value.__qualname__}" if isinstance(value, FunctionType) else ""
        return self._close(node, f"{_name(kind)}{where}")

    def _close(self, node: Node, what: str) -> list[tuple[Any, Any]]:
        """Say that a value is not shown."""
        node.text = f"<{what}>" if "in full" in what else f"<{what}, cannot be shown in full>"
        node.quoted, node.scalar = False, None
        self._opaque.append(node.text)
        return []


_NO_KEY: Any = object()


def _parts(node: Node, value: Any, kind: type) -> list[tuple[Any, Any]] | None:
    """The parts of a container, whose brackets and label are filled in; None where `value` is no known container."""
    parts: list[tuple[Any, Any]]
    if issubclass(kind, dict):
        node.brackets, node.label = "{}", "" if kind is dict else _name(kind)
        parts = list(dict.items(value))
    elif kind is MappingProxyType:
        node.brackets, node.label, parts = "{}", _name(kind), list(value.items())
    elif issubclass(kind, tuple) and isinstance(kind.__dict__.get("_fields"), tuple):
        node.brackets, node.label = "()", _name(kind)
        parts = list(zip(kind.__dict__["_fields"], tuple.__iter__(value), strict=False))
    else:
        base = next((base for base in (list, tuple, set, frozenset, deque) if issubclass(kind, base)), None)
        if base is None:
            return None
        node.brackets = "()" if base is tuple else "[]"
        node.label = "" if kind in {list, tuple} else _name(kind)
        items: list[Any] = list(base.__iter__(value))
        if base in {set, frozenset}:
            items.sort(key=lambda item: flat(view(item, 1_000).root))
        parts = [(_NO_KEY, item) for item in items]
    if kind not in _BUILT_IN:
        fields = _fields(value, kind)
        parts.extend((_Attribute(name), item) for name, item in (fields or {}).items())
    return parts


_BUILT_IN = frozenset({dict, list, tuple, set, frozenset, deque, MappingProxyType})


class _Attribute(str):
    """Name of an attribute of a container's subclass."""

    __slots__ = ()


_type_name: Any = type.__dict__["__name__"].__get__


def _name(kind: type) -> str:
    """Name of a class, whatever its metaclass makes of `__name__`."""
    name: str = _type_name(kind)
    return name


def _fields(value: Any, kind: type) -> dict[str, Any] | None:
    """All instance attributes of an object, read without running its code; None where it has no place for any."""
    fields: dict[str, Any] = {}
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = None
    if type(own) is dict:
        fields.update(own)
    found = own is not None
    for base in kind.__mro__:
        for name in _slots(base):
            found = True
            mangled = f"_{base.__name__.lstrip('_')}{name}" if name[:2] == "__" and name[-2:] != "__" else name
            slot = base.__dict__.get(mangled)
            if type(slot) is not MemberDescriptorType or mangled == "__pydantic_fields_set__":
                continue
            try:
                item = slot.__get__(value, kind)
            except AttributeError:
                continue
            if item is not None or not name.startswith("__pydantic_"):
                fields.setdefault(mangled, item)
    return {name: item for name, item in fields.items() if type(name) is str} if found else None


def _slots(base: type) -> tuple[str, ...]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_transparent(kind: type) -> bool:
    """Whether the attributes of an object are all there is of it: its class is written in Python, up to `object`."""
    room = 8 if kind.__dictoffset__ > 0 else 0
    room += 8 if kind.__weakrefoffset__ > 0 else 0
    room += 8 * sum(name not in {"__dict__", "__weakref__"} for base in kind.__mro__ for name in _slots(base))
    in_python = all(base is object or base.__flags__ & _HEAP_TYPE for base in kind.__mro__)
    return in_python and kind.__basicsize__ <= object.__basicsize__ + room and kind.__itemsize__ == 0


def _importable(value: Any) -> str:
    """The name under which a function, class or module can be imported; empty where there is none."""
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


def flat(node: Node, limit: int = sys.maxsize) -> str:
    """A tree on one line, with texts as JSON; empty where it is longer than `limit`."""
    out: list[str] = []
    size = 0
    stack: list[Node | str] = [node]
    while stack:
        item = stack.pop()
        if type(item) is str:
            out.append(item)
        else:
            assert isinstance(item, Node)  # noqa: S101
            out.append(_leaf_text(item) if not item.brackets else f"{item.label}{item.brackets[0]}")
            if item.brackets:
                stack.extend(_pieces(item))
        size += len(out[-1])
        if size > limit:
            return ""
    return "".join(out)


def _pieces(node: Node) -> list[Node | str]:
    """What follows the opening bracket, last piece first."""
    pieces: list[Node | str] = [closing(node)]
    for number in range(len(node.children) - 1, -1, -1):
        key, child = node.children[number]
        pieces.append(child)
        if key is not None:
            pieces.extend([separator(node), key_text(node, key)])
        if number:
            pieces.append(", ")
    return pieces


def closing(node: Node) -> str:
    """The closing bracket; a tuple of one value has a comma before it."""
    is_single = len(node.children) == 1 and node.brackets == "()" and not node.label
    return ",)" if is_single else node.brackets[1]


def separator(node: Node) -> str:
    """What stands between a key and its value: `: ` in a mapping, `=` in an object."""
    return "=" if node.brackets == "()" else ": "


def key_text(node: Node, key: Node) -> str:
    """A key as it is shown: a name in an object, a text in quotes in a mapping."""
    return key.text if node.brackets == "()" and key.text.isidentifier() else _leaf_text(key)


def _leaf_text(node: Node) -> str:
    text = json.dumps(node.text, ensure_ascii=False) if node.quoted else node.text
    return f"{node.label}({text})" if node.label else text


def plain(node: Node) -> Any:
    """A tree as a JSON value. Values that JSON does not have become text."""
    return _plain(node, 0)


def _plain(node: Node, depth: int) -> Any:
    if not node.brackets:
        if node.scalar is not None or node.text == "null":
            return node.scalar
        return _leaf_text(node) if node.label and not node.quoted else node.text
    if depth >= MAX_PLAIN_DEPTH:
        return flat(node)
    keyed = [key for key, _ in node.children if key is not None]
    if len(keyed) < len(node.children) or _is_sequence(node):
        return flat(node) if keyed else [_plain(child, depth + 1) for _, child in node.children]
    out: dict[str, Any] = {"@class": node.label} if node.label else {}
    for key, (_, child) in zip(keyed, node.children, strict=True):
        name, number = key.text, 1
        while name in out:
            number += 1
            name = f"{key.text} ({number})"
        out[name] = _plain(child, depth + 1)
    return out


def _is_sequence(node: Node) -> bool:
    return node.brackets == "[]" or (node.brackets == "()" and not node.label)
