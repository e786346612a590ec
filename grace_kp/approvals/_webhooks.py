"""Webhooks: signed messages about changes of approvals, and their delivery in the background.

Messages follow Standard Webhooks (https://www.standardwebhooks.com): the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. They hold
no contents, except the arguments on request. Each holds a checkpoint of the chain, so that a receiver can later prove what the chain was.

Each receiver has a cursor in the store: the number of its last entry. A gate only wakes the delivery. Entries that could not be delivered stay in the
chain, and the next process that uses the store delivers them. A receiver gets each message at least once, in the order of the chain, and always with
the same `webhook-id`. Of the processes that share a store, the one with the lease of the cursor delivers.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import random
import secrets
import threading
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from grace_kp.approvals._chain import KINDS, each_link, entry_of
from grace_kp.approvals._record import record_of, stored_arguments
from grace_kp.background import DeadlineExceeded, Resident, Worker, call_within, report_loss, retry_after, watch
from grace_kp.errors import MissingExtra, SettingsError, brief
from grace_kp.trace import redacted_error
from grace_kp.trace.redaction import redact_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals._tables import Link, Reads, Row, Tables


EVENTS = tuple(
    sorted(
        KINDS - {"joined", "viewed", "claimed", "released", "standing_used", "forgotten", "account_changed", "refused"}
    )
)
"""The default kinds of entries of a receiver."""
PREFIX = "whsec_"
VARIABLE = "GRACE_KP_WEBHOOK_SECRET"
"""Environment variable with the secrets of the receiver in the settings, separated by spaces."""
_SECRET_BYTES = range(24, 65)
_SHOWN_FACTS = (
    "verb", "state", "level", "votes", "quorum", "group", "happened", "reported", "standing", "action", "uses", "until", "marked",
)  # fmt: skip
"""Facts of an entry that a message repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A receiver of notifications about approvals.

    Raises:
        SettingsError: a field cannot be used. The message shows neither the path of the address nor the secret.
        MissingExtra: httpx is not installed.
    """

    url: str = field(repr=False)
    """Address of the receiver, http or https. Its path counts as a secret."""
    secret: str | Sequence[str] = field(repr=False)
    """`whsec_` and the base64 of 24 to 64 random bytes. With several secrets, messages are signed with each."""
    events: Sequence[str] = EVENTS
    """Kinds of chain entries that are sent."""
    link: str | None = None
    """Address of the page of a request, such as `https://reviews.example/approvals/{id}`."""
    with_arguments: bool = False
    """Whether messages hold the current arguments, redacted. Sealed values stay sealed."""
    receiver: str = field(init=False, default="")
    """Scheme and host, which may be shown and logged."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "receiver", receiver_of(self.url))
        unknown = [kind for kind in self.events if kind not in KINDS]
        link = self.link if isinstance(self.link, str) else ""
        is_link = urlsplit(link).scheme in {"http", "https"} and link.count("{id}") == 1
        if not self._keys or None in self._keys:
            problem = f"the secret of the webhook to {self.receiver} must be {PREFIX!r} and the base64 of 24 to 64 random bytes"
        elif isinstance(self.events, str) or unknown or not self.events:
            allowed, found = ", ".join(sorted(KINDS)), brief(unknown or self.events)
            problem = f"events of the webhook to {self.receiver} must be among {allowed}, not {found}"
        elif self.link is not None and not is_link:
            example = "https://reviews.example/approvals/{id}"
            problem = (
                f"link must be an http or https address with one {{id}}, such as {example}, not {brief(self.link)}"
            )
        elif find_spec("httpx") is None:
            raise MissingExtra("Webhook", "approvals")
        else:
            return
        raise SettingsError(problem)

    @property
    def _keys(self) -> list[bytes | None]:
        return [_key(each) for each in ([self.secret] if isinstance(self.secret, str) else self.secret)]

    @property
    def id(self) -> str:
        """Id of the receiver in the store, which hides its address."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def headers_for(self, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
        """Return the headers of a message that is sent at `timestamp`, in seconds since the epoch."""
        data = f"{message_id}.{timestamp}.".encode() + body
        codes = (hmac.digest(key or b"", data, "sha256") for key in self._keys)
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
        """Return id and body of the message about an entry. The id is always the same."""
        actor, facts = entry["actor"] or {}, entry["facts"]
        data: dict[str, Any] = {
            "approval": entry["approval"],
            "revision": entry["revision"],
            "by": actor.get("name"),
            "authenticated": actor.get("authenticated"),
            **{name: facts[name] for name in _SHOWN_FACTS if name in facts},
        }
        if row is not None:
            kept = json.loads(row.data)
            data |= {name: getattr(row, name) for name in ("action", "domain", "run_id", "digest")}
            data |= {
                "level": kept.get("level"),
                "deadline": None if row.deadline is None else _time(row.deadline),
                "groups": kept.get("groups", []),
                "quorum": kept.get("quorum", 1),
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
    """Return the receiver in the settings; nothing without an address."""
    if url is None:
        return ()
    secret = environ.get(VARIABLE)
    if not secret:
        raise SettingsError(f"webhook_url is set to {receiver_of(url)}, and {VARIABLE} holds no secret")
    return (Webhook(url=url, secret=secret.split(), link=link),)


def receiver_of(url: str) -> str:
    """Return scheme and host of an address, which may be shown."""
    problem = "the address of a webhook must be an http or https address in ASCII"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError):
        raise SettingsError(problem) from None
    if parts.scheme not in {"http", "https"} or not host or not url.isascii() or not url.isprintable():
        raise SettingsError(problem)
    if parts.username is not None or parts.password is not None:
        raise SettingsError(f"the address of the webhook to {host} must hold no user and password: messages are signed")
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def _key(secret: object) -> bytes | None:
    if isinstance(secret, str) and secret.startswith(PREFIX):
        with suppress(ValueError):
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
            return key if len(key) in _SECRET_BYTES else None
    return None


def _time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):  # beyond the year 9999
        return "9999-12-31T23:59:59.999Z"


ABOUT_THE_RECEIVER = frozenset({401, 403, 404, 408, 409, 421, 423, 425, 429})
"""Statuses from 400 to 499 after which another attempt can succeed. Other ones refuse the message."""


class Unreached(Exception):
    """The receiver did not accept the message; another attempt may succeed."""

    def __init__(self, problem: str, wait_seconds: float | None = None) -> None:
        self.wait_seconds = wait_seconds
        super().__init__(problem)


class MessageRefused(Exception):
    """The receiver does not accept this message, or no message at all."""

    def __init__(self, status: int) -> None:
        self.is_gone = status == 410
        super().__init__(f"HTTP {status}")


def post(url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> None:
    try:
        # The transport limits each read; this limits the whole request.
        status, wait_seconds = call_within(
            seconds + 0.05, lambda: _send(url, headers, body, seconds), name="webhook", or_inline=True
        )
    except DeadlineExceeded:
        raise Unreached(f"no answer within {seconds:g} s") from None
    if 200 <= status < 300:
        return
    if 400 <= status < 500 and status not in ABOUT_THE_RECEIVER:
        raise MessageRefused(status)
    raise Unreached(f"HTTP {status}" + (", a redirect" if 300 <= status < 400 else ""), wait_seconds)


def _send(url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> tuple[int, float | None]:
    import httpx

    request = httpx.Request(
        "POST", url, headers=dict(headers), content=body, extensions={"timeout": httpx.Timeout(seconds).as_dict()}
    )
    # Not an httpx client, which logs the address, whose path may be a secret, and uses `.netrc`.
    try:
        proxies = {} if urllib.request.proxy_bypass(request.url.host) else urllib.request.getproxies()
        with httpx.HTTPTransport(proxy=proxies.get(request.url.scheme) or proxies.get("all")) as transport:
            answer = transport.handle_request(request)
            try:
                return answer.status_code, retry_after(answer.headers.get("retry-after"))
            finally:
                answer.close()
    except httpx.TimeoutException:
        raise Unreached(f"no answer within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise Unreached(type(error).__name__) from None  # its message may hold the address


DOCUMENT = "webhook"
"""Kind of the documents that hold cursors."""
POST_SECONDS = 10.0
"""Time limit of one attempt."""
GIVE_UP_SECONDS = 86_400.0
"""Age of an entry after which its message is given up."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
POLL_SECONDS = 2.0
"""Interval of polls for entries of other processes."""
EXIT_SECONDS = 2.0
LEASE_SECONDS = 30.0
AT_MOST_COUNTED = 10_000
PAGE = 200
"""Number of entries after which the cursor is saved even if no message was sent."""
_log = logging.getLogger("grace_kp.approvals")


