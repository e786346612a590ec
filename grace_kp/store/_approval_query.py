"""Rows of the tables of approvals in a SQLite file, and queries on them as SQL.

A listing names the index that it uses. Without statistics SQLite would guess, and might sort a million past rows to list a hundred.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import OPEN, Link, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.approvals import RowQuery

_NAMES = tuple(field.name for field in fields(Row))
COLUMNS = ", ".join(_NAMES)
NEXT = {"due": "deadline, level DESC, created, number", "newest": "changed DESC, number DESC"}
"""The orders of a query, as SQL."""
MAX_BRANCHES = 100
"""How many listings SQLite merges into one; it allows 500."""
ACTIONS = """WITH RECURSIVE names (action) AS (
    SELECT MIN(action) FROM approvals INDEXED BY approvals_by_action
    UNION ALL
    SELECT (SELECT MIN(action) FROM approvals INDEXED BY approvals_by_action WHERE action > names.action)
    FROM names WHERE action IS NOT NULL)
SELECT action FROM names WHERE action IS NOT NULL"""
"""All names of actions. It reads one entry of the index per name."""
LINKS = "SELECT seq, hash, approval, data, salt, contents FROM approval_chain LEFT JOIN approval_contents USING (seq)"
KEPT = LINKS.replace("LEFT JOIN", "JOIN")
"""Entries of the chain: all, and those that have contents."""
Branch = tuple[str, list[Any]]
"""The part of a SELECT behind FROM, with its values."""


def values_of(row: Row) -> tuple[Any, ...]:
    """Return the values of a row, in the order of `COLUMNS`."""
    deadline = math.inf if row.deadline is None else row.deadline
    return tuple(deadline if name == "deadline" else getattr(row, name) for name in _NAMES)


def row_of(values: Sequence[Any]) -> Row:
    """Return the row with these values of `COLUMNS`."""
    columns = dict(zip(_NAMES, values, strict=True))
    if columns["deadline"] == math.inf:
        columns["deadline"] = None
    columns["data"] = _bytes_of(columns["data"])
    return Row(**columns)


def link_of(values: Sequence[Any]) -> Link:
    """Return the entry with these values of `LINKS`."""
    seq, digest, approval, data, *contents = values
    salt, text = (None if value is None else _bytes_of(value) for value in contents)
    return Link(seq=seq, hash=digest, approval=approval, data=_bytes_of(data), salt=salt, contents=text)


def _bytes_of(value: object) -> bytes:
    """Return the bytes of a column. A foreign hand may have put a value of another kind, which a verification is to report."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace")


def listing(query: RowQuery, actions: Sequence[str] | None) -> Branch:
    """Return the statement that lists the rows of a query in its order, with its values.

    Args:
        query: the query.
        actions: the names that its `action` stands for; None for all.
    """
    found = branches(query, actions)
    parts = " UNION ALL ".join(f"SELECT {COLUMNS}, number FROM {part}" for part, _ in found)  # noqa: S608
    limit = -1 if query.limit is None else query.limit
    return (
        f"{parts} ORDER BY {NEXT[query.order]} LIMIT ? OFFSET ?",
        [value for _, values in found for value in values] + [limit, query.offset],
    )


def branches(query: RowQuery, actions: Sequence[str] | None) -> list[Branch]:
    """Return parts of the table that make up the rows of a query. None overlaps another, and an index has each in the query's order.

    Where the query names a key, a digest or a run, there is one part, which is small.
    """
    states = list(dict.fromkeys(map(str, query.states)))
    names = None if actions is None else list(dict.fromkeys(actions))
    for column, index in (
        ("key", "approvals_by_key"),
        ("digest", "approvals_by_digest"),
        ("run_id", "approvals_by_run"),
    ):
        if getattr(query, column) is not None:
            return [_branch(query, index, states, names)]
    if query.order == "due" and states and OPEN.issuperset(states):
        return [_branch(query, "approvals_open", [state], names) for state in states]
    if query.order == "newest" and names and len(names) <= MAX_BRANCHES:
        return [_branch(query, "approvals_by_action", states, [name]) for name in names]
    if states and len(states) <= MAX_BRANCHES:
        return [_branch(query, "approvals_by_state", [state], names) for state in states]
    return [_branch(query, "approvals_by_change" if query.order == "newest" else "", states, names)]


def _branch(query: RowQuery, index: str, states: Sequence[str], actions: Sequence[str] | None) -> Branch:
    conditions: list[str] = ["is_open = 1"] if index == "approvals_open" else []
    values: list[Any] = []
    for condition, value in (
        ("domain = ?", query.domain),
        ("key = ?", query.key),
        ("digest = ?", query.digest),
        ("run_id = ?", query.run_id),
        ("deadline <= ?", query.due_before),
        ("changed >= ?", query.since),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    for column, texts in (("state", states or None), ("action", actions)):
        if texts is not None:
            conditions.append(f"{column} = ?" if len(texts) == 1 else f"{column} IN ({', '.join('?' * len(texts))})")
            values += texts
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"approvals{f' INDEXED BY {index}' if index else ''}{where}", values
