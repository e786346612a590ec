"""Lists: what waits, by deadline and level; what does not any more, newest first."""

from __future__ import annotations

import pytest

from tests.approvals.desks import ANA, BO, Bureau, asked


@pytest.fixture
def bureau():
    return Bureau()


def test_what_waits_is_listed_by_deadline_and_level(bureau):
    """What is due first stands first; without a deadline last."""
    ids = {
        name: bureau.desk.request(asked(**fields)).id
        for name, fields in {
            "never": {"deadline_seconds": None},
            "late": {"deadline_seconds": 50.0},
            "mild": {"deadline_seconds": 20.0},
            "strict": {"deadline_seconds": 20.0, "level": "escalate"},
        }.items()
    }
    names = {approval_id: name for name, approval_id in ids.items()}
    assert ["strict", "mild", "late", "never"] == [names[each.id] for each in bureau.desk.pending()]
    assert 2 == len(bureau.desk.pending(limit=2))


def test_what_waits_can_be_restricted(bureau):
    """To actions that match, and to what members of a group may decide."""
    for number in range(30):
        bureau.desk.request(asked(action=f"refund.{number % 3}", groups=("finance",) if number % 2 else ()))
    bureau.desk.request(asked(action="delete", groups=("board",)))
    assert 10 == len(bureau.desk.pending("refund.1"))
    assert 30 == len(bureau.desk.pending("refund.*"))
    assert 16 == len(bureau.desk.pending(group="board"))
    assert 3 == len(bureau.desk.pending("refund.*", group="board", limit=3))


def test_requests_with_one_digest_are_counted(bureau):
    """So that a list shows them as one entry."""
    for _ in range(3):
        bureau.desk.request(asked())
    bureau.desk.request(asked({"invoice": "R-2", "euros": 1}))
    assert [3, 3, 3, 1] == sorted((each.same for each in bureau.desk.pending()), reverse=True)
    first = bureau.desk.pending()[0]
    assert 1 == bureau.desk.approve(first.id, actor=ANA).same


def test_history_holds_what_no_longer_waits(bureau):
    """By action, person and time."""
    ids = []
    for number in range(6):
        bureau.clock.now += 1
        ids.append(bureau.desk.request(asked(action=f"a{number % 2}")).id)
        bureau.desk.reject(ids[-1], actor=ANA if number < 3 else BO)
    bureau.desk.request(asked())
    assert ids[::-1] == [each.id for each in bureau.desk.history()]
    assert ids[1::2][::-1] == [each.id for each in bureau.desk.history(action="a1")]
    assert ids[2::-1] == [each.id for each in bureau.desk.history(by=" Ana ")]
    assert ids[:3:-1] == [each.id for each in bureau.desk.history(since=bureau.clock.now - 1)]
    assert ids[:2:-1][:2] == [each.id for each in bureau.desk.history(by="bo", limit=2)]
    assert [] == bureau.desk.history(by="cy")
