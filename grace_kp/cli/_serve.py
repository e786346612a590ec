"""`grace-kp serve`: web pages of a store; `serve users`: the accounts that may log in."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from grace_kp.cli._approval_page import moment_text
from grace_kp.cli._lookup import (
    CHOOSE,
    ByOption,
    JsonOption,
    StoreOption,
    actor,
    describe_store,
    open_chosen_store,
    open_inbox,
    require_reachable_store,
)
from grace_kp.cli._output import clean, console, put_json, say_error
from grace_kp.cli._page import TableColumn, TextTable, put, put_field, put_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grace_kp.web import Accounts, Role, Server


class SuggestingGroup(TyperGroup):
    """Lists its commands when one is unknown. An address of a store is a likely mistake."""

    def resolve_command(self, ctx: Any, args: Sequence[str]) -> Any:
        name = str(args[0])
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            commands = ", ".join(self.list_commands(ctx))
            hint = "the store is an option: grace-kp serve --store sqlite:///app.db"
            ctx.fail(f"no command {name!r:.80}; commands: {commands}{f'; {hint}' if ctx.info_name == 'serve' else ''}")
        return super().resolve_command(ctx, list(args))


users = typer.Typer(
    cls=SuggestingGroup, no_args_is_help=True, help="Accounts of people and programs: add, list, remove, role, rotate."
)

ROLES = "viewer, approver, admin or agent"
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name, as it is shown with decisions.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Allow it for the last admin.")]


@contextmanager
def _accounts(store: str | None) -> Iterator[Accounts]:
    from grace_kp.web import Accounts

    with open_inbox(require_reachable_store(store)) as inbox:
        yield Accounts(inbox.tables)


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
    place = "" if role.value == "agent" else "Enter it on the login page; "
    use = f"{place}{'p' if place else 'P'}rograms send it to the API in the header"
    put_text(
        console(stderr=True),
        f"Store this token now: it is shown once, and the store keeps only its hash. {use} `Authorization: Bearer TOKEN`. "
        f"Whoever has it acts as {clean(name)}.",
    )


@users.command()
def add(
    name: NameArgument,
    role: Annotated[str, typer.Option(help=f"What this person may do: {ROLES}. Required.", show_default=False)] = "",
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
def list_users(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the accounts with their roles."""
    with _accounts(store) as accounts:
        found, seen = accounts.all(), accounts.seen()
    if as_json:
        entries = []
        for name, account in found.items():
            times = {"created_at": account.created, "changed_at": account.changed, "last_use": seen.get(name)}
            entries.append({"name": account.name, "role": account.role.value, **times})
        put_json(entries)
        return
    table = TextTable(TableColumn("name", least=20), TableColumn("role", "word"), TableColumn("last use", "word"))
    for name, account in found.items():
        table.add(clean(account.name), account.role.value, moment_text(seen[name]) if name in seen else "never")
    if found:
        table.print(console())
    else:
        put_text(console(), f"no accounts in {describe_store(store)}")
        put_text(console(), "`grace-kp serve users add NAME --role admin` adds the first")


@users.command()
def remove(name: NameArgument, store: StoreOption = None, by: ByOption = None, force: ForceOption = False) -> None:
    """Remove an account. Its token, sessions, votes on pending requests and standing approvals end at once."""
    who = actor(by)
    with _accounts(store) as accounts:
        accounts.remove(name, actor=who, force=force)
    put_text(console(), f"the account {clean(name)} was removed")


@users.command("role")
def set_role(
    name: NameArgument,
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"{ROLES}.")],
    store: StoreOption = None,
    by: ByOption = None,
    force: ForceOption = False,
) -> None:
    """Change the role of a person. The sessions of the person end at once.

    With a role that may not decide, the votes of the person on pending requests and the standing approvals no longer count.
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


serve = typer.Typer(
    cls=SuggestingGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
serve.add_typer(users, name="users")
LABEL = 8


@serve.callback()
def run(
    context: typer.Context,
    store: StoreOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on. Any other than loopback requires accounts; --public-url lets other machines open the pages.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    public_url: Annotated[str, typer.Option("--public-url", help="https://HOST under which a proxy offers the pages.")] = "",
    trusted_proxy: Annotated[list[str] | None, typer.Option("--trusted-proxy", help="Address of a proxy whose X-Forwarded-For names the client; may be repeated.")] = None,
    root_path: Annotated[str, typer.Option("--root-path", help="Path that the proxy offers the pages under, such as /grace.")] = "",
) -> None:  # fmt: skip
    """Show a store as web pages until Ctrl-C: pending approvals, runs and figures.

    It prints the address to open, with a code that works once. With accounts (`serve users add`), people log in with tokens instead.
    A proxy in front must hold off slow clients and floods of connections: the server limits only the size and the time of a body.

    Example: grace-kp serve --store sqlite:///app.db
    """
    if context.invoked_subcommand is not None:
        if store is not None:
            raise ValueError("--store belongs behind the command: grace-kp serve users add NAME --store …")
        return
    from grace_kp.runtime import Grace
    from grace_kp.web import serving

    url = require_reachable_store(store)
    open_chosen_store(url).close()  # reports a store that cannot be opened before the server starts
    with Grace(store=url, evaluator=None, embedder=None) as grace:
        server = serving(
            grace, host=host, port=port, public_url=public_url, trusted_proxies=trusted_proxy or (), root=root_path
        )
        address = server.address()
        _put_beginning(server, address, store)
        if server.hint:
            say_error(server.hint)
        opens = not no_browser and sys.stdout.isatty() and not os.environ.get("CI")
        # Ctrl-C ends the command in the same way while the browser opens.
        with suppress(KeyboardInterrupt), _browser(address) if opens else nullcontext():
            server.run()
        if counts := server.logins.attempts.refusals():
            refused = ", ".join(f"{count:,} × {kind.replace('_', ' ')}" for kind, count in counts.items())
            say_error(clean(f"Refused requests since the start: {refused}."))
        put_text(console(), "stopped")


@contextmanager
def _browser(address: str) -> Iterator[None]:
    """Open a browser by way of a private file, because other users can read the arguments of a process."""
    handle, name = tempfile.mkstemp(prefix="grace-kp-", suffix=".html")
    page = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            url = html.escape(address)
            file.write(
                f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>grace-kp</title>'
                f'<meta http-equiv="refresh" content="0; url={url}"><p><a href="{url}">Open the pages</a></p>\n'
            )
        webbrowser.open(page.as_uri())
        yield
    finally:
        page.unlink(missing_ok=True)


def _put_beginning(server: Server, address: str, store: str | None) -> None:
    out = console()
    put_field(out, "store", describe_store(store).removesuffix(f"; {CHOOSE}"), label=LABEL)
    put(out, "open")
    put(out, f"  {address}")  # on a separate line, where an address with a code fits into 80 columns
    how = (
        "a token of an account; `grace-kp serve users` manages them"
        if server.logins.code_is_needless
        else "the code in the address works once, for ten minutes"
    )
    put_field(out, "login", how, label=LABEL)
    put_field(out, "stop", "Ctrl-C", label=LABEL)
    sys.stdout.flush()
