"""What a retriever found, read off whatever it returned: how many results, their scores, their sources.

Retrievers agree on nothing, so this knows the common shapes and looks no further. It consumes nothing, looks at the
first 1,000 results, and has an answer for every value. What is no score from 0 to 1 is counted and left out: a guess
would become evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from grace_kp.confidence._hit import (
    Looker,
    attribute,
    is_empty,
    is_listed,
    is_number,
    score_in,
    source_in,
    split,
    text_in,
)

MAX_HITS = 1_000
MAX_TEXTS = 16
_MAX_DEPTH = 4

_DOCUMENTS = ("documents", "docs", "source_documents", "source_nodes", "nodes", "passages", "chunks", "objects")
_LISTS = ("hits", "matches", "results", *_DOCUMENTS, "points", "artifact")
_VAGUE_LISTS = ("items", "data", "records", "context", "sources", "ids")
_PARALLEL_SCORES = ("scores", "similarities", "relevance_scores", "distances")
_PARALLEL_METADATA = ("metadatas", "metadata")
_PARALLEL_NAMES = ("ids", "sources")
_CONSUMABLE = ("__next__", "__anext__", "__await__")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """What one search found."""

    count: int = 0
    """How many results; 0 when it cannot be told without consuming them."""
    scores: tuple[float, ...] = ()
    """The scores from 0 to 1, in the order of the results."""
    sources: tuple[str, ...] = ()
    """The distinct sources, in order of appearance."""
    texts: tuple[str, ...] = ()
    """The texts of the first results, cut; for measuring how far they agree."""
    unusable_scores: int = 0
    """Results whose score is none: a distance, out of range, not finite, not a number."""
    note: str = ""
    """What could not be read, if anything."""


def read_hits(result: Any) -> SearchHits:
    """Read what a retriever returned; never raises.

    Understood are None, texts, lists of texts, mappings, objects or (document, score) pairs, mappings and objects that
    hold such a list under a usual name (`results`, `matches`, `documents`, …), also with lists of scores and ids beside
    it and in batches, as vector databases return them. Generators are left alone.
    """
    reading = _Reading()
    try:
        reading.result(result, 0)
    except Exception:  # noqa: BLE001 — foreign objects may raise anything on being looked at
        reading.note = "the result could not be read to its end"
    return SearchHits(
        count=reading.count,
        scores=tuple(reading.scores),
        sources=tuple(reading.sources),
        texts=tuple(reading.texts),
        unusable_scores=reading.unusable,
        note=reading.note,
    )


class _Reading:
    """One reading in progress."""

    __slots__ = ("count", "look", "note", "read", "scores", "sources", "texts", "unusable")

    def __init__(self) -> None:
        self.look = Looker()
        self.count = 0
        self.read = 0
        self.scores: list[float] = []
        self.sources: dict[str, None] = {}
        self.texts: list[str] = []
        self.unusable = 0
        self.note = ""

    def result(self, result: Any, depth: int) -> None:
        """A whole result, in whatever shape."""
        kind = type(result)
        if is_empty(result):
            return
        if depth > _MAX_DEPTH:
            self.note = "nested too deeply to be read"
        elif isinstance(result, str | bytes | bytearray):
            self.hit(result)
        elif isinstance(result, int | float | complex):
            self.note = f"no results can be read from a {kind.__name__}"
        elif any(hasattr(kind, name) for name in _CONSUMABLE):
            self.note = f"a {kind.__name__} is not consumed, so its results are unknown"
        elif isinstance(result, Mapping):
            self._mapping(result, depth)
        elif kind is tuple and split(result) is not None:
            self.hit(result)
        elif kind is tuple and len(result) == 2 and isinstance(result[1], list):
            self._twin(result[0], result[1], depth)
        elif is_listed(result):
            self._all(result, depth)
        else:
            self._object(result, depth)

    def hit(self, hit: Any, *beside: dict[str, Any]) -> None:
        """One result, with what a table beside the results says of it."""
        self.count += 1
        self.read += 1
        try:
            views = [*beside, *self.look.views(hit)]
            found, score = score_in(views)
            source = source_in(views)
            text = text_in(views) if len(self.texts) < MAX_TEXTS else ""
        except Exception:  # noqa: BLE001 — as in read_hits; the result is there all the same
            self.note = "a result could not be read"
            return
        if score is not None:
            self.scores.append(score)
        elif found:
            self.unusable += 1
        if source:
            self.sources.setdefault(source)
        if text:
            self.texts.append(text)

    def _twin(self, first: Any, second: list[Any], depth: int) -> None:
        """A tuple of two whose second is a list: (documents, scores), (text, documents), or two results."""
        if isinstance(first, list) and len(first) == len(second) and second and all(map(is_number, second)):
            self._parallel(first, {"score": second})
        elif isinstance(first, str):
            self.result(second, depth + 1)
        else:
            self._all((first, second), depth)

    def _mapping(self, result: Mapping[Any, Any], depth: int) -> None:
        is_hit = self.look.looks_like_hit(result)
        names = _LISTS if is_hit else _LISTS + _VAGUE_LISTS
        lists = [(name, held) for name in names if isinstance(held := attribute(result, name), list | tuple | Mapping)]
        if not lists:
            if not is_hit:
                self.note = "a mapping of unknown shape counts as one result"
            self.hit(result)
            return
        name, held = next((pair for pair in lists if not is_empty(pair[1])), lists[0])
        columns = {} if isinstance(held, Mapping) else _columns(result, name, held)
        if columns:
            self._parallel(_flat(held), columns)
        else:
            self.result(held, depth + 1)

    def _object(self, result: Any, depth: int) -> None:
        for name in _LISTS:
            held = attribute(result, name)
            if isinstance(held, list | tuple):
                self.result(held, depth + 1)
                return
        if not self.look.looks_like_hit(result) and hasattr(type(result), "__len__"):
            self.count += max(0, len(result))
            self.note = f"a {type(result).__name__} was counted, not read"
            return
        self.hit(result)

    def _all(self, items: Any, depth: int) -> None:
        """A collection of hits, or of batches of hits."""
        taken = 0
        for item in islice(iter(items), MAX_HITS - self.read if self.read < MAX_HITS else 0):
            taken += 1
            self._item(item, depth)
        self._rest(items, taken)

    def _item(self, item: Any, depth: int) -> None:
        try:
            is_batch, nothing = isinstance(item, list) and split(item) is None, is_empty(item)
        except Exception:  # noqa: BLE001 — as in read_hits; even asking for a class may run foreign code
            is_batch = nothing = False
        if is_batch:
            self.result(item, depth + 1)
        elif not nothing:
            self.hit(item)

    def _parallel(self, documents: list[Any], columns: dict[str, list[Any]]) -> None:
        """Documents with their scores, metadata and names in lists beside them."""
        for index, document in enumerate(documents[:MAX_HITS]):
            self.hit(document, *self._row(columns, index))
        self._rest(documents, min(len(documents), MAX_HITS))

    def _row(self, columns: dict[str, list[Any]], index: int) -> list[dict[str, Any]]:
        row = {name: column[index] for name, column in columns.items() if name != "metadata"}
        metadata = columns.get("metadata")
        return [row] if metadata is None else [row, self.look.view(metadata[index])]

    def _rest(self, items: Any, taken: int) -> None:
        more = len(items) - taken if hasattr(type(items), "__len__") else 0
        if more > 0:
            self.count += more
            self.note = f"only the first {MAX_HITS:,} results were read"


def _columns(result: Mapping[Any, Any], documents: str, held: Any) -> dict[str, list[Any]]:
    """The lists that run parallel to the documents, by what they say of each."""
    size = len(_flat(held))
    columns: dict[str, list[Any]] = {}
    for column, names in (("score", _PARALLEL_SCORES), ("metadata", _PARALLEL_METADATA), ("id", _PARALLEL_NAMES)):
        for name in names:
            values = attribute(result, name)
            if name != documents and isinstance(values, list | tuple) and len(flat := _flat(values)) == size > 0:
                # A distance is no score, also where it stands in a list of its own.
                columns["distance" if name == "distances" else column] = flat
                break
    return columns


def _flat(values: Any) -> list[Any]:
    """Batches, one list per query, as one list."""
    if values and all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    return list(values)
