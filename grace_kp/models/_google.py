"""Calls of the Google client: one client per process and event loop, retries within one deadline, errors in one form.

The client is given httpx clients, so that proxies, certificates and tests work as users of httpx expect. It is made on the first
call: importing it takes most of a second.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from grace_kp.background import DeadlineExceeded, call_within, retry_after
from grace_kp.errors import JudgeError, MissingExtra
from grace_kp.models._keys import KEYS, key_in
from grace_kp.trace import describe_error, redact_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RETRIED = frozenset({408, 429, 500, 502, 503, 504})
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
MAX_REPLY_BYTES = 32 << 20


class GoogleCaller:
    """Makes calls with the Google client, sync and async.

    Args:
        api_key: the key; None takes GEMINI_API_KEY or GOOGLE_API_KEY from the environment at the first call.
        base_url: another address of the service, such as a proxy's.
        timeout: seconds for a call with all its retries.
        attempts: how often a call is tried at most.
    """

    def __init__(self, *, api_key: str | None, base_url: str | None, timeout: float, attempts: int) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise ValueError(f"timeout must be a positive number of seconds (got {timeout!r})")
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ValueError(f"attempts must be a whole number >= 1 (got {attempts!r})")
        self._api_key = api_key
        self.base_url = base_url
        self.timeout = float(timeout)
        self.attempts = attempts
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._sync: Any = None
        self._trust: Any = None
        self._of_loop: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def call(self, work: Callable[[Any, Any], Any]) -> tuple[Any, int]:
        """`work(client, http_options)` with retries; its result and the number of attempts.

        Raises:
            JudgeError: it failed for good, or did not end in time.
        """
        client = self._client(is_async=False)
        deadline = time.monotonic() + self.timeout
        tries = [0]

        def attempt() -> Any:
            tries[0] += 1
            return work(client, self._options(deadline))

        def retried() -> Any:
            from tenacity import Retrying

            return Retrying(**self._retrying(deadline))(attempt)

        try:
            # The client bounds each read, not the whole of a reply; this bounds everything.
            return call_within(self.timeout + 0.05, retried, name="model request", or_inline=True), tries[0]
        except DeadlineExceeded:
            raise self._too_late(tries[0]) from None
        except Exception as error:
            raise self._failure(error, max(1, tries[0])) from error

    async def acall(self, work: Callable[[Any, Any], Awaitable[Any]]) -> tuple[Any, int]:
        """As `call`, without blocking the event loop."""
        from tenacity import AsyncRetrying

        client = await asyncio.to_thread(self._client, is_async=True, loop=asyncio.get_running_loop())
        deadline = time.monotonic() + self.timeout
        tries = [0]

        async def attempt() -> Any:
            tries[0] += 1
            return await work(client.aio, self._options(deadline))

        try:
            async with asyncio.timeout(self.timeout + 0.05):
                return await AsyncRetrying(**self._retrying(deadline))(attempt), tries[0]
        except TimeoutError as error:
            raise self._too_late(tries[0]) from error
        except Exception as error:
            raise self._failure(error, max(1, tries[0])) from error

    def _options(self, deadline: float) -> Any:
        """Time for one attempt: half of all at most, so that one that hangs leaves time for another."""
        from google.genai import types

        left = min(deadline - time.monotonic(), self.timeout / 2)
        return types.HttpOptions(timeout=max(1, int(left * 1_000)))

    def _too_late(self, tries: int) -> JudgeError:
        return JudgeError(f"the model did not answer within {self.timeout:g} s", attempts=max(1, tries))

    def _failure(self, error: BaseException, attempts: int) -> JudgeError | MissingExtra:
        return failure(error, attempts, self._api_key or key_in())

    def _retrying(self, deadline: float) -> dict[str, Any]:
        from tenacity import retry_if_exception, wait_exponential_jitter

        grows = wait_exponential_jitter(initial=FIRST_WAIT, max=LONGEST_WAIT, jitter=FIRST_WAIT)

        def wait(state: Any) -> float:
            asked = requested_pause(state.outcome.exception())
            return float(grows(state)) if asked is None else asked

        def stop(state: Any) -> bool:
            return bool(state.attempt_number >= self.attempts or time.monotonic() + state.upcoming_sleep >= deadline)

        return {"retry": retry_if_exception(is_passing), "wait": wait, "stop": stop, "reraise": True}

    def _client(self, *, is_async: bool, loop: Any = None) -> Any:
        with self._lock:
            if self._pid != os.getpid():  # connections that were open before a fork are the parent's
                self._pid, self._sync, self._of_loop = os.getpid(), None, WeakKeyDictionary()
            made = self._of_loop.get(loop) if is_async else self._sync
            if made is None:
                made = self._make()
                if is_async:
                    self._of_loop[loop] = made
                else:
                    self._sync = made
            return made

    def _make(self) -> Any:
        key = self._api_key or key_in()
        if not key:
            raise JudgeError(f"no API key: set {' or '.join(KEYS)}, or pass api_key", attempts=0)
        try:
            import httpx
            from google import genai
            from google.genai import types
        except ImportError:
            raise MissingExtra("Gemini", "gemini") from None
        if self._trust is None:
            self._trust = httpx.create_ssl_context()  # reads all certificates, so it is shared
        plain = httpx.Client(verify=self._trust, event_hooks={"response": [_bound]})
        weakref.finalize(self, plain.close)
        options = types.HttpOptions(
            base_url=self.base_url,
            httpx_client=plain,
            # No connection is kept: it would belong to an event loop whose end nobody is told of.
            httpx_async_client=httpx.AsyncClient(
                verify=self._trust,
                event_hooks={"response": [_abound]},
                limits=httpx.Limits(max_connections=100, max_keepalive_connections=0),
            ),
        )
        return genai.Client(api_key=key, vertexai=False, http_options=options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r}, timeout={self.timeout:g})"


def _streams() -> tuple[type, type]:
    import httpx

    class Bounded(httpx.SyncByteStream):
        """A reply that ends when its time or size is up, also where every single read is quick."""

        def __init__(self, stream: Any, deadline: float) -> None:
            self._stream, self._deadline, self._left = stream, deadline, MAX_REPLY_BYTES

        def __iter__(self) -> Any:
            for chunk in self._stream:
                self._left -= len(chunk)
                _check(self._left, self._deadline)
                yield chunk

        def close(self) -> None:
            self._stream.close()

    class AsyncBounded(httpx.AsyncByteStream):
        """The same for an event loop."""

        def __init__(self, stream: Any, deadline: float) -> None:
            self._stream, self._deadline, self._left = stream, deadline, MAX_REPLY_BYTES

        async def __aiter__(self) -> Any:
            async for chunk in self._stream:
                self._left -= len(chunk)
                _check(self._left, self._deadline)
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    def _check(left: int, deadline: float) -> None:
        if left < 0:
            raise httpx.DecodingError(f"the reply is larger than {MAX_REPLY_BYTES >> 20} MB")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the reply took too long")

    return Bounded, AsyncBounded


def _deadline_of(response: Any) -> float:
    seconds = (response.request.extensions.get("timeout") or {}).get("read")
    return time.monotonic() + (seconds if seconds is not None else 3_600.0)


def _bound(response: Any) -> None:
    response.stream = _streams()[0](response.stream, _deadline_of(response))


async def _abound(response: Any) -> None:
    response.stream = _streams()[1](response.stream, _deadline_of(response))


def _is_network(error: BaseException, names: frozenset[str]) -> bool:
    """Whether it is a network error of httpx or of its fork, which the client may use."""
    return any(
        base.__name__ in names and base.__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2"}
        for base in type(error).__mro__
    )


_PASSING = frozenset({"TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"})


def is_passing(error: BaseException) -> bool:
    """Whether trying again may help: a status that says so, no connection, a timeout."""
    return status_of(error) in RETRIED or _is_network(error, _PASSING) or isinstance(error, ConnectionError)


def status_of(error: BaseException) -> int | None:
    """The HTTP status in an error of the Google client."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def requested_pause(error: BaseException | None) -> float | None:
    """Return the seconds that the service asks to wait: its Retry-After header, or RetryInfo in the body."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    seconds = retry_after(headers.get("retry-after")) if headers is not None else None
    if seconds is not None:
        return seconds
    details = getattr(error, "details", None)
    inner = details.get("error") if isinstance(details, dict) else None
    listed = inner.get("details") if isinstance(inner, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        delay = entry.get("retryDelay") if isinstance(entry, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return retry_after(delay[:-1])
    return None


def failure(error: BaseException, attempts: int, key: str | None = None) -> JudgeError | MissingExtra:
    """Any error of a call as one of ours, without secrets, the key above all."""
    if isinstance(error, JudgeError):
        error.attempts = max(error.attempts, attempts) if error.attempts else 0
        return error
    if isinstance(error, MissingExtra):
        return error
    status = status_of(error)
    if status is not None:
        what = f"HTTP {status} {getattr(error, 'status', None) or ''}".rstrip()
        message = getattr(error, "message", None)
        said = f"{what}: {message}" if message else what
    else:
        said = ": ".join(describe_error(error, 300))
    if key:
        said = said.replace(key, "[REDACTED:api_key]")
    return JudgeError(redact_text(said, identifiers=True)[:500], attempts=attempts, status=status)
