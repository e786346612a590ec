"""The audit trail: its entries, their export and retention; each kind of tampering is located, and the report says what could not be checked."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import (
    ACCOUNT,
    Actor,
    Checkpoint,
    Secret,
    Standing,
    _chain,
    append,
    checkpoint,
    entry_of,
    export,
    forget,
    new_key,
    read_checkpoints,
    token_mark,
    verify,
    write_checkpoint,
)
from grace_kp.approvals._chain import contents_of, entry_bytes, entry_hash
from grace_kp.errors import ApprovalError
from grace_kp.store import open_store
from tests.approvals.chains import DictTables, advance, chain_of, damage, found
from tests.approvals.shops import ANA, Shop, asked, claim

STEPS = (1, 1, 2, 1, 2, 1, 3, 2)


def test_contents_stand_beside_the_entry():
    store = DictTables()
    contents = {"note": "sesame", "arguments": {"euros": 20.0, "cents": 20, "big": 2**70}}
    first, second = (append(store, "standing_granted", at=1.0, actor=ANA, contents=contents) for _ in range(2))
    assert b"sesame" not in first.data
    assert contents == contents_of(first)
    assert [float, int] == [type(value) for value in list(contents_of(first)["arguments"].values())[:2]]
    assert hashlib.sha256(first.salt + first.contents).hexdigest() == entry_of(first)["commitment"]
    assert 2 == len({entry_of(link)["commitment"] for link in (first, second)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"approval": "ap-9"}, "put the row of ap-9 with revision 1 before its entry: it is not there"),
        ({"revision": 2}, "put the row of ap-1 with revision 2 before its entry: it has revision 1"),
        ({"contents": {"a": float("nan")}}, "not JSON compliant"),
        ({"facts": {"a": 2**53}}, "exceeds safe integer domain"),
    ],
)
def test_what_is_no_entry_is_refused(changes, message):
    store = chain_of((1,))
    usual = {"kind": "decided", "at": 2.0, "approval": "ap-1", "revision": 1}
    with pytest.raises(ValueError, match=message):
        append(store, **{**usual, **changes})
    assert 1 == store.head()[0]


def test_names_that_utf8_cannot_hold_are_kept_visible():
    link = append(
        DictTables(), "restored", at=1.0, actor=Actor(name="\udcff\u202e", host="h"), facts={"\ud800": ["\ud800"]}
    )
    assert ("\\udcff\u202e", {"\\ud800": ["\\ud800"]}) == (entry_of(link)["actor"]["name"], entry_of(link)["facts"])


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
    return [link.seq for link in tables.links(kept=True)]


def test_contents_of_ended_approvals_are_deleted():
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
    assert (0, 0) == (forget(tables, before=6.0, at=9.0), forget(DictTables(), before=9.0, at=9.0))
    assert 7 == tables.head()[0]
    assert "Retention has deleted the contents of 3 entries" in verification.unchecked[1]


def test_a_late_report_is_deleted_too():
    tables = chain_of((1, 1, 1, 1))
    append(tables, "standing_granted", at=4.0, actor=ANA, contents={"euros": [0, 20]})
    assert 4 == forget(tables, before=5.0, at=9.0)
    append(tables, "late_report", at=9.0, approval="ap-1", revision=4, contents={"result": "x"})
    append(tables, "standing_granted", at=9.0, actor=ANA, contents={"euros": [0, 20]})
    assert 1 == forget(tables, before=9.0, at=9.0)
    assert ([8], True) == (kept(tables), verify(tables, at=9.0).ok)


@given(st.lists(st.integers(1, 4), max_size=30), st.lists(st.floats(0, 30), max_size=3))
def test_the_chain_stays_verifiable(steps, times):
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
    tables = chain_of(STEPS)
    early = verify(tables, at=9.0)
    assert (True, 8, "nothing", Checkpoint(store="store-1", seq=8, hash=tables.head()[1], at=9.0)) == (
        early.ok,
        early.entries,
        early.against,
        early.checkpoint,
    )
    assert "only accidents are found" in early.unchecked[0]
    empty = verify(DictTables(), at=1.0)
    assert (True, 0, "") == (empty.ok, empty.checkpoint.seq, empty.checkpoint.hash)
    assert verify(tables, at=1.0, checkpoint=empty.checkpoint).ok
    later = verify(tables, at=10.0, checkpoint=early.checkpoint)
    assert (True, "checkpoint", ()) == (later.ok, later.against, later.unchecked)
    advance(tables, "ap-2", 11.0)
    # None of these changes a row.
    append(tables, "viewed", at=11.0, approval="ap-1", revision=4, actor=Actor(name="bob"))
    append(tables, "late_report", at=11.0, approval="ap-1", revision=4, contents={"result": 1})
    last = verify(tables, at=12.0, checkpoint=early.checkpoint)
    assert (True, True) == (last.ok, last.unchecked[0].startswith("Entries 9 to 11 came after the newest checkpoint"))
    assert last.to_dict() == json.loads(json.dumps(last.to_dict())) | {"problems": (), "unchecked": last.unchecked}


@given(chains, st.data())
def test_a_changed_byte_is_located(tables, data):
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
    seq = data.draw(st.integers(1, len(tables.chain)))
    point = checkpoint(tables, at=1.0)
    del tables.chain[seq - 1]
    seen = found(verify(tables, at=1.0, checkpoint=point))
    assert (seq, "missing") in seen
    if seq == point.seq:
        assert not verify(tables, at=1.0).ok


@given(chains, st.data())
def test_swapped_entries_are_located(tables, data):
    pairs = st.lists(st.integers(1, len(tables.chain)), min_size=2, max_size=2, unique=True)
    first, second = sorted(data.draw(pairs))
    one_link, other = tables.chain[first - 1], tables.chain[second - 1]
    tables.chain[first - 1] = dataclasses.replace(other, seq=first)
    tables.chain[second - 1] = dataclasses.replace(one_link, seq=second)
    assert {(first, "order"), (second, "order")} <= set(found(verify(tables, at=1.0)))


@given(chains, st.data())
def test_an_inserted_entry_is_located(tables, data):
    seq = data.draw(st.integers(1, len(tables.chain)))
    copied = data.draw(st.sampled_from(tables.chain))
    later = [dataclasses.replace(link, seq=link.seq + 1) for link in tables.chain[seq - 1 :]]
    tables.chain[seq - 1 :] = [dataclasses.replace(copied, seq=seq), *later]
    seen = found(verify(tables, at=1.0))
    assert {(seq, "order"), (seq + 1, "order")} & set(seen)


@given(chains, st.data())
def test_a_chain_that_was_written_anew_is_found_by_a_checkpoint(tables, data):
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


@pytest.mark.parametrize(
    ("steps", "store", "problems", "message"),
    [
        (STEPS[:5], "store-1", [(6, "missing")], "the chain ends at entry 5, and the checkpoint is of entry 8"),
        (STEPS, "store-2", [(0, "checkpoint"), (8, "checkpoint")], "is of store store-1, and this is store-2"),
    ],
)
def test_a_shorter_chain_and_that_of_another_store_are_found_by_a_checkpoint(steps, store, problems, message):
    tables = chain_of(steps)
    tables.identity = store
    verification = verify(tables, at=1.0, checkpoint=checkpoint(chain_of(STEPS), at=1.0))
    assert problems == found(verification)
    assert message in verification.problems[0].message


def test_a_row_that_was_changed_without_an_entry_is_located():
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


def test_contents_that_no_entry_commits_to():
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
    tables = chain_of(STEPS)
    tables.__class__ = Busy
    verification = verify(tables, at=1.0)
    assert (True, []) == (verification.ok, found(verification))
    assert "Rows without any entry were not looked for" in verification.unchecked[-1]


def test_problems_beyond_a_thousand_are_counted():
    tables = chain_of(range(1, 1_200))
    for seq in range(1, 1_200):
        damage(tables, seq, contents=b"{}")
    verification = verify(tables, at=1.0)
    assert (1_199, 1_000) == (verification.problem_count, len(verification.problems))


SHORT = (1, 1, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: json.dumps(entry),  # not canonical
        lambda entry: json.dumps({**entry, "extra": 1}, sort_keys=True, separators=(",", ":")),
        lambda entry: json.dumps({**entry, "v": 2}, sort_keys=True, separators=(",", ":")),
        lambda entry: json.dumps({**entry, "revision": "3"}, sort_keys=True, separators=(",", ":")),
        lambda entry: json.dumps({**entry, "revision": None}, sort_keys=True, separators=(",", ":")),
        lambda _: "[1]",
        lambda _: "[" * 100_000,
        lambda _: "\udcff",
        lambda _: "",
    ],
)
def test_a_newest_entry_in_another_form(change):
    tables = chain_of(SHORT)
    data = change(entry_of(tables.chain[2])).encode("utf-8", "surrogateescape")
    damage(tables, 3, data=data, hash=entry_hash(data))
    assert [(3, "changed")] == found(verify(tables, at=1.0))


def test_an_entry_under_another_approval():
    tables = chain_of(SHORT)
    damage(tables, 3, approval="ap-1")
    verification = verify(tables, at=1.0)
    assert (3, "changed") == found(verification)[0]
    assert "it is stored under approval ap-1 and belongs to ap-2" in verification.problems[0].message


IMPOSSIBLE = [None, "1", [1], [[1]], [["1", 2]], [[0, 1]], [[2, 1]], [[1, 99]], [[True, 1]]]


@pytest.mark.parametrize(
    ("gone", "count", "ranges", "places", "message"),
    [
        *(([1], 1, ranges, [4, 1], "") for ranges in IMPOSSIBLE),
        ([], 2, [[1, 2]], [1, 2, 4], "entry 4 says that the contents of entry 1 were deleted, and they are there"),
        ([1, 2], 1, [[1, 2]], [4], "the contents of 1 entries were deleted, and 2 are missing"),
    ],
)
def test_an_entry_about_a_deletion_that_was_another(gone, count, ranges, places, message):
    tables = chain_of(SHORT)
    tables.forget(gone)
    append(tables, "forgotten", at=1.0, facts={"count": count, "ranges": ranges})
    verification = verify(tables, at=1.0)
    assert [(place, "contents") for place in places] == found(verification)
    assert message in verification.problems[0].message


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def opened(path):
    return contextlib.closing(open_store(f"sqlite:///{path}"))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE approval_chain SET data = 'é' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET hash = X'00' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET approval = 5 WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET seq = -5 WHERE seq = 3", (3, "missing")),
        ("UPDATE approval_chain SET seq = 9223372036854775807 WHERE seq = 3", (3, "missing")),
        ("UPDATE approval_chain SET seq = 50000000000 WHERE seq = 8", (8, "missing")),
        ("DELETE FROM approval_chain", (1, "missing")),
        ("UPDATE approval_contents SET salt = 'abc' WHERE seq = 3", (3, "contents")),
        ("UPDATE approvals SET deadline = 9e999 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET level = 9007199254740993 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET revision = 'x' WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET revision = 1.5 WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET id = 'ap-4' WHERE id = 'ap-3'", (7, "row")),
        (("INSERT INTO approvals SELECT 9, 'ap-9', state, action, domain, key, digest, run_id, level, deadline, created, changed, "
         "revision, waiter, data FROM approvals WHERE id = 'ap-3'"), (0, "row")),
    ],
)  # fmt: skip
def test_a_changed_file(path, statement, problem):
    with opened(path) as store:
        chain_of((1, 1, 2, 1, 2, 1, 3, 2), store.approvals)
        point = checkpoint(store.approvals, at=1.0)
        assert verify(store.approvals, at=1.0, checkpoint=point).ok
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount
    with opened(path) as store:
        verification = verify(store.approvals, at=1.0, checkpoint=point)
        assert problem in found(verification)
        assert len(list(export(store.approvals))) == verification.entries


def test_an_account_that_no_entry_states_is_a_problem():
    with closing(open_store("memory:")) as store:
        tables = store.approvals
        document = json.dumps({"role": "admin", "token_sha256": "a" * 64}).encode()
        facts = {"account": "ana", "change": "added", "role": "admin", "token": token_mark("a" * 64)}
        with tables.transaction() as writes:
            writes.put_document(ACCOUNT, "ana", document)
            writes.put_document(ACCOUNT, "ben", b"[]")
            append(writes, "account_changed", at=1.0, facts=facts)
            append(writes, "refused", at=1.0, facts={**facts, "account": "ben"})
        found = [(problem.seq, problem.kind, problem.message) for problem in verify(tables, at=time.time()).problems]
        assert [(0, "account", "the account ben was added without an entry")] == found


@pytest.fixture
def shop():
    """A standing approval that was used once, and one that has ended."""
    shop = Shop()
    parameters = {"invoice": {"any": True}, "euros": {"from": 0, "to": 900}}
    for uses in (3, 5):
        granted = Standing(action="refund", domain="shop", parameters=parameters, until=9_000.0, uses=uses)
        standing = shop.requests.grant(granted, by=ANA)
        if uses == 3:
            claim(shop.requests, shop.requests.file(asked()))
        else:
            shop.requests.end_standing(standing.id, by=ANA, reason="enough")
    return shop


def documents(shop):
    """The names of the one that holds and of the one that has ended."""
    found = {name: json.loads(data) for name, data in shop.tables.documents("standing").items()}
    return sorted(found, key=lambda name: bool(found[name]["ended"]))


def change(shop, name, **changes):
    with shop.tables.transaction() as writes:
        document = json.loads(writes.document("standing", name))
        writes.put_document("standing", name, json.dumps({**document, **changes}).encode())


def test_what_the_chain_records_is_sound(shop):
    assert verify(shop.tables, at=1.0).ok
    forget(shop.tables, before=2_000.0, at=2_000.0)
    verification = verify(shop.tables, at=1.0)
    assert (True, []) == (verification.ok, found(verification))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until": 90_000.0}, "is not as entry 1 has granted it"),
        ({"uses": 1_000}, "is not as entry 1 has granted it"),
        ({"parameters": {"invoice": {"any": True}, "euros": {"any": True}}}, "is not as entry 1 has granted it"),
        ({"used": 0}, "counts 0 uses, and the chain 1"),
        ({"ended": "x"}, "was ended without an entry"),
    ],
)
def test_a_change_without_an_entry_is_located(shop, changes, message):
    name, _ = documents(shop)
    change(shop, name, **changes)
    verification = verify(shop.tables, at=1.0)
    assert [(1, "standing")] == found(verification)
    assert f"the standing approval {name} {message}" in verification.problems[0].message


def test_one_that_was_renewed_or_invented_is_found(shop):
    first, ended = documents(shop)
    change(shop, ended, ended="")
    with shop.tables.transaction() as writes:
        writes.put_document("standing", "st-new", writes.document("standing", first))
        writes.put_document("standing", first, b"[")
    messages = [problem.message for problem in verify(shop.tables, at=1.0).problems]
    assert 3 == len(messages)
    assert {"holds, and an entry has ended it", "was not granted by any entry", "cannot be read"} == {
        message.split(" ", 4)[4] for message in messages
    }


POINT = Checkpoint(store="store-1", seq=3, hash="ab" * 32, at=1.5)


def test_a_file_of_checkpoints(tmp_path):
    path = tmp_path / "points.json"
    write_checkpoint(path, POINT)
    assert {"store": "store-1", "seq": 3, "hash": "ab" * 32, "at": 1.5} == json.loads(path.read_text())
    tables = chain_of((1, 1, 2))
    write_checkpoint(path, checkpoint(tables, at=2))
    points = read_checkpoints(path)
    assert [POINT, Checkpoint(store="store-1", seq=3, hash=tables.head()[1], at=2)] == points
    assert not verify(tables, at=3.0, checkpoint=points).ok
    assert verify(tables, at=3.0, checkpoint=points[1:]).ok


def test_a_secret_authenticates(tmp_path):
    path = tmp_path / "points.json"
    secret = Secret(new_key())
    write_checkpoint(path, POINT, secret=secret)
    assert [POINT] == read_checkpoints(path, secret=secret) == read_checkpoints(path)
    with pytest.raises(
        ApprovalError, match="line 1: the checkpoint of entry 3 was changed, or has the code of another"
    ):
        read_checkpoints(path, secret=Secret(new_key()))
    path.write_text(path.read_text().replace('"seq": 3', '"seq": 2'))
    with pytest.raises(ApprovalError, match="the checkpoint of entry 2 was changed"):
        read_checkpoints(path, secret=secret)
    write_checkpoint(tmp_path / "plain.json", POINT)
    with pytest.raises(ApprovalError, match="the checkpoint of entry 3 has no code of a secret"):
        read_checkpoints(tmp_path / "plain.json", secret=secret)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "points.json: it holds no checkpoint; `grace-kp approvals verify --write-checkpoint` writes one"),
        ("{", "points.json, line 1: it is not JSON: '{'"),
        ("[]", "line 1: a checkpoint must be a JSON object with store, seq, hash, at, not a list of 0"),
        ('{"store": "s", "seq": -1, "hash": "h", "at": 1}', "must be a JSON object with store"),
        ('{"store": "s", "seq": true, "hash": "h", "at": 1}', "must be a JSON object with store"),
        ('{"store": "s", "seq": 1, "hash": "h", "at": 1, "more": 2}', "must be a JSON object with store"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_what_is_no_checkpoint(tmp_path, text, message):
    path = tmp_path / "points.json"
    path.write_text(text)
    with pytest.raises(ApprovalError, match=message):
        read_checkpoints(path)
