"""Values whose own code lies or fails: what is shown is what they hold, and what cannot be read is named, never an error of the gate."""

from __future__ import annotations

import collections
import dataclasses
import enum
import fractions
import json
import os
import pathlib
import re
import threading
import types
import zoneinfo

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import SEALED
from grace_kp.gating._view import MAX_PLAIN_DEPTH, flat, plain, view


class Amount(int):
    def __init__(self, value):
        self.note = "n"

    def __int__(self):
        return 5

    __index__ = __trunc__ = __int__

    def __repr__(self):
        return "5"


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "ana"

    __repr__ = __str__

    def __len__(self):
        return 1


class Masked:
    __dict__ = property(lambda self: {})

    def __init__(self):
        object.__setattr__(self, "to", "mallory")

    def __setattr__(self, name, value):
        raise AttributeError(name)


class Account:
    def __init__(self):
        self.to = "mallory"

    __class__ = str

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


class Short(tuple):
    __slots__ = ()
    _fields = ("to",)


class Attributes(dict):
    pass


def with_attribute(name):
    value = Attributes(to="ana")
    vars(value)[name] = "x"
    return value


class Model(pydantic.BaseModel):
    url: pydantic.AnyUrl = pydantic.AnyUrl("https://example.org/a")


Claimed = type("Decimal", (), {"__module__": "decimal", "__str__": lambda self: "5"})
claimed = Claimed()
claimed.value = 5_000


def test_nested_sets_are_read_once():
    """Fifty levels, each with two members; the members that can be compared stand in order."""
    nested = frozenset()
    for number in range(50):
        nested = frozenset([nested, number])
    assert 50 == text_of(nested)[0].count("frozenset[") - 1


def test_what_is_too_large_to_be_shown_is_not_read():
    """The rest is one leaf, whatever its number."""
    seen = view({"a": list(range(1_000_000)), "b": set(range(1_000_000))}, 100)
    numbers = seen.root.children[0][1]
    assert 99 == len(numbers.children)
    assert "<999,902 more values, too many to be shown in full>" == numbers.children[-1][1].text
    assert 2 == len(seen.opaque)


def text_of(value, **limits):
    seen = view(value, **limits)
    return flat(seen.root), seen.opaque


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Slotted:
    __slots__ = ("__hidden", "shown", "unset")

    def __init__(self):
        self.__hidden = 1
        self.shown = 2


class Shadowing(Slotted):
    __slots__ = ("shown",)

    def __init__(self):
        super().__init__()
        Slotted.shown.__set__(self, 3)


class SomeUnset:
    __slots__ = ("first", "last")

    def __init__(self):
        self.last = 3


