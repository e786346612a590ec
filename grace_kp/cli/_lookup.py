"""Shared options, the store of a command, and the search for a trace or approval by its id or the first characters of it."""

from __future__ import annotations

import getpass
import itertools
import os
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from grace_kp.cli._output import clean, say_error
from grace_kp.errors import GraceError, UnknownApproval
from grace_kp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from grace_kp.approvals import Actor, RequestStore, Secret, Tables
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace


StoreOption = Annotated[
    str | None, typer.Option("--store", help="memory: or sqlite:///path.db. Default: the setting `store`.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")]


def parameters_of(options: type, names: Iterable[str], required: Container[str] = ()) -> list[Parameter]:
    """Return fields of a dataclass as parameters of a command."""
    hints = get_type_hints(options, include_extras=True)
    unset = {item.name: Parameter.empty if item.name in required else item.default for item in fields(options)}
    return [Parameter(name, Parameter.KEYWORD_ONLY, default=unset[name], annotation=hints[name]) for name in names]


CHOOSE = "--store or GRACE_KP_STORE names another"
PREFIX = "ap-"
"""Prefix of the ids of approvals."""
LEAST = 3
"""Minimum length of an abbreviated id."""
PAGE = 100
"""Traces per query."""
CANDIDATES = 5
"""Maximum of ids in a message about several matches."""


def open_chosen_store(url: str | None, *, must_exist: bool = False) -> Store:
    """Open the store of this URL, or of the settings."""
    from grace_kp.store import open_store

    return open_store(require_store(url) if must_exist else _chosen(url)[0])


@contextmanager
def open_for_reading(url: str | None) -> Iterator[Store]:
    """Open the store of this URL, or of the settings, without creating a file."""
    from grace_kp.store import open_store

    with closing(open_store(require_store(url), create=False)) as store:
        yield store


def require_store(url: str | None) -> str | None:
    """Return the URL of a store that exists: this one, or that of the settings."""
    from grace_kp.store import file_of

    wanted, source = _chosen(url)
    file = file_of(wanted)
    if file is not None and not file.exists():
        raise GraceError(f"no store exists at {file} ({source}); recording a run creates it, {CHOOSE}")
    return wanted


def require_reachable_store(url: str | None) -> str | None:
    """Return the URL of a store that exists and that other processes can reach: this one, or that of the settings."""
    wanted = require_store(url)
    if wanted is not None and wanted.startswith("memory:"):
        raise ValueError("pages need a store that other processes can reach: --store sqlite:///path.db")
    return wanted


def _chosen(url: str | None) -> tuple[str | None, str]:
    if url:
        return url, "from --store"
    settings = Settings.load()
    source = settings.source.get("store")
    return settings.store, "the default" if source is None else f"from {source}"


def describe_store(url: str | None) -> str:
    from grace_kp.store import file_of

    wanted, source = _chosen(url)
    if wanted is not None and wanted.startswith("memory:"):
        return f"memory: ({source}), which is empty in every new process; {CHOOSE}"
    return f"{clean(str(file_of(wanted) or wanted))} ({source}); {CHOOSE}"


def find(store: Store, wanted: str) -> ReasoningTrace:
    """Return the trace whose id is or begins with `wanted`, or for `last` the newest trace that is not nested."""
    if wanted == "last":
        newest = next((trace for trace in newest_first(store) if trace.parent_id is None), None)
        # All runs may be nested if their outer runs were deleted or are still open.
        newest = newest or next(newest_first(store), None)
        if newest is None:
            raise GraceError(f"the store is empty; {CHOOSE}")
        return newest
    found = store.get(wanted) or store.get(f"kp:trace:{wanted}")
    if found is not None:
        return found
    name = _only_match("trace", wanted, short_id(wanted), lambda short: _beginning_with(store, short), GraceError)
    found = store.get(name)
    if found is None:
        raise GraceError(f"no trace {wanted!r}: it has just been deleted")
    return found


