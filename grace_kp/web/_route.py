"""Routes that state which right they ask for; there is no other kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web._person import Right


def route(
    path: str, handler: Callable[[Request], Response], right: Right, *, methods: Sequence[str] = ("GET",)
) -> Route:
    """Return a route whose handler is only called for persons with a right.

    Args:
        path: with parameters as in `/runs/{id}`.
        handler: a plain function, which runs in a thread.
        right: what the person must have; the gatekeeper checks it before the handler.
        methods: HTTP methods.
    """
    found = Route(path, handler, methods=list(methods), name=f"{methods[0]} {path}")
    found.right = right  # type: ignore[attr-defined]
    return found