class Record(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int = 0
    _private: int = pydantic.PrivateAttr(default=5)


def local():
    def inner(): ...

    return inner


Pair = collections.namedtuple("Pair", "a b")
itself = [1]
itself.append([itself])
PIECES = [
    (Amount(5_000), 'Amount(value=5000, note="n")'),
    (Name("mallory"), 'Name("mallory")'),
    (Account(), 'Account(to="mallory")'),
    (Short(("ana", "mallory")), 'Short("ana", "mallory")'),
    (with_attribute("note"), 'Attributes{"to": "ana", .note: "x"}'),
    (with_attribute('note: 1, "euros"'), 'Attributes{"to": "ana", ."note: 1, \\"euros\\"": "x"}'),
    (claimed, "Decimal(value=5000)"),
    (np.int64(5), "int64(5)"),
    (np.datetime64("2026-01-02"), "datetime64(2026-01-02)"),
    (1 + 2j, "(1+2j)"),
    (range(3), "range(start=0, stop=3, step=1)"),
    (types.SimpleNamespace(to="ana"), 'SimpleNamespace(to="ana")'),
    (Model(), 'Model(url=AnyUrl(_url=Url("https://example.org/a")))'),
    (fractions.Fraction(1, 3), 'Fraction("1/3")'),
    (collections.OrderedDict(a=1), 'OrderedDict{"a": 1}'),
    (Level.LOW, "Level.LOW"),
    (-(2**70), str(-(2**70))),
    (float("nan"), "nan"),
    (memoryview(b"ab"), "memoryview(b'ab')"),
    (frozenset({2, 1}), "frozenset[1, 2]"),
    ({"b", "a", b"c", 1, 1.5, None}, 'set["a", "b", 1, 1.5, b\'c\', null]'),
    (collections.deque([1], 3), "deque[1]"),
    (types.MappingProxyType({"a": 1}), 'mappingproxy{"a": 1}'),
    ({(1, 2): "a"}, '{(1, 2): "a"}'),
    ({"a b": 1}, '{"a b": 1}'),
    (types.SimpleNamespace(**{"a b": 1, "c": 2}), 'SimpleNamespace("a b"=1, c=2)'),
    (Slotted(), "Slotted(_Slotted__hidden=1, shown=2)"),
    (Shadowing(), 'Shadowing(shown=2, _Slotted__hidden=1, "Slotted.shown"=3)'),
    (Record(z=1), 'Record(a=0, __pydantic_extra__={"z": 1}, __pydantic_private__={"_private": 5})'),
    (re.compile("a", re.IGNORECASE), 'Pattern(pattern="a", flags=34)'),
    (np.array([[1, 2], [3, 4]]), "ndarray of int64[[1, 2], [3, 4]]"),
    (np.array(5), "ndarray of int64[5]"),
    (np.array(["a"]), 'ndarray of <U1["a"]'),
    (itself, "[1, [<the list 2 levels above, again>]]"),
    (pathlib.PurePosixPath("/a"), 'PurePosixPath("/a")'),
    (len, "<builtin_function_or_method builtins.len>"),
    (os.path.join, "<function posixpath.join>"),
    (os, "<module os>"),
    (int, "<class builtins.int>"),
]
shared = [1]
deep = [[2]]
deep[0].append(deep)
PIECES += [
    ([shared, shared, {"a": shared}], '[[1], [1], {"a": [1]}]'),
    ([shared, deep], "[[1], [[2, <the list 2 levels above, again>]]]"),
    (zoneinfo.ZoneInfo("UTC"), 'ZoneInfo("UTC")'),
    (pydantic.PostgresDsn("postgres://a,b/x"), 'PostgresDsn(_url=MultiHostUrl("postgres://a,b/x"))'),
    (SomeUnset(), "SomeUnset(last=3)"),
]
OPAQUE = [
    (Masked(), "<Masked, cannot be shown in full>"),
    (fractions.Fraction(10**5_000, 3), "<Fraction: ValueError when it was read, cannot be shown in full>"),
    (lambda: 1, "<function <lambda>, cannot be shown in full>"),
    (local(), "<function local.<locals>.inner, cannot be shown in full>"),
    (types.ModuleType("os"), "<module, cannot be shown in full>"),
    (type("int", (), {"__module__": "builtins"}), "<type, cannot be shown in full>"),
    (threading.Lock(), "<lock, cannot be shown in full>"),
    (np.zeros(1_001), "<ndarray, cannot be shown in full>"),
    (np.array([None]), "<ndarray, cannot be shown in full>"),
    ([1].append, "<builtin_function_or_method, cannot be shown in full>"),
    (SEALED, "<sealed value, cannot be shown in full>"),
]


@pytest.mark.parametrize("number", range(len(PIECES)))
def test_what_can_be_shown(number):
    value, expected = PIECES[number]
    assert (expected, []) == text_of(value)


@pytest.mark.parametrize("number", range(len(OPAQUE)))
def test_what_cannot_be_shown(number):
    value, expected = OPAQUE[number]
    assert (expected, [expected]) == text_of(value)
    assert (f"[{expected}, 1]", [expected]) == text_of([value, 1])


def test_arrays_and_numbers_have_bounds():
    assert [] == text_of(np.zeros(1_000))[1]
    largest = (1 << 13_000) - 1
    assert (str(largest), []) == text_of(largest)
    assert (hex(largest + 1), []) == text_of(largest + 1)


@pytest.mark.parametrize("count", [10_000, 10_001])
def test_large_sets_are_shown_in_any_order(count):
    shown = [child.text for _, child in view(set(range(count))).root.children]
    assert sorted(map(str, range(count))) == sorted(shown)
    assert (count <= 10_000) is (sorted(shown) == shown)


@pytest.mark.parametrize(
    ("value", "bound", "limit", "beyond"),
    [
        ("abc", "max_characters", 3, "<text of 3 characters, too long to be shown in full>"),
        (b"ab", "max_characters", 8, "<bytes of 2 bytes, too long to be shown in full>"),
        (["ab", "c"], "max_characters", 3, '["ab", <text of 1 characters, too long to be shown in full>]'),
        (bytearray(b"a"), "max_characters", 4, "bytearray(<bytearray of 1 bytes, too long to be shown in full>)"),
        ([1, 2], "max_values", 3, "[1, <1 more values, too many to be shown in full>]"),
        ([[1], 2], "max_values", 4, "[[1], <int: too many values to be shown in full>]"),
    ],
)
def test_the_numbers_of_characters_and_values_are_bounded(value, bound, limit, beyond):
    assert [] == text_of(value, **{bound: limit})[1]
    shown, opaque = text_of(value, **{bound: limit - 1})
    assert (beyond, 1) == (shown, len(opaque))


def test_keys_may_be_opaque():
    lock = threading.Lock()
    assert ("{<lock, cannot be shown in full>: 1}", ["<lock, cannot be shown in full>"]) == text_of({lock: 1})
    assert ["(1, <lock, cannot be shown in full>)"] == [key.text for key, _ in view({(1, lock): 1}).root.children]


@dataclasses.dataclass
class Order:
    to: str
    lines: list


class Items(list):
    pass


def with_note(items):
    items = Items(items)
    items.note = "n"
    return items


VALUES = [
    (None, "null", None),
    (True, "true", True),
    (0.5, "0.5", 0.5),
    (-(2**63), str(-(2**63)), -(2**63)),
    (2**64, str(2**64), str(2**64)),
    (float("inf"), "inf", "inf"),
    ("null", '"null"', "null"),
    ("é\n", '"é\\n"', "é\n"),
    ([1, [2]], "[1, [2]]", [1, [2]]),
    ((1,), "(1,)", [1]),
    ((), "()", []),
    ({"a": {"b": 1}, "c": 2}, '{"a": {"b": 1}, "c": 2}', {"a": {"b": 1}, "c": 2}),
    ({1: 2}, "{1: 2}", {"1": 2}),
    ({1: "int", "1": "text"}, '{1: "int", "1": "text"}', {"1": "int", "1 (2)": "text"}),
    ({"1": "a", 1: "b", "1 (2)": "c"}, '{"1": "a", 1: "b", "1 (2)": "c"}', {"1": "a", "1 (2)": "b", "1 (2) (2)": "c"}),
    (Order("ana", [1]), 'Order(to="ana", lines=[1])', {"@class": "Order", "to": "ana", "lines": [1]}),
    (Pair(1, 2), "Pair(a=1, b=2)", {"@class": "Pair", "a": 1, "b": 2}),
    (Colour.RED, "Colour.RED", "Colour.RED"),
    (b"ab", "b'ab'", "b'ab'"),
    (with_note([1]), 'Items[1, .note: "n"]', 'Items[1, .note: "n"]'),
]


@pytest.mark.parametrize("number", range(len(VALUES)))  # some values have no readable name
def test_text_and_json(number):
    """Texts are in quotes and keys of objects are not; what JSON lacks becomes text, and keys that look alike are numbered."""
    value, text, expected = VALUES[number]
    assert text == flat(view(value).root)
    assert expected == plain(view(value).root)


def nested(depth):
    value = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def test_deep_values_end_as_text():
    """JSON values are nested up to a limit; what is deeper is one text. The line of text has no limit."""
    found = plain(view(nested(MAX_PLAIN_DEPTH + 2)).root)
    for _ in range(MAX_PLAIN_DEPTH):
        (found,) = found
    assert '[["bottom"]]' == found
    assert nested(MAX_PLAIN_DEPTH) == plain(view(nested(MAX_PLAIN_DEPTH)).root)
    assert flat(view(nested(5_000)).root).startswith("[" * 5_000 + '"bottom"]')


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_json_values_are_themselves(value):
    root = view(value).root
    assert value == plain(root)
    assert value == json.loads(flat(root))
