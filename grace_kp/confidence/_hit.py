"""What one search result says of itself: its score and its source, wherever its maker has put them.

It reads items and attributes and never prints or calls anything. What whole results look like is `_hits`.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping, Sequence, Set
from typing import Any

MAX_SOURCE = 200
MAX_TEXT = 1_000

SCORES = ("score", "similarity", "relevance_score", "relevance", "confidence", "_score", "similarity_score")
DISTANCES = ("distance", "_distance")
PLACES = ("source", "url", "uri", "link", "href", "path", "file_path", "filename", "file_name", "file", "document_id")
NAMES = ("doc_id", "id", "_id", "title", "name", "key", "node_id")
TEXTS = ("text", "content", "page_content", "snippet", "passage", "body", "document", "chunk")
INSIDE = ("metadata", "meta", "document", "doc", "node", "payload", "_source", "properties")
_KNOWN = frozenset((*SCORES, *DISTANCES, *PLACES, *NAMES, *TEXTS, *INSIDE))
_TELLING = (*SCORES, *DISTANCES, *PLACES, *TEXTS, "metadata")

# Types of these modules are numbers, or names, that run no foreign code when they are converted.
_NUMBER_MODULES = frozenset({"decimal", "fractions", "numpy", "torch", "jax", "jaxlib", "tensorflow"})
_NAME_MODULES = frozenset({"uuid", "pathlib"})
_PLAIN = (str, bytes, bytearray, int, float, complex)
_SIZED = (bytes, list, tuple, dict, set, frozenset)
_LISTED = (list, tuple, deque, Set)
_NOTHING: dict[str, Any] = {}


class Looker:
    """Looks into the results of one search; remembers what it has learned of their classes."""

    __slots__ = ("_of_class",)

    def __init__(self) -> None:
        self._of_class: dict[type, frozenset[str]] = {}

    def view(self, value: Any) -> dict[str, Any]:
        """The items or attributes of a value that have a known name, as a dict; more than these if it is a dict."""
        kind = type(value)
        if kind is dict:
            return value  # type: ignore[no-any-return]
        if value is None or isinstance(value, _PLAIN):
            return _NOTHING
        if isinstance(value, Mapping):
            return {name: value[name] for name in _KNOWN if name in value}
        names = self._of_class.get(kind)
        if names is None:
            everything = hasattr(kind, "__getattr__")
            names = _KNOWN if everything else frozenset(name for name in _KNOWN if hasattr(kind, name))
            self._of_class[kind] = names
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict) and own:
            names = names | (_KNOWN & own.keys())
        return {name: attribute(value, name) for name in names}

    def looks_like_hit(self, value: Any) -> bool:
        """Whether the value has anything that results have."""
        view = self.view(value)
        return any(view.get(name) is not None for name in _TELLING)

    def views(self, hit: Any) -> list[dict[str, Any]]:
        """Where a hit's score and source may stand: in itself, what came with it in a pair, and one or two levels in."""
        pair = split(hit)
        if pair is None:
            # A tuple without a score, such as (id, document).
            parts = hit[:4] if isinstance(hit, tuple) else (hit,)
            return [view for part in parts for view in self._within(part)]
        score, rest = pair
        return [{"score": score}, *(view for part in rest for view in self._within(part))]

    def _within(self, value: Any) -> list[dict[str, Any]]:
        view = self.view(value)
        if not view:
            return [{"text": value}] if isinstance(value, str) else []
        views = [view]
        for name in INSIDE:
            inner = view.get(name)
            if inner is not None and not isinstance(inner, _PLAIN) and not is_listed(inner):
                inside = self.view(inner)
                views.append(inside)
                deeper = inside.get("metadata")
                if deeper is not None:
                    views.append(self.view(deeper))
        return views


def attribute(value: Any, name: str) -> Any:
    """An item of a mapping, an attribute of anything else; None where there is none or looking fails."""
    try:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:  # noqa: BLE001 — a foreign property may raise anything
        return None


