"""The parameters of an action as a JSON schema, with which an edit can be checked where the action itself is unknown.

The schema describes values as a person writes them: a date is a text, a set is a list. The keyword `x-encoding` names the type tag that such a value
gets. Parameters whose type is unknown or has no schema may hold anything; the process that executes the action checks them.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MAX_SCHEMA = 50_000
"""Bytes that the schema of one parameter may have; a larger one is left out."""
_NULL = {"type": "null"}
_VALUES = {"default", "examples", "example"}
_NAMED = {"properties", "$defs", "patternProperties", "dependentSchemas"}
"""Keywords of objects whose keys are names and no keywords."""
_POSITIONAL, _KEYWORDS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def schema_of(
    signature: inspect.Signature, types: Mapping[str, object], *, leave_out: Collection[str] = ()
) -> dict[str, Any]:
    """Return the JSON schema of an action's arguments by parameter name. It takes milliseconds per type; keep it per action."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in signature.parameters.items():
        if name in leave_out:
            continue
        found = _schema_of_type(name, types[name]) if name in types else {}
        definitions.update(found.pop("$defs", {}))
        if parameter.kind is _POSITIONAL:
            found = {"type": "array", "items": found, "x-encoding": "$tuple"}
        elif parameter.kind is _KEYWORDS:
            found = {"type": "object", "additionalProperties": found}
        elif parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is None and found and _NULL not in found.get("anyOf", ()):
            found = {"anyOf": [found, _NULL]}
        properties[name] = found
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if definitions:
        whole["$defs"] = definitions
    return {**whole, "additionalProperties": False}


def _schema_of_type(name: str, declared: Any) -> dict[str, Any]:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    from grace_kp.approvals._typed_schema import TypedSchema

    unusable = (
        PydanticUserError,
        PydanticUndefinedAnnotation,
        NameError,
        TypeError,
        AttributeError,
        ValueError,
        RecursionError,
    )
    try:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError:
            adapter = TypeAdapter(declared)  # models, data classes and TypedDicts have their own configuration
        found = adapter.json_schema(ref_template=f"#/$defs/{name}.{{model}}", schema_generator=TypedSchema)
        size = len(canonical(found))
    except unusable:
        return {}
    if size > MAX_SCHEMA or any(not ref.startswith("#/$defs/") for ref in _references(found)):
        return {}
    _tidy(found)
    if "$defs" in found:
        found["$defs"] = {f"{name}.{key}": item for key, item in found["$defs"].items()}
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _tidy(schema: object) -> None:
    """Drop defaults and examples, which no check needs and which may be secrets, and regular expressions that only the engine of pydantic reads.

    The process that executes the action applies these expressions.
    """
    stack = [(schema, True)]
    while stack:
        current, is_schema = stack.pop()
        if isinstance(current, list):
            stack += [(item, True) for item in current]
        if not isinstance(current, dict):
            continue
        if is_schema:
            for name in _VALUES & current.keys():
                del current[name]
            pattern = current.get("pattern")
            if isinstance(pattern, str) and not _can_be_read(pattern):
                del current["pattern"]
        stack += [(item, not is_schema or name not in _NAMED) for name, item in current.items()]


def _can_be_read(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _references(schema: object) -> Iterator[str]:
    stack = [schema]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            yield from (str(current[key]) for key in ("$ref", "$dynamicRef", "$id", "$schema") if key in current)
            stack += current.values()
        elif isinstance(current, list):
            stack += current
