"""JSON of documents: the same bytes with orjson and without it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.record import _json, to_json

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
)
KEYS = st.text(st.characters()) | st.integers() | st.none() | st.booleans()
VALUES = st.recursive(SCALARS, lambda values: st.lists(values) | st.dictionaries(KEYS, values), max_leaves=12)


@pytest.fixture
def without_orjson(monkeypatch):
    """Returns what is written where orjson is not installed."""

    def encode(value):
        with monkeypatch.context() as patch:
            patch.setattr(_json, "dumps", None)
            return to_json(value)

    return encode


@given(VALUES)
def test_orjson_writes_the_same_bytes_as_pydantic(value):
    """Floats, large integers, keys of any type, control characters and half surrogate pairs included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json, "dumps", None)
        expected = to_json(value)
    assert expected == to_json(value)


@pytest.mark.parametrize("number", [0.0, -0.0, 1e15, 1e16, 1e21, 1e-5, 1e-7, 5e-324, 0.1 + 0.2, 2**63, -(2**63), 2**64])
def test_numbers_are_written_in_the_same_form(number, without_orjson):
    """Readers compare traces by their text."""
    assert without_orjson([number]) == to_json([number])


@pytest.mark.parametrize("number", [0.1, -0.0, 1e300, 5e-324, 2**80])
def test_numbers_come_back_as_they_were(number):
    """Nothing is rounded."""
    assert repr([number]) == repr(json.loads(to_json([number])))


def test_half_a_surrogate_pair_becomes_a_question_mark(without_orjson):
    """UTF-8 cannot hold it."""
    assert b'{"a":"x?y"}' == to_json({"a": "x\ud800y"}) == without_orjson({"a": "x\ud800y"})
