"""The idempotency key of the action that runs."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace
from tests.gating.inboxes import runtime


def test_it_is_stable_per_approval():
    """The one execution of an approval has the key that is derived from it."""
    from grace_kp.approvals import idempotency_key_of

    grace = runtime()

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> str:
        return gk.idempotency_key()

    approval = act(1).approval
    grace.approvals.approve(approval.id, by="ana")
    assert idempotency_key_of(approval.id) == grace.approvals.execute(approval.id)


def test_without_an_inbox_each_call_has_its_own():
    """Nested actions have their own, too, and the outer one is back afterwards."""
    grace = make_grace(unmeasured="notify")

    @grace.gate
    def inner() -> str:
        return gk.idempotency_key()

    @grace.gate
    def outer() -> list[str]:
        return [gk.idempotency_key(), inner(), gk.idempotency_key()]

    first, nested, again = outer()
    assert first == again
    assert len({first, nested, outer()[0]}) == 3


def test_outside_of_an_action():
    """There is none."""
    with pytest.raises(gk.GraceError, match="outside of a gated action"):
        gk.idempotency_key()


def reconciled(grace, act, **edits):
    """Approve a call, interrupt it, and state what happened."""
    with pytest.raises(gk.ActionPending) as raised:
        act(1, 2)
    name = raised.value.approval.id
    if edits:
        grace.approvals.edit(name, edits, by="ana")
    else:
        grace.approvals.approve(name, by="ana")
    with pytest.raises((KeyboardInterrupt, OSError)):
        act(1, 2)
    grace.store.approvals.is_alive = lambda _process: None  # as another machine sees it
    if grace.approvals.get(name).state == "unknown":
        grace.approvals.reconcile(name, happened=False, by="ana")


def interrupted(grace, raises):
    keys = []

    @grace.gate(floor="confirm", key="act:{n}", reviewer=gk.InboxReviewer(wait="raise"))
    def act(n: int, m: int) -> None:
        keys.append(gk.idempotency_key())
        raise raises.pop(0)

    return act, keys


def test_after_a_reconciliation_it_stays():
    """The process may only have been paused; the receiving service must take both executions for one."""
    grace = runtime()
    act, keys = interrupted(grace, [KeyboardInterrupt] * 3)
    for _ in range(3):
        reconciled(grace, act)
    assert (3, 1) == (len(keys), len({*keys}))


def test_for_other_arguments_it_is_another():
    """What people edited is another operation for the receiving service."""
    grace = runtime()
    act, keys = interrupted(grace, [KeyboardInterrupt] * 3)
    reconciled(grace, act)
    reconciled(grace, act, m=5)
    reconciled(grace, act, m=5)
    assert [False, True] == [keys[0] == keys[1], keys[1] == keys[2]]


def test_after_a_failure_it_is_another():
    """A service may answer a key that has failed with the same failure for ever."""
    grace = runtime()
    act, keys = interrupted(grace, [KeyboardInterrupt, OSError, OSError])
    for _ in range(3):
        reconciled(grace, act)
    assert [True, False] == [keys[0] == keys[1], keys[1] == keys[2]]


def test_after_a_restored_backup_it_stays(tmp_path):
    """The approval is lost, but not what the receiving service knows the operation by."""
    keys, path, backup = [], tmp_path / "app.db", tmp_path / "backup.db"

    def program():
        grace = runtime(tmp_path)

        @grace.gate(floor="confirm", key="act:{n}", reviewer=gk.InboxReviewer(wait="raise"))
        def act(n: int) -> str:
            keys.append(gk.idempotency_key())
            return "done"

        return grace, act

    grace, act = program()
    assert not grace.approvals.pending()
    grace.close()
    backup.write_bytes(path.read_bytes())
    names = []
    for _ in range(2):
        grace, act = program()
        with pytest.raises(gk.ActionPending) as raised:
            act(1)
        names.append(raised.value.approval.id)
        grace.approvals.approve(names[-1], by="ana")
        assert act(1) == "done"
        grace.close()
        path.write_bytes(backup.read_bytes())
    assert (2, 1) == (len({*names}), len({*keys}))
