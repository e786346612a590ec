"""The style sheet and the scripts: files of this package, sent with a validator so that browsers keep them until they change."""

from __future__ import annotations

import functools
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import Response

from grace_kp.pages import style
from grace_kp.web._person import Right
from grace_kp.web._route import route

if TYPE_CHECKING:
    from starlette.requests import Request

    from grace_kp.web._route import PageRoute

SHEETS = ("site.css", "inbox.css", "runs.css", "figures.css")
"""The style sheets of the pages, sent as one after the style that all pages share."""
SCRIPTS = ("site.js", "runs.js")
"""The script of all pages, and the one for the search inside a run."""


def routes() -> list[PageRoute]:
    """Return the routes of the style sheet and the scripts. They need no login."""
    return [
        route("/static/site.css", _style, Right.ANYBODY),
        *(route(f"/static/{name}", functools.partial(_script, name), Right.ANYBODY) for name in SCRIPTS),
    ]


def _style(request: Request) -> Response:
    return _sent(request, _sheet(), "text/css")


def _script(name: str, request: Request) -> Response:
    return _sent(request, _file(name), "text/javascript")


def _sent(request: Request, text: str, kind: str) -> Response:
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(text, media_type=kind, headers=headers)


@functools.cache
def _sheet() -> str:
    return "\n".join([style(), *map(_file, SHEETS)])


@functools.cache
def _file(name: str) -> str:
    return files("grace_kp.web").joinpath("static", name).read_text(encoding="utf-8")