class _Elsewhere(Exception):
    """Another process delivers to this receiver."""


class _Closing(Exception):
    """The delivery is being closed."""


class Delivery(Resident):
    """Delivers new entries to one receiver, and those that an earlier process has left.

    Args:
        tables: the tables of the store.
        webhook: the receiver.
        after: number of the entry that a new receiver begins after; by default the newest.
        clock: the wall clock, in seconds since the epoch.

    Raises:
        StoreError: the tables cannot be written.
    """

    def __init__(
        self,
        tables: Tables,
        webhook: Webhook,
        *,
        after: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tables, self._webhook, self._clock = tables, webhook, clock
        self._closed = False
        self.after_fork()
        self._begin = tables.head()[0] if after is None else after
        if tables.document(DOCUMENT, webhook.id) is None:
            self._save({})  # otherwise entries before the first delivery would be lost with this process
        self._worker = Worker(self._work, name="webhook", may_wait=False)
        watch(self)

    def after_fork(self) -> None:
        """Start again in the child, as another process."""
        self._changed = threading.Condition()
        self._begin = 0  # tables in memory are empty in the child; others have a cursor
        self._owner = secrets.token_hex(8)
        self._seq = -1
        self._is_elsewhere = self._is_gone = False
        self._warned = ""

    def wake(self) -> None:
        """Deliver new entries soon. This never waits and never fails."""
        if not self._closed and not self._is_gone:
            self._worker.wake()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is delivered, or another process delivers; return False after `seconds`."""
        target = self._tables.head()[0]
        self.wake()
        with self._changed:
            return self._changed.wait_for(lambda: self._seq >= target or self._is_elsewhere or self._is_gone, seconds)

    def close(self, seconds: float) -> bool:
        """Flush, report what is left, and stop."""
        if self._closed:
            return True
        flushed = self.flush(seconds)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._worker.stop(0.1)
        unsent = islice(each_link(self._tables, after=self._cursor(self._tables)["seq"]), AT_MOST_COUNTED)
        if not flushed and (left := sum(entry_of(link)["kind"] in self._webhook.events for link in unsent)):
            later = "; the next process that uses the store sends them" if self._tables.lasting else ""
            report_loss(f"{left} notifications were not delivered to {self._webhook.receiver} before the end{later}")
        with suppress(_Elsewhere):
            self._save({})  # gives the lease back
        return flushed

    def at_exit(self) -> None:
        """Deliver the rest within the time of an exit."""
        self.close(EXIT_SECONDS)

    def _work(self) -> float | None:
        try:
            return self._advance()
        except _Elsewhere:
            self._note(is_elsewhere=True)
            return POLL_SECONDS
        except _Closing:
            return None
        except Exception as error:  # noqa: BLE001 — failures are reported, and never reach a gate
            self._warn(redacted_error(error))
            return POLL_SECONDS

    def _advance(self) -> float | None:
        if self._closed or self._is_gone:
            return None
        cursor = self._cursor(self._tables)
        if cursor["seq"] >= self._tables.head()[0]:
            self._note(seq=cursor["seq"])
            return POLL_SECONDS
        seq = self._save({})["seq"]  # takes the lease
        for link in islice(each_link(self._tables, after=seq), PAGE):
            if self._closed:
                raise _Closing
            seq = link.seq
            entry = entry_of(link)
            if entry["kind"] in self._webhook.events:
                self._handle(link, entry)
                self._note(seq=seq)
        self._save({"seq": seq})
        self._note(seq=seq)
        return 0.0

    def _handle(self, link: Link, entry: dict[str, Any]) -> None:
        try:
            self._deliver(link, entry)
        except (Unreached, MessageRefused) as error:
            if isinstance(error, MessageRefused) and error.is_gone:
                self._note(is_gone=True)
                problem = f"wants no more notifications ({error}); none are sent until the next start"
                report_loss(f"{self._webhook.receiver} {problem}")
                raise _Closing from None
            lost = self._save({"seq": link.seq, "lost": 1, "problem": str(error)})["lost"]
            report_loss(
                f"the notification of entry {link.seq} was not delivered to {self._webhook.receiver}: {error}; {lost} lost so far"
            )
        else:
            self._warned = ""
            self._save({"seq": link.seq, "delivered": 1, "problem": ""})

    def _deliver(self, link: Link, entry: dict[str, Any]) -> None:
        row = None if link.approval is None else self._tables.row(link.approval)
        arguments = None
        if row is not None and self._webhook.with_arguments:
            arguments = stored_arguments(self._tables, record_of(row))
        message_id, body = self._webhook.message(self._tables.identity, link, entry, row, arguments)
        deadline, pause = entry["at"] + GIVE_UP_SECONDS, FIRST_PAUSE
        while True:
            try:
                headers = self._webhook.headers_for(message_id, int(self._clock()), body)
                post(self._webhook.url, headers, body, POST_SECONDS)
                return
            except Unreached as failure:
                seconds = max(pause + random.uniform(0, FIRST_PAUSE), failure.wait_seconds or 0.0)  # noqa: S311 — spreads attempts
                if self._clock() + min(seconds, GIVE_UP_SECONDS) > deadline:
                    raise
                self._warn(str(failure))
                self._save({"problem": str(failure)})
            self._pause(min(seconds, GIVE_UP_SECONDS))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _pause(self, seconds: float) -> None:
        """Wait between two attempts, and renew the lease meanwhile."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, min(left, LEASE_SECONDS / 3))
            if self._closed:
                raise _Closing
            self._save({})

    def _cursor(self, reads: Reads) -> dict[str, Any]:
        counts = {"seq": self._begin, "delivered": 0, "lost": 0}
        new = {"receiver": self._webhook.receiver, **counts, "problem": "", "by": "", "until": 0.0}
        data = reads.document(DOCUMENT, self._webhook.id)
        return new if data is None else json.loads(data)

    def _save(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change the cursor, with `delivered` and `lost` added, and take, renew or give back its lease."""
        with self._tables.transaction() as writes:
            cursor, now = self._cursor(writes), self._clock()
            # A clock that was set back does not make a lease longer.
            is_leased = now < cursor["until"] <= now + LEASE_SECONDS
            if cursor["by"] not in {"", self._owner} and (is_leased or self._closed):
                raise _Elsewhere  # also after closing: a late result must not overwrite the cursor of another process
            added = {name: cursor[name] + changes.get(name, 0) for name in ("delivered", "lost")}
            until = 0.0 if self._closed else now + LEASE_SECONDS  # an attempt may end after close()
            cursor = {**cursor, "by": self._owner, "until": until, **changes, **added}
            writes.put_document(DOCUMENT, self._webhook.id, json.dumps(cursor).encode())
        return cursor

    def _note(self, *, seq: int | None = None, is_elsewhere: bool = False, is_gone: bool = False) -> None:
        with self._changed:
            self._seq = self._seq if seq is None else seq
            self._is_elsewhere, self._is_gone = is_elsewhere, is_gone
            self._changed.notify_all()

    def _warn(self, problem: str) -> None:
        if problem != self._warned:
            self._warned = problem
            _log.warning("notifications to %s wait: %s", self._webhook.receiver, problem)
