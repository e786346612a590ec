"""Recorded functions of every kind take, return and raise any value as they do without recording."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import itertools
import json
import sys
import threading
import types
import weakref
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grace_kp as gk

MEGABYTES_5 = 5 << 20


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """An error inside recording fails the test instead of being survived."""
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "1")


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


class Trap(BaseException):
    """Not an Exception, and raised by looking at a value."""


def raiser(error):
    def method(self, *args, **kwargs):
        raise error() if isinstance(error, type) else error

    return method


LOOKS = ["__repr__", "__str__", "__len__", "__iter__", "__eq__", "__hash__", "__bool__", "__dir__", "__format__"]


def raising(error, *names, base=object):
    return type("Raising", (base,), {name: raiser(error) for name in names})


class RaisingClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class LyingClass:
    @property
    def __class__(self):
        return str


class RaisingGetattribute:
    def __getattribute__(self, name):
        raise RuntimeError(name)


class RaisingDict:
    @property
    def __dict__(self):
        raise RuntimeError("no dict")


class UnhashableMeta(type):
    """Classes of this kind cannot be looked up in a set or dict."""

    def __eq__(cls, other):
        return cls is other

    __hash__ = None


class RaisingMeta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)

    def __instancecheck__(cls, one):
        raise RuntimeError("no")

    def __subclasscheck__(cls, one):
        raise RuntimeError("no")


class OfUnhashableMeta(metaclass=UnhashableMeta): ...


class OfRaisingMeta(metaclass=RaisingMeta): ...


class ReprOfSubclass:
    def __repr__(self):
        return HostileText("text of a hostile kind")


class HugeRepr:
    def __repr__(self):
        return "x" * MEGABYTES_5


class HostileText(str):
    __slots__ = ()
    __len__ = __str__ = __repr__ = __getitem__ = __iter__ = __eq__ = __contains__ = __format__ = raiser(RuntimeError)
    strip = encode = split = startswith = replace = isascii = find = rfind = raiser(RuntimeError)

    def __hash__(self):
        raise RuntimeError("no hash")


class HostileInt(int):
    __int__ = __repr__ = __str__ = __index__ = __lt__ = __gt__ = __eq__ = bit_length = raiser(RuntimeError)
    __hash__ = raiser(RuntimeError)


class HostileFloat(float):
    __float__ = __repr__ = __sub__ = __eq__ = __lt__ = raiser(RuntimeError)
    __hash__ = raiser(RuntimeError)


class HostileList(list):
    __iter__ = __len__ = __getitem__ = __repr__ = __bool__ = __eq__ = raiser(RuntimeError)


class HostileDict(dict):
    __iter__ = __len__ = __getitem__ = __repr__ = items = keys = values = get = __eq__ = raiser(RuntimeError)


Point = collections.namedtuple("Point", "x y")


class Model(pydantic.BaseModel):
    name: str
    inner: Any = None


@dataclasses.dataclass
class Data:
    name: Any
    inner: Any = None

    def __repr__(self):
        raise RuntimeError("no")


class Bag:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def cyclic_list():
    value: list[Any] = [1]
    value.append(value)
    return value


def cyclic_dict():
    value: dict[str, Any] = {}
    value["self"] = {"again": value}
    return value


def cyclic_dataclass():
    value = Data("x")
    value.inner = (value, {"again": value})
    return value


def deep(make, depth=10_000):
    value = make(None)
    for _ in range(depth):
        value = make(value)
    return value


VALUES = {
    **{f"raising {name}": (lambda name=name: raising(ValueError, name)()) for name in LOOKS},
    "repr raises SystemExit": lambda: raising(SystemExit, "__repr__", "__str__")(),
    "repr raises a BaseException": lambda: raising(Trap, "__repr__")(),
    "__class__ raises": RaisingClass,
    "__class__ lies": LyingClass,
    "__getattribute__ raises": RaisingGetattribute,
    "__dict__ raises": RaisingDict,
    "class cannot be hashed": OfUnhashableMeta,
    "metaclass raises": lambda: object.__new__(OfRaisingMeta),
    "class itself, unhashable": lambda: OfUnhashableMeta,
    "repr gives a hostile text": ReprOfSubclass,
    "repr is huge": HugeRepr,
    "str subclass": lambda: HostileText("hello"),
    "int subclass": lambda: HostileInt(3),
    "float subclass": lambda: HostileFloat(0.5),
    "list subclass": lambda: HostileList([1, 2]),
    "dict subclass": lambda: HostileDict(a=1),
    "hostile key": lambda: {raising(ValueError, "__repr__", "__str__")(): 1},
    "hostile text as key": lambda: {type("Key", (str,), {"__str__": raiser(ValueError)})("k"): 1},
    "keys of all kinds": lambda: {None: 1, 2: 2, 1.5: 3, True: 4, (1, 2): 5, b"b": 6, frozenset({1}): 7, "2": 8},
    "huge key": lambda: {"k" * MEGABYTES_5: 1},
    "cyclic list": cyclic_list,
    "cyclic dict": cyclic_dict,
    "cyclic dataclass": cyclic_dataclass,
    "deep list": lambda: deep(lambda inner: [inner]),
    "5 MB text": lambda: "x" * MEGABYTES_5,
    "5 MB list": lambda: list(range(MEGABYTES_5 // 8)),
    "5 MB dataclass": lambda: Data("x" * MEGABYTES_5, list(range(100_000))),
    "100,000 objects": lambda: [Bag(n=n) for n in range(100_000)],
    "lone surrogate in a key": lambda: {"\udfff": "\ud800", "fine": ["\udc00"]},
    "NUL": lambda: "a\x00b",
    "control characters": lambda: "".join(map(chr, range(32))) + "\x7f\x85\u2028\ufeff\U0010ffff",
    "nan": lambda: float("nan"),
    "numbers without a value": lambda: [float("nan"), float("inf"), {"x": -float("inf")}],
    "huge int": lambda: 10**5_000,
    "set": lambda: {1, "a", (2, 3)},
    "endless iterator": itertools.count,
    "namespace": lambda: types.SimpleNamespace(a=raising(ValueError, "__repr__")()),
    "dead proxy": lambda: weakref.proxy(Bag()),
    "named tuple": lambda: Point(1, raising(ValueError, "__repr__")()),
    "model": lambda: Model(name="a", inner=Model(name="b", inner=raising(ValueError, "__repr__")())),
    "dataclass": lambda: Data("a", Data("b")),
    "numpy array": lambda: np.arange(10),
    "numpy of objects": lambda: np.array([raising(ValueError, "__repr__")()], dtype=object),
    "exception": lambda: raising(ValueError, "__str__", "__repr__", base=ValueError)("x"),
    "exception group": lambda: ExceptionGroup("many", [ValueError("a"), ExceptionGroup("inner", [TypeError("b")])]),
    "secret": lambda: {"password": HostileText("hunter2")},
}


every_value = pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in VALUES.items()])


def assert_exact(value, path="document"):
    """Only the exact JSON types, nothing that merely inherits from one, and numbers that JSON has."""
    if type(value) is dict:
        for key, item in value.items():
            assert type(key) is str, path
            assert_exact(item, f"{path}.{key}")
    elif type(value) is list:
        for number, item in enumerate(value):
            assert_exact(item, f"{path}[{number}]")
    else:
        assert type(value) in {str, int, float, bool, type(None)}, f"{path}: {type(value)}"
        assert type(value) is not float or value - value == 0, path


def assert_sound(trace, *, at_most=200_000):
    """A valid trace that reads back to the letter, from a dict and from JSON, and is not out of bounds."""
    document = trace.to_dict()
    assert_exact(document)
    assert trace == gk.ReasoningTrace.model_validate(document)
    text = trace.to_json()
    assert document == json.loads(text)
    assert trace == gk.ReasoningTrace.model_validate_json(text)
    assert trace == gk.ReasoningTrace.model_validate_json(text.encode("utf-8"))
    assert len(text) < at_most


@every_value
def test_arguments_and_results_come_through_as_they_are(grace, make):
    """Identity in and out, by position, by keyword and inside containers; the trace is valid JSON."""
    value = make()
    seen = []

    @grace.tool
    def tool(given, *rest, key=None, **more):
        seen.append((given, rest, key, more))
        return given

    @grace.agent
    def agent(given, **more):
        return tool(given, [given], (given, {"k": given}), key=given, other=given)

    with grace.collect() as traces:
        assert agent(value) is value
        assert agent(given=value, more=value) is value
    for one, rest, key, more in seen:
        assert one is value
        assert rest[0][0] is value
        assert rest[1][0] is value
        assert rest[1][1]["k"] is value
        assert key is value
        assert more["other"] is value
    assert 2 == len(traces)
    for trace in traces:
        assert_sound(trace)
        assert ["ok"] * 1 == [call.status for call in trace.calls]
        assert ["given", "rest", "key", "other"] == list(trace.steps[0].input)
    assert traces[0] == grace.store.get(traces[0].id)


@every_value
def test_thoughts_outcomes_and_retrievals_take_them(grace, make):
    """As a thought, as the stated outcome, as search results, as a hit and as a hit's source."""
    value = make()

    @grace.retriever
    def search(text):
        return value

    @grace.retriever
    def search_hits(text):
        return [{"score": value, "source": value, "text": value}, (value, 0.5), value]

    with grace.collect() as traces, grace.run("x") as run:
        run.thought(value)
        grace.thought(value)
        assert search("x") is value
        assert search_hits("x")[2] is value
        run.outcome(result=value, success=True)
    assert_sound(traces[0])
    assert ["thought", "thought"] == [step.type for step in traces[0].steps[:2]]
    assert ["ok"] * 2 == [call.status for call in traces[0].calls]


