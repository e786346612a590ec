"""Read one search result: its score, where the engine puts it or the program declares it, and its source and text.

Documents and their metadata are written by others, so no score is read from them undeclared. Sources and texts are. It reads items and
attributes, and calls nothing but the function that the program declares. `_search_results` reads whole results.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Mapping, Sequence, Set, ValuesView
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._score_kinds import (
    UNKNOWN,
    Unusable,
    checked_similarity,
    figure_of,
    is_number,
    module_of,
    similarity_of,
)

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
# Why results are unusable. They are shown also where contents are not captured, so no name of a field stands in them.
NOTHING_THERE = "it has no score at the declared place, as other results have"
_RIVAL = (
    "this field, too, may be the engine's score; declare the place with scores=('field', 'similarity') or a function"
)
_LONGEST_NUMBER = 40
_MOST_NAMES = 1_000
_STEMS = ("score", "dist", "rank", "relevan", "sim", "cosine", "certainty", "bm25", "?column?", "error")
"""Some of them stand in each name that `_RANKING` finds. To look for them first is several times faster."""
_RANKING = re.compile(
    r"score|dist|rank|relevan|similar|cosine|certainty|bm25|(?<![a-z])sim(?![a-z])|\?column\?|^error(?:s|_message)?$",
    re.IGNORECASE,
)
"""In names of fields that may hold an engine's figure or an error. PostgreSQL calls a computed column without an alias `?column?`."""
_KNOWN = frozenset((*SCORES, *DISTANCES, *PLACES, *NAMES, *TEXTS, *INSIDE))
_TELLING = (*SCORES, *DISTANCES, *PLACES, *TEXTS, "metadata")

# Values of these modules are names, and converting them runs no foreign code.
_NAME_MODULES = frozenset({"uuid", "pathlib"})
_PLAIN = (str, bytes, bytearray, int, float, complex)
_SIZED = (bytes, list, tuple, dict, set, frozenset)
_LISTED = (list, tuple, deque, Set, ValuesView)
_NOTHING: dict[str, Any] = {}


class Looker:
    """Looks into the results of one search; remembers which names their classes have, and which of them may be the engine's figures."""

    __slots__ = ("_of_class", "_rivals")

    def __init__(self) -> None:
        self._of_class: dict[type, frozenset[str]] = {}
        self._rivals: dict[type | tuple[Any, ...], tuple[str, ...]] = {}

    def view(self, value: Any) -> dict[str, Any]:
        """Return the items or attributes of a value that have a known name; a dict is returned whole."""
        kind = type(value)
        if kind is dict:
            return value  # type: ignore[no-any-return]
        if value is None or isinstance(value, _PLAIN):
            return _NOTHING
        if isinstance(value, Mapping):
            return {name: value[name] for name in _KNOWN if name in value}
        names = self._of_class.get(kind)
        everything = hasattr(kind, "__getattr__")
        if names is None:
            names = _KNOWN if everything else frozenset(name for name in _KNOWN if hasattr(kind, name))
            self._of_class[kind] = names
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict) and own:
            names = names | (_KNOWN & own.keys())
        view = {name: attribute(value, name) for name in names}
        # A class with __getattr__ has every name; None then means that there is no such field.
        return _without_none(view) if everything else view

    def looks_like_hit(self, value: object) -> bool:
        """Return whether the value has any field that results have."""
        view = self.view(value)
        return any(view.get(name) is not None for name in _TELLING)

    def is_single_hit(self, value: object) -> bool:
        """Return whether the value is a hit itself, with a text and a figure, so that a list in it is a part of the document."""
        view = self.view(value)
        return not FIGURES.isdisjoint(view) and bool(text_in([view]))

    def rival(self, hit: object) -> Unusable | None:
        """Return why the figure of a hit cannot be used: a further one may be the engine's, or the hit is an error; else None."""
        kind = type(hit)
        if kind is dict:
            names = self._ranking(tuple(hit))  # type: ignore[arg-type]
        elif kind not in self._rivals and isinstance(hit, Mapping):
            names = self._ranking(tuple(islice(hit, _MOST_NAMES)))
        else:
            of_class = self._rivals.get(kind)
            if of_class is None:
                of_class = self._ranking(tuple(name for base in kind.__mro__[:-1] for name in vars(base)))
                self._rivals[kind] = of_class
            own = getattr(hit, "__dict__", None)
            names = self._ranking(tuple(own)) + of_class if isinstance(own, dict) else of_class
        for name in names:
            value = attribute(hit, name)
            if name.lower() in ERRORS:
                if reports_error(hit):
                    return Unusable(name, "the result reports an error")
            elif is_number(value) or is_number_in_text(value):
                return Unusable(name[:_LONGEST_NUMBER], _RIVAL)
        return None

    def _ranking(self, names: tuple[Any, ...]) -> tuple[str, ...]:
        # The hits of a search have the same fields, so their names are looked at once.
        found = self._rivals.get(names)
        if found is None:
            others = [name for name in names if isinstance(name, str) and name not in _KNOWN]
            together = " ".join(others).lower()
            any_ranks = any(stem in together for stem in _STEMS)
            found = tuple([name for name in others if _RANKING.search(name)]) if any_ranks else ()
            self._rivals[names] = found
        return found

    def views(self, parts: Sequence[object]) -> list[dict[str, Any]]:
        """Return where the source and text of a hit's parts may stand: in them, and one or two levels below."""
        return [view for part in parts for view in self._within(part)]

    def _within(self, value: object) -> list[dict[str, Any]]:
        view = self.view(value)
        if not view:
            return [{"text": value}] if isinstance(value, str) else []
        views = [view]
        for name in INSIDE:
            inner = view.get(name)
            if inner is not None and not isinstance(inner, _PLAIN) and not is_listed(inner):
                inside = self._inner(inner)
                views.append(inside)
                deeper = inside.get("metadata")
                if deeper is not None:
                    views.append(self._inner(deeper))
        return views

    def _inner(self, value: object) -> dict[str, Any]:
        # Objects inside a result have a field for everything that can be requested; None means that it was not requested.
        view = self.view(value)
        return view if isinstance(value, Mapping) else _without_none(view)


