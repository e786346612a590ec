"""The fields of the form that edits a request: one per argument, of a kind that fits its schema and value.

A field that comes back unchanged changes nothing. A changed field is parsed as the kind of the present value and checked by the schema of the
action.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import KEY_FIELD, NOT_COVERED, SEALED_REMARK, canonical, decode, encode, fitted_edit, json_text
from grace_kp.errors import brief
from grace_kp.pages import printable
from grace_kp.web._site import read_json
from grace_kp.web.inbox._words import read_codes, write_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.approvals import Approval

HINTS: Mapping[str, str] = {
    "$date": "a date such as 2026-01-31",
    "$datetime": "a date with time such as 2026-01-31T12:00:00+01:00",
    "$time": "a time such as 12:00:00",
    "$timedelta": "a duration such as P1DT3600S: one day and 3,600 seconds",
    "$uuid": "a UUID",
    "$decimal": "a decimal number such as 1.10",
    "$path": "a path",
}
"""Hints for values that are written on one line, by type tag."""


class Misread(ValueError):
    """A field does not contain a value of its kind; the message states the allowed form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentField:
    """One argument in the form."""

    name: str
    """Name of the parameter."""
    number: int
    """Its place among the arguments; names of form fields contain it, because a parameter's name may hold anything."""
    kind: str
    """`text`, `number`, `line`, `choice`, `json`, or `fixed` for a value that cannot be edited."""
    text: str = ""
    """The text in the field; for a choice, the number of the chosen one."""
    tag: str = ""
    """Type tag of a value that is written as one line."""
    is_null: bool = False
    """Whether the value is null, if the field has a box for that."""
    is_nullable: bool = False
    choices: Sequence[Any] = ()
    """The values that the parameter can have, encoded."""
    hint: str = ""
    """How to write the value; for a fixed field, why it cannot be edited."""
    problem: str = ""
    """The problem with the submitted string."""

    @property
    def rows(self) -> int:
        return min(max(sum(1 + len(line) // 70 for line in self.text.split("\n")), 1), 16)

    @property
    def labels(self) -> list[str]:
        return [_label(choice) for choice in self.choices]


def fields_of(approval: Approval) -> list[ArgumentField]:
    return [_field(approval, number, name) for number, name in enumerate(approval.encoded)]


def changed_value(approval: Approval, field: ArgumentField, submitted: str | None, *, is_null: bool) -> Any:
    """Return the new value of an argument, encoded and checked; the present one where nothing was changed."""
    now = approval.encoded[field.name]
    if submitted is None or field.kind == "fixed":
        return now
    text = submitted.replace("\r\n", "\n").replace("\r", "\n")
    becomes_null = is_null and field.kind == "text" and field.is_nullable
    if becomes_null == field.is_null and (becomes_null or text == field.text):
        return now
    value = None if becomes_null else _read(field, text, now)
    fitted = fitted_edit(
        approval.schema, {field.name: value}, action=approval.action, current=approval.encoded, hidden=approval.sealed
    )[field.name]
    return now if canonical(fitted) == canonical(now) else fitted


def with_submitted(field: ArgumentField, submitted: str | None, *, is_null: bool, problem: str) -> ArgumentField:
    """Return a field with the submitted string, for a form that is shown again."""
    if submitted is None or field.kind == "fixed":
        return field
    if field.kind == "json":
        text = printable(submitted, keep="\r\n", replace=lambda character: json.dumps(character)[1:-1])
        return replace(field, text=text, problem=problem)
    text = write_codes(read_codes(submitted.replace("\r\n", "\n").replace("\r", "\n")))
    return replace(field, text=text, is_null=is_null, problem=problem)


def _field(approval: Approval, number: int, name: str) -> ArgumentField:
    now, schema = approval.encoded[name], approval.schema
    base, is_nullable = _base(_resolve_reference(_object(schema.get("properties")).get(name), schema), schema)
    encoding = str(base.get("x-encoding", "$path" if base.get("format") == "path" else ""))
    new_field = functools.partial(ArgumentField, name=name, number=number)
    fixed = [
        (name in approval.key_fields, KEY_FIELD),
        (name in approval.sealed, SEALED_REMARK),
        (name in approval.not_covered, NOT_COVERED),
        (encoding != "$enum" and _has_model(now), _HAS_MODEL),
    ]
    if reason := next((reason for is_fixed, reason in fixed if is_fixed), ""):
        return new_field(kind="fixed", hint=reason)
    choices = _choices(base, is_nullable)
    if choices:
        place = [canonical(choice) for choice in [*choices, now]].index(canonical(now))
        return new_field(kind="choice", text=str(place), choices=[*choices, now] if place == len(choices) else choices)
    new_field = functools.partial(new_field, is_nullable=is_nullable)
    tag = next((key for key in now if key.startswith("$")), "") if isinstance(now, dict) else ""
    is_null = now is None and is_nullable
    or_empty = ", or empty for no value" if is_nullable else ""
    if (tag in HINTS and encoding in {tag, ""} and isinstance(now[tag], str)) or (is_null and encoding in HINTS):
        written = tag or encoding
        text = "" if is_null else write_codes(now[tag], keep="")
        return new_field(kind="line", text=text, tag=written, hint=f"{HINTS[written]}{or_empty}")
    kind = "" if encoding else base.get("type", "")
    if kind in ("integer", "number") and (is_null or type(now) in {int, float} or tag in {"$int", "$float"}):
        text = "" if is_null else str(now[tag]) if tag else json.dumps(now)
        words = "a whole number" if kind == "integer" else "a number"
        return new_field(kind="number", text=text, hint=f"{words}{or_empty}")
    # A string with half a surrogate pair is encoded by a tag, because JSON cannot hold it.
    text_now: Any = decode({name: now})[name] if tag == "$text" else now
    is_any = not base and not encoding
    if (kind == "string" or is_any) and (isinstance(text_now, str) or (is_null and not is_any)):
        return new_field(kind="text", text=write_codes(text_now or ""), is_null=is_null)
    return new_field(kind="json", text=json_text(_with_numbers(now), indent=2), hint="JSON", is_nullable=False)


_HAS_MODEL = "an object of a class, whose values cannot be written here; reject the request, or respond with words"


def _choices(base: Mapping[str, Any], is_nullable: bool) -> list[Any]:
    if "x-encoding" in base:
        members = base.get("x-members") if base["x-encoding"] == "$enum" else []
    else:
        values = [True, False] if base.get("type") == "boolean" else []
        values = base.get("enum", [base["const"]] if "const" in base else values)
        members = [encode({"": each})[0].get("", each) for each in values] if isinstance(values, list) else []
    if not isinstance(members, list) or not members:
        return []
    return [*members, *([None] if is_nullable and None not in members else [])]


def _label(encoded: Any) -> str:
    """Return a value for a list of choices: a member of an enum by its value."""
    if isinstance(encoded, dict) and "$model" in encoded:
        encoded = encoded.get("value", encoded)
    if encoded is None:
        return "no value"
    return write_codes(encoded, keep="") if isinstance(encoded, str) else json_text(encoded)


def _read(field: ArgumentField, text: str, now: Any) -> Any:
    if field.kind == "choice":
        if not text.isdecimal() or int(text) >= len(field.choices):
            raise Misread("choose one of the values")
        return field.choices[int(text)]
    if field.kind == "text":
        return _encode_value(read_codes(text))
    if field.is_nullable and not text.strip():
        return None
    if field.kind == "number":
        return _number(text.strip(), field.hint)
    if field.kind == "json":
        return parsed_json(text)
    return _line(field, read_codes(text) if field.tag == "$path" else text.strip(), now)


def _number(text: str, hint: str) -> int | float:
    try:
        value = parsed_json(text)
    except Misread:
        value = None
    if type(value) not in {int, float} or not math.isfinite(value):
        raise Misread(f"{brief(text)} is not {hint} that can be kept")
    return value  # type: ignore[no-any-return]


def _line(field: ArgumentField, text: str, now: Any) -> Any:
    """Parse a date, duration or the like. The value keeps its named time zone if the offset belongs to that zone."""
    rest = {key: item for key, item in now.items() if key in {"zone", "name"}} if isinstance(now, dict) else {}
    for form in [{field.tag: text, **rest, **({"fold": 1} if fold else {})} for fold in ([0, 1] if rest else [0])]:
        try:
            return _encode_value(decode({field.name: form})[field.name])
        except (ValueError, ArithmeticError):
            continue
    zone = f", in the time zone {rest['zone']} with its offset at that time" if "zone" in rest else ""
    raise Misread(f"{brief(text)} is not {field.hint}{zone}")


def parsed_json(text: str) -> Any:
    """Parse JSON.

    Raises:
        Misread: the string is not JSON, or cannot be stored.
    """
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        raise Misread(f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise Misread(f"is not JSON that can be kept: {str(error)[:100]}") from None


def _encode_value(value: object) -> Any:
    encoded, problems = encode({"": value})
    if problems:
        raise Misread(problems[""])
    return encoded[""]


def _with_numbers(encoded: Any) -> Any:
    """Return an encoded value with whole floats and large integers as numbers of JSON, which `fitted_edit` tags again."""
    if isinstance(encoded, list):
        return [_with_numbers(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if set(encoded) == {"$int"}:
        return int(encoded["$int"])
    if set(encoded) == {"$float"} and math.isfinite(float(encoded["$float"])):
        return float(encoded["$float"])
    return {key: _with_numbers(item) for key, item in encoded.items()}


def _has_model(encoded: Any) -> bool:
    if isinstance(encoded, dict):
        return "$model" in encoded or any(map(_has_model, encoded.values()))
    return isinstance(encoded, list) and any(map(_has_model, encoded))


def _base(declared: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the schema of a parameter without null, and whether null is allowed. Several alternatives do not describe a field."""
    branches = declared.get("anyOf") or declared.get("oneOf")
    if isinstance(declared.get("type"), list):
        branches = [{**declared, "type": kind} for kind in declared["type"]]
    if not isinstance(branches, list):
        return declared, False
    resolved = [_resolve_reference(branch, whole) for branch in branches]
    others = [branch for branch in resolved if branch.get("type") != "null"]
    return others[0] if len(others) == 1 else {"anyOf": others}, len(others) < len(branches)


def _resolve_reference(schema: Any, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(20):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        target = _object(whole.get("$defs")).get(str(schema["$ref"]).removeprefix("#/$defs/"))
        schema = {**_object(target), **{key: item for key, item in schema.items() if key != "$ref"}}
    return _object(schema)


def _object(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, dict) else {}
