"""From the encoding of arguments back to the same types and values. Damaged data and changed classes are errors, never other values."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import pathlib
import re
import uuid
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._canonical import MAX_DEPTH, SEALED, NoEncoding, canonical, encode_value
from grace_kp.approvals._models import classes_in, restore
from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DURATION = re.compile(r"(-?)P([0-9]{1,9})DT([0-9]{1,5})(?:\.([0-9]{6}))?S")


def decode(encoded: Mapping[str, Any], types: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the arguments of an encoding: the exact inverse of `encode`.

    Args:
        encoded: encodings by parameter name. A sealed one becomes `SEALED`.
        types: declared types by parameter name. Data classes, pydantic models and enums are restored only from here; nothing is imported.

    Raises:
        ValueError: an encoding is damaged, or needs a class that the parameter's type does not contain or that has changed; the message
            names the place.
    """
    declared = types or {}
    return {name: _argument(name, item, declared.get(name)) for name, item in encoded.items()}


def _argument(name: str, encoded: Any, declared: object) -> object:
    if isinstance(encoded, dict) and "$sealed" in encoded:
        return SEALED
    decoder = _Decoder(name, declared)
    try:
        value = decoder.of(encoded, 0)
        is_same = canonical(encode_value(value)) == canonical(encoded)
    # OSError: the name of a time zone is also the name of a file, and may be that of a folder.
    except (
        ArithmeticError, AttributeError, LookupError, NoEncoding, OSError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        problem = str(error) if isinstance(error, _Misfit) else f"cannot be read back ({type(error).__name__}: {error})"
        raise ValueError(f"{''.join(decoder.path)[:200]}: {problem}") from None
    if not is_same:
        raise ValueError(f"{name}: cannot be read back as it was kept; it is damaged, or a class in it has changed")
    return value


class _Misfit(ValueError):
    """What is wrong, in words for the reader."""


class _Decoder:
    """One decoding, depth first. After an error, `path` leads to the value that caused it."""

    def __init__(self, name: str, declared: object) -> None:
        self.path = [name]
        self._declared = declared
        self._classes: dict[str, set[type]] | None = None

    def of(self, value: Any, depth: int) -> Any:
        # An entry of $dict and a part of $model count twice.
        if depth > 2 * MAX_DEPTH + 2:
            raise _Misfit("is nested too deeply")
        if isinstance(value, list):
            return self._items(value, depth)
        if not isinstance(value, dict):
            return value
        tags = [key for key in value if key.startswith("$")]
        if not tags:
            return {key: self._at(f"[{key!r:.60}]", item, depth) for key, item in value.items()}
        if len(tags) > 1:
            raise _Misfit(f"has two type tags, {', '.join(sorted(tags))}")
        return self._tagged(tags[0], value, depth)

    def _at(self, step: str, value: object, depth: int) -> Any:
        self.path.append(step)
        decoded = self.of(value, depth + 1)
        self.path.pop()
        return decoded

    def _items(self, values: list[object], depth: int) -> list[Any]:
        return [self._at(f"[{number}]", item, depth) for number, item in enumerate(values)]

    def _tagged(self, tag: str, value: dict[str, Any], depth: int) -> object:
        content = value[tag]
        if tag in {"$datetime", "$time"}:
            return _moment(tag, value)
        if tag == "$model":
            return self._model(str(content), value, depth)
        if tag in _CONTAINERS:
            if not isinstance(content, list):
                raise _Misfit(f"{tag} must hold a list, not {brief(content)}")
            return _CONTAINERS[tag](self._items(content, depth))
        if tag == "$path":
            return pathlib.Path(self.of(content, depth + 1))
        if tag not in _SCALARS:
            raise _Misfit(f"has the unknown type tag {brief(tag)}")
        if not isinstance(content, str):
            raise _Misfit(f"{tag} must hold a text, not {brief(content)}")
        return _SCALARS[tag](content)

    def _model(self, name: str, value: dict[str, Any], depth: int) -> object:
        if self._classes is None:
            self._classes = classes_in(self._declared)
        classes = self._classes.get(name, set())
        if not classes:
            raise _Misfit(
                f"is a {name:.200}, which the declared type of the parameter {self.path[0]!r} does not contain"
            )
        if len(classes) > 1:
            raise _Misfit(f"is a {name:.200}, and there are {len(classes)} classes of this name")
        state = {part: self._at(f".{part}", item, depth) for part, item in value.items() if part != "$model"}
        return restore(next(iter(classes)), state)


def _moment(tag: str, value: dict[str, Any]) -> dt.datetime | dt.time:
    kind: Any = dt.datetime if tag == "$datetime" else dt.time
    moment: Any = kind.fromisoformat(value[tag])
    if "zone" in value:
        import zoneinfo

        offset = moment.utcoffset()
        moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(value["zone"]), fold=value.get("fold", 0))
        if moment.utcoffset() != offset:
            raise _Misfit(f"the time zone {value['zone']} has another offset then than when this was kept")
    elif "name" in value:
        moment = moment.replace(tzinfo=dt.timezone(moment.utcoffset(), value["name"]))
    return moment.replace(fold=value.get("fold", 0))  # type: ignore[no-any-return]


def _duration(text: str) -> dt.timedelta:
    found = _DURATION.fullmatch(text)
    if not found:
        raise _Misfit(f"{brief(text)} is no duration such as P1DT2S")
    minus, days, seconds, micro = found.groups()
    length = dt.timedelta(days=int(days), seconds=int(seconds), microseconds=int(micro or 0))
    return -length if minus else length


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_CONTAINERS: dict[str, Callable[[list[Any]], object]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
    "$dict": dict,
}
_SCALARS: dict[str, Callable[[str], object]] = {
    "$int": int,
    "$float": float,
    "$decimal": decimal.Decimal,
    "$uuid": uuid.UUID,
    "$date": dt.date.fromisoformat,
    "$timedelta": _duration,
    "$bytes": _bytes,
    "$bytearray": lambda text: bytearray(_bytes(text)),
    "$text": lambda text: _bytes(text).decode("utf-8", "surrogatepass"),
}
