"""The parameters of an action as a JSON schema, and edits: values as a person writes them are encoded, and nothing is guessed."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import json
import pathlib
import socket
import typing
import uuid
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import Field
from typing_extensions import TypedDict

from grace_kp.approvals import decode, encode, fitted_edit, schema_of
from grace_kp.approvals._arguments import plain_json
from tests.approvals.values import Address, Colour, Open, same


def refund(
    invoice: str, euros: int, *lines: int, when: dt.date | None = None, note: str | None = None, untyped=1, **more: bool
): ...


DECLARED = {
    "invoice": str,
    "euros": Annotated[int, Field(ge=1)],
    "lines": int,
    "when": dt.date | None,
    "note": str,
    "more": bool,
}


def test_the_schema_describes_each_parameter():
    schema = schema_of(inspect.signature(refund), DECLARED)
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
    assert {} == of(declared)["properties"]["x"]


SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


class Login(pydantic.BaseModel):
    default: str = SECRET
    key: str = pydantic.Field(SECRET, examples=[SECRET])


def test_a_schema_holds_no_defaults_and_examples():
    """They may be secrets, and the schema is kept in the clear; a field with such a name stays."""
    schema = of(Login)
    assert SECRET not in json.dumps(schema)
    assert {"default", "key"} == set(schema["properties"]["x"]["properties"])


def schema(declared):
    return of(declared)["properties"]["x"]


def test_the_members_of_an_enum_are_listed_as_they_are_encoded():
    name = "tests.approvals.values.Colour"
    red, blue = schema(Colour)["x-members"]
    assert {"$model": name, "name": "RED", "value": "red"} == red
    assert {"$tuple": ["b", 1]} == blue["value"]
    assert [red] == schema(Literal[Colour.RED])["x-members"]
    assert ["a", red] == schema(Literal["a", Colour.RED])["x-members"]


class Size(enum.IntEnum):
    S = 1
    L = 2


class Options(TypedDict, total=False):
    due: dt.date
    parts: tuple[int, decimal.Decimal]


D = decimal.Decimal
TYPES = {
    "text": str,
    "count": Annotated[int, Field(ge=1, le=100)],
    "ratio": float,
    "flag": bool,
    "price": Annotated[D, Field(ge=0)],
    "day": dt.date | None,
    "moment": dt.datetime,
    "clock": dt.time,
    "wait": dt.timedelta,
    "id": uuid.UUID,
    "data": bytes,
    "path": pathlib.Path,
    "days": list[dt.date],
    "tags": set[str],
    "pair": tuple[int, D],
    "colour": Colour,
    "size": Size,
    "mode": Literal["a", "b"],
    "options": Options,
    "by_id": dict[int, dt.date],
    "by_name": dict[str, D],
    "either": int | dt.date | str,
    "address": Address,
    "anything": Any,
}
SIGNATURE = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in [*TYPES, "untyped"]])
SCHEMA = json.loads(json.dumps(schema_of(SIGNATURE, TYPES)))


def edited(**changes):
    return decode(fitted_edit(SCHEMA, changes, action="refund"), TYPES)


def problem(**changes):
    with pytest.raises(ValueError, match=r".") as caught:
        fitted_edit(SCHEMA, changes, action="refund")
    return str(caught.value)


VALUES = {
    "text": st.text(st.characters(codec="utf-8")),
    "count": st.integers(1, 100),
    "ratio": st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "price": st.decimals(0, 1_000, places=2),
    "day": st.none() | st.dates(),
    "moment": st.datetimes(timezones=st.none() | st.just(dt.UTC)),
    "clock": st.times(),
    "wait": st.timedeltas(),
    "id": st.uuids(),
    "data": st.text(st.characters(codec="utf-8")).map(str.encode),
    "path": st.sampled_from(["/a/b", "a", "."]).map(pathlib.Path),
    "days": st.lists(st.dates(), max_size=3),
    "tags": st.sets(st.text(st.characters(codec="utf-8")), max_size=3),
    "pair": st.tuples(st.integers(), st.decimals(0, 10, places=1)),
    "colour": st.sampled_from(Colour),
    "size": st.sampled_from(Size),
    "mode": st.sampled_from("ab"),
    "options": st.fixed_dictionaries({}, optional={"due": st.dates(), "parts": st.tuples(st.integers(), st.decimals(0, 9, places=1))}),
    "by_name": st.dictionaries(st.text("ab"), st.decimals(0, 10, places=1), max_size=3),
    "anything": st.none() | st.booleans() | st.integers() | st.text(),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_value_of_the_type_fits_and_stays_what_it_is(name):

    @given(VALUES[name])
    def check(value):
        encoded, _ = encode({name: value})
        assert same(value, edited(**encoded)[name])
        if not getattr(value, "fold", 0):  # nobody writes that
            written = json.loads(json.dumps(plain_json(encoded[name])))
            assert same(value, edited(**{name: written})[name])

    check()


WRITTEN = {
    "a compact date": ("day", "20260131", dt.date(2026, 1, 31)),
    "a duration": ("wait", "P1DT2S", dt.timedelta(1, 2)),
    "a UUID in braces": ("id", "{00000000-0000-0000-0000-00000000000A}", uuid.UUID(int=10)),
    "a Decimal with a space": ("price", " 1.10", D("1.10")),
    "bytes": ("data", "abc", b"abc"),
    "a path": ("path", "a//b", pathlib.Path("a/b")),
    "an instant in UTC": ("moment", "2026-01-02T03:04:05Z", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    "a number for a Decimal": ("price", 1.5, D("1.5")),
    "a large integer for a Decimal": ("price", 2**70, D(2**70)),
    "more digits than a float has": ("price", "0.10000000000000000001", D("0.10000000000000000001")),
    "an integer for a float": ("ratio", 20, 20),
    "an element twice": ("tags", ["a", "b", "a"], {"a", "b"}),
    "nothing where nothing is allowed": ("day", None, None),
    "a text where an integer and a date would do": ("either", "2026-01-02", "2026-01-02"),
    "a date for an untyped parameter": ("untyped", {"$date": "2026-01-02"}, dt.date(2026, 1, 2)),
    "keys that are no texts": ("by_id", {"$dict": [[1, {"$date": "2026-01-02"}]]}, {1: dt.date(2026, 1, 2)}),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_a_person_writes_is_read_as_the_declared_type(case):
    name, value, expected = WRITTEN[case]
    assert same(expected, edited(**{name: value})[name])


MISFITS = {
    "no integer": ({"count": "20"}, "count: '20' is not of type 'integer'"),
    "a whole float for an integer": ({"count": 20.0}, "count: 20.0 is not of type 'integer'"),
    "too much": ({"count": 101}, "count: 101 is greater than the maximum of 100"),
    "a date for a text": ({"text": {"$date": "2026-01-02"}}, "text: a date does not fit the type string"),
    "a text of another kind for a date": ({"day": {"$uuid": str(uuid.UUID(int=1))}}, "day: a uuid does not fit, it takes a date such as 2026-01-31"),
    "a large integer for a date": ({"moment": 2**70}, "moment: a int does not fit, it takes a date with time such as"),
    "no date": ({"days": ["2026-01-02", "2026-02-30"]}, "days[1]: '2026-02-30' is not a date such as 2026-01-31"),
    "a negative Decimal": ({"price": "-1"}, "price: -1 is less than the minimum of 0"),
    "no instant": ({"moment": "soon"}, "moment: 'soon' is not a date with time such as 2026-01-31T12:00:00+01:00"),
    "no Decimal": ({"price": "much"}, "price: 'much' is not a decimal number such as 1.10"),
    "NaN as a Decimal": ({"price": "NaN"}, "price: 'NaN' is not a decimal number"),
    "one too few": ({"pair": [1]}, "pair: [1] is too short"),
    "an unknown member": ({"colour": "green"}, "colour: 'green' is none of 'red', a list of 2"),
    "an unknown choice": ({"mode": "c"}, "mode: 'c' is not one of ['a', 'b']"),
    "a wrong field": ({"options": {"due": 3}}, "options.due: 3 is not of type 'string'"),
    "keys that JSON loses": ({"by_id": {"1": "2026-01-02"}}, "by_id: has keys that are not strings; write it as a $dict with a list of pairs"),
    "a model": ({"address": {"street": "a"}}, "address: is a tests.approvals.values.Address, whose values cannot be written here"),
    "an unknown parameter": ({"x": 1}, "refund has no parameter 'x'; it has text, count, ratio"),
    "no JSON": ({"untyped": {1: 2}}, "untyped: cannot be stored as JSON"),
    "NaN": ({"untyped": [float("nan")]}, "untyped: cannot be stored as JSON"),
    "half a surrogate pair": ({"text": "\ud800"}, "text: cannot be stored as JSON"),
    "a damaged tag": ({"untyped": {"$int": "x"}}, "untyped: "),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_refused_with_its_place(case):
    changes, message = MISFITS[case]
    assert problem(**changes).startswith(message)


def test_what_the_request_holds_already_fits():
    current, _ = encode({"address": Address(street="a"), "count": 1_000})
    assert current == fitted_edit(SCHEMA, current, current=current)
    assert {"untyped": {"$float": "20.0"}} == fitted_edit(SCHEMA, {"untyped": 20.0}, current={"untyped": 20})
    assert {"untyped": {"$int": str(2**70)}} == fitted_edit(SCHEMA, {"untyped": 2**70}, current={"untyped": 20})
    other, _ = encode({"address": Address(street="b")})
    with pytest.raises(ValueError, match="whose values cannot be written here"):
        fitted_edit(SCHEMA, other, current=current)


def test_without_a_schema_any_json_fits():
    assert {"x": {"$float": "1.0"}} == fitted_edit({}, {"x": 1.0})
    with pytest.raises(ValueError, match="x: "):
        fitted_edit({}, {"x": {"$int": "a"}})


def test_an_instance_from_python_fits_its_class():
    """Its constructor has checked it. Another class does not fit, nor does what somebody writes as one."""
    changes, _ = encode({"address": Address(street="b"), "untyped": [Address()], "colour": Colour.RED})
    assert changes == fitted_edit(SCHEMA, changes, has_instances=True)
    other, _ = encode({"address": Open()})
    with pytest.raises(
        ValueError, match=r"is a tests\.approvals\.values\.Address, whose values cannot be written here"
    ):
        fitted_edit(SCHEMA, other, has_instances=True)
    with pytest.raises(ValueError, match="holds an instance of a class"):
        fitted_edit(SCHEMA, {"untyped": changes["untyped"]})


def test_a_message_about_a_sealed_parameter_does_not_show_its_value():
    with pytest.raises(ValueError, match=r"^count: does not fit the parameter$"):
        fitted_edit(SCHEMA, {"count": "4711-secret"}, hidden=("count",))


@pytest.mark.parametrize(("pattern", "is_kept"), [("^[A-Z]+$", True), (r"^\p{Lu}+$", False)])
def test_a_pattern_that_only_pydantic_reads_is_left_out(pattern, is_kept):
    declared = Annotated[str, Field(pattern=pattern)]
    assert {"type": "string", **({"pattern": pattern} if is_kept else {})} == schema(declared)


def test_references_never_leave_the_schema():
    for ref in ("http://127.0.0.1:9/schema", "#/$defs/none"):
        schema = {"properties": {"x": {"type": "object", "properties": {"y": {"$ref": ref}}}}}
        with pytest.raises(ValueError, match=r"x: the schema of the action cannot be used \(_Wrapped"):
            fitted_edit(schema, {"x": {"y": 1}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(["$int", "$set", "$model", "$dict"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from([*TYPES, "untyped"]), JSON)
def test_an_edit_fits_exactly_or_is_refused(name, value):
    """What is accepted can be decoded, so that the action never gets half of it."""
    try:
        fitted = fitted_edit(SCHEMA, {name: value})
    except ValueError:
        return
    assert encode(decode(fitted, TYPES))[0].keys() == {name}
