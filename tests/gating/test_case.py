"""A case knows whether its arguments are still those that were decided on."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace


@pytest.mark.parametrize("change", ["none", "changed", "uncheckable"])
def test_arguments_are_compared_with_what_was_decided_on(change):
    """A value that can no longer be checked counts as changed."""
    ran, order = [], {"euros": 5}

    def reviewer(request):
        if change == "changed":
            order["euros"] = 6
        if change == "uncheckable":
            order["euros"] = iter(())
        return gk.InterventionResponse("proceed")

    @make_grace(reviewer=reviewer).gate(floor="confirm")
    def pay(order):
        ran.append(order)

    if change == "none":
        pay(order)
        assert [{"euros": 5}] == ran
    else:
        with pytest.raises(gk.ActionCancelled, match="changed while the decision was made"):
            pay(order)
        assert [] == ran


def test_arguments_that_cannot_be_checked_run_where_nobody_is_asked():
    """A silent gate has shown them to nobody."""
    ran = []

    @make_grace(unmeasured="silent").gate
    def read(lines):
        ran.append(list(lines))

    read(iter("ab"))
    assert [["a", "b"]] == ran
