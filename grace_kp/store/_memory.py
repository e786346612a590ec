"""A store in memory with a bound: traces as compact JSON, of which the oldest are dropped first and counted."""

from __future__ import annotations

import json
import threading
import time
from bisect import insort
from collections import OrderedDict
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from grace_kp.errors import StoreError
from grace_kp.store._deletion import (
    Deleted,
    Selection,
    belongs_to,
    decisions_in,
    nested_in,
    still_awaited,
    without_contents,
)
from grace_kp.store._feedback import carried_by, missing_from, with_feedback
from grace_kp.store._query import Query
from grace_kp.store._record import load_trace
from grace_kp.store._run_log import RunLog
from grace_kp.store._state import mark_of
from grace_kp.trace import PARENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from grace_kp.store._approval_memory import MemoryTables
    from grace_kp.store._catalog_memory import MemorySource
    from grace_kp.store._feedback import FeedbackEntry
    from grace_kp.store._record import JournalEntry, Record
    from grace_kp.store._state import ReadStates
    from grace_kp.trace import ReasoningTrace

MAX_TRACES = 10_000
MAX_MB = 64


class MemoryStore:
    """Keeps up to `max_traces` traces and `max_mb` megabytes of JSON. Beyond that it drops the oldest."""

    def __init__(self, max_traces: int = MAX_TRACES, max_mb: float = MAX_MB) -> None:
        self.evicted = 0
        self._max_traces = max_traces
        self._max_bytes = int(max_mb * (1 << 20))
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._feedback: dict[str, list[FeedbackEntry]] = {}
        """By trace, oldest first."""
        self._actions: dict[str, bytes] = {}
        self._state: dict[str, str] = {}
        self._approvals: MemoryTables | None = None
        self._bytes = 0
        self._log = RunLog()
        self.lock = threading.RLock()
        """Held while the store is used."""

    def changes(self) -> MemorySource:
        """Return what a catalog follows."""
        from grace_kp.store._catalog_memory import MemorySource  # only in a process with a catalog

        return MemorySource(self._records, self._log, lambda: self.lock)

    @property
    def approvals(self) -> MemoryTables:
        """The tables of approvals; see `MemoryTables`."""
        with self.lock:
            if self._approvals is None:
                from grace_kp.store._approval_memory import MemoryTables  # only where there are gates that ask it

                self._approvals = MemoryTables()
            return self._approvals

    def after_fork(self) -> None:
        """Replace the lock in a forked child, where no other thread exists to release it."""
        self.lock = threading.RLock()

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Store traces, replacing those with the same id; see `Record.completes`."""
        del ended
        with self.lock:
            for record in records:
                if record.completes and not getattr(self._records.get(record.id), "awaits", ()):
                    continue
                before = self._records.pop(record.id, None)
                self._bytes += len(record.data) - (len(before.data) if before else 0)
                self._records[record.id] = record
                self._log.stored(record.id)
                self._add(missing_from(carried_by(record), [entry.data for entry in self._feedback_on(record.id)]))
            self._evict()

    def _evict(self) -> None:
        while len(self._records) > self._max_traces or (self._bytes > self._max_bytes and len(self._records) > 1):
            self._drop(next(iter(self._records)))
            self.evicted += 1

    def _drop(self, name: str) -> Record | None:
        """Remove a record with its feedback and return it; None if there is none."""
        found = self._records.pop(name, None)
        self._log.dropped(name)
        self._bytes -= len(found.data) if found else 0
        self._bytes -= sum(len(entry.data) for entry in self._feedback.pop(name, ()))
        return found

    def put_feedback(self, entries: Sequence[FeedbackEntry]) -> list[str]:
        """Add feedback to stored runs. Later versions of a trace keep it; deleting the run deletes it.

        Returns:
            The ids of traces that are not stored, each once. Their entries are left out.
        """
        with self.lock:
            missing = self._add(entries)
            self._evict()
        return missing

    def _add(self, entries: Sequence[FeedbackEntry]) -> list[str]:
        missing: dict[str, None] = {}
        for entry in entries:
            if entry.trace in self._records:
                insort(self._feedback.setdefault(entry.trace, []), entry, key=lambda known: known.at)
                self._bytes += len(entry.data)
                self._log.was_labelled(entry.trace)
            else:
                missing[entry.trace] = None
        return list(missing)

    def _feedback_on(self, name: str) -> Sequence[FeedbackEntry]:
        return self._feedback.get(name, ())

    def _load(self, record: Record) -> ReasoningTrace:
        with self.lock:
            feedback = [entry.data for entry in self._feedback_on(record.id)]
        return with_feedback(load_trace(record.data), feedback)

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Do nothing: memory does not outlive the process."""

    def action(self, key: str) -> bytes | None:
        """Return the entry of an action in the ledger; None if there is none."""
        return self._actions.get(key)

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Replace the entry of an action in the ledger if it equals `only_if`; None stands for no entry. Return whether it did."""
        with self.lock:
            if self._actions.get(key) != only_if:
                return False
            self._actions[key] = data
            return True

    def state(self, name: str) -> str | None:
        """Return named state; None if there is none."""
        return self._state.get(name)

    def states(self, prefix: str) -> dict[str, str]:
        """Return all state whose name begins with `prefix`, by name."""
        with self.lock:
            return {name: self._state[name] for name in sorted(self._state) if name.startswith(prefix)}

    def update_state(self, name: str, change: Callable[[str | None], str], *, once: str | None = None) -> str | None:
        """Replace named state by what `change` makes of it; at most once per name and purpose. Return the state afterwards."""
        with self.lock:
            mark = None if once is None else mark_of(name, once)
            if mark not in self._state:
                self._state[name] = change(self._state.get(name))
                if mark is not None:
                    self._state[mark] = ""
            return self._state[name]

    def change_states(self, change: Callable[[ReadStates], Mapping[str, str | None]]) -> None:
        """Replace the states that `change` returns, by name; None deletes one."""
        with self.lock:
            for name, value in change(self.states).items():
                self._state.pop(name, None)
                if value is not None:
                    self._state[name] = value

    def recover(self) -> list[list[JournalEntry]]:
        """Return no journals: memory does not outlive the process."""
        return []

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """Return the trace with this id; None if there is none."""
        with self.lock:
            record = self._records.get(id)
        return None if record is None else self._load(record)

    def _matching(self, query: Query) -> list[Record]:
        with self.lock:
            found = [record for record in self._records.values() if query.matches(record, self._feedback_on(record.id))]
        found.reverse()
        found.sort(key=lambda record: record.created_at, reverse=True)
        end = None if query.limit is None else query.offset + query.limit
        return found[query.offset : end]

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Return the traces that meet all conditions, newest first; see `Query`."""
        return [self._load(record) for record in self._matching(Query(**conditions))]

    def count(self, **conditions: Any) -> int:
        """Return the number of traces that meet all conditions."""
        return len(self._matching(Query(**{**conditions, "limit": None, "offset": 0})))

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Yield the traces that meet all conditions, oldest first."""
        for record in reversed(self._matching(Query(**{"limit": None, **conditions}))):
            yield self._load(record)

    def delete(
        self,
        *,
        id: str | None = None,  # noqa: A002
        session: str | None = None,
        user: str | None = None,
        older_than: datetime | timedelta | str | None = None,
    ) -> Deleted:
        """Delete the runs that meet every condition, with the runs nested in them; see `Store.delete`."""
        selection = Selection(id=id, session=session, user=user, older_than=older_than)
        awaited = self._approvals.open_runs() if self._approvals is not None else {}
        if id is not None and id in awaited:
            raise StoreError(still_awaited(id, awaited[id]))
        with self.lock:
            found = [
                record.id
                for record in self._records.values()
                if selection.matches(record.id, record.created_at, record.attributes)
            ]
            kept = [run for run in found if run in awaited]
            waiting, runs = [*found], set() if id is None else {id}
            nested: dict[str, list[str]] = {}
            for record in self._records.values():
                for kind, _, value in record.attributes:
                    if kind == PARENT:
                        nested.setdefault(value, []).append(record.id)
            deleted, decisions = 0, set[str]()
            while waiting:
                run = waiting.pop()
                if run in awaited:
                    continue
                runs.add(run)
                dropped = self._drop(run)
                waiting += nested.pop(run, ())
                if dropped is not None:
                    deleted += 1
                    document = json.loads(dropped.data)
                    decisions.update(decisions_in(document))
                    waiting.extend(nested_in(document))
            emptied = [key for key in self._actions if belongs_to(key, decisions)]
            for key in emptied:
                self._actions[key] = without_contents(self._actions[key])
        approvals = self._approvals.forget_runs(runs) if self._approvals is not None else 0
        return Deleted(deleted, actions=len(emptied) + approvals, open=sorted(kept))

    def retain(self, days: float) -> int:
        """Delete runs that began more than `days` days ago, and contents of approvals that ended before. Return how many runs were deleted."""
        if self._approvals is not None:
            from grace_kp.approvals import forget

            forget(self._approvals, before=time.time() - days * 86_400, at=time.time())
        return self.delete(older_than=timedelta(days=days))

    def clear(self) -> int:
        """Delete all traces and return how many there were."""
        with self.lock:
            count = len(self._records)
            self._records.clear()
            self._feedback.clear()
            self._log.clear()
            self._bytes = 0
        return count

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def describe(self) -> dict[str, Any]:
        """Return kind, number of traces, bytes, and number of dropped traces."""
        with self.lock:
            return {"kind": "memory", "traces": len(self._records), "bytes": self._bytes, "evicted": self.evicted}


def open_url(url: str, *, create: bool = True, file_mode: int | None = None) -> MemoryStore | None:  # noqa: ARG001 — a file's
    """Return a new store with the bounds in a URL such as `memory:?max_traces=500`; None if the URL names no store in memory.

    Raises:
        StoreError: an unknown option, or one with an impossible value.
    """
    if url != "memory:" and not url.startswith("memory:?"):
        return None
    options = parse_qs(url.partition("?")[2], strict_parsing=False)
    unknown = set(options) - {"max_traces", "max_mb"}
    if unknown:
        raise StoreError(f"store {url!r}: unknown option {min(unknown)!r}; known are max_traces and max_mb")
    try:
        traces, megabytes = int(options.get("max_traces", [MAX_TRACES])[0]), float(options.get("max_mb", [MAX_MB])[0])
        if not (traces >= 1 and megabytes > 0):
            raise ValueError
    except ValueError:
        raise StoreError(
            f"store {url!r}: max_traces must be a whole number from 1, and max_mb a number above 0"
        ) from None
    return MemoryStore(traces, megabytes)
