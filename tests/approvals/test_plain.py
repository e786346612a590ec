"""Encoded arguments as plain JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import json

from hypothesis import given

from grace_kp.approvals import encode
from grace_kp.approvals._arguments import plain_json, tag_of
from tests.approvals.values import Address, Colour, Order, values


def plain(value, **options):
    return plain_json(encode({"x": value})[0]["x"], **options)


@given(values())
def test_every_encoding_has_a_plain_form(value):
    """Which is JSON."""
    assert json.dumps(plain(value))


def test_the_plain_form_shows_contents_without_types():
    """As a person would write them."""
    assert {"id": "a", "euros": ["1.10", "2026-01-02"]} == plain(
        Order("a", (decimal.Decimal("1.10"), dt.date(2026, 1, 2)))
    )
    assert ["red", "b", {"street": None, "zip": 1}] == plain([Colour.RED, b"b", Address(zip=1)])
    assert {"1": 2.0, "(3,)": 2**70} == {**plain({1: 2.0}), "(3,)": plain(2**70)}
    assert decimal.Decimal("1.10") == plain(decimal.Decimal("1.10"), decimal=decimal.Decimal)


def test_tags():
    """Plain JSON has none."""
    assert ["", "", "$tuple"] == [tag_of([1]), tag_of({"a": 1}), tag_of({"$tuple": []})]
