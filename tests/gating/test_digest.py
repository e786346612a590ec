"""A digest sees every change inside of arguments, stays the same without one, and refuses what it cannot look into."""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import logging
import operator
import os
import pathlib
import queue
import random
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import types
import typing
import uuid
import weakref
import xml.etree.ElementTree as ElementTree
import zoneinfo

import numpy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.gating import NotCheckable, digest_of
from grace_kp.gating._digest import MAX_BYTES, MAX_VALUES


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.StrEnum):
    LOW = "low"


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass
class Order:
    to: str
    lines: list
    colour: Colour = Colour.RED


@dataclasses.dataclass(slots=True, frozen=True)
class Point:
    x: int
    y: float


class Plain:
    def __init__(self):
        self.a = 1
        self.b = {"k": [1, 2]}


class Slotted:
    __slots__ = ("p", "q")

    def __init__(self):
        self.p = "p"
        self.q = None


class Model(pydantic.BaseModel):
    name: str
    tags: list[str] = []


class Pair(typing.NamedTuple):
    a: int
    b: str


class MyList(list):
    pass


class MyDict(dict):
    __slots__ = ()


class Empty:
    pass


for kind in (Colour, Level, Number, Order, Point, Plain, Slotted, Model, Pair, MyList, MyDict, Empty):
    kind.__module__ = "shop"  # wherever this file is imported from


def cycle():
    items = []
    items.append(items)
    return items


