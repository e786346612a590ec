"""What a page can show of the arguments of a request."""

from __future__ import annotations

import dataclasses

from grace_kp.approvals import Secret, new_key
from grace_kp.gating import changed_arguments, unshown_arguments
from tests.approvals.desks import ANA, Bureau, asked, sealing


def test_an_edit_is_found_by_comparing_values():
    """Nothing has changed without an edit; an equal value is no change."""
    bureau = Bureau()
    approval = bureau.desk.request(asked({"invoice": "R-1", "euros": 500}))
    assert [] == changed_arguments(approval)
    edited = bureau.desk.edit(approval.id, {"euros": 20, "invoice": "R-1"}, actor=ANA)
    assert ["euros"] == changed_arguments(edited)


def test_arguments_that_cannot_be_shown_are_named():
    """Values beyond the limit, and objects that only the waiting process holds."""
    approval = Bureau().desk.request(asked({"memo": "x" * 100, "euros": 1}))
    assert [] == unshown_arguments(approval, 1_000)
    assert ["memo", "handle"] == unshown_arguments(dataclasses.replace(approval, unencoded=("handle",)), 50)


def test_a_value_that_is_sealed_and_cannot_be_opened_here_is_not_shown():
    """Where the key is, people see it; elsewhere nobody has seen what they would consent to."""
    secret = Secret(new_key())
    bureau = Bureau(secret=secret)
    approval = bureau.desk.request(sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ["iban"]))
    assert [] == unshown_arguments(bureau.desk.get(approval.id), 1_000)
    assert ["iban"] == unshown_arguments(bureau.another("p2", secret=None).get(approval.id), 1_000)
