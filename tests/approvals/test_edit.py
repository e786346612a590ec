"""Edits: what may be changed, what an edit counts as, and what it can never become."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest

from grace_kp.approvals import PolicyNow, Secret, new_key
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, EditRefused, NotEntitled
from tests.approvals.shops import ANA, BO, Shop, asked, claim, keyed, logged_in, sealing


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["finance", "legal"]})


def test_an_edit_is_consent_to_its_result(shop):
    """The claim must carry the new digest."""
    approval = shop.requests.file(asked())
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest=approval.digest)
    assert ("edited", {"invoice": "R-1", "euros": 20}, 500) == (edited.state, edited.arguments, edited.asked["euros"])
    assert approval.digest == edited.asked_digest != edited.digest
    with pytest.raises(ChangedSinceShown):
        claim(shop.requests, approval)
    assert "claimed" == claim(shop.requests, edited).approval.state


def test_an_edit_is_idempotent(shop):
    """Also with the digest that was shown before it."""
    approval = shop.requests.file(asked())
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest=approval.digest)
    assert edited == shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest=approval.digest)
    assert edited == shop.requests.edit(approval.id, {"euros": 20}, by=ANA)
    with pytest.raises(AlreadyDecided, match="edited by ana"):
        shop.requests.edit(approval.id, {"euros": 21}, by=ANA)
    with pytest.raises(AlreadyDecided, match="edited by ana"):
        shop.requests.edit(approval.id, {"euros": 20}, by=BO)


def test_an_edit_restarts_the_count(shop):
    """A vote for the old arguments is void, one for the new ones needs their digest or a look at them."""
    approval = shop.requests.file(asked(quorum=2))
    shop.requests.approve(approval.id, by=logged_in("ana"))
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=logged_in("bo"))
    assert ("pending", ["bo"]) == (edited.state, [vote.actor.name for vote in edited.votes])
    with pytest.raises(ChangedSinceShown, match="changed by bo"):
        shop.requests.approve(approval.id, by=logged_in("ana"), digest=approval.digest)
    with pytest.raises(ChangedSinceShown, match="does not say which were shown"):
        shop.requests.approve(approval.id, by=logged_in("ana"))
    shop.requests.get(approval.id, by=logged_in("ana"))
    assert "edited" == shop.requests.approve(approval.id, by=logged_in("ana")).state


def test_an_edit_takes_the_stricter_policy(shop):
    """Of the one that was asked under and the one now in force."""
    approval = shop.requests.file(asked())
    policy = PolicyNow(floor="escalate", groups=("finance",), quorum=2)
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=logged_in("ana"), policy=policy)
    assert ("pending", "escalate", ("finance",), 2) == (edited.state, edited.level, edited.groups, edited.quorum)
    edited = shop.requests.approve(approval.id, by=logged_in("bo"), digest=edited.digest)
    assert "claimed" == claim(shop.requests, edited, policy=policy).approval.state


@pytest.mark.parametrize(
    ("policy", "error"),
    [(PolicyNow(denies=True), EditRefused), (PolicyNow(groups=("board",)), EditRefused), (PolicyNow(groups=("legal",)), NotEntitled)],
)  # fmt: skip
def test_an_edit_that_the_policy_does_not_allow_is_refused(shop, policy, error):
    """Nothing is written."""
    fields = {"groups": ("finance",)} if error is EditRefused else {"groups": ("finance", "legal")}
    approval = shop.requests.file(asked(**fields))
    with pytest.raises(error):
        shop.requests.edit(approval.id, {"euros": 20}, by=ANA, policy=policy)
    assert ["requested"] == shop.kinds()


@pytest.mark.parametrize(
    ("changes", "fields", "message"),
    [
        ({}, {}, "maps parameter names to values"),
        ([("euros", 1)], {}, "maps parameter names to values"),
        ({3: 1}, {}, "maps parameter names to values"),
        ({"euros": 500}, {}, "changes nothing"),
        ({"action": "delete_all"}, {}, "has no parameter 'action'; it has invoice, euros"),
        ({"invoice": "R-2"}, {}, "invoice identifies the operation"),
        ({"euros": 20}, {"not_covered": ("euros",)}, "euros is not covered"),
        ({"euros": 20}, {"unencoded": ("session",)}, "only the process that waits holds session"),
        ({"euros": object()}, {}, "has no encoding"),
        ({"euros": "password=hunter22hunter"}, {}, "no key to seal it with"),
    ],
)
def test_what_cannot_be_edited_is_refused(shop, changes, fields, message):
    """The error names the parameter and the reason; nothing is written."""
    approval = shop.requests.file(keyed(**fields))
    with pytest.raises(EditRefused, match=message):
        shop.requests.edit(approval.id, changes, by=ANA)
    assert ["requested"] == shop.kinds()


def test_encoded_values_can_be_passed(shop):
    """The command line passes JSON; nothing sealed can be smuggled in."""
    approval = shop.requests.file(asked())
    for bad in ({"$decimal": "x"}, {"$sealed": "AAAA", "key": "k"}, {"a": [{"$sealed": "AAAA"}]}, float("nan")):
        with pytest.raises(EditRefused):
            shop.requests.edit(approval.id, {"euros": bad}, by=ANA, is_encoded=True)
    edited = shop.requests.edit(approval.id, {"euros": {"$decimal": "1.10"}}, by=ANA, is_encoded=True)
    assert decimal.Decimal("1.10") == edited.arguments["euros"]


SCHEMA = {
    "properties": {
        "invoice": {"type": "string"},
        "euros": {"type": "integer", "maximum": 600},
        "day": {"anyOf": [{"type": "string", "format": "date", "x-encoding": "$date"}, {"type": "null"}]},
    }
}


@pytest.mark.parametrize("is_encoded", [False, True])
def test_an_edit_fits_the_schema_of_the_action(shop, is_encoded):
    """Where the action itself is not at hand: a text is no integer, and a date may be written as a text."""
    approval = shop.requests.file(asked({"invoice": "R-1", "euros": 500, "day": None}, schema=SCHEMA))
    for changes, message in (
        ({"euros": "20"}, "euros: '20' is not of type 'integer'"),
        ({"euros": True}, "euros: True is not of type 'integer'"),
        ({"euros": 601}, "greater than the maximum"),
        ({"day": "soon"}, "day: 'soon' is no date such as"),
    ):
        with pytest.raises(EditRefused, match=message):
            shop.requests.edit(approval.id, changes, by=ANA, is_encoded=is_encoded)
    assert ["requested"] == shop.kinds()
    edited = shop.requests.edit(approval.id, {"day": "2026-01-31"}, by=ANA, is_encoded=is_encoded)
    assert dt.date(2026, 1, 31) == edited.arguments["day"]


def test_sealed_parameters_are_edited_where_their_key_is():
    """Elsewhere an edit is refused, because nobody there can compute the digest."""
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    approval = shop.requests.file(*sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ("iban",)))
    with pytest.raises(EditRefused, match="iban is sealed and cannot be opened here"):
        shop.another("p2", secret=None).edit(approval.id, {"euros": 6}, by=ANA)
    edited = shop.requests.edit(approval.id, {"euros": 6}, by=ANA)
    assert {"iban": "DE89370400440532013000", "euros": 6} == edited.arguments
    assert "$sealed" in edited.encoded["iban"]
    assert "[SEALED]" == repr(shop.another("p2", secret=None).get(approval.id).arguments["iban"])


def test_arguments_that_were_changed_in_the_store_are_not_edited(shop):
    """They do not have the digest that people decide on."""
    approval = shop.requests.file(asked(digest="sha256:00"))
    with pytest.raises(EditRefused, match="do not have its digest"):
        shop.requests.edit(approval.id, {"euros": 6}, by=ANA)


def test_an_edit_of_an_edit_belongs_to_its_last_editor(shop):
    """Until enough people agree, another may change it again."""
    approval = shop.requests.file(asked(quorum=2))
    first = shop.requests.edit(approval.id, {"euros": 20}, by=logged_in("ana"))
    second = shop.requests.edit(approval.id, {"euros": 30}, by=logged_in("bo"), digest=first.digest)
    assert (30, ["bo"]) == (second.arguments["euros"], [vote.actor.name for vote in second.votes])
    back = shop.requests.edit(approval.id, {"euros": 500}, by=logged_in("ana"), digest=second.digest)
    assert approval.digest == back.digest
    assert "approved" == shop.requests.approve(approval.id, by=logged_in("bo"), digest=back.digest).state


def test_edits_with_a_bad_digest_or_name_are_refused(shop):
    """As every verb."""
    approval = shop.requests.file(asked())
    with pytest.raises(ChangedSinceShown):
        shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest="sha256:00")
    with pytest.raises(ApprovalError):
        shop.requests.edit("nope", {"euros": 20}, by=ANA)
