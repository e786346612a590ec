"""Values as a person writes them: a date as text, a set as list, the value of an enum's member. Here they get their type tags."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import pathlib
import uuid
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._canonical import NoEncoding, canonical, encode_value
from grace_kp.approvals._decoding import decode
from grace_kp.approvals._plain import plain_json, tag_of
from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Return the encoded member of an enum that a value names or encodes.

    Raises:
        Misfit: there is none.
    """
    members = schema.get("x-members", [])
    for member in members:
        if canonical(value) in {canonical(form) for form in (member, _value_of(member), plain_json(member))}:
            return member
    allowed = ", ".join(brief(plain_json(member)) for member in members)
    raise Misfit(f"{place}: {brief(plain_json(value))} is none of {allowed}")


def _value_of(member: Any) -> Any:
    return member["value"] if tag_of(member) == "$model" else member


def list_of(encoding: str, items: list[Any]) -> dict[str, Any]:
    """Return the encoding of a tuple or set from its encoded items."""
    if encoding == "$tuple":
        return {encoding: items}
    unique = {canonical(item): item for item in items}
    return {encoding: [unique[form] for form in sorted(unique)]}


def from_text(encoding: str, value: Any, place: str) -> Any:
    """Return the encoding of what a person wrote where a value with this tag is asked for; what is no text, as it is.

    Raises:
        Misfit: the text means no such value.
    """
    if encoding == "$decimal" and type(value) in {int, float}:
        value = repr(value)
    if encoding == "$decimal" and tag_of(value) in {"$float", "$int"}:
        value = value[tag_of(value)]
    if not isinstance(value, str) or encoding in LISTS:
        return value  # the check by the schema says what it takes
    if encoding in {"$bytes", "$path"}:
        return {encoding: base64.b64encode(value.encode()).decode()} if encoding == "$bytes" else _path(value)
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


def _path(text: str) -> Any:
    return encode_value(pathlib.Path(text))
