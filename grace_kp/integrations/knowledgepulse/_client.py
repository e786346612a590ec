"""Contributes selected traces to a knowledge registry: decides which traces may leave, with which contents, and sends each once.

    registry = KnowledgePulse("https://registry.example", key="…")
    grace.on_complete(registry)              # contributes finished traces in the background from now on
    registry.prepare(trace).body             # the exact bytes that would leave

Nothing leaves unless you ask for it. A trace needs the visibility `network` or `org` (the default is `private`) and a quality score of at
least 0.75. Secrets and identifiers are removed from every field.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tenacity import Retrying

from grace_kp.background import to_thread
from grace_kp.errors import MissingExtra, SettingsError, brief
from grace_kp.integrations.knowledgepulse._outbox import Contributed, Outbox, TemporaryFailure, post, retry_rules
from grace_kp.levels import waits
from grace_kp.settings import Settings
from grace_kp.trace import ReasoningTrace, redact_text, redact_value, refuse_what_json_cannot_hold

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The request that would send one trace, or the reason why the trace may not leave."""

    id: str
    eligible: bool
    reason: str = ""
    """Why the trace may not leave; empty where it may."""
    method: str = "POST"
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The key is masked."""
    body: bytes = b""
    """The JSON document."""
    idempotency_key: str = ""
    """SHA-256 of the body, hexadecimal."""


KEY = "GRACE_KP_REGISTRY_KEY"
"""The environment variable that holds the key."""
PATH = "/v1/knowledge"
THRESHOLD = 0.75
_SCHEMA = {
    "@context", "@type", "id", "source_skill", "metadata", "task", "steps", "outcome", "knowledge_graph_delta",
}  # fmt: skip
_MESSAGE = 300
_ID = re.compile(r"kp:trace:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAMED = re.compile(r"kp:[a-z]{1,20}:")
_SIGNS = re.compile(r"[!-~]+")


class KnowledgePulse:
    """A knowledge registry to contribute traces to.

    Calling it with a trace, as `grace.on_complete(registry)` does, puts the trace in a queue; a background thread sends it, so
    that neither agents nor the store wait for the registry.
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
        """Check the settings, without a request.

        Args:
            url: the registry's address, with https unless it is on this machine; the setting `registry_url` when None.
            key: the registry's key; the environment variable GRACE_KP_REGISTRY_KEY when None.
            threshold: minimum quality score, 0 to 1.
            timeout: the longest duration of one attempt, in seconds.
            deadline: the longest duration of a contribution with all its attempts, in seconds.
            include_grace: also send the fields of this library beyond the public schema, under `grace`.
            max_waiting: capacity of the queue; further traces are counted and not sent.
            client: an httpx.Client to use, for a proxy or certificates of your own.

        Raises:
            SettingsError: the address is missing or would send the key unencrypted, or a number is out of range.
        """
        self.url = _check_url(Settings.load().registry_url if url is None else url)
        numbers = {"threshold": (threshold, 1), "timeout": (timeout, 3_600), "deadline": (deadline, 3_600)}
        for name, (value, most) in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise SettingsError(f"{name} must be a number from 0 to {most}, not {brief(value)}")
            if not value and name != "threshold":
                raise SettingsError(f"{name} must be more than 0 seconds")
        if isinstance(max_waiting, bool) or not isinstance(max_waiting, int) or max_waiting < 1:
            raise SettingsError(f"max_waiting must be a whole number from 1, not {brief(max_waiting)}")
        self.threshold = threshold
        self.timeout = timeout
        self.deadline = deadline
        self.include_grace = include_grace
        self._key = key
        self._client = client
        self._trust: Any = None
        self._outbox = Outbox(self._contribute, max_waiting=max_waiting)

    def prepare(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contribution:
        """Return the exact request that would send this trace, without sending it.

        Raises:
            InvalidTrace: the argument is not a valid trace.
        """
        whole = trace if isinstance(trace, ReasoningTrace) else ReasoningTrace.model_validate(dict(trace))
        reason = self._why_not(whole)
        if reason:
            return Contribution(id=whole.id, eligible=False, reason=reason)
        body = self._body(whole)
        digest = hashlib.sha256(body).hexdigest()
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Authorization": "Bearer ***",
            "Content-Type": "application/json",
            "Idempotency-Key": digest,
            "User-Agent": f"grace-kp/{sys.modules['grace_kp'].__version__}",
        }
        return Contribution(
            id=whole.id, eligible=True, url=self.url + PATH, headers=headers, body=body, idempotency_key=digest
        )

    def _why_not(self, trace: ReasoningTrace) -> str:
        """Return why a trace may not leave, or an empty string. This reads none of the trace's content."""
        metadata, status = trace.metadata, (trace.grace or {}).get("status")
        if str(metadata.visibility) not in {"network", "org"}:
            return f"its visibility is {metadata.visibility}, not network or org"
        if waits(status) or status == "interrupted":
            return f"it is {status}"
        if not metadata.quality_score >= self.threshold:
            return f"its score is {metadata.quality_score:g}, below {self.threshold:g}"
        return ""

    def _body(self, trace: ReasoningTrace) -> bytes:
        names = _SCHEMA | {"grace"} if self.include_grace else _SCHEMA
        kept = {name: value for name, value in trace.to_dict().items() if name in names}
        refuse_what_json_cannot_hold(kept)
        metadata = {name: _bare(value) for name, value in kept["metadata"].items()}
        bare = {name: _bare(value) for name, value in kept.items()}
        document: dict[str, Any] = redact_value({**bare, "metadata": metadata}, identifiers=True)
        if _ID.fullmatch(trace.id):
            document["id"] = trace.id  # redaction may take its digits for a phone number
        document["metadata"]["created_at"] = kept["metadata"]["created_at"]
        if document["metadata"]["privacy_level"] == "private":
            document["metadata"]["privacy_level"] = "aggregated"
        text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", errors="replace")

    def check(self) -> None:
        """Check that contributing can work, without a request.

        Raises:
            SettingsError: the key is missing or cannot be sent.
            MissingExtra: httpx is not installed.
        """
        self._bearer()
        try:
            import httpx  # noqa: F401
        except ImportError:
            raise MissingExtra("contributing to a registry", "knowledgepulse") from None

    def contribute(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contributed:
        """Send a trace if it may leave, and wait for the response. A failure of the registry is a result, not an exception.

        Raises:
            InvalidTrace: the argument is not a valid trace.
            SettingsError: the key is missing or cannot be sent.
            MissingExtra: httpx is not installed.
        """
        return self._contribute(trace)

    async def acontribute(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contributed:
        """`contribute` without blocking the event loop."""
        return await to_thread(self.contribute, trace)

    def _contribute(self, trace: ReasoningTrace | Mapping[str, Any], seconds: float | None = None) -> Contributed:
        prepared = self.prepare(trace)
        if not prepared.eligible:
            return Contributed(id=prepared.id, status="not_eligible", reason=prepared.reason)
        ends = time.monotonic() + (self.deadline if seconds is None else min(seconds, self.deadline))
        key = self._bearer()
        with self._outbox.importing:
            self.check()
            "".encode("idna")  # sockets import this codec on first use, and a fork must not interrupt an import
            client = self._client or self._new_client()
        try:
            return self._send(prepared, client, key, ends)
        finally:
            if self._client is None:
                client.close()

    def _send(self, prepared: Contribution, client: httpx.Client, key: str, ends: float) -> Contributed:
        import httpx

        headers = {**prepared.headers, "Authorization": f"Bearer {key}"}
        attempts = 0
        try:
            for attempt in Retrying(**retry_rules(ends)):
                with attempt:
                    attempts += 1
                    left = min(self.timeout, max(0.01, ends - time.monotonic()))
                    status, text = post(client, prepared.url, headers, prepared.body, left)
        except (TemporaryFailure, httpx.HTTPError, httpx.InvalidURL) as error:
            code = getattr(error, "status", None)
            return self._failure(prepared.id, str(error) or type(error).__name__, key, attempts, code)
        if status in {200, 201, 202, 204}:
            return Contributed(id=prepared.id, status="sent", http_status=status, attempts=attempts)
        if status == 409:
            return Contributed(id=prepared.id, status="already_there", http_status=status, attempts=attempts)
        text = "redirects are not followed" if 300 <= status < 400 else text
        return self._failure(prepared.id, f"HTTP {status}: {text}".rstrip(": "), key, attempts, status)

    def _bearer(self) -> str:
        key = (self._key or os.environ.get(KEY) or "").strip()
        if not key:
            raise SettingsError(f"no key for the registry: set {KEY}, or pass key")
        if not _SIGNS.fullmatch(key):
            raise SettingsError(f"the key for the registry ({KEY}, or key) must be printable ASCII without spaces")
        return key

    def _new_client(self) -> httpx.Client:
        import httpx

        if not self.url.startswith("https:"):  # on this machine only; a proxy would receive the key unencrypted
            return httpx.Client(follow_redirects=False, trust_env=False)
        self._trust = self._trust or httpx.create_ssl_context()  # kept, because loading all certificates is slow
        return httpx.Client(follow_redirects=False, verify=self._trust)

    def _failure(self, id: str, reason: str, key: str, attempts: int, status: int | None) -> Contributed:  # noqa: A002
        text = redact_text(" ".join(reason.replace(key, "***").split()), identifiers=True)[:_MESSAGE]
        return Contributed(id=id, status="failed", http_status=status, attempts=attempts, reason=text)

    # In the background

    def __call__(self, trace: ReasoningTrace) -> None:
        """Put a finished trace in the queue, if it may leave."""
        if self._why_not(trace):
            self._outbox.count("not_eligible")
        else:
            self._outbox.put(trace)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the queue is empty; return False after `timeout` seconds."""
        return self._outbox.flush(timeout)

    def close(self, timeout: float = 30.0) -> bool:
        """Flush and stop the thread. Traces left after `timeout` seconds, and later ones, are counted and not sent."""
        return self._outbox.close(timeout)

    def status(self) -> dict[str, Any]:
        """Return how many traces were sent, already there, not eligible, failed, dropped or are waiting, and the last problem."""
        return self._outbox.status()

    def __repr__(self) -> str:
        return f"KnowledgePulse({self.url!r}, threshold={self.threshold:g})"


def _bare(value: Any) -> Any:
    """Redact identifiers such as `kp:agent:…` without their prefix, because the rules miss a part of what follows a colon."""
    if isinstance(value, list):
        return [_bare(item) for item in value]
    begins = _NAMED.match(value) if isinstance(value, str) else None
    return begins[0] + redact_text(value[begins.end() :], identifiers=True) if begins else value


def _check_url(url: str | None) -> str:
    if not url:
        raise SettingsError("no registry: pass its url, or set registry_url (GRACE_KP_REGISTRY_URL)")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        usable = False
    if "@" in url:  # checked first, because the other messages show the address
        raise SettingsError("registry_url must not contain a user, a password or @; put the key into " + KEY)
    if not usable or "?" in url or "#" in url or not url.isprintable() or " " in url:
        shown = brief(re.split("[?#]", url)[0])
        raise SettingsError(
            f"registry_url must be an address like https://registry.example, without ? and #, not {shown}"
        )
    try:
        is_here = parts.hostname == "localhost" or ipaddress.ip_address(str(parts.hostname)).is_loopback
    except ValueError:
        is_here = False
    if parts.scheme == "http" and not is_here:
        raise SettingsError(f"registry_url must begin with https, or the key would be sent in the clear: {brief(url)}")
    return url.rstrip("/")
