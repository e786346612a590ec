"""Parameters of addresses: what each kind reads and refuses, that its JSON schema allows the same, and the conditions on runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Literal, get_args

import jsonschema
import pytest
from pydantic import Field
from starlette.datastructures import QueryParams

from grace_kp.levels import InterventionLevel
from grace_kp.store import CatalogQuery
from grace_kp.web._parameter import (
    AT_MOST_VALUES,
    UNSTATED,
    WHOLE,
    Day,
    Flag,
    Parameters,
    RunConditions,
    Share,
    Text,
    Time,
    query_from,
)


class Example(Parameters):
    """One of each kind."""

    text: str = Field(UNSTATED, min_length=1, max_length=5)
    number: Share = UNSTATED
    whole: Annotated[int, Field(ge=1, le=200), WHOLE] = UNSTATED
    flag: Flag = UNSTATED
    time: Time = UNSTATED
    day: Day = UNSTATED
    choice: Literal["a", "b"] = UNSTATED
    many: tuple[Text, ...] = Field(UNSTATED, max_length=AT_MOST_VALUES)
    limit: Annotated[int, Field(ge=0, le=100), WHOLE] = 50


def read(name, stated):
    """The values and problems of an address that states one parameter."""
    return Example.read([(name, value) for value in stated])


@pytest.mark.parametrize(
    ("parameter", "stated", "expected"),
    [
        ("text", ["日本語"], "日本語"),
        ("number", ["0.25"], 0.25),
        ("number", ["1e-3"], 0.001),
        ("whole", ["200"], 200),
        ("flag", ["true"], True),
        ("flag", ["false"], False),
        ("time", ["2026-01-02"], "2026-01-02T00:00:00.000Z"),
        ("time", ["2026-01-02T03:04"], "2026-01-02T03:04:00.000Z"),
        ("time", ["2026-01-02T03:04:05+09:00"], "2026-01-01T18:04:05.000Z"),
        ("day", ["2026-01-02"], "2026-01-02"),
        ("choice", ["b"], "b"),
        ("many", ["x", "y"], ("x", "y")),
    ],
)
def test_values(parameter, stated, expected):
    """A value is read as its kind says."""
    values, problems = read(parameter, stated)
    assert (expected, {}) == (values[parameter], problems)


@pytest.mark.parametrize(
    ("parameter", "stated", "expected"),
    [
        ("text", ["a" * 6], "must have at most 5 characters, not 6"),
        ("text", [""], "must not be empty"),
        ("text", ["a", "b"], "must be stated once, not 2 times"),
        ("number", ["nan"], "must be a number, not 'nan'"),
        ("number", ["Infinity"], "must be a number, not 'Infinity'"),
        ("number", ["1_0"], "must be a number, not '1_0'"),
        ("number", ["１"], "must be a number, not '１'"),
        ("number", ["1e999"], "must be from 0 to 1, not '1e999'"),
        ("whole", ["1.0"], "must be a whole number, not '1.0'"),
        ("whole", ["0"], "must be from 1 to 200, not '0'"),
        ("flag", ["True"], "must be true or false, not 'True'"),
        ("time", ["2026-02-31"], "must be a time that exists, not '2026-02-31'"),
        (
            "time",
            ["2026-01-02T24:00"],
            "must be a time like 2026-01-02, 2026-01-02T03:04:05Z or 2h, not '2026-01-02T24:00'",
        ),
        ("time", ["yesterday"], "must be a time like 2026-01-02, 2026-01-02T03:04:05Z or 2h, not 'yesterday'"),
        ("day", ["2h"], "must be a day like 2026-01-02, not '2h'"),
        ("day", ["2026-13-01"], "must be a day like 2026-01-02, not '2026-13-01'"),
        ("day", ["2026-04-31"], "must be a time that exists, not '2026-04-31'"),
        ("choice", ["c"], "must be one of a, b, not 'c'"),
        ("many", ["x"] * 21, f"must be stated at most {AT_MOST_VALUES} times, not 21 times"),
    ],
)
def test_refusals(parameter, stated, expected):
    """A value that is not allowed is refused with what is allowed."""
    assert ({"limit": 50}, {parameter: expected}) == read(parameter, stated)


def test_ago():
    """A time may be stated as how long ago it was."""
    assert read("time", ["1d"])[0]["time"] < read("time", ["1h"])[0]["time"]


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("text", "abc", True),
        ("text", "abcdef", False),
        ("text", "", False),
        ("number", 1, True),
        ("number", 1.1, False),
        ("whole", 1.5, False),
        ("flag", True, True),
        ("flag", "true", False),
        ("time", "2h", True),
        ("time", "yesterday", False),
        ("day", "2h", False),
        ("choice", "c", False),
        ("many", ["x"] * 21, False),
    ],
)
def test_schema(parameter, value, allowed):
    """The schema allows what is read and refuses what is refused."""
    check = jsonschema.Draft202012Validator(
        Example.model_json_schema()["properties"][parameter],
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    assert allowed is check.is_valid(value)


def test_all_of_an_address():
    """All parameters are read at once: defaults stand in, and what is wrong or unknown is named."""
    values, problems = Example.read([("number", "2"), ("choice", "a"), ("other", "x")])
    assert {"limit": 50, "choice": "a"} == values
    known = "text, number, whole, flag, time, day, choice, many, limit"
    assert {"other": f"is no parameter; known are {known}", "number": "must be from 0 to 1, not '2'"} == problems


def test_every_condition_can_be_stated():
    """Each field of a query has its parameter."""
    assert [field.name for field in fields(CatalogQuery)] == list(RunConditions.model_fields)


def test_every_level_can_be_a_condition():
    """And runs without a gate."""
    assert (*InterventionLevel, "none") == get_args(RunConditions.model_fields["level"].annotation)


def test_conditions_are_read():
    """An address states conditions; empty fields of a form mean any, and other names are left to the caller."""
    query, problems = query_from(
        QueryParams("agent=refunds&min_score=0.5&tags=a&tags=b&roots=true&user=&before=7&since=2026-01-02&text=返金")
    )
    expected = CatalogQuery(
        agent="refunds", min_score=0.5, tags=("a", "b"), roots=True, since="2026-01-02T00:00:00.000Z", text="返金"
    )
    assert expected == query
    assert {} == problems


def test_problems_stand_by_field():
    """A field with a problem is left out, and the others still hold."""
    query, problems = query_from(QueryParams("agent=refunds&level=loud&max_score=2"))
    assert CatalogQuery(agent="refunds") == query
    assert {
        "level": "must be one of silent, notify, confirm, escalate, none, not 'loud'",
        "max_score": "must be from 0 to 1, not '2'",
    } == problems
