"""Whole results of retrievers: every common shape is read, and nothing that is looked at does harm."""

import array
import collections
import contextlib
import dataclasses
import decimal
import pathlib
import sqlite3
import types
import unittest.mock
import uuid

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import SCORE_KINDS, ResultReader, SearchResults, read_results
from grace_kp.trace import dictionary_getter
from tests.confidence.retrieved import Document, hits, read


@dataclasses.dataclass
class NodeWithScore:
    node: Document
    score: float | None


class Point(pydantic.BaseModel):
    """A hit as clients with pydantic models have it, which have a `__getattr__`."""

    id: str
    score: float | None = None


@dataclasses.dataclass(slots=True)
class Match:
    id: str
    score: float


class Hostile:
    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError("repr")

    __str__ = __repr__


class Response:
    """A response of Elasticsearch's client: no mapping, and its attributes are those of its body."""

    def __init__(self, body):
        self._body = body

    @property
    def body(self):
        return self._body

    def __getattr__(self, name):
        return getattr(self.__dict__["_body"], name)

    def __getitem__(self, name):
        return self._body[name]

    def __iter__(self):
        return iter(self._body)

    def __len__(self):
        return len(self._body)


class Attributes:
    """A hit of Elasticsearch's DSL: its attributes are the fields of the document, except `meta`."""

    def __init__(self, fields, **own):
        self.__dict__.update(own, _d_=fields)

    def __getattr__(self, name):
        try:
            return self.__dict__["_d_"][name]
        except KeyError:
            raise AttributeError(name) from None


def dsl_hit(document, **meta):
    return Attributes(document, meta=Attributes(meta))


Row = collections.namedtuple("Row", "id content distance rating")


def sqlite_rows(columns):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(f"SELECT {columns}").fetchall()


CHROMA = {
    "ids": [["1", "2"]],
    "documents": [["one", "two"]],
    "metadatas": [[{"source": "a.md"}, {"source": "b.md"}]],
    "distances": [[0.1, 0.2]],
    "embeddings": None,
}


