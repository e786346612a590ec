"""What stands before every handler: who sent the request, whether this person may, and headers that every answer carries."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request

from grace_kp.web._person import Person, Role

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Gatekeeper:
    """ASGI middleware. Unfinished: everybody is the operating system's user."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.person = Person(name="somebody", role=Role.ADMIN, authenticated=False)
        request.state.csrf = "token"
        request.state.form = {}
        if request.method == "POST":
            request.state.form = parse_qs((await request.body()).decode(), keep_blank_values=True)
        await self.app(scope, request.receive, send)
