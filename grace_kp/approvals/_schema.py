"""The parameters of an action as a JSON schema, and a person's changes to arguments: checked by the schema, and encoded as the action expects them.

The schema describes values as people write them: a date is a string, a set is a list. The keyword `x-encoding` names the type tag of the encoding.
Parameters whose type is unknown or has no schema take any value; the process that runs the action checks them.

Edits are not guessed: neither the string "20" nor True is an integer. But where the schema asks for a date, a set or a member of an enum, a string, a
list or a value becomes one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import inspect
import json
import math
import pathlib
import re
import uuid
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import (
    NoEncoding,
    canonical,
    decode,
    encode_value,
    plain_json,
    qualified_name,
    tag_of,
)
from grace_kp.errors import MissingExtra, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

MAX_SCHEMA = 50_000
"""Maximum size of the schema of one parameter, in bytes; a larger one is left out."""
_ENCODING = "x-encoding"
_TAGGED = ("decimal", "date", "datetime", "time", "timedelta", "uuid", "bytes", "set", "frozenset", "tuple")
"""Types whose values get the tag of the same name."""
_NULL = {"type": "null"}
_VALUES = {"default", "examples", "example"}
_NAMED = {"properties", "$defs", "patternProperties", "dependentSchemas"}
"""Keywords whose keys are names, not keywords."""
_POSITIONAL, _KEYWORDS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def schema_of(
    signature: inspect.Signature, types: Mapping[str, object], *, leave_out: Collection[str] = ()
) -> dict[str, Any]:
    """Return the JSON schema of the arguments of an action. This takes milliseconds per type."""
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

    try:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError:
            adapter = TypeAdapter(declared)  # models, data classes and TypedDicts have their own configuration
        found = adapter.json_schema(ref_template=f"#/$defs/{name}.{{model}}", schema_generator=_generator())
        size = len(canonical(found))
    # A PydanticUndefinedAnnotation is a NameError.
    except (PydanticUserError, NameError, TypeError, AttributeError, ValueError, RecursionError):
        return {}
    if size > MAX_SCHEMA or not _tidy(found):
        return {}
    if "$defs" in found:
        found["$defs"] = {f"{name}.{key}": item for key, item in found["$defs"].items()}
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _generator() -> Any:
    """Return a generator of schemas that adds `x-encoding` to values beyond JSON, and the encoded members of an enum as `x-members`."""
    from pydantic.json_schema import GenerateJsonSchema

    class TypedSchema(GenerateJsonSchema):
        def build_schema_type_to_method(self) -> dict[Any, Callable[[Any], dict[str, Any]]]:
            methods: dict[Any, Any] = super().build_schema_type_to_method()
            adds: dict[Any, Callable[[Any], dict[str, Any]]] = {
                **{kind: functools.partial(_tag, f"${kind}") for kind in _TAGGED},
                # JSON would make strings of other keys.
                "dict": lambda schema: (
                    {} if schema.get("keys_schema", {"type": "any"})["type"] in {"str", "any"} else _tag("$dict")
                ),
                **dict.fromkeys(
                    ("model", "dataclass"), lambda schema: _tag("$model", **{"x-class": qualified_name(schema["cls"])})
                ),
                "enum": lambda schema: _members(schema["members"]),
                "literal": lambda schema: _members(schema["expected"]),
            }
            for kind, more in adds.items():
                methods[kind] = _with(methods[kind], more)
            return methods

    return TypedSchema


def _with(
    method: Callable[[Any], dict[str, Any]], more: Callable[[Any], dict[str, Any]]
) -> Callable[[Any], dict[str, Any]]:
    return lambda schema: {**method(schema), **more(schema)}


def _tag(tag: str, _: object = None, **more: Any) -> dict[str, Any]:
    return {_ENCODING: tag, **more}


def _members(members: Iterable[object]) -> dict[str, Any]:
    if not any(isinstance(member, enum.Enum) for member in members):
        return {}
    try:
        return _tag("$enum", **{"x-members": [encode_value(member) for member in members]})
    except NoEncoding:
        return {}


def _tidy(schema: object) -> bool:
    """Drop defaults and examples, which may be secrets, and patterns that only pydantic reads; return whether all references stay inside of the schema."""
    stack = [(schema, True)]
    is_closed = True
    while stack:
        current, is_schema = stack.pop()
        if isinstance(current, list):
            stack += [(item, True) for item in current]
        if not isinstance(current, dict):
            continue
        if is_schema:
            for name in _VALUES & current.keys():
                del current[name]
            references = [current.get(key, "#/$defs/") for key in ("$ref", "$dynamicRef", "$id", "$schema")]
            is_closed = is_closed and all(str(each).startswith("#/$defs/") for each in references)
            pattern = current.get("pattern")
            try:
                re.compile(pattern if isinstance(pattern, str) else "")
            except re.error:
                del current["pattern"]
        stack += [(item, not is_schema or name not in _NAMED) for name, item in current.items()]
    return is_closed


# Edits


TEXTS = {
    "$date": "a date such as 2026-01-31",
    "$datetime": "a date with time such as 2026-01-31T12:00:00+01:00",
    "$time": "a time such as 12:00:00",
    "$timedelta": "a duration such as P1DT3600S",
    "$uuid": "a UUID",
    "$decimal": "a decimal number such as 1.10",
}
LISTS = {"$tuple", "$set", "$frozenset"}


class Misfit(ValueError):
    """A value does not fit its schema."""


def member_of(schema: dict[str, Any], value: Any, place: str) -> Any:
    """Return the encoded member of an enum that a value names or encodes."""
    members = schema.get("x-members", [])
    for member in members:
        plain = member["value"] if tag_of(member) == "$model" else member
        if canonical(value) in {canonical(form) for form in (member, plain, plain_json(member))}:
            return member
    allowed = ", ".join(brief(plain_json(member)) for member in members)
    raise Misfit(f"{place}: {brief(plain_json(value))} is none of {allowed}")


def from_text(encoding: str, value: Any, place: str) -> Any:
    """Return the encoding of a string that a person wrote for a value with this tag; other values are returned unchanged."""
    if encoding == "$decimal" and type(value) in {int, float}:
        value = repr(value)
    if encoding == "$decimal" and tag_of(value) in {"$float", "$int"}:
        value = value[tag_of(value)]
    if not isinstance(value, str) or encoding in LISTS:
        return value  # the check by the schema follows
    if encoding in {"$bytes", "$path"}:
        return encode_value(pathlib.Path(value) if encoding == "$path" else value.encode())
    try:
        meant = _READ[encoding](value)
        if not isinstance(meant, decimal.Decimal) or meant.is_finite():
            return encode_value(meant)  # a person need not write the canonical form
    except (ArithmeticError, NoEncoding, ValueError):
        pass
    raise Misfit(f"{place}: {brief(value)} is not {TEXTS[encoding]}")


_READ: dict[str, Callable[[str], object]] = {
    "$date": dt.date.fromisoformat,
    "$datetime": dt.datetime.fromisoformat,
    "$time": dt.time.fromisoformat,
    "$uuid": uuid.UUID,
    "$decimal": decimal.Decimal,
    "$timedelta": lambda written: decode({"": {"$timedelta": written}})[""],
}


_NUMBERS = {"$int", "$float", "$text"}
"""Tags of values that are plain JSON for a schema."""


def fitted_edit(
    schema: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    action: str = "the action",
    current: Mapping[str, Any] | None = None,
    hidden: Collection[str] = (),
    has_instances: bool = False,
) -> dict[str, Any]:
    """Check changes to the arguments of a request, and return them in their encoding."""
    properties = schema.get("properties", {key: {} for key in changes})
    if not isinstance(properties, dict):
        raise ValueError(f"the schema of {action} cannot be used: its properties are not an object")
    fitted: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in properties:
            raise ValueError(f"{action} has no parameter {name!r:.60}; it has {', '.join(properties) or 'none'}")
        try:
            encoded = _with_tagged_numbers(value, name)
            try:
                form = canonical(encoded)
            except ValueError as error:
                raise Misfit(f"{name}: cannot be stored as JSON ({error})") from None
            is_kept = current is not None and name in current and form == canonical(current[name])
            fitted[name] = encoded if is_kept else _Fit(schema, has_instances).argument(name, properties[name], encoded)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, UnicodeError):
            raise ValueError(f"{name}: cannot be stored as JSON") from None
        except ValueError as error:
            raise ValueError(f"{name}: does not fit the parameter" if name in hidden else str(error)) from None
    return fitted


class _Fit:
    """One check, against the schema whose definitions it refers to."""

    def __init__(self, schema: Mapping[str, Any], has_instances: bool) -> None:
        self._definitions = schema.get("$defs", {})
        self._has_instances = has_instances

    def argument(self, name: str, schema: dict[str, Any], value: Any) -> Any:
        if not _has_model(value):
            decode({name: value})  # refuses damaged tags
        fitted = self._fit(schema, value, name)
        if problem := self._problem(schema, fitted, name):
            raise Misfit(problem)
        return fitted

    def _fit(self, schema: Any, value: Any, place: str) -> Any:
        """Return the value with the type tags that the schema asks for, unless it does not fit; the check that follows reports that."""
        schema = self._resolve(schema)
        tag = tag_of(value)
        if not schema:
            if _has_model(value) and not self._has_instances:
                raise Misfit(
                    f"{place}: holds an instance of a class, which cannot be written here; reject it, or respond with words"
                )
            return value
        encoding = schema.get("x-encoding", "$path" if schema.get("format") == "path" else "")
        if encoding:
            return self._tag(encoding, schema, value, place)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            return self._branch(branches, value, place)
        if tag and tag not in {*_NUMBERS, "$dict"} and schema.keys() & {"type", "enum", "const"}:
            raise Misfit(f"{place}: a {tag[1:]} does not fit the type {schema.get('type', 'of its values')}")
        if isinstance(value, list):
            return self._items(schema, value, place)
        if isinstance(value, dict) and not tag:
            properties, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
            return {
                key: self._fit(properties.get(key, rest), item, f"{place}.{key:.60}") for key, item in value.items()
            }
        return value

    def _tag(self, encoding: str, schema: dict[str, Any], value: Any, place: str) -> Any:
        tag = tag_of(value)
        if encoding == "$enum":
            return member_of(schema, value, place)
        if encoding == "$model":
            if self._has_instances and tag == "$model" and value["$model"] == schema.get("x-class"):
                return value
            raise Misfit(
                f"{place}: is a {schema.get('x-class', 'class')}, whose values cannot be written here; reject it, or respond with words"
            )
        if encoding in LISTS and (isinstance(value, list) or tag == encoding):
            items = self._items(schema, value if isinstance(value, list) else value[encoding], place)
            unique = {canonical(item): item for item in items}
            return {encoding: items if encoding == "$tuple" else [unique[form] for form in sorted(unique)]}
        if encoding == "$dict":
            if tag == "$dict" or value == {}:
                return value
            raise Misfit(f"{place}: has keys that are not strings; write it as a $dict with a list of pairs")
        if encoding == "$decimal" and tag in {"$float", "$int"}:
            return from_text(encoding, value, place)
        if tag and not (tag == encoding or (encoding, tag) == ("$bytes", "$bytearray")):
            raise Misfit(f"{place}: a {tag[1:]} does not fit, it takes {TEXTS.get(encoding, encoding[1:])}")
        if tag:
            decode({place: value})  # refuses a damaged one
            return value
        return from_text(encoding, value, place)

    def _branch(self, branches: list[Any], value: Any, place: str) -> Any:
        """Return the value for the first branch that takes it, preferably unchanged."""
        fits: list[Any] = []
        first: Misfit | None = None
        for branch in branches:
            try:
                fitted = self._fit(branch, value, place)
                fits += [] if self._problem(branch, fitted, place) else [fitted]
            except Misfit as problem:
                first = first or problem
        if first is not None and not fits:
            raise first
        return value if value in fits or not fits else fits[0]

    def _items(self, schema: dict[str, Any], values: list[Any], place: str) -> list[Any]:
        first = schema.get("prefixItems", [])
        rest = schema.get("items", {})
        return [
            self._fit(first[number] if number < len(first) else rest, item, f"{place}[{number}]")
            for number, item in enumerate(values)
        ]

    def _resolve(self, schema: Any) -> dict[str, Any]:
        for _ in range(20):
            if not isinstance(schema, dict) or "$ref" not in schema:
                break
            target = self._definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"), {})
            schema = {**target, **{key: item for key, item in schema.items() if key != "$ref"}}
        return schema if isinstance(schema, dict) else {}

    def _problem(self, schema: Any, fitted: Any, place: str) -> str:
        if not isinstance(schema, dict) or not schema or (self._has_instances and _has_model(fitted)):
            return ""
        validator = _validator({**schema, "$defs": self._definitions})
        from jsonschema.exceptions import best_match

        try:
            errors = list(validator(plain_json(fitted, decimal=_number)))
        except Exception as error:  # noqa: BLE001 — a schema may come from a foreign server, and break a validator anywhere
            return f"{place}: the schema of the action cannot be used ({type(error).__name__})"
        if not errors:
            return ""
        worst: Any = best_match(iter(errors))
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in worst.absolute_path)
        return f"{place}{steps}: {worst.message[:300]}"


def _validator(schema: dict[str, Any]) -> Callable[[Any], Iterator[Any]]:
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend
        from referencing import Registry
    except ImportError:
        raise MissingExtra("Checking edited arguments", "approvals") from None
    kinds = {"integer": {int}, "number": {int, float}}
    checks = {name: lambda _, value, kinds=of: type(value) in kinds for name, of in kinds.items()}
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(checks)
    kind: Any = extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]
    # With an empty registry no reference leaves the schema.
    return kind(schema, registry=Registry()).iter_errors  # type: ignore[no-any-return]


def _has_model(value: Any) -> bool:
    if isinstance(value, dict):
        return "$model" in value or any(map(_has_model, value.values()))
    return isinstance(value, list) and any(map(_has_model, value))


def _with_tagged_numbers(value: Any, name: str) -> Any:
    """Return plain JSON with the tags of whole floats and of large integers."""
    if type(value) is float and not math.isfinite(value):
        raise Misfit(f"{name}: cannot be stored as JSON ({value})")
    if type(value) in {float, int}:
        try:
            return encode_value(value)
        except NoEncoding as error:
            raise Misfit(f"{name}: {error}") from None
    if isinstance(value, list):
        return [_with_tagged_numbers(item, name) for item in value]
    if isinstance(value, dict):
        return {key: _with_tagged_numbers(item, name) for key, item in value.items()}
    return value


def _number(text: str) -> Any:
    """Return the number in a string for a check of its bounds; the string if it is not a finite number."""
    value = float(text) if text.strip("+-").lower()[:1] not in {"n", "s", "i"} else math.nan
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() else value
