"""Stub."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.web._route import PageRoute


def routes() -> list[PageRoute]:
    """Return the routes of this part."""
    return []


class Gatekeeper:
    """Stub: everybody is an admin. The helper for security replaces it."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        from urllib.parse import parse_qs

        from starlette.requests import Request

        from grace_kp.web._person import Person, Role

        request = Request(scope, receive)
        request.state.person = Person(name="somebody", role=Role.ADMIN, authenticated=False)
        request.state.csrf = "stub"
        request.state.form, request.state.body = {}, None
        if request.method == "POST":
            request.state.form = parse_qs((await request.body()).decode(), keep_blank_values=True)
        await self.app(scope, request.receive, send)
