"""Entries of the chain: what they hold, what they never hold, and what they refuse."""

from __future__ import annotations

import hashlib
import json

import pytest
import rfc8785

from grace_kp.approvals import Actor, Row, append, append_view, contents_of, entry_of, was_viewed
from tests.approvals.tables import DictTables

ANA = Actor(name="ana", channel="cli")


def row(**changes):
    """A row with what matters in a test."""
    usual = {"id": "ap-1", "state": "pending", "action": "refund", "domain": "shop", "key": None, "digest": "sha256:00"}
    times = {"run_id": None, "level": 2, "deadline": 60.5, "created": 1.0, "changed": 1.0, "revision": 1}
    return Row(**{**usual, **times, **changes})


def tables(*rows):
    """Tables with these rows, each with its entry."""
    store = DictTables()
    for each in rows:
        with store.transaction() as writes:
            assert writes.put(each)
            append(writes, "requested", at=each.changed, approval=each.id, revision=each.revision, contents={"a": 1})
    return store


def test_entries_hold_on_to_each_other():
    """Each has the hash of the one before it; the hash is that of its canonical JSON."""
    store = tables(row(), row(id="ap-2"))
    first, second = store.links()
    assert ("", first.hash) == (entry_of(first)["prev"], entry_of(second)["prev"])
    assert [1, 2] == [entry_of(link)["seq"] for link in (first, second)]
    assert second.hash == hashlib.sha256(rfc8785.dumps(json.loads(second.data))).hexdigest()


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


def test_an_entry_without_contents_has_no_commitment():
    """Neither has it a salt."""
    link = append(DictTables(), "restored", at=1.0, actor=ANA, facts={"marked": 3})
    entry = entry_of(link)
    assert (None, None, None, None) == (entry["commitment"], link.salt, link.contents, contents_of(link))
    assert ({"marked": 3}, {"name": "ana", "channel": "cli", "authenticated": False}) == (
        entry["facts"],
        entry["actor"],
    )


def test_an_entry_states_the_row_that_was_written_with_it():
    """State and digest in the clear, everything else as a hash."""
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
    """Nothing is written then."""
    store = tables(row())
    usual = {"kind": "decided", "at": 2.0, "approval": "ap-1", "revision": 1}
    with pytest.raises(ValueError, match=message):
        append(store, **{**usual, **changes})
    assert 1 == store.head()[0]


def test_names_that_utf8_cannot_hold_are_kept_visible():
    """A machine may be named in any bytes."""
    link = append(
        DictTables(), "restored", at=1.0, actor=Actor(name="\udcff\u202e", host="h"), facts={"\ud800": ["\ud800"]}
    )
    assert ("\\udcff\u202e", {"\\ud800": ["\\ud800"]}) == (entry_of(link)["actor"]["name"], entry_of(link)["facts"])


def test_a_person_views_a_revision_once():
    """Another person, or another revision, is another entry."""
    store = tables(row())
    bob = Actor(name="bob")
    assert not was_viewed(store, "ap-1", 1, ANA)
    assert append_view(store, row(), at=2.0, actor=ANA) is not None
    assert append_view(store, row(), at=3.0, actor=ANA) is None
    assert append_view(store, row(), at=3.0, actor=bob) is not None
    assert was_viewed(store, "ap-1", 1, ANA)
    assert not was_viewed(store, "ap-1", 2, ANA)
    store.put(row(revision=2))
    assert append_view(store, row(revision=2), at=4.0, actor=ANA) is not None
    assert ["requested", "viewed", "viewed", "viewed"] == [entry_of(link)["kind"] for link in store.links()]
