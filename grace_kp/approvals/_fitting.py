"""A person's changes to the arguments of a request: checked by the schema of the action, and encoded as the action expects them.

Nothing is guessed: the string "20" is not an integer, and neither is True. A value beyond JSON may be written as a person writes it: the string
"2026-01-02" becomes a date where the schema asks for a date, a list becomes a set, and the value of an enum becomes its member.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import pathlib
import uuid
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import NoEncoding, canonical, decode, encode_value, plain_json, tag_of
from grace_kp.errors import MissingExtra, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


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
    """A value that is no value of its schema."""


def member_of(schema: dict[str, Any], value: Any, place: str) -> Any:
    """Return the encoded member of an enum that a value names or encodes."""
    members = schema.get("x-members", [])
    for member in members:
        plain = member["value"] if tag_of(member) == "$model" else member
        if canonical(value) in {canonical(form) for form in (member, plain, plain_json(member))}:
            return member
    allowed = ", ".join(brief(plain_json(member)) for member in members)
    raise Misfit(f"{place}: {brief(plain_json(value))} is none of {allowed}")


def list_of(encoding: str, items: list[Any]) -> dict[str, Any]:
    """Return the encoding of a tuple or set from its encoded items."""
    if encoding == "$tuple":
        return {encoding: items}
    unique = {canonical(item): item for item in items}
    return {encoding: [unique[form] for form in sorted(unique)]}


def from_text(encoding: str, value: Any, place: str) -> Any:
    """Return the encoding of what a person wrote where a value with this tag is asked for; what is no text, as it is."""
    if encoding == "$decimal" and type(value) in {int, float}:
        value = repr(value)
    if encoding == "$decimal" and tag_of(value) in {"$float", "$int"}:
        value = value[tag_of(value)]
    if not isinstance(value, str) or encoding in LISTS:
        return value  # the check by the schema says what it takes
    if encoding in {"$bytes", "$path"}:
        return encode_value(pathlib.Path(value) if encoding == "$path" else value.encode())
    try:
        return _canonical_form(encoding, value)
    except ValueError:
        raise Misfit(f"{place}: {brief(value)} is no {TEXTS[encoding].removeprefix('a ')}") from None


def _canonical_form(encoding: str, text: str) -> Any:
    """Return the encoding of what a text means; a person need not write its canonical form."""
    read: dict[str, Callable[[str], object]] = {
        "$date": dt.date.fromisoformat,
        "$datetime": dt.datetime.fromisoformat,
        "$time": dt.time.fromisoformat,
        "$uuid": uuid.UUID,
        "$decimal": lambda written: _finite(decimal.Decimal(written)),
        "$timedelta": lambda written: decode({"": {"$timedelta": written}})[""],
    }
    try:
        return encode_value(read[encoding](text))
    except (ArithmeticError, NoEncoding) as error:
        raise ValueError(str(error)) from None


def _finite(number: decimal.Decimal) -> decimal.Decimal:
    if not number.is_finite():
        raise ValueError("not finite")
    return number


_NUMBERS = {"$int", "$float", "$text"}
"""Tags of values that a schema of JSON describes."""


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
        raise ValueError(f"the schema of {action} cannot be used: its properties are no object")
    fitted: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in properties:
            raise ValueError(f"{action} has no parameter {name!r:.60}; it has {', '.join(properties) or 'none'}")
        try:
            encoded = _with_tagged_numbers(value, name)
            try:
                form = canonical(encoded)
            except ValueError as error:
                raise Misfit(f"{name}: is no JSON that can be kept ({error})") from None
            is_kept = current is not None and name in current and form == canonical(current[name])
            fitted[name] = encoded if is_kept else _Fit(schema, has_instances).argument(name, properties[name], encoded)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, UnicodeError):
            raise ValueError(f"{name}: is no JSON that can be kept") from None
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
            decode({name: value})  # finds damaged tags
        fitted = self._fit(schema, value, name)
        if problem := self._problem(schema, fitted, name):
            raise Misfit(problem)
        return fitted

    def _fit(self, schema: Any, value: Any, place: str) -> Any:
        """Return the value with the type tags that the schema asks for. Where it does not fit, the check that follows says so."""
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
            raise Misfit(f"{place}: a {tag[1:]} does not fit, it takes {_kind(schema)}")
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
            return list_of(encoding, items)
        if encoding == "$dict":
            if tag == "$dict" or value == {}:
                return value
            raise Misfit(f"{place}: has keys that are no texts; write it as a $dict with a list of pairs")
        if encoding == "$decimal" and tag in {"$float", "$int"}:
            return from_text(encoding, value, place)
        if tag and not (tag == encoding or (encoding, tag) == ("$bytes", "$bytearray")):
            raise Misfit(f"{place}: a {tag[1:]} does not fit, it takes {TEXTS.get(encoding, encoding[1:])}")
        if tag:
            decode({place: value})  # refuses a damaged one
            return value
        return from_text(encoding, value, place)

    def _branch(self, branches: list[Any], value: Any, place: str) -> Any:
        """The first branch that takes the value unchanged, else the first that takes it."""
        fits: list[Any] = []
        problems: list[Misfit] = []
        for branch in branches:
            try:
                fitted = self._fit(branch, value, place)
            except Misfit as problem:
                problems.append(problem)
                continue
            if not self._problem(branch, fitted, place):
                fits.append(fitted)
        if fits:
            return next((fitted for fitted in fits if fitted == value), fits[0])
        if problems:
            raise problems[0]
        return value

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
        """Return what is wrong with a value for a schema; empty where nothing is."""
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
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: type(value) is int,
            "number": lambda _, value: type(value) in {int, float},
        }
    )
    # The registry holds nothing, so that no reference leaves the schema.
    kind: Any = extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]
    validator = kind(schema, registry=Registry())
    return validator.iter_errors  # type: ignore[no-any-return]


def _has_model(value: Any) -> bool:
    if isinstance(value, dict):
        return "$model" in value or any(map(_has_model, value.values()))
    return isinstance(value, list) and any(map(_has_model, value))


def _with_tagged_numbers(value: Any, name: str) -> Any:
    """Plain JSON with the tags of whole floats, and of integers beyond what JSON keeps."""
    if type(value) is float and not math.isfinite(value):
        raise Misfit(f"{name}: is no JSON that can be kept ({value})")
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
    """A Decimal for a check of its bounds; its text where it is no finite number."""
    value = float(text) if text.strip("+-").lower()[:1] not in {"n", "s", "i"} else math.nan
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() else value


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    return {
        "string": "a text",
        "integer": "an integer",
        "number": "a number",
        "array": "a list",
        "object": "an object",
    }.get(kind if isinstance(kind, str) else "", "something else")
