"""A request for approval, in the one form that gates, stores, pages and programs share; its states; and the people who act on it.

    pending ──┬─ approve ──> approved ──┬─ claim ──> claimed ──┬─ the action returned ──────────> done
              ├─ edit ─────> edited ────┤                      ├─ the action raised ────────────> failed
              │                         │                      ├─ no report ────────────────────> unknown
              │                         │                      └─ paused before it did anything > approved
              │                         ├─ unused in time ──> expired
              │                         └─ withdraw, or a stricter policy in force ──> cancelled
              ├─ reject ───> rejected
              ├─ respond ──> responded
              ├─ skip ─────> skipped
              ├─ retry ────> retried
              ├─ the deadline has passed ──> expired, or skipped where the reviewer says so
              └─ withdraw, or the caller gives up ──> cancelled

    unknown ──┬─ late report by its claimant ──> done | failed
              └─ reconcile ────────────────────> done | not_done

    approved, edited, claimed ── the store was restored from a backup ──> unknown

Only `RequestStore.restored` makes the last change: the action may have run after the backup. Only a claim permits a run. `failed` means that the
action raised, not that it had no effect. A state without a successor is final.

Votes that wait for others, and standing approvals, count only while their author may decide. A person who has lost an account of `grace-kp serve`, or
its right to decide, may not. Complete decisions stay.
"""

from __future__ import annotations

import getpass
import json
import re
import secrets
import socket
import unicodedata
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grace_kp.errors import ApprovalError
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.pages import printable
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from grace_kp.approvals._tables import Reads


class ApprovalState(StrEnum):
    """State of a request for approval."""

    PENDING = "pending"
    APPROVED = "approved"
    EDITED = "edited"
    REJECTED = "rejected"
    RESPONDED = "responded"
    SKIPPED = "skipped"
    RETRIED = "retried"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_DONE = "not_done"

    @property
    def is_open(self) -> bool:
        """Whether the action may still run under this approval, or may be running."""
        return self in OPEN

    @property
    def may_have_run(self) -> bool:
        """Whether the action was started and is not known to have had no effect."""
        return self in {self.CLAIMED, self.DONE, self.FAILED, self.UNKNOWN}


_S = ApprovalState
_DECIDED = (_S.APPROVED, _S.EDITED, _S.REJECTED, _S.RESPONDED, _S.SKIPPED, _S.RETRIED)
OPEN = frozenset({_S.PENDING, _S.APPROVED, _S.EDITED, _S.CLAIMED})
ENTITLING = frozenset({_S.APPROVED, _S.EDITED})
"""States from which an action may be claimed."""
FOLLOWING: Mapping[ApprovalState, frozenset[ApprovalState]] = MappingProxyType(
    {
        **dict.fromkeys(_S, frozenset()),
        _S.PENDING: frozenset({*_DECIDED, _S.EXPIRED, _S.CANCELLED}),
        **dict.fromkeys(ENTITLING, frozenset({_S.CLAIMED, _S.EXPIRED, _S.CANCELLED, _S.UNKNOWN})),
        _S.CLAIMED: frozenset({_S.DONE, _S.FAILED, _S.UNKNOWN, _S.APPROVED}),
        _S.UNKNOWN: frozenset({_S.DONE, _S.FAILED, _S.NOT_DONE}),
    }
)
"""The possible successors of each state."""
RESPONSES: Mapping[ApprovalState, InterventionAction] = MappingProxyType(
    {
        _S.APPROVED: InterventionAction.PROCEED,
        _S.EDITED: InterventionAction.MODIFY,
        _S.REJECTED: InterventionAction.CANCEL,
        _S.RESPONDED: InterventionAction.INPUT,
        _S.SKIPPED: InterventionAction.SKIP,
        _S.RETRIED: InterventionAction.RETRY,
    }
)
"""The response of a gate to each decision."""


# People


_HIDDEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Invisible characters outside of the category Cf."""


def person(name: str) -> str:
    """Normalise a name so that spelling variants count as one person in a quorum: case, width, spaces, invisible characters, and secrets, which are redacted."""
    name = redact_text(name, identifiers=False)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    shown = (each for each in folded if unicodedata.category(each) != "Cf" and not _HIDDEN.match(each))
    return " ".join("".join(shown).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person or a process. A name is *stated* unless a login has established it. Secrets in names are redacted, and such a name is only stated."""

    name: str
    channel: str = "python"
    """Where the verb was called: `python`, `cli`, `web`, `console`, `gate`, `standing`."""
    authenticated: bool = False
    """Whether a login has established the name; `by=` only states it."""
    os_user: str = ""
    host: str = ""
    account: str = ""
    """Mark of the account of `grace-kp serve` under which the person was logged in; empty without one."""

    def __post_init__(self) -> None:
        if isinstance(self.name, str) and (name := redact_text(self.name, identifiers=False)) != self.name:
            object.__setattr__(self, "name", name)
            object.__setattr__(self, "authenticated", False)  # other secrets give the same name

    @classmethod
    def of(cls, by: str | Actor) -> Actor:
        """Return the actor, or an actor in this process with this name.

        Raises:
            ValueError, ApprovalError: the name cannot be used.
        """
        actor = by if isinstance(by, Actor) else cls.here(by)
        if not isinstance(actor.name, str) or not person(actor.name) or len(actor.name) > 200:
            raise ApprovalError("an actor needs a name of 1 to 200 characters")
        return actor

    @classmethod
    def here(cls, name: str, *, channel: str = "python", authenticated: bool = False, account: str = "") -> Actor:
        """Return the actor with this name, in this process."""
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            raise ValueError(f"by must be a name of 1 to 200 characters, not {name!r:.60}")
        return cls(
            name=name.strip(),
            channel=channel,
            authenticated=authenticated,
            os_user=_os_user(),
            host=socket.gethostname(),
            account=account,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the actor as JSON without empty fields."""
        return {name: value for name in _NAMES if (value := getattr(self, name)) != ""}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Actor:
        """Return an actor from its JSON."""
        return cls(**data)


_NAMES = tuple(item.name for item in fields(Actor))


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry for the user id, as in some containers
        return ""


ACCOUNT = "account"
"""Kind of the documents that hold the accounts of `grace-kp serve`, by id."""
DECIDING_ROLES = frozenset({"approver", "admin"})


def account_mark(created: float) -> str:
    """Return the mark of an account by its time of creation, which tells it from a later account of the same name."""
    return f"{created:.6f}"


def reason_without_account(reads: Reads, actor: Actor) -> str:
    """Return why the account of an actor may no longer decide; an empty string if it may, or without an account."""
    if not actor.account:
        return ""
    name, data = printable(actor.name, replace="?"), reads.document(ACCOUNT, person(actor.name))
    try:
        account = json.loads(data) if data else None
        if account is None or account_mark(account["created"]) != actor.account:
            return f"the account of {name} was removed"
        if account["role"] not in DECIDING_ROLES:
            return f"the role of {name} no longer includes decisions"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"the account of {name} cannot be read"
    return ""


# Requests


_NOT_IN_JSON = ("asked_encoded", "deadline_seconds", "use_within_seconds", "encoded")


def new_approval_id() -> str:
    """Return an id that no other approval has."""
    return f"ap-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One person's consent to one digest."""

    actor: Actor
    at: float
    digest: str
    counts: bool = True
    """False where the quorum counts authenticated people only and this name was only stated."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """How a request was decided or closed."""

    state: ApprovalState
    actor: Actor
    at: float
    note: str = ""
    """The note, reason or answer of the person, or the reason of an automatic end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The one execution that a decision permits."""

    at: float
    process: str
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The outcome of the execution, from its claimant or a reconciliation."""

    state: ApprovalState
    at: float
    actor: Actor
    has_result: bool = False
    result: Any = None
    error: str = ""
    """Type of the exception that the action raised."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier request with the same key that did not lead to the action, or failed."""

    id: str
    state: ApprovalState
    at: float
    by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """The fields of a request, and of its `Approval` with the results of decisions. Strings are redacted before they are stored."""

    id: str = field(default_factory=new_approval_id)
    """Drawn before the request is filed, because values are sealed for it."""
    state: ApprovalState = ApprovalState.PENDING
    revision: int = 1
    action: str
    version: str
    """Version of the action: the declared one, or a hash of its signature."""
    domain: str
    digest: str
    """Digest of the current arguments, which changes with an edit. A verb with another digest fails."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Decoded arguments by parameter name. Sealed values that cannot be opened here are `SEALED`, which prints as `[SEALED]`."""
    operation: str = ""
    """Source of the idempotency key: a hash of store, key, arguments and number of failed attempts; without a key, the id."""
    asked: Mapping[str, Any] | None = None
    """The arguments before an edit; None without one."""
    asked_encoded: Mapping[str, Any] | None = None
    """`asked` as stored."""
    asked_digest: str = ""
    """Digest of the arguments before an edit; without one, the same as `digest`."""
    encoded: Mapping[str, Any] = field(default_factory=dict)
    """The arguments as stored: canonical JSON with type tags, and sealed values instead of secrets."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of the parameters, which edits are checked by."""
    not_covered: tuple[str, ...] = ()
    """Parameters that the digest leaves out; they may differ between request and execution."""
    sealed: tuple[str, ...] = ()
    """Encrypted parameters."""
    unencoded: tuple[str, ...] = ()
    """Parameters without an encoding. Only the waiting process holds their values and can run the action."""
    key: str | None = None
    """Identity of the operation, as canonical JSON: domain, action and the fields of the template."""
    key_fields: tuple[str, ...] = ()
    """Parameters that the key is made of; an edit cannot change them."""
    level: str = "confirm"
    score: float | None = None
    """The confidence; None where it could not be computed."""
    breakdown: Mapping[str, float | None] = field(default_factory=dict)
    """Parts of the confidence; None for parts that were not evaluated."""
    penalties: tuple[str, ...] = ()
    reason: str = ""
    gaps: tuple[str, ...] = ()
    """Reasons why evidence is missing or cannot be used."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Other facts behind the decision: profile, shadow, mismatches."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Policy and thresholds at the time of the request, with their version."""
    run_id: str | None = None
    objective: str | None = None
    user: str | None = None
    """The user of the run, who may not decide if a group or a quorum above 1 is required."""
    run: Mapping[str, Any] | None = None
    """The trace of the run up to the request, redacted; None outside of a run, or once its contents are deleted."""
    created_at: float = 0.0
    deadline_seconds: float | None = None
    """Seconds until the request is due; None for never."""
    deadline: float | None = None
    """Time until which it can be decided, in seconds since the epoch."""
    use_within_seconds: float | None = None
    """Seconds after a decision within which the action must be claimed; None without a limit."""
    use_by: float | None = None
    """Time until which an approved action must be claimed, in seconds since the epoch."""
    on_deadline: str = "cancel"
    """`cancel`, `skip` or `escalate:GROUP`."""
    groups: tuple[str, ...] = ()
    """Groups whose members may decide; empty for everyone."""
    quorum: int = 1
    identity: str = "authenticated"
    """Which names a quorum above 1 counts: `authenticated` or `stated`."""
    votes: tuple[Vote, ...] = ()
    decision: Decided | None = None
    claim: Claimed | None = None
    outcome: Ended | None = None
    earlier: tuple[Earlier, ...] = ()
    standing: str | None = None
    """The standing approval that approved it."""
    origin: str = "gate"
    """`gate`, or the framework that interrupts."""
    waits: str = "wait"
    """`wait`, `raise`, `hand_over`, or `interrupt` for an interrupt of a graph. With `wait`, the process that files it is recorded as waiting."""
    is_awaited: bool | None = None
    """Whether a live process waits for the decision; None if that cannot be known."""
    same: int = 1
    """Number of pending requests with this digest, including this one."""
    deleted: bool = False
    """Whether retention has deleted the contents."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """Data with which a framework resumes."""

    def to_dict(self) -> dict[str, Any]:
        """Return the approval as JSON, with encoded arguments and sealed secrets."""
        # Decoded arguments may not be JSON, and sealed ones are open.
        document = asdict(replace(self, arguments={}, asked=None))
        document["arguments"], document["asked"] = document["encoded"], document["asked_encoded"]
        left_out = _NOT_IN_JSON if self.asked_encoded is not None else (*_NOT_IN_JSON, "asked")
        return {name: value for name, value in document.items() if name not in left_out}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNow:
    """The current requirements of the policy of an action."""

    denies: bool = False
    """Whether the action is forbidden."""
    floor: str | None = None
    """The mildest level of the action; None for any."""
    groups: tuple[str, ...] = ()
    """Groups whose members may decide; empty for everyone."""
    quorum: int = 1
    identity: str = "stated"
    """Votes that a quorum above 1 counts: only `authenticated` ones, or also those of `stated` names."""
    version: str = ""

    def stricter_than(self, *, level: str, groups: Collection[str], quorum: int, identity: str) -> str:
        """Return why this policy is stricter than these settings, or an empty string. Fewer groups are stricter, and any group is stricter than none."""
        if self.denies:
            return "the policy forbids the action now"
        if self.floor is not None and InterventionLevel(self.floor).severity > InterventionLevel(level).severity:
            return f"the policy requires {self.floor} now, and the decision was asked for at {level}"
        if self.quorum > quorum:
            return f"the policy requires {self.quorum} people now, and the decision needed {quorum}"
        if self.quorum > 1 and self.identity != identity == "stated":
            return "the policy counts authenticated people alone now"
        if self.groups and (not groups or not set(groups) <= set(self.groups)):
            return f"the policy requires a member of {' or '.join(self.groups)} now"
        return ""
