"""Arguments as JSON that has one canonical form: plain JSON stays as it is, everything else carries a type tag.

    {"$int": "9007199254740993"}   integers beyond 2**53 - 1     {"$float": "1.0"}       whole, infinite and undefined floats
    {"$decimal": "1.10"}                                         {"$uuid": "…"}
    {"$bytes": "base64"}           and $bytearray                {"$text": "base64"}     texts that UTF-8 cannot hold
    {"$date": "2026-01-02"}                                      {"$path": "/srv/a"}
    {"$datetime": "…", "zone": "Europe/Berlin", "fold": 1}       and $time; `name` of a fixed offset that has its own
    {"$timedelta": "P1DT2S"}                                     {"$set": […]}           and $frozenset, sorted
    {"$tuple": […]}                                              {"$dict": [[key, …]]}   keys that are no texts, or begin with $
    {"$model": "shop.Order", …}    instances of data classes, pydantic models, enums, IP addresses and pydantic's URLs

The encoding is injective: two values that differ in type or content have different encodings, and `_decoding` restores both. The order of the
entries of a dict does not count. Subclasses of built-in types have no encoding, because nothing here knows what they add.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import pathlib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rfc8785

from grace_kp.approvals._models import qualified_name, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_BYTES = 1_000_000
"""Bytes that one parameter may have in canonical JSON."""
MAX_DEPTH = 50
"""Containers that may stand inside of each other in one parameter."""
EXACT = 2**53 - 1
"""Largest integer that every reader of JSON keeps."""
_MAX_BITS = 14_000  # Python refuses to print integers of more than 4,300 digits


@dataclass(frozen=True, slots=True, repr=False)
class Sealed:
    """Stands for a value that is kept encrypted and cannot be opened here."""

    def __repr__(self) -> str:
        return "[SEALED]"


SEALED = Sealed()


class NoEncoding(Exception):
    """A value without an encoding; the message names the place inside of it and the reason."""


def canonical(value: object) -> bytes:
    """Return a JSON value in its canonical form, RFC 8785.

    Raises:
        ValueError: it holds something that canonical JSON cannot, such as an integer beyond 2**53 - 1 or NaN.
    """
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except RecursionError:
        raise ValueError("nested too deeply for JSON") from None


def encode(arguments: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, str]]:
    """Encode arguments as JSON with type tags.

    Args:
        arguments: the values by parameter name.

    Returns:
        The encodings by parameter name, and why the other parameters have none: a type without an encoding, more than `MAX_BYTES` bytes, or
        more than `MAX_DEPTH` containers inside of each other.
    """
    encoded: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in arguments.items():
        try:
            encoded[name] = encode_value(value)
        except NoEncoding as error:
            problems[name] = str(error)
    return encoded, problems


def encode_value(value: object) -> Any:
    """Return the encoding of one value.

    Raises:
        NoEncoding: it has none.
    """
    encoder = _Encoder()
    try:
        encoded = encoder.of(value, 0)
        size = len(canonical(encoded))
    except NoEncoding as error:
        place = "".join(encoder.path)
        raise NoEncoding(f"{place}: {error}" if place else str(error)) from None
    except RecursionError:
        raise NoEncoding("is nested too deeply") from None
    except (AttributeError, RuntimeError, ValueError) as error:  # changed by another thread meanwhile, or half-built
        raise NoEncoding(f"cannot be read ({type(error).__name__})") from error
    if size > MAX_BYTES:
        raise NoEncoding(_TOO_LARGE)
    return encoded


_TOO_LARGE = f"has more than {MAX_BYTES:,} bytes as JSON"


class _Encoder:
    """One encoding, depth first. After an error, `path` leads to the value that caused it."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self._left = MAX_BYTES

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self._take(1)
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._text(value)
        if kind is int:
            return _integer(value)
        if kind is float:
            return value if math.isfinite(value) and not value.is_integer() else {"$float": repr(value)}
        if kind in _SCALARS:
            tag, write = _SCALARS[kind]
            self._take(len(value) if kind in {bytes, bytearray} else 0)
            return {tag: write(value)}
        if kind in {dt.datetime, dt.time}:
            return _moment(value)
        if kind is _PATH:
            return {"$path": self._text(str(value))}
        if depth >= MAX_DEPTH:
            raise NoEncoding(f"has more than {MAX_DEPTH} containers inside of each other, or contains itself")
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list:
            return self._items(value, depth)
        if kind is tuple:
            return {"$tuple": self._items(value, depth)}
        if kind is set or kind is frozenset:
            return {f"${kind.__name__}": sorted((self.of(item, depth + 1) for item in value), key=canonical)}
        if kind is Sealed:
            raise NoEncoding("is sealed, and cannot be opened here")
        state = state_of(value)
        if state is None:
            raise NoEncoding(f"a {qualified_name(kind).removeprefix('builtins.')} has no encoding")
        return {"$model": qualified_name(kind), **{part: self.of(item, depth + 1) for part, item in state.items()}}

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            self.path.clear()
            raise NoEncoding(_TOO_LARGE)

    def _text(self, value: str) -> Any:
        self._take(len(value))
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            return {"$text": _base64(value.encode("utf-8", "surrogatepass"))}
        return value

    def _items(self, values: list[object] | tuple[object, ...], depth: int) -> list[Any]:
        encoded = []
        for number, item in enumerate(values):
            self.path.append(f"[{number}]")
            encoded.append(self.of(item, depth + 1))
            self.path.pop()
        return encoded

    def _mapping(self, value: dict[Any, object], depth: int) -> dict[str, Any]:
        pairs = []
        for key, item in value.items():
            name = self.of(key, depth + 1)
            self.path.append(f"[{key!r:.60}]" if type(key) in _SHOWN else "[…]")
            pairs.append((name, self.of(item, depth + 1)))
            self.path.pop()
        if all(type(name) is str and not name.startswith("$") for name, _ in pairs):
            return dict(pairs)
        return {"$dict": sorted((list(pair) for pair in pairs), key=canonical)}


