"""What verbs say: who came first, and when."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor
from grace_kp.errors import AlreadyDecided
from tests.approvals.shops import ANA, Shop, asked


def test_a_hostile_name_is_shown_without_its_control_characters():
    """The error is printed at terminals."""
    shop = Shop()
    approval = shop.requests.file(asked())
    shop.requests.reject(approval.id, actor=Actor(name="\x1b[2Jmallory\u202e"))
    with pytest.raises(AlreadyDecided, match=r"was rejected by \?\[2Jmallory\? at") as caught:
        shop.requests.approve(approval.id, actor=ANA)
    assert str(caught.value).isprintable()
