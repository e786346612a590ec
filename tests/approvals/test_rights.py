"""Who is one person, and what a configuration of groups may be."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, Desk
from grace_kp.approvals._rights import person
from grace_kp.errors import ApprovalError
from grace_kp.store import open_store
from tests.approvals.desks import Bureau, asked


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
        Desk(open_store("memory:").approvals, groups=groups)


def test_a_name_that_shows_nothing_is_none():
    """Nobody could be asked about the decision."""
    bureau = Bureau()
    approval = bureau.desk.request(asked())
    with pytest.raises(ApprovalError, match="needs a name"):
        bureau.desk.approve(approval.id, actor=Actor(name="\u200b\u2066"))
