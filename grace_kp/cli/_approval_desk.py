"""The desk of a command: the approvals of a store, the person at the command line, and the approval that an id or its beginning names."""

from __future__ import annotations

import getpass
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._approval_words import PREFIX
from grace_kp.cli._lookup import CHOOSE, LEAST, opened
from grace_kp.cli._output import say_error
from grace_kp.errors import GraceError, UnknownApproval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.approvals import Actor, RequestStore, Secret, Tables
    from grace_kp.store import Store

ByOption = Annotated[
    str | None,
    typer.Option("--by", help="Who decides; recorded as stated. Default: the name of the operating-system user."),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help=f"An id, or at least its first {LEAST} characters.")]
NOTIFY_SECONDS = 3.0
"""How long a command waits until what it has changed is delivered."""
CANDIDATES = 5
"""Ids in a message about several matches."""


@dataclass(frozen=True, slots=True)
class Office:
    """A desk with the tables that it writes and the key that it seals with."""

    store: Store
    tables: Tables
    desk: RequestStore
    secret: Secret | None

    def find(self, wanted: str) -> str:
        """Return the id that is or begins with `wanted`.

        Raises:
            UnknownApproval: no approval matches, or several do.
        """
        if self.tables.row(wanted) is not None:
            return wanted
        short = wanted.removeprefix(PREFIX)
        if len(short) < LEAST:
            raise UnknownApproval(f"no approval {wanted!r:.80}; give at least the first {LEAST} characters of an id")
        matching = self.tables.ids(PREFIX + short, limit=CANDIDATES + 1)
        if not matching:
            raise UnknownApproval(f"no approval {wanted!r:.80}; `grace-kp approvals list` shows ids, {CHOOSE}")
        if len(matching) > 1:
            shown = ", ".join(name.removeprefix(PREFIX) for name in matching[:CANDIDATES])
            more = " and more" if len(matching) > CANDIDATES else ""
            raise UnknownApproval(
                f"several approval ids begin with {wanted!r:.80}: {shown}{more}; give more characters"
            )
        return matching[0]


@contextmanager
def office(url: str | None) -> Iterator[Office]:
    """Open the approvals of the store of this URL, or of the settings.

    Raises:
        GraceError: the store does not exist, or keeps no approvals.
    """
    from grace_kp.approvals import RequestStore, Secret
    from grace_kp.settings import Settings

    store = opened(url, must_exist=True)
    try:
        tables = getattr(store, "approvals", None)
        if tables is None:
            raise GraceError(f"this store keeps no approvals; use a SQLite store, {CHOOSE}")
        secret = Secret.load()
        yield Office(store, tables, RequestStore(tables, groups=Settings.load().reviewers, secret=secret), secret)
    finally:
        store.close()


@contextmanager
def deciding(url: str | None) -> Iterator[Office]:
    """`office` for a command that changes something: the receiver that the settings name is notified at the end, as far as it answers soon.

    What cannot be delivered is stated on standard error, and changes neither what was decided nor the exit code.
    """
    with office(url) as place:
        before, _ = place.tables.head()
        try:
            yield place
        finally:
            if place.tables.head()[0] != before:
                _notify(place.tables, before)


def _notify(tables: Tables, after: int) -> None:
    from grace_kp.approvals import Delivery, webhooks_of
    from grace_kp.settings import Settings

    try:
        settings = Settings.load()
        for receiver in webhooks_of(settings.webhook_url, settings.approval_link, os.environ):
            Delivery(tables, receiver, after=after).close(NOTIFY_SECONDS)  # reports what it could not deliver
    except GraceError as error:
        say_error(f"what was changed stands; nobody is notified: {error}")


def actor(by: str | None) -> Actor:
    """Return the person at the command line, under the name that they state.

    Raises:
        ValueError: the name cannot be used, or there is none.
    """
    from grace_kp.approvals import Actor

    return Actor.here(_os_user() if by is None else by, channel="cli")


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry for the user id, as in some containers
        raise ValueError("the operating system has no name for this user; state one with --by") from None
