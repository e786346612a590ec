"""Read one search result: its score, where the engine puts it or the program declares it, and its source and text.

Documents and their metadata are written by others, so no score is read from them undeclared. Sources and texts are. It reads what
containers and objects store: no property, `__getattr__` or `__getitem__` runs, because it may query a database for each hit. Exceptions
are the fields of known libraries, and places and functions that the program declares. `_search_results` reads whole results.
"""

from __future__ import annotations

import gc
import re
import zlib
from collections import UserDict, UserList, deque
from collections.abc import Sequence, Set, ValuesView
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MemberDescriptorType, MethodDescriptorType
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._score_kinds import (
    UNKNOWN,
    Unusable,
    checked_similarity,
    class_module,
    figure_of,
    is_number,
    module_of,
    similarity_of,
)
from grace_kp.trace import SCALARS, class_mro, class_namespace, dictionary_getter, hidden_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_SOURCE = 200
MAX_TEXT = 1_000

PAIR = "(score of a pair)"
"""Key of the bare figure of a pair in a view; no field of a result has this name."""
SCORES = ("_score", "score", "similarity", "relevance_score", "relevance", "similarity_score")
DISTANCES = ("_distance", "distance")
PLACES = ("source", "url", "uri", "link", "href", "path", "file_path", "filename", "file_name", "file", "document_id")
NAMES = ("doc_id", "id", "_id", "title", "name", "key", "node_id")
TEXTS = ("text", "content", "page_content", "snippet", "passage", "body", "document", "chunk")
ERRORS = ("error", "errors", "error_message")
INSIDE = ("metadata", "meta", "document", "doc", "node", "payload", "_source", "properties")
_WHERE = {PAIR: "pair", **dict.fromkeys(SCORES, "named"), **dict.fromkeys(DISTANCES, "distance")}
FIGURES = frozenset(_WHERE)
"""Names of fields that are figures at the engine's place."""
_NO_RESULT = (TypeError, AttributeError, LookupError)
"""Errors of a `scores=` function that expects a figure and gets a result, or that does not find its field in the result."""
# Reasons why results are unusable. They are shown also where contents are not captured, so they contain no field names.
NOTHING_THERE = "it has no score at the declared place, as other results have"
_RIVAL = (
    "this field, too, may be the engine's score; declare the place with scores=('field', 'similarity') or a function"
)
COMPUTED = "a property of its class computes it, and only stored fields are read; declare the field with scores=('field', 'similarity')"
_LONGEST_NUMBER = 40
_RANKING = re.compile(
    r"score|dist|rank|relevan|similar|cosine|certainty|bm25|(?<![a-z])sim(?![a-z])|\?column\?|^error(?:s|_message)?$",
    re.IGNORECASE,
)
"""In names of fields that may hold an engine's figure or an error. PostgreSQL calls a computed column without an alias `?column?`."""
KNOWN = frozenset((*SCORES, *DISTANCES, *PLACES, *NAMES, *TEXTS, *INSIDE))
_TELLING = (*SCORES, *DISTANCES, *PLACES, *TEXTS, "metadata")

# Values of these modules are names, and converting them runs no foreign code.
_NAME_MODULES = frozenset({"uuid", "pathlib"})
_ROW_MODULES = frozenset({"sqlite3", "asyncpg"})
_IN_MEMORY = (
    "llama_index.", "pinecone.", "google.protobuf.", "google._upb.", "proto.", "vespa.", "tantivy.", "neo4j.",
    "sqlalchemy.engine.", "sqlalchemy.cyextension.",
)  # fmt: skip
"""Where the classes of libraries begin whose properties and `__getattr__` only hand out what they have in memory."""
_PLAIN = (str, bytes, bytearray, int, float, complex)
_COLLECTIONS: tuple[Any, ...] = (list, deque, set, frozenset)
_SIZED: tuple[Any, ...] = (bytes, list, tuple, dict, set, frozenset)
_ACCESS = frozenset({"__getattr__", "__getattribute__", "__getitem__"})
_OPEN_MODULES = _ROW_MODULES | {"builtins", "collections", "pydantic"}
"""Where such methods hand out what is read without them."""
_METHODS = (FunctionType, BuiltinFunctionType, MethodDescriptorType, classmethod, staticmethod, type)
_NOTHING: dict[str, Any] = {}
_MISSING = object()