def _without_none(view: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in view.items() if value is not None}


def reports_error(value: object) -> bool:
    """Return whether a result states an error, and has neither text nor title."""
    errors = (attribute(value, name) for name in ERRORS)
    return any(
        error is True or (isinstance(error, str | list | dict) and not is_empty(error)) for error in errors
    ) and all(is_empty(attribute(value, name)) for name in (*TEXTS, "title"))


def attribute(value: object, name: str) -> Any:
    """Return an item of a mapping or an attribute of any other value; None where it is missing or cannot be read."""
    try:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:  # noqa: BLE001 — a foreign property may raise anything
        return None


def split(item: object) -> tuple[Any, list[Any]] | None:
    """Return a pair of document and score, in either order, as (score, the rest); None for any other value."""
    if not isinstance(item, list | tuple) or not 2 <= len(item) <= (2 if isinstance(item, list) else 4):
        return None
    # An integer is an id, unless it is the last part and the only number.
    numbers = [index for index, part in enumerate(item) if is_number(part) and not isinstance(part, int)]
    if not numbers and is_number(item[-1]) and not any(map(is_number, item[:-1])):
        numbers = [len(item) - 1]
    if len(numbers) != 1:
        return None
    at = numbers[0]
    return item[at], [*item[:at], *item[at + 1 :]]


def pair_of(item: object) -> tuple[Any, list[Any]] | None:
    """Split as `split` does, also where None, or in a tuple a number in a text, takes the place of the score."""
    pair = split(item)
    if pair is not None or not isinstance(item, list | tuple) or len(item) != 2:
        return pair
    first, last = item
    if first is None or is_number(first) or isinstance(first, list):
        return None
    if last is None or (isinstance(item, tuple) and is_number_in_text(last)):
        return last, [first]
    return None


def is_number_in_text(value: object) -> bool:
    """Return whether the value is a text that holds a number and nothing else."""
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return False
    try:
        float(str.__str__(value))
    except ValueError:
        return False
    return True


def parts_of(hit: object) -> tuple[dict[str, Any] | None, Sequence[object]]:
    """Return the figure of a pair or a bare figure, under `PAIR`, and the documents of a hit."""
    if isinstance(hit, float) or (not isinstance(hit, _PLAIN) and is_number(hit)):
        return {PAIR: hit}, ()
    pair = pair_of(hit)
    if pair is not None:
        return {PAIR: pair[0]}, pair[1]
    return (
        ({}, hit[:4]) if isinstance(hit, tuple) else (None, (hit,))
    )  # a tuple without a score, such as (id, document)


