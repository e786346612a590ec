"""Calls that join a request of their key: what they may use of it, and what they change."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.approvals import Secret, Standing, digest, new_key
from grace_kp.errors import KeyReused, NotEntitled
from tests.approvals.desks import ANA, BO, Bureau, keyed

GROUPS = {"ana": ["finance"], "bo": ["finance"]}


@pytest.fixture
def bureau():
    return Bureau(groups=GROUPS)


@pytest.mark.parametrize("rule", [{"groups": ("finance",)}, {"quorum": 2, "identity": "stated"}])
def test_the_user_of_a_run_that_joins_may_not_decide_either(bureau, rule):
    """The action runs for this person, too."""
    first = bureau.desk.request(keyed(user="cy", **rule))
    second = bureau.desk.request(keyed(user="bo", run_id="run-2", **rule))
    assert first.id == second.id
    with pytest.raises(NotEntitled, match="the run acts for this person"):
        bureau.desk.approve(first.id, actor=BO)


def test_a_vote_no_longer_counts_once_a_run_of_its_author_joins(bureau):
    """Two others must consent."""
    first = bureau.desk.request(keyed(quorum=2, identity="stated"))
    bureau.desk.approve(first.id, actor=BO)
    bureau.desk.request(keyed(user="Bo", run_id="run-2", quorum=2, identity="stated"))
    assert "pending" == bureau.desk.approve(first.id, actor=ANA).state


def test_a_run_cannot_use_the_consent_of_its_own_user(bureau):
    """Also where the request was asked for somebody else."""
    first = bureau.desk.request(keyed(user="cy", groups=("finance",), waits="raise"))
    bureau.desk.approve(first.id, actor=BO)
    with pytest.raises(NotEntitled, match="somebody else must decide"):
        bureau.desk.request(keyed(user="bo", groups=("finance",), waits="raise", run_id="run-2"))
    assert "approved" == bureau.desk.request(keyed(user="cy", groups=("finance",), waits="raise")).state


def test_a_stricter_level_is_shown_to_whoever_decides(bureau):
    """A milder one changes nothing."""
    levels = [
        bureau.desk.request(keyed(level=level, run_id=level)).level for level in ("confirm", "escalate", "confirm")
    ]
    assert ["confirm", "escalate", "escalate"] == levels


def test_a_call_at_level_escalate_does_not_use_a_standing_approval(bureau):
    """Which does not cover it: a person is asked, and the consent that nobody has used is cancelled."""
    any_value = {"invoice": {"any": True}, "euros": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=any_value, until=9_000.0, uses=3)
    bureau.desk.grant(standing, actor=ANA)
    first = bureau.desk.request(keyed(waits="raise"))
    second = bureau.desk.request(keyed(waits="raise", level="escalate"))
    assert ("approved", "pending", "cancelled") == (first.state, second.state, bureau.desk.get(first.id).state)
    assert [first.id] == [each.id for each in second.earlier]


def test_a_request_from_before_there_was_a_key_is_joined(bureau):
    """Its digest is compared in the scheme that it names. Without that key the arguments count as others."""
    first = bureau.desk.request(keyed())
    secret = Secret(new_key())
    new = keyed()
    rotated = dataclasses.replace(new, digest=digest("refund", "1", new.encoded, secret=secret))
    joined = bureau.another("p2", secret=secret).request(rotated)
    assert (first.id, first.digest) == (joined.id, joined.digest)


def test_another_version_is_named(bureau):
    """After a deployment somebody must know which of the two differs, and what to do."""
    bureau.desk.request(keyed())
    with pytest.raises(KeyReused, match="was asked for version 1 of the action, not 2; withdraw it if it is open"):
        bureau.desk.request(keyed(version="2"))
