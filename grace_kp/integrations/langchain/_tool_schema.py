"""The arguments that a tool takes, read off its schema, and what is wrong with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.gating import problem_with

if TYPE_CHECKING:
    from collections.abc import Mapping

_JSON_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list | tuple,
    "object": dict,
    "null": type(None),
}


def argument_names(tool: object) -> dict[str, bool] | None:
    """Return the arguments that a model may pass to a tool, and whether each is required; None where the tool has no schema."""
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        required = schema.get("required") or ()
        return {name: name in required for name in schema.get("properties") or {}}
    fields = getattr(schema, "model_fields", None)
    if not isinstance(fields, dict):
        return None
    return {field.alias or name: field.is_required() for name, field in fields.items()}


def argument_defaults(tool: object) -> dict[str, Any]:
    """Return the values that a tool uses for arguments that are left out, as far as its schema states them."""
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        properties = schema.get("properties") or {}
        return {name: item["default"] for name, item in properties.items() if "default" in item}
    fields = getattr(schema, "model_fields", None)
    if not isinstance(fields, dict):
        return {}
    return {
        field.alias or name: field.default
        for name, field in fields.items()
        if not field.is_required() and field.default_factory is None
    }


def schema_problem(tool: object, arguments: Mapping[str, Any], names: Mapping[str, bool] | None = None) -> str:
    """Return what is wrong with arguments for a tool; an empty text where nothing is.

    Args:
        tool: the tool; None in a process that has not seen it yet.
        arguments: the arguments.
        names: its arguments, and whether each is required, for a tool that is None.
    """
    names = argument_names(tool) or names
    if names:
        unknown = [name for name in arguments if name not in names]
        if unknown and not _takes_more(tool):
            return f"there is no argument {unknown[0]!r}; there are {', '.join(names)}"
        missing = [name for name, required in names.items() if required and name not in arguments]
        if missing:
            return f"the argument {missing[0]!r} is missing"
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        return _json_schema_problem(schema, arguments)
    return "" if schema is None else problem_with(dict(arguments), schema)


def _json_schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the types of arguments for a JSON schema, as far as it names plain types."""
    properties = schema.get("properties") or {}
    for name, value in arguments.items():
        kinds = properties.get(name, {}).get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or []
        if kinds and not any(_has_json_type(value, kind) for kind in kinds):
            return f"{name}: must be {' or '.join(kinds)}, not {type(value).__name__}"
    return ""


def _has_json_type(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and kind == "integer":
        return value.is_integer()
    return isinstance(value, _JSON_TYPES.get(kind, object))


def _takes_more(tool: object) -> bool:
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        return bool(schema.get("additionalProperties", False))
    config = getattr(schema, "model_config", None)
    return isinstance(config, dict) and config.get("extra") == "allow"