ELASTIC = {
    "took": 3,
    "hits": {
        "total": {"value": 2},
        "max_score": 12.5,
        "hits": [
            {"_id": "x", "_score": 12.5, "_source": {"url": "http://a"}},
            {"_id": "y", "_score": 0.5, "_source": {"body": "…"}},
        ],
    },
}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(
            [{"score": 0.9, "source": "a"}, {"score": 0.8, "source": "b"}], hits(2, [0.9, 0.8], "ab"), id="dicts"
        ),
        pytest.param(
            [{"confidence": 1.0, "path": "u"}], hits(1, [], "u"), id="confidence, which a page states of itself"
        ),
        pytest.param([{"text": "t", "metadata": {"score": 0.3, "source": "s"}}], hits(1, [], "s"), id="metadata"),
        pytest.param([{"score": None, "id": "a"}], hits(1, [], "a", 1), id="a score of None"),
        pytest.param(
            [{"id": "chunk-1", "metadata": {"source": "a.pdf"}}], hits(1, [], ["a.pdf"]), id="source before id"
        ),
        pytest.param([{"source": {"id": None, "name": "Times"}}], hits(1, [], ["Times"]), id="source object"),
        pytest.param([(Document("x", source="a"), 0.7)], hits(1, [], "a", 1), id="document and score"),
        pytest.param([["some text", 0.7]], hits(1, [], ["some text"], 1), id="pairs from JSON"),
        pytest.param([(0.7, "some text")], hits(1, [], ["some text"], 1), id="score first"),
        pytest.param([(17, 0.7, {"title": "t"})], hits(1, [], "t", 1), id="id, score, payload"),
        pytest.param([(1, "doc"), (0, "doc2")], hits(2, [], ["doc", "doc2"]), id="an id is no score"),
        pytest.param([Document("x", source="a"), Document("y")], hits(2, [], ["a", "y"]), id="documents"),
        pytest.param([NodeWithScore(Document("x", source="a"), 0.6)], hits(1, [0.6], "a"), id="nodes"),
        pytest.param(types.SimpleNamespace(matches=[Match("m", 0.6)]), hits(1, [0.6], "m"), id="an object that holds"),
        pytest.param({"documents": ["a", "b"], "scores": [0.1, 0.2]}, hits(2, [0.1, 0.2], "ab"), id="parallel scores"),
        pytest.param({"ids": ["i", "j"], "scores": [0.1, 2.0]}, hits(2, [0.1], "ij", 1), id="ids and scores"),
        pytest.param((["a", "b"], [0.1, 0.2]), hits(2, [], "ab", 2), id="documents, scores"),
        pytest.param(("text for the model", [Document("x", source="a")]), hits(1, [], "a"), id="content and artifact"),
        pytest.param(CHROMA, hits(2, [], ["a.md", "b.md"], 2), id="batches with distances"),
        pytest.param(ELASTIC, hits(2, [0.5], ["http://a", "y"], 1), id="nested hits"),
        pytest.param(Response(ELASTIC), hits(2, [0.5], ["http://a", "y"], 1), id="response of Elasticsearch"),
        pytest.param([dsl_hit({"url": "u", "score": 1.0}, score=0.4)], hits(1, [0.4], "u"), id="DSL of Elasticsearch"),
        pytest.param([dsl_hit({"url": "u", "score": 1.0}, score=None)], hits(1, [], "u"), id="DSL without a score"),
        pytest.param(
            types.SimpleNamespace(
                result=types.SimpleNamespace(hits=[types.SimpleNamespace(id="a", score=0.8, score_=0.8)])
            ),
            hits(1, [0.8], "a"),
            id="records of Pinecone",
        ),
        pytest.param(
            {"result": {"hits": [{"_id": "a", "_score": 0.8, "fields": {"score": 1.0}}]}},
            hits(1, [0.8], "a"),
            id="its JSON",
        ),
        pytest.param(
            types.SimpleNamespace(data=[Match("m", 0.6)], object="page"), hits(1, [0.6], "m"), id="page of OpenAI"
        ),
        pytest.param(
            types.SimpleNamespace(title="t", data=[Match("m", 0.6)]), hits(1, [], "t"), id="data of a document"
        ),
        pytest.param({"@odata.count": 1, "value": [{"id": "a", "@search.score": 2.1}]}, hits(1, [], "a"), id="Azure"),
        pytest.param([(1, "a", 0.2, 0.9)], hits(1, [], "a", 1), id="a row with two numbers"),
        pytest.param([(1, "a", None), (2, "b", None)], hits(2, [], ["a", "b"], 2), id="rows without a distance"),
        pytest.param({"results": [], "documents": [{"id": "a"}]}, hits(1, [], "a"), id="the list that is not empty"),
        pytest.param({"score": 0.5, "source": "a", "items": [1, 2]}, hits(1, [0.5], "a"), id="one hit"),
        pytest.param(
            types.SimpleNamespace(text="x", score=None, chunks=[{"score": 1.0}]),
            hits(1, [], "x", 1),
            id="list in object",
        ),
        pytest.param({"answer": "42"}, hits(1), id="unknown mapping"),
        pytest.param(
            {"retrievalResults": [{"content": {"text": "x"}, "score": 0.9, "metadata": {"score": 1.0}}]},
            hits(1, [0.9]),
            id="Bedrock",
        ),
        pytest.param(
            {"responseHeader": {}, "response": {"docs": [{"id": 1, "score": 0.9}]}}, hits(1, [0.9], "1"), id="Solr"
        ),
        pytest.param(
            {"root": {"relevance": 1.0, "children": [{"id": "a", "relevance": 0.9, "fields": {"score": 1.0}}]}},
            hits(1, [0.9], "a"),
            id="Vespa",
        ),
        pytest.param(
            {"search_metadata": {"id": 1}, "organic_results": [{"link": "a", "position": 1}]},
            hits(1, [], "a"),
            id="SerpAPI",
        ),
        pytest.param({"k": {"score": 0.9, "id": "a"}}.values(), hits(1, [0.9], "a"), id="values of a dict"),
        pytest.param(types.MappingProxyType({"score": 0.5, "id": "a"}), hits(1, [0.5], "a"), id="mapping proxy"),
        pytest.param("a text", hits(1, [], ["a text"]), id="text"),
        pytest.param(b"bytes", hits(1), id="bytes"),
        pytest.param(collections.deque(["a"]), hits(1, [], "a"), id="deque"),
        pytest.param([[{"id": "a"}], [{"id": "b"}]], hits(2, [], "ab"), id="batches of hits"),
        pytest.param([None, "", {}, [], False], hits(), id="empty hits"),
        *(
            pytest.param(nothing, hits(), id=f"nothing {nothing!r}")
            for nothing in (None, [], (), {}, "", "  ", False, set())
        ),
        pytest.param(42, hits(), id="number"),
        pytest.param([{"source": uuid.UUID(int=1)}], hits(1, [], [str(uuid.UUID(int=1))]), id="uuid"),
        pytest.param([{"source": pathlib.PurePosixPath("a/b")}], hits(1, [], ["a/b"]), id="path"),
        pytest.param(
            [{"score": np.float32(0.5)}, {"score": decimal.Decimal("0.5")}], hits(2, [0.5, 0.5]), id="numbers"
        ),
        pytest.param(np.zeros((3, 2)), hits(3), id="array"),
        pytest.param([(Document("x", source="a"), None)], hits(1, [], "a", 1), id="a pair with None"),
        pytest.param([(Document("x", source="a"), "0.1")], hits(1, [], "a", 1), id="a pair with a text"),
        pytest.param(("no results", None), hits(1, [], ["no results"]), id="content without artifact"),
        pytest.param([0.9, 0.8], hits(2, [], [], 2), id="bare figures"),
        pytest.param((["a", "b"], np.array([0.1, 0.2])), hits(2, [], "ab", 2), id="documents, array of scores"),
        pytest.param({"documents": ["a"], "scores": np.array([0.5])}, hits(1, [0.5], "a"), id="parallel array"),
        pytest.param({"documents": ["a", "b"], "scores": [0.5]}, hits(2, [], "ab", 2), id="too few scores"),
        pytest.param(
            {"documents": [{"id": "a", "score": 1.0}], "scores": [0.5, 0.1]}, hits(1, [], "a", 1), id="too many scores"
        ),
        pytest.param([Point(id="a", score=0.9), Point(id="b")], hits(2, [0.9], "ab", 1), id="a model without score"),
        pytest.param(
            [{"id": "a", "metadata": types.SimpleNamespace(distance=None, score=None, certainty=0.9)}],
            hits(1, [], "a"),
            id="fields that were not asked for",
        ),
        pytest.param([{"score": np.float32(1.0000001)}], hits(1, [1.0]), id="a rounding error"),
    ],
)
def test_shapes(result, expected):
    assert expected == read(result)


