"""Server-sent events for open pages: the ids of requests that any process has changed, without contents.

One watcher serves all pages that are open. A page that was away states the number of the last event that it got, and receives what it missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from grace_kp.approvals import Change
from grace_kp.trace import redacted_error
from grace_kp.web._site import Right, person_of, site_of, whole_of
from grace_kp.web.security import still_may

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from grace_kp.web._site import Site

MAX_PAGES = 300
"""Pages that can listen at once."""
MAX_PAGES_EACH = 20
"""Pages of one person. Others are refused rather than the oldest ended: a browser opens a stream that ends again, but not one that is refused."""
MAX_BEHIND = 200
"""Events that a page may be behind; then its stream ends, and the browser asks again for what it missed."""
MAX_MISSED = 500
"""Missed events that a page receives at most: the newest."""
HEARTBEAT_SECONDS = 15.0
"""Seconds between two comments when nothing happens, so that proxies keep the connection and logged-out pages lose it."""
RETRY_MS = 3_000
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_SILENT = frozenset({"viewed", "refused", "account_changed"})
_log = logging.getLogger("grace_kp.web")


class OpenPage:
    """A page that listens, with the name of the person who opened it."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._changes: asyncio.Queue[Change | None] = asyncio.Queue(MAX_BEHIND)
        self._has_ended = False

    def put(self, change: Change) -> None:
        """Hand over a change; a page that is too far behind ends."""
        if self._changes.full():
            self.end()
        else:
            self._changes.put_nowait(change)

    def end(self) -> None:
        self._has_ended = True
        if self._changes.empty():
            self._changes.put_nowait(None)

    async def changes(self) -> AsyncIterator[Change | None]:
        """Yield changes, and None whenever nothing has happened for `HEARTBEAT_SECONDS`, until the stream ends."""
        while not self._has_ended:
            change = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    change = await self._changes.get()
            if not self._has_ended:
                yield change


class EventStream(StreamingResponse):
    """The stream of a page, which counts from the moment it is granted until its connection is gone, whether or not it has begun."""

    def __init__(self, events: AsyncIterator[str], leave: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_HEADERS)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


class Feed:
    """The event streams of one application."""

    def __init__(self) -> None:
        self._pages: set[OpenPage] = set()
        self._watch: asyncio.Task[None] | None = None
        self._watches = asyncio.Event()
        """Whether the watch has begun."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def stream(self, request: Request) -> Response:
        """Answer with a stream of events; the query value `after` or the header `Last-Event-ID` states the last one that the page has."""
        request.app.state.feed = self
        if self._is_closed or len(self._pages) >= MAX_PAGES:
            text = "Too many pages listen for events. This page works without them."
            raise HTTPException(503, text, {"Retry-After": "30"})
        page = OpenPage(person_of(request).name)
        if sum(each.owner == page.owner for each in self._pages) >= MAX_PAGES_EACH:
            raise HTTPException(
                429, f"{MAX_PAGES_EACH} other pages of yours listen for events. This page works without them.", {"Retry-After": "30"}
            )  # fmt: skip
        after = whole_of(request.headers.get("last-event-id") or request.query_params.get("after", ""))
        self._pages.add(page)
        return EventStream(self._events(request, page, after), lambda: self._leave(page))

    def close(self) -> None:
        """End all streams at once, from any thread: the application ends."""
        self._is_closed = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._end_pages)

    async def _events(self, request: Request, page: OpenPage, after: int | None) -> AsyncIterator[str]:
        site = site_of(request)
        await self._ensure_watch(site)
        yield f"retry: {RETRY_MS}\n\n"
        seq = -1 if after is None else after
        for change in () if after is None else await asyncio.to_thread(_missed_changes, site, after):
            if not await still_may(request, Right.SEE):
                return
            seq = change.seq
            yield _event(change)
        async for found in page.changes():
            if not await still_may(request, Right.SEE):
                return
            if found is None:
                yield ": still here\n\n"
            elif found.seq > seq and found.kind not in _SILENT:
                yield _event(found)

    async def _ensure_watch(self, site: Site) -> None:
        """Start the watch unless one runs, and wait until it reports every later change."""
        loop = asyncio.get_running_loop()
        if self._watch is None or self._watch.done() or self._loop is not loop:
            self._loop, self._watches = loop, asyncio.Event()
            self._watch = loop.create_task(self._share(site, self._watches))
        await self._watches.wait()

    async def _share(self, site: Site, watches: asyncio.Event) -> None:
        try:
            changes = await asyncio.to_thread(site.grace.approvals.watch)
            watches.set()
            async for change in changes:
                for page in list(self._pages):
                    page.put(change)
        except Exception as error:  # noqa: BLE001 — whatever it is, pages must not wait for events that never come
            _log.warning("changes of approvals cannot be watched: %s", redacted_error(error))
        finally:
            watches.set()
        self._end_pages()  # their browsers come again, and the first begins a new watch

    def _leave(self, page: OpenPage) -> None:
        self._pages.discard(page)
        if not self._pages and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _end_pages(self) -> None:
        for page in list(self._pages):
            page.end()


def stop_events(application: Starlette) -> None:
    """End the event streams of an application, so that its server need not wait for them."""
    feed: Feed | None = getattr(application.state, "feed", None)
    if feed is not None:
        feed.close()


def _missed_changes(site: Site, after: int) -> list[Change]:
    """Return the events after an event; if there are many, only the newest."""
    links = site.tables.links(after=max(after, site.tables.head()[0] - MAX_MISSED), limit=MAX_MISSED)
    return [change for change in map(Change.of, links) if change.kind not in _SILENT]


def _event(change: Change) -> str:
    data = json.dumps({"id": change.approval, "kind": change.kind, "seq": change.seq})
    return f"id: {change.seq}\nevent: change\ndata: {data}\n\n"
