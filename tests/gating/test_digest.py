"""A digest sees every change inside of arguments, stays the same without one, and refuses what it cannot look into."""

from __future__ import annotations

import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import io
import itertools
import logging
import os
import pathlib
import random
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree

import numpy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.gating import NotCheckable, _digest, digest_of, plain, view
from grace_kp.gating._digest import Identified, OwnObject


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


class Empty:
    pass


for kind in (Colour, Plain, Private):
    kind.__module__ = "shop"  # wherever this file is imported from


# Digests in ledgers must not change. `test_earlier_digests.py` has those of most types.
KEPT = {
    "private": {"p": Private()},
    "own object": {"self": OwnObject(Plain()), "it": Identified(Plain, {"a": [1]})},
    "by name": {"f": len, "g": Colour, "m": re, "l": logging.getLogger("shop"), "p": functools.partial(len, [1])},
    "values": {
        "j": numpy.array([[1], None], dtype=object),
        "b": io.BytesIO(b"ab"),
        "s": io.StringIO("ab"),
        "x": ElementTree.fromstring("<a k='1'>t<b/></a>"),
    },
}
DIGESTS = {
    "private": "f3cc1967ffbdf4217f7e87e638313a6bbb8c39c9526216e6d01f6169f5b83278",
    "own object": "a5008a4bdfebfddceab33d46d2c32bd1a74fadd5645add24bb06d1a76f8b194c",
    "by name": "d78c42d0263614746cf70a807cfaac535cbc5ad99f43e6d4532969390fafca0b",
    "values": "62b87dbab7fdab8d0baed97a43cebcb85f3f32d41d8a538e6b656d47ac9b5e1d",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_in_ledgers_stay_valid(name):
    assert DIGESTS[name] == digest_of(KEPT[name], lasting=True)


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
        (Coroutine().__await__, "generator, which changes"),
        (threading.local, "_thread._local, whose contents cannot be seen"),
        (lambda: ctypes.c_int(1), "c_int, whose contents cannot be seen"),
        (lambda: random.Random(1), "random.Random, whose contents cannot be seen"),
        (lambda: contextvars.ContextVar("x"), "ContextVar, whose contents cannot be seen"),
        (sys._getframe, "frame, whose contents cannot be seen"),
        (FakeDict, "FakeDict, whose contents cannot be seen"),
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


def test_what_is_closed_is_refused():
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


def test_sets_nested_too_deeply_are_refused():
    with pytest.raises(NotCheckable, match=r"cannot be read.*RecursionError"):
        digest_of({"it": nested(2_000)})


def test_a_million_bytes_and_deep_lists_are_fine():
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


class TestLazy:
    """What a `repr` fills in is no change; everything else is."""

    @dataclasses.dataclass
    class Order:
        lines: list

        @functools.cached_property
        def total(self):
            return sum(self.lines)

        def __repr__(self):
            return f"Order({self.total})"

    class Model(pydantic.BaseModel):
        lines: list
        _printed: bool = pydantic.PrivateAttr(default=False)

        def __repr__(self):
            self._printed = True
            return "Model()"

    @pytest.mark.parametrize("create", [lambda: TestLazy.Order([1]), lambda: TestLazy.Model(lines=[1])])
    @pytest.mark.parametrize("changes", [False, True])
    def test_printing_is_no_change(self, create, changes):
        def reviewer(request):
            repr(request.arguments["order"])
            if changes:
                request.arguments["order"].lines.append(2)
            return "proceed"

        with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=reviewer) as grace:
            ran = []

            @grace.gate(floor="confirm")
            def act(order):
                ran.append(order)

            if changes:
                with pytest.raises(gk.ActionCancelled, match="were changed"):
                    act(create())
            else:
                act(create())
            assert (0 if changes else 1) == len(ran)


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
