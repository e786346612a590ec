"""Arguments in their canonical form and back: nothing is lost, and damage is an error."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import ipaddress
import json
import pathlib
import re
import socket
import typing
import uuid
import zoneinfo
from collections import namedtuple
from typing import Annotated, Any, Literal, NewType

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import SEALED, canonical, decode, encode
from grace_kp.approvals._arguments import plain_json
from tests.approvals.values import TYPES, Address, Colour, Line, Open, Order, Rights, same, values

D = decimal.Decimal
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
CET = dt.timezone(dt.timedelta(hours=1))
MOMENT = dt.datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001 — a datetime without a zone has an encoding, too
ALIKE = [
    [True, 1, 1.0, "1", D(1), D("1.0"), b"1", bytearray(b"1"), 2**60, str(2**60), {"$int": str(2**60)}, 2**53, -(2**53), 2.0**53],
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
    assert len(alike) == len({encoding(value) for value in alike})


def test_plain_json_stays_as_it_is():
    value = [None, True, "é\u2028", -0.5, 1e-7, {"euros": 20, "b": 2**53 - 1, "c": 1 - 2**53, "a": [1]}]
    assert ({"x": value}, {}) == encode({"x": value})


@given(values(), values())
def test_two_values_have_two_encodings(first, second):
    """The same encoding means the same types and contents, and the other way round."""
    assert same(first, second) == (encoding(first) == encoding(second))


class Text(str):
    __slots__ = ()


class Zone(dt.tzinfo):
    def utcoffset(self, _moment):
        return dt.timedelta(hours=1)


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
    "a subclass of str": (Text("a"), "a tests.approvals.test_arguments.Text has no encoding"),
    "inside of a list": ([1, {"a": Text("a")}], "[1]['a']: a tests.approvals.test_arguments.Text has no encoding"),
    "a named tuple": (namedtuple("P", "a")(1), "a tests.approvals.test_arguments.P has no encoding"),
    "another kind of time zone": (
        MOMENT.replace(tzinfo=Zone()),
        "a time zone of the type tests.approvals.test_arguments.Zone has no encoding",
    ),
    "an object": (object(), "a object has no encoding"),
    "the mark of a sealed value": (SEALED, "is sealed, and cannot be opened here"),
    "an enum of classes": (Half.SOCKET, "a type has no encoding"),
    "more than its fields": (grown(), "a tests.approvals.test_arguments.Growing has no encoding"),
    "a huge integer": (10**5_000, "is an integer of more than 4,200 digits"),
    "a long text": ("a" * 1_000_001, "has more than 1,000,000 bytes as JSON"),
    "characters of several bytes": ("é" * 600_000, "has more than 1,000,000 bytes as JSON"),
    "a class of pydantic that is no text": (
        pydantic.NameEmail("Ana", "ana@shop.example"),
        "a pydantic.networks.NameEmail has no encoding",
    ),
    "many values": ([0] * 1_000_001, "has more than 1,000,000 bytes as JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_encoding_is_named(name):
    value, expected = REFUSED[name]
    assert expected == problem(value)


def test_deep_and_circular_values_have_no_encoding():
    deep = []
    for _ in range(49):
        deep = [deep]
    encode({"x": deep})
    circle = []
    circle.append(circle)
    for value in ([deep], circle, {"a": {"b": ([deep],)}}):
        assert "more than 50 containers inside of each other" in problem(value)


def test_canonical_json_follows_the_standard():
    keys = ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]
    assert keys == list(json.loads(canonical(dict.fromkeys(sorted(keys), 1))))
    assert b'{"a":[1e+30,4.5,0.002,1e-27,333333333.3333333]}' == canonical(
        {"a": [1e30, 4.50, 2e-3, 1e-27, 333333333.33333329]}
    )
    for bad in (2**53, float("nan"), {1: 2}, object()):
        with pytest.raises(ValueError, match=r".+"):
            canonical(bad)


@given(values())
def test_decoding_is_the_inverse_of_encoding(value):
    encoded, problems = encode({"x": value})
    assert {} == problems
    again = decode(json.loads(json.dumps(encoded)), {"x": TYPES})
    assert same(value, again["x"])


TAGS = re.findall(r"\$\w+", "$int $float $bytes $bytearray $decimal $date $datetime $time $timedelta $uuid $tuple $set $frozenset $dict $text $path $model")  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "fields", "set", "name", "value", "zone", "fold", *TAGS]),
            inner
            | st.sampled_from(
                ["tests.approvals.values.Order", "tests.approvals.values.Colour", "RED", "1", "P1DT1S", "2026-01-01"]
            ),
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_damaged_data_is_read_exactly_or_refused(document):
    """Whatever decodes encodes as what was kept; there is no second way to write a value."""
    try:
        value = decode({"x": document}, {"x": TYPES})["x"]
    except ValueError:
        return
    assert value is SEALED or canonical(document) == canonical(encode({"x": value})[0]["x"])


DAMAGED = {
    "an unknown tag": ({"$code": "1"}, r"x: has the unknown type tag '\$code'"),
    "two tags": ({"$int": "1", "$float": "1.0"}, r"x: has two type tags, \$float, \$int"),
    "no number": ([{"$int": "a"}], r"x\[0\]: cannot be read back \(ValueError"),
    "another kind of content": ({"a": {"$date": 3}}, r"x\['a'\]: \$date must hold a string, not 3"),
    "not canonical": ({"$int": "1"}, "x: cannot be read back exactly; it is damaged"),
    "a list in a set": ({"$set": [[1]]}, r"x: cannot be read back \(TypeError: unhashable"),
    "a second entry of a key": ({"$dict": [[1, 2], [1, 3]]}, "x: cannot be read back exactly"),
    "an unknown zone": ({"$datetime": "2026-01-01T00:00:00+01:00", "zone": "Mars/X"}, "x: cannot be read back"),
    "a file as a zone": (
        {"$datetime": "2026-01-01T00:00:00+01:00", "zone": "../../etc/passwd"},
        "x: cannot be read back",
    ),
    "a folder as a zone": ({"$datetime": "2026-01-01T00:00:00", "zone": "Europe"}, "x: cannot be read back"),
    "a zone with other rules": (
        {"$datetime": "2026-07-01T12:00:00+05:00", "zone": "Europe/Berlin"},
        "x: the time zone Europe/Berlin had another offset when this was stored",
    ),
    "too many lists": (functools.reduce(lambda inner, _: [inner], range(50_000), 1), ".* is nested too deeply"),
    "more beside a tag": ({"$int": str(2**60), "a": 1}, "x: cannot be read back exactly"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_with_its_place(name):
    document, message = DAMAGED[name]
    with pytest.raises(ValueError, match=f"^{message}"):
        decode({"x": document})


def test_pydantic_s_own_offsets_are_kept():
    moment = pydantic.TypeAdapter(dt.datetime).validate_python("2026-07-01T12:00:00+02:00")
    again = decode(encode({"x": moment})[0])["x"]
    assert (moment, moment.utcoffset()) == (again, again.utcoffset())


Alias = NewType("Alias", Order)


class Shape:
    pass


@dataclasses.dataclass
class Circle(Shape):
    r: int


@dataclasses.dataclass
class Basket:
    lines: list[Line]


class Plan(typing.TypedDict):
    orders: list[Order]


class Box(pydantic.BaseModel):
    address: Address | None = None


DECLARED = [
    (Order("a", 1), Order),
    (Order("a", 1), "Order | None"),
    (Order("a", 1), Annotated[Order, "note"]),
    (Order("a", 1), Alias),
    ([Order("a", 1)], list[Order]),
    ({"a": (Order("a", 1),)}, dict[str, tuple[Order, ...]]),
    (Colour.RED, Literal[Colour.RED]),
    (Circle(1), Shape),
    (Basket([Line("a")]), Basket),
    ({"orders": [Order("a", 1)]}, Plan),
    (Box(address=Address(street="x")), Box),
    (Open(a=1), Open),
    (Rights.READ | Rights.WRITE, Rights),
    (MOMENT.replace(tzinfo=BERLIN), dt.datetime),
    (pydantic.HttpUrl("http://shop.example/a"), pydantic.HttpUrl),
    (pydantic.PostgresDsn("postgres://a,b/x"), pydantic.PostgresDsn),
    (ipaddress.ip_address("::1"), ipaddress.IPv6Address),
    (MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")), dt.datetime),
]


@pytest.mark.parametrize(("value", "declared"), DECLARED, ids=repr)
def test_classes_are_found_in_the_declared_type(value, declared):
    declared = Order | None if declared == "Order | None" else declared
    assert same(value, decode(encode({"x": value})[0], {"x": declared})["x"])


@pytest.mark.parametrize("declared", [None, Any, object, dict, list[Address], "Order"])
def test_no_class_is_found_elsewhere(declared):
    encoded, _ = encode({"order": [Order("a", 1)]})
    with pytest.raises(
        ValueError,
        match=r"order\[0\]: is a tests\.approvals\.values\.Order, which the declared type of the parameter 'order'",
    ):
        decode(encoded, {"order": declared})


def test_a_class_that_has_changed_is_noticed():
    encoded, _ = encode({"x": Order("a", 1)})
    for fields in ({"id": "a"}, {"id": "a", "euros": 1, "cents": 2}, [1]):
        encoded["x"]["fields"] = fields
        with pytest.raises(
            ValueError, match=r"x: .*(is damaged, or a class in it has changed|have changed since it was stored)"
        ):
            decode(encoded, {"x": Order})
    member, _ = encode({"x": Colour.RED})
    member["x"]["value"] = "crimson"
    with pytest.raises(ValueError, match="or a class in it has changed"):
        decode(member, {"x": Colour})


def there_and_back(value, declared=None):
    encoded, problems = encode({"x": value})
    assert {} == problems
    return decode(encoded, {"x": declared or type(value)})["x"]


@dataclasses.dataclass
class Counted:
    a: int
    b: int = dataclasses.field(init=False, default=7)

    def __post_init__(self):
        self.a += 1

    @functools.cached_property
    def double(self):
        return 2 * self.a


class Upper(pydantic.BaseModel):
    a: str

    @pydantic.field_validator("a")
    @classmethod
    def raised(cls, value):
        raise AssertionError


def test_no_code_of_the_class_runs():
    """Neither a constructor nor a validator; computed properties are no state."""
    value = Counted(1)
    assert 4 == value.double
    assert {"a": 2, "b": 7} == vars(there_and_back(value))
    assert "a" == there_and_back(Upper.model_construct(a="a")).a


@dataclasses.dataclass
class Bag(dict):
    a: int = 1


@dataclasses.dataclass
class Parent:
    a: int


class Child(Parent):
    pass


def test_a_class_with_other_contents_has_no_encoding():
    assert "x" in encode({"x": Bag()})[1]
    assert Child(1) == there_and_back(Child(1), Parent)


def test_two_classes_of_one_name_are_not_guessed_between():

    def defined():
        @dataclasses.dataclass
        class Local:
            a: int

        return Local

    first, second = defined(), defined()
    with pytest.raises(ValueError, match="there are 2 classes of this name"):
        there_and_back(first(1), first | second)


def plain(value, **options):
    return plain_json(encode({"x": value})[0]["x"], **options)


@given(values())
def test_every_encoding_has_a_plain_form(value):
    assert json.dumps(plain(value))


def test_the_plain_form_shows_contents_without_types():
    assert {"id": "a", "euros": ["1.10", "2026-01-02"]} == plain(
        Order("a", (decimal.Decimal("1.10"), dt.date(2026, 1, 2)))
    )
    assert ["red", "b", {"street": None, "zip": 1}] == plain([Colour.RED, b"b", Address(zip=1)])
    assert {"1": 2.0, "(3,)": 2**70} == {**plain({1: 2.0}), "(3,)": plain(2**70)}
    assert decimal.Decimal("1.10") == plain(decimal.Decimal("1.10"), decimal=decimal.Decimal)
