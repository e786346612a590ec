"""Verification as an auditor sees it: each kind of tampering is located, and the report says what could not be checked."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import (
    ACCOUNT,
    Actor,
    Checkpoint,
    Secret,
    Standing,
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
from grace_kp.approvals._chain import append_view, entry_bytes, entry_hash
from grace_kp.errors import ApprovalError
from grace_kp.store import open_store
from tests.approvals.chains import DictTables, advance, chain_of, damage, found
from tests.approvals.shops import ANA, Shop, asked, claim

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
    """Also one that was copied from elsewhere in the chain and got the number of its place."""
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


def test_a_shorter_chain_is_found_by_a_checkpoint():
    point = checkpoint(chain_of(STEPS), at=1.0)
    verification = verify(chain_of(STEPS[:5]), at=1.0, checkpoint=point)
    assert [(6, "missing")] == found(verification)
    assert "the chain ends at entry 5, and the checkpoint is of entry 8" in verification.problems[0].message


def test_another_stores_chain_is_found_by_a_checkpoint():
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
    tables = chain_of(STEPS)
    append_view(tables, tables.row("ap-1"), at=9.0, actor=Actor(name="bob"))
    append(tables, "late_report", at=9.0, approval="ap-1", revision=4, contents={"result": 1})
    append(tables, "restored", at=9.0)
    assert verify(tables, at=1.0).ok


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


@pytest.mark.parametrize("ranges", [None, "1", [1], [[1]], [["1", 2]], [[0, 1]], [[2, 1]], [[1, 99]], [[True, 1]]])
def test_an_entry_about_a_deletion_that_names_no_entries(ranges):
    tables = chain_of(SHORT)
    tables.forget([1])
    append(tables, "forgotten", at=1.0, facts={"count": 1, "ranges": ranges})
    assert [(4, "contents"), (1, "contents")] == found(verify(tables, at=1.0))


def test_an_entry_about_a_deletion_that_did_not_take_place():
    tables = chain_of(SHORT)
    append(tables, "forgotten", at=1.0, facts={"count": 2, "ranges": [[1, 2]]})
    assert [(1, "contents"), (2, "contents"), (4, "contents")] == found(verify(tables, at=1.0))


def test_contents_that_disappeared_before_retention_came_by():
    """Retention does not excuse them: the number of deleted contents is not theirs."""
    tables = chain_of((1, 1, 1))
    tables.forget([1])
    tables.forget([2])
    append(tables, "forgotten", at=1.0, facts={"count": 1, "ranges": [[1, 2]]})
    verification = verify(tables, at=1.0)
    assert [(4, "contents")] == found(verification)
    assert "the contents of 1 entries were deleted, and 2 are missing" in verification.problems[0].message


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def opened(path):
    return contextlib.closing(open_store(f"sqlite:///{path}"))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE approval_chain SET data = 5 WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET data = 'é' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET hash = X'00' WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET approval = 5 WHERE seq = 3", (3, "changed")),
        ("UPDATE approval_chain SET seq = -5 WHERE seq = 3", (3, "missing")),
        ("UPDATE approval_chain SET seq = 9223372036854775807 WHERE seq = 3", (3, "missing")),
        ("UPDATE approval_chain SET seq = 50000000000 WHERE seq = 8", (8, "missing")),
        ("DELETE FROM approval_chain", (1, "missing")),
        ("UPDATE approval_contents SET salt = 'abc' WHERE seq = 3", (3, "contents")),
        ("UPDATE approval_contents SET contents = '{}' WHERE seq = 3", (3, "contents")),
        ("UPDATE approvals SET state = 'nonsense' WHERE id = 'ap-3'", (7, "row")),
        ("UPDATE approvals SET changed = 'x' WHERE id = 'ap-3'", (7, "row")),
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
    """Whatever stands in a column, the place is named and the rest is read and exported."""
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
        ({"action": "delete"}, "is not as entry 1 has granted it"),
        ({"parameters": {"invoice": {"any": True}, "euros": {"any": True}}}, "is not as entry 1 has granted it"),
        ({"used": 0}, "counts 0 uses, and the chain 1"),
        ({"ended": "x"}, "was ended without an entry"),
        ({"used": None}, "counts None uses"),
    ],
)
def test_a_change_without_an_entry_is_located(shop, changes, message):
    name, _ = documents(shop)
    change(shop, name, **changes)
    verification = verify(shop.tables, at=1.0)
    assert [(1, "standing")] == found(verification)
    assert f"the standing approval {name} {message}" in verification.problems[0].message


def test_one_that_was_renewed_or_invented_is_found(shop):
    """One that has ended holds again; another was never granted; a third cannot be read."""
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
    """A changed checkpoint, one of another secret and one without a code are refused."""
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
        ('{"store": "s", "seq": "1", "hash": "h", "at": 1}', "must be a JSON object with store"),
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