def test_few_unusable_scores_are_shown_and_all_counted():
    found = read_results([{"score": "x" * 500}] * 100)
    assert (100, 5) == (found.unusable_scores, len(found.unusable))
    assert all(len(item.value) < 50 for item in found.unusable)


UNREADABLE = {
    "generator": lambda: (n for n in "ab"),
    "number": lambda: 42,
    "array": lambda: np.zeros(3),
    "hostile": Hostile,
    "unknown mapping": lambda: {"found": [{"score": 0.2}]},
    "scores without documents": lambda: {"documents": [], "scores": [0.9]},
    "error": lambda: {"results": [], "error": "rate limited"},
    "errors": lambda: {"data": None, "hits": [], "errors": [{"message": "shard failed"}]},
    "errors of an object": lambda: types.SimpleNamespace(objects=[], errors=["no such class"]),
}


@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
def test_results_that_cannot_be_read_say_so(make):
    found = read_results(make())
    assert found.unreadable
    assert found.note


def test_an_unknown_shape_is_read_where_no_score_can_be_misread():
    found = read_results({"found": [{"link": "a"}, {"link": "b"}], "tags": ["x"], "took": {"ms": 3}}, "none")
    assert (2, ("a", "b"), False, "") == (found.count, found.sources, found.unreadable, found.note)
    for unknown in ({"found": [{"link": "a"}], "other": [{"link": "b"}]}, {"found": ["a"]}):
        found = read_results(unknown, "none")
        assert found.unreadable
        assert "return the list in it" in found.note