class _FieldLayout:
    """Where the instances of a class store what is read of them."""

    __slots__ = ("computed", "constants", "hidden", "is_closed", "kind", "own", "slots", "unread")

    def __init__(self, kind: type) -> None:
        self.kind = kind  # lives as long as the layout is found by its id
        self.own = dictionary_getter(kind)
        self.slots: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.computed: set[str] = set()  # fields of a known library that its code hands out
        self.unread: set[str] = set()  # figures that other code computes
        self.is_closed = False  # whether other code may hand out any field
        for base in reversed(class_mro(kind)[:-1]):
            is_known = _is_in_memory(base)
            for name, member in class_namespace(base).items():
                if type(member) is MemberDescriptorType:
                    self.slots[name] = member.__get__
                elif name in _ACCESS:
                    self.is_closed |= not is_known and module_of(base) not in _OPEN_MODULES
                    self.computed = set(KNOWN) if is_known else set()
                elif name in KNOWN and not issubclass(type(member), _METHODS):
                    self.computed.discard(name)
                    if type(member) in SCALARS:
                        self.constants[name] = member
                    else:
                        (self.computed if is_known else self.unread).add(name)
        self.unread &= FIGURES
        self.hidden = hidden_fields(kind) - FIGURES

    def read(self, value: Any) -> dict[str, Any]:
        """Return the fields of an instance."""
        found = {**self.constants}
        for name, get in self.slots.items():
            with suppress(AttributeError):
                found[name] = get(value)
        if type(extra := found.get("__pydantic_extra__")) is dict:
            found |= extra
        if self.own is not None:
            found.update(dict.items(self.own(value)))
        for name in self.computed - found.keys():
            if (computed := attribute(value, name)) is not None:
                found[name] = computed
        found |= {name: Unusable(name, COMPUTED) for name in self.unread - found.keys()}
        for name in self.hidden & found.keys():
            del found[name]
        return found


class Looker:
    """Looks into the results of one search; remembers which names their classes have, and which of them may be the engine's figures."""

    __slots__ = ("_last", "_of_class", "_rivals", "closed")

    def __init__(self) -> None:
        self.closed: type | None = None
        """The class of a value in the current hit of which nothing can be read without running its code."""
        self._last: tuple[Any, dict[str, Any]] = (None, _NOTHING)
        self._of_class: dict[int, _FieldLayout] = {}
        self._rivals: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def view(self, value: Any) -> dict[str, Any]:
        """Return the items of a mapping, or the fields of any other value."""
        kind = type(value)
        if kind is dict:
            return value  # type: ignore[no-any-return]
        if value is None or issubclass(kind, _PLAIN):
            return _NOTHING
        if issubclass(kind, dict):
            return dict(dict.items(value))
        if kind is MappingProxyType:
            return self.view(gc.get_referents(value)[0])
        if value is self._last[0]:
            return self._last[1]
        layout = self._of_class.get(id(kind))
        if layout is None:
            layout = self._of_class[id(kind)] = _FieldLayout(kind)
        view = layout.read(value)
        if layout.is_closed and KNOWN.isdisjoint(view):
            self.closed = kind
        if issubclass(kind, UserDict):
            return self.view(view.get("data"))
        if "_d_" in view and "meta" in view:
            # A hit of Elasticsearch's or OpenSearch's DSL: its attributes are the document's, except `meta`.
            return {"payload": view["_d_"], **self.view(view["meta"])}
        view = _without_none(self.view(view["_d_"])) if "_d_" in view else view
        self._last = value, view
        return view

    def read_declared(self, value: object, name: str) -> Any:
        """Return the value of a field that the program declares, also if a property computes it; `_MISSING` without one."""
        found = self.view(value).get(name, _MISSING)
        is_stored = is_mapping(value) or not (found is _MISSING or type(found) is Unusable)
        return found if is_stored else attribute(value, name, _MISSING)

    def looks_like_hit(self, value: object) -> bool:
        """Return whether the value has any field that results have."""
        view = self.view(value)
        return any(view.get(name) is not None for name in _TELLING)

    def is_single_hit(self, value: object) -> bool:
        """Return whether the value is a hit itself, with content and a figure, so that a list in it is a part of the document."""
        view = self.view(value)
        return not FIGURES.isdisjoint(view) and bool(text_in([view]))

    def rival(self, hit: object) -> Unusable | None:
        """Return why the figure of a hit cannot be used: a further one may be the engine's, or the hit is an error; else None."""
        fields = self.view(hit)
        for name in self._ranking(tuple(fields)):
            value = fields[name]
            if name.lower() in ERRORS:
                if self.reports_error(hit):
                    return Unusable(name, "the result reports an error")
            elif is_number(value) or is_number_in_text(value):
                known = name.strip("_")  # one field under two names is not a rival, such as `score_` of Pinecone
                if known not in FIGURES or fields.get(known) != value:
                    return Unusable(name[:_LONGEST_NUMBER], _RIVAL)
        return None

    def reports_error(self, value: object) -> bool:
        """Return whether a result states an error, and has neither text nor title."""
        fields = self.view(value)
        errors = [fields.get(name) for name in ERRORS]
        return any(
            error is True or (type(error) in {str, list, dict} and not is_empty(error)) for error in errors
        ) and all(is_empty(fields.get(name)) for name in (*TEXTS, "title"))

    def _ranking(self, names: tuple[Any, ...]) -> tuple[str, ...]:
        # The hits of a search have the same fields, so their names are looked at once.
        found = self._rivals.get(names)
        if found is None:
            others = [name for name in names if isinstance(name, str) and name not in KNOWN]
            found = self._rivals[names] = tuple([name for name in others if _RANKING.search(name)])
        return found

    def views(self, parts: Sequence[object]) -> list[dict[str, Any]]:
        """Return the places of a hit's source and text: its parts, and one or two levels below."""
        self.closed, self._last = None, (None, _NOTHING)  # a stream may yield one object again, with other contents
        return [view for part in parts for view in self._within(part)]

    def _within(self, value: object) -> list[dict[str, Any]]:
        view = self.view(value)
        if not view:
            return [{"text": value}] if issubclass(type(value), str) else []
        views = [view]
        for name in INSIDE:
            inner = view.get(name)
            if inner is not None and not issubclass(type(inner), _PLAIN) and items_of(inner) is None:
                inside = self._inner(inner)
                views.append(inside)
                deeper = inside.get("metadata")
                if deeper is not None:
                    views.append(self._inner(deeper))
        return views

    def _inner(self, value: object) -> dict[str, Any]:
        # Objects inside a result have a field for everything that can be requested; None means that it was not requested.
        view = self.view(value)
        return view if is_mapping(value) else _without_none(view)


