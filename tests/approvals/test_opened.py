"""Arguments as people see them."""

from __future__ import annotations

import datetime as dt
import decimal

from tests.approvals.desks import Bureau, asked


def test_arguments_come_back_as_they_were():
    """With their types."""
    arguments = {
        "euros": decimal.Decimal("1.10"),
        "on": dt.date(2026, 1, 2),
        "many": 2**70,
        "raw": b"\0",
        "pair": (1, 2),
    }
    approval = Bureau().desk.request(asked(arguments))
    assert arguments == approval.arguments
    assert [type(value) for value in arguments.values()] == [type(value) for value in approval.arguments.values()]


def test_a_value_that_cannot_be_read_stays_encoded():
    """The request can still be looked at, and rejected."""
    approval = Bureau().desk.request(
        asked(stored={"euros": {"$model": "shop.Order", "fields": {}}, "n": {"$int": "x"}})
    )
    assert {"euros": {"$model": "shop.Order", "fields": {}}, "n": {"$int": "x"}} == approval.arguments
