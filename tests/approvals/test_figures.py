"""Figures of approvals: what was decided in a period, how, and how long people took."""

from __future__ import annotations

import pytest

from grace_kp.approvals import ApprovalFigures, Standing, approval_figures
from tests.approvals.shops import ANA, Shop, asked, claim

BEGIN = 1_000.0


@pytest.fixture
def shop():
    return Shop()


def figures(shop, since=0.0, until=10**9, **options):
    return approval_figures(shop.tables, since, until, **options)


def test_without_requests_there_is_nothing():
    """Zeros, and no waits."""
    assert ApprovalFigures(pending=0) == figures(Shop())


def test_decisions_are_counted_by_their_kind(shop):
    """What came of the action afterwards does not change how the request was decided."""
    requests = [shop.requests.file(asked(deadline_seconds=60.0)) for _ in range(5)]
    shop.clock.now += 5
    claim(shop.requests, shop.requests.approve(requests[0].id, actor=ANA))
    shop.clock.now += 5
    shop.requests.approve(requests[1].id, actor=ANA)
    shop.requests.reject(requests[2].id, actor=ANA, reason="no")
    shop.requests.withdraw(requests[3].id, actor=ANA, reason="not needed")
    found = figures(shop)
    assert {"approved": 2, "rejected": 1, "cancelled": 1} == dict(found.outcomes)
    assert 1 == found.pending
    shop.clock.now += 1_000
    shop.requests.sweep()
    assert 0 == figures(shop).pending
    assert 2 == figures(shop).outcomes["expired"]  # the pending one, and the approved one that nobody used


def test_only_people_take_their_time(shop):
    """Neither a deadline nor a standing approval is a wait."""
    first = shop.requests.file(asked(deadline_seconds=60.0))
    shop.requests.file(asked(deadline_seconds=30.0))
    shop.clock.now += 20
    shop.requests.approve(first.id, actor=ANA)
    shop.requests.grant(
        Standing(
            action="refund",
            domain="shop",
            parameters={"euros": {"to": 20}, "invoice": {"any": True}},
            until=9_000.0,
            uses=3,
        ),
        actor=ANA,
    )
    shop.requests.file(asked({"invoice": "R-2", "euros": 1}))
    shop.clock.now += 100
    shop.requests.sweep()
    found = figures(shop)
    assert (20.0,) == found.waits
    assert {"approved": 1, "expired": 1, "standing": 1} == dict(found.outcomes)


def test_a_period_begins_and_ends(shop):
    """The time of the decision counts, not that of the request or of the action; the end does not belong to it."""
    request = shop.requests.file(asked())
    shop.clock.now = 2_000.0
    approval = shop.requests.approve(request.id, actor=ANA)
    shop.clock.now = 2_500.0
    claim(shop.requests, approval)
    assert {"approved": 1} == dict(figures(shop, 2_000.0, 2_001.0).outcomes)
    assert {} == dict(figures(shop, 1_000.0, 2_000.0).outcomes)
    assert {} == dict(figures(shop, 2_001.0, 3_000.0).outcomes)


def test_what_is_read_is_bounded(shop):
    """By the newest, and the figures say so."""
    for seconds in range(4):
        request = shop.requests.file(asked({"invoice": f"R-{seconds}", "euros": 1}))
        shop.clock.now += seconds
        shop.requests.reject(request.id, actor=ANA, reason="no")
    found = figures(shop, limit=2)
    assert (2.0, 3.0) == found.waits
    assert found.is_cut
    assert not figures(shop, limit=5).is_cut
