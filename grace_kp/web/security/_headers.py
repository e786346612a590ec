"""The headers of every response: what a browser may do with it, where it may come from, and that nobody keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Message

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()",
}


def protected(message: Message, *, may_keep: bool) -> Message:
    """Return the start of a response with these headers, whatever its handler has set.

    Args:
        message: the start of a response.
        may_keep: whether its handler decides about caches, as for the style sheet.

    Raises:
        ValueError: a header holds a line break.
    """
    headers = [(name.lower(), value) for name, value in message.get("headers", ()) if name.lower() not in HEADERS]
    if any(b"\r" in part or b"\n" in part or b"\0" in part for header in headers for part in header):
        raise ValueError("a header of a response holds a line break")
    if not may_keep or all(name != b"cache-control" for name, _ in headers):
        headers = [(name, value) for name, value in headers if name != b"cache-control"]
        headers.append((b"cache-control", b"no-store"))
    return {**message, "headers": [*headers, *HEADERS.items()]}
