"""Arguments as JSON that has one canonical form, and back: plain JSON stays as it is, everything else carries a type tag.

    {"$int": "9007199254740993"}   integers beyond 2**53 - 1     {"$float": "1.0"}       whole, infinite and undefined floats
    {"$decimal": "1.10"}                                         {"$uuid": "…"}
    {"$bytes": "base64"}           and $bytearray                {"$text": "base64"}     strings that UTF-8 cannot hold
    {"$date": "2026-01-02"}                                      {"$path": "/srv/a"}
    {"$datetime": "…", "zone": "Europe/Berlin", "fold": 1}       and $time; `name` of a fixed offset that has its own
    {"$timedelta": "P1DT2S"}                                     {"$set": […]}           and $frozenset, sorted
    {"$tuple": […]}                                              {"$dict": [[key, …]]}   keys that are not strings, or begin with $
    {"$model": "shop.Order", …}    instances of data classes, pydantic models, enums, IP addresses and pydantic's URLs

The encoding is injective: two values that differ in type or content have different encodings, and `decode` restores both. The order of the
entries of a dict does not count. Subclasses of built-in types have no encoding, because their additions are unknown. Damaged data and changed classes
are errors, never other values. Classes are looked up in the declared type of the parameter, never imported by a stored name. Instances are restored
without running user code.

`plain_json` drops the tags, for redaction and for checks by a JSON schema.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import math
import pathlib
import re
import sys
import typing
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rfc8785

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PLAIN = {"builtins", "typing", "types", "abc", "collections", "collections.abc", "enum"}


def qualified_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def state_of(value: object) -> dict[str, object] | None:
    """Return the state of an instance; None for a type without an encoding, and for an instance with undeclared attributes.

    Values of a `functools.cached_property` are not part of the state.
    """
    kind = type(value)
    if isinstance(value, enum.Enum):
        return {"name": value.name, "value": value.value}
    if _is_text(kind):
        return {"value": str(value)}
    names = _field_names(kind)
    if names is None:
        return None
    try:
        object.__new__(kind)
    except TypeError:  # a data class that is derived from dict, for example: its entries would be lost
        return None
    cached = {
        name
        for owner in kind.__mro__
        for name, item in vars(owner).items()
        if isinstance(item, functools.cached_property)
    }
    held = {name: item for name, item in getattr(value, "__dict__", {}).items() if name not in cached}
    if not held.keys() <= set(names):
        return None
    if not is_model(kind):
        return {"fields": {name: object.__getattribute__(value, name) for name in names}}
    state: dict[str, object] = {"fields": held, "set": sorted(getattr(value, "__pydantic_fields_set__", ()))}
    for part in ("extra", "private"):
        if more := getattr(value, f"__pydantic_{part}__", None):
            state[part] = dict(more)
    return state


def restore(kind: type, state: dict[str, Any]) -> object:
    """Return an instance with this state, without running `__init__` or a validator. The caller compares the state again: the class may have changed."""
    if issubclass(kind, enum.Enum):
        member = kind.__members__.get(str(state.get("name")))
        return member if member is not None else kind(state.get("value"))
    read: Any = kind
    if _is_text(kind):
        return read(state.get("value"))
    names, fields = _field_names(kind), state.get("fields")
    if names is None or not isinstance(fields, dict) or fields.keys() != set(names):
        raise ValueError(f"the fields of {qualified_name(kind)} have changed since it was stored")
    instance: Any = object.__new__(kind)
    if not is_model(kind):
        for name, value in fields.items():
            object.__setattr__(instance, name, value)
        return instance
    from pydantic import BaseModel

    kept = {
        "__dict__": fields,
        "__pydantic_fields_set__": set(state.get("set", ())),
        "__pydantic_extra__": state.get("extra", {} if kind.model_config.get("extra") == "allow" else None),
        "__pydantic_private__": state.get("private", {} if kind.__private_attributes__ else None),
    }
    BaseModel.__setstate__(instance, kept)
    return instance


def _is_text(kind: type) -> bool:
    return kind.__module__ == "ipaddress" or (
        kind.__module__ == "pydantic.networks" and hasattr(kind, "unicode_string")
    )


def is_model(kind: type) -> typing.TypeGuard[Any]:
    """Return whether a class is a pydantic model, without importing pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def classes_in(declared: object) -> dict[str, set[type]]:
    """Return the classes in a declared type by qualified name, including the types of fields and loaded subclasses."""
    found: dict[str, set[type]] = {}
    seen: set[int] = set()
    stack = [declared]
    while stack:
        current: Any = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, enum.Enum):  # inside of Literal
            current = type(current)
        if isinstance(current, type) and typing.get_origin(current) is None:
            if current.__module__ not in _PLAIN:
                found.setdefault(qualified_name(current), set()).add(current)
                stack.extend(type.__subclasses__(current))
                stack.extend(_field_types(current))
        else:
            stack.extend(_type_parts(current))
    return found


