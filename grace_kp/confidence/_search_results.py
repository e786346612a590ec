"""Read what a retriever returned: how many results, their scores and their sources.

Retrievers share no format, so the usual shapes are recognised. Reading consumes nothing, stops at the first 1,000 results, and accepts
every value. A figure that cannot be used as a score is counted and named but never guessed at: a guess would become evidence.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any

from grace_kp.confidence._score_kinds import NONE, Unusable, is_array, is_number, kind_of, listed_array, place_and_kind
from grace_kp.confidence._search_result import (
    FIGURES,
    KNOWN,
    NOTHING_THERE,
    PAIR,
    Looker,
    Missed,
    is_empty,
    is_mapping,
    is_number_in_text,
    items_of,
    named_row,
    pair_of,
    parts_of,
    score_at,
    score_in,
    source_in,
    split,
    text_in,
)
from grace_kp.trace import class_mro, class_namespace

MAX_RESULTS = 1_000
MAX_TEXTS = 16
MAX_UNUSABLE = 5
"""Unusable scores that are listed; all of them are counted."""
_MAX_DEPTH = 4

_DOCUMENTS = ("documents", "docs", "source_documents", "source_nodes", "nodes", "passages", "chunks", "objects")
_LISTS = ("hits", "matches", "results", *_DOCUMENTS, "points", "artifact", "retrievalResults", "organic_results")
_VAGUE_LISTS = ("items", "data", "value", "records", "context", "sources", "ids")
_NESTED = (("response", "docs"), ("root", "children"), ("result", "hits"))
"""Where Solr, Vespa and Pinecone put their hits."""
_PARALLEL_SCORES = ("scores", "similarities", "relevance_scores", "distances")
_PARALLEL_METADATA = ("metadatas", "metadata")
_PARALLEL_NAMES = ("ids", "sources")
_BEYOND = f"only the first {MAX_RESULTS:,} results were read"
_CONSUMABLE = ("__next__", "__anext__", "__await__")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """The results of one search."""

    count: int = 0
    """Number of results; 0 when counting would consume them."""
    scores: tuple[float, ...] = ()
    """The usable scores as similarities from 0 to 1, in the order of the results."""
    sources: tuple[str, ...] = ()
    """The distinct sources, in order of appearance."""
    texts: tuple[str, ...] = ()
    """The texts of the first results, cut, to measure how far they agree."""
    unusable_scores: int = 0
    """Number of results with a score that cannot be used: of unknown kind, out of range, not finite, None, not a number."""
    note: str = ""
    """The part that could not be read, if any."""
    unusable: tuple[Unusable, ...] = ()
    """The first unusable scores, rendered, and why they cannot be used."""
    unreadable: bool = False
    """Whether there may be results or scores that could not be read at all; see `note`."""
    kind: str = ""
    """The declared kind of the scores; empty where none was declared."""

    @property
    def lacks_scores(self) -> bool:
        """Whether there are results, none of which has a score, usable or not, and the program does not declare that."""
        unscored = bool(self.count) and not (self.scores or self.unusable_scores or self.unreadable)
        return unscored and self.kind != NONE


def read_results(result: object, scores: object = None) -> SearchResults:
    """Read what a retriever returned; never raises.

    It reads None, strings, and lists of strings, mappings, objects or (document, score) pairs; also mappings and objects that hold such a
    list under a usual name (`results`, `matches`, `documents`, …), with parallel lists of scores and ids, and in batches, as vector
    databases return them. Generators are not consumed.
    """
    reading = ResultReader(scores)
    try:
        reading.read_result(result, 0)
    except Exception:  # noqa: BLE001 — foreign objects may raise anything when they are read
        reading.note_unreadable("the result could not be read to its end")
    return reading.results()


class ResultReader:
    """Reads the results of one search, at once or item by item as a stream yields them."""

    def __init__(self, scores: object = None) -> None:
        self.path, self.kind = place_and_kind(scores)
        self.missed: list[Missed] = []
        self.examples: list[Unusable] = []
        self.unreadable = False
        self.look = Looker()
        self.count = 0
        self.read = 0
        self.scores: list[float] = []
        self.sources: dict[str, None] = {}
        self.texts: list[str] = []
        self.unusable = 0
        self.note = ""

    def results(self) -> SearchResults:
        """Return the results that were read so far."""
        missed, self.missed = self.missed, []
        if missed and (self.scores or self.unusable):
            for unusable in missed:
                self._cannot_use(unusable)
        elif missed and missed[0].why != NOTHING_THERE:
            self.note = self.note or missed[0].why
        return SearchResults(
            count=self.count,
            scores=tuple(self.scores),
            sources=tuple(self.sources),
            texts=tuple(self.texts),
            unusable_scores=self.unusable,
            note=self.note,
            unusable=tuple(self.examples),
            unreadable=self.unreadable,
            kind=kind_of(self.kind),
        )

    def so_far(self) -> SearchResults | None:
        """Return the results of a stream that goes on; None before the first."""
        reader = copy.copy(self)
        reader.examples = [*self.examples]
        return reader.results() if self.count else None

    def note_unreadable(self, note: str) -> None:
        """Note that something could not be read."""
        self.note = note
        self.unreadable = True

    def read_item(self, item: object) -> None:
        """Read one result of a stream; never raises. Results beyond the first 1,000 are only counted."""
        if self.read < MAX_RESULTS:
            self._item(item, 0)
        else:
            self.count += 1
            self.note = _BEYOND

    def read_result(self, result: Any, depth: int) -> None:
        """Read a whole result of any shape."""
        kind = type(result)
        if is_empty(result):
            return
        items = items_of(result)
        if depth > _MAX_DEPTH:
            self.note_unreadable("nested too deeply to be read")
        elif issubclass(kind, (str, bytes, bytearray)):
            self.read_hit(result)
        elif issubclass(kind, (int, float, complex)):
            self.note_unreadable(f"no results can be read from a {kind.__name__}")
        elif _has_any(kind, _CONSUMABLE):
            self.note_unreadable(f"a {kind.__name__} is not consumed, so its results are unknown")
        elif is_mapping(result):
            self._mapping(result, depth)
        elif kind is tuple and split(result) is not None:
            self.read_hit(result)
        elif kind is tuple and len(result) == 2 and type(second := listed_array(result[1])) is list:
            self._twin(listed_array(result[0]), second, depth)
        elif items is not None:
            self._all(items, depth)
        else:
            self._object(result, depth)

    def read_hit(self, hit: object, *parallel: dict[str, Any]) -> None:
        """Read one result, with its row of the parallel lists."""
        self.count += 1
        self.read += 1
        try:
            row = named_row(hit, self.path)
            figure, parts = parts_of(row)
            views = self.look.views(parts)
            shared = False  # whether document and engine may share the fields
            if parallel and not FIGURES.isdisjoint(parallel[0]):
                figure = parallel[0]
            elif figure is None:
                figure, shared = (views[0] if views else {}), True
            if self.kind == NONE:
                score = None
            elif self.path is None:
                score = score_in(figure, self.kind, hit)
                if shared and isinstance(score, float) and not callable(self.kind):
                    score = self.look.rival(row) or score
            else:
                score = score_at(self.look, (*parallel[:1], *parts), self.path, self.kind)
            if parallel:
                views = [*parallel, *views]
            source = source_in(views)
            text = text_in(views) if len(self.texts) < MAX_TEXTS else ""
            if not source and not text and self.look.closed is not None:
                self._note_closed(self.look.closed)
        except Exception:  # noqa: BLE001 — as in read_results; the result still counts
            self.note_unreadable("a result could not be read")
            return
        if isinstance(score, Missed):
            self.missed.append(score)
        elif isinstance(score, Unusable):
            self._cannot_use(score)
        elif score is not None:
            self.scores.append(score)
        if source:
            self.sources.setdefault(source)
        if text:
            self.texts.append(text)

    def _note_closed(self, kind: type) -> None:
        self.note_unreadable(f"a {kind.__name__} was not read, because that would run its code")

    def _cannot_use(self, unusable: Unusable) -> None:
        self.unusable += 1
        if len(self.examples) < MAX_UNUSABLE:
            self.examples.append(unusable)

    def _twin(self, first: object, second: list[Any], depth: int) -> None:
        """Read a tuple of two whose second is a list: (documents, scores), (text, documents), FAISS's (distances, ids), or two results."""
        figures, ids = (_flat(part) if type(part) is list else [] for part in (first, second))
        if (
            figures
            and len(figures) == len(ids)
            and all(type(part) is float for part in figures)
            and all(type(part) is int for part in ids)
        ):
            self._parallel(ids, {PAIR: figures})
        elif (
            type(first) is list
            and len(first) == len(second)
            and any(map(is_number, second))
            and all(is_number(value) or value is None or is_number_in_text(value) for value in second)
        ):
            self._parallel(first, {PAIR: second})
        elif issubclass(type(first), str):
            self.read_result(second, depth + 1)
        else:
            self._all((first, second), depth)

    def _mapping(self, result: object, depth: int) -> None:
        fields = self.look.view(result)
        is_hit = self.look.looks_like_hit(result)
        names = _LISTS if is_hit else _LISTS + _VAGUE_LISTS
        lists = [(name, held) for name in names if _holds(held := fields.get(name))]
        if not lists and not is_hit:
            lists = self._unusual_lists(fields)
        if not lists or self.look.is_single_hit(result):
            if self.look.reports_error(result):
                self.note_unreadable("the result reports an error, so it is not a hit")
                return
            if not is_hit:
                self.note = (
                    'a mapping of unknown shape counts as one result; return the list in it, or as {"results": [...]}'
                )
                self.unreadable |= any(_holds(value) and not is_empty(value) for value in fields.values())
            self.read_hit(result)
            return
        name, held = next((pair for pair in lists if not is_empty(pair[1])), lists[0])
        self._note_error(result, held)
        columns = {} if is_mapping(held) else _columns(fields, name, held)
        if columns.get("score") == []:
            self.note_unreadable("the result has scores without results")
        if columns:
            self._parallel(_flat(items_of(held)), columns)
        else:
            self.read_result(held, depth + 1)

    def _note_error(self, result: object, held: object) -> None:
        if is_empty(held) and self.look.reports_error(result):
            self.note_unreadable("the result reports an error, so nothing was searched")

    def _unusual_lists(self, fields: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the list of hits below a name, or the only list of dicts if no score can be misread in it."""
        inner = ((name, self.look.view(fields.get(outer)).get(name)) for outer, name in _NESTED)
        found = [(name, held) for name, held in inner if items_of(held) is not None]
        if not found and self.kind == NONE:
            held = [items for value in fields.values() if (items := items_of(value)) and all(map(is_mapping, items))]
            found = [("", held[0])] if len(held) == 1 else []
        return found

    def _object(self, result: Any, depth: int) -> None:
        held = None if self.look.is_single_hit(result) else self._held_by(result)
        if held is not None:
            self._note_error(result, held)
            self.read_result(held, depth + 1)
        elif is_array(result) or type(result) is range:
            self.count += len(result)
            self.note_unreadable(f"a {type(result).__name__} was counted, not read")
        elif not self.look.looks_like_hit(result) and _has_any(type(result), ("__len__", "__iter__")):
            self._note_closed(type(result))
        else:
            self.read_hit(result)

    def _held_by(self, result: object) -> Any:
        """Return the list of hits that an object holds; of one without other fields also its body, as of Elasticsearch, or data; else None."""
        fields = self.look.view(result)
        lists = (fields.get(name) for name in _LISTS)
        nested = (self.look.view(fields.get(outer)).get(name) for outer, name in _NESTED)
        found: Any = next((held for held in chain(lists, nested) if items_of(held) is not None), None)
        if found is None and all(value is None for name, value in fields.items() if name in KNOWN and name != "body"):
            found = next((held for name in ("body", "_body", "data") if _holds(held := fields.get(name))), None)
        return found

    def _all(self, items: list[Any] | tuple[Any, ...], depth: int) -> None:
        taken = items[: max(0, MAX_RESULTS - self.read)]
        for item in taken:
            self._item(item, depth)
        self._rest(items, len(taken))

    def _item(self, item: object, depth: int) -> None:
        if issubclass(type(item), list) and pair_of(items := items_of(item)) is None:
            self.read_result(items, depth + 1)
        elif not is_empty(item):
            if listed_array(item) is not item:
                self.note_unreadable(f"a {type(item).__name__} among the results was not read")
            self.read_hit(item)

    def _parallel(self, documents: list[Any], columns: dict[str, list[Any]]) -> None:
        for index, document in enumerate(documents[:MAX_RESULTS]):
            row = {name: column[index] for name, column in columns.items()}
            self.read_hit(document, row, *([self.look.view(row["metadata"])] if "metadata" in row else []))
        self._rest(documents, min(len(documents), MAX_RESULTS))

    def _rest(self, items: Any, taken: int) -> None:
        more = len(items) - taken
        if more > 0:
            self.count += more
            self.note = _BEYOND


def _has_any(kind: type, names: tuple[str, ...]) -> bool:
    return any(name in class_namespace(base) for base in class_mro(kind) for name in names)


def _holds(value: object) -> bool:
    return is_mapping(value) or items_of(value) is not None


def _columns(fields: dict[str, Any], documents: str, held: object) -> dict[str, list[Any]]:
    """Return the lists that run parallel to the documents, by what they hold. Scores that do not match the documents are unusable."""
    size = len(_flat(items_of(held)))
    columns: dict[str, list[Any]] = {}
    for column, names in (("score", _PARALLEL_SCORES), ("metadata", _PARALLEL_METADATA), ("id", _PARALLEL_NAMES)):
        for name in names:
            values = items_of(listed_array(fields.get(name)))
            if name == documents or not values or not (flat := _flat(values)):
                continue
            if len(flat) == size:
                columns["distance" if name == "distances" else column] = flat
                break
            if column == "score":
                columns[column] = [Unusable(f"{len(flat)} scores", f"the result has {size} results")] * size
                break
    return columns


def _flat(values: Any) -> list[Any]:
    if values and all(type(value) is list for value in values):
        return [item for value in values for item in value]
    return list(values)
