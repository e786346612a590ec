"""Retention: contents go, the chain stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import Actor, _chain, append, checkpoint, contents_of, entry_of, forget, verify
from tests.approvals.chains import ANA, advance, chain_of, found
from tests.approvals.tables import DictTables


def kept(tables):
    """The numbers of the entries that still have contents."""
    return [link.seq for link in tables.links(kept=True)]


def test_contents_of_ended_approvals_are_deleted():
    """With their salt. Entries stay as they are, and one more says what happened."""
    tables = chain_of((1, 1, 2, 1, 1, 2))
    point = checkpoint(tables, at=7.0)
    entries = [link.data for link in tables.links()]
    assert 3 == forget(tables, before=6.0, at=8.0, actor=Actor(name="root"))
    assert [3, 6] == kept(tables)
    assert [(None, None)] == [(link.salt, contents_of(link)) for link in tables.links(limit=1)]
    *same, last = tables.links()
    assert entries == [link.data for link in same]
    assert ("forgotten", {"before": 6, "count": 3, "ranges": [[1, 2], [5, 5]]}, "root") == (
        entry_of(last)["kind"],
        entry_of(last)["facts"],
        entry_of(last)["actor"]["name"],
    )
    verification = verify(tables, at=9.0, checkpoint=point)
    assert (True, 3) == (verification.ok, verification.deleted)
    assert "Contents deleted: those of 3 entries, by retention." in verification.unchecked[1]


def test_nothing_to_delete_is_no_entry():
    """Open approvals, and those that ended later, keep their contents."""
    tables = chain_of((1, 1, 1, 1, 2))
    assert (0, 0) == (forget(tables, before=4.0, at=9.0), forget(DictTables(), before=9.0, at=9.0))
    assert 3 == forget(tables, before=4.5, at=9.0)
    assert 0 == forget(tables, before=4.5, at=9.0)
    assert (6, [5]) == (tables.head()[0], kept(tables))


def test_a_late_report_is_deleted_too():
    """Contents that came after the first deletion, and those of entries without an approval."""
    tables = chain_of((1, 1, 1, 1))
    append(tables, "standing_granted", at=4.0, actor=ANA, contents={"euros": [0, 20]})
    assert 4 == forget(tables, before=5.0, at=9.0)
    append(tables, "late_report", at=9.0, approval="ap-1", revision=4, contents={"result": "x"})
    append(tables, "standing_granted", at=9.0, actor=ANA, contents={"euros": [0, 20]})
    assert 1 == forget(tables, before=9.0, at=9.0)
    assert ([8], True) == (kept(tables), verify(tables, at=9.0).ok)


@given(st.lists(st.integers(1, 4), max_size=30), st.lists(st.floats(0, 30), max_size=3))
def test_the_chain_stays_verifiable(steps, times):
    """However often and whenever contents are deleted, and whatever happens in between."""
    tables = chain_of(steps)
    for number, before in enumerate(times):
        forget(tables, before=before, at=40.0)
        advance(tables, f"new-{number}", 41.0)
    verification = verify(tables, at=50.0, checkpoint=checkpoint(tables, at=50.0))
    assert (True, []) == (verification.ok, found(verification))
    committed = [link for link in tables.links() if entry_of(link)["commitment"]]
    assert len(committed) == len(kept(tables)) + verification.deleted


def test_many_entries_are_deleted_in_several_transactions(monkeypatch):
    """Others can write in between."""
    monkeypatch.setattr(_chain, "AT_MOST", 1_000)
    steps = [number for number in range(400) for _ in range(4)]
    tables = chain_of(steps)
    assert 1_200 == forget(tables, before=2_000.0, at=3_000.0)
    deletions = [entry_of(link)["facts"] for link in tables.links(after=1_600)]
    assert [1_000, 200] == [facts["count"] for facts in deletions]
    assert [1, 1] == [len(facts["ranges"]) for facts in deletions]
    assert verify(tables, at=1.0).ok
