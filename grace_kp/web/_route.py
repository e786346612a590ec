"""Routes: every address states which right it needs. The style sheet and the scripts, which need none, are routes of this package's files."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from grace_kp.pages import style
from grace_kp.web._person import Right

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request


class PageRoute(Route):
    """A route with the right that a person needs for it. The gatekeeper checks the right before the handler is called."""

    right: Right


def route(
    path: str,
    handler: Callable[[Request], Response] | Callable[[Request], Awaitable[Response]],
    right: Right,
    *,
    methods: Sequence[str] = ("GET",),
) -> PageRoute:
    """Return a route whose handler is called only for people with a right.

    Args:
        path: with parameters as in `/runs/{id}`.
        handler: a plain function, which runs in a thread and may block; or a coroutine function, which must not.
        right: what the person must have.
        methods: HTTP methods; GET includes HEAD.
    """
    stated = PageRoute(path, handler, methods=list(methods), name=f"{methods[0]} {path}")
    stated.right = right
    return stated


SHEETS = ("site.css", "inbox.css", "runs.css", "figures.css")
"""The style sheets of the pages, sent as one after the style that all pages share."""
SCRIPTS = ("site.js", "runs.js")
"""The script of all pages, and the one for the search inside a run."""


def static_routes() -> list[PageRoute]:
    """Return the routes of the style sheet and the scripts. They need no login. The files are read now, and never again."""
    sheet = "\n".join([style(), *map(_file, SHEETS)])
    return [
        _sends("site.css", sheet, "text/css"),
        *(_sends(name, _file(name), "text/javascript") for name in SCRIPTS),
    ]


def _sends(name: str, text: str, kind: str) -> PageRoute:
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type=kind, headers=headers)

    return route(f"/static/{name}", send, Right.ANYBODY)


def _file(name: str) -> str:
    return files("grace_kp.web").joinpath("static", name).read_text(encoding="utf-8")
