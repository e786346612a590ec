"""Lists: what waits, by deadline and level; what does not any more, newest first."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, _listing
from tests.approvals.desks import ANA, BO, Bureau, asked, claim


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


@pytest.mark.parametrize("many", [0, 10_000])
def test_what_a_person_decided_is_found_whether_it_is_rare_or_not(bureau, monkeypatch, many):
    """By an index, or among the newest rows: votes for arguments before an edit are none any more, and a claim is nobody's decision."""
    monkeypatch.setattr(_listing, "AT_MOST_LOOKED_UP", many)
    ids = []
    for verb, actor in (("approve", ANA), ("reject", BO), ("approve", Actor(name="ANA", channel="web"))):
        bureau.clock.now += 1
        ids.append(bureau.desk.request(asked()).id)
        getattr(bureau.desk, verb)(ids[-1], actor=actor)
    bureau.desk.request(asked())
    claim(bureau.desk, bureau.desk.get(ids[0]))
    bureau.clock.now += 5_000
    assert [ids[2], ids[0]] == [each.id for each in bureau.desk.history(by="ana")]
    assert [ids[1]] == [each.id for each in bureau.desk.history(by="Bo", action="ref*")]
    assert [] == bureau.desk.history(by="bo", action="delete") == bureau.desk.history(by="gate")
    assert [ids[2]] == [each.id for each in bureau.desk.history(by="ana", limit=1)]


def test_a_rare_name_is_found_without_reading_everything(bureau):
    """Only its own rows."""
    for _ in range(3):
        bureau.desk.reject(bureau.desk.request(asked()).id, actor=ANA)
    wanted = bureau.desk.request(asked()).id
    bureau.desk.reject(wanted, actor=BO)
    assert {wanted: b""} == bureau.tables.documents(_listing.index_of("bo"))
