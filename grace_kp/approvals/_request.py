"""One request for approval: the one shape that it has from the gate to the inbox, to every page, and back to the gate.

The states of a request and the only changes between them. Nothing else in this library states which state may follow which.

    pending ──┬─ approve ──> approved ──┬─ claim ──> claimed ──┬─ the action returned ──────────> done
              ├─ edit ─────> edited ────┤                      ├─ the action raised ────────────> failed
              │                         │                      ├─ nobody knows ─────────────────> unknown
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

The last line is written only by `RequestStore.restored`: what was decided before the backup may have been carried out after it.
Only a claim entitles to run. `failed` means that the action raised, not that nothing happened. A state without a way out is final.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._people import Actor


class ApprovalState(StrEnum):
    """Where a request for approval stands."""

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
        """Whether the action was begun and nobody has established that nothing happened."""
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
"""The states that may follow each state."""
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
"""The response that a gate takes each decision for."""


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
    """The note, reason or words of the person; or why it was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The one execution that a decision entitled to."""

    at: float
    process: str
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The outcome of the execution, as its claimant or a reconciliation states it."""

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
    """The fields of a request and of its `Approval`. A gate sets those that it asks with; the others follow from what people and programs do.

    Texts are redacted before they are stored.
    """

    id: str = field(default_factory=new_approval_id)
    """Id of the approval. Values are sealed for it, so that it exists before the request is filed."""
    state: ApprovalState = ApprovalState.PENDING
    revision: int = 1
    action: str
    version: str
    """Version of the action: the declared one, or a hash of its signature."""
    domain: str
    digest: str
    """Digest of the arguments that are decided on now; it changes with an edit. A verb with the digest that was shown fails after a change."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What would run, by parameter name, decoded. Sealed values that cannot be opened here are `SEALED` objects, which print as `[SEALED]`."""
    operation: str = ""
    """What the idempotency key of the action is derived from: store, key, arguments and the number of failed attempts; without a key, the id."""
    asked: Mapping[str, Any] | None = None
    """The arguments before an edit; None without one."""
    asked_encoded: Mapping[str, Any] | None = None
    """`asked` as it is kept."""
    asked_digest: str = ""
    """Digest of the arguments that the program asked about; `digest` where nothing was edited."""
    encoded: Mapping[str, Any] = field(default_factory=dict)
    """The arguments as they are kept: canonical JSON with type tags, sealed values in place of secrets."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of the parameters that an edit is checked with, as far as their types are known."""
    not_covered: tuple[str, ...] = ()
    """Parameters that the digest leaves out; they may differ between request and execution."""
    sealed: tuple[str, ...] = ()
    """Parameters that are kept encrypted."""
    unencoded: tuple[str, ...] = ()
    """Parameters that only the waiting process holds, because they have no encoding; nobody else can carry the action out."""
    key: str | None = None
    """What identifies the operation, as canonical JSON: domain, action and the named fields. Requests are joined by its digest."""
    key_fields: tuple[str, ...] = ()
    """Parameters that the key is made of; an edit cannot change them."""
    level: str = "confirm"
    score: float | None = None
    """The confidence; None where it could not be computed."""
    breakdown: Mapping[str, float | None] = field(default_factory=dict)
    """Parts of the confidence; None for those that were not evaluated."""
    penalties: tuple[str, ...] = ()
    reason: str = ""
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else the decision rests on: profile, shadow, mismatches."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Policy and thresholds at the time of the request, with their version."""
    run_id: str | None = None
    objective: str | None = None
    user: str | None = None
    """The user of the run, who may not decide where a group or a quorum above 1 is required."""
    run: Mapping[str, Any] | None = None
    """The trace of the run up to the request, redacted; None outside of a run, or once its contents are deleted."""
    created_at: float = 0.0
    deadline_seconds: float | None = None
    """Seconds until the request is due; None for never."""
    deadline: float | None = None
    """Seconds since the epoch until which it can be decided."""
    use_within_seconds: float | None = None
    """Seconds after a decision within which the action must be claimed; None for ever."""
    use_by: float | None = None
    """Until when an approved action must be claimed."""
    on_deadline: str = "cancel"
    """`cancel`, `skip` or `escalate:GROUP`."""
    groups: tuple[str, ...] = ()
    """Groups whose members may decide; empty for anybody."""
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
    """`gate`, or the framework whose interrupt it is."""
    waits: str = "wait"
    """`wait`, `raise`, `hand_over`, or `interrupt` for an interrupt of a graph. With `wait`, the process that files it is recorded as waiting."""
    is_awaited: bool | None = None
    """Whether a live process waits for the decision; None where that cannot be known."""
    same: int = 1
    """Number of pending requests with this digest, this one included."""
    deleted: bool = False
    """Whether retention has deleted the contents."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """What a framework needs to carry the action on."""

    def to_dict(self) -> dict[str, Any]:
        """Return the approval as JSON; arguments in their encoded form, with sealed ones sealed."""
        # Decoded arguments may not be JSON, and sealed ones are open in them.
        document = asdict(replace(self, arguments={}, asked=None))
        document["arguments"], document["asked"] = document["encoded"], document["asked_encoded"]
        left_out = _NOT_IN_JSON if self.asked_encoded is not None else (*_NOT_IN_JSON, "asked")
        return {name: value for name, value in document.items() if name not in left_out}