@every_value
async def test_every_shell_hands_them_on(grace, make):
    """What is awaited, yielded, sent and returned is the same object."""
    value = make()

    @grace.tool
    async def tool(given):
        await asyncio.sleep(0)
        return given

    @grace.agent
    async def coroutine(given):
        return await tool(given)

    @grace.agent
    def generator():
        assert (yield value) is value
        yield "text in between"
        return value

    @grace.agent
    async def async_generator():
        assert (yield value) is value
        yield value

    with grace.collect() as traces:
        assert (await coroutine(value)) is value
        running = generator()
        assert next(running) is value
        assert "text in between" == running.send(value)
        with pytest.raises(StopIteration) as stop:
            next(running)
        # An exception that is returned looks to `StopIteration` as any other value.
        assert stop.value.value is value
        running = async_generator()
        assert (await anext(running)) is value
        assert (await running.asend(value)) is value
        with pytest.raises(StopAsyncIteration):
            await anext(running)
    for trace in traces:
        assert_sound(trace)
    assert ["completed"] * 3 == [trace.grace["status"] for trace in traces]
    assert ["ok"] * 1 == [call.status for call in traces[0].calls]


class HostileError(Exception):
    __str__ = __repr__ = __eq__ = __len__ = raiser(RuntimeError)
    __hash__ = raiser(RuntimeError)


