"""How a writer treats a store that cannot write: it reports the failure once, and tries again after pauses that grow."""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING

from grace_kp.errors import StoreError
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RETRY_SECONDS = (0.1, 5.0)
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_log = logging.getLogger("grace_kp.store")


class Outage:
    """Whether the store fails, since when, and when to try again."""

    def __init__(self) -> None:
        self.errors = 0
        self.last_error: str | None = None
        self.is_on = False
        """Whether the last attempt failed."""
        self.is_busy = False
        """Whether it failed because somebody else keeps the store locked."""
        self.rescue: Callable[..., Path] | None = None
        """Keeps records beside a store that could not be opened."""
        self._retry_at, self._pause = 0.0, RETRY_SECONDS[0]

    @property
    def is_pausing(self) -> bool:
        """Whether the store is to be left alone for now."""
        return self.is_on and time.monotonic() < self._retry_at

    def begin(self, error: BaseException) -> None:
        """Note a failure, and report one that is not known yet."""
        self.errors += 1
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, RETRY_SECONDS[1])
        self.rescue = getattr(error, "rescue", self.rescue)
        self.is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
        what = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        message = redact_text(f"the store cannot write: {what}", identifiers=False)
        if message != self.last_error or not self.is_on:
            self.report(message)
        self.is_on = True

    def end(self) -> None:
        """Note that the store writes."""
        if self.is_on:
            self.is_on, self._pause = False, RETRY_SECONDS[0]
            _log.warning("the store writes again")

    def report(self, message: str) -> None:
        """Keep a message as the last error, and log it."""
        self.last_error = message
        _log.warning(message)