def _integer(value: int) -> Any:
    if -EXACT <= value <= EXACT:
        return value
    if value.bit_length() > _MAX_BITS:
        raise NoEncoding("is an integer of more than 4,200 digits")
    return {"$int": str(value)}


def _moment(value: dt.datetime | dt.time) -> dict[str, Any]:
    encoded: dict[str, Any] = {"$datetime" if type(value) is dt.datetime else "$time": value.isoformat()}
    zone: Any = value.tzinfo
    if zone is not None:
        import zoneinfo

        if type(zone) is zoneinfo.ZoneInfo and zone.key is not None:
            encoded["zone"] = zone.key
        elif type(zone) is dt.timezone:
            if zone.tzname(None) != dt.timezone(zone.utcoffset(None)).tzname(None):
                encoded["name"] = zone.tzname(None)
        elif (
            qualified_name(type(zone)) != "pydantic_core._pydantic_core.TzInfo"
        ):  # a fixed offset, as pydantic reads it
            raise NoEncoding(f"a time zone of the type {qualified_name(type(zone))} has no encoding")
    if value.fold:
        encoded["fold"] = 1
    return encoded


def _duration(value: dt.timedelta) -> str:
    seconds, micro = divmod(abs(value) // dt.timedelta(microseconds=1), 1_000_000)
    fraction = f".{micro:06}" if micro else ""
    return f"{'-' if value < dt.timedelta() else ''}P{seconds // 86_400}DT{seconds % 86_400}{fraction}S"


def _base64(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


_PATH = type(pathlib.Path())
_SHOWN = {str, int, bool, float}
_SCALARS: dict[type, tuple[str, Callable[[Any], str]]] = {
    bytes: ("$bytes", _base64),
    bytearray: ("$bytearray", _base64),
    decimal.Decimal: ("$decimal", str),
    uuid.UUID: ("$uuid", str),
    dt.date: ("$date", dt.date.isoformat),
    dt.timedelta: ("$timedelta", _duration),
}
