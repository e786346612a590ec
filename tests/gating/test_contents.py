"""Each type that is known by name is read completely: a change inside of a value, and a different value, have another digest."""

from __future__ import annotations

import collections
import datetime
import enum
import functools
import io
import logging
import operator
import os
import pathlib
import queue
import re
import threading
import time
import weakref
import xml.etree.ElementTree as ElementTree

import numpy
import pydantic
import pytest

from grace_kp.gating import NotCheckable, digest_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Plain:
    def __init__(self):
        self.a = 1
        self.b = {"k": [1, 2]}


class MyList(list):
    pass


class MyBuffer(bytearray):
    pass


class MyDeque(collections.deque):
    pass


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


class Path(WithAttributes, pathlib.PurePosixPath):
    def __init__(self, *parts):
        super().__init__()
        if pathlib.PurePath.__init__ is not object.__init__:  # from Python 3.12 on
            pathlib.PurePath.__init__(self, *parts)


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
    "private slot": (Private, Private.change),
    "slot": (Private, lambda value: setattr(value, "shown", 3)),
    "shadowed slot": (Shadowing, lambda value: Private.shown.__set__(value, 3)),
    "slot behind an empty one": (Two, lambda value: setattr(value, "second", 3)),
    "deleted slot": (Private, lambda value: delattr(value, "shown")),
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
    create, change = CHANGES[name]
    value = create()
    before = digest_of({"value": [value]})
    assert before == digest_of({"value": [value]})
    change(value)
    assert before != digest_of({"value": [value]})


VALUES = {
    "match": (re.match("a", "a"), re.match("a", "ab")),
    "logger": (logging.getLogger("a"), logging.getLogger("b")),
    "method caller": (operator.methodcaller("a", 1), operator.methodcaller("a", 2)),
    "cached function": (functools.cache(os.path.join), functools.cache(os.path.split)),
    "numpy type": (numpy.dtype("i4"), numpy.dtype("i8")),
    "struct_time": (time.gmtime(0), time.gmtime(1)),
    "subclass of list": (MyList("a"), MyList("b")),
    "subclass of str": (Text("a\ud800"), Text("a\ud801")),
    "subclass of bytes": (Bytes(b"a"), Bytes(b"b")),
    "subclass of bytearray": (MyBuffer(b"a"), MyBuffer(b"b")),
    "subclass of float": (Float(0.5), Float(0.25)),
    "subclass of complex": (Complex(1j), Complex(2j)),
    "subclass of tuple": (Tuple((1,)), Tuple((2,))),
    "subclass of frozenset": (FrozenSet({1}), FrozenSet({2})),
    "subclass of deque": (MyDeque([1]), MyDeque([2])),
    "integer subclass": (Integer(15), Integer(16)),
    "url of hosts": (pydantic.PostgresDsn("postgres://a,b/x"), pydantic.PostgresDsn("postgres://a,c/x")),
    "url": (pydantic.HttpUrl("http://a.b"), pydantic.HttpUrl("http://a.c")),
    "moment of pydantic": tuple(
        pydantic.TypeAdapter(datetime.datetime).validate_json(f'"2020-01-01T00:00:00+0{hour}:00"') for hour in (1, 2)
    ),
    "bound method": (Colour.RED.__str__, Colour.BLUE.__str__),
}


class Hiding(tuple):
    """Hides its attributes behind a name."""

    @property
    def __dict__(self):
        return {}


def test_a_tuple_that_hides_its_attributes_is_refused():
    """Only the named tuples of the standard library that are written in C are read by position alone."""
    with pytest.raises(NotCheckable, match="Hiding, whose contents cannot be seen"):
        digest_of({"it": Hiding((1,))})


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("lasting", [False, True])
def test_values_are_told_apart(name, lasting):
    one, other = VALUES[name]
    assert digest_of({"value": one}, lasting=lasting) == digest_of({"value": one}, lasting=lasting)
    assert digest_of({"value": one}, lasting=lasting) != digest_of({"value": other}, lasting=lasting)
