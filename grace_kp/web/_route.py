"""Routes that state which right they need; there is no other kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web._person import Right


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
