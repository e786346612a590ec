"""`grace-kp serve users`: the accounts of people and programs who may log in."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._approval_desk import actor, office
from grace_kp.cli._approval_words import moment_text
from grace_kp.cli._group import SuggestingGroup
from grace_kp.cli._lookup import StoreOption, described, reachable
from grace_kp.cli._output import clean, console, put_json
from grace_kp.cli._page import put, put_text
from grace_kp.cli._table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.web import Accounts, Role

users = typer.Typer(
    cls=SuggestingGroup, no_args_is_help=True, help="Accounts of people and programs: add, list, remove, role, rotate."
)

ROLES = "viewer, approver, admin or agent"
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name, as it stands beside decisions.")]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by", help="Who makes this change, for the audit trail. Default: the name of the operating-system user."
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Also if it is the last admin.")]


@contextmanager
def _accounts(store: str | None) -> Iterator[Accounts]:
    from grace_kp.web import Accounts

    with office(reachable(store)) as place:
        yield Accounts(place.tables)


def _role(name: str) -> Role:
    from grace_kp.web import Role

    if not name:
        raise ValueError(f"state the role with --role: {ROLES}; begin with --role admin")
    try:
        return Role(name)
    except ValueError:
        raise ValueError(f"the role must be {ROLES}, not {name!r:.40}") from None


def _put_token(token: str, name: str, role: Role) -> None:
    put(console(), token)
    use = (
        "Programs send it to the API in the header"
        if role.value == "agent"
        else ("Enter it on the login page; programs send it to the API in the header")
    )
    put_text(
        console(stderr=True),
        f"Store this token now: it is shown once, and the store keeps only its hash. {use} `Authorization: Bearer TOKEN`. "
        f"Whoever has it acts as {clean(name)}.",
    )


@users.command()
def add(
    name: NameArgument,
    role: Annotated[
        str, typer.Option(help=f"What this person may do: {ROLES}. It must be stated.", show_default=False)
    ] = "",
    store: StoreOption = None,
    by: ByOption = None,
) -> None:
    """Add an account and print its token, once. The first account makes a login necessary.

    Example: grace-kp serve users add ana --role admin
    """
    wanted, who = _role(role), actor(by)
    with _accounts(store) as accounts:
        _put_token(accounts.add(name, wanted, actor=who), name, wanted)


@users.command("list")
def list_users(
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """List the accounts with their roles."""
    with _accounts(store) as accounts:
        found, seen = accounts.all(), accounts.seen()
    if as_json:
        put_json(
            [
                {
                    "name": account.name,
                    "role": account.role.value,
                    "created_at": account.created,
                    "changed_at": account.changed,
                    "last_use": seen.get(name),
                }
                for name, account in found.items()
            ]
        )
        return
    table = Table(Column("name", least=20), Column("role", "word"), Column("last use", "word"))
    for name, account in found.items():
        last = moment_text(seen[name]) if name in seen else "never"
        table.add(clean(account.name), account.role.value, last)
    if found:
        table.print(console())
    else:
        put_text(console(), f"no accounts in {described(store)}")
        put_text(console(), "`grace-kp serve users add NAME --role admin` adds the first")


@users.command()
def remove(name: NameArgument, store: StoreOption = None, by: ByOption = None, force: ForceOption = False) -> None:
    """Remove an account. Its token, its sessions, its votes on pending requests and its standing approvals end at once."""
    who = actor(by)
    with _accounts(store) as accounts:
        accounts.remove(name, actor=who, force=force)
    put_text(console(), f"{clean(name)} has no account any more")


@users.command("role")
def set_role(
    name: NameArgument,
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"{ROLES}.")],
    store: StoreOption = None,
    by: ByOption = None,
    force: ForceOption = False,
) -> None:
    """Change what a person may do. The sessions of the person end at once.

    Without a role that may decide, the votes of the person on pending requests and its standing approvals do not count.
    """
    wanted, who = _role(role), actor(by)
    with _accounts(store) as accounts:
        accounts.set_role(name, wanted, actor=who, force=force)
    put_text(console(), f"{clean(name)} has the role {wanted.value}")


@users.command()
def rotate(name: NameArgument, store: StoreOption = None, by: ByOption = None) -> None:
    """Print a new token of a person, once. The old one and all sessions of the person end at once."""
    who = actor(by)
    with _accounts(store) as accounts:
        _put_token(accounts.rotate(name, actor=who), name, accounts.get(name).role)
