"""Changes of approvals as they happen, in any process, for `grace.approvals.watch()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._chain import entry_of
from grace_kp.background import to_thread
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from grace_kp.approvals._inbox import Inbox
    from grace_kp.approvals._tables import Link

SWEEP_SECONDS = 1.0
"""How often what is due is written while somebody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of the chain."""

    seq: int
    """Its number."""
    at: float
    """Seconds since the epoch."""
    kind: str
    """What happened, such as `requested`, `decided` or `settled`."""
    approval: str | None = None
    """Id of the approval; None for what concerns others, such as a standing approval."""
    actor: Actor | None = None
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, link: Link) -> Change:
        """Return an entry of the chain as a change."""
        entry = entry_of(link)
        actor = entry.get("actor")
        return cls(
            seq=link.seq,
            at=entry["at"],
            kind=entry["kind"],
            approval=link.approval,
            actor=None if actor is None else Actor.from_dict(actor),
            facts=entry.get("facts") or {},
        )


class Changes:
    """An endless iterator of changes, for `for` and `async for`.

    Args:
        inbox: the inbox.
        after: number of the change after which to begin.
    """

    def __init__(self, inbox: Inbox, after: int) -> None:
        self._inbox, self._seq = inbox, after

    def __iter__(self) -> Iterator[Change]:
        with self._inbox.watcher.waiting(None) as waiter, waiter.in_thread() as sleep:
            while True:
                for change in self._next():
                    self._seq = change.seq
                    yield change
                waiter.due = self._inbox.clock() + SWEEP_SECONDS
                sleep()

    async def __aiter__(self) -> AsyncIterator[Change]:
        with self._inbox.watcher.waiting(None) as waiter, waiter.on_loop() as sleep:
            while True:
                for change in await to_thread(self._next):
                    self._seq = change.seq
                    yield change
                waiter.due = self._inbox.clock() + SWEEP_SECONDS
                await sleep()

    def _next(self) -> list[Change]:
        """Return the changes since the last one. A store that is busy now is read again later."""
        try:
            self._inbox.desk.sweep()
            return [Change.of(link) for link in self._inbox.tables.links(after=self._seq)]
        except StoreError:
            self._inbox.tables.head()  # what cannot even be read is an error
            return []
