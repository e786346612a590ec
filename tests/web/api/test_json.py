"""JSON that every reader accepts, whatever the value holds."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.web.api._json import NOT_WRITABLE, json_response, json_text

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
)


def refuse(constant):
    raise ValueError(constant)


@given(ANYTHING)
def test_every_value_is_written(value):
    """As UTF-8 that strict readers accept."""
    json.loads(json_text(value).encode("utf-8"), parse_constant=refuse)


def test_what_json_holds_stays():
    """Texts stay as they are, half surrogate pairs as escapes."""
    for value in ({"a": [1, 2.5, None, True, "日本語 \u202e"]}, {"half": "\ud800"}):
        assert value == json.loads(json_text(value).encode("utf-8"))
    assert "日本語" in json_text("日本語")


def test_what_json_cannot_hold_is_replaced():
    """No number is null; what is too deep or has too many digits is named."""
    assert {"a": None, "b": [None]} == json.loads(json_text({"a": float("nan"), "b": [float("-inf")]}))
    assert {"n": NOT_WRITABLE} == json.loads(json_text({"n": 10**5_000}))
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert NOT_WRITABLE in json_text(deep)


def test_the_response_is_json_only():
    """No browser takes it for a page, and nobody keeps it."""
    response = json_response("{}", 409, {"Allow": "GET"})
    names = ("content-type", "x-content-type-options", "cache-control", "allow")
    assert (409, "application/json", "nosniff", "no-store", "GET") == (
        response.status_code,
        *(response.headers[name] for name in names),
    )
