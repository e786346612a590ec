"""Who is one person, and what a configuration of groups may be."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, RequestStore, RowQuery
from grace_kp.approvals._people import person
from grace_kp.errors import ApprovalError, NotEntitled
from grace_kp.store import open_store
from tests.approvals.shops import Shop, asked


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ana", "ANA "),
        ("straße", "STRASSE"),
        ("ana b", "ana  b"),
        ("ａｎａ", "ana"),
        ("an\u200ba", "\u202eana"),
        ("ana\u00ad", "ana\ufe0f"),
    ],
)
def test_spellings_of_one_name_are_one_person(first, second):
    """Otherwise one person could be a quorum."""
    assert person(first) == person(second)


@pytest.mark.parametrize("groups", [{"ana": "finance"}, {"ana": [1]}])
def test_groups_are_lists_of_names(groups):
    """A text would be a list of letters."""
    with pytest.raises(ValueError, match="must be a list of names"):
        RequestStore(open_store("memory:").approvals, groups=groups)


def test_a_name_that_shows_nothing_is_none():
    """Nobody could be asked about the decision."""
    shop = Shop()
    approval = shop.requests.file(asked())
    with pytest.raises(ApprovalError, match="needs a name"):
        shop.requests.approve(approval.id, actor=Actor(name="\u200b\u2066"))


def test_people_whose_names_hold_secrets_are_still_compared():
    """The user of a run may not decide, two votes of one name are one, and a group finds its member; no store holds the secret."""
    secret = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
    store = open_store("memory:")
    requests = RequestStore(store.approvals, groups={secret: ["finance"], "bo": ["finance"]})
    own = requests.file(asked(user=secret, groups=("finance",)))
    with pytest.raises(NotEntitled, match="acts for this person"):
        requests.approve(own.id, actor=Actor.here(secret))
    other = requests.file(asked({"invoice": "R-2", "euros": 1}, groups=("finance",), quorum=2, identity="stated"))
    assert ["pending", "pending", "approved"] == [
        requests.approve(other.id, actor=Actor.here(name)).state for name in (secret, secret, "bo")
    ]
    assert [other.id] == [approval.id for approval in requests.history(by=secret)]
    held = [row.data for row in store.approvals.rows(RowQuery())] + [link.data for link in store.approvals.links()]
    assert not any(secret.encode() in data for data in held)
