"""From a store's URL to the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs

from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from grace_kp.store._store import Store

KNOWN = "memory: or sqlite:///path.db"


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
    if file is not None:
        from grace_kp.store._reader import SqliteReader
        from grace_kp.store._sqlite import SqliteStore
        from grace_kp.trace import default_mode

        kind = SqliteStore if create else SqliteReader
        return kind(file, file_mode=default_mode() if file_mode is None else file_mode)
    name = str(url)
    if name == "memory:" or name.startswith("memory:?"):
        return _memory(name)
    if name.startswith(("postgresql:", "postgres:")):
        raise StoreError("this version has no PostgreSQL store; use sqlite:///path.db")
    raise StoreError(f"unknown store {name!r}; known are {KNOWN}")


def file_of(url: str | None) -> Path | None:
    """Return the file that a URL names, or for None the one in the user's data folder; None if the URL names no file.

    Raises:
        StoreError: an SQLite URL without a file.
    """
    if url is None:
        from platformdirs import user_data_path

        return user_data_path("grace_kp", appauthor=False) / "traces.db"
    if not url.startswith("sqlite:///"):
        return None
    path = url.removeprefix("sqlite:///")
    if path in {"", ":memory:"}:
        raise StoreError(f"store {url!r} names no file; use memory: for a store in memory")
    return Path(path).expanduser()


def _checked(store: object) -> Store:
    missing = [name for name in ("put", "get", "query") if not callable(getattr(store, name, None))]
    if missing:
        raise StoreError(f"{type(store).__name__} is no store: it has no {', '.join(missing)}")
    return cast("Store", store)


def _memory(url: str) -> Store:
    from grace_kp.store._memory import MAX_MB, MAX_TRACES, MemoryStore

    options = parse_qs(url.partition("?")[2], strict_parsing=False)
    unknown = set(options) - {"max_traces", "max_mb"}
    if unknown:
        raise StoreError(f"store {url!r}: unknown option {min(unknown)!r}; known are max_traces and max_mb")
    try:
        traces, megabytes = int(options.get("max_traces", [MAX_TRACES])[0]), float(options.get("max_mb", [MAX_MB])[0])
        if not (traces >= 1 and megabytes > 0):
            raise ValueError
    except ValueError:
        raise StoreError(f"store {url!r}: max_traces is a number from 1, max_mb one above 0") from None
    return MemoryStore(traces, megabytes)
