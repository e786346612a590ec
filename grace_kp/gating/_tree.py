"""A value as a tree of what can be shown of it, and the tree as a line of text or as a JSON value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PLAIN_DEPTH = 60
"""Nesting up to which a tree becomes nested JSON values; deeper values become text."""


@dataclass(slots=True)
class Node:
    """One value of the tree: a leaf with `text`, or a container with `children`."""

    text: str = ""
    quoted: bool = False
    """The leaf is a text, and stands in quotes."""
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
        """What stands between a key and its value: `: ` in a mapping, `=` in an object."""
        return "=" if self.brackets == "()" else ": "


def pieces(root: Node) -> Iterator[Node | str]:
    """Yield a tree from left to right: leaves, keys and class names as leaf nodes, brackets and separators as texts."""
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
    """Return a tree on one line, with texts as JSON."""
    return "".join(piece if isinstance(piece, str) else _leaf_text(piece) for piece in pieces(root))


def _leaf_text(leaf: Node) -> str:
    text = json.dumps(leaf.text, ensure_ascii=False) if leaf.quoted else leaf.text
    return f"{leaf.label}({text})" if leaf.label else text


def plain(root: Node, depth: int = 0) -> Any:
    """Return a tree as a JSON value. Values that JSON does not have become text."""
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
