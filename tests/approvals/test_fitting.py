"""Edits against the schema of an action: values as a person writes them are encoded, and nothing is guessed."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import inspect
import json
import pathlib
import uuid
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import TypedDict

from grace_kp.approvals import decode, encode, fitted_edit, schema_of
from grace_kp.approvals._arguments import plain_json
from grace_kp.approvals._fitting import TEXTS, Misfit, from_text, list_of, member_of
from tests.approvals.values import Address, Colour, Open, same


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
    """The values that an action would get after this edit."""
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
    """Whether it comes as the value itself, or as a person writes it as JSON."""

    @given(VALUES[name])
    def check(value):
        encoded, _ = encode({name: value})
        assert same(value, edited(**encoded)[name])
        if not getattr(value, "fold", 0):  # nobody writes that
            written = json.loads(json.dumps(plain_json(encoded[name])))
            assert same(value, edited(**{name: written})[name])

    check()


WRITTEN = {
    "an instant in UTC": ("moment", "2026-01-02T03:04:05Z", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    "a number for a Decimal": ("price", 1.5, D("1.5")),
    "an integer for a Decimal": ("price", 3, D(3)),
    "a whole float for a Decimal": ("price", 3.0, D("3.0")),
    "a large integer for a Decimal": ("price", 2**70, D(2**70)),
    "more digits than a float has": ("price", "0.10000000000000000001", D("0.10000000000000000001")),
    "a UUID without hyphens": ("id", "0" * 31 + "1", uuid.UUID(int=1)),
    "an integer for a float": ("ratio", 20, 20),
    "a whole float": ("ratio", 20.0, 20.0),
    "a large integer": ("untyped", 2**70, 2**70),
    "an element twice": ("tags", ["a", "b", "a"], {"a", "b"}),
    "nothing where nothing is allowed": ("day", None, None),
    "a text where an integer and a date would do": ("either", "2026-01-02", "2026-01-02"),
    "a date for an untyped parameter": ("untyped", {"$date": "2026-01-02"}, dt.date(2026, 1, 2)),
    "a text for an untyped parameter": ("untyped", "2026-01-02", "2026-01-02"),
    "keys that are no texts": ("by_id", {"$dict": [[1, {"$date": "2026-01-02"}]]}, {1: dt.date(2026, 1, 2)}),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_a_person_writes_is_read_as_the_declared_type(case):
    """Without the class or the program at hand."""
    name, value, expected = WRITTEN[case]
    assert same(expected, edited(**{name: value})[name])


MISFITS = {
    "no integer": ({"count": "20"}, "count: '20' is not of type 'integer'"),
    "a truth value": ({"count": True}, "count: True is not of type 'integer'"),
    "a whole float for an integer": ({"count": 20.0}, "count: 20.0 is not of type 'integer'"),
    "1 for a truth value": ({"flag": 1}, "flag: 1 is not of type 'boolean'"),
    "too much": ({"count": 101}, "count: 101 is greater than the maximum of 100"),
    "nothing": ({"count": None}, "count: None is not of type 'integer'"),
    "a number for a text": ({"text": 3}, "text: 3 is not of type 'string'"),
    "a date for a text": ({"text": {"$date": "2026-01-02"}}, "text: a date does not fit, it takes a text"),
    "a text of another kind for a date": ({"day": {"$uuid": str(uuid.UUID(int=1))}}, "day: a uuid does not fit, it takes a date such as 2026-01-31"),
    "no date": ({"days": ["2026-01-02", "2026-02-30"]}, "days[1]: '2026-02-30' is no date such as 2026-01-31"),
    "a negative Decimal": ({"price": "-1"}, "price: -1 is less than the minimum of 0"),
    "no Decimal": ({"price": "much"}, "price: 'much' is no decimal number such as 1.10"),
    "NaN as a Decimal": ({"price": "NaN"}, "price: 'NaN' is no decimal number"),
    "one too few": ({"pair": [1]}, "pair: [1] is too short"),
    "one too many": ({"pair": [1, "1.0", 2]}, "pair: [1, 1, 2] is too long"),
    "an unknown member": ({"colour": "green"}, "colour: 'green' is none of 'red', a list of 2"),
    "an unknown choice": ({"mode": "c"}, "mode: 'c' is not one of ['a', 'b']"),
    "a wrong field": ({"options": {"due": 3}}, "options.due: 3 is not of type 'string'"),
    "keys that JSON loses": ({"by_id": {"1": "2026-01-02"}}, "by_id: has keys that are no texts; write it as a $dict with a list of pairs"),
    "a model": ({"address": {"street": "a"}}, "address: is a tests.approvals.values.Address, whose values cannot be written here"),
    "an unknown parameter": ({"x": 1}, "refund has no parameter 'x'; it has text, count, ratio"),
    "no JSON": ({"untyped": {1: 2}}, "untyped: is no JSON that can be kept"),
    "NaN": ({"untyped": [float("nan")]}, "untyped: is no JSON that can be kept"),
    "an object": ({"untyped": object()}, "untyped: is no JSON that can be kept"),
    "half a surrogate pair": ({"text": "\ud800"}, "text: is no JSON that can be kept"),
    "a damaged tag": ({"untyped": {"$int": "x"}}, "untyped: "),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_refused_with_its_place(case):
    """Nothing is guessed."""
    changes, message = MISFITS[case]
    assert problem(**changes).startswith(message)


def test_what_the_request_holds_already_fits():
    """A form sends all arguments back, also those that nobody can write here."""
    current, _ = encode({"address": Address(street="a"), "count": 1_000})
    assert current == fitted_edit(SCHEMA, current, current=current)
    assert {"untyped": {"$float": "20.0"}} == fitted_edit(SCHEMA, {"untyped": 20.0}, current={"untyped": 20})
    assert {"untyped": {"$int": str(2**70)}} == fitted_edit(SCHEMA, {"untyped": 2**70}, current={"untyped": 20})
    other, _ = encode({"address": Address(street="b")})
    with pytest.raises(ValueError, match="whose values cannot be written here"):
        fitted_edit(SCHEMA, other, current=current)


def test_without_a_schema_any_json_fits():
    """What is unknown is left to the process that executes the action."""
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
    """It goes to logs and screens."""
    with pytest.raises(ValueError, match=r"^count: does not fit the parameter$"):
        fitted_edit(SCHEMA, {"count": "4711-secret"}, hidden=("count",))


def test_references_never_leave_the_schema():
    """A schema that somebody has written into the store fetches nothing."""
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


TAGGED = {
    "$date": ("20260131", "2026-01-31"),
    "$datetime": ("2026-01-31 12:00Z", "2026-01-31T12:00:00+00:00"),
    "$time": ("12:00", "12:00:00"),
    "$timedelta": ("P1DT2S", "P1DT2S"),
    "$uuid": ("{00000000-0000-0000-0000-00000000000A}", "00000000-0000-0000-0000-00000000000a"),
    "$decimal": (" 1.10", "1.10"),
    "$bytes": ("abc", "YWJj"),
    "$path": ("a//b", "a/b"),
}


@pytest.mark.parametrize("tag", TAGGED)
def test_a_text_gets_its_canonical_form(tag):
    """A person need not know it."""
    text, expected = TAGGED[tag]
    assert {tag: expected} == from_text(tag, text, "x")


@pytest.mark.parametrize("tag", TEXTS)
def test_a_text_that_means_nothing_is_refused_with_an_example(tag):
    """The example is what the message asks for."""
    with pytest.raises(Misfit, match=r"^x: 'soon' is no ") as caught:
        from_text(tag, "soon", "x")
    assert str(caught.value).endswith(TEXTS[tag].removeprefix("a "))


def test_what_is_no_text_is_left_to_the_schema():
    """It says what it takes."""
    assert [3, [1]] == [from_text("$date", 3, "x"), from_text("$set", [1], "x")]


def test_the_elements_of_a_set_are_sorted_and_single():
    """So that equal sets have one encoding; the items of a tuple stay."""
    assert {"$set": ["a", 3]} == list_of("$set", [3, "a", 3])
    assert {"$tuple": [3, "a", 3]} == list_of("$tuple", [3, "a", 3])


def test_a_member_is_named_by_its_value():
    """The encoded form is accepted, too."""
    red = {"$model": "m.C", "name": "RED", "value": "red"}
    schema = {"x-members": [red, "plain"]}
    assert [red, red, "plain"] == [member_of(schema, value, "x") for value in ("red", red, "plain")]
    with pytest.raises(Misfit, match="x: 'RED' is none of 'red', 'plain'"):
        member_of(schema, "RED", "x")
