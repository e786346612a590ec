"""A model that is loaded on first use and kept: once per process, however many threads use it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
RETRY_SECONDS = 60.0


class LoadedOnce(Generic[T]):
    """Keeps what `load` returns. A failed load is repeated after a minute at the earliest; until then its error is raised again.

    A forked child loads its own: the threads of a model do not survive a fork.
    """

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._model: T | None = None
        self._failure: tuple[float, GraceError] | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether this process has loaded the model."""
        return self._model is not None and self._pid == os.getpid()

    def get(self) -> T:
        """Return the model; the first call loads it.

        Raises:
            GraceError: it cannot be loaded.
        """
        if self._pid != os.getpid():
            self._lock, self._pid, self._model = threading.Lock(), os.getpid(), None
        model = self._model
        if model is not None:
            return model
        with self._lock:
            if self._model is None:
                if self._failure is not None and time.monotonic() - self._failure[0] < RETRY_SECONDS:
                    raise self._failure[1]
                try:
                    self._model = self._load()
                except GraceError as error:
                    self._failure = (time.monotonic(), error)
                    raise
            return self._model
