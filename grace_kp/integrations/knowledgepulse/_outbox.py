"""The queue of traces for a registry, the worker that sends them in the background, and the HTTP request with its retries."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import retry_if_exception_type, wait_exponential, wait_random

from grace_kp.background import DeadlineExceeded, Lock, Resident, Worker, call_within, retry_after, watch
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx
    from tenacity import RetryCallState

    from grace_kp.trace import ReasoningTrace

    Send = Callable[[ReasoningTrace, float | None], "Contributed"]

EXIT_SECONDS = 2.0
STATUSES = ("sent", "already_there", "not_eligible", "failed", "dropped")
_log = logging.getLogger("grace_kp.registry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributed:
    """The outcome of contributing one trace."""

    id: str
    status: str
    """`sent`, `already_there`, `not_eligible` or `failed`."""
    http_status: int | None = None
    attempts: int = 0
    reason: str = ""


class Outbox(Resident):
    """A bounded queue and its worker.

    Args:
        send: sends one trace, within a number of seconds if not None, and returns the outcome.
        max_waiting: capacity of the queue; further traces are counted and not sent.
    """

    def __init__(self, send: Send, *, max_waiting: int) -> None:
        self._send = send
        self._max_waiting = max_waiting
        self._closed = False
        self.after_fork()
        self._worker = Worker(self._send_next, name="registry")
        watch(self, last=True)

    def after_fork(self) -> None:
        """Empty the queue in the child, because the parent sends these traces."""
        self.importing = threading.RLock()
        """Held during imports, which a fork must not interrupt. Reentrant, because an import may itself start a process."""
        self._changed = threading.Condition()
        self._waiting: deque[ReasoningTrace] = deque()
        self._sending = 0
        self._counts = dict.fromkeys(STATUSES, 0)
        self._logged: set[str] = set()
        self._last_problem: str | None = None

    def import_locks(self) -> Sequence[Lock]:
        return (self.importing,)

    def put(self, trace: ReasoningTrace) -> None:
        with self._changed:
            accepted = not self._closed and len(self._waiting) < self._max_waiting
            if accepted:
                self._waiting.append(trace)
        if accepted:
            self._worker.wake()
        elif self._closed:
            self._drop("traces came after the registry was closed and are not sent")
        else:
            self._drop(f"more than {self._max_waiting:,} traces wait; some are not sent")

    def count(self, status: str, number: int = 1) -> None:
        with self._changed:
            self._counts[status] += number

    def _send_next(self) -> float | None:
        with self._changed:
            if not self._waiting:
                return None
            trace = self._waiting.popleft()
            self._sending += 1
        try:
            self._send_one(trace, None)
        finally:
            with self._changed:
                self._sending -= 1
                self._changed.notify_all()
        return 0.0

    def _send_one(self, trace: ReasoningTrace, seconds: float | None) -> None:
        try:
            contributed = self._send(trace, seconds)
        except Exception as error:  # noqa: BLE001 — errors of the registry are reported, never raised
            self.count("failed")
            self._report(type(error).__name__, f"a trace was not sent: {redacted_error(error)}")
            return
        self.count(contributed.status)
        if contributed.status == "failed":
            self._report(f"HTTP {contributed.http_status}", f"a trace was not sent: {contributed.reason}")
        else:
            self._logged.clear()  # log the next problem again

    def _drop(self, reason: str, number: int = 1) -> None:
        self.count("dropped", number)
        self._report(reason, reason)

    def _report(self, kind: str, message: str) -> None:
        self._last_problem = message
        if kind not in self._logged:
            self._logged.add(kind)
            _log.warning(message)

    def _drop_waiting(self, reason: str) -> None:
        with self._changed:
            dropped = len(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        if dropped:
            self._drop(reason, dropped)

    def flush(self, timeout: float) -> bool:
        """Wait until all traces are sent; return False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout)

    def close(self, timeout: float) -> bool:
        flushed = self.flush(timeout)
        with self._changed:
            self._closed = True
        self._drop_waiting("the registry was closed before all traces were sent")
        return flushed

    def at_exit(self) -> None:
        """Send waiting traces for at most `EXIT_SECONDS`."""
        if self._closed:
            return
        ends = time.monotonic() + EXIT_SECONDS
        if self._worker.wake():
            self.flush(EXIT_SECONDS)
        while self._waiting and (seconds := ends - time.monotonic()) > 0:
            self._send_one(self._waiting.popleft(), seconds)
        self._closed = True
        self._drop_waiting("the program ended before all traces were sent")

    def status(self) -> dict[str, Any]:
        with self._changed:
            waiting = len(self._waiting) + self._sending
            return {**self._counts, "waiting": waiting, "last_problem": self._last_problem}


AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
MAX_ANSWER = 64 << 10
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0


class TemporaryFailure(Exception):
    """Another attempt may succeed."""

    def __init__(self, status: int | None, text: str, retry_after: float | None = None) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(text if status is None else f"HTTP {status}: {text}".rstrip(": "))


def post(client: httpx.Client, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> tuple[int, str]:
    """Post; return the status, and for failures the beginning of the response."""
    import httpx

    ends = time.monotonic() + seconds
    options: dict[str, Any] = {"headers": dict(headers), "content": body, "timeout": seconds}

    def send() -> tuple[int, str]:
        read = bytearray()
        with client.stream("POST", url, follow_redirects=False, **options) as answer:
            status = answer.status_code
            # A compressed response, which the request did not ask for, may expand to gigabytes.
            if status >= 300 and "content-encoding" not in answer.headers:
                with suppress(httpx.HTTPError):
                    for chunk in answer.iter_raw():
                        read += chunk
                        if len(read) > MAX_ANSWER or time.monotonic() > ends:
                            break
            text = read[:MAX_ANSWER].decode("utf-8", errors="replace")
            if status in AGAIN:
                raise TemporaryFailure(status, text, retry_after(answer.headers.get("retry-after")))
            return status, text

    try:
        # The client's timeout bounds each read; this bounds the whole response.
        return call_within(seconds + 0.05, send, name="registry request", or_inline=True)
    except DeadlineExceeded:
        raise TemporaryFailure(None, f"the registry did not answer within {seconds:g} s") from None


def retry_rules(ends: float) -> dict[str, Any]:
    """Return arguments for tenacity: exponential pauses with jitter, at least Retry-After, and no attempt after `ends`."""
    import httpx

    grows = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)

    def wait(state: RetryCallState) -> float:
        failure = state.outcome and state.outcome.exception()
        return max(float(grows(state)), getattr(failure, "retry_after", None) or 0.0)

    def stop(state: RetryCallState) -> bool:
        return bool(time.monotonic() + state.upcoming_sleep >= ends)

    network = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError)
    return {
        "retry": retry_if_exception_type((TemporaryFailure, *network)),
        "wait": wait,
        "stop": stop,
        "reraise": True,
    }
