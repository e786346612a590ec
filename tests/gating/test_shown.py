"""What a page can show of the arguments of a request."""

from __future__ import annotations

import dataclasses

from grace_kp.gating import changed_arguments, unshown_arguments
from tests.approvals.desks import ANA, Bureau, asked


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
