"""Which store a command works on, and which trace in it an id or the beginning of one names."""

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
"""Characters of an id that are enough to look for it."""
PAGE = 20
"""Traces that are read at a time to find the newest root run."""
CANDIDATES = 5
"""Ids that a message about several lists."""


def opened(url: str | None, *, must_exist: bool = False) -> Store:
    """The store named, or the one that the settings name.

    Raises:
        GraceError: there is no such store yet, and there must be one.
    """
    from grace_kp.store import open_store

    return open_store(_existing(url) if must_exist else _chosen(url)[0])


@contextmanager
def reading(url: str | None) -> Iterator[Store]:
    """The store named, or the one that the settings name, for reading: nothing is created, and nothing left beside it.

    Raises:
        GraceError: there is no such store yet.
    """
    from grace_kp.store import open_store

    store = open_store(_existing(url), create=False)
    try:
        yield store
    finally:
        store.close()


def _existing(url: str | None) -> str | None:
    from grace_kp.store import file_of

    wanted, source = _chosen(url)
    file = file_of(wanted)
    if file is not None and not file.exists():
        raise GraceError(f"there is no store at {file} ({source}); recording a run creates it, {CHOOSE}")
    return wanted


def _chosen(url: str | None) -> tuple[str | None, str]:
    """A store's URL, and where it comes from."""
    from grace_kp.settings import Settings

    if url:
        return url, "from --store"
    settings = Settings.load()
    source = settings.source.get("store")
    return settings.store, "the default" if source is None else f"from {source}"


def described(url: str | None) -> str:
    """The store that is looked at, in words, and how to choose another."""
    from grace_kp.store import file_of

    wanted, source = _chosen(url)
    if wanted is not None and wanted.startswith("memory:"):
        return f"memory: ({source}), which is empty in every new process; {CHOOSE}"
    return f"{clean(str(file_of(wanted) or wanted))} ({source}); {CHOOSE}"


def find(store: Store, wanted: str) -> ReasoningTrace:
    """The trace of an id or the beginning of one; `last` is the newest that is not nested in another run.

    Raises:
        GraceError: there is none, or there are several.
    """
    if wanted == "last":
        newest = next((trace for trace in _newest_first(store) if trace.parent_id is None), None)
        # Only nested runs: the runs around them were deleted, or are still open.
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
    """The id without what all ids begin with."""
    return name.removeprefix("kp:trace:")
