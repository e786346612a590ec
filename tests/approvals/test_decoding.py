"""The way back from the encoding: the same types and values, or an error that names the place."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import typing
from typing import Annotated, Any, Literal, NewType

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import SEALED, canonical, decode, encode
from tests.approvals.values import TYPES, Address, Colour, Line, Order, same, values


@given(values())
def test_decoding_is_the_inverse_of_encoding(value):
    """Types and values come back, from text as well."""
    encoded, problems = encode({"x": value})
    assert {} == problems
    again = decode(json.loads(json.dumps(encoded)), {"x": TYPES})
    assert same(value, again["x"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "a",
                    "fields",
                    "set",
                    "name",
                    "value",
                    "zone",
                    "fold",
                    "$int",
                    "$float",
                    "$bytes",
                    "$bytearray",
                    "$decimal",
                    "$date",
                    "$datetime",
                    "$time",
                    "$timedelta",
                    "$uuid",
                    "$tuple",
                    "$set",
                    "$frozenset",
                    "$dict",
                    "$text",
                    "$path",
                    "$model",
                ]
            ),
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
    "another kind of content": ({"a": {"$date": 3}}, r"x\['a'\]: \$date must hold a text, not 3"),
    "not canonical": ({"$int": "1"}, "x: cannot be read back as it was kept; it is damaged"),
    "a whole float": (1.0, "x: cannot be read back as it was kept"),
    "a list in a set": ({"$set": [[1]]}, r"x: cannot be read back \(TypeError: unhashable"),
    "a second entry of a key": ({"$dict": [[1, 2], [1, 3]]}, "x: cannot be read back as it was kept"),
    "an unknown zone": ({"$datetime": "2026-01-01T00:00:00+01:00", "zone": "Mars/X"}, "x: cannot be read back"),
    "a file as a zone": (
        {"$datetime": "2026-01-01T00:00:00+01:00", "zone": "../../etc/passwd"},
        "x: cannot be read back",
    ),
    "a folder as a zone": ({"$datetime": "2026-01-01T00:00:00", "zone": "Europe"}, "x: cannot be read back"),
    "a long name of a zone": ({"$time": "00:00:00", "zone": "x" * 5_000}, "x: cannot be read back"),
    "more beside a tag": ({"$int": str(2**60), "a": 1}, "x: cannot be read back as it was kept"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_with_its_place(name):
    """Nothing is guessed."""
    document, message = DAMAGED[name]
    with pytest.raises(ValueError, match=f"^{message}"):
        decode({"x": document})


def test_deep_documents_are_refused():
    """A stored document cannot overflow the interpreter's stack."""
    deep = []
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(ValueError, match="is nested too deeply"):
        decode({"x": deep})


def test_a_zone_that_has_changed_its_rules_is_noticed():
    """The reviewer saw one point in time; another is not silently carried out."""
    with pytest.raises(ValueError, match="the time zone Europe/Berlin has another offset then than when this was kept"):
        decode({"x": {"$datetime": "2026-07-01T12:00:00+05:00", "zone": "Europe/Berlin"}})


def test_pydantic_s_own_offsets_are_kept():
    """Datetimes that pydantic has read carry a time zone of its own type."""
    moment = pydantic.TypeAdapter(dt.datetime).validate_python("2026-07-01T12:00:00+02:00")
    again = decode(encode({"x": moment})[0])["x"]
    assert (moment, moment.utcoffset()) == (again, again.utcoffset())


def test_a_sealed_value_is_a_mark():
    """Where nothing can open it, it prints as such."""
    decoded = decode({"x": {"$sealed": "…", "key": "k"}})["x"]
    assert decoded is SEALED
    assert "[SEALED]" == f"{decoded}"


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
]


@pytest.mark.parametrize(("value", "declared"), DECLARED, ids=repr)
def test_classes_are_found_in_the_declared_type(value, declared):
    """Inside of unions, containers, fields and aliases; a loaded subclass counts."""
    declared = Order | None if declared == "Order | None" else declared
    assert same(value, decode(encode({"x": value})[0], {"x": declared})["x"])


@pytest.mark.parametrize("declared", [None, Any, object, dict, list[Address], "Order"])
def test_no_class_is_found_elsewhere(declared):
    """A stored name never loads or selects a class by itself."""
    encoded, _ = encode({"order": [Order("a", 1)]})
    with pytest.raises(
        ValueError,
        match=r"order\[0\]: is a tests\.approvals\.values\.Order, which the declared type of the parameter 'order'",
    ):
        decode(encoded, {"order": declared})


def test_a_class_that_has_changed_is_noticed():
    """A new field, a dropped field and another value of an enum's member."""
    encoded, _ = encode({"x": Order("a", 1)})
    for fields in ({"id": "a"}, {"id": "a", "euros": 1, "cents": 2}, [1]):
        encoded["x"]["fields"] = fields
        with pytest.raises(
            ValueError, match=r"x: .*(is damaged, or a class in it has changed|are not those that were kept)"
        ):
            decode(encoded, {"x": Order})
    member, _ = encode({"x": Colour.RED})
    member["x"]["value"] = "crimson"
    with pytest.raises(ValueError, match="or a class in it has changed"):
        decode(member, {"x": Colour})
