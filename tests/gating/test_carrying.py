"""An approved action carried out in another process: the arguments as they were approved, in their types, or not at all."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime

LATER = gk.InboxReviewer(wait="hand_over")


@dataclasses.dataclass
class Order:
    number: int
    price: decimal.Decimal


def define(grace, seen):
    @grace.gate(floor="confirm", name="ship", reviewer=LATER)
    def ship(order: Order, day: dt.date, weights: tuple[float, ...], *, big: int = 2**70) -> str:
        seen.append((order, day, weights, big))
        return "sent"

    return ship


def test_another_runtime_carries_it_out(tmp_path):
    """With equal values of the same types."""
    call = (Order(1, decimal.Decimal("1.10")), dt.date(2026, 1, 2), (1.0, 2.5))
    first = runtime(tmp_path)
    name = define(first, [])(*call).approval.id
    first.close()
    second, seen = runtime(tmp_path), []
    action = define(second, seen)
    second.approvals.approve(name, by="ana")
    assert second.approvals.execute(name) == "sent"
    assert [(*call, 2**70)] == seen
    assert [decimal.Decimal, float] == [type(seen[0][0].price), type(seen[0][2][0])]
    second.close()
    assert callable(action)


def test_an_unknown_action(tmp_path):
    """The message says to import its module."""
    first = runtime(tmp_path)
    name = define(first, [])(Order(1, decimal.Decimal(1)), dt.date(2026, 1, 2), ()).approval.id
    first.approvals.approve(name, by="ana")
    first.close()
    second = runtime(tmp_path)
    with pytest.raises(gk.ApprovalError, match="no gate of this runtime defines the action 'ship'"):
        second.approvals.execute(name)
    second.close()
