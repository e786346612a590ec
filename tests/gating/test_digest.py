"""A digest sees every change inside of arguments of any known type, stays the same without one, and refuses what it cannot look into."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import ctypes
import dataclasses
import datetime
import enum
import functools
import gzip
import io
import itertools
import json
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
import weakref
import xml.etree.ElementTree as ElementTree

import numpy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.gating import NotCheckable, _digest, digest_of, plain, view
from grace_kp.gating._digest import Identified, OwnObject
from grace_kp.testing import make_grace
from tests.gating.inboxes import deciding, gated
from tests.vectors.earlier import values


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Order:
    to: str
    lines: list
    colour: Colour = Colour.RED


class Plain:
    def __init__(self):
        self.a = 1
        self.b = {"k": [1, 2]}


class Slotted:
    __slots__ = ("p", "q")

    def __init__(self):
        self.p = "p"
        self.q = None


class Private:
    __slots__ = ("__hidden", "shown")

    def __init__(self):
        self.__hidden = 1
        self.shown = 2


class MyDict(dict):
    __slots__ = ()


class Empty: ...


for kind in (Colour, Plain, Private):
    kind.__module__ = "shop"  # wherever this file is imported from


# Digests in ledgers must not change. Those of most other types are in a file; see below.
KEPT = {
    "f3cc1967ffbdf4217f7e87e638313a6bbb8c39c9526216e6d01f6169f5b83278": {"p": Private()},
    "a5008a4bdfebfddceab33d46d2c32bd1a74fadd5645add24bb06d1a76f8b194c": {
        "self": OwnObject(Plain()),
        "it": Identified(Plain, {"a": [1]}),
    },
    "d78c42d0263614746cf70a807cfaac535cbc5ad99f43e6d4532969390fafca0b": {
        "f": len, "g": Colour, "m": re, "l": logging.getLogger("shop"), "p": functools.partial(len, [1]),
    },
    "62b87dbab7fdab8d0baed97a43cebcb85f3f32d41d8a538e6b656d47ac9b5e1d": {
        "j": numpy.array([[1], None], dtype=object),
        "b": io.BytesIO(b"ab"),
        "s": io.StringIO("ab"),
        "x": ElementTree.fromstring("<a k='1'>t<b/></a>"),
    },
}  # fmt: skip


@pytest.mark.parametrize("kept", KEPT)
def test_digests_in_ledgers_stay_valid(kept):
    assert kept == digest_of(KEPT[kept], lasting=True)


def test_identity_counts_unless_the_digest_is_to_last():
    first, second = object(), object()
    assert digest_of({"it": first}) != digest_of({"it": second})
    assert digest_of({"it": first}, lasting=True) == digest_of({"it": second}, lasting=True)


def test_parts_that_are_made_for_reading_are_told_apart():
    """An array of objects is read as a list that nobody else holds; the next list may have its address."""

    def arrays(*numbers):
        return [numpy.array([number, None], dtype=object) for number in numbers]

    found = {digest_of({"it": arrays(*numbers)}, lasting=True) for numbers in itertools.product((1, 2), repeat=5)}
    assert 32 == len(found)


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
    def __init__(self):
        object.__setattr__(self, "value", [1])

    @property
    def __dict__(self):
        return {}


class Hiding(tuple):
    """Only named tuples of the standard library that are written in C are read by position alone."""

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
        (Coroutine().__await__, "generator, which changes"),
        (threading.local, "_thread._local, whose contents cannot be seen"),
        (lambda: ctypes.c_int(1), "c_int, whose contents cannot be seen"),
        (lambda: random.Random(1), "random.Random, whose contents cannot be seen"),
        (lambda: contextvars.ContextVar("x"), "ContextVar, whose contents cannot be seen"),
        (sys._getframe, "frame, whose contents cannot be seen"),
        (FakeDict, "FakeDict, whose contents cannot be seen"),
        (lambda: Hiding((1,)), "Hiding, whose contents cannot be seen"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_into_is_refused(create, problem):
    with pytest.raises(NotCheckable, match=problem) as refused:
        digest_of({"to": "ana", "order": {"lines": [Order("ana", [create()])]}})
    assert "order" == refused.value.argument
    assert str(refused.value).startswith("the argument 'order' holds a ")


def test_files_sockets_and_connections_are_refused(tmp_path):
    with (
        (tmp_path / "file").open("w") as file,
        socket.socket() as plug,
    ):
        connection = Extended(":memory:")
        for value in (file, plug, connection):
            with pytest.raises(NotCheckable, match="argument 'it' holds a .*" + type(value).__name__):
                digest_of({"it": value})
        connection.close()


def test_what_fails_when_it_is_read_is_refused():
    file, view = io.BytesIO(b"x"), memoryview(b"x")
    file.close()
    view.release()
    for value in (file, view):
        with pytest.raises(NotCheckable, match=r"cannot be read.*ValueError"):
            digest_of({"it": value})
    with pytest.raises(NotCheckable, match=r"cannot be read.*RecursionError"):
        digest_of({"it": nested(2_000)})


def nested(depth):
    value = frozenset()
    for _ in range(depth):
        value = frozenset({value})
    return value


class Some(str):
    __slots__ = ()


# With at most 100 values and 1,000 bytes: the largest that fits, and one more.
VALUES = {
    "list": lambda more: [0] * (100 + more),
    "dict": lambda more: dict.fromkeys(range(50 + more)),
    "subclass of dict": lambda more: MyDict.fromkeys(range(48 + more)),
    "objects": lambda more: [Empty() for _ in range(25 + more)],
    "slots": lambda more: [[0] * (91 + more), Slotted()],
    "private slots": lambda more: [[0] * (91 + more), Private()],
    "enum": lambda more: [[0] * (98 - 2 * len(vars(Colour.RED)) + more), Colour.RED],
    "set": lambda more: set(range(24 + more)),
    "elements of a set": lambda more: [[0] * (90 + more), frozenset({(1,)})],
}
BYTES = {
    "bytes": lambda more: bytes(1_000 + more),
    "text": lambda more: "x" * (1_000 + more),
    "number": lambda more: 1 << (8_006 + more),
    "two arguments": lambda more: {"a": bytes(500), "b": bytes(500 + more)},
    "elements of a set": lambda more: {bytes(500), b"x" * (497 + more)},
    "subclass of str": lambda more: Some("x" * (995 + more)),
    "array of numpy": lambda more: numpy.zeros(1_000 + more, "u1"),
    "memoryview": lambda more: memoryview(bytes(1_000 + more)),
    "BytesIO": lambda more: io.BytesIO(bytes(1_000 + more)),
}


@pytest.mark.parametrize(
    ("create", "what"),
    [*((create, "100 values") for create in VALUES.values()), *((create, "1,000 bytes") for create in BYTES.values())],
    ids=[*VALUES, *(f"bytes of {name}" for name in BYTES)],
)
def test_the_time_is_bounded(create, what, monkeypatch):
    monkeypatch.setattr(_digest, "MAX_VALUES", 100)
    monkeypatch.setattr(_digest, "MAX_BYTES", 1_000)
    digest_of({"it": create(0)})
    with pytest.raises(NotCheckable, match=f"holds more than {what}, which takes too long to check") as refused:
        digest_of({"it": create(1)})
    assert "it" == refused.value.argument


def test_small_texts_and_numbers_count_as_values_only(monkeypatch):
    """Up to 200 characters and 8,000 bits, so that usual arguments are read fast."""
    monkeypatch.setattr(_digest, "MAX_BYTES", 100)
    digest_of({"text": ["x" * 200] * 10, "number": [(1 << 8_000) - 1, -(1 << 8_000) + 1]})
    for value in ("x" * 201, 1 << 8_000):
        with pytest.raises(NotCheckable, match="more than 100 bytes"):
            digest_of({"it": value})


def test_the_bounds():
    assert (500_000, 128_000_000) == (_digest.MAX_VALUES, _digest.MAX_BYTES)
    assert 64 == len(digest_of({"it": [0] * 500_000}))
    with pytest.raises(NotCheckable, match="holds more than 500,000 values"):
        digest_of({"it": [0] * 250_000, "other": [1] * 250_001})
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
    found = {
        subprocess.run(
            [sys.executable, "-c", imports + PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed, imports in (("1", ""), ("2", "import numpy, xml.etree.ElementTree, weakref, zoneinfo\n"))
    }  # fmt: skip
    assert 1 == len(found)
    assert 65 == len(found.pop())


class Record(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int = 0
    _private: list = pydantic.PrivateAttr(default_factory=list)


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
    assert digest_of({"it": one}, lasting=True) == digest_of({"it": copied(one)}, lasting=True)
    same = exact(one) == exact(other)
    assert same == (digest_of({"it": one}) == digest_of({"it": other}))


@dataclasses.dataclass
class Lazy:
    lines: list

    @functools.cached_property
    def total(self):
        return sum(self.lines)

    def __repr__(self):
        return f"Lazy({self.total})"


class LazyModel(pydantic.BaseModel):
    lines: list
    _printed: bool = pydantic.PrivateAttr(default=False)

    def __repr__(self):
        self._printed = True
        return "LazyModel()"


@pytest.mark.parametrize("kind", [Lazy, LazyModel])
@pytest.mark.parametrize("changes", [False, True])
def test_printing_is_no_change(kind, changes):
    """What a `repr` fills in is no change; everything else is."""

    def reviewer(request):
        repr(request.arguments["it"])
        if changes:
            request.arguments["it"].lines.append(2)
        return "proceed"

    act, ran = gated(make_grace(reviewer=reviewer), floor="confirm")
    with pytest.raises(gk.ActionCancelled, match="were changed") if changes else contextlib.nullcontext():
        act(kind(lines=[1]))
    assert (0 if changes else 1) == len(ran)


@pytest.mark.parametrize("inbox", [False, True])
@pytest.mark.parametrize(("refuses", "words"), [(False, "were changed"), (True, "refused act")])
def test_arguments_that_can_no_longer_be_checked_have_changed(inbox, refuses, words):
    """While a person decides; a refusal stays a refusal."""
    it = [1]

    def spoiling(_request):
        it.append(iter([2]))
        return "cancel" if refuses else "proceed"

    def decide(approvals, name):
        verb = {"cancel": approvals.reject, "proceed": approvals.approve}[spoiling(None)]
        verb(name, by="ana")

    grace = make_grace(reviewer=gk.InboxReviewer() if inbox else spoiling)
    act, ran = gated(grace, floor="confirm")
    person = deciding(grace, decide) if inbox else None
    with grace.run("q"), pytest.raises(gk.ActionCancelled, match=words):
        act(it)
    assert [] == ran
    assert person is None or len(person.leaves()) == 1


def test_the_order_of_keys_counts_and_is_shown():
    """Two mappings that a program may treat differently are two; digests of earlier versions in ledgers stay valid."""
    first, second = {"a": 1, "b": {"c": 1, "d": 2}}, {"a": 1, "b": {"d": 2, "c": 1}}
    assert digest_of({"it": first}) != digest_of({"it": second})
    assert digest_of({"it": first}, lasting=True, ordered=True) != digest_of({"it": second}, lasting=True, ordered=True)
    assert digest_of({"it": first}, lasting=True) == digest_of({"it": second}, lasting=True)
    assert ["d", "c"] == list(plain(view(second["b"]).root))
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})  # parameters are known by their names
    defaults = collections.defaultdict(int, a=1, b=2), collections.defaultdict(int, b=2, a=1)
    assert digest_of({"it": defaults[0]}) != digest_of({"it": defaults[1]})


FILE = pathlib.Path(values.__file__).parent / "2753eab" / "digests.json.gz"


@pytest.fixture(scope="module")
def then():
    return json.loads(gzip.decompress(FILE.read_bytes()))


@pytest.fixture(scope="module")
def now():
    return values.digests_now()


@pytest.mark.parametrize("kind", ["kept", "lasting"])
def test_a_digest_that_is_kept_stays_the_same(then, now, kind):
    """Stored requests, and calls of paused programs, are compared with it."""
    kept = {name: digests[kind] for name, digests in then.items() if digests[kind]}
    assert len(kept) > 500
    assert kept == {name: now[name][kind] for name in kept}


def test_values_that_differed_still_differ_and_none_lost_its_digest(then, now):
    groups = collections.defaultdict(set)
    for name, digests in then.items():
        groups[now[name]["inside"]].add(digests["inside"])
    assert {number: found for number, found in groups.items() if len(found - {None}) > 1} == {}
    assert [] == [name for name, digests in then.items() if digests["inside"] and now[name]["inside"] is None]


class WithAttributes:
    def __init__(self, *_args, **_keywords):
        self.extra = [1]


def mixed(base):
    return type(f"My{base.__name__}", (WithAttributes, base), {})


class Path(WithAttributes, pathlib.PurePosixPath):
    def __init__(self, *parts):
        super().__init__()
        if pathlib.PurePath.__init__ is not object.__init__:  # from Python 3.12 on
            pathlib.PurePath.__init__(self, *parts)


class Failure(WithAttributes, OSError): ...


MINE = {
    base: mixed(base)
    for base in (list, dict, str, set, frozenset, int, float, complex, bytes, bytearray, tuple, collections.deque, datetime.datetime)
}  # fmt: skip


class Guarded:
    __slots__ = ("__hidden", "shown")

    def __init__(self):
        self.__hidden = [1]
        self.shown = 2

    def change(self):
        self.__hidden.append(2)


class Shadowing(Guarded):
    __slots__ = ("shown",)


class Wide:
    def __init__(self):
        for number in range(300):
            setattr(self, f"field_{number}", number)


class Computed:
    def __init__(self):
        self.real = [1]

    def __getattribute__(self, name):
        return "changed" if name == "real" else object.__getattribute__(self, name)

    def change(self):
        self.__dict__["real"].append(2)


class Two:
    __slots__ = ("first", "second")

    def __init__(self):
        self.second = 2


def closure():
    data = [1]
    return lambda: data


def keyword_default(*, data={"a": 1}):  # noqa: B006
    return data


def element():
    return ElementTree.fromstring("<a k='1'>text<b x='1'/>tail</a>")


HELD = collections.UserList([1])
CHANGES = {
    "order of other keys": (lambda: {1: 2, 3: 4}, lambda value: value.update({1: value.pop(1)})),
    "memoryview": (lambda: memoryview(bytearray(b"ab")), lambda value: value.__setitem__(0, 99)),
    "BytesIO": (lambda: io.BytesIO(b"ab"), lambda value: value.getbuffer().__setitem__(0, 99)),
    "position in BytesIO": (lambda: io.BytesIO(b"ab"), lambda value: value.read(1)),
    "StringIO": (lambda: io.StringIO("ab"), lambda value: value.write("c")),
    "position in StringIO": (lambda: io.StringIO("ab"), lambda value: value.read(1)),
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
    "private slot": (Guarded, Guarded.change),
    "slot": (Guarded, lambda value: setattr(value, "shown", 3)),
    "shadowed slot": (Shadowing, lambda value: Guarded.shown.__set__(value, 3)),
    "slot behind an empty one": (Two, lambda value: setattr(value, "second", 3)),
    "deleted slot": (Guarded, lambda value: delattr(value, "shown")),
    "private of pydantic": (Record, lambda value: value._private.append(1)),
    "extra of pydantic": (lambda: Record(z=[1]), lambda value: value.z.append(1)),
    "set fields of pydantic": (Record, lambda value: setattr(value, "a", 0)),
    "secret": (lambda: pydantic.SecretStr("x"), lambda value: setattr(value, "_secret_value", "y")),
    "many attributes": (Wide, lambda value: setattr(value, "field_299", 0)),
    "computed attributes": (Computed, Computed.change),
    "order": (lambda: collections.OrderedDict(a=1, b=2), lambda value: value.move_to_end("a")),
    "keys": (lambda: {(1, Plain()): 1}.keys(), lambda value: setattr(next(iter(value))[1], "a", 2)),
    "values": (lambda: {"a": [1]}.values(), lambda value: next(iter(value)).append(2)),
    "items": (lambda: {"a": [1]}.items(), lambda value: next(iter(value))[1].append(2)),
    "keyword of a partial": (lambda: functools.partial(print, end=[]), lambda value: value.keywords["end"].append(2)),
    "attribute of a partial": (lambda: functools.partial(print), lambda value: setattr(value, "note", 1)),
    "method": (lambda: collections.UserList([1]).append, lambda value: value(2)),
    "method wrapper": (lambda: [1].__iadd__, lambda value: value([2])),
    "closure": (closure, lambda value: value().append(2)),
    "default": (lambda: lambda data=[1]: data, lambda value: value().append(2)),
    "keyword default": (lambda: keyword_default, lambda value: value().update(a=value()["a"] + 1)),
    "weak reference": (lambda: weakref.ref(HELD), lambda value: value().append(2)),
    "weak values": (lambda: weakref.WeakValueDictionary(a=HELD), lambda value: value["a"].append(2)),
    "event": (threading.Event, threading.Event.set),
    "queue": (queue.Queue, lambda value: value.put(1)),
    "arguments of an error": (lambda: ValueError([1]), lambda value: value.args[0].append(2)),
    "cause of an error": (lambda: ValueError("x"), lambda value: setattr(value, "__cause__", KeyError())),
    "context of an error": (lambda: ValueError("x"), lambda value: setattr(value, "__context__", KeyError())),
    "file of an error": (lambda: OSError(2, "x", "f"), lambda value: setattr(value, "filename", "g")),
    "value of an error": (lambda: StopIteration([1]), lambda value: value.value.append(2)),
    "list subclass": (lambda: MINE[list]([1]), lambda value: value.append(1)),
    "dict subclass": (lambda: MINE[dict](a=1), lambda value: value.update(a=2)),
    "set subclass": (lambda: MINE[set]({1}), lambda value: value.add(2)),
    **{
        f"attribute of {kind.__name__}": (lambda kind=kind, args=args: kind(*args), lambda value: value.extra.append(1))
        for kind, args in [
            *((MINE[base], (value,)) for base, value in (
                (list, [1]), (dict, {"a": 1}), (str, "a"), (set, {1}), (frozenset, {1}), (int, 5), (float, 0.5), (complex, 1j),
                (bytes, b"5"), (bytearray, b"5"), (tuple, (5,)), (collections.deque, (5,)),
            )),
            (MINE[datetime.datetime], (2020, 1, 1)), (Path, ("/a",)), (Failure, (2, "x")),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name):
    create, change = CHANGES[name]
    value = create()
    before = digest_of({"value": [value]})
    assert before == digest_of({"value": [value]})
    change(value)
    assert before != digest_of({"value": [value]})


DIFFERENT = {
    "match": (re.match("a", "a"), re.match("a", "ab")),
    "logger": (logging.getLogger("a"), logging.getLogger("b")),
    "method caller": (operator.methodcaller("a", 1), operator.methodcaller("a", 2)),
    "cached function": (functools.cache(os.path.join), functools.cache(os.path.split)),
    "numpy type": (numpy.dtype("i4"), numpy.dtype("i8")),
    "struct_time": (time.gmtime(0), time.gmtime(1)),
    **{
        f"subclass of {base.__name__}": tuple(map(type(f"My{base.__name__}", (base,), {}), pair))
        for base, *pair in [
            (list, "a", "b"), (str, "a\ud800", "a\ud801"), (bytes, b"a", b"b"), (bytearray, b"a", b"b"), (float, 0.5, 0.25),
            (complex, 1j, 2j), (tuple, (1,), (2,)), (frozenset, {1}, {2}), (collections.deque, [1], [2]), (int, 15, 16),
        ]
    },
    "url of hosts": (pydantic.PostgresDsn("postgres://a,b/x"), pydantic.PostgresDsn("postgres://a,c/x")),
    "url": (pydantic.HttpUrl("http://a.b"), pydantic.HttpUrl("http://a.c")),
    "moment of pydantic": tuple(
        pydantic.TypeAdapter(datetime.datetime).validate_json(f'"2020-01-01T00:00:00+0{hour}:00"') for hour in (1, 2)
    ),
    "bound method": (Colour.RED.__str__, Colour.BLUE.__str__),
}  # fmt: skip


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("kind", [range, slice])
def test_ranges_and_slices_are_read_by_their_bounds(kind, lasting):
    first, again, *others = (
        digest_of({"it": kind(*bounds)}, lasting=lasting)
        for bounds in ((1, 9, 2), (1, 9, 2), (3, 9, 2), (1, 7, 2), (1, 9, 4))
    )
    assert first == again
    assert 4 == len({first, *others})


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("lasting", [False, True])
def test_values_are_told_apart(name, lasting):
    one, other = DIFFERENT[name]
    assert digest_of({"value": one}, lasting=lasting) == digest_of({"value": one}, lasting=lasting)
    assert digest_of({"value": one}, lasting=lasting) != digest_of({"value": other}, lasting=lasting)
