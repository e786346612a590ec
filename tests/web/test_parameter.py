"""Parameters of addresses: what each kind reads and refuses, that its JSON schema allows the same, and the conditions on runs."""

from __future__ import annotations

from dataclasses import fields

import jsonschema
import pytest
from starlette.datastructures import QueryParams

from grace_kp.store import CatalogQuery
from grace_kp.web._parameter import AT_MOST_VALUES, CONDITIONS, Kind, Parameter, query_from, read_all

TEXT = Parameter(name="text", meaning="A text.", maximum=5)
NUMBER = Parameter(name="number", meaning="A number.", kind=Kind.NUMBER, maximum=1)
WHOLE = Parameter(name="whole", meaning="A whole number.", kind=Kind.WHOLE, minimum=1, maximum=200)
FLAG = Parameter(name="flag", meaning="A flag.", kind=Kind.FLAG)
TIME = Parameter(name="time", meaning="A time.", kind=Kind.TIME)
DAY = Parameter(name="day", meaning="A day.", kind=Kind.DAY)
CHOICE = Parameter(name="choice", meaning="A choice.", choices=("a", "b"))
MANY = Parameter(name="many", meaning="Several.", many=True)
PATTERN = Parameter(name="pattern", meaning="A name.", pattern="[a-z]+")


@pytest.mark.parametrize(
    ("parameter", "stated", "expected"),
    [
        (TEXT, ["日本語"], "日本語"),
        (NUMBER, ["0.25"], 0.25),
        (NUMBER, ["1e-3"], 0.001),
        (WHOLE, ["200"], 200),
        (FLAG, ["true"], True),
        (FLAG, ["false"], False),
        (TIME, ["2026-01-02"], "2026-01-02T00:00:00.000Z"),
        (TIME, ["2026-01-02T03:04"], "2026-01-02T03:04:00.000Z"),
        (TIME, ["2026-01-02T03:04:05+09:00"], "2026-01-01T18:04:05.000Z"),
        (DAY, ["2026-01-02"], "2026-01-02"),
        (CHOICE, ["b"], "b"),
        (MANY, ["x", "y"], ("x", "y")),
        (PATTERN, ["abc"], "abc"),
    ],
)
def test_values(parameter, stated, expected):
    """A value is read as its kind says."""
    assert expected == parameter.read(stated)


@pytest.mark.parametrize(
    ("parameter", "stated", "expected"),
    [
        (TEXT, ["a" * 6], "must have at most 5 characters, not 6"),
        (TEXT, [""], "must not be empty"),
        (TEXT, ["a", "b"], "must be stated once, not 2 times"),
        (NUMBER, ["nan"], "must be a number, not 'nan'"),
        (NUMBER, ["Infinity"], "must be a number, not 'Infinity'"),
        (NUMBER, ["1_0"], "must be a number, not '1_0'"),
        (NUMBER, ["１"], "must be a number, not '１'"),
        (NUMBER, ["1e999"], "must be from 0 to 1, not '1e999'"),
        (WHOLE, ["1.0"], "must be a whole number, not '1.0'"),
        (WHOLE, ["0"], "must be from 1 to 200, not '0'"),
        (FLAG, ["True"], "must be true or false, not 'True'"),
        (TIME, ["2026-02-31"], "must be a time that exists, not '2026-02-31'"),
        (
            TIME,
            ["2026-01-02T24:00"],
            "must be a time like 2026-01-02, 2026-01-02T03:04:05Z or 2h, not '2026-01-02T24:00'",
        ),
        (TIME, ["yesterday"], "must be a time like 2026-01-02, 2026-01-02T03:04:05Z or 2h, not 'yesterday'"),
        (DAY, ["2h"], "must be a day like 2026-01-02, not '2h'"),
        (DAY, ["2026-13-01"], "must be a day like 2026-01-02, not '2026-13-01'"),
        (DAY, ["2026-04-31"], "must be a time that exists, not '2026-04-31'"),
        (CHOICE, ["c"], "must be one of a, b, not 'c'"),
        (MANY, ["x"] * 21, f"must be stated at most {AT_MOST_VALUES} times, not 21 times"),
        (PATTERN, ["A"], "must match [a-z]+, not 'A'"),
    ],
)
def test_refusals(parameter, stated, expected):
    """A value that is not allowed is refused with what is allowed."""
    with pytest.raises(ValueError, match="must") as caught:
        parameter.read(stated)
    assert expected == str(caught.value)


def test_ago():
    """A time may be stated as how long ago it was."""
    assert TIME.read(["1d"]) < TIME.read(["1h"])


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        (TEXT, "abc", True),
        (TEXT, "abcdef", False),
        (TEXT, "", False),
        (NUMBER, 1, True),
        (NUMBER, 1.1, False),
        (WHOLE, 1.5, False),
        (FLAG, True, True),
        (FLAG, "true", False),
        (TIME, "2h", True),
        (TIME, "yesterday", False),
        (DAY, "2h", False),
        (CHOICE, "c", False),
        (MANY, ["x"] * 21, False),
        (PATTERN, "A", False),
    ],
)
def test_schema(parameter, value, allowed):
    """The schema allows what is read and refuses what is refused."""
    check = jsonschema.Draft202012Validator(
        parameter.schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    assert allowed is check.is_valid(value)


def test_all_of_an_address():
    """All parameters are read at once: defaults stand in, what is missing and what is wrong is named, other names are left alone."""
    needed = Parameter(name="needed", meaning="Needed.", required=True)
    paged = Parameter(name="limit", meaning="Rows.", kind=Kind.WHOLE, default=50)
    values, problems = read_all([needed, paged, NUMBER, CHOICE], [("number", "2"), ("choice", "a"), ("other", "x")])
    assert {"limit": 50, "choice": "a"} == values
    assert {"needed": "is missing", "number": "must be from 0 to 1, not '2'"} == problems
    assert 50 == paged.schema["default"]


def test_every_condition_can_be_stated():
    """Each field of a query has its parameter."""
    assert [field.name for field in fields(CatalogQuery)] == [parameter.name for parameter in CONDITIONS]


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
