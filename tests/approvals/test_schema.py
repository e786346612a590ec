"""The parameters of an action as a JSON schema."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import json
import socket
import typing
import uuid
from typing import Annotated, Any, Literal

import pydantic
import pytest
from jsonschema import Draft202012Validator
from pydantic import Field

from grace_kp.approvals import canonical, schema_of
from grace_kp.approvals._typed_schema import TypedSchema
from tests.approvals.values import Address, Colour
from tests.approvals.values import Order as PlainOrder


def refund(
    invoice: str, euros: int, *lines: int, when: dt.date | None = None, note: str | None = None, untyped=1, **more: bool
): ...


TYPES = {
    "invoice": str,
    "euros": Annotated[int, Field(ge=1)],
    "lines": int,
    "when": dt.date | None,
    "note": str,
    "more": bool,
}


def test_the_schema_describes_each_parameter():
    """Types and constraints, which are required, and that there are no others."""
    schema = schema_of(inspect.signature(refund), TYPES)
    Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    assert ["invoice", "euros", "lines", "when", "note", "untyped", "more"] == list(properties)
    assert (["invoice", "euros"], False) == (schema["required"], schema["additionalProperties"])
    assert {"type": "integer", "minimum": 1} == properties["euros"]
    assert {"type": "array", "items": {"type": "integer"}, "x-encoding": "$tuple"} == properties["lines"]
    assert {"type": "object", "additionalProperties": {"type": "boolean"}} == properties["more"]
    assert {"type": "string", "format": "date", "x-encoding": "$date"} == properties["when"]["anyOf"][0]
    assert {"anyOf": [{"type": "string"}, {"type": "null"}]} == properties["note"]
    assert {} == properties["untyped"]


def test_the_methods_own_object_is_left_out():
    """No edit can change it."""
    schema = schema_of(
        inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]), {}, leave_out=("self",)
    )
    assert ({}, []) == (schema["properties"], schema["required"])


@dataclasses.dataclass
class Line:
    price: decimal.Decimal


class Order(pydantic.BaseModel):
    lines: list[Line]
    next: "Order | None" = None  # noqa: UP037


class Wide(pydantic.BaseModel):
    a: Annotated[str, Field(json_schema_extra={"$ref": "http://h/schema"})]


def of(declared):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in ("x", "y")])
    return schema_of(signature, {"x": declared, "y": declared})


def test_definitions_of_two_parameters_do_not_meet():
    """Each refers to its own, also where a model refers to itself."""
    schema = of(Order)
    Draft202012Validator.check_schema(schema)
    assert {"x.Order", "x.Line", "y.Order", "y.Line"} == set(schema["$defs"])
    assert "#/$defs/x.Order" in json.dumps(schema["properties"]["x"])


@pytest.mark.parametrize(
    "declared",
    [socket.socket, collections.abc.Callable[[int], int], Wide, "Unknown", typing.Literal[tuple(f"{n:0>40}" for n in range(2_000))]],
    ids=["a class without a schema", "a function", "a remote reference", "an unknown name", "a huge type"],
)  # fmt: skip
def test_a_type_without_a_usable_schema_takes_anything(declared):
    """The process that executes the action checks it; nothing is fetched."""
    assert {} == of(declared)["properties"]["x"]


@pytest.mark.parametrize("declared", [Any, object, Colour, list[set[dt.timedelta]], typing.Literal["a", 1], Order])
def test_a_schema_can_be_stored(declared):
    """It is JSON with a canonical form."""
    schema = of(declared)
    assert canonical(schema) == canonical(json.loads(json.dumps(schema)))


SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


class Login(pydantic.BaseModel):
    default: str = SECRET
    key: str = pydantic.Field(SECRET, examples=[SECRET])


def test_a_schema_holds_no_defaults_and_examples():
    """They may be secrets, and the schema is kept in the clear; a field with such a name stays."""
    schema = of(Login)
    assert SECRET not in json.dumps(schema)
    assert {"default", "key"} == set(schema["properties"]["x"]["properties"])


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
    PlainOrder: "$model",
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
