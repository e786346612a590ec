"""Figures of approvals: what was decided in a period, how, and how long people took."""

from __future__ import annotations

import pytest

from grace_kp.approvals import ApprovalFigures, Standing, approval_figures
from tests.approvals.desks import ANA, Bureau, asked, claim

BEGIN = 1_000.0


@pytest.fixture
def bureau():
    return Bureau()


def figures(bureau, since=0.0, until=10**9, **options):
    return approval_figures(bureau.tables, since, until, **options)


def test_without_requests_there_is_nothing():
    """Zeros, and no waits."""
    assert ApprovalFigures(pending=0) == figures(Bureau())


def test_decisions_are_counted_by_their_kind(bureau):
    """What came of the action afterwards does not change how the request was decided."""
    requests = [bureau.desk.request(asked(deadline_seconds=60.0)) for _ in range(5)]
    bureau.clock.now += 5
    claim(bureau.desk, bureau.desk.approve(requests[0].id, actor=ANA))
    bureau.clock.now += 5
    bureau.desk.approve(requests[1].id, actor=ANA)
    bureau.desk.reject(requests[2].id, actor=ANA, reason="no")
    bureau.desk.withdraw(requests[3].id, actor=ANA, reason="not needed")
    found = figures(bureau)
    assert {"approved": 2, "rejected": 1, "cancelled": 1} == dict(found.outcomes)
    assert 1 == found.pending
    bureau.clock.now += 1_000
    bureau.desk.sweep()
    assert 0 == figures(bureau).pending
    assert 2 == figures(bureau).outcomes["expired"]  # the pending one, and the approved one that nobody used


def test_only_people_take_their_time(bureau):
    """Neither a deadline nor a standing approval is a wait."""
    first = bureau.desk.request(asked(deadline_seconds=60.0))
    bureau.desk.request(asked(deadline_seconds=30.0))
    bureau.clock.now += 20
    bureau.desk.approve(first.id, actor=ANA)
    bureau.desk.grant(
        Standing(
            action="refund",
            domain="shop",
            parameters={"euros": {"to": 20}, "invoice": {"any": True}},
            until=9_000.0,
            uses=3,
        ),
        actor=ANA,
    )
    bureau.desk.request(asked({"invoice": "R-2", "euros": 1}))
    bureau.clock.now += 100
    bureau.desk.sweep()
    found = figures(bureau)
    assert (20.0,) == found.waits
    assert {"approved": 1, "expired": 1, "standing": 1} == dict(found.outcomes)


def test_a_period_begins_and_ends(bureau):
    """The time of the decision counts, not that of the request or of the action; the end does not belong to it."""
    request = bureau.desk.request(asked())
    bureau.clock.now = 2_000.0
    approval = bureau.desk.approve(request.id, actor=ANA)
    bureau.clock.now = 2_500.0
    claim(bureau.desk, approval)
    assert {"approved": 1} == dict(figures(bureau, 2_000.0, 2_001.0).outcomes)
    assert {} == dict(figures(bureau, 1_000.0, 2_000.0).outcomes)
    assert {} == dict(figures(bureau, 2_001.0, 3_000.0).outcomes)


def test_what_is_read_is_bounded(bureau):
    """By the newest, and the figures say so."""
    for seconds in range(4):
        request = bureau.desk.request(asked({"invoice": f"R-{seconds}", "euros": 1}))
        bureau.clock.now += seconds
        bureau.desk.reject(request.id, actor=ANA, reason="no")
    found = figures(bureau, limit=2)
    assert (2.0, 3.0) == found.waits
    assert found.is_cut
    assert not figures(bureau, limit=5).is_cut