def _without_none(view: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in view.items() if value is not None}


def attribute(value: object, name: str, default: object = None) -> Any:
    """Return an attribute of a value, also if code hands it out; None where that fails."""
    try:
        return getattr(value, name, default)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 — extensions in Rust raise a BaseException where they panic
        return None


def _is_in_memory(kind: type) -> bool:
    return f"{class_module(kind)}.".startswith(_IN_MEMORY)


def is_mapping(value: object) -> bool:
    """Return whether the items of the value are read rather than its fields."""
    kind = type(value)
    return issubclass(kind, (dict, UserDict)) or kind is MappingProxyType


def split(item: Any) -> tuple[Any, list[Any]] | None:
    """Return a pair of document and score, in either order, as (score, the rest); None for any other value."""
    kind = type(item)
    if (kind is not list and kind is not tuple) or not 2 <= len(item) <= (2 if kind is list else 4):
        return None
    # An integer is an id, unless it is the last part and the only number.
    numbers = _fractions_in(item)
    if not numbers and is_number(item[-1]) and not any(map(is_number, item[:-1])):
        numbers = [len(item) - 1]
    if len(numbers) != 1:
        return None
    at = numbers[0]
    return item[at], [*item[:at], *item[at + 1 :]]


def _fractions_in(item: Sequence[object]) -> list[int]:
    return [index for index, part in enumerate(item) if is_number(part) and not issubclass(type(part), int)]


def pair_of(item: Any) -> tuple[Any, list[Any]] | None:
    """Split as `split` does, also where None, or in a tuple a number in a string, takes the place of the score."""
    pair = split(item)
    if pair is not None or type(item) not in {list, tuple} or len(item) != 2:
        return pair
    first, last = item
    if first is None or is_number(first) or issubclass(type(first), list):
        return None
    if last is None or (type(item) is tuple and is_number_in_text(last)):
        return last, [first]
    return None


