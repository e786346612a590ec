"""Any value becomes a bounded JSON value, whatever its own code does."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import pathlib
from collections import namedtuple
from types import MappingProxyType

import attrs
import numpy as np
import pydantic
import pydantic.dataclasses
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import MAX_ITEMS, cut, describe_error, render, storable
from grace_kp.trace._render import MAX_DEPTH, MAX_NODES

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Order:
    city: str
    euros: float


@pytest.mark.parametrize(
    ("value", "rendered"),
    [
        ("x", "x"), (3, 3), (True, True), (None, None), (1.5, 1.5), (float("nan"), "nan"), (float("inf"), "inf"),
        (b"ab", "b'ab'"), (b"x" * 100, "<bytes: 100 bytes>"), (10**5_000, "<int: 16,610 bits>"),
        ((1, [2]), [1, [2]]), ({1: "a", None: "b", (1,): "c"}, {"1": "a", "None": "b", "[1]": "c"}),
        (Point(1, 2), {"x": 1, "y": 2}), (MappingProxyType({"a": 1}), {"a": 1}), (range(3), "range(0, 3)"),
        (Order("Oslo", 5.0), {"city": "Oslo", "euros": 5.0}), (Colour.RED, "Colour.RED"), (len, "<builtin_function_or_method len>"),
        (datetime.date(2026, 1, 2), "2026-01-02"), (pathlib.PurePosixPath("/a"), "/a"), (KeyError("a"), "KeyError: 'a'"),
        (np.zeros((2, 3)), "<ndarray shape=(2, 3) dtype=float64>"), (np.float64(0.5), 0.5), (np.int64(3), 3),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_become_json(value, rendered):
    """Plain values stay, containers are copied, objects become their fields or a short text."""
    assert rendered == render(value)


SECRET = "quiet-plum-77"


@dataclasses.dataclass
class Quiet:
    city: str
    memo: str = dataclasses.field(default=SECRET, repr=False)


class QuietBelow(Quiet):
    """Its repr would be long, so that its attributes are read."""

    def __init__(self):
        super().__init__("x" * 5_000)


@attrs.define
class Slotted:
    city: str
    memo: str = attrs.field(default=SECRET, repr=False)
    masked: str = attrs.field(default=SECRET, repr=lambda _: "***")


class NoRepr(pydantic.BaseModel):
    city: str
    memo: str = pydantic.Field(SECRET, repr=False)


class Excluded(pydantic.BaseModel):
    city: str
    memo: str = pydantic.Field(SECRET, exclude=True)


@pydantic.dataclasses.dataclass
class Checked:
    city: str
    memo: str = pydantic.Field(SECRET, repr=False)


@pytest.mark.parametrize("kind", [Quiet, Slotted, NoRepr, Excluded, Checked])
def test_hidden_fields_are_named_and_left_out(kind):
    """Fields that their class keeps out of its repr or of its serialised form."""
    rendered = render([kind(city="Rome"), {"nested": kind(city="Rome")}])
    assert SECRET not in json.dumps(rendered)
    assert ("Rome", "[hidden]") == (rendered[0]["city"], rendered[0]["memo"])
    below = render(QuietBelow())
    assert ("QuietBelow", "[hidden]") == (below["@class"], below["memo"])


class SecretText(str):
    __slots__ = ()

    def __repr__(self):
        return "***"


@pytest.mark.parametrize(
    "secret", [pydantic.SecretStr(SECRET * 1_000), pydantic.SecretBytes(SECRET.encode() * 1_000), SecretText(SECRET)]
)
def test_wrapped_secrets_are_left_out(secret):
    """Also those whose repr is not called because it might be long."""
    assert SECRET not in json.dumps(render({"a": secret}))


def test_no_code_of_a_class_runs():
    """Neither a property that has the name of a slot nor one that replaces the dictionary."""

    class Base:
        __slots__ = ("city", "data")

    class Lazy(Base):
        def __init__(self):
            Base.city.__set__(self, "Rome")
            self.data = "x" * 10_000

        @property
        def city(self):
            raise AssertionError("must not be called")

        __dict__ = city

        def __repr__(self):
            raise AssertionError("must not be called")

    assert {"@class": "Lazy", "city": "Rome"}.items() <= render(Lazy()).items()


def test_what_is_left_out_is_counted():
    """Items, depth, cycles and the number of values are bounded."""
    circle = []
    circle.append(circle)
    assert ["<list: contains itself>"] == render(circle)
    assert (MAX_ITEMS + 1, "… 50 more") == (
        len(render(list(range(MAX_ITEMS + 50)))),
        render(list(range(MAX_ITEMS + 50)))[-1],
    )
    deep = 1
    for _ in range(MAX_DEPTH + 1):
        deep = {"a": deep}
    assert "not shown, too deep" in json.dumps(render(deep))
    assert json.dumps(render([list(range(MAX_ITEMS))] * MAX_ITEMS)).count(",") < 2 * MAX_NODES


def test_later_changes_do_not_show():
    """The rendered value shares nothing with the original."""
    value = {"a": [1]}
    rendered = render(value)
    value["a"].append(2)
    assert {"a": [1]} == rendered


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(JSON)
def test_json_values_stay_themselves(value):
    """Rendering loses nothing of a small JSON value."""
    assert value == render(value)
    assert value == json.loads(json.dumps(render(value)))


@given(st.text(max_size=300), st.integers(64, 200))
def test_a_cut_keeps_a_beginning_and_says_how_much(text, limit):
    """A text within the limit is the same object."""
    shortened = cut(text, limit)
    if len(text) <= limit:
        assert shortened is text
    else:
        kept, mark = shortened.rsplit("… [cut: ", 1)
        assert text.startswith(kept)
        assert f"{len(kept):,} of {len(text):,} characters kept]" == mark
        assert limit // 2 <= len(kept) <= limit


def test_a_cut_falls_between_words():
    """No half of a key is left."""
    assert cut("word " * 30 + "ghp_" + "a" * 100, 200).startswith("word " * 29 + "word… [cut: ")


def test_half_a_surrogate_pair_is_replaced():
    """UTF-8 cannot hold it; any other text is the same object."""
    text = "é"
    assert "a?" == storable("a\ud800")
    assert storable(text) is text


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (ValueError("no"), ("ValueError", "no")),
        (KeyError("a"), ("KeyError", "'a'")),
        (ValueError(Order("Oslo", 5.0)), ("ValueError", '{"city": "Oslo", "euros": 5.0}')),
        (Exception(), ("Exception", "")),
    ],
)
def test_errors_are_described(error, described):
    """By type and message; arguments that are not plain are rendered."""
    assert described == describe_error(error)


def test_an_error_whose_text_fails_is_described():
    """It still has a type."""

    class Broken(Exception):
        def __str__(self):
            raise RuntimeError("no")

    assert ("Broken", "<message cannot be read>") == describe_error(Broken())
