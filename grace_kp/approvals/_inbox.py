"""The inbox of a runtime: the desk of its store, and what gates need beside it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from grace_kp.approvals._desk import Desk
    from grace_kp.approvals._secret import Secret
    from grace_kp.approvals._tables import Tables
    from grace_kp.approvals._watcher import Watcher
    from grace_kp.approvals._webhooks import Webhook


class Notifier:
    """The deliveries to the receivers of a runtime. They work in the background; a gate only wakes them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._deliveries: dict[str, Delivery] = {}

    def add(self, receivers: Iterable[Webhook]) -> None:
        """Deliver what happens from now on to these receivers, too.

        Raises:
            StoreError: the store cannot keep what each has received.
        """
        for receiver in receivers:
            with self._lock:
                if receiver.id not in self._deliveries:
                    self._deliveries[receiver.id] = Delivery(self._tables, receiver)

    def wake(self) -> None:
        """Have what is new delivered soon."""
        for delivery in list(self._deliveries.values()):
            delivery.wake()

    def flush(self, seconds: float) -> bool:
        """Wait until everything was delivered; False after `seconds`."""
        flushed = [delivery.flush(seconds) for delivery in list(self._deliveries.values())]
        return all(flushed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """Where the gates of a runtime file their requests."""

    desk: Desk
    tables: Tables
    watcher: Watcher
    domain: str
    """The domain of the runtime, which keys begin with."""
    secret: Secret | None = None
    """Seals parameters and turns digests into HMACs; None without a key."""
    notifier: Notifier
    """Tells receivers what happens."""
    clock: Callable[[], float] = time.time
    """The wall clock, in seconds since the epoch."""

    @property
    def process(self) -> Actor:
        """This process, as the author of claims and withdrawals."""
        return Actor.here("gate", channel="gate")