class ErrorWithoutClass(Exception):
    @property
    def __class__(self):
        raise RuntimeError("no class")


class ErrorOfUnhashableMeta(Exception, metaclass=UnhashableMeta): ...


class ErrorWithAttributes(Exception):
    def __getattribute__(self, name):
        raise RuntimeError(name)


ERRORS = {
    "str raises": lambda: HostileError("x"),
    "str raises SystemExit": lambda: raising(SystemExit, "__str__", base=ValueError)("x"),
    "str gives a hostile text": lambda: type("Odd", (ValueError,), {"__str__": lambda self: HostileText("x")})("x"),
    "__class__ raises": lambda: ErrorWithoutClass("x"),
    "class cannot be hashed": lambda: ErrorOfUnhashableMeta("x"),
    "attributes raise": lambda: ErrorWithAttributes("x"),
    "5 MB message": lambda: ValueError("x" * MEGABYTES_5),
    "5 MB argument": lambda: KeyError(list(range(500_000))),
    "itself": lambda: _of_itself(),
    "group": lambda: ExceptionGroup("many", [HostileError(), ValueError("a")]),
    "system exit": lambda: SystemExit(HugeRepr()),
    "keyboard interrupt": lambda: KeyboardInterrupt("x"),
    "cancelled": lambda: asyncio.CancelledError("x"),
    "generator exit": lambda: GeneratorExit("x"),
    "base exception": lambda: Trap("x"),
    "stop iteration": lambda: StopIteration(3),
    "stop async iteration": lambda: StopAsyncIteration(3),
}


every_error = pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in ERRORS.items()])


def _of_itself():
    error = ValueError()
    error.args = (error,)
    error.__context__ = error
    return error


