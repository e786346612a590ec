"""From a store's URL to the store."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from grace_kp.errors import StoreError
from grace_kp.settings import store_file

if TYPE_CHECKING:
    from pathlib import Path

    from grace_kp.store._store import Store

SCHEMES = {"memory": "_memory", "sqlite": "_reader"}
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
        return _checked(url)
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


def _checked(store: object) -> Store:
    missing = [name for name in ("put", "get", "query") if not callable(getattr(store, name, None))]
    if missing:
        raise StoreError(f"{type(store).__name__} is no store: it has no {', '.join(missing)}")
    return cast("Store", store)
