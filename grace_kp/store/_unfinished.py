"""Runs in a SQLite store that are not finished: journals of open runs, and stored runs that await a judgement or scores.

What a dead owner leaves is taken over by one other process. The owner may live all the same, if it was stopped for longer than its
lease. Then two processes finish the same run, and the store keeps the trace of the process that ran it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.store._record import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.store._database import Connection
    from grace_kp.store._leases import Owners
    from grace_kp.store._record import Record


NOBODY = ""
"""Owner of what neither the run's own process nor the one that took it over can add: whoever can add it may take it."""


class Unfinished:
    """The unfinished runs that one store is responsible for: those of its process, and those that it took over."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self.forget()

    def forget(self) -> None:
        """Be responsible for nothing, as in a forked child."""
        self._recovered: dict[str, int | None] = {}
        """Runs whose journals were taken over, with the version of their trace that was stored then."""
        self._adopted: set[str] = set()
        """Runs that were taken over and are not complete."""

    def journal(self, connection: Connection, entries: Sequence[JournalEntry]) -> None:
        """Store rows of journals under this owner."""
        if entries:
            owner = self._owners.hold(connection)
            connection.executemany(
                "INSERT INTO journal (run_id, seq, owner, data) VALUES (?,?,?,?)"
                " ON CONFLICT (run_id, seq) DO UPDATE SET owner = excluded.owner, data = excluded.data",
                [(entry.run_id, entry.seq, owner, entry.data) for entry in entries],
            )

    def current(self, connection: Connection, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records without those that come too late.

        A record that completes a run comes too late if the run was deleted, completed or finished by its own process meanwhile. The
        trace of an interrupted run comes too late if the trace of the run was stored or deleted meanwhile.
        """
        if not self._recovered and not any(record.completes for record in records):
            return records
        kept: list[Record] = []
        stored_now: dict[str, bool] = {}
        for record in records:
            known = stored_now.get(record.id)
            if record.completes and not (self._may_complete(connection, record.id) if known is None else known):
                continue
            if record.id in self._recovered and _version_of(connection, record.id) != self._recovered[record.id]:
                continue
            stored_now[record.id] = bool(record.awaits)
            kept.append(record)
        return kept

    def _may_complete(self, connection: Connection, run_id: str) -> bool:
        row = connection.execute("SELECT owner FROM completions WHERE run_id = ?", (run_id,)).fetchone()
        return row is not None and (run_id not in self._adopted or row[0] == self._owners.id)

    def note(self, connection: Connection, records: Sequence[Record], ended: Iterable[str]) -> None:
        """Note which of the stored runs await something, and delete the journals of the runs in `ended`."""
        newest = {record.id: record for record in records}.values()
        if connection.execute("SELECT 1 FROM completions LIMIT 1").fetchone() is not None:
            connection.executemany(
                "DELETE FROM completions WHERE run_id = ?", [(record.id,) for record in newest if not record.awaits]
            )
        waiting = [record for record in newest if record.awaits]
        if waiting:
            owner = self._owners.hold(connection)
            connection.executemany(
                "INSERT INTO completions VALUES (?,?,?)"
                " ON CONFLICT (run_id) DO UPDATE SET owner = excluded.owner, awaits = excluded.awaits",
                [
                    (r.id, NOBODY if r.completes and r.id in self._adopted else owner, " ".join(r.awaits))
                    for r in waiting
                ],
            )
        # The process of a run that was taken over may live and go on with its journal.
        connection.executemany(
            "DELETE FROM journal WHERE run_id = ? AND owner = COALESCE(?, owner)",
            [(run_id, self._owners.id if run_id in self._adopted else None) for run_id in ended],
        )

    def done(self, records: Iterable[Record]) -> None:
        """Take note, after the transaction, that the records were stored or came too late."""
        for record in records:
            self._recovered.pop(record.id, None)

    def take_journals(self, connection: Connection, dead: Iterable[str]) -> list[list[JournalEntry]]:
        """Take over the journals of dead owners; return those of interrupted runs."""
        mine = self._owners.hold(connection)
        runs: dict[str, list[JournalEntry]] = {}
        for owner in dead:
            # A run that was stored is not lost, even if the last row of its journal came late. A run that was stored as suspended has
            # continued since, if its journal has a first row.
            connection.execute(
                "DELETE FROM journal WHERE owner = ? AND run_id IN (SELECT id FROM traces WHERE status <> 'suspended')",
                (owner,),
            )
            rows = connection.execute("SELECT run_id, seq, data FROM journal WHERE owner = ? ORDER BY seq", (owner,))
            for run_id, seq, data in rows.fetchall():
                runs.setdefault(run_id, []).append(JournalEntry(run_id, seq, bytes(data)))
            connection.execute("UPDATE journal SET owner = ? WHERE owner = ?", (mine, owner))
            connection.execute("DELETE FROM owners WHERE id = ?", (owner,))
        for entries in runs.values():  # of several owners, if the run's own process lived and went on
            entries.sort(key=lambda entry: entry.seq)
        found = {run_id: entries for run_id, entries in runs.items() if entries[0].seq == 0}
        late = [(run_id, mine) for run_id in runs.keys() - found.keys()]
        connection.executemany("DELETE FROM journal WHERE run_id = ? AND owner = ?", late)
        self._recovered.update({run_id: _version_of(connection, run_id) for run_id in found})
        self._adopted.update(found)
        return list(found.values())

    def take_incomplete(
        self, connection: Connection, dead: Iterable[str], parts: frozenset[str], limit: int
    ) -> list[bytes]:
        """Take over stored runs of dead owners that await one of these parts; return their documents."""
        taken: dict[str, bytes] = {}
        for owner in dead:
            rows = connection.execute("SELECT run_id, awaits FROM completions WHERE owner = ?", (owner,)).fetchall()
            for run_id, awaits in rows:
                row = connection.execute("SELECT data FROM traces WHERE id = ?", (run_id,)).fetchone()
                if row is None:
                    connection.execute("DELETE FROM completions WHERE run_id = ?", (run_id,))
                elif len(taken) < limit and not parts.isdisjoint(awaits.split()):
                    taken[run_id] = bytes(row[0])
        mine = self._owners.hold(connection)
        connection.executemany("UPDATE completions SET owner = ? WHERE run_id = ?", [(mine, run) for run in taken])
        self._adopted.update(taken)
        return list(taken.values())


def _version_of(connection: Connection, run_id: str) -> int | None:
    """Return a number that differs for each version of a trace; None if there is no such trace."""
    row = connection.execute("SELECT changed FROM traces WHERE id = ?", (run_id,)).fetchone()
    return None if row is None else int(row[0])
