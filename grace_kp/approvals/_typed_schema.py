"""JSON schemas by pydantic, with the type tag that each value gets in the encoding of arguments."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from grace_kp.approvals._arguments import NoEncoding, encode_value, qualified_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

ENCODING = "x-encoding"
_MEMBERS = "x-members"
_TAGGED: Any = ("decimal", "date", "datetime", "time", "timedelta", "uuid", "bytes", "set", "frozenset", "tuple")
"""Types of schemas whose values get the tag of the same name."""


class TypedSchema(GenerateJsonSchema):
    """Adds `x-encoding` where a value is more than JSON, with the encoded members of an enum as `x-members`."""

    def build_schema_type_to_method(self) -> dict[Any, Callable[[Any], JsonSchemaValue]]:
        """Return the method for each type of schema; those of tagged types add the tag."""
        methods = super().build_schema_type_to_method()
        return {**methods, **{kind: _with_encoding(methods[kind], f"${kind}") for kind in _TAGGED}}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Return the schema of a dict. Keys that are no texts are marked, because JSON would make texts of them."""
        found = super().dict_schema(schema)
        keys = schema.get("keys_schema", {"type": "any"})["type"]
        return found if keys in {"str", "any"} else {**found, ENCODING: "$dict"}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a pydantic model."""
        return {**super().model_schema(schema), ENCODING: "$model", "x-class": qualified_name(schema["cls"])}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Return the schema of a data class."""
        return {**super().dataclass_schema(schema), ENCODING: "$model", "x-class": qualified_name(schema["cls"])}

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Return the schema of an enum."""
        return {**super().enum_schema(schema), **_members(schema["members"])}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """Return the schema of a Literal, which may hold members of enums."""
        found = super().literal_schema(schema)
        has_members = any(isinstance(item, enum.Enum) for item in schema["expected"])
        return {**found, **_members(schema["expected"])} if has_members else found


def _with_encoding(method: Callable[[Any], JsonSchemaValue], encoding: str) -> Callable[[Any], JsonSchemaValue]:
    return lambda schema: {**method(schema), ENCODING: encoding}


def _members(members: Iterable[object]) -> dict[str, Any]:
    try:
        return {ENCODING: "$enum", _MEMBERS: [encode_value(member) for member in members]}
    except NoEncoding:
        return {}
