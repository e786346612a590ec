"""Who decides: actors, spellings of a name, and accounts that are lost."""

from __future__ import annotations

import json

import pytest

from grace_kp.approvals import ACCOUNT, Actor, Standing, account_mark, consents, person, reason_without_account
from grace_kp.approvals._request import DECIDING_ROLES
from grace_kp.errors import AlreadyDecided, NotEntitled
from grace_kp.web import Role
from grace_kp.web._site import RIGHTS, Right
from tests.approvals.shops import GATE, SAME, Shop, asked

SECRET = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"


@pytest.mark.parametrize("name", ["", "  ", None, 3, "a" * 201])
def test_who_decides_has_a_name(name):
    with pytest.raises(ValueError, match="by must be a name"):
        Actor.here(name)


def test_a_name_with_a_secret_is_recorded_without_it():
    actor = Actor.here(SECRET, authenticated=True)
    assert ("[REDACTED:api_key]", False) == (actor.name, actor.authenticated)
    assert person(SECRET) == person(actor.name)
    assert actor == Actor.from_dict(actor.to_dict())


CREATED = 1_000.25
BO = Actor(name="bo", channel="web", authenticated=True)


def account_of(name, created=CREATED):
    return Actor(name=name, channel="web", authenticated=True, account=account_mark(created))


@pytest.fixture
def shop():
    made = Shop()
    put(made, "ana")
    return made


def put(shop, name, role="approver", created=CREATED):
    data = None if role is None else json.dumps({"name": name, "role": role, "created": created}).encode()
    with shop.tables.transaction() as writes:
        writes.put_document(ACCOUNT, name, data)


LOSSES = {
    "removed": {"role": None},
    "no longer includes": {"role": "viewer"},
    "was removed": {"created": CREATED + 1},  # somebody else got the name
}


@pytest.mark.parametrize(("words", "change"), LOSSES.items())
def test_a_vote_counts_while_its_author_may_decide(shop, words, change):
    request = shop.requests.file(asked(quorum=2, identity="authenticated"))
    shop.requests.approve(request.id, by=account_of("ana"))
    put(shop, "ana", **change)
    assert words in reason_without_account(shop.tables, account_of("ana"))
    assert 0 == consents(shop.requests.get(request.id))
    assert "pending" == shop.requests.approve(request.id, by=BO).state
    assert 1 == consents(shop.requests.get(request.id))


def test_who_comes_back_may_vote_again(shop):
    request = shop.requests.file(asked(quorum=2, identity="authenticated"))
    shop.requests.approve(request.id, by=account_of("ana"))
    put(shop, "ana", created=CREATED + 1)
    again = account_of("ana", CREATED + 1)
    assert [request.id] == [each.id for each in shop.requests.pending(decider=again)]
    assert 1 == consents(shop.requests.approve(request.id, by=again))
    assert "approved" == shop.requests.approve(request.id, by=BO).state


@pytest.mark.parametrize("change", LOSSES.values())
def test_an_account_that_was_just_lost_decides_nothing(shop, change):
    """The page that was admitted before the change comes to the requests after it."""
    request = shop.requests.file(asked())
    put(shop, "ana", **change)
    for decide in (shop.requests.approve, shop.requests.reject):
        with pytest.raises(NotEntitled, match="ana"):
            decide(request.id, by=account_of("ana"))
    assert "pending" == shop.requests.get(request.id).state


@pytest.mark.parametrize("change", LOSSES.values())
def test_a_standing_approval_works_while_its_author_may_decide(shop, change):
    """Also for what it has approved and nobody has started: the claim is refused."""
    new = asked()
    terms = Standing(
        action=new.action,
        domain=new.domain,
        parameters={name: {"any": True} for name in new.encoded},
        until=shop.clock() + 3_600,
        uses=10,
    )
    granted = shop.requests.grant(terms, by=account_of("ana"))
    before = shop.requests.file(new)
    assert ("approved", granted.id) == (before.state, before.standing)
    put(shop, "ana", **change)
    assert "pending" == shop.requests.file(asked({"invoice": "R-2", "euros": 1})).state
    with pytest.raises(AlreadyDecided, match="may no longer decide"):
        shop.requests.claim(before.id, digest=before.digest, version=before.version, policy=SAME, by=GATE)


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"role": "admin"}', b'{"created": "x", "role": "admin"}'])
def test_an_account_that_cannot_be_read_consents_to_nothing(shop, data):
    with shop.tables.transaction() as writes:
        writes.put_document(ACCOUNT, "ana", data)
    assert "cannot be read" in reason_without_account(shop.tables, account_of("ana"))


def test_the_roles_that_decide_are_those_of_the_pages():
    assert {role.value for role in Role if Right.DECIDE in RIGHTS[role]} == DECIDING_ROLES


def test_a_decision_that_was_made_stays(shop):
    """Names without an account are not compared with accounts."""
    request = shop.requests.file(asked())
    shop.requests.approve(request.id, by=account_of("ana"))
    put(shop, "ana", role=None)
    put(shop, "bo", role="viewer")
    shown = shop.requests.get(request.id)
    assert ("approved", 1, "") == (shown.state, consents(shown), reason_without_account(shop.tables, BO))
