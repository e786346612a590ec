"""The protocol of stores, and the store that a URL names."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from grace_kp.errors import StoreError
from grace_kp.settings import store_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from grace_kp.store._deletion import Deleted
    from grace_kp.store._record import JournalEntry, Record
    from grace_kp.trace import ReasoningTrace


@runtime_checkable
class Store(Protocol):
    """Keeps finished traces. Several threads may use it at the same time.

    `Grace.feedback` also needs `put_feedback(entries)`, which adds each `FeedbackEntry` to its trace and returns the ids of traces that are
    not stored. `get`, `query` and `iterate` return the entries under `grace.feedback`, and those with an `action` under
    `grace.action_feedback`, oldest first, for every later version of the trace.
    """

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Store traces, replacing those with the same id, and delete the journals of the runs in `ended`.

        A record that comes too late is left out: a completion (`Record.completes`) of a run that was deleted or completed meanwhile, and
        the trace of an interrupted run (`recover`) whose process lived and stored the run itself.
        """

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Store rows of the journal of runs that are still open."""

    def recover(self) -> list[list[JournalEntry]]:
        """Return the journals of runs whose process died. Each journal is returned to one caller only."""

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """Return the trace with this id; None if there is none."""

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Return the traces that meet all conditions, newest first; see `Query`."""

    def count(self, **conditions: Any) -> int:
        """Return the number of traces that meet all conditions."""

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Yield the traces that meet all conditions, oldest first."""

    def delete(
        self,
        *,
        id: str | None = None,  # noqa: A002
        session: str | None = None,
        user: str | None = None,
        older_than: datetime | timedelta | str | None = None,
    ) -> Deleted:
        """Delete the runs that meet every condition, with the runs nested in them, everywhere in the store.

        Args:
            id: one run.
            session: all runs of a session.
            user: all runs of a user.
            older_than: runs that began before: "30d", a timedelta, a datetime or ISO text.

        Returns:
            The number of runs; its attributes hold the rest of the report.

        Raises:
            ValueError: no condition is given, or one cannot be used.
            StoreError: the run named by `id` is still open.
        """

    def clear(self) -> int:
        """Delete all traces and return how many there were."""

    def close(self) -> None:
        """Release files and connections."""

    def describe(self) -> dict[str, Any]:
        """Return the kind of store, its place, and the number of traces."""


SCHEMES = {"memory": "_memory", "sqlite": "_sqlite"}
"""The module of each URL scheme. Its `open_url(url, *, create, file_mode)` returns the store, or None where the URL names none."""


def open_store(url: str | Store | None = None, *, create: bool = True, file_mode: int | None = None) -> Store:
    """Return the store that a URL names, a store itself, or for None the SQLite file in the user's data folder.

    `memory:` takes `max_traces` and `max_mb` (`memory:?max_traces=500`); `sqlite:///relative.db`, `sqlite:////absolute.db` and
    `sqlite:///~/in-home.db` name a file. With `create=False` the file must exist and can only be read; nothing is created.

    Args:
        url: the URL, or a store.
        create: whether the file may be created and written.
        file_mode: permissions of a new file, and the most that an existing one keeps; the setting `file_mode` when None.

    Raises:
        StoreError: the URL is unknown, or the store cannot be opened.
    """
    if url is not None and not isinstance(url, str):
        missing = [name for name in ("put", "get", "query") if not callable(getattr(url, name, None))]
        if missing:
            raise StoreError(f"{type(url).__name__} is not a store: it has no {', '.join(missing)}")
        return url
    file = file_of(url)
    scheme = "sqlite" if url is None else url.partition(":")[0]
    module = importlib.import_module(f"{__package__}.{SCHEMES[scheme]}")
    return cast("Store", module.open_url(url or f"sqlite:///{file}", create=create, file_mode=file_mode))


def file_of(url: str | None) -> Path | None:
    """Return the file that a URL names, or for None the one in the user's data folder; None if the URL names no file.

    Raises:
        StoreError: the form of the URL is unknown, or it names no file.
    """
    if url is None:
        from platformdirs import user_data_path

        return user_data_path("grace_kp", appauthor=False) / "traces.db"
    try:
        return store_file(url)
    except ValueError as error:
        raise StoreError(str(error)) from None
