"""Every store's tables of approvals pass this suite: rows, the chain, documents, leases, and what a transaction promises."""

from __future__ import annotations

import contextlib
import fnmatch
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import OPEN, ApprovalState, Link, RequestStore, Row, RowQuery, verify
from grace_kp.errors import StoreError
from grace_kp.store import open_store
from tests.approvals.shops import ANA, asked
from tests.store.samples import record

# A store that is added here passes the same suite.
STORES = {"memory": lambda folder: "memory:", "sqlite": lambda folder: f"sqlite:///{folder / 't.db'}"}
EMPTY = Row(
    id="ap-0", state="pending", action="refund", domain="shop", key=None, digest="sha256:0", run_id=None, level=2, deadline=None,
    created=0.0, changed=0.0, revision=1,
)  # fmt: skip


def row(number, **fields):
    return replace(EMPTY, id=f"ap-{number}", **fields)


def entry(number, **fields):
    return Link(**{"seq": number, "hash": f"h{number}", "approval": None, "data": b"{}", **fields})


def put(tables, *rows):
    with tables.transaction() as writes:
        return [writes.put(row) for row in rows]


def ids(rows):
    return [row.id for row in rows]


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    opened = open_store(STORES[request.param](tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def tables(store):
    return store.approvals


def test_a_row_reads_back_as_it_was_put(tables):
    full = row(
        1, state=ApprovalState.APPROVED, action="a\0'ü\u202e", domain="", key="k", digest="d", run_id="r", level=3, deadline=1.5,
        created=-1.0, changed=2e9, waiter="w", data=b"\x00\xff",
    )  # fmt: skip
    assert [True, True] == put(tables, full, row(2))
    assert (full, row(2), None) == (tables.row("ap-1"), tables.row("ap-2"), tables.row("ap-3"))
    assert [full] == tables.rows(RowQuery(states=[ApprovalState.APPROVED]))


def test_ids_are_found_by_their_beginning(tables):
    put(tables, row("ab1"), row("ab0"), row("b"), row("a%"))
    assert ["ap-ab0", "ap-ab1"] == tables.ids("ap-ab", limit=5)
    assert ["ap-ab0"] == tables.ids("ap-ab", limit=1)
    assert (["ap-a%"], []) == (tables.ids("ap-a%", limit=5), tables.ids("ap-_b", limit=5))


def test_a_row_replaces_only_the_revision_before(tables):
    assert [True, False, True, False, False] == put(
        tables,
        row(1),
        row(1, state="approved"),
        row(1, state="approved", revision=2),
        row(1, state="rejected", revision=2),
        row(2, revision=2),
    )
    assert row(1, state="approved", revision=2) == tables.row("ap-1")
    assert 1 == tables.count(RowQuery())


def test_nothing_of_a_failed_transaction_remains(tables):
    with tables.transaction() as writes:
        writes.put(row(1))
        writes.append(entry(1, salt=b"s", contents=b"c"))
        writes.put_document("standing", "a", b"1")
    with contextlib.suppress(ZeroDivisionError), tables.transaction() as writes:
        writes.put(row(1, revision=2, state="approved", key="k"))
        writes.put(row(2, key="k"))
        writes.append(entry(2))
        assert 1 == writes.forget([1])
        writes.put_document("standing", "a", None)
        writes.put_document("standing", "b", b"2")
        assert (["ap-1", "ap-2"], (2, "h2")) == (ids(writes.rows(RowQuery(key="k"))), writes.head())
        raise ZeroDivisionError
    assert [row(1)] == tables.rows(RowQuery())
    assert (0, 1) == (tables.count(RowQuery(key="k")), tables.count(RowQuery(states=["pending"])))
    assert [entry(1, salt=b"s", contents=b"c")] == tables.links()
    assert {"a": b"1"} == tables.documents("standing")
    assert [True] == put(tables, row(2))


def test_a_transaction_does_not_begin_inside_another(tables):
    with tables.transaction() as writes:
        with pytest.raises(StoreError, match="is open in this thread"), tables.transaction():
            pass
        writes.put(row(1))
    assert row(1) == tables.row("ap-1")


def test_rows_are_put_in_transactions_only(tables):
    """Whoever keeps the block for later is refused, and nothing is written."""
    with tables.transaction() as writes:
        pass
    with pytest.raises(StoreError, match="inside of `transaction"):
        writes.put(row(1))
    assert None is tables.row("ap-1")


def test_the_chain_has_no_gaps(tables):
    """An entry follows the head; entries are read by number, by approval, and piece by piece."""
    assert (0, "") == tables.head()
    with tables.transaction() as writes:
        for number in range(1, 6):
            writes.append(entry(number, approval=f"ap-{number % 2}"))
        for wrong in (0, 5, 7):
            with pytest.raises(StoreError, match="append entry 6"):
                writes.append(entry(wrong))
    assert (5, "h5") == tables.head()
    assert (entry(3, approval="ap-1"), None, None) == (tables.link(3), tables.link(0), tables.link(6))
    assert [3, 4] == [link.seq for link in tables.links(after=2, limit=2)]
    assert [3, 5] == [link.seq for link in tables.links(after=1, approval="ap-1")]
    assert [5, 4, 3, 2, 1] == [link.seq for link in tables.links_before()]
    assert [4, 3] == [link.seq for link in tables.links_before(5, limit=2)]
    assert [3, 1] == [link.seq for link in tables.links_before(5, approval="ap-1")]
    assert [5] == [link.seq for link in tables.links_before(100, limit=1)]
    assert [] == tables.links_before(1) == tables.links_before(0) == tables.links_before(approval="ap-9")


def test_contents_are_deleted_and_their_entries_stay(tables):
    with tables.transaction() as writes:
        writes.append(entry(1, salt=b"salt", contents=b"contents"))
        writes.append(entry(2))
        writes.append(entry(3, salt=b"", contents=None))
    assert [1, 3] == [link.seq for link in tables.links(kept=True)]
    with tables.transaction() as writes:
        assert 2 == writes.forget([1, 2, 3, 4])
        assert 0 == writes.forget([1])
    assert [] == tables.links(kept=True)
    assert [entry(1), entry(2), entry(3)] == tables.links()


def test_documents_are_kept_by_kind_and_name(tables):
    with tables.transaction() as writes:
        for kind, name, data in (
            ("a", "2", b"x"),
            ("a", "1", b"y"),
            ("b", "1", b"z"),
            ("a", "2", b"w"),
            ("b", "1", None),
        ):
            writes.put_document(kind, name, data)
    assert ({"1": b"y", "2": b"w"}, {}) == (tables.documents("a"), tables.documents("b"))
    assert (b"w", None) == (tables.document("a", "2"), tables.document("b", "1"))


ACTIONS = ["refund", "refund.all", "Refund", "a[1]", "é", ""]
rows_of_any_kind = st.lists(
    st.builds(
        replace, st.just(EMPTY), state=st.sampled_from(ApprovalState), action=st.sampled_from(ACTIONS), domain=st.sampled_from("xy"),
        key=st.sampled_from([None, "k", "l"]), digest=st.sampled_from("de"), run_id=st.sampled_from([None, "r"]), level=st.integers(0, 3),
        deadline=st.sampled_from([None, 1.0, 2.0]), created=st.sampled_from([0.0, 1.0]), changed=st.sampled_from([0.0, 1.0, 2.0]),
    ),
    max_size=12,
)  # fmt: skip
queries = st.builds(
    RowQuery,
    states=st.one_of(st.just(()), st.lists(st.sampled_from([*ApprovalState, "no state"]), max_size=4), st.just([*OPEN])),
    action=st.sampled_from([None, None, *ACTIONS, "*", "refund*", "?efund", "[rR]efund", "[!r]*", "a[[]1]", "a[1]", "[", "x*"]),
    domain=st.sampled_from([None, "x"]), key=st.sampled_from([None, None, "k"]), digest=st.sampled_from([None, "d"]),
    run_id=st.sampled_from([None, None, "r"]), due_before=st.sampled_from([None, 1.0, 1.5]), since=st.sampled_from([None, 1.0]),
    order=st.sampled_from(["due", "newest"]), limit=st.sampled_from([None, 0, 1, 100]), offset=st.integers(0, 2),
)  # fmt: skip


def expected(rows, query):
    infinity = float("inf")

    def is_in(row):
        named = query.action is None or (
            fnmatch.fnmatchcase(row.action, query.action)
            if set("*?[") & set(query.action)
            else row.action == query.action
        )
        same = all(getattr(query, name) in {None, getattr(row, name)} for name in ("domain", "key", "digest", "run_id"))
        is_due = query.due_before is None or (row.deadline is not None and row.deadline <= query.due_before)
        is_new = query.since is None or row.changed >= query.since
        return named and same and is_due and is_new and (not query.states or row.state in query.states)

    def place(pair):
        number, row = pair
        deadline = infinity if row.deadline is None else row.deadline
        return (deadline, -row.level, row.created, number) if query.order == "due" else (-row.changed, -number)

    return [row for _, row in sorted(((n, row) for n, row in enumerate(rows) if is_in(row)), key=place)]


@pytest.mark.parametrize("kind", STORES)
@given(rows_of_any_kind, st.lists(queries, min_size=1, max_size=8))
def test_any_query_finds_what_it_describes(tmp_path_factory, kind, rows, queries):
    rows = [replace(row, id=f"ap-{number}") for number, row in enumerate(rows)]
    store = open_store(STORES[kind](tmp_path_factory.mktemp("tables")))
    put(store.approvals, *rows)
    for query in queries:
        found = expected(rows, query)
        end = None if query.limit is None else query.offset + query.limit
        assert ids(found[query.offset : end]) == ids(store.approvals.rows(query))
        assert len(found) == store.approvals.count(query)
    store.close()


def test_nothing_is_found_by_impossible_values(tables):
    put(tables, row(1))
    for query in (RowQuery(action="\ud800"), RowQuery(key="\ud800"), RowQuery(digest="\ud800*", action="*")):
        assert (0, []) == (tables.count(query), tables.rows(query))
    assert (None, None, None) == (tables.row("\ud800"), tables.link(2**70), tables.document("a", "\ud800"))
    assert ([], []) == (tables.links(approval="\ud800"), tables.ids("\ud800", limit=1))


def with_approval(store, state, run="kp:trace:1"):
    store.put([record(1), record(2)])
    with store.approvals.transaction() as writes:
        writes.put(row(1, run_id=run, state=state))
        writes.append(entry(1, approval="ap-1", salt=b"SALT", contents=b"CONTENTS"))
        writes.append(entry(2, approval="ap-2", salt=b"s", contents=b"others"))


@pytest.mark.parametrize("state", [state for state in ApprovalState if state not in OPEN])
def test_deleting_a_run_deletes_the_contents_of_its_approvals(store, state):
    with_approval(store, state)
    report = store.delete(id="kp:trace:1")
    assert (1, 1, True) == (report, report.actions, report.clean)
    assert (state, entry(1, approval="ap-1")) == (store.approvals.row("ap-1").state, store.approvals.link(1))
    assert b"others" == store.approvals.link(2).contents
    store.delete(id="kp:trace:2")
    assert 0 == store.delete(id="kp:trace:2").actions


def test_contents_go_although_the_run_went_before(store):
    with_approval(store, "done", run="kp:trace:9")
    report = store.delete(id="kp:trace:9")
    assert (0, 1, None) == (report, report.actions, store.approvals.link(1).contents)


@pytest.mark.parametrize("state", sorted(OPEN))
def test_a_run_with_an_open_approval_is_not_deleted(store, state):
    with_approval(store, state)
    with pytest.raises(
        StoreError, match="the approval ap-1 of the run kp:trace:1 is still open; decide or withdraw it"
    ):
        store.delete(id="kp:trace:1")
    report = store.delete(older_than="2030-01-01")
    assert (1, ("kp:trace:1",)) == (report, report.open)
    assert b"CONTENTS" == store.approvals.link(1).contents


@pytest.mark.parametrize("deletes", ["run", "retention"])
def test_a_deletion_is_an_entry_of_the_chain(store, deletes):
    """Of a run's contents or of old ones: the chain stays verifiable, and says that contents were deleted."""
    desk = RequestStore(store.approvals, clock=lambda: 1_000.0)
    for run in ("kp:trace:1", "kp:trace:2", "kp:trace:1"):
        approval = desk.file(asked(run_id=run))
        desk.reject(approval.id, by=ANA, reason="CONTENTS")
    still_open = desk.file(asked(run_id="kp:trace:3"))
    if deletes == "run":
        assert 2 == store.delete(id="kp:trace:1").actions
    else:
        store.retain(1)
    verification = verify(store.approvals, at=1.0)
    assert (True, ()) == (verification.ok, verification.problems)
    assert {"run": 4, "retention": 6}[deletes] == verification.deleted
    assert not desk.get(still_open.id).deleted


def test_clearing_traces_leaves_approvals(store):
    with_approval(store, "done")
    assert 2 == store.clear()
    assert b"CONTENTS" == store.approvals.link(1).contents


def test_this_process_is_alive(tables):
    process = tables.hold()
    assert process == tables.hold()
    assert (True, None) == (tables.is_alive(process), tables.is_alive("nobody"))
    with tables.transaction():
        assert process == tables.hold()
