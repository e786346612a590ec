"""The style sheet and the scripts: files of this package, sent with a validator so that browsers keep them until they change."""

from __future__ import annotations

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
