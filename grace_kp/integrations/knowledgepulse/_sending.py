"""One request to a registry, bounded in time and size, and the rules for further attempts."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Any

from tenacity import retry_if_exception_type, wait_exponential, wait_random

from grace_kp.background import DeadlineExceeded, call_within, retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx
    from tenacity import RetryCallState

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
MAX_ANSWER = 64 << 10
TOO_LONG = f"the registry's answer is longer than {MAX_ANSWER:,} bytes"
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0


class Passing(Exception):
    """The answer is temporary: another attempt may succeed."""

    def __init__(self, status: int, text: str, retry_after: float | None) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(f"HTTP {status}: {text}".rstrip(": "))


class Broken(Exception):
    """The answer did not end in time, or is too long."""


def post(client: httpx.Client, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> tuple[int, str]:
    """Post, and return status and text of the answer.

    Where the status settles it, as with 401, what is wrong with the rest of the answer does not matter.

    Raises:
        Passing: the answer asks for another attempt.
        Broken: it took too long, or is too large.
        httpx.HTTPError: no answer was had.
    """
    try:
        # The client bounds each read, not the whole of an answer; this bounds everything.
        return call_within(
            seconds + 0.05,
            lambda: _posted(client, url, headers, body, seconds),
            name="registry request",
            or_inline=True,
        )
    except DeadlineExceeded:
        raise Broken(f"the registry did not answer within {seconds:g} s") from None


def _posted(client: httpx.Client, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> tuple[int, str]:
    import httpx

    ends = time.monotonic() + seconds
    read = bytearray()
    with client.stream(
        "POST", url, headers=dict(headers), content=body, timeout=seconds, follow_redirects=False
    ) as answer:
        status = answer.status_code
        try:
            # As it came: httpx unpacks a chunk as a whole, and a small one may hold gigabytes.
            for chunk in answer.iter_raw():
                read += chunk
                if time.monotonic() > ends:
                    raise Broken(f"the registry did not answer within {seconds:g} s")
                if len(read) > MAX_ANSWER:
                    raise Broken(TOO_LONG)
            read = _unpacked(read, answer.headers.get("content-encoding", "identity"))
        except (Broken, httpx.HTTPError):
            if 200 <= status < 300:
                raise
            if answer.headers.get("content-encoding", "identity") != "identity":
                read = bytearray()
        text = read[:MAX_ANSWER].decode("utf-8", errors="replace")
        if status in AGAIN:
            raise Passing(status, text, retry_after(answer.headers.get("retry-after")))
        return status, text


def _unpacked(data: bytearray, encoding: str) -> bytearray:
    """Return the data of an answer that is compressed although the request asked for none.

    Raises:
        Broken: it is too long, or cannot be unpacked.
    """
    if encoding.strip().lower() in {"", "identity"} or not data:
        return data
    if encoding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        raise Broken(f"the registry's answer is compressed with {encoding[:40]!r}; only gzip and deflate can be read")
    try:
        text = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(bytes(data), MAX_ANSWER + 1)
    except zlib.error as error:
        raise Broken(f"the registry's answer cannot be unpacked: {error}") from None
    if len(text) > MAX_ANSWER:
        raise Broken(TOO_LONG)
    return bytearray(text)


def waiting(ends: float) -> dict[str, Any]:
    """Return tenacity's rules: exponential pauses with jitter, at least as long as Retry-After asks, and no attempt after `ends`."""
    import httpx

    grows = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)

    def wait(state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome is not None else None
        asked = getattr(failure, "retry_after", None)
        return max(float(grows(state)), asked or 0.0)

    def stop(state: RetryCallState) -> bool:
        return bool(time.monotonic() + state.upcoming_sleep >= ends)

    network = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError)
    return {
        "retry": retry_if_exception_type((Passing, Broken, httpx.DecodingError, *network)),
        "wait": wait,
        "stop": stop,
        "reraise": True,
    }