@pytest.mark.parametrize(
    "rows", [[Row(1, "a", 0.2, 1.0)], sqlite_rows("1 AS id, 'a' AS content, 0.2 AS distance, 1.0 AS rating")]
)
def test_the_columns_of_a_row_have_names(rows):
    assert ((), 1) == (read_results(rows).scores, read_results(rows).unusable_scores)
    for scores in (
        "cosine_distance",
        ("distance", "cosine_distance"),
        lambda row: 1 - row[2],
        ("rating", lambda _: 0.8),
    ):
        assert (0.8,) == read_results(rows, scores).scores


def test_a_pair_with_names_is_a_pair():
    pair = collections.namedtuple("Pair", "document anon_1")(Document("x", source="a", certainty=0.7), 0.2)
    assert ((0.8,), ("a",)) == (read_results([pair], "cosine_distance").scores, read_results([pair]).sources)
    assert (0.7,) == read_results([pair], "metadata.certainty").scores


def test_a_row_without_a_score_does_not_drop_out_of_a_scored_search():
    for rows in ([(1, "a", 0.1), (2, "b", None)], [(1, "a", 0.1), (2, "b", 0.9, 0.2)]):
        found = read_results(rows, "cosine_distance")
        assert ((0.9,), 1) == (found.scores, found.unusable_scores)
        assert 2 == len(read_results(rows, lambda row: 0.5).scores)


def test_scores_that_do_not_match_the_results_end_the_search():
    found = read_results({"ids": ["a", "b"], "scores": [0.1], "similarities": [1.0, 1.0]})
    assert ((), 2) == (found.scores, found.unusable_scores)


@pytest.mark.parametrize("scores", [None, "similarity", ("score", "similarity"), lambda figure: figure, "none"])
@pytest.mark.parametrize("error", ["rate limited", {"code": 429}, ["x"], True])
@pytest.mark.parametrize("name", ["error", "errors", "error_message"])
def test_an_error_is_no_hit(name, error, scores):
    found = read_results({name: error, "score": 1.0, "content": "", "title": None}, scores)
    assert (0, (), True) == (found.count, found.scores, found.unreadable)
    if scores in (None, "similarity"):
        found = read_results([{name: error, "score": 1.0}], scores)
        assert ((), 1) == (found.scores, found.unusable_scores)


@pytest.mark.parametrize(
    "hit",
    [
        {"error": None},
        {"error": ""},
        {"error": False},
        {"error": 0.02},
        {"error": "E17", "text": "The pump stops."},
        {"error": "E17", "title": "The pump stops."},
        {"error": "E17", "content": {"text": "The pump stops."}},
    ],
)
def test_a_hit_about_an_error_is_a_hit(hit):
    for result in (hit | {"score": 0.9}, [hit | {"score": 0.9}]):
        assert (1, (0.9,)) == (read_results(result).count, read_results(result).scores)


@pytest.mark.parametrize("readable", [None, [], "text", [{"id": 1}], {"answer": "42"}, [{"score": None}]])
def test_results_that_can_be_read_are_not_unreadable(readable):
    assert not read_results(readable).unreadable


def test_generators_are_left_alone():
    numbers = iter(range(3))
    lazy = ({"score": 0.9} for _ in range(3))
    for result in (numbers, lazy, map(str, [1])):
        found = read_results(result)
        assert 0 == found.count
        assert "not consumed" in found.note
    assert [0, 1, 2] == list(numbers)
    assert 3 == len(list(lazy))


def test_mocks_are_no_evidence():
    found = read_results([unittest.mock.MagicMock(), unittest.mock.Mock()])
    assert (2, ()) == (found.count, found.scores)


def test_a_hostile_result_does_not_hide_its_neighbours():
    found = read_results([{"score": 0.5, "source": "a"}, Hostile(), {"score": 0.7, "source": "b"}])
    assert (3, (0.5, 0.7), ("a", "b")) == (found.count, found.scores, found.sources)
    assert found.note


