"""Contributing chosen traces to a knowledge registry: what would leave, whether it may, and sending it once.

    registry = KnowledgePulse("https://registry.example", key="…")
    grace.on_complete(registry)              # every finished trace that may leave, from now on, in the background
    registry.prepare(trace).body             # or look first: exactly what would leave

Nothing leaves by itself. A trace must be visible to `network` or `org` (they are `private` unless told otherwise) and score 0.75; secrets
and identifiers are removed from every field of it.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import ipaddress
import json
import logging
import os
import queue
import re
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from grace_kp.errors import MissingExtra, SettingsError, brief
from grace_kp.integrations._sending import Broken, Passing, post, waiting
from grace_kp.trace import ReasoningTrace
from grace_kp.trace._redact import redact_text, redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

__all__ = ["KEY", "Contributed", "Contribution", "KnowledgePulse"]

KEY = "GRACE_KP_REGISTRY_KEY"
"""The environment variable that holds the key."""
PATH = "/v1/knowledge"
THRESHOLD = 0.75
_SCHEMA = {
    "@context", "@type", "id", "source_skill", "metadata", "task", "steps", "outcome", "knowledge_graph_delta",
}  # fmt: skip
_MESSAGE = 300
_ID = re.compile(r"kp:trace:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_log = logging.getLogger("grace_kp.registry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What would leave for one trace, or why nothing may."""

    id: str
    eligible: bool
    reason: str = ""
    """Why it may not leave; empty where it may."""
    method: str = "POST"
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Without the key itself."""
    body: bytes = b""
    """The JSON document, to the byte."""
    idempotency_key: str = ""
    """SHA-256 of the body, hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributed:
    """What came of contributing one trace."""

    id: str
    status: str
    """`sent`, `already_there`, `not_eligible` or `failed`."""
    http_status: int | None = None
    attempts: int = 0
    reason: str = ""