def _only_match(kind: str, wanted: str, short: str, search: Callable[[str], list[str]], error: type[GraceError]) -> str:
    if len(short) < LEAST:
        raise error(f"no {kind} {wanted!r:.80}; give at least the first {LEAST} characters of an id")
    matching = search(short)
    if not matching:
        raise error(f"no {kind} {wanted!r:.80}; `grace-kp {kind}s list` shows ids, {CHOOSE}")
    if len(matching) > 1:
        names = ", ".join(short_id(name).removeprefix(PREFIX) for name in matching[:CANDIDATES])
        more = " and more" if len(matching) > CANDIDATES else ""
        raise error(f"several {kind} ids begin with {wanted!r:.80}: {names}{more}; give more characters")
    return matching[0]


def newest_first(store: Store, **conditions: Any) -> Iterator[ReasoningTrace]:
    """Yield the traces that meet the conditions, the newest first."""
    seen: set[str] = set()
    for offset in itertools.count(0, PAGE):
        page = store.query(limit=PAGE, offset=offset, **conditions)
        for trace in page:
            if trace.id not in seen:  # runs that are stored meanwhile shift the pages
                seen.add(trace.id)
                yield trace
        if len(page) < PAGE:
            return


def _beginning_with(store: Store, short: str) -> list[str]:
    ids = getattr(store, "ids", None)
    if callable(ids):
        return list(dict.fromkeys([*ids(f"kp:trace:{short}"), *ids(short)]))
    return [trace.id for trace in store.iterate() if short_id(trace.id).startswith(short)]


def short_id(name: str) -> str:
    return name.removeprefix("kp:trace:")


ByOption = Annotated[
    str | None,
    typer.Option("--by", help="Who acts; recorded as stated. Default: the name of the operating-system user."),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help=f"An id, or at least its first {LEAST} characters.")]
NOTIFY_SECONDS = 3.0
"""Maximum time that a command waits for the delivery of its notifications."""


@dataclass(frozen=True, slots=True)
class CommandInbox:
    """The approvals of a store: verbs, tables, and the key that seals arguments."""

    store: Store
    tables: Tables
    verbs: RequestStore
    secret: Secret | None

    def find(self, wanted: str) -> str:
        """Return the id that is or begins with `wanted`."""
        if self.tables.row(wanted) is not None:
            return wanted
        return _only_match(
            "approval",
            wanted,
            wanted.removeprefix(PREFIX),
            lambda short: self.tables.ids(PREFIX + short, limit=CANDIDATES + 1),
            UnknownApproval,
        )


@contextmanager
def open_inbox(url: str | None) -> Iterator[CommandInbox]:
    from grace_kp.approvals import RequestStore, Secret

    with closing(open_chosen_store(url, must_exist=True)) as store:
        tables = getattr(store, "approvals", None)
        if tables is None:
            raise GraceError(f"this store keeps no approvals; use a SQLite store, {CHOOSE}")
        secret = Secret.load()
        yield CommandInbox(store, tables, RequestStore(tables, groups=Settings.load().reviewers, secret=secret), secret)


@contextmanager
def change_inbox(url: str | None) -> Iterator[CommandInbox]:
    """Open the inbox for a change, and notify the receiver of the settings at the end.

    A failed delivery is reported on standard error. It affects neither the change nor the exit code.
    """
    from grace_kp.approvals import Delivery, webhooks_of

    with open_inbox(url) as inbox:
        before, _ = inbox.tables.head()
        try:
            yield inbox
        finally:
            if inbox.tables.head()[0] != before:
                try:
                    settings = Settings.load()
                    for receiver in webhooks_of(settings.webhook_url, settings.approval_link, os.environ):
                        # It reports failed deliveries.
                        Delivery(inbox.tables, receiver, after=before).close(NOTIFY_SECONDS)
                except GraceError as error:
                    say_error(f"the change was stored, but no notification was sent: {error}")


def actor(by: str | None) -> Actor:
    """Return the person at the command line under this name, by default that of the user."""
    from grace_kp.approvals import Actor

    try:
        return Actor.here(getpass.getuser() if by is None else by, channel="cli")
    except (OSError, KeyError):  # no entry for the user id, as in some containers
        raise ValueError("the operating system has no name for this user; state one with --by") from None
