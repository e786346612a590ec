"""`grace-kp approvals watch`: the list of pending requests, written anew when it changes, until Ctrl-C.

At a terminal the list fills the screen, and the times in it go on. A store that is replaced, or locked for long, ends it with an error.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli import _approval_words as words
from grace_kp.cli._approval_desk import Office, office
from grace_kp.cli._approvals import put_pending
from grace_kp.cli._lookup import StoreOption  # noqa: TC001 — Typer reads it
from grace_kp.cli._output import console, put_jsonl
from grace_kp.cli._page import put

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.text import Text

    from grace_kp.approvals import Approval

TICK = 0.25
"""Seconds between two looks at the store."""
SHOWN = 200
"""Pending requests that are read at a time."""


def watch(
    store: StoreOption = None,
    action: Annotated[str | None, typer.Option(help="Only of this action, or of those that match a glob.")] = None,
    group: Annotated[str | None, typer.Option(help="Only what members of this group may decide.")] = None,
    bell: Annotated[bool, typer.Option("--bell", help="Ring when a request comes in.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per request that comes, changes or ends.")] = False,
) -> None:  # fmt: skip
    """Show the list of pending requests, and show it anew when it changes. Ctrl-C ends it.

    Example: grace-kp approvals watch --group finance --bell
    """
    from rich.live import Live

    is_screen = not as_json and sys.stdout.isatty() and not console().is_dumb_terminal
    out = console(sized=False)
    known: dict[str, int] | None = None
    drawn: tuple[object, ...] = ()
    try:
        screen = Live(console=out, screen=True, auto_refresh=False) if is_screen else nullcontext()
        with office(store) as place, screen as live:
            for found in _lists(place, action, group):
                now = {approval.id: approval.revision for approval in found}
                if bell and not as_json and known is not None and now.keys() - known.keys():
                    out.file.write("\a")
                    out.file.flush()
                if live is not None:
                    state = now, int(time.time()), out.size
                    if state != drawn:
                        live.update(_screen(out, found), refresh=True)
                    drawn = state
                elif as_json:
                    put_jsonl(_changes(place, found, known or {}))
                elif now != known:
                    _put_list(console(), found)
                    sys.stdout.flush()
                known = now
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _lists(place: Office, action: str | None, group: str | None) -> Iterator[list[Approval]]:
    """Yield what is pending at every tick, for ever. It is read only where something may have changed.

    Raises:
        StoreError: the store cannot be read, or is no longer the one that was opened.
    """
    seen, found = None, []
    while True:
        now, at = place.tables.changes(), time.time()
        if now != seen or any(approval.deadline is not None and approval.deadline <= at for approval in found):
            seen, found = now, place.desk.pending(action, limit=SHOWN, group=group)
        yield found
        time.sleep(TICK)


def _changes(place: Office, found: list[Approval], known: Mapping[str, int]) -> Iterator[dict[str, object]]:
    """Yield each approval whose revision is not the known one, then those that are no longer listed, as they are now."""
    ended = known.keys() - {approval.id for approval in found}
    changed = [approval for approval in found if known.get(approval.id) != approval.revision]
    for approval in (*changed, *map(place.desk.get, sorted(ended))):
        yield {"event": str(approval.state), "approval": approval.to_dict()}


def _put_list(out: Console, found: list[Approval]) -> None:
    count = f"{len(found):,}{' or more' if len(found) == SHOWN else ''}" if found else "nothing is"
    put(out, f"{count} pending  {words.moment_text(time.time())[11:]}")
    put_pending(out, found)


def _screen(terminal: Console, found: list[Approval]) -> Text:
    """Return what fills the screen."""
    from rich.text import Text

    out = console()
    out.width = terminal.width
    with out.capture() as captured:
        _put_list(out, found)
    lines, room = captured.get().splitlines(), terminal.height
    if len(lines) > room:
        lines[room - 1 :] = ["… `grace-kp approvals list` shows all"]
    return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop")
