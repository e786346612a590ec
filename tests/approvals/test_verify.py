"""Verification as an auditor sees it: what it locates, and what it says that it could not check."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import Actor, Checkpoint, append, append_view, checkpoint, entry_of, verify
from grace_kp.approvals._chain import entry_bytes, entry_hash
from tests.approvals.chains import advance, chain_of, damage, found
from tests.approvals.tables import DictTables

STEPS = (1, 1, 2, 1, 2, 1, 3, 2)
chains = st.lists(st.integers(1, 3), min_size=3, max_size=10).map(lambda steps: chain_of([1, *steps]))


def rewritten(tables, seq, **changes):
    """Change an entry and compute all hashes after it anew, as someone who can write the store would."""
    previous = tables.chain[seq - 2].hash if seq > 1 else ""
    for place in range(seq - 1, len(tables.chain)):
        link = tables.chain[place]
        entry = {**entry_of(link), "prev": previous, "seq": place + 1, **(changes if place == seq - 1 else {})}
        data = entry_bytes(entry)
        previous = entry_hash(data)
        tables.chain[place] = dataclasses.replace(link, data=data, hash=previous, seq=place + 1)


def test_a_sound_chain():
    """Nothing is found; the result names what it was compared with, and is the next checkpoint."""
    tables = chain_of(STEPS)
    early = verify(tables, at=9.0)
    assert (True, 8, "nothing", Checkpoint(store="store-1", seq=8, hash=tables.head()[1], at=9.0)) == (
        early.ok,
        early.entries,
        early.against,
        early.checkpoint,
    )
    assert "only accidents are found" in early.unchecked[0]
    later = verify(tables, at=10.0, checkpoint=early.checkpoint)
    assert (True, "checkpoint", ()) == (later.ok, later.against, later.unchecked)
    advance(tables, "ap-2", 11.0)
    last = verify(tables, at=12.0, checkpoint=early.checkpoint)
    assert (True, True) == (last.ok, last.unchecked[0].startswith("Entries 9 to 9 came after the newest checkpoint"))
    assert last.to_dict() == json.loads(json.dumps(last.to_dict())) | {"problems": (), "unchecked": last.unchecked}


def test_an_empty_chain_is_sound():
    """Before and after the first checkpoint."""
    tables = DictTables()
    empty = verify(tables, at=1.0)
    assert (True, 0, "") == (empty.ok, empty.checkpoint.seq, empty.checkpoint.hash)
    assert verify(chain_of(STEPS), at=1.0, checkpoint=empty.checkpoint).ok


@given(chains, st.data())
def test_a_changed_byte_is_located(tables, data):
    """In an entry, its hash, its salt or its contents, wherever it stands and whatever it becomes."""
    link = data.draw(st.sampled_from(tables.chain))
    names = [name for name in ("data", "hash", "salt", "contents") if getattr(link, name) is not None]
    name = data.draw(st.sampled_from(names))
    old = getattr(link, name)
    raw = old.encode() if isinstance(old, str) else old
    place = data.draw(st.integers(0, len(raw) - 1))
    byte = data.draw(st.integers(0, 127 if isinstance(old, str) else 255).filter(lambda value: value != raw[place]))
    new = raw[:place] + bytes([byte]) + raw[place + 1 :]
    damage(tables, link.seq, **{name: new.decode() if isinstance(old, str) else new})
    assert [(link.seq, "contents" if name in {"salt", "contents"} else "changed")] == found(verify(tables, at=1.0))


@given(chains, st.data())
def test_a_removed_entry_is_located(tables, data):
    """At the end, the row or the checkpoint shows it."""
    seq = data.draw(st.integers(1, len(tables.chain)))
    point = checkpoint(tables, at=1.0)
    del tables.chain[seq - 1]
    seen = found(verify(tables, at=1.0, checkpoint=point))
    assert (seq, "missing") in seen
    if seq == point.seq:
        assert not verify(tables, at=1.0).ok


@given(chains, st.data())
def test_swapped_entries_are_located(tables, data):
    """Both places are named."""
    pairs = st.lists(st.integers(1, len(tables.chain)), min_size=2, max_size=2, unique=True)
    first, second = sorted(data.draw(pairs))
    one_link, other = tables.chain[first - 1], tables.chain[second - 1]
    tables.chain[first - 1] = dataclasses.replace(other, seq=first)
    tables.chain[second - 1] = dataclasses.replace(one_link, seq=second)
    assert {(first, "order"), (second, "order")} <= set(found(verify(tables, at=1.0)))


@given(chains, st.data())
def test_an_inserted_entry_is_located(tables, data):
    """Also one that was copied from elsewhere in the chain and got the number of its place."""
    seq = data.draw(st.integers(1, len(tables.chain)))
    copied = data.draw(st.sampled_from(tables.chain))
    later = [dataclasses.replace(link, seq=link.seq + 1) for link in tables.chain[seq - 1 :]]
    tables.chain[seq - 1 :] = [dataclasses.replace(copied, seq=seq), *later]
    seen = found(verify(tables, at=1.0))
    assert {(seq, "order"), (seq + 1, "order")} & set(seen)


@given(chains, st.data())
def test_a_chain_that_was_written_anew_is_found_by_a_checkpoint(tables, data):
    """With several checkpoints, the change is located between two of them."""
    points = []
    for seq in range(1, len(tables.chain) + 1):
        points.append(Checkpoint(store="store-1", seq=seq, hash=tables.chain[seq - 1].hash, at=1.0))
    seq = data.draw(st.integers(1, len(tables.chain)))
    rewritten(tables, seq, actor={"name": "mallory"})
    verification = verify(tables, at=1.0)
    assert (True, []) == (verification.ok, found(verification))  # the sentence in `unchecked` says so
    assert [(len(points), "checkpoint")] == found(verify(tables, at=1.0, checkpoint=points[-1]))
    located = verify(tables, at=1.0, checkpoint=points)
    assert (seq, "checkpoint") == found(located)[0]
    assert f"the chain was changed at {seq}," in located.problems[0].message


def test_a_shorter_chain_is_found_by_a_checkpoint():
    """Entries and rows were taken back together, as a restored backup does."""
    point = checkpoint(chain_of(STEPS), at=1.0)
    verification = verify(chain_of(STEPS[:5]), at=1.0, checkpoint=point)
    assert [(6, "missing")] == found(verification)
    assert "the chain ends at entry 5, and the checkpoint is of entry 8" in verification.problems[0].message


def test_another_stores_chain_is_found_by_a_checkpoint():
    """By the id of the store and by the hash."""
    point = checkpoint(chain_of(STEPS), at=1.0)
    other = chain_of(STEPS)
    other.identity = "store-2"
    verification = verify(other, at=1.0, checkpoint=point)
    assert [(0, "checkpoint"), (8, "checkpoint")] == found(verification)
    assert "is of store store-1, and this is store-2" in verification.problems[0].message


def test_a_row_that_was_changed_without_an_entry_is_located():
    """A state, a digest, or anything else that it holds: the last entry of the approval is named."""
    for changes in ({"state": "rejected"}, {"digest": "sha256:ff"}, {"data": b'{"quorum":1}'}, {"deadline": None}):
        tables = chain_of(STEPS)
        tables.table["ap-2"] = dataclasses.replace(tables.table["ap-2"], **changes)
        assert [(8, "row")] == found(verify(tables, at=1.0))
    tables = chain_of(STEPS)
    tables.table["ap-3"] = dataclasses.replace(tables.table["ap-3"], state="approved")
    problem = verify(tables, at=1.0).problems[0]
    assert (
        "the row of approval ap-3 was changed after entry 7: it is approved, and the entry says pending"
        == problem.message
    )


def test_rows_ahead_behind_gone_and_unknown_to_the_chain():
    """Each is named with the last entry of its approval, or with none."""
    tables = chain_of(STEPS)
    ahead, behind = tables.table["ap-3"], tables.table["ap-2"]
    tables.table["ap-3"] = dataclasses.replace(ahead, revision=2, state="approved")
    tables.table["ap-2"] = dataclasses.replace(behind, revision=2, state="approved", changed=5.0)
    del tables.table["ap-1"]
    tables.table |= {f"new-{number}": dataclasses.replace(ahead, id=f"new-{number}") for number in range(600)}
    verification = verify(tables, at=1.0)
    assert {(1, "row"), (8, "row"), (7, "row"), (0, "row")} == set(found(verification))
    assert 603 == verification.problem_count
    messages = " ".join(problem.message for problem in verification.problems)
    assert "ap-1 is missing" in messages
    assert "ap-2 is older than entry 8: it has revision 2, and the entry 3" in messages
    assert "ap-3 has revision 2, and entry 7 is its last" in messages
    assert "new-599 has no entry at all" in messages


def test_entries_that_change_no_row():
    """A view or a late report is compared with the row as it is."""
    tables = chain_of(STEPS)
    append_view(tables, tables.row("ap-1"), at=9.0, actor=Actor(name="bob"))
    append(tables, "late_report", at=9.0, approval="ap-1", revision=4, contents={"result": 1})
    append(tables, "restored", at=9.0)
    assert verify(tables, at=1.0).ok


def test_contents_that_no_entry_commits_to():
    """Added contents, and contents that disappeared without retention."""
    tables = chain_of(STEPS)
    damage(tables, 4, salt=b"0" * 16, contents=b"{}")  # a claim, which has none
    damage(tables, 1, salt=None, contents=None)
    damage(tables, 2, salt=None)
    verification = verify(tables, at=1.0)
    assert {(4, "contents"), (1, "contents"), (2, "contents")} == set(found(verification))
    assert "no entry says that they were deleted" in verification.problems[-1].message


class Busy(DictTables):
    """Tables that others write whenever they are read."""

    writes = False

    def others_write(self, name):
        if not self.writes and len(self.chain) < 60:
            self.writes = True
            advance(self, name, 50.0)
            self.writes = False

    def count(self, query):
        self.others_write(f"new-{len(self.table)}")
        return super().count(query)

    def row(self, approval):
        self.others_write("ap-3" if self.table["ap-3"].revision < 4 else f"more-{len(self.table)}")
        return super().row(approval)


def test_a_store_may_be_written_meanwhile():
    """Entries and rows that come during the verification are no problems."""
    tables = chain_of(STEPS)
    tables.__class__ = Busy
    verification = verify(tables, at=1.0)
    assert (True, []) == (verification.ok, found(verification))
    assert "Rows without any entry were not looked for" in verification.unchecked[-1]


def test_problems_beyond_a_thousand_are_counted():
    """The report stays small whatever happened."""
    tables = chain_of(range(1, 1_200))
    for seq in range(1, 1_200):
        damage(tables, seq, contents=b"{}")
    verification = verify(tables, at=1.0)
    assert (1_199, 1_000) == (verification.problem_count, len(verification.problems))
