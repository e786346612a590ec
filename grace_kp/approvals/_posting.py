"""One post of a message to a receiver, bounded in time. Its answer is not read, and redirects are not followed."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

from grace_kp.background import DeadlineExceeded, call_within, retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

ABOUT_THE_RECEIVER = frozenset({401, 403, 404, 408, 409, 421, 423, 425, 429})
"""Statuses from 400 to 499 after which another attempt can succeed. The others are about this message."""
GONE = 410


class Unreached(Exception):
    """The receiver did not accept the message; another attempt may succeed."""

    def __init__(self, problem: str, wait_seconds: float | None = None) -> None:
        self.wait_seconds = wait_seconds
        super().__init__(problem)


class Refused(Exception):
    """The receiver does not accept this message."""


class Gone(Exception):
    """The receiver wants no more messages."""


def post(url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> None:
    """Post a message.

    Raises:
        Unreached: there was no answer in time, or one that does not accept the message.
        Refused: another attempt would be answered the same.
        Gone: no message is wanted any more.
    """
    try:
        # The transport bounds each read, not the whole of it; this bounds everything.
        status, wait_seconds = call_within(
            seconds + 0.05, lambda: _posted(url, headers, body, seconds), name="webhook", or_inline=True
        )
    except DeadlineExceeded:
        raise Unreached(f"no answer within {seconds:g} s") from None
    if 200 <= status < 300:
        return
    if status == GONE:
        raise Gone(f"HTTP {status}")
    if 400 <= status < 500 and status not in ABOUT_THE_RECEIVER:
        raise Refused(f"HTTP {status}")
    raise Unreached(f"HTTP {status}" + (", a redirect" if 300 <= status < 400 else ""), wait_seconds)


def _posted(url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> tuple[int, float | None]:
    import httpx

    request = httpx.Request(
        "POST", url, headers=dict(headers), content=body, extensions={"timeout": httpx.Timeout(seconds).as_dict()}
    )
    # Not a client: it logs the address, whose path may be a secret, and follows `.netrc`.
    try:
        with httpx.HTTPTransport(proxy=_proxy(request.url.scheme, request.url.host)) as transport:
            answer = transport.handle_request(request)
            try:
                return answer.status_code, retry_after(answer.headers.get("retry-after"))
            finally:
                answer.close()
    except httpx.TimeoutException:
        raise Unreached(f"no answer within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise Unreached(type(error).__name__) from None  # its message may hold the address


def _proxy(scheme: str, host: str) -> str | None:
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(host):
        return None
    return proxies.get(scheme) or proxies.get("all")
