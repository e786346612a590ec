"""JSON schemas by pydantic, with the type tag that each value gets in the encoding of arguments."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from grace_kp.approvals._arguments import NoEncoding, encode_value, qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

ENCODING = "x-encoding"
_MEMBERS = "x-members"


class TypedSchema(GenerateJsonSchema):
    """Adds `x-encoding` where a value is more than JSON, with the encoded members of an enum as `x-members`."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Return the schema of a Decimal."""
        return {**super().decimal_schema(schema), ENCODING: "$decimal"}

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        """Return the schema of a date."""
        return {**super().date_schema(schema), ENCODING: "$date"}

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        """Return the schema of a datetime."""
        return {**super().datetime_schema(schema), ENCODING: "$datetime"}

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        """Return the schema of a time."""
        return {**super().time_schema(schema), ENCODING: "$time"}

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        """Return the schema of a timedelta."""
        return {**super().timedelta_schema(schema), ENCODING: "$timedelta"}

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        """Return the schema of a UUID."""
        return {**super().uuid_schema(schema), ENCODING: "$uuid"}

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        """Return the schema of bytes."""
        return {**super().bytes_schema(schema), ENCODING: "$bytes"}

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        """Return the schema of a set."""
        return {**super().set_schema(schema), ENCODING: "$set"}

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        """Return the schema of a frozenset."""
        return {**super().frozenset_schema(schema), ENCODING: "$frozenset"}

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        """Return the schema of a tuple."""
        return {**super().tuple_schema(schema), ENCODING: "$tuple"}

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


def _members(members: Iterable[object]) -> dict[str, Any]:
    try:
        return {ENCODING: "$enum", _MEMBERS: [encode_value(member) for member in members]}
    except NoEncoding:
        return {}
