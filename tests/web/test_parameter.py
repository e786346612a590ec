"""Parameters of addresses: what each kind reads and refuses, that its JSON schema allows the same, and the conditions on runs."""

from __future__ import annotations

from dataclasses import fields
from datetime import date
from typing import Annotated, Literal, get_args

import pytest
from pydantic import Field
from starlette.datastructures import QueryParams

from grace_kp.levels import InterventionLevel
from grace_kp.store import CatalogQuery
from grace_kp.web._parameter import (
    AT_MOST_VALUES,
    UNSTATED,
    Day,
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
    flag: bool = UNSTATED
    time: Time = UNSTATED
    day: Day = UNSTATED
    choice: Literal["a", "b"] = UNSTATED
    many: tuple[Text, ...] = Field(UNSTATED, max_length=AT_MOST_VALUES)
    limit: Annotated[int, Field(ge=0, le=100)] = 50


def read(name, stated):
    """The values and problems of an address that states one parameter."""
    return Example.read([(name, value) for value in stated])


@pytest.mark.parametrize(
    ("parameter", "stated", "expected"),
    [
        ("text", ["日本語"], "日本語"),
        ("number", ["0.25"], 0.25),
        ("limit", ["100"], 100),
        ("flag", ["false"], False),
        ("time", ["2026-01-02"], "2026-01-02T00:00:00.000Z"),
        ("time", ["2026-01-02T03:04:05+09:00"], "2026-01-01T18:04:05.000Z"),
        ("day", ["2026-01-02"], date(2026, 1, 2)),
        ("choice", ["b"], "b"),
        ("many", ["x", "y"], ("x", "y")),
    ],
)
def test_values(parameter, stated, expected):
    values, problems = read(parameter, stated)
    assert (expected, {}) == (values[parameter], problems)


@pytest.mark.parametrize(
    ("parameter", "stated", "reason"),
    [
        ("text", ["a" * 6], "string should have at most 5 characters, not 'aaaaaa'"),
        ("text", [""], "string should have at least 1 character, not ''"),
        ("text", ["a", "b"], "input should be a valid string, not a list of 2"),
        ("number", ["nan"], "not 'nan'"),
        ("number", ["1e999"], "input should be less than or equal to 1, not '1e999'"),
        ("limit", ["1.5"], "not '1.5'"),
        ("flag", ["perhaps"], "not 'perhaps'"),
        ("time", ["2026-02-31"], "it must be a time like 2026-01-02T03:04:05Z or 2h, not '2026-02-31'"),
        ("day", ["2h"], "not '2h'"),
        ("day", ["2026-04-31"], "day is out of range for month, not '2026-04-31'"),
        ("choice", ["c"], "input should be 'a' or 'b', not 'c'"),
        ("many", ["x"] * 21, "at most 20 items after validation, not 21"),
    ],
)
def test_refusals(parameter, stated, reason):
    values, problems = read(parameter, stated)
    assert (50, [parameter]) == (values["limit"], list(problems))
    assert problems[parameter].startswith("cannot be used: ")
    assert reason in problems[parameter]


def test_all_parameters_are_read_at_once():
    values, problems = Example.read([("number", "2"), ("choice", "a"), ("other", "x"), ("time", "1d")])
    assert ({"limit", "choice", "time"}, "a") == (set(values), values["choice"])
    assert values["time"] < read("time", ["1h"])[0]["time"]
    known = "text, number, flag, time, day, choice, many, limit"
    assert {"number", "other"} == set(problems)
    assert f"is unknown; known are {known}" == problems["other"]


def test_each_field_of_a_query_is_a_condition():
    assert [field.name for field in fields(CatalogQuery)] == list(RunConditions.model_fields)
    assert (*InterventionLevel, "none") == get_args(RunConditions.model_fields["level"].annotation)


def test_conditions_are_read():
    """Empty fields of a form mean any, other names are left to the caller, and a field with a problem is left out."""
    query, problems = query_from(
        QueryParams(
            "agent=refunds&min_score=0.5&tags=a&tags=b&roots=true&user=&before=7&since=2026-01-02&text=返金&max_score=2"
        )
    )
    expected = CatalogQuery(
        agent="refunds", min_score=0.5, tags=("a", "b"), roots=True, since="2026-01-02T00:00:00.000Z", text="返金"
    )
    assert expected == query
    assert ["max_score"] == list(problems)
