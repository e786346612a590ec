"""A value as a tree of what can be shown of it, and the tree as one line of text or as a JSON value."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any

MAX_PLAIN_DEPTH = 60
"""Nesting up to which a tree becomes nested JSON values; what is deeper becomes text."""


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
