"""The arguments of a tool are checked against its schema, whether that is a model or JSON schema."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_core", reason="needs the extra langchain")

from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from grace_kp.integrations.langchain._tool_schema import (
    _json_schema_problem,
    argument_names,
    argument_types,
    schema_problem,
)


class Arguments(BaseModel):
    to: str
    euros: int = 5


SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"}, "euros": {"type": "integer"}, "ratio": {"type": ["number", "null"]},
        "fast": {"type": "boolean"}, "lines": {"type": "array"}, "more": {"type": "object"}, "any": {}, "odd": {"type": "x"},
    },
    "required": ["to"],
}  # fmt: skip


def made_of(schema):
    return StructuredTool(name="pay", description="Send money.", args_schema=schema, func=lambda **_: "paid")


@pytest.mark.parametrize("schema", [Arguments, SCHEMA])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"to": "bob"}, ""), ({"to": "bob", "euros": 5}, ""), ({"to": "bob", "euros": "5"}, "euros"),
        ({"to": "bob", "euros": 5.5}, "euros"), ({"to": "bob", "euros": True}, "euros"), ({"to": 5}, "to"),
        ({"euros": 5}, "'to' is missing"), ({"to": "bob", "cents": 5}, "no argument 'cents'"),
    ],
)  # fmt: skip
def test_models_and_json_schemas_are_checked_alike(schema, arguments, problem):
    """Types as well as names, without converting anything."""
    found = schema_problem(made_of(schema), arguments)
    assert bool(problem) == bool(found)
    assert problem in found


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"ratio": None}, ""), ({"ratio": 5}, ""), ({"ratio": "5"}, "ratio: must be number or null, not str"),
        ({"fast": True}, ""), ({"fast": 1}, "fast: must be boolean, not int"), ({"fast": "no"}, "must be boolean"),
        ({"lines": ["a"]}, ""), ({"lines": "a"}, "must be array"), ({"more": {}}, ""), ({"more": []}, "must be object"),
        ({"any": object}, ""), ({"odd": 5}, ""), ({"euros": 5.0}, ""), ({"ratio": True}, "must be number"),
    ],
)  # fmt: skip
def test_json_types(arguments, problem):
    """As JSON schema has them: 5.0 is an integer, True is none."""
    found = schema_problem(made_of(SCHEMA), {"to": "bob", **arguments})
    assert bool(problem) == bool(found)
    assert problem in found


def test_arguments_are_read_off_both_kinds_of_schemas():
    """Required arguments have no default."""
    assert {"to": True, "euros": False} == argument_names(made_of(Arguments))
    assert {"to": str, "euros": int} == argument_types(made_of(Arguments))
    schema = {"type": "object", "properties": {"to": {"type": "string"}, "n": {"default": 2}}, "required": ["to"]}
    assert {"to": True, "n": False} == argument_names(made_of(schema))
    assert {} == argument_types(made_of(schema))


def test_a_tool_without_a_schema_takes_the_names_that_are_known():
    """A process that has not seen the tool yet knows them from the decision."""
    assert argument_names(None) is None
    assert {} == argument_types(None)
    assert "" == schema_problem(None, {"any": 1})
    assert "there is no argument 'cents'; there are to, euros" == schema_problem(
        None, {"to": "bob", "cents": 1}, {"to": True, "euros": False}
    )
    assert "the argument 'to' is missing" == schema_problem(None, {"euros": 1}, {"to": True, "euros": False})


def test_a_schema_that_takes_more_takes_any_name():
    more = {**SCHEMA, "additionalProperties": True}
    assert "" == schema_problem(made_of(more), {"to": "bob", "cents": 1})


@pytest.mark.parametrize(
    ("declared", "value", "problem"),
    [
        (True, 1, ""), (False, 1, "a"), ({"type": {"x": 1}}, 1, ""), ({"type": [{}]}, 1, ""), (None, 1, ""), ([], 1, ""),
        ({"type": "string", "nullable": True}, None, ""), ({"type": "string", "nullable": True}, 5, "a"),
        ({"type": "array", "items": {"type": "string", "nullable": True}}, [None], ""),
        ({"$ref": "#/$defs/A", "nullable": True}, None, ""), ({"$ref": "#/$defs/A"}, None, "a"),
    ],
)  # fmt: skip
def test_any_schema_can_be_checked(declared, value, problem):
    """A schema may be a boolean, nonsense, or of OpenAPI; one that no validator can use is a problem of an edit alone."""
    schema = {"type": "object", "properties": {"a": declared}, "$defs": {"A": {"type": "integer"}}}
    found = _json_schema_problem(schema, {"a": value}, is_edit=False)
    assert problem in found
    assert bool(problem) == bool(found)


@pytest.mark.parametrize("part", [{"properties": None}, {"properties": [1]}, {"required": True}, {"type": 5}])
def test_a_schema_that_cannot_be_used_is_a_problem_of_an_edit(part):
    assert isinstance(schema_problem(made_of({**SCHEMA, **part}), {"to": "bob"}), str)
