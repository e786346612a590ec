"""Calls that join a request of their key: what they may use of it, and what they change."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.approvals import Secret, Standing, digest, new_key
from grace_kp.errors import KeyReused, NotEntitled
from tests.approvals.shops import ANA, BO, Shop, keyed

GROUPS = {"ana": ["finance"], "bo": ["finance"]}


@pytest.fixture
def shop():
    return Shop(groups=GROUPS)


@pytest.mark.parametrize("rule", [{"groups": ("finance",)}, {"quorum": 2, "identity": "stated"}])
def test_the_user_of_a_run_that_joins_may_not_decide_either(shop, rule):
    """The action runs for this person, too."""
    first = shop.requests.file(keyed(user="cy", **rule))
    second = shop.requests.file(keyed(user="bo", run_id="run-2", **rule))
    assert first.id == second.id
    with pytest.raises(NotEntitled, match="the run acts for this person"):
        shop.requests.approve(first.id, actor=BO)


def test_a_vote_no_longer_counts_once_a_run_of_its_author_joins(shop):
    """Two others must consent."""
    first = shop.requests.file(keyed(quorum=2, identity="stated"))
    shop.requests.approve(first.id, actor=BO)
    shop.requests.file(keyed(user="Bo", run_id="run-2", quorum=2, identity="stated"))
    assert "pending" == shop.requests.approve(first.id, actor=ANA).state


def test_a_run_cannot_use_the_consent_of_its_own_user(shop):
    """Also where the request was asked for somebody else."""
    first = shop.requests.file(keyed(user="cy", groups=("finance",), waits="raise"))
    shop.requests.approve(first.id, actor=BO)
    with pytest.raises(NotEntitled, match="somebody else must decide"):
        shop.requests.file(keyed(user="bo", groups=("finance",), waits="raise", run_id="run-2"))
    assert "approved" == shop.requests.file(keyed(user="cy", groups=("finance",), waits="raise")).state


def test_a_stricter_level_is_shown_to_whoever_decides(shop):
    """A milder one changes nothing."""
    levels = [
        shop.requests.file(keyed(level=level, run_id=level)).level for level in ("confirm", "escalate", "confirm")
    ]
    assert ["confirm", "escalate", "escalate"] == levels


def test_a_call_at_level_escalate_does_not_use_a_standing_approval(shop):
    """Which does not cover it: a person is asked, and the consent that nobody has used is cancelled."""
    any_value = {"invoice": {"any": True}, "euros": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=any_value, until=9_000.0, uses=3)
    shop.requests.grant(standing, actor=ANA)
    first = shop.requests.file(keyed(waits="raise"))
    second = shop.requests.file(keyed(waits="raise", level="escalate"))
    assert ("approved", "pending", "cancelled") == (first.state, second.state, shop.requests.get(first.id).state)
    assert [first.id] == [each.id for each in second.earlier]


def test_a_request_from_before_there_was_a_key_is_joined(shop):
    """Its digest is compared in the scheme that it names. Without that key the arguments count as others."""
    first = shop.requests.file(keyed())
    secret = Secret(new_key())
    new = keyed()
    rotated = dataclasses.replace(new, digest=digest("refund", "1", new.encoded, secret=secret))
    joined = shop.another("p2", secret=secret).file(rotated)
    assert (first.id, first.digest) == (joined.id, joined.digest)


def test_another_version_is_named(shop):
    """After a deployment somebody must know which of the two differs, and what to do."""
    shop.requests.file(keyed())
    with pytest.raises(KeyReused, match="was asked for version 1 of the action, not 2; withdraw it if it is open"):
        shop.requests.file(keyed(version="2"))
