"""The inbox of a runtime, opened when the first request or verb needs it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, watch
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals import Inbox, Webhook


class LazyInbox(Resident):
    """The one inbox of a runtime."""

    def __init__(
        self,
        store: Callable[[], object],
        *,
        domain: str,
        groups: Mapping[str, Sequence[str]],
        receivers: Callable[[], Sequence[Webhook]],
    ) -> None:
        """Open nothing yet.

        Args:
            store: returns the store of the runtime.
            domain: its domain, which keys begin with.
            groups: the groups of each person who decides, by name.
            receivers: returns the receivers of notifications.
        """
        self._store, self._domain, self._groups, self._receivers = store, domain, groups, receivers
        self._lock = threading.Lock()
        self._opened: tuple[Any, Inbox] | None = None
        watch(self)

    def fork_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Replace the lock in the child."""
        self._lock = threading.Lock()

    def get(self) -> Inbox:
        """Return the inbox.

        Raises:
            StoreError: the store cannot be opened, or keeps no approvals.
            SettingsError: the key that seals parameters cannot be used.
        """
        store = self._store()
        opened = self._opened
        if opened is None or opened[0] is not store:
            opening = self._opening(store)
            with self._lock:
                if self._opened is None or self._opened[0] is not store:
                    self._opened = store, opening()
                opened = self._opened
        return opened[1]

    def _opening(self, store: object) -> Callable[[], Inbox]:
        """Return what opens the inbox. The rest is done here, without the lock, which a fork waits for: a keyring starts processes."""
        from grace_kp.approvals import Inbox, Notifier, RequestStore, Secret, Watcher

        tables: Any = getattr(store, "approvals", None)
        if tables is None:
            raise StoreError(
                f"the store {type(store).__name__} keeps no approvals, so an InboxReviewer cannot be used with it; use memory: or sqlite:///path.db"
            )
        secret, receivers = Secret.load(), self._receivers()

        def opened() -> Inbox:
            notifier = Notifier(tables)
            notifier.add(receivers)
            requests = RequestStore(tables, groups=self._groups, secret=secret, on_event=lambda *_: notifier.wake())
            return Inbox(requests=requests, watcher=Watcher(tables), notifier=notifier, domain=self._domain)

        return opened