@every_error
@pytest.mark.parametrize("kind", ["function", "coroutine", "generator", "async generator", "block"])
async def test_an_error_leaves_every_kind_as_without_recording(grace, make, kind):
    """What arrives outside is what arrives without the decorator, where Python itself turns one error into another."""
    error = make()

    def function(text):
        raise error

    async def coroutine(text):
        raise error

    def generator(text):
        yield 1
        raise error

    async def async_generator(text):
        yield 1
        raise error

    async def arrives(recorded):
        mark = (lambda function: grace.agent(function)) if recorded else (lambda function: function)
        try:
            if kind == "function":
                mark(function)("x")
            elif kind == "coroutine":
                await mark(coroutine)("x")
            elif kind == "generator":
                list(mark(generator)("x"))
            elif kind == "async generator":
                _ = [item async for item in mark(async_generator)("x")]
            else:
                with grace.run("x") if recorded else contextlib.nullcontext():
                    raise error
        except BaseException as caught:
            return caught

    plain = await arrives(False)
    with grace.collect() as traces:
        recorded = await arrives(True)
    if plain is error:
        same = recorded is error  # pytest would print both
        assert same, type(recorded).__mro__
    else:
        assert (RuntimeError, True) == (type(recorded), recorded.__cause__ is error)
    assert_sound(traces[0])
    assert traces[0].metadata.success is False
    assert traces[0].grace["status"] in {"failed", "exited", "cancelled", "closed"}
    assert 0 == grace.status()["open_runs"]


class Database:
    """Counts what would have been a query."""

    def __init__(self):
        self.queries = 0

    def rows(self):
        self.queries += 1
        return [{"id": 1}]


class LazyObject:
    """As a web framework's current user: even its class is only known after a query."""

    __slots__ = ("_database",)

    def __init__(self, database):
        object.__setattr__(self, "_database", database)

    def _ask(self):
        return object.__getattribute__(self, "_database").rows()

    @property
    def __class__(self):
        self._ask()
        return dict

    def __getattribute__(self, name):
        if name == "_ask":
            return object.__getattribute__(self, name)
        self._ask()
        raise AttributeError(name)

    def __iter__(self):
        return iter(self._ask())

    def __len__(self):
        return len(self._ask())

    def __eq__(self, other):
        return self._ask() == other

    __hash__ = None

    def __repr__(self):
        return repr(self._ask())


def test_recording_asks_no_database(grace):
    """Objects that evaluate when looked at are recorded without being evaluated."""
    database = Database()
    value = LazyObject(database)

    @grace.tool
    def tool(given, *, key):
        return given

    @grace.agent
    def agent(given):
        grace.thought(given)
        tool([given], key={"inner": given})
        return tool(given, key=given)

    @grace.agent
    def stream(given):
        yield given

    with grace.collect() as traces:
        assert agent(value) is value
        for one in stream(value):
            assert one is value
        try:
            with grace.run("x"):
                raise LookupError([value])
        except LookupError:
            pass
    assert 0 == database.queries
    assert 3 == len(traces)
    for trace in traces:
        assert_sound(trace)


def test_generators_and_iterators_are_not_consumed(grace):
    """As arguments, results, fields and hits they still have everything in them afterwards."""

    def numbers():
        yield from range(3)

    @grace.tool
    def tool(given, inner):
        return given

    @grace.retriever
    def search(given):
        return given

    for make in (numbers, lambda: iter(range(3)), lambda: map(int, "012"), lambda: (n for n in range(3))):
        argument, inner, result, hits = make(), make(), make(), make()
        with grace.run("x"):
            tool(1, inner=[argument, Bag(inner=inner)])
            given_back = tool(result, None)
            found = search(hits)
        assert [0, 1, 2] == list(argument) == list(inner)
        assert [0, 1, 2] == list(given_back)
        assert [0, 1, 2] == list(found)


async def test_awaitables_and_async_generators_are_not_started(grace):
    async def pieces():
        yield 1

    async def work():
        return 2

    @grace.tool
    def tool(*given):
        return len(given)

    stream, coroutine, future = pieces(), work(), asyncio.get_running_loop().create_future()
    with grace.collect() as traces, grace.run("x"):
        assert 3 == tool(stream, coroutine, future)
    assert [1] == [item async for item in stream]
    assert 2 == await coroutine
    future.cancel()
    assert_sound(traces[0])


def test_a_dict_changed_by_another_thread_while_it_is_recorded(grace):
    shared: dict[Any, Any] = {n: {m: m for m in range(20)} for n in range(50)}
    inner = shared[0]
    members, row = set(range(50)), list(range(50))
    stop, errors = threading.Event(), []

    def change():
        number = 0
        try:
            while not stop.is_set():
                number += 1
                shared[1_000 + number % 60] = number
                shared.pop(1_000 + (number + 30) % 60, None)
                inner[2_000 + number % 60] = number
                inner.pop(2_000 + (number + 30) % 60, None)
                members.add(number % 500)
                members.discard((number + 250) % 500)
                row.append(number)
                del row[:1]
        except BaseException as error:
            errors.append(error)

    @grace.tool
    def tool(given, members, row):
        return given

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        with grace.collect() as traces, grace.run("x"):
            for _ in range(200):
                assert tool(shared, members, row) is shared
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert [] == errors
    assert "cannot be read" not in traces[0].to_json()
    assert_sound(traces[0], at_most=100_000_000)


