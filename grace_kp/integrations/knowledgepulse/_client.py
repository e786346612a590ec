"""Contribution of chosen traces to a knowledge registry: which traces may leave, with which contents, sent once each.

    registry = KnowledgePulse("https://registry.example", key="…")
    grace.on_complete(registry)              # contributes finished traces in the background from now on
    registry.prepare(trace).body             # shows exactly what would leave

Nothing leaves unless you ask for it. A trace must be visible to `network` or `org` (the default is `private`) and have a quality score
of at least 0.75. Secrets and identifiers are removed from every field.
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
from grace_kp.integrations.knowledgepulse._outbox import Contributed, Outbox, TemporaryFailure, post, waiting
from grace_kp.levels import waits
from grace_kp.trace import ReasoningTrace, redact_text, redact_value, refuse_what_json_cannot_hold

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The request that would send one trace, or why the trace may not leave."""

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
        """Check the settings of a registry; contact nobody.

        Args:
            url: its address, with https unless it is on this machine; the setting `registry_url` when None.
            key: its key; the environment variable GRACE_KP_REGISTRY_KEY when None.
            threshold: minimum quality score, 0 to 1.
            timeout: seconds for one attempt.
            deadline: seconds for a contribution, all attempts included.
            include_grace: also send the fields of this library beyond the public schema, under `grace`.
            max_waiting: the most traces that wait in the queue; further traces are counted and not sent.
            client: an httpx.Client to use, for a proxy or certificates of your own.

        Raises:
            SettingsError: there is no address, the address would send the key in the clear, or a number is out of range.
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
        """Return the request that would send this trace, to the byte; send nothing.

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
        """Return why a trace may not leave; empty if it may. No text of the trace is read."""
        metadata, status = trace.metadata, (trace.grace or {}).get("status")
        if str(metadata.visibility) not in {"network", "org"}:
            return f"its visibility is {metadata.visibility}, not network or org"
        if waits(status) or status == "interrupted":
            return f"it is {status}"
        if not metadata.quality_score >= self.threshold:
            return f"its score is {metadata.quality_score:g}, below {self.threshold:g}"
        return ""

    def _body(self, trace: ReasoningTrace) -> bytes:
        kept = {
            name: value
            for name, value in trace.to_dict().items()
            if name in _SCHEMA or (name == "grace" and self.include_grace)
        }
        refuse_what_json_cannot_hold(kept)
        metadata = {name: _bare(value) for name, value in kept["metadata"].items()}
        bare = {name: _bare(value) for name, value in kept.items()}
        document: dict[str, Any] = redact_value({**bare, "metadata": metadata}, identifiers=True)
        if _ID.fullmatch(trace.id):
            document["id"] = trace.id  # its digits may look like a phone number
        document["metadata"]["created_at"] = kept["metadata"]["created_at"]
        if document["metadata"]["privacy_level"] == "private":
            document["metadata"]["privacy_level"] = "aggregated"
        text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", errors="replace")

    def check(self) -> None:
        """Check that contributing can work, without asking the registry.

        Raises:
            SettingsError: there is no key, or the key cannot be sent.
            MissingExtra: httpx is not installed.
        """
        self._bearer()
        self._import()

    def contribute(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contributed:
        """Send a trace if it may leave, and wait for the answer. A failure of the registry is a result, not an exception.

        Raises:
            InvalidTrace: the argument is not a valid trace.
            SettingsError: there is no key, or the key cannot be sent.
            MissingExtra: httpx is not installed.
        """
        return self._contribute(trace)

    async def acontribute(self, trace: ReasoningTrace | Mapping[str, Any]) -> Contributed:
        """Do what `contribute` does without blocking the event loop."""
        return await to_thread(self.contribute, trace)

    def _contribute(self, trace: ReasoningTrace | Mapping[str, Any], seconds: float | None = None) -> Contributed:
        prepared = self.prepare(trace)
        if not prepared.eligible:
            return Contributed(id=prepared.id, status="not_eligible", reason=prepared.reason)
        ends = time.monotonic() + (self.deadline if seconds is None else min(seconds, self.deadline))
        key = self._bearer()
        with self._outbox.importing:
            self._import()
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
            for attempt in Retrying(**waiting(ends)):
                with attempt:
                    attempts += 1
                    left = min(self.timeout, max(0.01, ends - time.monotonic()))
                    status, text = post(client, prepared.url, headers, prepared.body, left)
        except (TemporaryFailure, httpx.HTTPError, httpx.InvalidURL) as error:
            code = getattr(error, "status", None)
            return self._failed(prepared.id, str(error) or type(error).__name__, key, attempts, code)
        if status in {200, 201, 202, 204}:
            return Contributed(id=prepared.id, status="sent", http_status=status, attempts=attempts)
        if status == 409:
            return Contributed(id=prepared.id, status="already_there", http_status=status, attempts=attempts)
        text = "redirects are not followed" if 300 <= status < 400 else text
        return self._failed(prepared.id, f"HTTP {status}: {text}".rstrip(": "), key, attempts, status)

    def _bearer(self) -> str:
        key = (self._key or os.environ.get(KEY) or "").strip()
        if not key:
            raise SettingsError(f"no key for the registry: set {KEY}, or pass key")
        if not _SIGNS.fullmatch(key):
            raise SettingsError(f"the key for the registry ({KEY}, or key) must be ASCII without blanks")
        return key

    def _import(self) -> None:
        try:
            import httpx  # noqa: F401
        except ImportError:
            raise MissingExtra("contributing to a registry", "knowledgepulse") from None
        "".encode("idna")  # sockets import this codec on first use, and no fork may fall in the middle of that

    def _new_client(self) -> httpx.Client:
        import httpx

        trusting: dict[str, Any] = {"trust_env": False}  # on this machine; a proxy would receive the key in the clear
        if self.url.startswith("https:"):
            if self._trust is None:
                self._trust = httpx.create_ssl_context()  # kept, because it reads all certificates
            trusting = {"verify": self._trust}
        return httpx.Client(follow_redirects=False, **trusting)

    def _failed(self, id: str, reason: str, key: str, attempts: int, status: int | None) -> Contributed:  # noqa: A002
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
        """Flush and end the thread. Traces that still wait after `timeout` seconds, or come later, are counted and not sent."""
        return self._outbox.close(timeout)

    def status(self) -> dict[str, Any]:
        """Return how many traces were sent, already there, not eligible, failed, dropped or are waiting, and the last problem."""
        return self._outbox.status()

    def __repr__(self) -> str:
        return f"KnowledgePulse({self.url!r}, threshold={self.threshold:g})"


def _bare(value: Any) -> Any:
    """Redact an identifier such as `kp:agent:…` without its prefix: behind a colon the rules would miss a part of it."""
    if isinstance(value, list):
        return [_bare(item) for item in value]
    begins = _NAMED.match(value) if isinstance(value, str) else None
    return begins[0] + redact_text(value[begins.end() :], identifiers=True) if begins else value


def _checked(url: str | None) -> str:
    if not url:
        raise SettingsError("no registry: pass its url, or set registry_url (GRACE_KP_REGISTRY_URL)")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        usable = False
    if "@" in url:  # before anything shows the address
        raise SettingsError("registry_url must hold no user and no password, and no @ at all; the key goes into " + KEY)
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
