"""Webhooks: what a receiver is notified of, and the signed message it gets. Sending is in `_delivery`.

Messages follow Standard Webhooks (https://www.standardwebhooks.com): the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. They hold
no contents unless the receiver is to get the arguments. Each carries a checkpoint of the chain, so that a receiver who keeps messages can prove
later what the chain was.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from grace_kp.approvals._chain import KINDS
from grace_kp.errors import MissingExtra, SettingsError, brief
from grace_kp.trace.redaction import redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.approvals._tables import Link, Row

EVENTS = tuple(
    sorted(
        KINDS - {"joined", "viewed", "claimed", "released", "standing_used", "forgotten", "account_changed", "refused"}
    )
)
"""What a receiver is notified of by default."""
PREFIX = "whsec_"
VARIABLE = "GRACE_KP_WEBHOOK_SECRET"
"""Environment variable that holds the secret of the receiver that settings name; with several, separated by spaces."""
_SECRET_BYTES = range(24, 65)
_SHOWN_FACTS = (
    "verb",
    "state",
    "level",
    "votes",
    "quorum",
    "group",
    "happened",
    "reported",
    "standing",
    "action",
    "uses",
    "until",
    "marked",
)
"""Facts of an entry that a message holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A receiver of notifications about approvals.

    Raises:
        SettingsError: a field cannot be used. The message shows neither the path of the address nor the secret.
        MissingExtra: httpx is not installed.
    """

    url: str = field(repr=False)
    """Address that messages are posted to, http or https. Its path counts as a secret."""
    secret: str | Sequence[str] = field(repr=False)
    """Secret of Standard Webhooks: `whsec_` and the base64 of 24 to 64 random bytes. With several, messages are signed with each."""
    events: Sequence[str] = EVENTS
    """Kinds of chain entries that the receiver is notified of."""
    link: str | None = None
    """Address of a request for people, with `{id}` in place of its id: `https://reviews.example/approvals/{id}`."""
    with_arguments: bool = False
    """Whether messages about one approval hold the arguments that are decided on, redacted. Sealed values stay sealed."""
    receiver: str = field(init=False, default="")
    """Scheme and host, which may be shown and logged."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "receiver", receiver_of(self.url))
        keys = [self.secret] if isinstance(self.secret, str) else list(self.secret)
        if not keys or not all(_key(key) is not None for key in keys):
            raise SettingsError(
                f"the secret of the webhook to {self.receiver} must be {PREFIX!r} and the base64 of 24 to 64 random bytes"
            )
        unknown = [kind for kind in self.events if kind not in KINDS]
        if isinstance(self.events, str) or unknown or not self.events:
            raise SettingsError(
                f"events of the webhook to {self.receiver} must be among {', '.join(sorted(KINDS))}, not {brief(unknown or self.events)}"
            )
        if self.link is not None:
            _check_link(self.link)
        if find_spec("httpx") is None:
            raise MissingExtra("Webhook", "approvals")

    @property
    def id(self) -> str:
        """Name of the receiver in the store, from which its address cannot be read."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def signed(self, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
        """Return the headers of a message that is sent at `timestamp`, in seconds since the epoch."""
        text = f"{message_id}.{timestamp}.".encode() + body
        keys = [self.secret] if isinstance(self.secret, str) else self.secret
        codes = (hmac.new(_key(key) or b"", text, hashlib.sha256).digest() for key in keys)
        return {
            "content-type": "application/json",
            "user-agent": "grace-kp",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(f"v1,{base64.b64encode(code).decode()}" for code in codes),
        }

    def message(
        self, store: str, link: Link, entry: Mapping[str, Any], row: Row | None, arguments: Mapping[str, Any] | None
    ) -> tuple[str, bytes]:
        """Return id and body of the message about an entry. The id is the same whenever and by whomever it is sent."""
        actor, facts = entry["actor"] or {}, entry["facts"]
        data: dict[str, Any] = {
            "approval": entry["approval"],
            "revision": entry["revision"],
            "by": actor.get("name"),
            "authenticated": actor.get("authenticated"),
            **{name: facts[name] for name in _SHOWN_FACTS if name in facts},
            **(_request(row) if row is not None else {}),
        }
        if entry["approval"] is not None and self.link is not None:
            data["link"] = self.link.replace("{id}", quote(entry["approval"], safe=""))
        if self.with_arguments and arguments is not None:
            data["arguments"] = arguments
        body = {
            "type": f"approval.{entry['kind']}",
            "timestamp": _time(entry["at"]),
            "data": redact_value(data, identifiers=False),
        }
        body["data"]["checkpoint"] = {"store": store, "seq": link.seq, "hash": link.hash, "at": entry["at"]}
        return f"msg_{link.hash[:40]}", json.dumps(body).encode()


def webhooks_of(url: str | None, link: str | None, environ: Mapping[str, str]) -> tuple[Webhook, ...]:
    """Return the receiver that settings name; nothing without an address.

    Args:
        url: the setting `webhook_url`.
        link: the setting `approval_link`.
        environ: the environment, which holds the secret in `GRACE_KP_WEBHOOK_SECRET`. A file of settings is no place for it.

    Raises:
        SettingsError: a setting cannot be used, or there is no secret.
    """
    if url is None:
        return ()
    secret = environ.get(VARIABLE)
    if not secret:
        raise SettingsError(f"webhook_url is set to {receiver_of(url)}, and {VARIABLE} holds no secret")
    return (Webhook(url=url, secret=secret.split(), link=link),)


def receiver_of(url: str) -> str:
    """Return scheme and host of an address, which may be shown.

    Raises:
        SettingsError: it is no address that messages can be posted to.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError):
        parts, host, port = None, None, None
    if parts is None or parts.scheme not in {"http", "https"} or not host or not url.isascii() or not url.isprintable():
        raise SettingsError("the address of a webhook must be an http or https address in ASCII")
    if parts.username is not None or parts.password is not None:
        raise SettingsError(f"the address of the webhook to {host} must hold no user and password: messages are signed")
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def _check_link(link: str) -> None:
    if not isinstance(link, str) or link.count("{id}") != 1 or urlsplit(link).scheme not in {"http", "https"}:
        raise SettingsError(
            f"link must be an http or https address with one {{id}}, such as https://reviews.example/approvals/{{id}}, not {brief(link)}"
        )


def _key(secret: object) -> bytes | None:
    """Return the bytes of a secret; None if it is none."""
    if not isinstance(secret, str) or not secret.startswith(PREFIX):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) in _SECRET_BYTES else None


def _request(row: Row) -> dict[str, Any]:
    data = json.loads(row.data)
    return {
        "action": row.action,
        "domain": row.domain,
        "run_id": row.run_id,
        "digest": row.digest,
        "level": data.get("level"),
        "deadline": None if row.deadline is None else _time(row.deadline),
        "groups": data.get("groups", []),
        "quorum": data.get("quorum", 1),
    }


def _time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):  # beyond the year 9999
        return "9999-12-31T23:59:59.999Z"