def _type_parts(declared: Any) -> Iterator[object]:
    if hasattr(declared, "__metadata__"):  # Annotated: the rest is not a type
        yield declared.__origin__
        return
    yield from typing.get_args(declared)
    for name in ("__supertype__", "__value__", "__bound__"):  # NewType, an alias, a type variable
        if not isinstance(declared, type) and (inner := getattr(declared, name, None)) is not None:
            yield inner
    if (origin := typing.get_origin(declared)) is not None:
        yield origin


def _field_types(kind: Any) -> list[object]:
    if is_model(kind):
        return [field.annotation for field in kind.model_fields.values()]
    if not (dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)):
        return []
    try:
        return list(typing.get_type_hints(kind).values())
    except (NameError, AttributeError, TypeError, SyntaxError):
        return []  # names that only a type checker knows


def _field_names(kind: type) -> list[str] | None:
    if is_model(kind):
        return list(kind.model_fields)
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None


MAX_BYTES = 1_000_000
"""Maximum size of one parameter in canonical JSON."""
MAX_DEPTH = 50
"""Nested containers in one parameter."""
EXACT = 2**53 - 1
"""Largest integer that every JSON parser reads exactly."""
_MAX_BITS = 14_000  # Python refuses to print integers of more than 4,300 digits


@dataclass(frozen=True, slots=True, repr=False)
class Sealed:
    """Placeholder for an encrypted value that cannot be opened here."""

    def __repr__(self) -> str:
        return "[SEALED]"


SEALED = Sealed()


class NoEncoding(Exception):
    """A value has no encoding. The message names the place in the value and the reason."""


def canonical(value: object) -> bytes:
    """Return canonical JSON (RFC 8785)."""
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except RecursionError:
        raise ValueError("nested too deeply for JSON") from None


