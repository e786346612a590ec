"""Delivery of notifications in the background, from the chain: each receiver has a cursor in the store, the number of the last entry it got.

A gate only wakes the delivery. What could not be delivered stays in the chain, and the next process that uses the store delivers it. A receiver
gets each message at least once, in the order of the chain, and with the same `webhook-id` each time. Of the processes that share a store, the one
that holds the lease of a cursor delivers.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import each_link, entry_of
from grace_kp.approvals._posting import Gone, Refused, Unreached, post
from grace_kp.approvals._record import record_of, stored_arguments
from grace_kp.background import Resident, Worker, report_loss, watch
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenacity import RetryCallState

    from grace_kp.approvals._tables import Link, Tables
    from grace_kp.approvals._webhooks import Webhook

DOCUMENT = "webhook"
"""Kind of the documents that hold cursors."""
POST_SECONDS = 10.0
"""Time for one attempt."""
GIVE_UP_SECONDS = 86_400.0
"""Age of an entry after which its message is lost."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
POLL_SECONDS = 2.0
"""How often entries of other processes are looked for."""
EXIT_SECONDS = 2.0
LEASE_SECONDS = 30.0
AT_MOST_COUNTED = 10_000
PAGE = 200
"""Entries after which the cursor is saved even if none of them is for the receiver."""
_log = logging.getLogger("grace_kp.approvals")


class _Elsewhere(Exception):
    """Another process delivers to this receiver."""


class _Closing(Exception):
    """The delivery is being closed."""


