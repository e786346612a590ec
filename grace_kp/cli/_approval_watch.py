"""`grace-kp approvals watch`: pending requests as they come and go, until Ctrl-C.

At a terminal the list fills the screen and is drawn anew when something has changed, or once a second for the times in it. Elsewhere each
change is a line. A store that is locked or replaced is waited for.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli import _approval_words as words
from grace_kp.cli._approval_desk import Office, office
from grace_kp.cli._approvals import changed_at, decided_by_text, put_pending
from grace_kp.cli._lookup import StoreOption, store_file
from grace_kp.cli._output import clean, console, put_jsonl, say_error, shorten
from grace_kp.cli._page import put, put_text
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from grace_kp.approvals import Approval

TICK = 0.25
"""Seconds between two looks at the store."""
SHOWN = 200
"""Pending requests that are read at a time."""
RECENT = 5
"""Ended requests below the pending ones."""
RECENT_SECONDS = 3_600


def watch(
    store: StoreOption = None,
    action: Annotated[str | None, typer.Option(help="Only of this action, or of those that match a glob.")] = None,
    group: Annotated[str | None, typer.Option(help="Only what members of this group may decide.")] = None,
    bell: Annotated[bool, typer.Option("--bell", help="Ring when a request comes in.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per change.")] = False,
) -> None:
    """Show pending requests as they come and go. Ctrl-C ends it.

    Example: grace-kp approvals watch --group finance --bell
    """
    view = View(store, action, group)
    try:
        if as_json or not sys.stdout.isatty() or console().is_dumb_terminal:
            Lines(view, as_json=as_json, bell=bell).run()
        else:
            Screen(view, bell=bell).run()
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@dataclass(slots=True)
class View:
    """What is watched, and what was read last."""

    store: str | None
    action: str | None
    group: str | None
    pending: list[Approval] = field(default_factory=list)
    recent: list[Approval] = field(default_factory=list)
    problem: str = ""
    """Why the newest state cannot be read; empty where it is."""
    read_at: float = 0.0

    def ticks(self, each: Callable[[Office | None, bool], None]) -> None:
        """Call `each` at every tick for ever, with the desk and whether something may have changed; with None while the store cannot be read.

        Raises:
            GraceError: at the beginning there is no such store.
        """
        with office(self.store):
            pass
        while True:
            try:
                with office(self.store) as place:
                    self._ticks_at(place, each)
            except (GraceError, sqlite3.Error, OSError) as error:
                self.problem = clean(str(error), 300)
                each(None, True)
                time.sleep(TICK * 4)

    def _ticks_at(self, place: Office, each: Callable[[Office | None, bool], None]) -> None:
        """Tick until the file is another one."""
        file, seen = self._file(), None
        while self._file() == file:
            now = place.tables.changes()
            self.read_at = time.time()
            each(place, now != seen)
            seen, self.problem = now, ""
            time.sleep(TICK)

    def _file(self) -> tuple[int, int] | None:
        path = store_file(self.store)
        if path is None:
            return None
        found = path.stat()
        return found.st_dev, found.st_ino

    def look(self, place: Office) -> None:
        """Read the newest state."""
        self.pending = place.desk.pending(self.action, limit=SHOWN, group=self.group)
        recent = place.desk.history(action=self.action, since=time.time() - RECENT_SECONDS, limit=RECENT * 4)
        self.recent = [approval for approval in recent if self.group is None or self.group in approval.groups][:RECENT]

    def matches(self, approval: Approval) -> bool:
        """Return whether an approval is one of those that are watched."""
        is_named = self.action is None or fnmatchcase(approval.action, self.action)
        return is_named and (self.group is None or self.group in approval.groups)

    def is_due(self) -> bool:
        """Return whether time alone has changed what is pending."""
        now = time.time()
        return any(approval.deadline is not None and approval.deadline <= now for approval in self.pending)


class Screen:
    """Draws what is watched on the whole of a terminal."""

    def __init__(self, view: View, *, bell: bool) -> None:
        self._view = view
        self._bell = bell
        self._known: set[str] | None = None
        self._drawn: tuple[object, ...] = ()

    def run(self) -> None:
        """Draw until Ctrl-C."""
        from rich.live import Live

        with Live(console=console(sized=False), screen=True, auto_refresh=False) as live:
            self._view.ticks(lambda place, changed: self._tick(live, place, changed))

    def _tick(self, live: Live, place: Office | None, changed: bool) -> None:
        if place is not None and (changed or self._view.is_due()):
            self._view.look(place)
            self._ring(live)
        size = live.console.size
        state = int(time.time()), size, self._view.problem, changed
        if state == self._drawn:
            return
        self._drawn = state
        live.update(self._drawing(size.width, size.height), refresh=True)

    def _ring(self, live: Live) -> None:
        ids = {approval.id for approval in self._view.pending}
        if self._bell and self._known is not None and ids - self._known:
            live.console.bell()
        self._known = ids

    def _drawing(self, width: int, height: int) -> Text:
        """Return what fills the screen: as many lines as fit, the pending requests before the ended ones."""
        from rich.text import Text

        view = self._view
        head = _drawn(width, lambda out: self._head(out))
        foot = _drawn(width, lambda out: put_text(out, FOOT, style="dim"))
        body = _drawn(width, lambda out: put_pending(out, view.pending))
        room = height - len(head) - len(foot) - 1
        recent = _drawn(width, lambda out: self._recent(out)) if view.recent else []
        if len(body) + len(recent) + 1 <= room:
            body += ["", *recent] if recent else []
        elif len(body) > room:
            more = len(body) - room + 1
            body = [*body[: room - 1], f"… {more:,} more lines; `grace-kp approvals list` shows all"]
        blank = [""] * max(0, room - len(body))
        return Text.from_ansi("\n".join([*head, *body, *blank, *foot]), no_wrap=True, overflow="crop")

    def _head(self, out: Console) -> None:
        view = self._view
        count = len({approval.digest for approval in view.pending})
        more = " or more" if len(view.pending) == SHOWN else ""
        title = f"{count:,}{more} pending" if view.pending else "nothing is pending"
        now = words.moment_text(time.time())[11:]
        put(out, shorten(f"{title}  {now}  {clean(str(store_file(view.store) or 'memory'))}", out.width))
        if view.problem:
            since = words.moment_text(view.read_at)[11:]
            put_text(out, f"as of {since}; waiting for the store: {view.problem}", style="yellow")
        put(out, "")

    def _recent(self, out: Console) -> None:
        put_text(out, "in the last hour", style="bold")
        for approval in self._view.recent:
            by = decided_by_text(approval)
            ago = words.duration(time.time() - changed_at(approval))
            text = f"{words.short_id(approval.id)}  {words.in_state(approval.state)}{f' by {by}' if by else ''}, {ago} ago: {words.sentence(approval)}"
            put(out, shorten(text, out.width))


FOOT = "grace-kp approvals show ID, approve ID, …   Ctrl-C ends"


def _drawn(width: int, draw: Callable[[Console], None]) -> list[str]:
    """Return the lines that a function writes to a console of this width."""
    out = console()
    out.width = width
    with out.capture() as captured:
        draw(out)
    return captured.get().removesuffix("\n").split("\n")


class Lines:
    """Writes a line per change: first the requests that are pending, then each entry of the chain but views."""

    def __init__(self, view: View, *, as_json: bool, bell: bool) -> None:
        self._view = view
        self._as_json = as_json
        self._bell = bell and not as_json
        self._store = ""
        self._seq = 0
        self._problem = ""

    def run(self) -> None:
        """Write until Ctrl-C, or until the reader closes the pipe."""
        self._view.ticks(self._tick)

    def _tick(self, place: Office | None, changed: bool) -> None:
        if place is None:
            if self._view.problem != self._problem:
                say_error(f"waiting for the store: {self._view.problem}")
            self._problem = self._view.problem
            return
        self._problem = ""
        if not changed and not self._view.is_due():
            return
        self._view.look(place)
        seq, _ = place.tables.head()
        if place.tables.identity != self._store or seq < self._seq:
            self._begin(place, seq)
        else:
            self._follow(place)

    def _begin(self, place: Office, seq: int) -> None:
        self._store, self._seq = place.tables.identity, seq
        for approval in self._view.pending:
            self._write(approval, "pending", approval.created_at, "")

    def _follow(self, place: Office) -> None:
        from grace_kp.approvals import entry_of

        while links := place.tables.links(after=self._seq, limit=500):
            for link in links:
                self._seq = link.seq
                entry = entry_of(link)
                if link.approval is None or entry["kind"] == "viewed":
                    continue
                approval = place.desk.get(link.approval)
                if self._view.matches(approval):
                    by = (entry["actor"] or {}).get("name", "")
                    self._write(approval, words.event(entry), entry["at"], by, seq=link.seq)

    def _write(self, approval: Approval, event: str, at: float, by: str, *, seq: int | None = None) -> None:
        if self._as_json:
            put_jsonl([{"seq": seq, "event": event, "at": at, "by": by or None, "approval": approval.to_dict()}])
            return
        ring = "\a" if self._bell and event == "requested" else ""
        name = clean(event.replace("_", " "), 20)
        text = f"{words.moment_text(at)}  {name:<10}  {words.short_id(approval.id)}  {words.sentence(approval)}"
        sys.stdout.write(f"{ring}{text}{f'  by {clean(by, 60)}' if by else ''}\n")
        sys.stdout.flush()