SHARED = [1]
# The digests of ordinary arguments are kept in ledgers: they must stay what they were when a pending approval was written.
KEPT = {
    "text": {"to": "ana é\ud800", "n": ""},
    "numbers": {"i": -5, "j": 10**30, "f": 0.1, "c": 1j, "t": True, "n": None, "nan": float("nan")},
    "dict": {"d": {"b": 1, "a": {"c": [1, 2, (3,)]}}, "k": {1: 2, "x": 3}},
    "sets": {"s": {1, 2, "a"}, "f": frozenset({(1, 2)}), "e": set()},
    "bytes": {"b": b"ab", "c": bytearray(b"ab")},
    "shared": {"a": SHARED, "b": SHARED, "c": cycle()},
    "objects": {"o": Order("ana", [1, "x"]), "p": Point(1, 2.5), "q": Plain(), "r": Slotted(), "n": Pair(1, "b")},
    "model": {"m": Model(name="x", tags=["t"])},
    "enums": {
        "a": Colour.RED,
        "b": Colour.BLUE,
        "c": Level.LOW,
        "d": Number.ONE,
        "e": [Colour.RED, Colour.RED],
    },
    "subclasses": {"l": MyList([1]), "d": MyDict(a=1), "c": collections.Counter("aab")},
    "library": {"u": uuid.UUID(int=7), "f": fractions.Fraction(1, 3)},
    "empty": {"e": Empty(), "n": {}},
    "none": {},
}
DIGESTS = {
    "text": "3ec8ff210cfa6d2d9c2ce5adc1cdfc8950310acbba72908cb154ae8301f7e577",
    "numbers": "e7235bb8e4aad97f766186ed4a45860121ea995a1ff18206969c1c3022b66ff4",
    "dict": "8ad2c0ebb4bccc59b71c9140e834265bf7467aa6a3ac92133f5155eb3074e154",
    "sets": "194c7162b7b983a5d5b20882f40a0a2c94278533084dbe3c2d6724bc8b49c98f",
    "bytes": "f672cac2681461932ee8665d93cc9f2e0282e7267a1374daa0f9c5f75ca6c776",
    "shared": "b0683c132ba2ee71e9fa2e96d959b047b458bd1e0bbdf788157fba4826d4f7cb",
    "objects": "ab4de2dcd2cfe6f3e863edfd898e01613260daed617c3702949ab0103f7b61b0",
    "model": "12b773b1a29a00d972cefc64e87fb478bf7d4d8fd8cbaa435bab9ab073321d93",
    "enums": "0a0dd06641297f63dcc5d73e6ea734c7b6b4fe138fdc6af72c9b8ff94b0e8c17",
    "subclasses": "2f116f9adf5f274d255f6e899fb29164ba9c00de7b9fbe2893f1cb7197ab8175",
    "library": "a9a457c4a9c289b25173bc75866d8286597ae9c059a818714b738da1bec353f5",
    "empty": "4ef3959261a1ea1557464ceaf93176752597fbacf3ff8021c105640cf2722fe4",
    "none": "4e635a256a2eb56b1625d9c8ea2137c7b7586ed72de780e1f2ff196a96c628cc",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_in_ledgers_stay_valid(name):
    """Ordinary arguments have the digest that they had when a pending approval was stored."""
    assert DIGESTS[name] == digest_of(KEPT[name], lasting=True)


class WithAttributes:
    """Mixed into built-in types."""

    def __init__(self, *_args, **_keywords):
        self.extra = [1]


class List(WithAttributes, list): ...


class Dict(WithAttributes, dict): ...


class Text(WithAttributes, str): ...


class Set(WithAttributes, set): ...


class FrozenSet(WithAttributes, frozenset): ...


class Integer(WithAttributes, int): ...


class Float(WithAttributes, float): ...


class Complex(WithAttributes, complex): ...


class Bytes(WithAttributes, bytes): ...


class Buffer(WithAttributes, bytearray): ...


class Tuple(WithAttributes, tuple): ...


class Moment(WithAttributes, datetime.datetime): ...


class Path(WithAttributes, pathlib.PurePosixPath): ...


class Failure(WithAttributes, OSError): ...


class Deque(WithAttributes, collections.deque): ...


class Private:
    __slots__ = ("__hidden", "shown")

    def __init__(self):
        self.__hidden = [1]
        self.shown = 2

    def change(self):
        self.__hidden.append(2)


class Shadowing(Private):
    __slots__ = ("shown",)


class Record(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int = 0
    _private: list = pydantic.PrivateAttr(default_factory=list)


class Wide:
    def __init__(self):
        for number in range(300):
            setattr(self, f"field_{number}", number)


class Computed:
    """An object that shows other attributes than it has."""

    def __init__(self):
        self.real = [1]

    def __getattribute__(self, name):
        return "changed" if name == "real" else object.__getattribute__(self, name)

    def change(self):
        self.__dict__["real"].append(2)


def closure():
    data = [1]
    return lambda: data


def keyword_default(*, data={"a": 1}):  # noqa: B006
    return data


def element():
    return ElementTree.fromstring("<a k='1'>text<b x='1'/>tail</a>")


HELD = collections.UserList([1])
CHANGES = {
    "list": (lambda: [[1]], lambda value: value[0].append(2)),
    "dict": (lambda: {"a": {"b": 1}}, lambda value: value["a"].update(b=2)),
    "order of other keys": (lambda: {1: 2, 3: 4}, lambda value: value.update({1: value.pop(1)})),
    "set": (lambda: {1}, lambda value: value.add(2)),
    "bytearray": (lambda: bytearray(b"ab"), lambda value: value.append(1)),
    "type of a number": (lambda: [1], lambda value: value.__setitem__(0, True)),
    "float for int": (lambda: [1], lambda value: value.__setitem__(0, 1.0)),
    "sign": (lambda: [5], lambda value: value.__setitem__(0, -5)),
    "deque": (lambda: collections.deque([1]), lambda value: value.append(2)),
    "array": (lambda: array.array("i", [1]), lambda value: value.append(2)),
    "memoryview": (lambda: memoryview(bytearray(b"ab")), lambda value: value.__setitem__(0, 99)),
    "BytesIO": (lambda: io.BytesIO(b"ab"), lambda value: value.getbuffer().__setitem__(0, 99)),
    "position in BytesIO": (lambda: io.BytesIO(b"ab"), lambda value: value.read(1)),
    "StringIO": (lambda: io.StringIO("ab"), lambda value: value.write("c")),
    "position in StringIO": (lambda: io.StringIO("ab"), lambda value: value.read(1)),
    "array of numpy": (lambda: numpy.zeros(3), lambda value: value.__setitem__(0, 1)),
    "shape": (lambda: numpy.zeros(2), lambda value: setattr(value, "shape", (2, 1))),
    "array of objects": (lambda: numpy.array([[1], {}], dtype=object), lambda value: value[0].append(1)),
    "structured array": (
        lambda: numpy.zeros(2, dtype=[("a", int), ("o", object)]),
        lambda value: value["o"].__setitem__(0, 5),
    ),
    "record of an array": (lambda: numpy.zeros(2, dtype=[("a", int)])[0], lambda value: value.__setitem__("a", 4)),
    "mask": (lambda: numpy.ma.array([1, 2], mask=[0, 1]), lambda value: value.mask.__setitem__(0, True)),
    "attribute of XML": (element, lambda value: value[0].set("x", "2")),
    "tag": (element, lambda value: setattr(value[0], "tag", "c")),
    "text of XML": (element, lambda value: setattr(value, "text", "other")),
    "tail of XML": (element, lambda value: setattr(value[0], "tail", "other")),
    "children": (element, lambda value: value.append(ElementTree.Element("c"))),
    "tree": (lambda: ElementTree.ElementTree(element()), lambda value: value.getroot().clear()),
    "private slot": (Private, Private.change),
    "slot": (Private, lambda value: setattr(value, "shown", 3)),
    "shadowed slot": (Shadowing, lambda value: Private.shown.__set__(value, 3)),
    "deleted slot": (Private, lambda value: delattr(value, "shown")),
    "private of pydantic": (Record, lambda value: value._private.append(1)),
    "extra of pydantic": (lambda: Record(z=[1]), lambda value: value.z.append(1)),
    "set fields of pydantic": (Record, lambda value: setattr(value, "a", 0)),
    "secret": (lambda: pydantic.SecretStr("x"), lambda value: setattr(value, "_secret_value", "y")),
    "many attributes": (Wide, lambda value: setattr(value, "field_299", 0)),
    "computed attributes": (Computed, Computed.change),
    "order": (lambda: collections.OrderedDict(a=1, b=2), lambda value: value.move_to_end("a")),
    "ordered value": (lambda: collections.OrderedDict(a=[1]), lambda value: value["a"].append(2)),
    "default factory": (lambda: collections.defaultdict(list), lambda value: setattr(value, "default_factory", dict)),
    "default value": (lambda: collections.defaultdict(list), lambda value: value["a"]),
    "proxy": (lambda: types.MappingProxyType({"a": [1]}), lambda value: value["a"].append(2)),
    "keys": (lambda: {(1, Plain()): 1}.keys(), lambda value: setattr(next(iter(value))[1], "a", 2)),
    "values": (lambda: {"a": [1]}.values(), lambda value: next(iter(value)).append(2)),
    "items": (lambda: {"a": [1]}.items(), lambda value: next(iter(value))[1].append(2)),
    "ChainMap": (lambda: collections.ChainMap({"a": 1}), lambda value: value.maps.append({})),
    "UserDict": (lambda: collections.UserDict(a=1), lambda value: value.update(b=1)),
    "namespace": (lambda: types.SimpleNamespace(a=[1]), lambda value: value.a.append(1)),
    "positional of a partial": (lambda: functools.partial(print, [1]), lambda value: value.args[0].append(2)),
    "keyword of a partial": (lambda: functools.partial(print, end=[]), lambda value: value.keywords["end"].append(2)),
    "attribute of a partial": (lambda: functools.partial(print), lambda value: setattr(value, "note", 1)),
    "method": (lambda: collections.UserList([1]).append, lambda value: value(2)),
    "built-in method": (lambda: [1].append, lambda value: value(2)),
    "method wrapper": (lambda: [1].__iadd__, lambda value: value([2])),
    "closure": (closure, lambda value: value().append(2)),
    "default": (lambda: lambda data=[1]: data, lambda value: value().append(2)),
    "keyword default": (lambda: keyword_default, lambda value: value().update(a=value()["a"] + 1)),
    "slice": (lambda: slice([1], 2), lambda value: value.start.append(1)),
    "weak reference": (lambda: weakref.ref(HELD), lambda value: value().append(2)),
    "weak values": (lambda: weakref.WeakValueDictionary(a=HELD), lambda value: value["a"].append(2)),
    "event": (threading.Event, threading.Event.set),
    "queue": (queue.Queue, lambda value: value.put(1)),
    "arguments of an error": (lambda: ValueError([1]), lambda value: value.args[0].append(2)),
    "cause of an error": (lambda: ValueError("x"), lambda value: setattr(value, "__cause__", KeyError())),
    "context of an error": (lambda: ValueError("x"), lambda value: setattr(value, "__context__", KeyError())),
    "file of an error": (lambda: OSError(2, "x", "f"), lambda value: setattr(value, "filename", "g")),
    "value of an error": (lambda: StopIteration([1]), lambda value: value.value.append(2)),
    "list subclass": (lambda: List([1]), lambda value: value.append(1)),
    "dict subclass": (lambda: Dict(a=1), lambda value: value.update(a=2)),
    "set subclass": (lambda: Set({1}), lambda value: value.add(2)),
    **{
        f"attribute of {kind.__name__}": (lambda kind=kind, args=args: kind(*args), lambda value: value.extra.append(1))
        for kind, args in [
            (List, ([1],)), (Dict, ({"a": 1},)), (Text, ("a",)), (Set, ({1},)), (FrozenSet, ({1},)), (Integer, (5,)),
            (Float, (0.5,)), (Complex, (1j,)), (Bytes, (b"5",)), (Buffer, (b"5",)), (Tuple, ((5,),)), (Deque, ((5,),)),
            (Moment, (2020, 1, 1)), (Path, ("/a",)), (Failure, (2, "x")),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name):
    """Whatever is inside of a value, the digest is the same before and another after it has changed."""
    create, change = CHANGES[name]
    value = create()
    before = digest_of({"value": [value]})
    assert before == digest_of({"value": [value]})
    change(value)
    assert before != digest_of({"value": [value]})


NAIVE = datetime.datetime(2026, 1, 1)  # noqa: DTZ001
ZONE = zoneinfo.ZoneInfo("UTC")
VALUES = {
    "decimal": (decimal.Decimal("1.50"), decimal.Decimal("1.5")),
    "decimal value": (decimal.Decimal(1), decimal.Decimal(2)),
    "date": (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    "datetime": (NAIVE, NAIVE.replace(microsecond=1)),
    "zone": (NAIVE, NAIVE.replace(tzinfo=datetime.UTC)),
    "named zone": (NAIVE.replace(tzinfo=ZONE), NAIVE.replace(tzinfo=datetime.UTC)),
    "fold": (datetime.time(1, fold=0), datetime.time(1, fold=1)),
    "duration": (datetime.timedelta(1), datetime.timedelta(2)),
    "microseconds": (datetime.timedelta(0, 0, 1), datetime.timedelta(0, 0, 2)),
    "seconds": (datetime.timedelta(0, 1), datetime.timedelta(0, 2)),
    "offset": (datetime.timezone(datetime.timedelta(hours=1)), datetime.timezone(datetime.timedelta(hours=2))),
    "name of a zone": (zoneinfo.ZoneInfo("Europe/Paris"), zoneinfo.ZoneInfo("Europe/Rome")),
    "path": (pathlib.PurePosixPath("/a"), pathlib.PurePosixPath("/b")),
    "kind of path": (pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("a")),
    "pattern": (re.compile("a"), re.compile("b")),
    "flags of a pattern": (re.compile("a"), re.compile("a", re.IGNORECASE)),
    "match": (re.match("a", "a"), re.match("a", "ab")),
    "range": (range(3), range(4)),
    "step": (range(0, 9, 2), range(0, 9, 3)),
    "start": (range(1, 9), range(2, 9)),
    "slice": (slice(1, 2), slice(1, 3)),
    "step of a slice": (slice(1, 9, 2), slice(1, 9, 3)),
    "uuid": (uuid.UUID(int=1), uuid.UUID(int=2)),
    "enum": (Colour.RED, Colour.BLUE),
    "class": (int, str),
    "function": (os.path.join, os.path.split),
    "built-in": (len, sum),
    "module": (os, sys),
    "logger": (logging.getLogger("a"), logging.getLogger("b")),
    "generic": (list[int], list[str]),
    "union": (int | None, int | str),
    "item getter": (operator.itemgetter("a"), operator.itemgetter("b")),
    "attribute getter": (operator.attrgetter("a"), operator.attrgetter("b")),
    "method caller": (operator.methodcaller("a", 1), operator.methodcaller("a", 2)),
    "cached function": (functools.cache(os.path.join), functools.cache(os.path.split)),
    "numpy number": (numpy.float64(1), numpy.float64(2)),
    "numpy type": (numpy.dtype("i4"), numpy.dtype("i8")),
    "type of an array": (numpy.zeros(1, "i8"), numpy.zeros(1, "f8")),
    "type code": (array.array("i", [0]), array.array("I", [0])),
    "format": (memoryview(b"ab"), memoryview(b"ab").cast("b")),
    "length of a deque": (collections.deque([1]), collections.deque([1], maxlen=3)),
    "struct_time": (time.gmtime(0), time.gmtime(1)),
    "text subclass": (MyList("a"), MyList("b")),
    "integer subclass": (Integer(15), Integer(16)),
    "ellipsis": (..., NotImplemented),
    "url": (pydantic.HttpUrl("http://a.b"), pydantic.HttpUrl("http://a.c")),
    "moment of pydantic": tuple(
        pydantic.TypeAdapter(datetime.datetime).validate_json(f'"2020-01-01T00:00:00+0{hour}:00"') for hour in (1, 2)
    ),
    "bound method": (Colour.RED.__str__, Colour.BLUE.__str__),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("lasting", [False, True])
def test_values_are_told_apart(name, lasting):
    """A value that cannot change has a digest of its own, here and in another process."""
    one, other = VALUES[name]
    assert digest_of({"value": one}, lasting=lasting) == digest_of({"value": one}, lasting=lasting)
    assert digest_of({"value": one}, lasting=lasting) != digest_of({"value": other}, lasting=lasting)


def test_use_is_no_change():
    """What fills a cache inside of a value, or only locks it, leaves the digest as it was."""
    path, lock, logger = pathlib.Path("/a/b"), threading.RLock(), logging.getLogger("shop")
    arguments = {"path": path, "lock": [lock, threading.Lock()], "logger": logger}
    before = digest_of(arguments)
    assert isinstance(hash(path), int)
    assert ("/a/b", "b") == (str(path), path.name)
    with lock:
        logger.debug("used")
    assert before == digest_of(arguments)


class Coroutine:
    def __await__(self):
        yield


class FakeDict:
    """Hides its attributes behind a name."""

    def __init__(self):
        object.__setattr__(self, "value", [1])

    @property
    def __dict__(self):
        return {}


class Extended(sqlite3.Connection):
    __slots__ = ()


@pytest.mark.parametrize(
    ("create", "problem"),
    [
        (lambda: (item for item in [1]), "generator, which changes when it is read"),
        (lambda: iter([1]), "list_iterator, which changes"),
        (lambda: map(str, [1]), "map, which changes"),
        (itertools.count, "itertools.count, which changes"),
        (Coroutine().__await__, "generator, which changes"),
        (threading.local, "_thread._local, whose contents cannot be seen"),
        (lambda: ctypes.c_int(1), "c_int, whose contents cannot be seen"),
        (lambda: random.Random(1), "random.Random, whose contents cannot be seen"),
        (lambda: numpy.random.default_rng(1), "Generator, whose contents cannot be seen"),
        (lambda: contextvars.ContextVar("x"), "ContextVar, whose contents cannot be seen"),
        (contextvars.copy_context, "Context, whose contents cannot be seen"),
        (sys._getframe, "frame, whose contents cannot be seen"),
        (FakeDict, "FakeDict, whose contents cannot be seen"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_into_is_refused(create, problem):
    """The argument is named, and the type of what it holds, however deep."""
    with pytest.raises(NotCheckable, match=problem) as refused:
        digest_of({"to": "ana", "order": {"lines": [Order("ana", [create()])]}})
    assert "order" == refused.value.argument
    assert str(refused.value).startswith("the argument 'order' holds a ")


def test_files_sockets_and_connections_are_refused(tmp_path):
    """They are not data."""
    with (
        (tmp_path / "file").open("w") as file,
        socket.socket() as plug,
    ):
        connection = Extended(":memory:")
        for value in (file, plug, connection):
            with pytest.raises(NotCheckable, match="argument 'it' holds a .*" + type(value).__name__):
                digest_of({"it": value})
        connection.close()


def test_what_is_closed_is_refused():
    """A buffer that was released can be read by nobody."""
    file, view = io.BytesIO(b"x"), memoryview(b"x")
    file.close()
    view.release()
    for value in (file, view):
        with pytest.raises(NotCheckable, match=r"cannot be read.*ValueError"):
            digest_of({"it": value})


def nested(depth):
    value = frozenset()
    for _ in range(depth):
        value = frozenset({value})
    return value


@pytest.mark.parametrize(
    ("create", "problem"),
    [
        (lambda: [0] * (MAX_VALUES + 1), f"more than {MAX_VALUES:,} values"),
        (lambda: dict.fromkeys(range(MAX_VALUES // 2 + 1)), f"more than {MAX_VALUES:,} values"),
        (lambda: [Empty() for _ in range(MAX_VALUES // 4 + 1)], f"more than {MAX_VALUES:,} values"),
        (lambda: set(range(MAX_VALUES // 4)), f"more than {MAX_VALUES:,} values"),
        (lambda: [bytes(MAX_BYTES // 2 + 1)] * 2, f"more than {MAX_BYTES:,} bytes"),
        (lambda: "x" * (MAX_BYTES + 1), f"more than {MAX_BYTES:,} bytes"),
        (lambda: 1 << 8 * (MAX_BYTES + 1), f"more than {MAX_BYTES:,} bytes"),
        (lambda: numpy.zeros(MAX_BYTES + 1, "u1"), f"more than {MAX_BYTES:,} bytes"),
        (lambda: memoryview(bytes(MAX_BYTES + 1)), f"more than {MAX_BYTES:,} bytes"),
        (lambda: array.array("b", bytes(MAX_BYTES + 1)), f"more than {MAX_BYTES:,} bytes"),
        (lambda: io.BytesIO(bytes(MAX_BYTES + 1)), f"more than {MAX_BYTES:,} bytes"),
        (lambda: io.StringIO("x" * (MAX_BYTES + 1)), f"more than {MAX_BYTES:,} bytes"),
        (lambda: nested(2_000), "RecursionError"),
    ],
)
def test_the_time_is_bounded(create, problem):
    """What would take too long to read is refused, with how much is allowed."""
    with pytest.raises(NotCheckable, match=problem) as refused:
        digest_of({"it": create()})
    assert "it" == refused.value.argument


def test_a_million_bytes_and_deep_lists_are_fine():
    """Depth costs nothing, and neither does one long text."""
    deep = []
    for _ in range(50_000):
        deep = [deep]
    assert digest_of({"deep": deep}) == digest_of({"deep": deep})
    assert digest_of({"text": "x" * 1_000_000}) != digest_of({"text": "x" * 999_999})
    while deep:  # taken apart here: Python would do it by recursion
        deep = deep.pop()


PROGRAM = """
import datetime, decimal, enum, logging, operator, os, pathlib, re, threading, collections
from grace_kp.gating import digest_of
class Colour(enum.Enum):
    RED = 1
class Empty: pass
print(digest_of({"a": [Colour.RED, Colour, Empty(), len, os.path.join, os, logging.getLogger("x"), threading.Lock()],
    "b": [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), decimal.Decimal("1"), pathlib.Path("/a"), re.compile("a")],
    "c": [{"x", "y", "z"}, operator.itemgetter(1), collections.deque([1]), "".join, [].append, lambda data=[1]: data],
    "d": [os.stat_result(range(10)), collections.OrderedDict(a=1)]}, lasting=True))
"""


def test_another_process_has_the_same_lasting_digest():
    """Nothing in a lasting digest depends on addresses, hash seeds or what else has been imported."""
    found = {
        subprocess.run(
            [sys.executable, "-c", imports + PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed, imports in (("1", ""), ("2", "import numpy, xml.etree.ElementTree, weakref, zoneinfo\n"))
    }  # fmt: skip
    assert 1 == len(found)
    assert 65 == len(found.pop())


def test_what_is_not_stored_with_a_model_is_not_in_its_lasting_digest():
    """A model that was stored and read again is the same call, although its private attributes start anew."""
    changed, plain = Record(), Record()
    changed._private.append(1)
    changed.a = 0
    assert digest_of({"it": plain}, lasting=True) == digest_of({"it": changed}, lasting=True)
    assert digest_of({"it": plain}, lasting=True) != digest_of({"it": Record(more=1)}, lasting=True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def copied(value):
    if isinstance(value, dict):
        return {name: copied(item) for name, item in reversed(value.items())}
    return [copied(item) for item in value] if isinstance(value, list) else value


def exact(value):
    if isinstance(value, dict):
        return ("d", frozenset((name, exact(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("l", tuple(map(exact, value)))
    return (type(value).__name__, repr(value))


@given(JSON, JSON)
def test_json_has_one_digest_per_value(one, other):
    """Copies have the same digest whatever the order of their keys; different values have different ones."""
    assert digest_of({"it": one}, lasting=True) == digest_of({"it": copied(one)}, lasting=True)
    same = exact(one) == exact(other)
    assert same == (digest_of({"it": one}) == digest_of({"it": other}))
