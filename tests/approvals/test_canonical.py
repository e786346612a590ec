"""The encoding of arguments: injective, bounded, and honest about what it cannot hold."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import itertools
import json
import pathlib
import socket
import uuid
import zoneinfo
from collections import OrderedDict, namedtuple

import pytest
from hypothesis import given

from grace_kp.approvals import SEALED, canonical, encode
from tests.approvals.values import Colour, Order, same, values

D = decimal.Decimal
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
CET = dt.timezone(dt.timedelta(hours=1))
MOMENT = dt.datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001 — a datetime without a zone has an encoding, too
ALIKE = [
    [True, 1, 1.0, "1", D(1), D("1.0"), b"1", bytearray(b"1"), 2**60, str(2**60), {"$int": str(2**60)}],
    [0, 0.0, -0.0, False, None, "", b"", [], (), {}, set(), frozenset(), "0", D("0"), D("-0")],
    [float("nan"), "nan", D("NaN"), {"$float": "nan"}, float("inf"), -float("inf")],
    [[1, 2], (1, 2), {1, 2}, frozenset({1, 2}), [1, [2]], [[1], 2], {"$tuple": [1, 2]}],
    [{"1": "a"}, {1: "a"}, {1.0: "a"}, {True: "a"}, [["1", "a"]], {"$dict": [["1", "a"]]}],
    [{"$sealed": "x", "key": "y"}, {"$dict": []}, {"$": 1}, {"": 1}],
    ["a/b", pathlib.Path("a/b"), "\ud800", "?", {"$path": "a/b"}],
    [MOMENT, MOMENT.replace(fold=1), MOMENT.replace(tzinfo=dt.UTC), MOMENT.replace(tzinfo=CET), MOMENT.replace(tzinfo=BERLIN, fold=1),
     MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")), MOMENT.date(), MOMENT.time(), MOMENT.isoformat()],
    [dt.timedelta(1), dt.timedelta(-1), dt.timedelta(0, 1), "P1DT0S"],
    [Colour.RED, Colour.RED.value, Colour.RED.name, Order("a", 1), {"id": "a", "euros": 1}, uuid.UUID(int=1), str(uuid.UUID(int=1))],
]  # fmt: skip


def encoding(value):
    encoded, problems = encode({"x": value})
    assert {} == problems
    return canonical(encoded["x"])


def problem(value):
    encoded, problems = encode({"x": value, "y": 1})
    assert {"y": 1} == encoded
    return problems["x"]


@pytest.mark.parametrize("alike", ALIKE, ids=lambda row: repr(row[0])[:20])
def test_values_that_look_alike_have_different_encodings(alike):
    """Consent to the text "1" is none to the number 1."""
    assert len(alike) == len({encoding(value) for value in alike})


@given(values(), values())
def test_two_values_have_two_encodings(first, second):
    """The same encoding means the same types and contents, and the other way round."""
    assert same(first, second) == (encoding(first) == encoding(second))


@pytest.mark.parametrize(
    "value", [None, True, "é\u2028", 3, -0.5, 1e-7, [1, {"a": [None]}], {"euros": 20, "b": 2**53 - 1}]
)
def test_plain_json_stays_as_it_is(value):
    """A person can read it, and other programs can."""
    assert ({"x": value}, {}) == encode({"x": value})


def test_the_order_of_entries_and_elements_does_not_count():
    """Dicts and sets that are equal are the same to consent to."""
    assert encoding({"a": 1, "b": 2}) == encoding({"b": 2, "a": 1})
    assert encoding({1: "a", 2: "b"}) == encoding({2: "b", 1: "a"})
    assert 1 == len({encoding({"set": set(order)}) for order in itertools.permutations(["a", "b", 3])})


@given(values())
def test_an_encoding_survives_json(value):
    """What is stored as text and read again is the same encoding."""
    encoded, _ = encode({"x": value})
    assert canonical(encoded) == canonical(json.loads(json.dumps(encoded)))


class Text(str):
    __slots__ = ()


class Half(enum.Enum):
    SOCKET = socket.socket


@dataclasses.dataclass
class Growing:
    a: int


def grown():
    value = Growing(1)
    value.b = 2
    return value


REFUSED = {
    "a subclass of str": (Text("a"), "a tests.approvals.test_canonical.Text has no encoding"),
    "inside of a list": ([1, {"a": Text("a")}], "[1]['a']: a tests.approvals.test_canonical.Text has no encoding"),
    "an ordered dict": (OrderedDict(a=1), "a collections.OrderedDict has no encoding"),
    "a named tuple": (namedtuple("P", "a")(1), "a tests.approvals.test_canonical.P has no encoding"),
    "a function": (len, "a builtin_function_or_method has no encoding"),
    "an object": (object(), "a object has no encoding"),
    "a generator": ((n for n in ()), "a generator has no encoding"),
    "the mark of a sealed value": (SEALED, "is sealed, and cannot be opened here"),
    "an enum of classes": (Half.SOCKET, "a type has no encoding"),
    "more than its fields": (grown(), "a tests.approvals.test_canonical.Growing has no encoding"),
    "a huge integer": (10**5_000, "is an integer of more than 4,200 digits"),
    "a long text": ("a" * 1_000_001, "has more than 1,000,000 bytes as JSON"),
    "characters of several bytes": ("é" * 600_000, "has more than 1,000,000 bytes as JSON"),
    "many values": ([0] * 1_000_001, "has more than 1,000,000 bytes as JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_encoding_is_named(name):
    """With the place inside of the parameter; the other parameters have theirs."""
    value, expected = REFUSED[name]
    assert expected == problem(value)


def test_deep_and_circular_values_have_no_encoding():
    """The depth is bounded, whatever the interpreter allows."""
    deep = []
    for _ in range(49):
        deep = [deep]
    encode({"x": deep})
    circle = []
    circle.append(circle)
    for value in ([deep], circle, {"a": {"b": ([deep],)}}):
        assert "more than 50 containers inside of each other" in problem(value)


def test_a_parameter_whose_name_is_no_text_in_utf_8_breaks_nothing_silently():
    """Canonical JSON refuses it, so that no digest is computed without it."""
    encoded, _ = encode({"\ud800": 1})
    with pytest.raises(ValueError, match="surrogates not allowed"):
        canonical(encoded)


def test_canonical_json_follows_the_standard():
    """The example of RFC 8785, section 3.2.3, and what JSON cannot hold."""
    value = {
        "€": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew",
        "1": "One",
        "😀": "Smiley",
        "\x80": "Control",
        "ö": "o",
    }
    keys = ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]
    assert keys == list(json.loads(canonical(value)))
    assert b'{"a":[1e+30,4.5,0.002,1e-27,333333333.3333333]}' == canonical(
        {"a": [1e30, 4.50, 2e-3, 1e-27, 333333333.33333329]}
    )
    for bad in (2**53, float("nan"), {1: 2}, object()):
        with pytest.raises(ValueError, match=r".+"):
            canonical(bad)
