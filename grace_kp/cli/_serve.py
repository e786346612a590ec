"""`grace-kp serve`: pages for people over a store, at an address that it prints."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._group import SuggestingGroup
from grace_kp.cli._lookup import CHOOSE, StoreOption, described, opened, reachable
from grace_kp.cli._output import clean, console, say_error
from grace_kp.cli._page import put, put_field, put_text
from grace_kp.cli._serve_users import users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.web import Server


class _Group(SuggestingGroup):
    usage = "the store is an option: grace-kp serve --store sqlite:///app.db"


serve = typer.Typer(cls=_Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
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

    url = reachable(store)
    opened(url).close()  # what cannot be opened is reported here, once
    with Grace(store=url, evaluator=None, embedder=None) as grace:
        server = serving(
            grace, host=host, port=port, public_url=public_url, trusted_proxies=trusted_proxy or (), root=root_path
        )
        address = server.address()
        _put_beginning(server, address, store)
        if server.hint:
            say_error(server.hint)
        with _browser(address) if not no_browser and _is_terminal() else nullcontext(), suppress(KeyboardInterrupt):
            server.run()
        _put_end(server)


@contextmanager
def _browser(address: str) -> Iterator[None]:
    """Open a browser at the address, by way of a file that only this user can read: other users see the arguments of a process."""
    handle, name = tempfile.mkstemp(prefix="grace-kp-", suffix=".html")
    place = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            url = html.escape(address)
            file.write(
                f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>grace-kp</title>'
                f'<meta http-equiv="refresh" content="0; url={url}"><p><a href="{url}">Open the pages</a></p>\n'
            )
        webbrowser.open(place.as_uri())
        yield
    finally:
        place.unlink(missing_ok=True)


def _is_terminal() -> bool:
    return sys.stdout.isatty() and not os.environ.get("CI")


def _put_beginning(server: Server, address: str, store: str | None) -> None:
    out = console()
    put_field(out, "store", described(store).removesuffix(f"; {CHOOSE}"), label=LABEL)
    put(out, "open")
    put(out, f"  {address}")  # at 80 columns a code fits into a line of its own
    how = (
        "a token of an account; `grace-kp serve users` manages them"
        if server.logins.code_is_needless
        else "the code in the address works once, for ten minutes"
    )
    put_field(out, "login", how, label=LABEL)
    put_field(out, "stop", "Ctrl-C", label=LABEL)
    sys.stdout.flush()


def _put_end(server: Server) -> None:
    counts = server.logins.attempts.refusals()
    if counts:
        texts = (f"{count:,} × {kind.replace('_', ' ')}" for kind, count in counts.items())
        say_error(clean(f"Refused requests since the start: {', '.join(texts)}."))
    put_text(console(), "stopped")
