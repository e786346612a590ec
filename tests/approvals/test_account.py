"""Consent that was given under an account counts only while the account may decide."""

from __future__ import annotations

import json

import pytest

from grace_kp.approvals import (
    ACCOUNT,
    DECIDING_ROLES,
    Actor,
    Standing,
    account_mark,
    consents,
    reason_without_account,
)
from grace_kp.errors import AlreadyDecided, NotEntitled
from grace_kp.web import Role
from grace_kp.web._access import RIGHTS, Right
from tests.approvals.desks import GATE, SAME, Bureau, asked

CREATED = 1_000.25
BO = Actor(name="bo", channel="web", authenticated=True)


def person(name, created=CREATED):
    return Actor(name=name, channel="web", authenticated=True, account=account_mark(created))


@pytest.fixture
def bureau():
    made = Bureau()
    put(made, "ana")
    return made


def put(bureau, name, role="approver", created=CREATED):
    data = None if role is None else json.dumps({"name": name, "role": role, "created": created}).encode()
    with bureau.tables.transaction() as writes:
        writes.put_document(ACCOUNT, name, data)


LOSSES = {
    "removed": {"role": None},
    "no longer includes": {"role": "viewer"},
    "was removed": {"created": CREATED + 1},  # somebody else got the name
}


@pytest.mark.parametrize(("words", "change"), LOSSES.items())
def test_a_vote_counts_while_its_author_may_decide(bureau, words, change):
    """Otherwise one person who has left, and one who is there, would be two."""
    request = bureau.desk.request(asked(quorum=2, identity="authenticated"))
    bureau.desk.approve(request.id, actor=person("ana"))
    put(bureau, "ana", **change)
    assert words in reason_without_account(bureau.tables, person("ana"))
    assert 0 == consents(bureau.desk.get(request.id))
    assert "pending" == bureau.desk.approve(request.id, actor=BO).state
    assert 1 == consents(bureau.desk.get(request.id))


def test_who_comes_back_may_vote_again(bureau):
    """The vote under the earlier account is no vote of the new one."""
    request = bureau.desk.request(asked(quorum=2, identity="authenticated"))
    bureau.desk.approve(request.id, actor=person("ana"))
    put(bureau, "ana", created=CREATED + 1)
    again = person("ana", CREATED + 1)
    assert [request.id] == [each.id for each in bureau.desk.pending(decider=again)]
    assert 1 == consents(bureau.desk.approve(request.id, actor=again))
    assert "approved" == bureau.desk.approve(request.id, actor=BO).state


@pytest.mark.parametrize("change", LOSSES.values())
def test_an_account_that_was_just_lost_decides_nothing(bureau, change):
    """The page that was admitted before the change comes to the desk after it."""
    request = bureau.desk.request(asked())
    put(bureau, "ana", **change)
    for decide in (bureau.desk.approve, bureau.desk.reject):
        with pytest.raises(NotEntitled, match="ana"):
            decide(request.id, actor=person("ana"))
    assert "pending" == bureau.desk.get(request.id).state


@pytest.mark.parametrize("change", LOSSES.values())
def test_a_standing_approval_works_while_its_author_may_decide(bureau, change):
    """Also for what it has approved and nobody has started: the claim is refused."""
    new = asked()
    terms = Standing(
        action=new.action,
        domain=new.domain,
        parameters={name: {"any": True} for name in new.encoded},
        until=bureau.clock() + 3_600,
        uses=10,
    )
    granted = bureau.desk.grant(terms, actor=person("ana"))
    before = bureau.desk.request(new)
    assert ("approved", granted.id) == (before.state, before.standing)
    put(bureau, "ana", **change)
    assert "pending" == bureau.desk.request(asked({"invoice": "R-2", "euros": 1})).state
    with pytest.raises(AlreadyDecided, match="may no longer decide"):
        bureau.desk.claim(before.id, digest=before.digest, version=before.version, policy=SAME, actor=GATE)


def test_a_decision_that_was_made_stays(bureau):
    """The person was entitled when it decided."""
    request = bureau.desk.request(asked())
    bureau.desk.approve(request.id, actor=person("ana"))
    put(bureau, "ana", role=None)
    shown = bureau.desk.get(request.id)
    assert ("approved", 1) == (shown.state, consents(shown))


def test_names_without_an_account_are_not_compared_with_accounts(bureau):
    """Those of the command line, and those that another application has logged in."""
    put(bureau, "bo", role="viewer")
    assert "" == reason_without_account(bureau.tables, BO)


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"role": "admin"}', b'{"created": "x", "role": "admin"}'])
def test_an_account_that_cannot_be_read_consents_to_nothing(bureau, data):
    """A damaged document makes nothing more lenient."""
    with bureau.tables.transaction() as writes:
        writes.put_document(ACCOUNT, "ana", data)
    assert "cannot be read" in reason_without_account(bureau.tables, person("ana"))


def test_the_roles_that_decide_are_those_of_the_pages():
    """Both rooms state them."""
    assert {role.value for role in Role if Right.DECIDE in RIGHTS[role]} == DECIDING_ROLES
