"""Who is one person, and what a configuration of groups may be."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Desk
from grace_kp.approvals._rights import person
from grace_kp.store import open_store


@pytest.mark.parametrize(
    ("first", "second"), [("ana", "ANA "), ("straße", "STRASSE"), ("ana b", "ana  b"), ("ａｎａ", "ana")]
)
def test_spellings_of_one_name_are_one_person(first, second):
    """Otherwise one person could be a quorum."""
    assert person(first) == person(second)


@pytest.mark.parametrize("groups", [{"ana": "finance"}, {"ana": [1]}])
def test_groups_are_lists_of_names(groups):
    """A text would be a list of letters."""
    with pytest.raises(ValueError, match="must be a list of names"):
        Desk(open_store("memory:").approvals, groups=groups)
