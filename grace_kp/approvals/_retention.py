"""Retention: deletes the contents of approvals that have ended. Entries, hashes and commitments stay, and an entry records the deletion.

Names of actors and facts (actions, states, times, levels) are no contents. They stay.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from grace_kp.approvals._chain import append, each_link, entry_of
from grace_kp.approvals._states import FOLLOWING, ApprovalState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grace_kp.approvals._actor import Actor
    from grace_kp.approvals._tables import Link, Reads, Tables, Writes

AT_MOST = 100_000
"""Entries per transaction. Others wait for each, and a file is rewritten after each, so that it holds no deleted bytes."""


def forget(tables: Tables, *, before: float, at: float, actor: Actor | None = None) -> int:
    """Delete contents and salts of the approvals that ended before `before`, and return of how many entries.

    An approval has ended when nothing can follow its state. One whose outcome is unknown keeps its contents until it is reconciled.
    Contents of entries without an approval are deleted once the entry is older.

    Args:
        tables: the tables of the store.
        before: seconds since the epoch.
        at: the time now.
        actor: who deletes; None for the retention of the store.

    Raises:
        StoreError: the tables cannot be written. What was deleted until then is recorded.
    """
    spans, count = _spans(tables, before), 0
    while batch := list(islice(spans, AT_MOST)):
        with tables.transaction() as writes:
            count += _forget(writes, batch, at=at, actor=actor, facts={"before": before})
    return count


def forget_approvals(writes: Writes, approvals: Iterable[str], *, at: float) -> int:
    """Delete contents and salts of these approvals inside of a transaction, because their runs are deleted.

    Args:
        writes: the transaction.
        approvals: their ids.
        at: the time now.

    Returns:
        How many approvals had contents.
    """
    seqs: list[int] = []
    count = 0
    for approval in approvals:
        of_this = [link.seq for link in each_link(writes, approval=approval, kept=True)]
        seqs.extend(of_this)
        count += bool(of_this)
    seqs.sort()
    if seqs:
        adjoining = [(seq, seq - 1 == before) for before, seq in zip([0, *seqs], seqs, strict=False)]
        _forget(writes, adjoining, at=at, actor=None, facts={})
    return count


def _forget(
    writes: Writes, batch: list[tuple[int, bool]], *, at: float, actor: Actor | None, facts: dict[str, object]
) -> int:
    deleted = writes.forget([seq for seq, _ in batch])
    if deleted:
        append(writes, "forgotten", at=at, actor=actor, facts={**facts, "count": deleted, "ranges": _ranges(batch)})
    return deleted


def _spans(tables: Tables, before: float) -> Iterator[tuple[int, bool]]:
    """Yield the numbers of entries to forget, each with whether all entries with contents since the number before are forgotten too."""
    ended: dict[str, bool] = {}
    adjoins = False
    for link in each_link(tables, kept=True):
        due = _is_due(tables, link, before, ended)
        if due:
            yield link.seq, adjoins
        adjoins = due


def _is_due(reads: Reads, link: Link, before: float, ended: dict[str, bool]) -> bool:
    if link.approval is None:
        return bool(entry_of(link)["at"] < before)
    if link.approval not in ended:
        if len(ended) >= AT_MOST:
            ended.clear()
        row = reads.row(link.approval)
        ended[link.approval] = row is None or (not FOLLOWING[ApprovalState(row.state)] and row.changed < before)
    return ended[link.approval]


def _ranges(batch: list[tuple[int, bool]]) -> list[list[int]]:
    """Return the numbers as ranges, which also span entries that never had contents."""
    ranges: list[list[int]] = []
    for seq, adjoins in batch:
        if adjoins and ranges:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    return ranges
