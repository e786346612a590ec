"""What a page can show of the arguments of a request."""

from __future__ import annotations

import dataclasses

from grace_kp.approvals import Secret, new_key
from grace_kp.gating import changed_arguments, unshown_arguments
from tests.approvals.shops import ANA, Shop, asked, sealing


def test_an_edit_is_found_by_comparing_values():
    """Nothing has changed without an edit; an equal value is no change."""
    shop = Shop()
    approval = shop.requests.file(asked({"invoice": "R-1", "euros": 500}))
    assert [] == changed_arguments(approval)
    edited = shop.requests.edit(approval.id, {"euros": 20, "invoice": "R-1"}, by=ANA)
    assert ["euros"] == changed_arguments(edited)


def test_arguments_that_cannot_be_shown_are_named():
    """Values beyond the limit, and objects that only the waiting process holds."""
    approval = Shop().requests.file(asked({"memo": "x" * 100, "euros": 1}))
    assert [] == unshown_arguments(approval, 1_000)
    assert ["memo", "handle"] == unshown_arguments(dataclasses.replace(approval, unencoded=("handle",)), 50)


def test_a_value_that_is_sealed_and_cannot_be_opened_here_is_not_shown():
    """Where the key is, people see it; elsewhere nobody has seen what they would consent to."""
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    approval = shop.requests.file(*sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ["iban"]))
    assert [] == unshown_arguments(shop.requests.get(approval.id), 1_000)
    assert ["iban"] == unshown_arguments(shop.another("p2", secret=None).get(approval.id), 1_000)
