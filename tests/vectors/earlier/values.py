"""Values that arguments may hold, by name, and the digests that they have.

`digests_now()` returns the digests of the version under test; `2753eab/digests.json.gz` holds those of that commit. Every value of `SEEDS`
also occurs inside of each container of `AROUND`. `tests/gating/test_digest.py` compares them.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import ipaddress
import itertools
import math
import operator
import pathlib
import re
import types
import typing
import uuid
import zoneinfo

import numpy
import pydantic

from grace_kp.approvals import digest, encode
from grace_kp.gating import NotCheckable, digest_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Word(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Order:
    to: object
    euros: object = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    to: object
    euros: object = 1


class Pair(typing.NamedTuple):
    to: object
    euros: object = 1


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, extra="allow")
    to: typing.Any
    euros: int = 1


class Plain:
    def __init__(self, to):
        self.to = to


class Slotted:
    __slots__ = ("to",)

    def __init__(self, to):
        self.to = to


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Words(list):
    pass


class Names(dict):
    pass


def closed_over(value):
    return lambda: value


def with_default(default):
    def function(value=default):
        return value

    return function


ZURICH = zoneinfo.ZoneInfo("Europe/Zurich")
SEEDS = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "two to 53": 2**53,
    "two to 53 less one": 2**53 - 1,
    "two to 64": 2**64,
    "minus two to 64": -(2**64),
    "float zero": 0.0,
    "minus float zero": -0.0,
    "float one": 1.0,
    "tenth": 0.1,
    "three tenths": 0.1 + 0.2,
    "tiny": 5e-324,
    "huge": 1e308,
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "complex": 1j,
    "complex one": complex(1, 0),
    "empty": "",
    "text one": "1",
    "text none": "None",
    "a": "a",
    "A": "A",
    "red": "red",
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "surrogate": "\ud800",
    "null character": "a\0b",
    "lines": "a\nb",
    "return": "a\r\nb",
    "right to left": "\u202eabc",
    "emoji": "😀",
    "long": "x" * 10_000,
    "longer": "x" * 10_001,
    "type tag": "$type",
    "text subclass": Text("a"),
    "int subclass": Whole(1),
    "no bytes": b"",
    "bytes": b"a",
    "bytes zero": b"\0",
    "bytearray": bytearray(b"a"),
    "memoryview": memoryview(b"a"),
    "decimal": decimal.Decimal(1),
    "decimal with zero": decimal.Decimal("1.0"),
    "decimal nan": decimal.Decimal("NaN"),
    "decimal minus zero": decimal.Decimal("-0"),
    "fraction": fractions.Fraction(1, 2),
    "date": dt.date(2026, 1, 2),
    "datetime": dt.datetime(2026, 1, 2),  # noqa: DTZ001
    "datetime in utc": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    "datetime with offset": dt.datetime(2026, 1, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    "datetime in zurich": dt.datetime(2026, 1, 2, 1, tzinfo=ZURICH),
    "first of two": dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZURICH),
    "second of two": dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZURICH),
    "microsecond": dt.datetime(2026, 1, 2, 0, 0, 0, 1),  # noqa: DTZ001
    "time": dt.time(1, 2),
    "time in utc": dt.time(1, 2, tzinfo=dt.UTC),
    "timedelta": dt.timedelta(seconds=1),
    "timedelta one microsecond more": dt.timedelta(seconds=1, microseconds=1),
    "timezone": dt.UTC,
    "zone": ZURICH,
    "uuid": uuid.UUID(int=1),
    "another uuid": uuid.UUID(int=2),
    "enum": Colour.RED,
    "enum of another value": Colour.BLUE,
    "text enum": Word.RED,
    "int enum": Number.ONE,
    "flag": Right.READ,
    "flags": Right.READ | Right.WRITE,
    "path": pathlib.PurePosixPath("a"),
    "windows path": pathlib.PureWindowsPath("a"),
    "concrete path": pathlib.Path("a"),
    "range": range(3),
    "range of the same elements": range(0, 3, 1),
    "range with step": range(0, 3, 2),
    "slice": slice(1, 2),
    "ellipsis": ...,
    "empty list": [],
    "empty tuple": (),
    "empty dict": {},
    "empty set": set(),
    "empty frozenset": frozenset(),
    "list": [1, 2],
    "list the other way": [2, 1],
    "list of one list": [[1, 2]],
    "tuple": (1, 2),
    "nested tuple": ((1,), 2),
    "nested tuple the other way": (1, (2,)),
    "dict": {"a": 1, "b": 2},
    "dict in another order": {"b": 2, "a": 1},
    "dict of ints": {1: "a"},
    "dict of texts": {"1": "a"},
    "dict of floats": {1.5: "a"},
    "dict of true": {True: "a"},
    "dict of none": {None: "a"},
    "dict of tuples": {(1, 2): "a"},
    "dict like a tag": {"$type": "set", "value": []},
    "list of pairs": [["a", 1], ["b", 2]],
    "set": {1, 2, 3},
    "set of texts": {"b", "a"},
    "frozenset": frozenset({1, 2, 3}),
    "set of tuples": {(1, "a"), (2, "b")},
    "set of frozensets": {frozenset({1}), frozenset({2})},
    "list subclass": Words([1, 2]),
    "dict subclass": Names(a=1, b=2),
    "ordered dict": collections.OrderedDict(a=1, b=2),
    "ordered dict in another order": collections.OrderedDict(b=2, a=1),
    "default dict": collections.defaultdict(list, a=1),
    "default dict of ints": collections.defaultdict(int, a=1),
    "counter": collections.Counter("aab"),
    "deque": collections.deque([1, 2]),
    "bounded deque": collections.deque([1, 2], maxlen=2),
    "proxy": types.MappingProxyType({"a": 1}),
    "chain": collections.ChainMap({"a": 1}, {"b": 2}),
    "namespace": types.SimpleNamespace(to=1),
    "user dict": collections.UserDict(a=1),
    "user list": collections.UserList([1]),
    "keys": {"a": 1}.keys(),
    "data class": Order("ann"),
    "data class of another value": Order("bob"),
    "frozen data class": Frozen("ann"),
    "named tuple": Pair("ann"),
    "tuple like it": ("ann", 1),
    "model": Model(to="ann"),
    "model with an extra field": Model(to="ann", more=1),
    "object": Plain("ann"),
    "object of another value": Plain("bob"),
    "slotted": Slotted("ann"),
    "function": with_default,
    "another function": closed_over,
    "builtin": len,
    "another builtin": max,
    "method of a type": str.upper,
    "bound method": "abc".upper,
    "partial": functools.partial(max, 1),
    "another partial": functools.partial(max, 2),
    "item getter": operator.itemgetter(1),
    "another item getter": operator.itemgetter(2),
    "attribute getter": operator.attrgetter("a"),
    "class": Plain,
    "another class": Slotted,
    "builtin class": int,
    "module": math,
    "generic": list[int],
    "another generic": list[str],
    "union": int | str,
    "typing": typing.Any,
    "pattern": re.compile("a"),
    "pattern with flag": re.compile("a", re.IGNORECASE),
    "pattern of bytes": re.compile(b"a"),
    "address": ipaddress.ip_address("127.0.0.1"),
    "address of version 6": ipaddress.ip_address("::1"),
    "network": ipaddress.ip_network("10.0.0.0/8"),
    "array": array.array("i", [1, 2]),
    "array of another type": array.array("l", [1, 2]),
    "numpy": numpy.array([1, 2]),
    "numpy of another type": numpy.array([1, 2], dtype="float64"),
    "numpy of another shape": numpy.array([[1, 2]]),
    "numpy by columns": numpy.asfortranarray([[1, 2], [3, 4]]),
    "numpy by rows": numpy.array([[1, 2], [3, 4]]),
    "numpy scalar": numpy.float64(1),
    "numpy int": numpy.int64(1),
    "exception": ValueError("a"),
    "another exception": TypeError("a"),
    "object without attributes": types.SimpleNamespace(),
    "generator": itertools.count(),
    "default": with_default(1),
    "another default": with_default(2),
}
AROUND = {
    "alone": lambda value: value,
    "in a list": lambda value: [value],
    "in a longer list": lambda value: [0, value, "z"],
    "twice in a list": lambda value: [value, value],
    "in a tuple": lambda value: (value,),
    "in a dict": lambda value: {"k": value},
    "in a dict of another key": lambda value: {"l": value},
    "deep in a dict": lambda value: {"k": [{"k": value}]},
    "in a data class": Order,
    "in an object": Plain,
    "in a named tuple": Pair,
    "in a model": lambda value: Model(to=value),
    "in an ordered dict": lambda value: collections.OrderedDict(k=value),
    "in a deque": lambda value: collections.deque([value]),
    "in a partial": lambda value: functools.partial(print, value),
    "in a closure": closed_over,
    "in a default": with_default,
}


def cycle():
    value = [1]
    value.append(value)
    return value


def corpus():
    """Yield a name and the value with it."""
    for (around, wrap), (name, value) in itertools.product(AROUND.items(), SEEDS.items()):
        yield f"{name}, {around}", wrap(value)
    for depth in (2, 30, 49, 50, 51, 60, 200):
        yield f"{depth} lists", functools.reduce(lambda inner, _: [inner], range(depth), 1)
    for count in (10, 11, 999, 1_000, 20_000):
        yield f"{count} numbers", list(range(count))
        yield f"{count} texts", [str(number) for number in range(count)]
        yield f"{count} names", {f"name {number}": number for number in range(count)}
    yield "a cycle", cycle()


def digests_now():
    """Return of each value whether and with which digest an inbox keeps it, and its digests in a process and beyond it.

    Of a digest that holds in one process only, the number of the first value with the same one is returned.
    """
    found, first = {}, {}
    alive = list(corpus())  # a function counts by its address, which must not be used again
    for number, (name, value) in enumerate(alive):
        encoded, problems = encode({"value": value})
        try:
            inside = digest_of({"value": value})
        except NotCheckable:
            inside = None
        try:
            lasting = digest_of({"value": value}, lasting=True)
        except NotCheckable:
            lasting = None
        found[name] = {
            "kept": None if problems else digest("act", "1", encoded),
            "inside": None if inside is None else first.setdefault(inside, number),
            "lasting": lasting,
        }
    return found
