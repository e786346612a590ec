"""`key`, `ignore`, `sealed` and `version` of a gate are checked when it is defined."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace
from tests.gating.inboxes import runtime


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"key": "x:{nothing}"}, "nothing"),
        ({"key": ""}, "key must be"),
        ({"key": "x:{n.real}"}, "without a format"),
        ({"ignore": ("nothing",)}, "ignore names 'nothing'"),
        ({"ignore": "n"}, "ignore must be"),
        ({"sealed": ("nothing",)}, "sealed names 'nothing'"),
        ({"sealed": ("n",), "ignore": ("n",)}, "in ignore and in sealed"),
        ({"key": "x:{n}", "ignore": ("n",)}, "carries no meaning"),
        ({"key": "x:{n}", "sealed": ("n",)}, "sealed"),
        ({"version": " "}, "version must be"),
        ({"reviewer": gk.InboxReviewer(wait="raise")}, "needs a key"),
        ({"policy": gk.Policy(reviewer=gk.InboxReviewer(wait="raise"))}, "needs a key"),
    ],
)
def test_what_cannot_be_used_is_an_error_at_once(settings, problem):
    """Nothing is called for it."""
    with pytest.raises(gk.GateError, match=problem):
        make_grace().gate(**settings)(lambda n: n)


def test_a_reviewer_of_the_runtime_is_checked_at_the_first_call():
    """It is not known earlier."""
    act = runtime(reviewer=gk.InboxReviewer(wait="raise")).gate(lambda n: n)
    with pytest.raises(gk.GateError, match="needs a key"):
        act(1)


def test_an_ignored_parameter_may_differ():
    """It is not kept, and shown as not covered."""
    grace = runtime()

    @grace.gate(floor="confirm", key="x:{n}", ignore=("token",), reviewer=gk.InboxReviewer(wait="raise"))
    def act(n: int, token: str) -> str:
        return token

    with pytest.raises(gk.ActionPending) as pending:
        act(1, "first")
    approval = grace.approvals.approve(pending.value.approval.id, by="ana")
    assert (("token",), {"n": 1}) == (approval.not_covered, dict(approval.arguments))
    assert act(1, "second") == "second"


def test_another_version_does_not_run():
    """An approval of version 1 does not entitle version 2."""
    grace = runtime()
    inbox = gk.InboxReviewer(wait="raise")
    first, second = (
        grace.gate(floor="confirm", key="x:{n}", version=version, name="act", reviewer=inbox)(lambda n: n)
        for version in ("1", "2")
    )
    with pytest.raises(gk.ActionPending) as pending:
        first(1)
    grace.approvals.approve(pending.value.approval.id, by="ana")
    with pytest.raises(gk.KeyReused):
        second(1)
