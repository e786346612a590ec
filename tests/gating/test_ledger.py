"""An action runs once per decision: claims, results and failures in a ledger, also when two processes write at once."""

from __future__ import annotations

import json
import threading

import pytest

import grace_kp as gk
from grace_kp.gating import InMemory, LedgerEntry, RanBefore, _ledger, raise_or_return
from grace_kp.gating._ledger import EarlierRun
from grace_kp.testing import make_grace
from tests.gating.inboxes import runtime

DECISION = {"digest": "d", "level": "confirm"}


class Rival(InMemory):
    """A ledger in which another process writes right before each write of ours."""

    def __init__(self, writes):
        super().__init__()
        self.writes = list(writes)

    def put_action(self, key, data, *, only_if):
        if self.writes:
            super().put_action(key, self.writes.pop(0), only_if=self.action(key))
        return super().put_action(key, data, only_if=only_if)


@pytest.fixture
def ledger():
    return InMemory()


def entry_in(ledger):
    return LedgerEntry(lambda: ledger, "key")


def test_the_first_decision_holds(ledger):
    """A second one is not kept, and the caller gets the first."""
    assert entry_in(ledger).decision() is None
    assert DECISION == entry_in(ledger).decide(DECISION)
    assert DECISION == entry_in(ledger).decide({"digest": "other"})
    assert DECISION == entry_in(ledger).decision()


def test_a_decision_that_loses_the_race_gives_the_other_one():
    """The compare-and-set decides, not the order of the calls."""
    ledger = Rival([json.dumps({"state": "decided", "at": 1.0, "decision": DECISION}).encode()])
    assert DECISION == entry_in(ledger).decide({"digest": "mine"})


def test_claims_of_many_threads_are_given_once(ledger):
    entry_in(ledger).decide(DECISION)
    barrier, found = threading.Barrier(8), []

    def claim():
        barrier.wait(30)
        found.append(entry_in(ledger).claim())

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert 1 == found.count(None)
    assert {"running"} == {earlier.state for earlier in found if earlier is not None}


def test_a_claim_that_loses_the_race_is_refused():
    ledger = Rival([json.dumps({"state": "running", "at": 1.0}).encode()])
    assert "running" == entry_in(ledger).claim().state


def test_a_claim_that_cannot_be_kept_is_an_error():
    """An entry that changes under every attempt could be anybody's; the action must not run."""
    writes = [json.dumps({"state": "decided", "at": float(number)}).encode() for number in range(9)]
    with pytest.raises(gk.StoreError, match="two runs want to begin the same action at once"):
        entry_in(Rival(writes)).claim()


@pytest.mark.parametrize("again", [False, True])
def test_after_a_failure(ledger, again):
    """Another attempt needs a new decision, unless nobody had to be asked."""
    entry_in(ledger).claim()
    entry_in(ledger).record_failure(ConnectionError("down"))
    earlier = entry_in(ledger).claim(again_after_failure=again)
    assert again == (earlier is None)
    if earlier is not None:
        assert ("failed", "failed_before", "ConnectionError") == (earlier.state, earlier.outcome, earlier.error)


@pytest.mark.parametrize(
    "result",
    [
        float("nan"),
        object(),
        (1, 2),
        "token: ghp_0123456789abcdefghijABCDEFGHIJ012345",
    ],
    ids=["nan", "object", "tuple", "secret"],
)
def test_a_result_that_json_would_change_or_that_holds_a_secret_is_not_kept(ledger, result):
    """The action counts as ended all the same, and the caller learns that its result is gone."""
    entry_in(ledger).claim()
    entry_in(ledger).record_done(result, keep=True)
    earlier = entry_in(ledger).claim()
    assert ("done", False, None) == (earlier.state, earlier.has_result, earlier.result)
    with pytest.raises(gk.ActionOutcomeUnknown, match="pay has run already"):
        raise_or_return(RanBefore(earlier), "pay")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("running", "its outcome is unknown"),
        ("done", "has run already (1970-01-01T00:00:01Z)"),
        ("failed", "failed with OSError; it is not run again without a new decision"),
    ],
)
def test_what_is_known_of_an_earlier_run_is_described(state, words):
    assert words in EarlierRun(state, 1.0, error="OSError").describe("pay")


def test_entries_of_earlier_versions_are_read(ledger):
    """The bytes of the ledger are part of the contract."""
    ledger.put_action("key", b'{"state": "decided", "at": 1.5, "decision": {"digest": "d"}}', only_if=None)
    assert {"digest": "d"} == entry_in(ledger).decision()
    assert entry_in(ledger).claim() is None
    kept = json.loads(ledger.action("key"))
    assert {"state": "running", "decision": {"digest": "d"}} == {name: kept[name] for name in ("state", "decision")}
    assert {"state", "at", "decision"} == kept.keys()
    assert kept["at"] > 1.5
    assert "2c70e12b7a0646f9" == entry_in(ledger).id


def test_a_claim_in_the_memory_of_this_process_never_leaves_the_event_loop():
    """It cannot block. Later changes of a decision or a result do not reach the ledger."""
    ledger, result, decision = InMemory(), {"paid": [1]}, {"digest": "d", "args": []}
    entry = LedgerEntry(ledger, "key")
    assert (False, True) == (entry.blocks, entry_in(ledger).blocks)
    assert decision == entry.decide(decision)
    decision["args"].append(1)
    assert {"digest": "d", "args": []} == entry.decision()
    assert entry.claim() is None
    assert "running" == entry.claim().state
    entry.record_done(result, keep=True)
    result["paid"].append(2)
    assert ("done", {"paid": [1]}) == (entry.claim().state, entry.claim().result)
    plain = LedgerEntry(ledger, "plain")
    assert plain.claim() is None
    plain.record_failure(OSError())
    assert ("failed", "OSError") == (plain.claim().state, plain.claim().error)
    assert plain.claim(again_after_failure=True) is None


def test_memory_refuses_when_it_is_full(monkeypatch):
    """An entry that it forgot could run its action twice; entries that it holds can still change."""
    monkeypatch.setattr(_ledger, "MAX_IN_MEMORY", 2)
    ledger = InMemory()
    assert [True, True] == [ledger.put_action(name, b"{}", only_if=None) for name in "ab"]
    with pytest.raises(gk.StoreError, match="is full"):
        ledger.put_action("c", b"{}", only_if=None)
    assert ledger.put_action("a", b"[]", only_if=b"{}")
    assert [b"[]", b"{}", None] == [ledger.action(name) for name in "abc"]


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