def is_number_in_text(value: object) -> bool:
    """Return whether the value is a string with only a number."""
    text = text_of(value)
    if not text or len(text) > _LONGEST_NUMBER:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def named_row(hit: Any, path: str | None) -> Any:
    """Return a row of a database as a dict, if one of its columns is a figure or the path begins there; else as a plain collection."""
    kind, names = type(hit), ()
    if module_of(kind) in _ROW_MODULES and "keys" in class_namespace(kind):
        items, names = hit, hit.keys()
    elif issubclass(kind, (list, tuple)):
        items = items_of(hit)
        fields = next((space["_fields"] for space in map(class_namespace, class_mro(kind)) if "_fields" in space), ())
        names = fields if type(fields) is tuple else ()
    else:
        return hit
    wanted = FIGURES if path is None else {path, path.partition(".")[0]}
    return items if wanted.isdisjoint(names) else dict(zip(names, items, strict=False))


def parts_of(hit: Any) -> tuple[dict[str, Any] | None, Sequence[object]]:
    """Return the figure of a pair or a bare figure, under `PAIR`, and the documents of a hit."""
    kind = type(hit)
    if issubclass(kind, float) or (not issubclass(kind, _PLAIN) and is_number(hit)):
        return {PAIR: hit}, ()
    pair = pair_of(hit)
    if pair is not None:
        return {PAIR: pair[0]}, pair[1]
    return ({}, hit[:4]) if kind is tuple else (None, (hit,))  # a tuple without a score, such as (id, document)


def score_in(view: dict[str, Any], kind: Any, hit: object) -> float | Unusable | None:
    """Return the score of a hit at the engine's place, as a similarity from 0 to 1; why it is unusable; None without one.

    The first figure there must be usable, and so must all further ones that are numbers, also in texts, None or a bool. The lowest
    counts, because a field of the document may be among them.
    """
    present = FIGURES.intersection(view)
    if present and callable(kind):  # it gets the result, and may read computed fields of it
        present = frozenset(
            name for name in present if not (type(view[name]) is Unusable and view[name].why is COMPUTED)
        )
    if not present:
        if kind is None or isinstance(kind, str):
            # Else a row whose score is empty, or that has several numbers, would drop out of a scored search.
            row = items_of(hit) if issubclass(type(hit), tuple) else None
            if row is not None and len(row) > 2 and (row[-1] is None or len(_fractions_in(row)) > 1):
                return Unusable("a row", "which part of it is the score is not known; pass a function as scores=")
            return None if kind is None or kind == UNKNOWN else Missed("a result", NOTHING_THERE)
        # The function does not get a string, because `float` would read a number in it.
        return (
            Missed("a text", NOTHING_THERE) if issubclass(type(hit), _PLAIN) else _call_function(kind, hit, "a result")
        )
    if len(present) == 1:
        (name,) = present
        return _similarity(view[name], kind, _WHERE[name], hit)
    names = [name for name in _WHERE if name in present]
    if kind is not None and kind != UNKNOWN:  # a declared kind is that of the fields with its name, where there are any
        wanted = "distance" if isinstance(kind, str) and "distance" in kind else "named"
        names = [name for name in names if _WHERE[name] == wanted] or names
    others = [name for name in names[1:] if _counts(view[name])]
    return _lowest(_similarity(view[name], kind, _WHERE[name], hit) for name in (names[0], *others))


def _counts(value: object) -> bool:
    return value is None or type(value) is bool or is_number(value) or is_number_in_text(value)


def values_at(look: Looker, value: object, path: str) -> Iterator[Any]:
    """Yield the values at a path of names with dots between them; a name may itself contain dots.

    The program declares the path, so a property there is run.
    """
    whole = look.read_declared(value, path)
    if whole is not _MISSING:
        yield whole
    at = path.find(".")
    while at > 0:
        inner = look.read_declared(value, path[:at])
        if inner is not None and inner is not _MISSING and not issubclass(type(inner), _PLAIN):
            yield from values_at(look, inner, path[at + 1 :])
        at = path.find(".", at + 1)


def score_at(look: Looker, starts: Iterable[object], path: str, kind: Any) -> float | Unusable | None:
    """Return the score of a hit at a declared path, as a similarity from 0 to 1, or why it is unusable."""
    values = [value for start in starts for value in values_at(look, start, path)]
    if not values:
        return Missed("a result", NOTHING_THERE)
    return _lowest(_similarity(value, kind, "named", None) for value in values)


def _lowest(found: Iterable[float | Unusable]) -> float | Unusable | None:
    """Return the lowest similarity, the first unusable figure if there is any, or None where there is neither."""
    least: float | None = None
    for score in found:
        if isinstance(score, Unusable):
            return score
        if least is None or score < least:
            least = score
    return least


