"""Values of every type that has an encoding, for properties of the codec."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
from typing import Any

import pydantic
from hypothesis import strategies as st


class Colour(enum.Enum):
    RED = "red"
    BLUE = ("b", 1)


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Level(enum.StrEnum):
    LOW = "low"


@dataclasses.dataclass
class Order:
    id: str
    euros: object


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    item: object
    parts: tuple[object, ...] = ()


class Address(pydantic.BaseModel):
    street: Any = None
    zip: Any = None


class Open(pydantic.BaseModel, extra="allow"):
    a: Any = None
    _note: Any = pydantic.PrivateAttr(default=None)


TYPES = Colour | Rights | Level | Order | Line | Address | Open

_ZONES = st.one_of(
    st.none(), st.just(dt.UTC), st.timezones(), st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)))
)  # fmt: skip
_HASHABLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.text(st.characters(codec=None)), st.binary(),
    st.decimals(allow_nan=False), st.uuids(), st.dates(), st.timedeltas(), st.sampled_from(list(Colour)), st.sampled_from(Level),
    st.sampled_from([Rights.READ, Rights.READ | Rights.WRITE, Rights(0)]), st.sampled_from(["$int", "$tuple", "$"]),
    st.builds(pathlib.Path, st.sampled_from(["", "/a", "a/../b", "~"])),
)  # fmt: skip
_LEAVES = st.one_of(
    _HASHABLE, st.floats(), st.decimals(), st.builds(bytearray, st.binary()), st.datetimes(timezones=_ZONES, allow_imaginary=False),
    st.times(), st.frozensets(_HASHABLE, max_size=3), st.sets(_HASHABLE, max_size=3),
)  # fmt: skip


def _more(inner):
    def opened(value, note):
        made = Open(a=1, **{"$more": value})
        made._note = note
        return made

    return st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(_HASHABLE, inner, max_size=3), st.builds(Order, st.text(), inner), st.builds(Line, inner, st.tuples(inner)),
        st.builds(Address, street=inner), st.builds(Address), st.builds(opened, inner, inner),
    )  # fmt: skip


def values():
    return st.recursive(_LEAVES, _more, max_leaves=6)


def same(first, second):
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return (math.isnan(first) and math.isnan(second)) or (
            first == second and math.copysign(1, first) == math.copysign(1, second)
        )
    if isinstance(first, decimal.Decimal):
        return first.as_tuple() == second.as_tuple()
    if isinstance(first, dt.datetime | dt.time):
        return (
            first.isoformat() == second.isoformat()
            and first.fold == second.fold
            and str(first.tzinfo) == str(second.tzinfo)
        )
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, set | frozenset):
        return len(first) == len(second) and all(any(same(a, b) for b in second) for a in first)
    if isinstance(first, dict):
        return len(first) == len(second) and all(any(same(a, b) for b in second.items()) for a in first.items())
    if isinstance(first, enum.Enum):
        return first is second or first == second
    if isinstance(first, pydantic.BaseModel):
        names = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
        return all(same(getattr(first, name), getattr(second, name)) for name in names)
    if dataclasses.is_dataclass(first):
        return all(same(getattr(first, field.name), getattr(second, field.name)) for field in dataclasses.fields(first))
    return first == second
