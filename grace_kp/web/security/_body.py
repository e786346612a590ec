"""The body of a request: read with a limit on its size and a deadline, and parsed as a form or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs

import anyio
from starlette.exceptions import HTTPException

from grace_kp.trace import object_without_duplicates

if TYPE_CHECKING:
    from starlette.types import Message, Receive

BODY_BYTES = 1 << 20
"""Largest body of a request by somebody who is known."""
LOGIN_BYTES = 1 << 14
"""Largest body of a request that needs no login."""
READ_SECONDS = 15.0
"""A body must have arrived after this time."""
FIELDS = 5_000
"""Fields of a form at most."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


async def read_body(receive: Receive, limit: int, seconds: float = READ_SECONDS) -> bytes:
    """Return a body.

    Args:
        receive: the channel of the request.
        limit: size at most, in bytes, whatever length the request states.
        seconds: time at most.

    Raises:
        HTTPException: 413 for a larger one, 408 for a slower one, 400 if the client has gone.
    """
    chunks, size = [], 0
    with anyio.move_on_after(seconds):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "The request ended before its body.")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise HTTPException(413, f"The request is larger than {limit:,} bytes.")
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)
    raise HTTPException(408, f"The request did not arrive within {seconds:g} seconds.")


def again(body: bytes, receive: Receive) -> Receive:
    """Return a channel that delivers a body that was read before, and then what the first channel delivers."""
    delivered = False

    async def receive_again() -> Message:
        nonlocal delivered
        if not delivered:
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_again


def parse_form(body: bytes) -> dict[str, list[str]]:
    """Return the fields of a form.

    Raises:
        HTTPException: 400 if it is not UTF-8, or has too many fields.
    """
    try:
        return parse_qs(
            body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        raise HTTPException(
            400, f"The form cannot be read: it must be UTF-8 and have at most {FIELDS:,} fields."
        ) from None


def parse_json(body: bytes) -> Any:
    """Return JSON; None without a body.

    Raises:
        HTTPException: 400 if it is no JSON, or has a name twice, which readers understand differently.
    """
    if not body:
        return None
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=object_without_duplicates)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body is not JSON in UTF-8, in which each name stands once.") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
