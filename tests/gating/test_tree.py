"""A tree of what a value holds, as one line of text or as a JSON value."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.gating._tree import MAX_PLAIN_DEPTH, Node, flat, pieces, plain
from grace_kp.gating._view import view


@dataclasses.dataclass
class Order:
    to: str
    lines: list


class Colour(enum.Enum):
    RED = "red"


class Items(list):
    pass


def with_note(items):
    items = Items(items)
    items.note = "n"
    return items


Pair = collections.namedtuple("Pair", "a b")
DAY = datetime.date(2026, 1, 2)
VALUES = [
    (None, "null", None),
    (True, "true", True),
    (5, "5", 5),
    (2**64, str(2**64), str(2**64)),
    (0.5, "0.5", 0.5),
    (float("inf"), "inf", "inf"),
    ("null", '"null"', "null"),
    ("é\n", '"é\\n"', "é\n"),
    ([], "[]", []),
    ([1, [2]], "[1, [2]]", [1, [2]]),
    ((1,), "(1,)", [1]),
    ((1, 2), "(1, 2)", [1, 2]),
    ((), "()", []),
    ({"a": {"b": 1}, "c": 2}, '{"a": {"b": 1}, "c": 2}', {"a": {"b": 1}, "c": 2}),
    ({1: 2}, "{1: 2}", {"1": 2}),
    ({1: "int", "1": "text"}, '{1: "int", "1": "text"}', {"1": "int", "1 (2)": "text"}),
    ({"1": "a", 1: "b", "1 (2)": "c"}, '{"1": "a", 1: "b", "1 (2)": "c"}', {"1": "a", "1 (2)": "b", "1 (2) (2)": "c"}),
    (Order("ana", [1]), 'Order(to="ana", lines=[1])', {"@class": "Order", "to": "ana", "lines": [1]}),
    (Pair(1, 2), "Pair(a=1, b=2)", {"@class": "Pair", "a": 1, "b": 2}),
    (DAY, 'date("2026-01-02")', "2026-01-02"),
    (Colour.RED, "Colour.RED", "Colour.RED"),
    (b"ab", "b'ab'", "b'ab'"),
    (bytearray(b"ab"), "bytearray(b'ab')", "bytearray(b'ab')"),
    ({"s"}, 'set["s"]', ["s"]),
    (with_note([1]), 'Items[1, .note: "n"]', 'Items[1, .note: "n"]'),
]


@pytest.mark.parametrize("number", range(len(VALUES)))  # some values have no readable name
def test_text_and_json(number):
    """Texts are in quotes and keys of objects are not; what JSON lacks becomes text, and keys that look alike are numbered."""
    value, text, expected = VALUES[number]
    assert text == flat(view(value).root)
    assert expected == plain(view(value).root)


def nested(depth):
    value = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def test_deep_values_end_as_text():
    """JSON values are nested up to a limit; what is deeper is one text. The line of text has no limit."""
    found = plain(view(nested(MAX_PLAIN_DEPTH + 2)).root)
    for _ in range(MAX_PLAIN_DEPTH):
        (found,) = found
    assert '[["bottom"]]' == found
    assert nested(MAX_PLAIN_DEPTH) == plain(view(nested(MAX_PLAIN_DEPTH)).root)
    assert flat(view(nested(5_000)).root).startswith("[" * 5_000 + '"bottom"]')


def test_pieces_stand_from_left_to_right():
    """Leaves, keys and class names are nodes, so that each can be escaped; everything else is text."""
    found = [piece if isinstance(piece, str) else piece.text for piece in pieces(view(Order("ana", [1])).root)]
    assert ["Order", "(", "to", "=", "ana", ", ", "lines", "=", "", "[", "1", "]", ")"] == found
    assert ["leaf"] == [piece.text for piece in pieces(Node("leaf"))]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_json_values_are_themselves(value):
    """A JSON value comes back equal, and its text is JSON."""
    root = view(value).root
    assert value == plain(root)
    assert value == json.loads(flat(root))