class KnowledgePulse:
    """A knowledge registry, and what may go there.

    Calling it with a trace, which is what `grace.on_complete(registry)` does, puts the trace in a queue of its own; a thread sends what
    is in there, so that neither agents nor the store wait for the registry.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        threshold: float = THRESHOLD,
        timeout: float = 10.0,
        deadline: float = 30.0,
        include_grace: bool = False,
        max_waiting: int = 1_000,
        client: httpx.Client | None = None,
    ) -> None:
        """Name a registry.

        Args:
            url: its address, with https unless it is on this machine; the setting `registry_url` when None.
            key: its key; the environment variable GRACE_KP_REGISTRY_KEY when None.
            threshold: the least quality score, 0 to 1.
            timeout: seconds for one attempt.
            deadline: seconds for a contribution with all its attempts.
            include_grace: let what this library knows beyond the public schema leave too, under `grace`.
            max_waiting: how many traces wait in the queue at the most; what comes beyond that is counted and not sent.
            client: an httpx.Client to use, for a proxy or certificates of your own.

        Raises:
            SettingsError: no address, or one that would send the key in the clear; a number that cannot be used.
        """
        if url is None:
            from grace_kp.settings import Settings

            url = Settings.load().registry_url
        self.url = _checked(url)
        for name, value, most in (
            ("threshold", threshold, 1),
            ("timeout", timeout, 3_600),
            ("deadline", deadline, 3_600),
        ):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise SettingsError(f"{name} must be a number from 0 to {most}, not {brief(value)}")
        self.threshold = threshold
        self.timeout = timeout
        self.deadline = deadline
        self.include_grace = include_grace
        self._key = key
        self._client = client
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._fresh()
        atexit.register(self.close, 2.0)

    def _fresh(self) -> None:
        self._pid = os.getpid()
        self._queue: queue.Queue[ReasoningTrace | None] = queue.Queue(self._max_waiting)
        self._thread: threading.Thread | None = None
        self._counts = dict.fromkeys(("sent", "already_there", "not_eligible", "failed", "dropped"), 0)
        self._last_problem = ""

    def prepare(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contribution:
        """What would leave for this trace, to the byte; it sends nothing.

        Raises:
            InvalidTrace: it is no trace.
        """
        whole = trace if isinstance(trace, ReasoningTrace) else ReasoningTrace.model_validate(dict(trace))
        metadata = whole.metadata
        score = metadata.quality_score
        if str(metadata.visibility) not in {"network", "org"}:
            return Contribution(
                id=whole.id, eligible=False, reason=f"its visibility is {metadata.visibility}, not network or org"
            )
        if (whole.grace or {}).get("status") in {"suspended", "interrupted"}:
            return Contribution(id=whole.id, eligible=False, reason=f"it is {(whole.grace or {})['status']}")
        if not score >= self.threshold:
            return Contribution(id=whole.id, eligible=False, reason=f"its score is {score:g}, below {self.threshold:g}")
        body = self._body(whole)
        digest = hashlib.sha256(body).hexdigest()
        headers = {"Content-Type": "application/json", "Idempotency-Key": digest, "Authorization": "Bearer ***"}
        return Contribution(
            id=whole.id, eligible=True, url=self.url + PATH, headers=headers, body=body, idempotency_key=digest
        )

    def _body(self, trace: ReasoningTrace) -> bytes:
        kept = {
            name: value
            for name, value in trace.to_dict().items()
            if name in _SCHEMA or (name == "grace" and self.include_grace)
        }
        document = redact_value(kept, identifiers=True)
        if _ID.fullmatch(trace.id):
            document["id"] = trace.id  # its digits may look like somebody's number
        metadata = document["metadata"] = dict(document["metadata"])
        metadata["created_at"] = trace.to_dict()["metadata"]["created_at"]
        if metadata["privacy_level"] == "private":
            metadata["privacy_level"] = "aggregated"
        text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", errors="replace")

    def contribute(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contributed:
        """Send a trace if it may leave, and wait for what comes of it; no failure of the registry is an exception.

        Raises:
            InvalidTrace: it is no trace.
            SettingsError: there is no key.
            MissingExtra: httpx is not installed.
        """
        prepared = self.prepare(trace)
        if not prepared.eligible:
            return Contributed(id=prepared.id, status="not_eligible", reason=prepared.reason)
        return self._send(prepared)

    async def acontribute(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contributed:
        """`contribute` without blocking the event loop."""
        return await asyncio.to_thread(self.contribute, trace)

    def _send(self, prepared: Contribution) -> Contributed:
        key = self._key or os.environ.get(KEY)
        if not key:
            raise SettingsError(f"no key for the registry: set {KEY}, or pass key")
        try:
            import httpx
            from tenacity import RetryError, Retrying
        except ImportError:
            raise MissingExtra("contributing to a registry", "knowledgepulse") from None
        headers = {**prepared.headers, "Authorization": f"Bearer {key}"}
        ends = time.monotonic() + self.deadline
        attempts = 0
        client = self._client or httpx.Client(follow_redirects=False)
        try:
            for attempt in Retrying(**waiting(ends)):
                with attempt:
                    attempts += 1
                    left = min(self.timeout, max(0.01, ends - time.monotonic()))
                    status, said = post(client, prepared.url, headers, prepared.body, left)
        except (Passing, Broken, RetryError, httpx.HTTPError) as error:
            code = error.status if isinstance(error, Passing) else None
            return self._failed(prepared.id, str(error) or type(error).__name__, key, attempts, code)
        finally:
            if self._client is None:
                client.close()
        if status in {200, 201, 202, 204}:
            return Contributed(id=prepared.id, status="sent", http_status=status, attempts=attempts)
        if status == 409:
            return Contributed(id=prepared.id, status="already_there", http_status=status, attempts=attempts)
        said = "redirects are not followed" if 300 <= status < 400 else said
        return self._failed(prepared.id, f"HTTP {status}: {said}".rstrip(": "), key, attempts, status)

    def _failed(self, id: str, reason: str, key: str, attempts: int, status: int | None) -> Contributed:  # noqa: A002
        text = redact_text(" ".join(reason.replace(key, "***").split()), identifiers=True)[:_MESSAGE]
        return Contributed(id=id, status="failed", http_status=status, attempts=attempts, reason=text)

    # In the background

    def __call__(self, trace: ReasoningTrace) -> None:
        """Put a finished trace in the queue, if it may leave."""
        if not self.prepare(trace).eligible:
            self._counts["not_eligible"] += 1
            return
        with self._lock:
            if self._pid != os.getpid():  # what was queued before a fork is the parent's to send
                self._fresh()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="grace_kp registry", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait(trace)
        except queue.Full:
            self._counts["dropped"] += 1
            self._problem("more traces wait than the queue holds; some are not sent")

    def _work(self) -> None:
        waiting_here = self._queue
        while True:
            trace = waiting_here.get()
            try:
                if trace is None:
                    return
                done = self.contribute(trace)
                self._counts[done.status] += 1
                if done.status == "failed":
                    self._problem(f"a trace was not sent: {done.reason}")
            except Exception as error:  # noqa: BLE001 — a registry that cannot be used is reported, never raised
                self._counts["failed"] += 1
                self._problem(f"a trace was not sent: {error}")
            finally:
                waiting_here.task_done()

    def _problem(self, message: str) -> None:
        if message != self._last_problem:
            _log.warning(message)
        self._last_problem = message

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the queue is empty; False where that took too long."""
        ends = time.monotonic() + timeout
        while self._queue.unfinished_tasks and self._pid == os.getpid():
            if time.monotonic() >= ends:
                return False
            time.sleep(0.01)
        return True

    def close(self, timeout: float = 30.0) -> None:
        """Flush, and end the thread."""
        self.flush(timeout)
        thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid():
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                return

    def status(self) -> dict[str, Any]:
        """How many traces were sent, were there already, may not leave, failed or were dropped; how many wait, and what went wrong last."""
        return {**self._counts, "waiting": self._queue.qsize(), "last_problem": self._last_problem or None}

    def __repr__(self) -> str:
        return f"KnowledgePulse({self.url!r}, threshold={self.threshold:g})"


def _checked(url: str | None) -> str:
    if not url:
        raise SettingsError("no registry: pass its url, or set registry_url (GRACE_KP_REGISTRY_URL)")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise SettingsError(f"registry_url must be an address like https://registry.example, not {brief(url)}")
    if parts.username or parts.password:
        raise SettingsError("registry_url must hold no user and no password; the key goes into " + KEY)
    if parts.scheme == "http" and not _is_here(parts.hostname):
        raise SettingsError(f"registry_url must begin with https, or the key would be sent in the clear: {brief(url)}")
    return url.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
