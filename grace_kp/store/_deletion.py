"""Deletion of runs: selects them, deletes their rows, empties their ledger entries, and leaves no deleted byte in a file.

One transaction deletes the rows and marks the file and its index as unclean. Then both are rewritten. The mark stays until that has succeeded.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from grace_kp.errors import StoreError
from grace_kp.store._query import Query, where_of
from grace_kp.store._schema import INDEX, mark_unclean
from grace_kp.trace import PARENT, attributes_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from grace_kp.store._database import Connection


REMOVED = "Removed with its run."


class Deleted(int):
    """The number of deleted runs, nested runs included. Its attributes hold the rest of the report."""

    actions: int
    """Number of ledger entries and approvals that lost their contents. They still state that their action ran, so that none runs twice."""
    open: tuple[str, ...]
    """Runs that match and are still open, or have an open approval. They are not deleted; delete them when both have ended."""
    remains: str
    """Why a file of the store may still hold deleted contents, and what to do; empty if none does."""

    def __new__(cls, runs: int, *, actions: int = 0, open: Iterable[str] = (), remains: str = "") -> Self:  # noqa: A002
        report = super().__new__(cls, runs)
        report.actions, report.open, report.remains = actions, tuple(open), remains
        return report

    @property
    def clean(self) -> bool:
        """Whether no file of the store holds deleted contents any more."""
        return not self.remains

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "deleted": int(self),
            "actions": self.actions,
            "open": list(self.open),
            "clean": self.clean,
            "remains": self.remains,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects the runs to delete: runs that meet every condition.

    Raises:
        ValueError: no condition is given, or one cannot be used; the message names it.
    """

    id: str | None = None
    session: str | None = None
    user: str | None = None
    older_than: datetime | timedelta | str | None = None
    query: Query = field(init=False)

    def __post_init__(self) -> None:
        for name in ("id", "session", "user"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ValueError(f"{name} must be a non-empty string, not {value!r:.60}")
        if all(value is None for value in (self.id, self.session, self.user, self.older_than)):
            raise ValueError(
                "delete needs a condition: id, session, user or older_than; use clear() to delete everything"
            )
        until = _began_before(self.older_than)
        try:
            query = Query(session=self.session, user=self.user, until=until, limit=None)
        except ValueError as error:
            raise ValueError(str(error).replace("until", "older_than", 1)) from None
        object.__setattr__(self, "query", query)

    def matches(self, run_id: str, created_at: str, attributes: Iterable[tuple[str, str, str]]) -> bool:
        """Return whether a run meets every condition."""
        known = set(attributes)
        return (
            self.id in {None, run_id}
            and (self.query.until is None or created_at <= str(self.query.until))
            and all(condition in known for condition in self.query.attributes)
        )


def _began_before(age: datetime | timedelta | str | None) -> datetime | str | None:
    if not isinstance(age, timedelta):
        return age
    try:
        return datetime.now(UTC) - age
    except OverflowError:  # before the first year or after the last
        return "0001-01-01" if age > timedelta(0) else "9999-12-31"


def list_decisions(document: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of the gate decisions in a trace; none for an imported one, whose actions are in no ledger here."""
    grace = document.get("grace") or {}
    decisions = None if grace.get("imported") else grace.get("decisions")
    for entry in decisions if isinstance(decisions, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            yield entry["id"]


def hash_key(ledger_key: str) -> str:
    """Return the key of an action whose contents were removed. It can be looked up, and names no conversation."""
    return "sha256:" + hashlib.sha256(ledger_key.encode()).hexdigest()


def without_contents(entry: bytes) -> bytes:
    """Return a ledger entry without the result of the action and without the reason of the decision."""
    try:
        contents = json.loads(entry)
    except ValueError:
        return entry
    if not isinstance(contents, dict):
        return entry
    contents.pop("result", None)
    if isinstance(contents.get("decision"), dict) and "reason" in contents["decision"]:
        contents["decision"] = {**contents["decision"], "reason": REMOVED}
    return json.dumps(contents).encode()


TABLES = (
    ("traces", "id"),
    ("scores", "trace"),
    ("attributes", "trace"),
    ("feedback", "trace"),
    ("journal", "run_id"),
    ("completions", "run_id"),
)
"""The tables that hold a run, each with the column of its id."""


def delete_rows(connection: Connection, selection: Selection, dead: Container[str] = ()) -> Deleted:
    """Delete the selected runs and the runs nested in them, inside the caller's transaction."""
    still_open, lost = _match_journals(connection, selection, dead)
    if selection.id is not None and selection.id in still_open:
        raise StoreError(f"the run {selection.id} is still open; delete it when it has ended")
    awaited = dict(connection.execute("SELECT run_id, id FROM approvals WHERE run_id IS NOT NULL AND is_open = 1"))
    if selection.id is not None and selection.id in awaited:
        raise StoreError(
            f"the approval {awaited[selection.id]} of the run {selection.id} is still open; decide or withdraw it, then delete the run"
        )
    where, values = where_of(selection.query)
    if selection.id is not None:
        where, values = f"{where} {'AND' if where else 'WHERE'} id = ?", [*values, selection.id]
    found = [run for (run,) in connection.execute(f"SELECT id FROM traces {where}", values)]  # noqa: S608
    kept = still_open.keys() | awaited.keys()
    matching_and_open = kept & {*found, *(run for run, matches in still_open.items() if matches)}
    runs, decisions, stored = _with_nested(connection, [*found, *lost], kept)
    delete_runs(connection, runs)
    actions = _empty_actions(connection, decisions) if decisions else 0
    named = [] if selection.id is None else [selection.id]  # its trace may have been deleted before
    emptied = _empty_approvals(connection, {*runs, *named})
    report = Deleted(len(stored.union(lost) & set(runs)), actions=actions + emptied, open=sorted(matching_and_open))
    if report:
        emptied_data = "CAST(json_set(CAST(data AS TEXT), '$.last_trouble', NULL) AS BLOB)"
        connection.execute(f"UPDATE reports SET data = {emptied_data}")  # noqa: S608
        mark_unclean(connection, INDEX)
    if runs or emptied:
        mark_unclean(connection)
    return report


def delete_runs(connection: Connection, runs: Iterable[str]) -> None:
    """Delete the rows of runs in every table, inside the caller's transaction."""
    for table, column in TABLES:
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(run,) for run in runs])  # noqa: S608


