"""One request to a registry, bounded in time and size, and when it is worth another attempt."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
MAX_ANSWER = 64 << 10
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0


class Passing(Exception):
    """An answer that may be another one in a moment."""

    def __init__(self, status: int, said: str, retry_after: float | None) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(f"HTTP {status}: {said}".rstrip(": "))


class Broken(Exception):
    """The answer did not come to its end in time, or does not end at all."""


def post(client: httpx.Client, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> tuple[int, str]:
    """Post, and read the answer to its end: its status and its text.

    Raises:
        Passing: the answer asks for another attempt.
        Broken: it took too long, or is too large.
        httpx.HTTPError: no answer was had.
    """
    ends = time.monotonic() + seconds
    read = bytearray()
    with client.stream(
        "POST", url, headers=dict(headers), content=body, timeout=seconds, follow_redirects=False
    ) as answer:
        for chunk in answer.iter_bytes():
            read += chunk
            if time.monotonic() > ends:
                raise Broken(f"the registry did not answer within {seconds:g} s")
            if len(read) > MAX_ANSWER:
                raise Broken(f"the registry's answer is longer than {MAX_ANSWER:,} bytes")
        said = read.decode("utf-8", errors="replace")
        if answer.status_code in AGAIN:
            raise Passing(answer.status_code, said, retry_after(answer.headers.get("retry-after")))
        return answer.status_code, said


def retry_after(header: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or a date; None where it says neither."""
    if not header:
        return None
    try:
        return max(0.0, float(header)) if float(header) < 1e9 else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def waiting(ends: float) -> dict[str, Any]:
    """How tenacity goes on: exponentially with jitter, as Retry-After asks, and never past `ends`."""
    import httpx
    from tenacity import retry_if_exception_type, wait_exponential, wait_random

    grows = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)

    def wait(state: Any) -> float:
        asked = getattr(state.outcome.exception(), "retry_after", None)
        return float(grows(state)) if asked is None else float(asked)

    def stop(state: Any) -> bool:
        return bool(time.monotonic() + state.upcoming_sleep >= ends)

    return {
        "retry": retry_if_exception_type((Passing, Broken, httpx.TransportError)),
        "wait": wait,
        "stop": stop,
        "reraise": True,
    }
