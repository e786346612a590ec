"""Edited arguments are checked by the schema of the tool, whatever kind of schema it is."""

from __future__ import annotations

import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from grace_kp.integrations.langchain._tool_schema import (
    _json_schema_problem,
    schema_problem,
)

pytest.importorskip("langchain", reason="needs the extra langchain")


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


CHECKED_ALIKE = [
    ({"to": "bob"}, ""), ({"to": "bob", "euros": 5}, ""), ({"to": "bob", "euros": "5"}, "euros"),
    ({"to": "bob", "euros": 5.5}, "euros"), ({"to": "bob", "euros": True}, "euros"), ({"to": 5}, "to"),
    ({"euros": 5}, "'to' is missing"), ({"to": "bob", "cents": 5}, "no argument 'cents'"),
]  # fmt: skip
# As JSON schema has them: 5.0 is an integer, True is none.
JSON_TYPES = [
    ({"ratio": None}, ""), ({"ratio": 5}, ""), ({"ratio": "5"}, "ratio"), ({"fast": True}, ""), ({"fast": 1}, "fast"),
    ({"lines": "a"}, "lines"), ({"any": object}, ""), ({"odd": 5}, ""), ({"euros": 5.0}, ""), ({"ratio": True}, "ratio"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "arguments", "problem"),
    [(schema, *case) for schema in (Arguments, SCHEMA) for case in CHECKED_ALIKE]
    + [(SCHEMA, {"to": "bob", **arguments}, problem) for arguments, problem in JSON_TYPES],
)
def test_models_and_json_schemas_are_checked(schema, arguments, problem):
    found = schema_problem(made_of(schema), arguments)
    assert bool(problem) == bool(found)
    assert problem in found


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
