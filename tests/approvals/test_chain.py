"""The chain: its entries, their export, and retention."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import Actor, _chain, append, checkpoint, contents_of, entry_of, export, forget, verify
from tests.approvals.chains import ANA, DictTables, advance, chain_of, damage, found, new_row


def row(**changes):
    return new_row("ap-1", 1.0, **changes)


def tables(*rows):
    """Tables with these rows, each with its entry."""
    store = DictTables()
    for each in rows:
        with store.transaction() as writes:
            assert writes.put(each)
            append(writes, "requested", at=each.changed, approval=each.id, revision=each.revision, contents={"a": 1})
    return store


def test_contents_stand_beside_the_entry():
    """An entry has a salted commitment; the same contents have another one each time."""
    store = DictTables()
    contents = {"note": "sesame", "arguments": {"euros": 20.0, "cents": 20, "big": 2**70}}
    first, second = (append(store, "standing_granted", at=1.0, actor=ANA, contents=contents) for _ in range(2))
    assert b"sesame" not in first.data
    assert contents == contents_of(first)
    assert [float, int] == [type(value) for value in list(contents_of(first)["arguments"].values())[:2]]
    assert hashlib.sha256(first.salt + first.contents).hexdigest() == entry_of(first)["commitment"]
    assert 2 == len({entry_of(link)["commitment"] for link in (first, second)})


def test_an_entry_states_the_row_that_was_written_with_it():
    store = tables(row())
    store.put(row(state="approved", revision=2, changed=2.0))
    append(store, "decided", at=2.0, approval="ap-1", revision=2, actor=ANA, facts={"verb": "approve"})
    first, second = (entry_of(link)["facts"] for link in store.links())
    assert ("pending", "approved", "approve") == (first["state"], second["state"], second["verb"])
    assert "sha256:00" == second["digest"]
    assert first["row"] != second["row"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "approved"}, "must be one of account_changed, claimed, decided, .*, not 'approved'"),
        ({"approval": "ap-9"}, "put the row of ap-9 with revision 1 before its entry: it is not there"),
        ({"revision": 2}, "put the row of ap-1 with revision 2 before its entry: it has revision 1"),
        ({"contents": {"a": float("nan")}}, "not JSON compliant"),
        ({"contents": {"a": object()}}, "the contents of an entry must be JSON"),
        ({"facts": {"a": 2**53}}, "exceeds safe integer domain"),
    ],
)
def test_what_is_no_entry_is_refused(changes, message):
    store = tables(row())
    usual = {"kind": "decided", "at": 2.0, "approval": "ap-1", "revision": 1}
    with pytest.raises(ValueError, match=message):
        append(store, **{**usual, **changes})
    assert 1 == store.head()[0]


def test_names_that_utf8_cannot_hold_are_kept_visible():
    link = append(
        DictTables(), "restored", at=1.0, actor=Actor(name="\udcff\u202e", host="h"), facts={"\ud800": ["\ud800"]}
    )
    assert ("\\udcff\u202e", {"\\ud800": ["\\ud800"]}) == (entry_of(link)["actor"]["name"], entry_of(link)["facts"])


STEPS = (1, 1, 2, 1, 2, 1, 3, 2)


@pytest.fixture
def check(tmp_path):
    """Run the program of the documentation over lines; return what it printed or why it exited."""
    page = (Path(__file__).parents[2] / "docs/how-to/approvals.md").read_text(encoding="utf-8")
    program = page[page.index("import hashlib, json") :].partition("```")[0]

    def run(lines):
        path = tmp_path / "chain.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=60, check=False
        )
        return (ran.stdout + ran.stderr).strip()

    return run


def test_the_program_finds_the_chain_sound(check):
    """It prints number and hash of the newest entry, also where contents are deleted or left out."""
    tables = chain_of(STEPS)
    sound = f"8 {tables.head()[1]}"
    assert [sound, sound] == [check(export(tables)), check(export(tables, with_contents=False))]
    forget(tables, before=7.5, at=20.0)
    assert f"9 {tables.head()[1]}" == check(export(tables))


def test_the_program_finds_what_was_changed(check):
    lines = list(export(chain_of(STEPS)))
    assert "entry 3 was changed, removed or inserted" == check(lines[:2] + lines[3:])
    changed = {**lines[1], "contents": lines[1]["contents"].replace("ap-1", "ap-9")}
    assert "the contents of entry 2 were changed" == check([lines[0], changed])
    changed = {**lines[1], "entry": {**lines[1]["entry"], "at": 2.5}}
    assert "entry 2 was changed, removed or inserted" == check([lines[0], changed])


def test_a_part_of_the_chain():
    tables = chain_of(STEPS)
    assert [7, 8] == [line["entry"]["seq"] for line in export(tables, after=6)]
    assert [3, 5, 8] == [line["entry"]["seq"] for line in export(tables, approval="ap-2")]


def test_a_damaged_entry_is_exported_as_text(check):
    tables = chain_of(STEPS)
    damage(tables, 2, data=b"\xff{")
    lines = list(export(tables))
    assert "\\xff{" == lines[1]["entry"]
    with pytest.raises(AssertionError):
        assert "8" == check(lines)


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
    assert "Retention has deleted the contents of 3 entries" in verification.unchecked[1]


def test_nothing_to_delete_is_no_entry():
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
    monkeypatch.setattr(_chain, "AT_MOST", 1_000)
    steps = [number for number in range(400) for _ in range(4)]
    tables = chain_of(steps)
    assert 1_200 == forget(tables, before=2_000.0, at=3_000.0)
    deletions = [entry_of(link)["facts"] for link in tables.links(after=1_600)]
    assert [1_000, 200] == [facts["count"] for facts in deletions]
    assert [1, 1] == [len(facts["ranges"]) for facts in deletions]
    assert verify(tables, at=1.0).ok