def test_cycles_end():
    cycle = []
    cycle.append(cycle)
    loop = {}
    loop["results"] = loop
    assert 0 == read_results(cycle).count
    assert "deeply" in read_results(loop).note


def test_only_the_first_thousand_are_read():
    found = read_results([{"score": 0.5, "source": str(number)} for number in range(5_000)])
    assert (5_000, 1_000, 1_000) == (found.count, len(found.scores), len(found.sources))
    assert "first 1,000" in found.note
    batches = read_results([[{"score": 0.5}] * 700] * 3)
    assert 1_000 == len(batches.scores)
    parallel = read_results({"documents": ["a"] * 3_000, "scores": [0.5] * 3_000})
    assert (3_000, 1_000) == (parallel.count, len(parallel.scores))


KINDS = (None, *SCORE_KINDS, lambda figure: figure)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(["score", "distance", "source", "id", "metadata", "hits", "documents", "scores", "ids"])
            | st.text(max_size=3)
            | st.integers(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(anything, st.sampled_from(KINDS))
def test_total(result, scores):
    """Every value has an answer, with scores from 0 to 1, no more scores than results, and it stays the same."""
    found = read_results(result, scores)
    assert all(0.0 <= score <= 1.0 for score in found.scores)
    assert len(found.scores) + found.unusable_scores <= found.count
    assert len(set(found.sources)) == len(found.sources) <= found.count
    assert all(isinstance(source, str) and source for source in found.sources)
    assert found == read_results(result, scores)


def test_a_stream_is_read_item_by_item():
    reader = ResultReader("similarity")
    items = [("a", 0.5)] * 1_000 + [("b", 0.9)] * 3
    for item in items:
        reader.read_item(item)
    found = reader.results()
    assert (1_003, 0.5) == (found.count, max(found.scores))
    assert "only the first 1,000 results were read" == found.note
    assert found == read_results(items, "similarity")


@pytest.mark.parametrize("items", [range(10**12), array.array("d", [0.5] * 20_000)], ids=["range", "array"])
def test_a_sequence_of_numbers_is_counted_and_not_copied(items):
    found = read_results(items)
    assert (len(items), True, f"a {type(items).__name__} was counted, not read") == (
        found.count,
        found.unreadable,
        found.note,
    )
    (hit,) = read_results([{"text": "a", "score": 0.5, "parts": items}]).texts
    assert "a" == hit
    found = read_results([np.zeros(3), {"id": "a"}])  # an array among the results is not read either
    assert (2, True) == (found.count, found.unreadable)


class Panic(BaseException):
    """As an extension written in Rust raises it."""


def lazy(ran, *names, base=object, **fields):
    """Return an instance with these fields, whose other names run code when they are read."""

    def run(*_args):
        ran.append(1)
        raise Panic

    members = {name: property(run) if name[:2] != "__" or name == "__class__" else run for name in names}
    kind = type("Lazy", (base,), members)
    value = object.__new__(kind)
    if fields and (read := dictionary_getter(kind)):
        read(value).update(fields)
    return value


FOREIGN = {
    "properties": ("score", "text", "source", "metadata", "document", "hits", "results", "body", "data", "error"),
    "any name": ("__getattr__", "__getattribute__"),
    "a proxy": ("__class__", "__getattr__", "__len__", "__iter__", "__bool__"),
    "a query": ("__len__", "__iter__", "__getitem__", "__contains__", "__bool__", "keys", "get", "items", "values"),
    "its own dict": ("__dict__",),
    "comparison": ("__eq__", "__hash__", "__repr__", "__str__", "__float__", "__length_hint__"),
}


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("base", [object, collections.UserDict, collections.UserList])
@pytest.mark.parametrize(
    "wrap",
    [lambda it: it, lambda it: [it], lambda it: {"results": [it]}, lambda it: {"hits": it}, lambda it: [(it, 0.5)]],
    ids=["alone", "in a list", "in a dict", "as the hits", "in a pair"],
)
@pytest.mark.parametrize("scores", [None, "none", "cosine_distance"])
def test_no_code_of_a_result_runs(foreign, base, wrap, scores):
    """Lazy fields would be loaded once per hit, in the agent's thread."""
    ran = []
    value = lazy(ran, *FOREIGN[foreign])
    if base is not object:
        value = lazy(ran, *FOREIGN[foreign], base=type("Own", (base,), {}), data=[value])
    assert isinstance(read_results(wrap(value), scores), SearchResults)
    assert [] == ran


@pytest.mark.parametrize("base", [dict, list, tuple, set, str, float, collections.OrderedDict, collections.deque])
def test_no_code_of_a_subclass_of_a_builtin_type_runs(base):
    ran = []

    def run(*_args):
        ran.append(1)
        raise Panic

    names = ("get", "keys", "items", "__iter__", "__getitem__", "__len__", "__bool__", "__contains__", "__float__")
    contents = {str: "a", float: 0.5}.get(base, {"score": 0.5, "source": "a"})
    kind = type("Own", (base,), {name: run for name in names if hasattr(base, name) or name == "__bool__"})
    value = base.__new__(kind, contents) if base in {tuple, str, float} else kind()
    if base in {list, set, collections.deque}:
        base.extend(value, "ab") if base is not set else set.update(value, "ab")
    elif issubclass(base, dict):
        for name, item in contents.items():
            base.__setitem__(value, name, item)
    for result in (value, [value], {"results": value}, [{"score": value}], [("a", value)]):
        assert isinstance(read_results(result), SearchResults)
    assert [] == ran
    if issubclass(base, dict):
        assert hits(1, [0.5], "a") == read([value])


def test_stored_fields_are_read_beside_lazy_ones():
    ran = []

    class Slotted:
        __slots__ = ("score", "text")
        source = "a.md"

        @property
        def document(self):
            ran.append(1)

    class Extra(pydantic.BaseModel, extra="allow"):
        source: str

    hit = Slotted()
    hit.score, hit.text = 0.9, "x"
    attributes = lazy(ran, "document", "metadata", "similarity_rank", score=0.8, source="b.md")
    assert hits(3, [0.9, 0.8, 0.7], ["a.md", "b.md", "c.md"]) == read(
        [hit, attributes, Extra(source="c.md", score=0.7)]
    )
    assert [] == ran


def test_a_computed_score_is_unusable_until_it_is_declared():
    class Hit:
        source = "a"

        def __init__(self, error=None):
            self.error_type = error

        @property
        def score(self):
            if self.error_type is not None:
                raise self.error_type
            return 0.9

    found = read_results([Hit()])
    assert (1, (), 1) == (found.count, found.scores, found.unusable_scores)
    assert "only stored fields are read" in found.unusable[0].why
    for declared in (("score", "similarity"), lambda hit: hit.score):
        assert (0.9,) == read_results([Hit()], declared).scores
        for error in (ValueError, Panic, SystemExit):
            found = read_results([Hit(error), Hit()], declared)
            assert (2, (0.9,), 1) == (found.count, found.scores, found.unusable_scores)


def test_what_cannot_be_read_without_its_code_says_so():
    for result in (lazy([], "__len__", "__iter__"), [lazy([], "__getattr__")], [lazy([], "__getitem__", "keys")]):
        found = read_results(result)
        assert (True, "a Lazy was not read, because that would run its code") == (found.unreadable, found.note)


@pytest.mark.parametrize("module", ["llama_index.core.schema", "tantivy"])
def test_properties_of_libraries_that_hold_all_in_memory_are_read(module):
    ran = []

    def run(self):
        ran.append(1)
        raise Panic

    names = {"__module__": module, "score": property(lambda _: 0.9), "text": property(lambda _: "x")}
    node = type("Node", (), names)
    assert hits(1, [0.9], "x") == read([node()])
    assert 1 == read_results([type("Mine", (node,), {"score": property(run)})()]).unusable_scores
    assert [] == ran


def test_hidden_fields_are_no_source():
    @dataclasses.dataclass
    class Hit:
        source: str = dataclasses.field(repr=False)
        score: float = dataclasses.field(repr=False)

    assert hits(1, [0.9]) == read([Hit("quiet-plum-77", 0.9)])