def _match_journals(
    connection: Connection, selection: Selection, dead: Container[str]
) -> tuple[dict[str, bool], list[str]]:
    """Return which open runs with a journal match the selection, and the matching runs of dead processes."""
    parts: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for run, owner, data in connection.execute("SELECT run_id, owner, data FROM journal ORDER BY run_id, seq"):
        parts.setdefault(run, (owner, []))[1].append(json.loads(data))
    still_open: dict[str, bool] = {}
    lost: list[str] = []
    for run, (owner, rows) in parts.items():
        known: dict[str, Any] = next((row["attributes"] for row in reversed(rows) if "attributes" in row), {})
        matches = selection.matches(run, rows[0].get("created_at", ""), attributes_in({"grace": known}))
        stored = connection.execute("SELECT status FROM traces WHERE id = ?", (run,)).fetchone()
        if stored is not None and stored[0] != "suspended":
            continue  # a late row of a run that has ended
        if owner not in dead:
            still_open[run] = matches
        elif matches:
            lost.append(run)
    return still_open, lost


_NESTED = "SELECT trace FROM attributes WHERE kind = ? AND name = '' AND value = ?"


def _with_nested(
    connection: Connection, wanted: Iterable[str], still_open: Iterable[str]
) -> tuple[list[str], set[str], set[str]]:
    """Return these runs with the runs nested in them, their decisions, and which of them are stored. Skip open runs."""
    waiting, seen = list(wanted), set(still_open)
    runs: list[str] = []
    decisions: set[str] = set()
    stored: set[str] = set()
    while waiting:
        run = waiting.pop()
        if run in seen:
            continue
        seen.add(run)
        runs.append(run)
        row = connection.execute("SELECT data FROM traces WHERE id = ?", (run,)).fetchone()
        if row is not None:
            stored.add(run)
            document = json.loads(row[0])
            decisions.update(list_decisions(document))
            children = (document.get("grace") or {}).get("children")
            if isinstance(children, list):
                waiting.extend(child for child in children if isinstance(child, str))
        waiting.extend(nested for (nested,) in connection.execute(_NESTED, (PARENT, run)))
    return runs, decisions, stored


def _empty_actions(connection: Connection, decisions: set[str]) -> int:
    """Remove the contents from the ledger's entries of these decisions. The entries stay: an action that ran must not run again."""
    emptied = [
        (hash_key(key), without_contents(bytes(data)), key)
        for key, data in connection.execute("SELECT key, data FROM actions").fetchall()
        # The id of the decision is part of the key, or a digest of it.
        if not decisions.isdisjoint({hashlib.sha256(key.encode()).hexdigest()[:16], *key.split("|")})
    ]
    connection.executemany("UPDATE OR REPLACE actions SET key = ?, data = ? WHERE key = ?", emptied)
    return len(emptied)


def _empty_approvals(connection: Connection, runs: Iterable[str]) -> int:
    """Remove the contents of requests for approval that these runs made. Their decisions stay verifiable."""
    of_run = "SELECT id FROM approvals WHERE run_id = ?"
    names = [name for run in runs for (name,) in connection.execute(of_run, (run,))]
    if not names:
        return 0
    from grace_kp.approvals import forget_approvals
    from grace_kp.store._approvals import ApprovalWrites

    return forget_approvals(ApprovalWrites(connection), names, at=time.time())