def test_texts_that_utf8_or_sql_do_not_like_are_stored(tmp_path):
    """Half a surrogate pair, NUL and control characters anywhere in a trace: SQLite gives back the trace that hooks saw."""
    odd = "NUL \x00, half \ud83d, other half \ude00, line \u2028, end"
    with gk.Grace(store=f"sqlite:///{tmp_path / 't.db'}", embedder=None, reviewer=None, domain=odd) as grace:

        @grace.tool(name=odd)
        def tool(given, **more):
            return {odd: given}

        with grace.collect() as traces, grace.run(odd, name=odd):
            grace.thought(odd)
            tool(odd, **{odd: odd})
        (trace,) = traces
        assert_sound(trace)
        assert trace == grace.store.get(trace.id)
        assert [trace] == grace.store.query()


@every_value
def test_a_journal_of_an_open_run_takes_them(tmp_path, make):
    """What a killed process would leave behind is written while such values are in the run."""
    value = make()
    with gk.Grace(store=f"sqlite:///{tmp_path / 't.db'}", embedder=None, reviewer=None) as grace:

        @grace.tool
        def tool(given, **more):
            return given

        # While runs are being settled, the writer's own thread collects no rows of the journal: each row is collected once.
        with grace._writer._settling, grace.run("x") as run:
            tool(value, more=value)
            run.thought(value)
            entries = [row for rows in grace._pipeline.journal() for row in rows]
            lost = grace._pipeline.documents.rebuild([entry.data for entry in entries])
        assert_sound(gk.ReasoningTrace.model_validate(lost))


LEAVES = st.sampled_from([make for name, make in VALUES.items() if "5 MB" not in name and "100,000" not in name])


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.text() | st.characters(codec=None)


TEXTS = st.text(st.characters(codec=None, categories=None), max_size=20)


def cycled(value):
    """The value with itself somewhere inside of it, where it can be changed."""
    if type(value) is list:
        value.append(value)
    elif type(value) is dict:
        value["itself"] = value
    elif type(value) is Bag:
        value.itself = value
    return value


def later(build):
    """Return a function from makers of values to a maker of what is built of these values."""

    def maker(makers):
        if type(makers) is dict:
            return lambda: build({key: make() for key, make in makers.items()})
        return lambda: build([make() for make in makers])

    return maker


def branches(inner):
    two = st.tuples(inner, inner)
    return (
        st.lists(inner, max_size=5).map(later(list))
        | st.dictionaries(TEXTS | st.integers() | st.none() | st.floats(), inner, max_size=5).map(later(dict))
        | st.lists(inner, max_size=4).map(later(HostileList))
        | st.dictionaries(TEXTS, inner, max_size=4).map(later(lambda items: Bag(**items)))
        | two.map(later(lambda pair: Data(*pair)))
        | two.map(later(lambda pair: Point(*pair)))
        | st.tuples(inner).map(later(lambda items: Model.model_construct(name=items[0], inner=items[0])))
        | st.lists(inner, max_size=3).map(later(cycled))
        | st.dictionaries(TEXTS, inner, max_size=3).map(later(cycled))
    )


# Hypothesis looks at what it draws, so it draws functions that make the values.
HOSTILE = st.recursive(LEAVES | (PLAIN | TEXTS).map(lambda value: lambda: value), branches, max_leaves=12)


# A function does not show the value that it makes. The seed reproduces it.
@settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(HOSTILE)
def test_any_combination_of_hostile_values_is_survived(make):
    """As argument, keyword, result, item, thought and error at once; identity holds and the trace is sound."""
    value = make()
    error, same = LookupError(value), []

    @GRACE.tool
    def tool(given, **more):
        return given

    @GRACE.tool
    def fail(given):
        raise error

    @GRACE.agent
    def agent(given):
        GRACE.thought(given)
        assert tool(given, key=given) is given
        try:
            fail(given)
        except LookupError as caught:
            same.append(caught is error)
        yield given
        return given

    with GRACE.collect() as traces:
        running = agent(value)
        assert next(running) is value
        with pytest.raises(StopIteration) as stop:
            next(running)
        assert stop.value.value is value
    assert [True] == same
    (trace,) = traces
    assert_sound(trace)
    assert ["ok", "error"] == [call["status"] for call in trace.grace["calls"]]


GRACE = gk.Grace(store="memory:", embedder=None, reviewer=None)
