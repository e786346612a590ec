"""The store of a command, and the trace that an id or its first characters name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._output import clean
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

StoreOption = Annotated[
    str | None, typer.Option("--store", help="memory: or sqlite:///path.db. Default: the setting `store`.")
]
CHOOSE = "--store or GRACE_KP_STORE names another"
LEAST = 3
"""Minimum of characters of an id."""
PAGE = 20
"""Traces per query in the search for the newest root run."""
CANDIDATES = 5
"""Ids in a message about several matches."""


def opened(url: str | None, *, must_exist: bool = False) -> Store:
    """Open the store of this URL, or of the settings.

    Raises:
        GraceError: the store must exist and does not.
    """
    from grace_kp.store import open_store

    return open_store(existing(url) if must_exist else _chosen(url)[0])


@contextmanager
def reading(url: str | None) -> Iterator[Store]:
    """Open the store of this URL, or of the settings, for reading; no file is created.

    Raises:
        GraceError: the store does not exist.
    """
    from grace_kp.store import open_store

    store = open_store(existing(url), create=False)
    try:
        yield store
    finally:
        store.close()


def existing(url: str | None) -> str | None:
    """Return the URL of a store that exists: this one, or that of the settings.

    Raises:
        GraceError: it does not exist.
    """
    from grace_kp.store import file_of

    wanted, source = _chosen(url)
    file = file_of(wanted)
    if file is not None and not file.exists():
        raise GraceError(f"there is no store at {file} ({source}); recording a run creates it, {CHOOSE}")
    return wanted


def reachable(url: str | None) -> str | None:
    """Return the URL of a store that exists and that other processes can reach: this one, or that of the settings.

    Raises:
        ValueError: it is kept in memory.
        GraceError: it does not exist.
    """
    wanted = existing(url)
    if wanted is not None and wanted.startswith("memory:"):
        raise ValueError("pages need a store that other processes can reach: --store sqlite:///path.db")
    return wanted


def _chosen(url: str | None) -> tuple[str | None, str]:
    """Return the URL of the store and its source."""
    from grace_kp.settings import Settings

    if url:
        return url, "from --store"
    settings = Settings.load()
    source = settings.source.get("store")
    return settings.store, "the default" if source is None else f"from {source}"


def described(url: str | None) -> str:
    """Describe the store and how to choose another."""
    from grace_kp.store import file_of

    wanted, source = _chosen(url)
    if wanted is not None and wanted.startswith("memory:"):
        return f"memory: ({source}), which is empty in every new process; {CHOOSE}"
    return f"{clean(str(file_of(wanted) or wanted))} ({source}); {CHOOSE}"


def find(store: Store, wanted: str) -> ReasoningTrace:
    """Return the trace whose id is or begins with `wanted`; `last` is the newest trace that is not nested.

    Raises:
        GraceError: no trace matches, or several do.
    """
    if wanted == "last":
        newest = next((trace for trace in _newest_first(store) if trace.parent_id is None), None)
        # All runs are nested: their outer runs were deleted or are still open.
        newest = newest or next(_newest_first(store), None)
        if newest is None:
            raise GraceError(f"the store is empty; {CHOOSE}")
        return newest
    found = store.get(wanted) or store.get(f"kp:trace:{wanted}")
    if found is not None:
        return found
    short = short_id(wanted)
    if len(short) < LEAST:
        raise GraceError(f"no trace {wanted!r}; give at least the first {LEAST} characters of an id")
    matching = _beginning_with(store, short)
    if not matching:
        raise GraceError(f"no trace {wanted!r}; `grace-kp traces list` shows ids, {CHOOSE}")
    if len(matching) > 1:
        shown = ", ".join(short_id(name) for name in matching[:CANDIDATES])
        more = f" and {len(matching) - CANDIDATES:,} more" if len(matching) > CANDIDATES else ""
        raise GraceError(f"{len(matching):,} trace ids begin with {wanted!r}: {shown}{more}; give more characters")
    found = store.get(matching[0])
    if found is None:
        raise GraceError(f"no trace {wanted!r}: it has just been deleted")
    return found


def _newest_first(store: Store) -> Iterator[ReasoningTrace]:
    offset = 0
    while page := store.query(limit=PAGE, offset=offset):
        yield from page
        offset += PAGE


def _beginning_with(store: Store, short: str) -> list[str]:
    ids = getattr(store, "ids", None)
    if callable(ids):
        return list(dict.fromkeys([*ids(f"kp:trace:{short}"), *ids(short)]))
    return [trace.id for trace in store.iterate() if short_id(trace.id).startswith(short)]


def short_id(name: str) -> str:
    """Return the id without the common prefix."""
    return name.removeprefix("kp:trace:")