def score_in(view: dict[str, Any], kind: Any, hit: object) -> float | Unusable | None:
    """Return the score of a hit at the engine's place, as a similarity from 0 to 1; why it is unusable; None without one.

    The first figure there must be usable, and so must all further numbers, also those in texts, and a further score that is None or a
    bool. The lowest counts, because a field of the document may be among them.

    Args:
        view: the fields of the hit at the engine's place.
        kind: the declared kind of the figures, or a function; None where nothing is declared.
        hit: the hit, which the function gets where there is no figure, or where it does not take figures.
    """
    present = FIGURES.intersection(view)
    if not present:
        if kind is None or isinstance(kind, str):
            return None
        # The function does not get a text, because `float` would read a number in it.
        return Missed("a text", NOTHING_THERE) if isinstance(hit, _PLAIN) else _called(kind, hit, "a result")
    if len(present) == 1:
        (name,) = present
        return _similarity(view[name], kind, _WHERE[name], hit)
    names = [name for name in _WHERE if name in present]
    if kind is not None and kind != UNKNOWN:  # a declared kind is that of the fields with its name, where there are any
        wanted = "distance" if isinstance(kind, str) and "distance" in kind else "named"
        names = [name for name in names if _WHERE[name] == wanted] or names
    others = [name for name in names[1:] if _counts(view[name], _WHERE[name])]
    return _lowest(_similarity(view[name], kind, _WHERE[name], hit) for name in (names[0], *others))


def _counts(value: object, where: str) -> bool:
    """Return whether a further figure of a hit counts. An engine may leave the distance empty where it gives a score."""
    return (
        is_number(value)
        or is_number_in_text(value)
        or (where == "named" and (value is None or value is True or value is False))
    )


def values_at(value: object, path: str) -> Iterator[Any]:
    """Yield what stands at a path of names with dots between them; a name may itself contain dots."""
    if path in value if isinstance(value, Mapping) else hasattr(value, path):
        yield attribute(value, path)
    at = path.find(".")
    while at > 0:
        inner = attribute(value, path[:at])
        if inner is not None and not isinstance(inner, _PLAIN):
            yield from values_at(inner, path[at + 1 :])
        at = path.find(".", at + 1)


def score_at(starts: Iterable[object], path: str, kind: Any) -> float | Unusable | None:
    """Return the score of a hit at a declared path, as a similarity from 0 to 1, or why it is unusable."""
    values = [value for start in starts for value in values_at(start, path)]
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
    found = _called(kind, figure, repr(figure))
    if isinstance(found, Missed) and hit is not None and not isinstance(hit, _PLAIN):
        by_result = _called(kind, hit, "a result")
        found = found if isinstance(by_result, Missed) else by_result
    return Unusable(found.value, found.why) if isinstance(found, Missed) else found


class Missed(Unusable):
    """A result without a score at the place that the program declares."""

    __slots__ = ()


def _called(function: Callable[[Any], object], value: object, shown: str) -> float | Unusable:
    try:
        found = function(value)
        if found is None and not isinstance(value, float):
            return Missed(shown, "the function passed as scores returned None")
        return checked_similarity(found, shown)
    except _NO_RESULT as error:
        return Missed(shown, f"the function passed as scores raised {type(error).__name__}")
    except Exception as error:  # noqa: BLE001 — the user's function may raise anything
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
    for view in views:
        for name in TEXTS:
            text = view.get(name)
            if isinstance(text, str) and (source := _short(text)):
                return source
    return ""


def text_in(views: list[dict[str, Any]]) -> str:
    """Return the beginning of a hit's text."""
    for view in views:
        for name in TEXTS:
            text = view.get(name)
            if isinstance(text, str) and text:
                return str.__str__(text)[:MAX_TEXT]
    return ""


def _name(value: object) -> str:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value)) if value.bit_length() <= 256 else ""
    if isinstance(value, dict):
        inner = (value.get(name) for name in ("url", "uri", "path", "id", "name", "title"))
        return next((_short(text) for text in inner if isinstance(text, str) and text), "")
    return _short(str(value)) if module_of(value) in _NAME_MODULES else ""


def _short(text: str) -> str:
    """Return a text short enough to be a name as it is; for any other a label that identifies it without showing it."""
    plain = str.__str__(text)
    if len(plain) <= MAX_SOURCE:
        return plain.strip()
    sample = f"{len(plain)}:{plain[:2_000]}{plain[-2_000:]}"
    return f"text {zlib.crc32(sample.encode('utf-8', 'surrogatepass')):08x}"


def is_listed(value: object) -> bool:
    """Return whether the value is a collection that can be iterated without consuming it."""
    if type(value) is dict or isinstance(value, _PLAIN):
        return False
    return isinstance(value, _LISTED) or (isinstance(value, Sequence) and not isinstance(value, memoryview))


def is_empty(value: object) -> bool:
    """Return whether the value stands for an empty result."""
    if value is None or value is False:
        return True
    if isinstance(value, str):
        return not value or value.isspace()
    return isinstance(value, _SIZED) and not value