class Delivery(Resident):
    """Delivers to one receiver what happens from now on, and what an earlier process left.

    Args:
        tables: the tables of the store.
        webhook: the receiver.
        after: number of the entry after which a receiver that the store does not know yet is notified; the newest when None.
        clock: the wall clock, in seconds since the epoch.

    Raises:
        StoreError: the tables cannot be written.
    """

    def __init__(
        self,
        tables: Tables,
        webhook: Webhook,
        *,
        after: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tables, self._webhook, self._clock = tables, webhook, clock
        self._closed = False
        self.after_fork()
        self._begin = tables.head()[0] if after is None else after
        if tables.document(DOCUMENT, webhook.id) is None:
            self._save({})  # what happens before the first delivery must not be lost with this process
        self._worker = Worker(self._work, name="webhook", may_wait=False)
        watch(self)

    def after_fork(self) -> None:
        """Begin anew in the child, as a process of its own."""
        self._changed = threading.Condition()
        self._begin = 0  # of tables that begin anew in the child; others have a cursor
        self._owner = secrets.token_hex(8)
        self._seq = -1
        self._is_elsewhere = self._is_gone = False
        self._warned = ""

    def wake(self) -> None:
        """Have what is new delivered soon. This never waits and never fails."""
        if not self._closed and not self._is_gone:
            self._worker.wake()

    def flush(self, seconds: float) -> bool:
        """Wait until everything was delivered, or is another process's; False after `seconds`."""
        target = self._tables.head()[0]
        self.wake()
        with self._changed:
            return self._changed.wait_for(lambda: self._seq >= target or self._is_elsewhere or self._is_gone, seconds)

    def close(self, seconds: float) -> bool:
        """Flush, and deliver nothing more; what is left is reported."""
        if self._closed:
            return True
        flushed = self.flush(seconds)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._worker.stop(0.1)
        if not flushed:
            self._report_left()
        with suppress(_Elsewhere):
            self._save({})  # gives the lease back
        return flushed

    def at_exit(self) -> None:
        """Deliver what is left for as long as there is time."""
        self.close(EXIT_SECONDS)

    def status(self) -> dict[str, Any]:
        """Return what the store knows of this receiver: numbers of messages delivered, lost and waiting, and the last problem."""
        cursor = self._cursor()
        return {
            "receiver": self._webhook.receiver,
            "delivered": cursor["delivered"],
            "lost": cursor["lost"],
            "waiting": self._left(cursor["seq"]),
            "problem": cursor["problem"],
        }

    def _work(self) -> float | None:
        try:
            return self._advance()
        except _Elsewhere:
            self._note(is_elsewhere=True)
            return POLL_SECONDS
        except _Closing:
            return None
        except Exception as error:  # noqa: BLE001 — a store or receiver that fails is reported, and never reaches a gate
            self._warn(redacted_error(error))
            return POLL_SECONDS

    def _advance(self) -> float | None:
        if self._closed or self._is_gone:
            return None
        cursor = self._cursor()
        if cursor["seq"] >= self._tables.head()[0]:
            self._note(seq=cursor["seq"])
            return POLL_SECONDS
        seq = self._save({})["seq"]  # takes the lease
        for link in islice(each_link(self._tables, after=seq), PAGE):
            if self._closed:
                raise _Closing
            seq = link.seq
            entry = entry_of(link)
            if entry["kind"] in self._webhook.events:
                self._handle(link, entry)
                self._note(seq=seq)
        self._save({"seq": seq})
        self._note(seq=seq)
        return 0.0

    def _handle(self, link: Link, entry: dict[str, Any]) -> None:
        try:
            self._deliver(link, entry)
        except (Unreached, Refused) as error:
            self._lose(link, str(error))
        except Gone as error:
            with self._changed:
                self._is_gone = True
                self._changed.notify_all()
            report_loss(
                f"{self._webhook.receiver} wants no more notifications ({error}); none are sent until the next start"
            )
            raise _Closing from None
        else:
            self._warned = ""
            self._save({"seq": link.seq, "delivered": 1, "problem": ""})

    def _deliver(self, link: Link, entry: dict[str, Any]) -> None:
        from tenacity import Retrying, retry_if_exception_type, wait_exponential, wait_random

        row = None if link.approval is None else self._tables.row(link.approval)
        arguments = None
        if row is not None and self._webhook.with_arguments:
            arguments = stored_arguments(self._tables, record_of(row))
        message_id, body = self._webhook.message(self._tables.identity, link, entry, row, arguments)
        grows = wait_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE) + wait_random(0, FIRST_PAUSE)

        def wait(state: RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome is not None else None
            return min(GIVE_UP_SECONDS, max(grows(state), getattr(failure, "wait_seconds", None) or 0.0))

        def is_too_late(state: RetryCallState) -> bool:
            ends: float = entry["at"] + GIVE_UP_SECONDS
            return self._clock() + state.upcoming_sleep > ends

        def attempt() -> None:
            headers = self._webhook.signed(message_id, int(self._clock()), body)
            post(self._webhook.url, headers, body, POST_SECONDS)

        attempts = Retrying(
            wait=wait,
            stop=is_too_late,
            retry=retry_if_exception_type(Unreached),
            before_sleep=self._before_pause,
            sleep=self._pause,
            reraise=True,
        )
        attempts(attempt)

    def _before_pause(self, state: RetryCallState) -> None:
        failure = state.outcome.exception() if state.outcome is not None else None
        self._warn(str(failure))
        self._save({"problem": str(failure)})

    def _pause(self, seconds: float) -> None:
        """Wait between two attempts, and keep the lease meanwhile."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, min(left, LEASE_SECONDS / 3))
            if self._closed:
                raise _Closing
            self._save({})

    def _lose(self, link: Link, problem: str) -> None:
        lost = self._save({"seq": link.seq, "lost": 1, "problem": problem})["lost"]
        report_loss(
            f"the notification of entry {link.seq} was not delivered to {self._webhook.receiver}: {problem}; {lost} lost so far"
        )

    def _cursor(self) -> dict[str, Any]:
        data = self._tables.document(DOCUMENT, self._webhook.id)
        return self._new_cursor() if data is None else json.loads(data)

    def _new_cursor(self) -> dict[str, Any]:
        return {
            "receiver": self._webhook.receiver,
            "seq": self._begin,
            "delivered": 0,
            "lost": 0,
            "problem": "",
            "by": "",
            "until": 0.0,
        }

    def _save(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change the cursor, and take or renew its lease, or give it back once closed; `delivered` and `lost` are added.

        Raises:
            _Elsewhere: another process holds the lease, or has held it since this delivery was closed.
        """
        with self._tables.transaction() as writes:
            data = writes.document(DOCUMENT, self._webhook.id)
            cursor = self._new_cursor() if data is None else json.loads(data)
            now = self._clock()
            # A clock that was set back does not make a lease longer.
            is_leased = now < cursor["until"] <= now + LEASE_SECONDS
            if cursor["by"] not in {"", self._owner} and (is_leased or self._closed):
                raise _Elsewhere  # a late result after closing must not overwrite the cursor of the process that took over
            added = {name: cursor[name] + changes.get(name, 0) for name in ("delivered", "lost")}
            until = 0.0 if self._closed else now + LEASE_SECONDS  # an attempt may end after the delivery was closed
            cursor = {**cursor, "by": self._owner, "until": until, **changes, **added}
            writes.put_document(DOCUMENT, self._webhook.id, json.dumps(cursor).encode())
        return cursor

    def _note(self, *, seq: int | None = None, is_elsewhere: bool = False) -> None:
        with self._changed:
            self._seq = self._seq if seq is None else seq
            self._is_elsewhere = is_elsewhere
            self._changed.notify_all()

    def _warn(self, problem: str) -> None:
        if problem != self._warned:
            self._warned = problem
            _log.warning("notifications to %s wait: %s", self._webhook.receiver, problem)

    def _left(self, seq: int) -> int:
        links = islice(each_link(self._tables, after=seq), AT_MOST_COUNTED)
        return sum(entry_of(link)["kind"] in self._webhook.events for link in links)

    def _report_left(self) -> None:
        left = self._left(self._cursor()["seq"])
        if left:
            later = "; the next process that uses the store sends them" if self._tables.lasting else ""
            report_loss(f"{left} notifications were not delivered to {self._webhook.receiver} before the end{later}")