def encode(arguments: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return arguments as JSON with type tags, and the problems of those without an encoding, by name."""
    encoded: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in arguments.items():
        try:
            encoded[name] = encode_value(value)
        except NoEncoding as error:
            problems[name] = str(error)
    return encoded, problems


def encode_value(value: object) -> Any:
    encoder = _Encoder()
    try:
        encoded = encoder.of(value, 0)
        size = len(canonical(encoded))
    except NoEncoding as error:
        place = "".join(encoder.path)
        raise NoEncoding(f"{place}: {error}" if place else str(error)) from None
    except RecursionError:
        raise NoEncoding("is nested too deeply") from None
    except (AttributeError, RuntimeError, ValueError) as error:  # changed by another thread, or not initialised
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
            self.path.append(f"[{key!r:.60}]" if type(key) in {str, int, bool, float} else "[…]")
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


_DURATION = re.compile(r"(-?)P([0-9]{1,9})DT([0-9]{1,5})(?:\.([0-9]{6}))?S")


def decode(encoded: Mapping[str, Any], types: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the arguments of an encoding: the exact inverse of `encode`."""
    return {name: _argument(name, item, (types or {}).get(name)) for name, item in encoded.items()}


def _argument(name: str, encoded: Any, declared: object) -> object:
    if isinstance(encoded, dict) and "$sealed" in encoded:
        return SEALED
    decoder = _Decoder(name, declared)
    try:
        value = decoder.of(encoded, 0)
        is_same = canonical(encode_value(value)) == canonical(encoded)
    # OSError: time zones are files, and a zone may have the name of a folder.
    except (
        ArithmeticError, AttributeError, LookupError, NoEncoding, OSError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        unread = f"cannot be read back ({type(error).__name__}: {error})"
        problem = str(error) if isinstance(error, _NoValue) else unread
        raise ValueError(f"{''.join(decoder.path)[:200]}: {problem}") from None
    if not is_same:
        raise ValueError(f"{name}: cannot be read back exactly; it is damaged, or a class in it has changed")
    return value


class _NoValue(ValueError):
    """An encoding without a value; the message says why."""


class _Decoder:
    """One decoding, depth first. After an error, `path` leads to the value that caused it."""

    def __init__(self, name: str, declared: object) -> None:
        self.path = [name]
        self._declared = declared
        self._classes: dict[str, set[type]] | None = None

    def of(self, value: Any, depth: int) -> Any:
        # An entry of $dict and a part of $model count twice.
        if depth > 2 * MAX_DEPTH + 2:
            raise _NoValue("is nested too deeply")
        if isinstance(value, list):
            return self._items(value, depth)
        if not isinstance(value, dict):
            return value
        tags = [key for key in value if key.startswith("$")]
        if not tags:
            return {key: self._at(f"[{key!r:.60}]", item, depth) for key, item in value.items()}
        if len(tags) > 1:
            raise _NoValue(f"has two type tags, {', '.join(sorted(tags))}")
        return self._read_tag(tags[0], value, depth)

    def _at(self, step: str, value: object, depth: int) -> Any:
        self.path.append(step)
        decoded = self.of(value, depth + 1)
        self.path.pop()
        return decoded

    def _items(self, values: list[object], depth: int) -> list[Any]:
        return [self._at(f"[{number}]", item, depth) for number, item in enumerate(values)]

    def _read_tag(self, tag: str, value: dict[str, Any], depth: int) -> object:
        content = value[tag]
        if tag in {"$datetime", "$time"}:
            return _moment_from(tag, value)
        if tag == "$model":
            return self._model(str(content), value, depth)
        if tag in _CONTAINERS:
            if not isinstance(content, list):
                raise _NoValue(f"{tag} must hold a list, not {brief(content)}")
            return _CONTAINERS[tag](self._items(content, depth))
        if tag == "$path":
            return pathlib.Path(self.of(content, depth + 1))
        if tag not in _READERS:
            raise _NoValue(f"has the unknown type tag {brief(tag)}")
        if not isinstance(content, str):
            raise _NoValue(f"{tag} must hold a string, not {brief(content)}")
        return _READERS[tag](content)

    def _model(self, name: str, value: dict[str, Any], depth: int) -> object:
        if self._classes is None:
            self._classes = classes_in(self._declared)
        classes = self._classes.get(name, set())
        if not classes:
            raise _NoValue(
                f"is a {name:.200}, which the declared type of the parameter {self.path[0]!r} does not contain"
            )
        if len(classes) > 1:
            raise _NoValue(f"is a {name:.200}, and there are {len(classes)} classes of this name")
        state = {part: self._at(f".{part}", item, depth) for part, item in value.items() if part != "$model"}
        return restore(next(iter(classes)), state)


def _moment_from(tag: str, value: dict[str, Any]) -> dt.datetime | dt.time:
    kind: Any = dt.datetime if tag == "$datetime" else dt.time
    moment: Any = kind.fromisoformat(value[tag])
    if "zone" in value:
        import zoneinfo

        offset = moment.utcoffset()
        moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(value["zone"]), fold=value.get("fold", 0))
        if moment.utcoffset() != offset:
            raise _NoValue(f"the time zone {value['zone']} had another offset when this was stored")
    elif "name" in value:
        moment = moment.replace(tzinfo=dt.timezone(moment.utcoffset(), value["name"]))
    return moment.replace(fold=value.get("fold", 0))  # type: ignore[no-any-return]


def _duration_from(text: str) -> dt.timedelta:
    found = _DURATION.fullmatch(text)
    if not found:
        raise _NoValue(f"{brief(text)} is not a duration such as P1DT2S")
    minus, days, seconds, micro = found.groups()
    length = dt.timedelta(days=int(days), seconds=int(seconds), microseconds=int(micro or 0))
    return -length if minus else length


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_PATH = type(pathlib.Path())
_CONTAINERS: dict[str, Callable[[list[Any]], object]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
    "$dict": dict,
}
_TAGGED: tuple[tuple[type, str, Callable[[Any], str], Callable[[str], object]], ...] = (
    (bytes, "$bytes", _base64, _bytes),
    (bytearray, "$bytearray", _base64, lambda text: bytearray(_bytes(text))),
    (decimal.Decimal, "$decimal", str, decimal.Decimal),
    (uuid.UUID, "$uuid", str, uuid.UUID),
    (dt.date, "$date", dt.date.isoformat, dt.date.fromisoformat),
    (dt.timedelta, "$timedelta", _duration, _duration_from),
)
"""Types that are encoded as one string: their tag, writer and reader."""
_SCALARS = {kind: (tag, write) for kind, tag, write, _ in _TAGGED}
_READERS: dict[str, Callable[[str], object]] = {
    "$int": int,
    "$float": float,
    "$text": lambda text: _bytes(text).decode("utf-8", "surrogatepass"),
    **{tag: read for _, tag, _, read in _TAGGED},
}


def tag_of(encoded: object) -> str:
    """Return the type tag of an encoded value; empty for plain JSON."""
    if not isinstance(encoded, dict):
        return ""
    return next((key for key in encoded if isinstance(key, str) and key.startswith("$")), "")


def plain_json(encoded: Any, *, decimal: Callable[[str], Any] = str) -> Any:
    """Return an encoded value without type tags: a model as its fields, an enum as its value, bytes and dates as strings."""

    def plain(item: Any) -> Any:
        return plain_json(item, decimal=decimal)

    if isinstance(encoded, list):
        return [plain(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    tag = tag_of(encoded)
    if not tag:
        return {name: plain(item) for name, item in encoded.items()}
    content = encoded[tag]
    match tag:
        case "$bytes" | "$bytearray" | "$text":
            return base64.b64decode(content).decode("utf-8", "replace")
        case "$dict":
            keys = (plain_json(key) for key, _ in content)
            return {
                key if isinstance(key, str) else str(key): plain(item)
                for key, (_, item) in zip(keys, content, strict=True)
            }
        case "$model":
            parts = {part: plain(item) for part, item in encoded.items() if part != "$model"}
            if "fields" not in parts:
                return parts.get("value")
            return {**parts["fields"], **parts.get("extra", {}), **parts.get("private", {})}
        case "$int":
            return int(content)
        case "$float":
            return number if math.isfinite(number := float(content)) else content
        case "$decimal":
            return decimal(content)
    return plain(content)