def split(item: Any) -> tuple[Any, list[Any]] | None:
    """A pair of document and score, in either order, as (score, the rest); None for anything else."""
    if not isinstance(item, list | tuple) or not 2 <= len(item) <= (2 if isinstance(item, list) else 4):
        return None
    # An integer is an id, unless it stands last and alone.
    numbers = [index for index, part in enumerate(item) if is_number(part) and not isinstance(part, int)]
    if not numbers and is_number(item[-1]) and not any(map(is_number, item[:-1])):
        numbers = [len(item) - 1]
    if len(numbers) != 1:
        return None
    at = numbers[0]
    return item[at], [*item[:at], *item[at + 1 :]]


def score_in(views: list[dict[str, Any]]) -> tuple[bool, float | None]:
    """Whether there is something like a score, and the first that is one."""
    found = False
    for view in views:
        for name in SCORES:
            value = view.get(name)
            if value is not None:
                found = True
                score = usable_score(value)
                if score is not None:
                    return True, score
        found = found or any(view.get(name) is not None for name in DISTANCES)
    return found, None


def usable_score(value: Any) -> float | None:
    """The value as a score from 0 to 1; None when it is none."""
    if not is_number(value):
        return None
    try:
        score = float(value)
    except Exception:  # noqa: BLE001 — an array of many, an integer that is too large
        return None
    return score if 0.0 <= score <= 1.0 else None


def source_in(views: list[dict[str, Any]]) -> str:
    """The document that a hit comes from; its own id only where there is nothing better, its text only as the last."""
    for names in (PLACES, NAMES):
        for view in views:
            for name in names:
                value = view.get(name)
                if value is not None and (source := _name(value)):
                    return source
    for view in views:
        for name in TEXTS:
            text = view.get(name)
            if isinstance(text, str) and (source := _short(text)):
                return source
    return ""


def text_in(views: list[dict[str, Any]]) -> str:
    """The beginning of a hit's text."""
    for view in views:
        for name in TEXTS:
            text = view.get(name)
            if isinstance(text, str) and text:
                return str.__str__(text)[:MAX_TEXT]
    return ""


def _name(value: Any) -> str:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value)) if value.bit_length() <= 256 else ""
    if isinstance(value, dict):
        inner = (value.get(name) for name in ("url", "uri", "path", "id", "name", "title"))
        return next((_short(text) for text in inner if isinstance(text, str) and text), "")
    return _short(str(value)) if _module(value) in _NAME_MODULES else ""


def _short(text: str) -> str:
    """The text itself if it can pass for a name; else a label that tells it from others and gives nothing away."""
    plain = str.__str__(text)
    if len(plain) <= MAX_SOURCE:
        return plain.strip()
    sample = f"{len(plain)}:{plain[:2_000]}{plain[-2_000:]}"
    return f"text {zlib.crc32(sample.encode('utf-8', 'surrogatepass')):08x}"


def is_number(value: Any) -> bool:
    """Whether the value is a number, Python's own or of a library that is known; a truth value is none."""
    if isinstance(value, int | float):
        return not isinstance(value, bool)
    return _module(value) in _NUMBER_MODULES and hasattr(type(value), "__float__")


def is_listed(value: Any) -> bool:
    """Whether the value is a collection that may be walked through without consuming it."""
    if type(value) is dict or isinstance(value, _PLAIN):
        return False
    return isinstance(value, _LISTED) or (isinstance(value, Sequence) and not isinstance(value, memoryview))


def is_empty(value: Any) -> bool:
    """Whether the value says that there is nothing."""
    if value is None or value is False:
        return True
    if isinstance(value, str):
        return not value or value.isspace()
    return isinstance(value, _SIZED) and not value


def _module(value: Any) -> str:
    module = type(value).__module__
    return module.partition(".")[0] if isinstance(module, str) else ""