def _similarity(value: object, kind: Any, where: str, hit: object) -> float | Unusable:
    figure = figure_of(value)
    if isinstance(figure, Unusable):
        return figure
    if kind is None or isinstance(kind, str):
        return similarity_of(figure, kind, where=where)
    found = _call_function(kind, figure, repr(figure))
    if isinstance(found, Missed) and hit is not None and not issubclass(type(hit), _PLAIN):
        by_result = _call_function(kind, hit, "a result")
        found = found if isinstance(by_result, Missed) else by_result
    return Unusable(found.value, found.why) if isinstance(found, Missed) else found


class Missed(Unusable):
    """A result without a score at the place that the program declares."""

    __slots__ = ()


def _call_function(function: Callable[[Any], object], value: object, shown: str) -> float | Unusable:
    try:
        found = function(value)
        if found is None and type(value) is not float:
            return Missed(shown, "the function passed as scores returned None")
        return checked_similarity(found, shown)
    except _NO_RESULT as error:
        return Missed(shown, f"the function passed as scores raised {type(error).__name__}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — the user's function may raise anything
        return Unusable(shown, f"the function passed as scores raised {type(error).__name__}")


def usable_score(value: object) -> float | None:
    """Return the value as a similarity from 0 to 1; None when it is not one."""
    found = _similarity(value, "similarity", "named", None)
    return None if isinstance(found, Unusable) else found


def source_in(views: list[dict[str, Any]]) -> str:
    """Return the document that a hit comes from: a place, else a name or id, else its text."""
    for names in (PLACES, NAMES):
        for view in views:
            for name in names:
                value = view.get(name)
                if value is not None and (source := _name(value)):
                    return source
    return next((source for text in _texts_in(views) if (source := _short(text))), "")


def text_in(views: list[dict[str, Any]]) -> str:
    """Return the beginning of a hit's text."""
    return next(_texts_in(views), "")[:MAX_TEXT]


def _texts_in(views: list[dict[str, Any]]) -> Iterator[str]:
    return (text for view in views for name in TEXTS if (text := text_of(view.get(name))))


def text_of(value: Any) -> str:
    """Return a string, past the code of a subclass; empty for any other value."""
    kind = type(value)
    return value if kind is str else str.__str__(value) if issubclass(kind, str) else ""


def _name(value: Any) -> str:
    kind = type(value)
    if issubclass(kind, str):
        return _short(text_of(value))
    if issubclass(kind, int) and kind is not bool:
        return int.__repr__(value) if int.bit_length(value) <= 256 else ""
    if issubclass(kind, dict):
        inner = (text_of(dict.get(value, name)) for name in ("url", "uri", "path", "id", "name", "title"))
        return next((_short(text) for text in inner if text), "")
    return _short(str(value)) if module_of(kind) in _NAME_MODULES else ""


def _short(text: str) -> str:
    """Return a short string as it is, and a label that identifies a longer one without showing it."""
    if len(text) <= MAX_SOURCE:
        return text.strip()
    sample = f"{len(text)}:{text[:2_000]}{text[-2_000:]}"
    return f"text {zlib.crc32(sample.encode('utf-8', 'surrogatepass')):08x}"


def items_of(value: Any) -> list[Any] | tuple[Any, ...] | None:
    """Return the items of a collection that can be read without consuming it and without running foreign code; None for any other value."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value  # type: ignore[no-any-return]
    if value is None or kind is dict or issubclass(kind, _PLAIN):
        return None
    if issubclass(kind, tuple):
        return tuple(tuple.__iter__(value))
    for base in _COLLECTIONS:
        if issubclass(kind, base):
            return list(base.__iter__(value))
    if issubclass(kind, UserList):
        return items_of(_FieldLayout(kind).read(value).get("data"))
    # No other sequence of Python: a range may have more items than memory holds.
    kinds = (Sequence, Set, ValuesView) if _is_in_memory(kind) else (Set, ValuesView)
    is_safe = _is_in_memory(kind) or module_of(kind) == "builtins"
    return list(value) if is_safe and issubclass(kind, kinds) else None


def is_empty(value: Any) -> bool:
    """Return whether the value means an empty result."""
    kind = type(value)
    if value is None or value is False or kind is dict or kind is list or kind is tuple:
        return not value
    if issubclass(kind, str):
        text = text_of(value)
        return not text or text.isspace()
    return any(issubclass(kind, base) and not base.__len__(value) for base in _SIZED)
