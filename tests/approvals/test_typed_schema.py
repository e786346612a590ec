"""Schemas by pydantic name the type tag of each value."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from typing import Literal

import pydantic
import pytest

from grace_kp.approvals._typed_schema import TypedSchema
from tests.approvals.values import Address, Colour, Order


class Unkept(enum.Enum):
    A = object


TAGS = {
    decimal.Decimal: "$decimal",
    dt.date: "$date",
    dt.datetime: "$datetime",
    dt.time: "$time",
    dt.timedelta: "$timedelta",
    uuid.UUID: "$uuid",
    bytes: "$bytes",
    set[int]: "$set",
    frozenset[int]: "$frozenset",
    tuple[int, ...]: "$tuple",
    tuple[int, str]: "$tuple",
    dict[int, str]: "$dict",
    dict[str, str]: None,
    Address: "$model",
    Order: "$model",
    Colour: "$enum",
    Literal[Colour.RED]: "$enum",
    Literal["a"]: None,
    int: None,
    str: None,
}


def schema(declared):
    return pydantic.TypeAdapter(declared).json_schema(schema_generator=TypedSchema)


@pytest.mark.parametrize("declared", TAGS, ids=str)
def test_what_is_more_than_json_names_its_tag(declared):
    """Plain JSON has none."""
    assert TAGS[declared] == schema(declared).get("x-encoding")


def test_tags_stand_inside_of_containers_too():
    """So that a list of dates is one."""
    assert "$date" == schema(list[dt.date])["items"]["x-encoding"]


def test_the_members_of_an_enum_are_listed_as_they_are_encoded():
    """A person writes the value; the member is what the action gets."""
    name = "tests.approvals.values.Colour"
    red, blue = schema(Colour)["x-members"]
    assert {"$model": name, "name": "RED", "value": "red"} == red
    assert {"$tuple": ["b", 1]} == blue["value"]
    assert [red] == schema(Literal[Colour.RED])["x-members"]
    assert ["a", red] == schema(Literal["a", Colour.RED])["x-members"]


def test_models_name_their_class():
    """Their values cannot be written by somebody who does not have the class."""

    @dataclasses.dataclass
    class Holder:
        address: Address

    assert schema(Holder)["x-class"].endswith("Holder")
